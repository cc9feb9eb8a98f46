/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligns the clocks of several hosts by what they did together. The input is a list of facts: what
 * one host did at a time of its clock was before what another host did at a time of its own. A
 * message gives one such fact: the send begins before the receive ends. A synchronising collective
 * gives two for each pair of hosts, since no rank ends before every rank has begun.
 *
 * The clocks of two hosts differ by a line (an offset and a drift). The facts leave a set of lines
 * for each pair, and the true one is among them. Facts of other pairs tighten it: the clock of C
 * relative to A follows from that of B relative to A and that of C relative to B.
 *
 * The result for a host is a line in the middle of its set, and how far the true one can be away
 * from it. This is a guarantee if the drifts were constant and at most CLOCK_DRIFT_MAX.
 *
 *	struct clock_hosts *hosts = clock_hosts_new(2);
 *
 *	clock_hosts_add(hosts, &before);
 *	if (!clock_hosts_solve(hosts, 0, windows, estimates, &conflict)) …
 *	clock_hosts_free(hosts);
 */
#ifndef WAFFLE_MODEL_CLOCK_CLOCK_HOSTS_INTERNAL_H
#define WAFFLE_MODEL_CLOCK_CLOCK_HOSTS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/clock/clock_lines_internal.h"
#include "store/host.h"

/* Times at which the error of a host's clock is known. Between them it is at most what the straight
 * line between its values is, because the true correction is a line. */
#define CLOCK_KNOTS STORE_CLOCK_ERRORS

/* What host `first` did at first_ts was before what host `second` did at second_ts. Times are ns of
 * each host's own clock. */
struct clock_before {
	uint32_t first, second;
	uint64_t first_ts, second_ts;
	uint32_t tag; /* the caller's name for the fact */
};

/* The time for which a host's clock is wanted, in that clock. */
struct clock_window {
	uint64_t from_ts, to_ts;
};

/* The clock of a host: at ts, the reference host's clock shows
 * ts + offset_ns + drift * (ts - at_ts). */
struct clock_estimate {
	bool known; /* false: no chain of facts bounds it on both sides; all else is 0 */
	int64_t offset_ns;
	double drift;
	uint64_t at_ts;
	/* The smallest and the largest possible offset at at_ts, where they are closest. */
	int64_t low_ns, high_ns;
	/* How far the truth can be from the estimate, at times of the host's clock. */
	uint64_t knot_ts[CLOCK_KNOTS], knot_error_ns[CLOCK_KNOTS];
};

/* Two facts that cannot both be true. */
struct clock_conflict {
	uint32_t first, second; /* the hosts */
	/* CLOCK_NO_TAG: it follows from facts of several pairs, or from CLOCK_DRIFT_MAX. */
	uint32_t tag, other_tag;
};

struct clock_hosts;

struct clock_hosts *clock_hosts_new(uint32_t count);
void clock_hosts_free(struct clock_hosts *hosts);

/* Adds a fact. Facts within one host and times beyond 2^61 say nothing. A contradiction shows up in
 * clock_hosts_solve(). */
void clock_hosts_add(struct clock_hosts *hosts, const struct clock_before *before);

/* Fills one estimate for each host; that of `reference` is exact. False: the facts contradict each
 * other, and only the conflict is filled. */
bool clock_hosts_solve(struct clock_hosts *hosts, uint32_t reference,
		       const struct clock_window *windows, struct clock_estimate *estimates,
		       struct clock_conflict *conflict);

/* The same in the form of the store, which also converts times and has the error at any time.
 * `collectives`: the number of those that the estimate comes from. */
void clock_estimate_store(const struct clock_estimate *estimate, uint64_t collectives,
			  struct store_clock *clock);

#endif
