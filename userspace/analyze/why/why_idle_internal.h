/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle time of event loops, and of runtimes whose threads have nothing to run (why_go_idle.c). A
 * thread that calls epoll_wait() outside of all spans waits for whatever comes next. If its timeout
 * expires, nothing came, so that this time delayed nothing. A call that blocks the loop meanwhile
 * delays all its other work, even if it takes far less time. So the time of what delays comes
 * before idle time, in all lists of causes.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_IDLE_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_IDLE_INTERNAL_H

#include "analyze/why/why_types.h"

/* What takes less than this part of the time does not come before idle time. */
#define WHY_IDLE_PARTS 20

/* The time of a cause, which lists are sorted by. */
struct why_idle_time {
	enum why_cause cause;
	bool idle;
	uint64_t ns;
};

/* The least time that comes before idle time, in a list for `whole_ns`; with no idle time in it,
 * none does. */
static inline uint64_t why_idle_least_ns(bool any_idle, uint64_t whole_ns)
{
	return any_idle ? whole_ns / WHY_IDLE_PARTS : UINT64_MAX;
}

/* Whether the time of a cause comes before idle time. A thread that is mostly idle may well wait
 * for a CPU now and then. */
static inline bool why_idle_is_delay(const struct why_idle_time *time, uint64_t least_ns)
{
	return !time->idle && time->ns >= least_ns && time->cause != WHY_UNKNOWN &&
	       time->cause != WHY_CPU_CONTENTION;
}

/* The order of lists of causes: what delays comes before idle time, then the longer one first. 0:
 * that does not decide. */
static inline int why_idle_compare(const struct why_idle_time *a, const struct why_idle_time *b,
				   uint64_t least_ns)
{
	bool delays = why_idle_is_delay(a, least_ns);

	if (delays != why_idle_is_delay(b, least_ns))
		return delays ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->cause < b->cause ? -1 : a->cause > b->cause;
}

#endif
