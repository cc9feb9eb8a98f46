/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the time of threads by cause, and follows their waits to other threads. */
#ifndef WAFFLE_ANALYZE_WHY_WALK_WHY_WALK_H
#define WAFFLE_ANALYZE_WHY_WALK_WHY_WALK_H

#include "analyze/why/why_walk_types.h"

/*
 * Makes a walk ready for its first instance: finds the evidence, the answers to Go programs, and
 * what calls of GPUs and ranks wait for. `like` is a walk of the same model that is ready: their
 * indexes are shared, so it must outlive this one, which then knows nothing of GPUs and ranks.
 * NULL: there is none. `timeline` as in why_await_init().
 */
void why_walk_prepare(struct why_walk *walk, const struct why_walk *like,
		      const struct gpu_timeline *timeline);
void why_walk_free(struct why_walk *walk);
/* Explains a thread's time from `from` to `to`, and adds it to the sums of walk->instance. The time
 * explains the wait of `link`. NULL: the thread is the instance's own. */
void why_walk_time(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
		   const struct why_link *link);

/* Adds the states of a thread from `from` to `to` to the instance's totals, if the path is empty:
 * then the thread is the instance's own. Returns the state that took most of the time. */
unsigned why_walk_count_states(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to);

#endif
