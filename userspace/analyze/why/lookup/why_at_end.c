// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_at_end.h"

#include <string.h>

/* So many frames may be between a system call and Java; a wait for a monitor has about ten. */
#define FRAMES_MAX 24

/* The frames of a stack up to the innermost one of Java. */
struct native_frames {
	struct stack_frame frames[FRAMES_MAX];
	uint32_t count;
	bool complete; /* the last one is of Java */
};

static void frame_add(const struct stack_frame *frame, void *arg)
{
	struct native_frames *native = arg;

	if (native->complete || native->count == FRAMES_MAX || frame->cut)
		return;
	native->frames[native->count++] = *frame;
	native->complete = stack_frame_is_java(frame);
}

static bool text_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* A function without a name is known by its place. Of a method that is interpreted, the stack of an
 * earlier wait says only that. */
static bool frame_same(const struct stack_frame *a, const struct stack_frame *b)
{
	if (stack_frame_is_java(a) && stack_frame_is_java(b) &&
	    !(stack_frame_is_java_method(a) && stack_frame_is_java_method(b)))
		return true;
	return text_same(a->function, b->function) && text_same(a->module, b->module) &&
	       (a->function || a->offset == b->offset);
}

static bool stacks_same(struct stack_names *names, const struct model_wait *wait,
			const struct model_open_wait *open)
{
	struct native_frames before = {.count = 0}, at_end = {.count = 0};

	stack_names_each(names, wait->user_stack, wait->from_ts, frame_add, &before);
	stack_names_each(names, open->user_stack, open->ts, frame_add, &at_end);
	if (!before.complete || !at_end.complete || before.count != at_end.count)
		return false;
	for (uint32_t i = 0; i < before.count; i++)
		if (!frame_same(&before.frames[i], &at_end.frames[i]))
			return false;
	return true;
}

/* The system call of a wait; its own interval may not be kept: then -1. */
static int16_t syscall_of(const struct why_walk *walk, const struct model_wait *wait)
{
	const struct why_thread *of = &walk->intervals.threads[wait->thread];
	size_t index = why_intervals_after(&walk->intervals, wait->thread, wait->from_ts);

	return index < of->intervals.len && of->intervals.data[index].from_ts == wait->from_ts
		       ? of->intervals.data[index].syscall
		       : -1;
}

uint32_t why_wait_at_end(const struct why_walk *walk, uint32_t wait, bool timed)
{
	const struct model *model = walk->model;
	const struct model_wait *before;
	const struct model_open_wait *open;

	if (wait >= model->waits.len)
		return MODEL_NONE;
	before = &model->waits.data[wait];
	open = model_open_wait_of(model, before->thread);
	if (!before->user_stack || !open || !open->user_stack ||
	    !stack_names_has_jvm(walk->names, model->threads.data[before->thread].pid) ||
	    (timed && open->flags & WAFFLE_OPEN_WAIT_INSIDE) || open->syscall < 0 ||
	    syscall_of(walk, before) != open->syscall || !stacks_same(walk->names, before, open))
		return MODEL_NONE;
	return (uint32_t)(open - model->open_waits.data);
}
