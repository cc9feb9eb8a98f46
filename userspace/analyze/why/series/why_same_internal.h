/* SPDX-License-Identifier: Apache-2.0 */
/* Whether intervals of a thread are waits for the same thing, or belong to such a wait. */
#ifndef WAFFLE_ANALYZE_WHY_SERIES_WHY_SAME_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_SERIES_WHY_SAME_INTERNAL_H

#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_walk_types.h"

/* The arguments of an interval's system call; NULL: unknown. */
const uint64_t *why_args_of(const struct why_walk *walk, const struct why_interval *interval);
/* Whether both intervals of a thread are waits for the same thing. */
bool why_is_same(const struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		 const struct why_interval *a, const struct why_interval *b);
/* Whether `next` is a stop in the middle of a wait, or a freeze of the thread in its call. */
bool why_is_halt(const struct why_walk *walk, const struct why_interval *wait,
		 const struct why_interval *next);
/* Whether an interval is a wait for a lock that the thread must take before it can check again: the
 * mutex of a condition variable, or Python's lock. */
bool why_is_check_lock(const struct why_walk *walk, uint32_t thread,
		       const struct why_interval *interval);

#endif
