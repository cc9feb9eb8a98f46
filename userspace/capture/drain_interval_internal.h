/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses how often to drain the kernel's buffers: waking an idle CPU costs more than a drain that
 * finds nothing. When hardly any records arrive, drains are rare. But they are frequent enough that
 * a sudden flood of records cannot fill the buffers before the next one.
 */
#ifndef WAFFLE_CAPTURE_DRAIN_INTERVAL_INTERNAL_H
#define WAFFLE_CAPTURE_DRAIN_INTERVAL_INTERNAL_H

#include <stdint.h>

#define DRAIN_INTERVAL_MIN_NS 1000000ull
#define DRAIN_INTERVAL_BUSY_NS 20000000ull
#define DRAIN_INTERVAL_QUIET_NS 100000000ull /* upper bound; also the delay of Ctrl-C */
/* Upper bound with rings of libwaffle, which a thread can fill within some milliseconds. */
#define DRAIN_INTERVAL_RINGS_NS 40000000ull

struct drain_interval {
	uint64_t ns;       /* until the next drain */
	uint64_t quiet_ns; /* interval while hardly any records arrive */
	uint64_t records;  /* count at the last drain */
};

/* `rings` buffers of ring_bytes each, shared by all CPUs, and one buffer of sched_bytes per CPU (0:
 * none). */
struct drain_interval drain_interval_begin(uint64_t ring_bytes, uint32_t rings,
					   uint64_t sched_bytes, uint32_t cpus);
/* Call it after a drain. `records`: number delivered since the start. `filled`: the part of a ring
 * of libwaffle that was written since the last drain, in 1/256, of the ring where it is largest;
 * 0: there are no such rings. */
void drain_interval_update(struct drain_interval *interval, uint64_t records, uint32_t filled);

#endif
