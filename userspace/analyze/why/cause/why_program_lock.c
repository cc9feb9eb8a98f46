// SPDX-License-Identifier: Apache-2.0
/* Waits for locks that a program has made itself. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <string.h>

#include "analyze/why/lookup/why_lock_names.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"

static uint32_t text_of(struct why_walk *walk, uint32_t pid, uint32_t stack, uint64_t ts,
			bool waker)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t count =
		stack_names_functions(walk->names, stack, ts, functions, STACK_NAMES_FUNCTIONS);
	const char *text =
		waker ? why_lock_released(functions, count) : why_lock_awaited(functions, count);

	if (!text && !waker && stack_names_has_jvm(walk->names, pid))
		text = why_lock_of_java(functions, count);
	return text ? strtab_put(walk->why->texts, text, strlen(text)) : 0;
}

/* Many waits have the same stack, which may be a waker's as well. */
static uint32_t lock_by_stack(struct why_walk *walk, uint32_t pid, uint32_t stack, uint64_t ts,
			      bool waker)
{
	uint64_t key = (uint64_t)stack << 1 | waker;
	uint32_t text;

	if (!stack)
		return 0;
	text = map_get(&walk->program_locks, key);
	if (text == MAP_NONE) {
		text = text_of(walk, pid, stack, ts, waker);
		map_put(&walk->program_locks, key, text);
	}
	return text;
}

/* Only some of many waits have a stack. If at least so many of a thread's waits for one object have
 * one, and all show the same lock, the others are for that lock as well. */
#define VOTES_MIN 3

static uint64_t votes_key(uint32_t thread, uint32_t object)
{
	return (uint64_t)thread << 32 | object;
}

static void vote(struct why_walk *walk, const struct model_wait *wait)
{
	uint32_t pid = walk->model->threads.data[wait->thread].pid;
	uint32_t lock = lock_by_stack(walk, pid, wait->user_stack, wait->from_ts, false);
	uint64_t key = votes_key(wait->thread, wait->object);
	uint32_t at = map_get(&walk->locks_at, key);

	if (at == MAP_NONE) {
		at = (uint32_t)walk->lock_votes.len;
		map_put(&walk->locks_at, key, at);
		vec_add(&walk->lock_votes, (struct why_lock_votes){.lock = lock});
	}
	walk->lock_votes.data[at].count++;
	if (walk->lock_votes.data[at].lock != lock)
		walk->lock_votes.data[at].lock = 0;
}

/* Counts the votes of a thread once. */
static void find_votes(struct why_walk *walk, uint32_t thread)
{
	const struct model_wait *waits = walk->model->waits.data;
	size_t count = walk->model->waits.len;

	if (map_get(&walk->locks_at, votes_key(thread, 0)) != MAP_NONE)
		return;
	map_put(&walk->locks_at, votes_key(thread, 0), 0);
	for (size_t i = lower_bound(count, k, waits[k].thread < thread);
	     i < count && waits[i].thread == thread; i++) {
		walk->why->searched++;
		if (waits[i].object && waits[i].user_stack)
			vote(walk, &waits[i]);
	}
}

/* The lock that the waits of a thread for an object are for, as far as their stacks show. */
static uint32_t lock_by_votes(struct why_walk *walk, const struct model_wait *wait)
{
	uint32_t at;

	if (!wait || !wait->object)
		return 0;
	find_votes(walk, wait->thread);
	at = map_get(&walk->locks_at, votes_key(wait->thread, wait->object));
	return at != MAP_NONE && walk->lock_votes.data[at].count >= VOTES_MIN
		       ? walk->lock_votes.data[at].lock
		       : 0;
}

/* Limit of the intervals to examine. */
#define NEXT_MAX 64

/* The stack of a wait that began before the capture is not known. If the thread's next wait is in
 * the same call for the same thing, it is most likely in the same functions. Returns that one or
 * NULL. */
static const struct model_wait *next_like(const struct why_walk *walk,
					  const struct why_blocked *blocked)
{
	const struct why_thread *of = &walk->intervals.threads[blocked->thread];
	const uint64_t *args = walk->model->syscall_args.data;
	size_t next = blocked->index + 1, count = walk->model->syscall_args.len;
	const struct why_interval *interval;

	if (blocked->index || blocked->interval->args >= count)
		return NULL;
	while (next < of->intervals.len && next < NEXT_MAX &&
	       of->intervals.data[next].state != WAFFLE_THREAD_BLOCKED)
		next++;
	if (next == of->intervals.len)
		return NULL;
	interval = &of->intervals.data[next];
	if (interval->syscall != blocked->interval->syscall || interval->args >= count ||
	    args[interval->args] != args[blocked->interval->args])
		return NULL;
	return model_wait_at(walk->model, blocked->thread, interval->from_ts);
}

uint32_t why_program_lock(struct why_walk *walk, const struct why_blocked *blocked)
{
	bool wakes = blocked->kind == WAIT_POLL || blocked->kind == WAIT_FUTEX;
	const struct model_wake *wake;
	uint32_t pid = walk->model->threads.data[blocked->thread].pid, released = 0;
	const struct model_wait *wait = blocked->wait ?: (wakes ? next_like(walk, blocked) : NULL);

	if (!walk->names || (!wakes && blocked->kind != WAIT_SLEEP))
		return 0;
	if (wait && wait->user_stack)
		return lock_by_stack(walk, pid, wait->user_stack, wait->from_ts, false);
	wake = wakes && !blocked->interval->open
		       ? model_wake_at(walk->model, blocked->thread, blocked->interval->to_ts)
		       : NULL;
	if (wake && wake->user_stack && !(wake->flags & WAFFLE_SWITCH_WAKER_INTERRUPT)) {
		released = lock_by_stack(walk, pid, wake->user_stack, wake->ts, true);
		if (!released)
			return 0;
	}
	/* Who waits knows more of the lock than who releases it. */
	return (blocked->kind == WAIT_POLL ? lock_by_votes(walk, blocked->wait) : 0) ?: released;
}
