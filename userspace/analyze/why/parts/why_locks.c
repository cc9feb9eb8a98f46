// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/parts/why_locks.h"

#include <stdlib.h>

#include "analyze/why/lookup/why_lock_names.h"
#include "analyze/why/lookup/why_postgres.h"
#include "util/memory.h"

/* The step that waits for the first lock of the chain; NULL: none does. */
static const struct why_step *step_awaiting(const struct why_walk *walk)
{
	for (uint32_t i = 0; i < walk->depth; i++)
		if (walk->path[i].lock)
			return &walk->path[i];
	return NULL;
}

static struct why_lock_times *times_of(struct why_walk *walk, uint32_t lock)
{
	uint32_t i = 0;

	while (i < walk->lock_count && walk->locks[i].lock != lock)
		i++;
	if (i == WHY_LOCKS_MAX)
		return NULL;
	if (i == walk->lock_count)
		walk->locks[walk->lock_count++] = (struct why_lock_times){.lock = lock};
	return &walk->locks[i];
}

/* The next step of the chain, if it is of the thread that ended the wait of this one; else NULL. */
static const struct why_step *step_of_waker(const struct why_walk *walk,
					    const struct why_step *step)
{
	const struct why_step *next = step + 1;

	return next < &walk->path[walk->depth] && next->thread == step->by ? next : NULL;
}

static uint32_t stack_of(const struct why_walk *walk, const struct why_step *step)
{
	return step->wait < walk->model->waits.len ? walk->model->waits.data[step->wait].user_stack
						   : 0;
}

/* Whether a step is of a session of PostgreSQL that waits for the next command of its client. */
static bool awaits_command(struct why_walk *walk, const struct why_step *step)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t stack = stack_of(walk, step), known = map_get(&walk->commands, stack), count;

	if (!stack || known != MAP_NONE)
		return stack && known;
	count = stack_names_functions(walk->names, stack,
				      walk->model->waits.data[step->wait].from_ts, functions,
				      STACK_NAMES_FUNCTIONS);
	known = why_postgres_awaits_command(functions, count);
	map_put(&walk->commands, stack, known);
	return known;
}

static void share_add(why_shares *shares, uint32_t of, uint64_t ns)
{
	why_shares_add(shares, &(struct why_share){.of = of, .ns = ns});
}

/* Who waits for a lock may itself hold another one: the last holder holds up all of them. */
static void holder_add(struct why_walk *walk, struct why_lock_times *times,
		       const struct why_step *step, uint64_t ns)
{
	const struct why_step *next = step_of_waker(walk, step);

	while (next && next->lock) {
		step = next;
		next = step_of_waker(walk, step);
	}
	share_add(&times->holders, step->by, ns);
	/* Who had the CPU, or was interrupted there, is not whom it waits for. */
	if (!next || next->state != WAFFLE_THREAD_BLOCKED || next->interrupt)
		return;
	share_add(&times->awaited, next->by, ns);
	if (why_lock_ends_with_transaction(strtab_get(walk->why->texts, step->lock)) &&
	    awaits_command(walk, next))
		times->idle_ns += ns;
}

static void stack_add(const struct why_walk *walk, struct why_lock_times *times,
		      const struct why_step *step, uint64_t ns)
{
	uint32_t stack = stack_of(walk, step);

	if (stack)
		why_shares_add(&times->stacks, &(struct why_share){stack, step->wait, ns});
}

void why_locks_add(struct why_walk *walk, const struct why_verdict *verdict, uint64_t ns)
{
	const struct why_step *step = step_awaiting(walk);
	uint32_t own = why_is_lock(verdict->cause) ? verdict->object : 0;
	uint32_t lock = step ? step->lock : own;
	struct why_lock_times *times = lock ? times_of(walk, lock) : NULL;

	if (!times)
		return;
	times->ns += ns;
	if (step)
		holder_add(walk, times, step, ns);
	else
		share_add(&times->holders, verdict->thread, ns);
	stack_add(walk, times, step ?: &walk->path[walk->depth - 1], ns);
}

static int by_time(const void *left, const void *right)
{
	const struct why_lock_times *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->lock < b->lock ? -1 : a->lock > b->lock;
}

/* What has at least half of the time. */
static struct why_share half_of(why_shares *shares, uint64_t ns)
{
	struct why_share most = why_shares_most(shares);

	return most.ns && most.ns >= ns / 2 ? most : (struct why_share){MODEL_NONE, MODEL_NONE, 0};
}

void why_locks_take(struct why *why, struct why_walk *walk, struct why_instance *instance)
{
	qsort(walk->locks, walk->lock_count, sizeof(*walk->locks), by_time);
	instance->lock = (uint32_t)why->locks.len;
	instance->lock_count =
		walk->lock_count < WHY_LOCKS_LISTED ? walk->lock_count : WHY_LOCKS_LISTED;
	for (uint32_t i = 0; i < instance->lock_count; i++) {
		struct why_lock_times *times = &walk->locks[i];

		vec_add(&why->locks,
			(struct why_lock_time){
				.lock = times->lock,
				.ns = times->ns,
				.holder = half_of(&times->holders, times->ns).of,
				.awaited = half_of(&times->awaited, times->ns).of,
				.wait = half_of(&times->stacks, times->ns).wait,
				.idle = times->idle_ns && times->idle_ns >= times->ns / 2,
			});
	}
}

void why_locks_clear(struct why_walk *walk)
{
	for (uint32_t i = 0; i < walk->lock_count; i++) {
		vec_free(&walk->locks[i].holders);
		vec_free(&walk->locks[i].awaited);
		vec_free(&walk->locks[i].stacks);
	}
	walk->lock_count = 0;
}
