/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle time of event loops, and of runtimes whose threads have nothing to run (why_go_idle.c). A
 * thread that calls epoll_wait() outside of all spans waits for whatever comes next. If its timeout
 * expires, nothing came, so that this time delayed nothing. A call that blocks the loop meanwhile
 * delays all its other work, even if it takes far less time. So the time of what delays comes
 * before idle time, in the lists of `why`. Time that the capture itself took is not what makes the
 * program slow without it, and comes after all of a certain length.
 */
#ifndef WAFFLE_ANALYZE_WHY_PARTS_WHY_IDLE_H
#define WAFFLE_ANALYZE_WHY_PARTS_WHY_IDLE_H

#include "analyze/why/why_types.h"

/* What takes less than this part of the time, without what the capture itself took, comes before
 * neither idle time nor the capture. */
#define WHY_IDLE_PARTS 20

/* The time of a cause, which lists are sorted by. */
struct why_idle_time {
	enum why_cause cause;
	bool idle, capture;
	uint64_t ns;
};

struct why_idle_order {
	uint64_t least_ns; /* the least time that comes before others */
	bool any_idle;
};

static inline struct why_idle_order why_idle_order(bool any_idle, uint64_t whole_ns,
						   uint64_t capture_ns)
{
	return (struct why_idle_order){(whole_ns - capture_ns) / WHY_IDLE_PARTS, any_idle};
}

/* The lowest rank comes first. A thread that is mostly idle may well wait for a CPU now and then.
 */
static inline unsigned why_idle_rank(const struct why_idle_time *time,
				     const struct why_idle_order *order)
{
	if (time->capture || time->ns < order->least_ns)
		return 2;
	return time->idle || !order->any_idle || time->cause == WHY_UNKNOWN ||
	       time->cause == WHY_CPU_CONTENTION;
}

/* The order of lists of causes: what delays comes before idle time, both before the capture itself,
 * then the longer one first. 0: that does not decide. */
static inline int why_idle_compare(const struct why_idle_time *a, const struct why_idle_time *b,
				   const struct why_idle_order *order)
{
	unsigned rank = why_idle_rank(a, order), other = why_idle_rank(b, order);

	if (rank != other)
		return rank < other ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->cause < b->cause ? -1 : a->cause > b->cause;
}

#endif
