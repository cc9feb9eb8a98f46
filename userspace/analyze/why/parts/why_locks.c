// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/parts/why_locks.h"

#include <stdlib.h>

#include "target/process/descriptors.h"
#include "util/memory.h"

/* The step that waits for the first lock of the chain; NULL: none does. */
static const struct why_step *step_awaiting(const struct why_walk *walk)
{
	for (uint32_t i = 0; i < walk->depth; i++)
		if (walk->path[i].lock)
			return &walk->path[i];
	return NULL;
}

static struct why_lock_time *time_of(struct why_walk *walk, uint32_t lock)
{
	uint32_t i = 0;

	while (i < walk->lock_count && walk->locks[i].lock != lock)
		i++;
	if (i == WHY_LOCKS_MAX)
		return NULL;
	if (i == walk->lock_count)
		walk->locks[walk->lock_count++] = (struct why_lock_time){.lock = lock};
	return &walk->locks[i];
}

/* The next step of the chain, if it is of the thread that ended the wait of this one; else NULL. */
static const struct why_step *step_of_waker(const struct why_walk *walk,
					    const struct why_step *step)
{
	const struct why_step *next = step + 1;

	return next < &walk->path[walk->depth] && next->thread == step->by ? next : NULL;
}

/* Who waits for a lock may itself hold another one: the last holder holds up all of them. */
static void holder_add(const struct why_walk *walk, struct why_lock_time *time,
		       const struct why_step *step, uint64_t ns)
{
	const struct why_step *next = step_of_waker(walk, step);

	while (next && next->lock) {
		step = next;
		next = step_of_waker(walk, step);
	}
	why_vote_add(&time->holder, step->by, ns);
	if (!next)
		return;
	why_vote_add(&time->awaited, next->by, ns);
	if (descriptor_is_socket(strtab_get(walk->why->texts, next->object)))
		time->socket_ns += ns;
}

static void stack_add(const struct why_walk *walk, struct why_lock_time *time,
		      const struct why_step *step, uint64_t ns)
{
	uint32_t stack = step->wait < walk->model->waits.len
				 ? walk->model->waits.data[step->wait].user_stack
				 : 0;

	if (!stack)
		return;
	why_vote_add(&time->stack, stack, ns);
	if (time->stack.choice == stack)
		time->wait = step->wait;
}

void why_locks_add(struct why_walk *walk, const struct why_verdict *verdict, uint64_t ns)
{
	const struct why_step *step = step_awaiting(walk);
	uint32_t own = why_is_lock(verdict->cause) ? verdict->object : 0;
	uint32_t lock = step ? step->lock : own;
	struct why_lock_time *time = lock ? time_of(walk, lock) : NULL;

	if (!time)
		return;
	time->ns += ns;
	if (step)
		holder_add(walk, time, step, ns);
	else
		why_vote_add(&time->holder, verdict->thread, ns);
	stack_add(walk, time, step ?: &walk->path[walk->depth - 1], ns);
}

static int by_time(const void *left, const void *right)
{
	const struct why_lock_time *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->lock < b->lock ? -1 : a->lock > b->lock;
}

static void require_half(struct why_vote *vote, uint64_t ns)
{
	if (!vote->ns || vote->ns < ns / 2)
		vote->choice = MODEL_NONE;
}

void why_locks_take(struct why *why, struct why_walk *walk, struct why_instance *instance)
{
	qsort(walk->locks, walk->lock_count, sizeof(*walk->locks), by_time);
	instance->lock = (uint32_t)why->locks.len;
	instance->lock_count =
		walk->lock_count < WHY_LOCKS_LISTED ? walk->lock_count : WHY_LOCKS_LISTED;
	for (uint32_t i = 0; i < instance->lock_count; i++) {
		struct why_lock_time time = walk->locks[i];

		require_half(&time.holder, time.ns);
		require_half(&time.awaited, time.ns);
		require_half(&time.stack, time.ns);
		vec_add(&why->locks, time);
	}
}
