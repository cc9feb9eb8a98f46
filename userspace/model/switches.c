// SPDX-License-Identifier: Apache-2.0
/* Switches and states. Converts tids to threads, sorts by time, and keeps each wake-up between the
 * switches that it belongs to. */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "model/captures_internal.h"
#include "model/order.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/search.h"

static int16_t syscall_number(int32_t number)
{
	return number >= 0 && number <= INT16_MAX ? (int16_t)number : -1;
}

/* Stores the arguments of a system call. Returns the index of the first; MODEL_NONE: there are
 * none, or no index is left for them. */
static uint32_t args_add(struct builder *builder, int32_t syscall, const uint64_t *args)
{
	struct model *model = builder->model;
	size_t at = model->syscall_args.len;
	uint64_t hash = 0;
	uint32_t *known;

	if (syscall < 0)
		return MODEL_NONE;
	for (unsigned i = 0; i < WAFFLE_SYSCALL_ARGS; i++)
		hash = hash_number(hash ^ hash >> 32 ^ args[i]);
	known = &builder->args.at[hash >> (64 - ARGS_CACHE_BITS)];
	if (*known && !memcmp(&model->syscall_args.data[*known - 1], args,
			      WAFFLE_SYSCALL_ARGS * sizeof(*args)))
		return *known - 1;
	if (at >= MODEL_NONE - WAFFLE_SYSCALL_ARGS)
		return MODEL_NONE;
	for (unsigned i = 0; i < WAFFLE_SYSCALL_ARGS; i++)
		vec_add(&model->syscall_args, args[i]);
	*known = (uint32_t)at + 1;
	return (uint32_t)at;
}

/* The thread of a tid in a switch. MODEL_NONE for tid 0, which is the CPU's idle task. */
static uint32_t side_thread(struct builder *builder, uint32_t tid, uint64_t ts, bool traced)
{
	uint32_t index = tid ? threads_at(builder, tid, ts) : MODEL_NONE;

	if (traced && tid)
		builder->model->threads.data[index].traced = true;
	return index;
}

static bool leaves_for_good(const struct waffle_rec_switch *rec)
{
	return !(rec->flags & WAFFLE_SWITCH_PREEMPTED) &&
	       (rec->prev_state & (WAFFLE_TASK_DEAD | WAFFLE_TASK_ZOMBIE));
}

void switches_add(struct builder *builder, const struct waffle_rec_switch *rec)
{
	struct model *model = builder->model;
	struct model_switch to = {
		.ts = rec->rec.ts,
		.cpu = rec->rec.cpu,
		.prev_state = rec->prev_state,
		.flags = rec->flags,
		.syscall = -1,
		.args = MODEL_NONE,
		.waker = MODEL_NONE,
	};
	uint64_t wake_ts = rec->wake_ts < to.ts ? rec->wake_ts : to.ts;

	to.prev = side_thread(builder, rec->rec.tid, to.ts, to.flags & WAFFLE_SWITCH_PREV_TRACED);
	to.next = side_thread(builder, rec->next_tid, to.ts, to.flags & WAFFLE_SWITCH_NEXT_TRACED);
	if (to.flags & WAFFLE_SWITCH_WOKEN) {
		to.wake_ts = wake_ts;
		to.waker = side_thread(builder, rec->waker_tid, wake_ts, false);
	}
	if (to.prev != MODEL_NONE && leaves_for_good(rec)) {
		builder->threads.data[to.prev].closed_ts = to.ts;
		model->threads.data[to.prev].gone = true;
	} else if (!(to.flags & WAFFLE_SWITCH_PREEMPTED)) {
		to.syscall = syscall_number(rec->syscall);
		to.args = args_add(builder, to.syscall, (const uint64_t *)rec->args);
	}
	vec_add(&model->switches, to);
}

void switches_add_state(struct builder *builder, const struct waffle_rec_state *rec)
{
	struct model *model = builder->model;
	struct model_state to = {
		.ts = rec->rec.ts,
		.state = (uint8_t)rec->state,
		.at_end = rec->at_end != 0,
		.cpu = rec->rec.cpu,
		.task_state = rec->task_state,
		.syscall = syscall_number(rec->syscall),
		.args = MODEL_NONE,
		.exec_ns = rec->exec_ns,
		.run_delay_ns = rec->run_delay_ns,
	};

	if (!rec->rec.tid || rec->state < WAFFLE_THREAD_RUNNING ||
	    rec->state > WAFFLE_THREAD_BLOCKED) {
		model->bad_records++;
		return;
	}
	to.thread = threads_at(builder, rec->rec.tid, to.ts);
	model->threads.data[to.thread].traced = true;
	if (rec->tgid)
		model->threads.data[to.thread].pid = rec->tgid;
	to.args = args_add(builder, to.syscall, (const uint64_t *)rec->args);
	vec_add(&model->states, to);
}

