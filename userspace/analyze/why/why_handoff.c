// SPDX-License-Identifier: Apache-2.0
/* Spans that begin on one thread and end on another. */
#include "analyze/why/why_parts_internal.h"

/* The last time in the span that its own thread woke the thread that ended it; 0: never. */
static uint64_t handed_over_at(const struct why_walk *walk, const struct why_instance *instance)
{
	uint32_t waker = instance->ended_by;
	const struct why_thread *of = &walk->intervals.threads[waker];
	size_t i = instance->to_ts
			   ? why_intervals_after(&walk->intervals, waker, instance->to_ts - 1)
			   : 0;

	while (i-- && of->intervals.data[i].to_ts > instance->from_ts) {
		struct why_waker by;

		walk->why->searched++;
		if (of->intervals.data[i].state != WAFFLE_THREAD_BLOCKED)
			continue;
		by = why_waker_of(walk, waker, i);
		if (by.thread == instance->thread && !by.interrupt)
			return of->intervals.data[i].to_ts;
	}
	return 0;
}

/*
 * The thread that ended the span did what the span waited for at its end. If the span's own thread
 * woke that thread, the other one explains the time from then on. Otherwise the own thread explains
 * all of it.
 */
void why_walk_handed_over(struct why_walk *walk, struct why_instance *instance)
{
	const struct why_link link = {WAIT_OTHER, WHY_GRADE_LIKELY, 0, instance->from_ts,
				      instance->to_ts};
	uint64_t at = handed_over_at(walk, instance);
	uint64_t until = at ? at : instance->to_ts;
	struct why_step *step;

	why_walk_time(walk, instance->thread, instance->from_ts, until, NULL);
	if (until == instance->to_ts)
		return;
	why_walk_count_states(walk, instance->thread, at, instance->to_ts);
	walk->interval = NULL;
	step = why_walk_push(walk, instance->thread, 0, at, instance->to_ts);
	step->by = instance->ended_by;
	step->handed = true;
	why_walk_time(walk, instance->ended_by, at, instance->to_ts, &link);
	walk->depth--;
}
