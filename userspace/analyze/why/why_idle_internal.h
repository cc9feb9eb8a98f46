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

static inline uint64_t why_idle_delay_ns(uint64_t whole_ns)
{
	return whole_ns / WHY_IDLE_PARTS;
}

/* Whether the time of a cause comes before idle time. A thread that is mostly idle may well wait
 * for a CPU now and then. `least_ns` is that of why_idle_delay_ns(), or UINT64_MAX if there is no
 * idle time. */
static inline bool why_idle_is_delay(enum why_cause cause, bool idle, uint64_t ns,
				     uint64_t least_ns)
{
	return !idle && ns >= least_ns && cause != WHY_UNKNOWN && cause != WHY_CPU_CONTENTION;
}

#endif
