// SPDX-License-Identifier: Apache-2.0
/* Explains the time of a Go program as a whole, by the thread that explains it at each moment. */
#include "analyze/why/walk/why_go_walk_internal.h"

#include "analyze/why/cause/why_blocked.h"
#include "analyze/why/lookup/why_go_program.h"
#include "analyze/why/walk/why_walk.h"
#include "analyze/why/why_walk_types.h"

static void explain(struct why_walk *walk, const struct why_program_part *part, uint64_t from,
		    uint64_t to)
{
	walk->unsure = part->unsure;
	if (from < to)
		why_walk_time(walk, part->thread, from, to, NULL);
	walk->unsure = false;
}

void why_walk_program(struct why_walk *walk, struct why_instance *instance)
{
	uint32_t pid = walk->model->threads.data[instance->thread].pid;
	struct why_program_part part, last = {.thread = MODEL_NONE};
	uint64_t from = instance->from_ts, at = from;
	struct why_program program;

	why_program_open(&program, walk, pid, from, instance->to_ts);
	for (; at < instance->to_ts; at = part.until) {
		part = why_program_at(&program, at, instance->to_ts);
		if (part.thread == MODEL_NONE)
			part.thread = instance->thread;
		if (part.thread == last.thread && part.unsure == last.unsure)
			continue;
		explain(walk, &last, from, at);
		from = at;
		last = part;
	}
	explain(walk, &last, from, at);
	why_go_doubt(walk, instance);
}