/* A thread can be woken before it has left its CPU. Moves such a wake-up to the switch-out. */
static void clamp_wakes(struct model *model)
{
	uint64_t *out_ts = memory_zeroed(model->threads.len, sizeof(*out_ts));

	for (size_t i = 0; i < model->switches.len; i++) {
		struct model_switch *sw = &model->switches.data[i];

		if (sw->prev != MODEL_NONE)
			out_ts[sw->prev] = sw->ts;
		if (sw->next != MODEL_NONE && sw->flags & WAFFLE_SWITCH_WOKEN &&
		    sw->wake_ts < out_ts[sw->next])
			sw->wake_ts = out_ts[sw->next];
	}
	free(out_ts);
}

/* Two records of one switch are no further apart: the kernel runs both BPF programs one after the
 * other. */
#define SAME_SWITCH_NS 1000000

static bool is_same_switch(const struct model_switch *a, const struct model_switch *b)
{
	const unsigned sides = WAFFLE_SWITCH_PREV_TRACED | WAFFLE_SWITCH_NEXT_TRACED;

	return a->prev == b->prev && a->next == b->next && !(a->flags & b->flags & sides) &&
	       b->ts - a->ts < SAME_SWITCH_NS;
}

/* What a capture says of a thread that it traced. */
static void take_prev(struct model_switch *to, const struct model_switch *from)
{
	const uint8_t flags = WAFFLE_SWITCH_PREV_TRACED | WAFFLE_SWITCH_PREEMPTED;

	to->prev_state = from->prev_state;
	to->syscall = from->syscall;
	to->args = from->args;
	to->flags = (uint8_t)((to->flags & ~flags) | (from->flags & flags));
}

static void take_next(struct model_switch *to, const struct model_switch *from)
{
	const uint8_t flags = WAFFLE_SWITCH_PREV_TRACED | WAFFLE_SWITCH_PREEMPTED;

	to->wake_ts = from->wake_ts;
	to->waker = from->waker;
	to->flags = (uint8_t)((to->flags & flags) | (from->flags & ~flags));
}

/* The details of a wait refer to the times of its capture's switches. */
static void wait_moves(struct model *model, uint32_t thread, uint64_t from, uint64_t to)
{
	struct model_wait *waits = model->waits.data;
	size_t next = lower_bound(model->waits.len, i,
				  waits[i].thread < thread ||
					  (waits[i].thread == thread && waits[i].from_ts < from));

	if (next < model->waits.len && waits[next].thread == thread && waits[next].from_ts == from)
		waits[next].from_ts = to;
	else if (next && waits[next - 1].thread == thread && waits[next - 1].to_ts == from)
		waits[next - 1].to_ts = to;
}

/*
 * Several captures of one boot record a switch between two of their processes twice, one after the
 * other. The first record has the time that is nearest to the switch itself. The capture that
 * traced a thread knows more about that thread's side of the switch.
 */
static void join_switch(struct model *model, struct model_switch *to,
			const struct model_switch *from)
{
	if (from->flags & WAFFLE_SWITCH_PREV_TRACED) {
		take_prev(to, from);
		wait_moves(model, from->prev, from->ts, to->ts);
	}
	if (from->flags & WAFFLE_SWITCH_NEXT_TRACED) {
		take_next(to, from);
		wait_moves(model, from->next, from->ts, to->ts);
	}
}

static void switches_join(struct model *model)
{
	uint32_t *last = memory_get((UINT16_MAX + 1) * sizeof(*last)); /* by CPU */
	struct model_switch *all = model->switches.data;
	size_t kept = 0;

	for (size_t i = 0; i <= UINT16_MAX; i++)
		last[i] = MODEL_NONE;
	for (size_t i = 0; i < model->switches.len; i++) {
		uint32_t *before = &last[all[i].cpu];

		if (*before != MODEL_NONE && is_same_switch(&all[*before], &all[i])) {
			join_switch(model, &all[*before], &all[i]);
			continue;
		}
		*before = (uint32_t)kept;
		all[kept++] = all[i];
	}
	model->switches.len = kept;
	free(last);
}

void switches_finish(struct model *model)
{
	free(order_vec(&model->switches, ts));
	free(order_vec(&model->states, ts));
	if (model->recorded.len) {
		captures_find_sched(model);
		switches_join(model);
	}
	clamp_wakes(model);
}
