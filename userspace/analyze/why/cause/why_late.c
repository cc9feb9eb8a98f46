// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/cause/why_late.h"

#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/parts/why_sums.h"

/* Whether two waits are in the same call with the same first argument, such as a descriptor. */
static bool are_alike(const struct why_walk *walk, const struct why_interval *a,
		      const struct why_interval *b)
{
	const struct model *model = walk->model;

	return a->syscall == b->syscall && a->args < model->syscall_args.len &&
	       b->args < model->syscall_args.len &&
	       model->syscall_args.data[a->args] == model->syscall_args.data[b->args];
}

/* The thread's wait before the stretch, if it runs once after the stretch and then waits alike.
 * Sets *index to that of the wait. NULL: it is not so. */
static const struct why_interval *wait_around(const struct why_walk *walk,
					      const struct why_stretch *stretch, size_t *index)
{
	const struct why_thread *of = &walk->intervals.threads[stretch->thread];
	const struct why_interval *before, *run, *after;

	if (!stretch->index || stretch->index + 2 >= of->intervals.len)
		return NULL;
	*index = stretch->index - 1;
	before = &of->intervals.data[stretch->index - 1];
	run = &of->intervals.data[stretch->index + 1];
	after = &of->intervals.data[stretch->index + 2];
	if (!stretch->interval->woken || before->to_ts != stretch->interval->from_ts ||
	    run->from_ts != stretch->interval->to_ts || after->from_ts != run->to_ts ||
	    before->state != WAFFLE_THREAD_BLOCKED || run->state != WAFFLE_THREAD_RUNNING ||
	    after->state != WAFFLE_THREAD_BLOCKED)
		return NULL;
	return are_alike(walk, before, after) ? before : NULL;
}

/* Whether a reader waits for something to read. While it reads a file, or another pipe than the one
 * of the writer, it works. */
static bool is_for_data(const struct wait_facts *reader, const struct wait_facts *writer)
{
	enum wait_kind kind = wait_kind_of(reader);

	if (!wait_call_gets_data(reader->call) || kind == WAIT_FILE_READ)
		return false;
	return kind != WAIT_PIPE || wait_kind_of(writer) != WAIT_PIPE || !reader->object ||
	       !writer->object || !strcmp(reader->object->name, writer->object->name);
}

/* Limit of the intervals of a reader to look at. */
#define READER_STEPS 64

/* Whether a reader waits for something to read while the thread of a stretch is late. */
static bool waits_for_data(struct why_walk *walk, uint32_t reader,
			   const struct why_stretch *stretch, const struct wait_facts *writer)
{
	const struct why_thread *of = &walk->intervals.threads[reader];
	size_t first = why_intervals_after(&walk->intervals, reader, stretch->interval->from_ts);

	for (size_t i = first; i < of->intervals.len && i - first < READER_STEPS &&
			       of->intervals.data[i].from_ts < stretch->interval->to_ts;
	     i++) {
		const struct model_wait *wait;
		struct wait_facts facts;

		walk->why->searched++;
		if (of->intervals.data[i].state != WAFFLE_THREAD_BLOCKED)
			continue;
		facts = why_facts_of(walk, reader, &of->intervals.data[i], &wait);
		if (is_for_data(&facts, writer))
			return true;
	}
	return false;
}

struct why_verdict why_late_for_room(struct why_walk *walk, const struct why_stretch *stretch)
{
	const struct why_interval *interval;
	const struct model_wait *wait;
	struct wait_facts facts;
	struct why_waker waker;
	enum wait_kind kind;
	uint32_t object;
	size_t index;

	interval = wait_around(walk, stretch, &index);
	if (!interval)
		return WHY_UNDECIDED;
	facts = why_facts_of(walk, stretch->thread, interval, &wait);
	kind = wait_kind_of(&facts);
	waker = why_waker_of(walk, stretch->thread, index);
	if (!wait_is_for_room(&facts, kind) || waker.interrupt ||
	    !model_is_traced(walk->model, waker.thread) || walk->depth >= WHY_DEPTH_MAX ||
	    why_walk_is_on_path(walk, waker.thread) ||
	    waits_for_data(walk, waker.thread, stretch, &facts))
		return WHY_UNDECIDED;
	object = wait_object_text(walk->why->texts, &facts, kind);
	return (struct why_verdict){
		.kind = WHY_VERDICT_FOLLOW,
		.thread = waker.thread,
		.link = {.kind = kind,
			 .grade = why_grade_least(stretch->grade, WHY_GRADE_LIKELY),
			 .object = object,
			 .from_ts = interval->from_ts,
			 .until_ts = stretch->interval->to_ts},
	};
}
