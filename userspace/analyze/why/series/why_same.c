// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/series/why_same_internal.h"

#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"

/* A condition variable of the C library has two adjacent futexes that take turns. */
#define CONDITION_TURN 4

const uint64_t *why_args_of(const struct why_walk *walk, const struct why_interval *interval)
{
	const struct model *model = walk->model;

	return interval->args < model->syscall_args.len ? &model->syscall_args.data[interval->args]
							: NULL;
}

/* poll(2) and select(2): whether both wait for the same descriptors. Their list may be at another
 * address each time. */
static bool is_same_list(const struct store_object *first, const struct store_object *second)
{
	return first && second && *first->name && !strcmp(first->name, second->name) &&
	       !strcmp(first->detail, second->detail) &&
	       strncmp(first->name, DESCRIPTOR_MANY, strlen(DESCRIPTOR_MANY)) != 0;
}

/* Whether one of two waits is for a socket that is being connected, and the other is not. Who gives
 * up and connects anew does not wait for the same thing. */
static bool is_other_connection(const struct store_object *first, const struct store_object *second)
{
	return (wait_is_for_connecting(first) || wait_is_for_connecting(second)) &&
	       !(first && second && first->ino == second->ino);
}

bool why_is_same(const struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		 const struct why_interval *a, const struct why_interval *b)
{
	const uint64_t *first = why_args_of(walk, a), *second = why_args_of(walk, b);
	const struct store_object *awaited = NULL, *other = NULL;
	uint64_t distance;

	if (a->syscall != b->syscall || a->syscall < 0 || !first || !second ||
	    (b->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED)) ||
	    (a->task_state ^ b->task_state) & WAFFLE_TASK_UNINTERRUPTIBLE)
		return false;
	if (waiting->kind == WAIT_SLEEP)
		return b->continued || !memcmp(first, second, sizeof(*first) * WAFFLE_SYSCALL_ARGS);
	/* If it has arguments, they do not matter. */
	if (waiting->kind == WAIT_SIGNAL)
		return true;
	if (waiting->lists) {
		awaited = why_wait_object(walk, thread, a);
		other = why_wait_object(walk, thread, b);
	}
	if (is_other_connection(awaited, other))
		return false;
	if (is_same_list(awaited, other))
		return true;
	/* The first argument only says what the second one is. */
	if (a->syscall == walk->intervals.waitid && first[1] != second[1])
		return false;
	distance = first[0] > second[0] ? first[0] - second[0] : second[0] - first[0];
	return a->syscall == walk->intervals.futex ? distance <= CONDITION_TURN : !distance;
}

bool why_is_halt(const struct why_walk *walk, const struct why_interval *wait,
		 const struct why_interval *next)
{
	const uint64_t *first = why_args_of(walk, wait), *second = why_args_of(walk, next);

	if (next->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED))
		return true;
	return next->task_state & WAFFLE_TASK_UNINTERRUPTIBLE && next->syscall >= 0 &&
	       next->syscall == wait->syscall && first && second && *first == *second;
}

bool why_is_check_lock(const struct why_walk *walk, uint32_t thread,
		       const struct why_interval *interval)
{
	const uint64_t *args = why_args_of(walk, interval);

	if (interval->syscall != walk->intervals.futex || !args)
		return false;
	return wait_takes_pi_lock(args) ||
	       (((uint32_t)args[1] & WAIT_FUTEX_COMMAND) == WAIT_FUTEX_WAIT &&
		(uint32_t)args[2] == WAIT_MUTEX_CONTENDED) ||
	       map_get(&walk->python_of, walk->model->threads.data[thread].pid) != MAP_NONE;
}
