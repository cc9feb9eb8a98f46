/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of this process. A thread gets one at its first armed hit, perhaps in a signal handler:
 * so it is mapped by system calls, and listed without a lock. The ring of a thread that is gone is
 * drained, and then given to another thread. Rings are never unmapped, since a thread may be about
 * to write.
 *
 * The memory is a memfd, so that a tracer can map it (/proc/PID/map_files). Its descriptor is
 * closed at once: the program must not see it.
 */
#ifndef WAFFLE_USDT_RINGS_H
#define WAFFLE_USDT_RINGS_H

#include <stdint.h>

#include "bpf/record.h"
#include "usdt/ring.h"

struct rings_slot {
	struct rings_slot *next; /* list of all slots; never changed once the slot is listed */
	/* Tid of the owner in the low half; 0: free. The high half is the number of owners so far,
	 * since a new thread may have the tid of the last one. */
	uint64_t owner;
	struct ring writer;
	/* Of the collector: */
	struct ring reader;
	uint64_t known;       /* the owner whose name was recorded */
	uint64_t lost_before; /* ring_lost() when the recording began */
	uint64_t busy_at;     /* position of a record that is not committed … */
	uint64_t busy_ns;     /* … since this time, when the ring had … */
	uint64_t busy_head;   /* … this head */
	char comm[WAFFLE_COMM_BYTES];
};

/* Size and clock of rings that are made from now on. */
void rings_configure(uint64_t data_bytes, uint32_t clock);
/* Writes a hit of this thread: the function of struct waffle_process_. */
void rings_hit(const void *probe, unsigned long long id, const void *name, const void *frame,
	       unsigned long long size);
/* The first slot; all others follow. */
struct rings_slot *rings_first(void);
/* Hits that had no ring, because none could be mapped. */
uint64_t rings_without(void);
/* Lets another thread have the slot, after this owner is gone and its ring is empty. */
void rings_free(struct rings_slot *slot, uint64_t owner);
/* In a new child: the rings are the parent's, so the child forgets them. */
void rings_forget(void);

#endif
