// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/series/why_runners_internal.h"

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/series/why_same_internal.h"
#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_walk_types.h"

uint64_t why_checks_at(const struct why_walk *walk, uint32_t thread, size_t index)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	size_t last = index;

	for (size_t i = index + 1; i < of->intervals.len && i - index < WHY_LOOK_AHEAD; i++) {
		const struct why_interval *next = &of->intervals.data[i];

		if (next->state == WAFFLE_THREAD_RUNNING &&
		    next->to_ts - next->from_ts > WHY_CHECK_NS)
			break;
		if (next->state != WAFFLE_THREAD_BLOCKED)
			continue;
		if (!why_is_check_lock(walk, thread, next))
			break;
		last = i;
		if (i - index == WHY_LOOK_AHEAD - 1)
			return 0;
	}
	return why_switched_in(walk, thread, last);
}

/* Limit of the intervals to search for one in which the thread runs. */
#define RUNS_WITHIN 64

/* Whether the thread may have run in that time. */
static bool runs_within(const struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	size_t first = why_intervals_after(&walk->intervals, thread, from);

	for (size_t i = first; i < of->intervals.len && of->intervals.data[i].from_ts <= to; i++) {
		walk->why->searched++;
		if (of->intervals.data[i].state == WAFFLE_THREAD_RUNNING ||
		    i - first == RUNS_WITHIN)
			return true;
	}
	return false;
}

/* Limit of the other traced threads that are checked; beyond it nothing is certain. */
#define THREADS_MAX 256

struct why_runners why_runners_of(const struct why_walk *walk, const struct why_waiting *waiting,
				  uint32_t thread)
{
	struct why_runners runners = {.thread = thread};

	if (waiting->kind == WAIT_FUTEX) {
		runners.pid = walk->model->threads.data[thread].pid;
		runners.first = why_traced_of(walk, runners.pid);
	}
	runners.at = runners.first;
	return runners;
}

uint32_t why_runner_next(const struct why_walk *walk, struct why_runners *runners, uint64_t from,
			 uint64_t until)
{
	while (runners->at < walk->traced.len) {
		uint32_t other = walk->traced.data[runners->at];

		if (runners->pid && walk->model->threads.data[other].pid != runners->pid)
			break;
		runners->cut = runners->at - runners->first >= THREADS_MAX;
		if (runners->cut)
			break;
		runners->at++;
		if (other != runners->thread && runs_within(walk, other, from, until))
			return other;
	}
	return MODEL_NONE;
}
