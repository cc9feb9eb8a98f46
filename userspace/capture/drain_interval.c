// SPDX-License-Identifier: Apache-2.0
#include "capture/drain_interval_internal.h"

#include "bpf/record.h"

/* Per CPU, slightly above the rate that bench/ reaches. */
#define SWITCHES_A_MS 1000
#define HIT_BYTES_A_MS 150000
#define QUIET_RECORDS 64 /* between two drains */
/* A ring of libwaffle is drained before more than this part of it is filled, in 1/256. */
#define RING_PART 64

static uint64_t at_most(uint64_t ns, uint64_t limit)
{
	return ns < limit ? ns : limit;
}

struct drain_interval drain_interval_begin(uint64_t ring_bytes, uint32_t rings,
					   uint64_t sched_bytes, uint32_t cpus)
{
	uint32_t sharing = rings ? (cpus + rings - 1) / rings : cpus; /* number of CPUs per ring */
	uint64_t ns = DRAIN_INTERVAL_QUIET_NS;

	ns = at_most(ns, ring_bytes * 1000 / (HIT_BYTES_A_MS / 1000) / (sharing ? sharing : 1));
	if (sched_bytes)
		ns = at_most(ns, sched_bytes / sizeof(struct waffle_rec_switch) * 1000000 /
					 SWITCHES_A_MS);
	return (struct drain_interval){
		.ns = DRAIN_INTERVAL_BUSY_NS,
		.quiet_ns = ns > DRAIN_INTERVAL_BUSY_NS ? ns : DRAIN_INTERVAL_BUSY_NS};
}

void drain_interval_update(struct drain_interval *interval, uint64_t records, uint32_t filled)
{
	uint64_t ns = records - interval->records < QUIET_RECORDS ? interval->quiet_ns
								  : DRAIN_INTERVAL_BUSY_NS;

	if (filled) {
		uint64_t until_filled = interval->ns * RING_PART / filled;

		ns = at_most(ns, DRAIN_INTERVAL_RINGS_NS);
		/* A thread that fills its ring may be off its CPU for a while, and then go on. So
		 * the interval grows slowly. */
		ns = at_most(ns, interval->ns + interval->ns / 4);
		ns = at_most(ns, until_filled > DRAIN_INTERVAL_MIN_NS ? until_filled
								      : DRAIN_INTERVAL_MIN_NS);
	}
	interval->ns = ns;
	interval->records = records;
}
