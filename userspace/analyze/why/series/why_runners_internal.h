/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which threads may have done what a thread waited for after it was woken: they ran before it could
 * check.
 */
#ifndef WAFFLE_ANALYZE_WHY_SERIES_WHY_RUNNERS_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_SERIES_WHY_RUNNERS_INTERNAL_H

#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_walk_types.h"

/* A thread that only checks whether its wait is over, and then continues to wait, runs no longer
 * than this. */
#define WHY_CHECK_NS 100000u
/* Limit of the intervals to search for the next wait. */
#define WHY_LOOK_AHEAD 1024

/* The traced threads that may have done what a thread waited for. For a futex these are the threads
 * of its process, as we assume that other processes do not map it. */
struct why_runners {
	uint32_t thread, pid; /* who waited; pid 0: threads of all processes */
	size_t first, at;     /* places in walk->traced */
	bool cut;             /* there are more than we check */
};

struct why_runners why_runners_of(const struct why_walk *walk, const struct why_waiting *waiting,
				  uint32_t thread);
/* The next of them that may have run in a time; MODEL_NONE: no more. */
uint32_t why_runner_next(const struct why_walk *walk, struct why_runners *runners, uint64_t from,
			 uint64_t until);
/* When the thread could check after the wait of an interval: when it had a CPU and the lock that it
 * needs. 0: not known. */
uint64_t why_checks_at(const struct why_walk *walk, uint32_t thread, size_t index);

#endif
