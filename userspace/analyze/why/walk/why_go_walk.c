// SPDX-License-Identifier: Apache-2.0
/* Explains the time of a Go program as a whole, by the thread that explains it at each moment. */
#include "analyze/why/walk/why_go_walk_internal.h"

#include "analyze/why/lookup/why_go_program.h"
#include "analyze/why/walk/why_walk.h"
#include "analyze/why/why_walk_types.h"

void why_walk_program(struct why_walk *walk, struct why_instance *instance)
{
	uint64_t from = instance->from_ts, at = from;
	uint32_t thread = MODEL_NONE;
	struct why_program program;
	struct why_program_part part;

	why_program_open(&program, walk, walk->model->threads.data[instance->thread].pid, from);
	for (; at < instance->to_ts; at = part.until) {
		part = why_program_at(&program, at, instance->to_ts);
		if (part.thread == MODEL_NONE)
			part.thread = instance->thread;
		if (part.thread == thread)
			continue;
		if (from < at)
			why_walk_time(walk, thread, from, at, NULL);
		from = at;
		thread = part.thread;
	}
	if (from < at)
		why_walk_time(walk, thread, from, at, NULL);
}
