// SPDX-License-Identifier: Apache-2.0
/* Pools of threads that all wait for other jobs: one in the queue of the same pool has no thread
 * left to do it. For which job each waits is memory of the program, which is not recorded. */
#include "analyze/why/hang/why_hang_internal.h"
#include "analyze/why/lookup/why_pool_stack.h"
#include "util/memory.h"

enum pool_role {
	ROLE_NONE,    /* it is in no pool, and does nothing for the others */
	ROLE_IDLE,    /* it is in one, without a job */
	ROLE_STUCK,   /* its job has waited for another one all the time */
	ROLE_MAY_END, /* it may do what the others wait for */
};

/* The threads of a process. */
struct pool_threads {
	const struct model *model;
	const struct why_live_thread *list;
	uint32_t count;
	enum pool_role roles[WHY_POOL_THREADS];
	const struct why_pool_row *rows[WHY_POOL_THREADS]; /* NULL: it is in no known pool */
};

static enum pool_role role_of(struct pool_threads *threads, uint32_t index,
			      struct stack_names *names)
{
	const struct model *model = threads->model;
	uint32_t thread = threads->list[index].thread;
	const struct model_thread *of = &model->threads.data[thread];
	const struct model_open_wait *wait = model_open_wait_of(model, thread);
	struct why_pool_stack stack;

	if (!wait)
		return ROLE_MAY_END;
	stack = why_pool_stack(names, wait->user_stack, wait->ts);
	threads->rows[index] = stack.row;
	if (!stack.row)
		return stack.named && !stack.cut && why_hang_is_idle(model, thread) ? ROLE_NONE
										    : ROLE_MAY_END;
	if (!why_pool_has_job(&stack))
		return ROLE_IDLE;
	return stack.waits && of->tid != of->pid && wait->before && why_hang_is_inside(wait)
		       ? ROLE_STUCK
		       : ROLE_MAY_END;
}

static bool is_same_pool(const struct pool_threads *threads, uint32_t a, uint32_t b)
{
	return threads->rows[a] == threads->rows[b] &&
	       why_pool_is_like(threads->model, threads->list[a].thread, threads->list[b].thread);
}

/* Whether an idle thread may be of the pool of one that is stuck. */
static bool has_idle(const struct pool_threads *threads)
{
	for (uint32_t i = 0; i < threads->count; i++)
		for (uint32_t k = 0; threads->roles[i] == ROLE_STUCK && k < threads->count; k++)
			if (threads->roles[k] == ROLE_IDLE && is_same_pool(threads, i, k))
				return true;
	return false;
}

/* Marks the waits. The pool of the first one takes the place of what is known of the process. */
static void pool_add(struct why_hangs *hangs, const struct pool_threads *threads, uint32_t first)
{
	const struct model_thread *all = threads->model->threads.data;
	struct why_standstill standstill = {.thread = threads->list[first].thread,
					    .pool = threads->rows[first]->text};

	for (uint32_t i = first; i < threads->count; i++) {
		if (threads->roles[i] != ROLE_STUCK)
			continue;
		hangs->waits.data[threads->list[i].wait].stuck = true;
		standstill.threads += is_same_pool(threads, first, i);
	}
	standstill.of = standstill.threads;
	if (hangs->standstills.len) {
		const struct why_standstill *last =
			&hangs->standstills.data[hangs->standstills.len - 1];

		hangs->standstills.len -= all[last->thread].pid == all[standstill.thread].pid;
	}
	vec_add(&hangs->standstills, standstill);
}

void why_pool_examine(struct why_hangs *hangs, const struct model *model, struct stack_names *names,
		      const struct why_live_thread *list, uint32_t count)
{
	struct pool_threads threads = {.model = model, .list = list, .count = count};
	uint32_t first = count;

	if (!names || count > WHY_POOL_THREADS)
		return;
	for (uint32_t i = count; i--;) {
		threads.roles[i] = role_of(&threads, i, names);
		if (threads.roles[i] == ROLE_MAY_END)
			return;
		if (threads.roles[i] == ROLE_STUCK)
			first = i;
	}
	if (first < count && !has_idle(&threads))
		pool_add(hangs, &threads, first);
}
