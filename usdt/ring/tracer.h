/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a tracer in another process asks for rings: by two probes of libwaffle, each with a semaphore
 * that the kernel raises while somebody probes it. So a tracer that is killed leaves nothing armed.
 * The tracer finds them by libwaffle's note (WAFFLE_NOTE_TRANSPORT in include/waffle/abi.h).
 *
 *	"ring"  A tracer that reads rings probes it. It is hit when a thread has made a ring: by its
 *	        registers the tracer finds the memory, maps it through /proc/PID/map_files, and
 *	        acknowledges it by writing ring_shared.reader.
 *	"usdt"  A tracer that wants all hits at their probes, such as a second one, probes it. It is
 *	        never hit.
 *
 * A hit goes through the ring if "ring" is raised, "usdt" is not, and the tracer has acknowledged
 * the ring. All others go through the kernel as in a program without libwaffle. So nothing is lost
 * before the tracer has mapped the ring.
 */
#ifndef WAFFLE_USDT_RING_TRACER_H
#define WAFFLE_USDT_RING_TRACER_H

#include <stdint.h>

/* Tells the tracer of a new ring of this thread, which has this tid as the process sees it: the
 * function of rings_on_open(). tid 0: of memory for names (name_chunk.h). It is async-signal-safe.
 */
void tracer_announce(const void *memory, uint64_t map_bytes, uint32_t tid);

/*
 * In a program that is executed while a tracer wants rings, and in a sandbox: makes this process
 * one of the kernel's way, since making a ring could end it. The tracer comes to the same
 * conclusion, but later. Call it before anything is recorded: what it calls itself (openat, read,
 * close), the loader has called before.
 */
void tracer_heed_sandbox(void);

#endif
