/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the kernel's buffers are drained: a wake-up of an idle CPU costs more than a drain that
 * finds nothing. When next to nothing comes they are drained rarely, but never so rarely that a
 * flood which begins meanwhile would find them full.
 */
#ifndef WAFFLE_CAPTURE_PACE_H
#define WAFFLE_CAPTURE_PACE_H

#include <stdint.h>

#define PACE_BUSY_NS 20000000ull
#define PACE_QUIET_NS 100000000ull /* at most; also what Ctrl-C may have to wait for */

struct pace {
	uint64_t ns;       /* until the next drain */
	uint64_t quiet_ns; /* when next to nothing comes */
	uint64_t records;  /* at the last drain */
};

/* `rings` of ring_bytes each are shared by all CPUs; sched_bytes are of each CPU, 0: none. */
struct pace pace_begin(uint64_t ring_bytes, uint32_t rings, uint64_t sched_bytes, uint32_t cpus);
/* A drain is done; `records` were delivered since the beginning. */
void pace_drained(struct pace *pace, uint64_t records);

#endif
