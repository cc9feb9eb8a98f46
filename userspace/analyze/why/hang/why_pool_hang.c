// SPDX-License-Identifier: Apache-2.0
/* Pools of threads that all wait for other jobs: one in the queue of the same pool has no thread
 * left to do it. For which job each waits is memory of the program, which is not recorded. */
#include "analyze/why/hang/why_hang_internal.h"
#include "analyze/why/lookup/why_pool_stack.h"
#include "util/memory.h"
#include "util/text.h"

/* Of a process with more threads, nothing is said. */
#define THREADS_MAX 256

enum pool_role {
	ROLE_NONE,    /* it is in no pool */
	ROLE_IDLE,    /* it is in one, without a job */
	ROLE_STUCK,   /* its job has waited for another one all the time */
	ROLE_MAY_END, /* it may do what the others wait for */
};

static enum pool_role role_of(const struct why_hangs *hangs, const struct model *model,
			      struct stack_names *names, const struct why_live_thread *thread,
			      const struct why_pool_row **row)
{
	const struct model_thread *of = &model->threads.data[thread->thread];
	const struct model_open_wait *wait;
	struct why_pool_stack stack;

	if (thread->wait == MODEL_NONE)
		return ROLE_MAY_END;
	wait = &model->open_waits.data[hangs->waits.data[thread->wait].wait];
	stack = why_pool_stack(names, wait->user_stack, wait->ts);
	*row = stack.row;
	if (!stack.named || stack.elsewhere)
		return ROLE_MAY_END;
	if (!stack.row)
		return ROLE_NONE;
	if (!why_pool_has_job(&stack))
		return ROLE_IDLE;
	return stack.waits && of->tid != of->pid && wait->before &&
			       wait->flags & WAFFLE_OPEN_WAIT_INSIDE &&
			       wait->ts - wait->from_ts >= WHY_STANDSTILL_NS
		       ? ROLE_STUCK
		       : ROLE_MAY_END;
}

static bool is_like(const struct model *model, const struct why_live_thread *a,
		    const struct why_live_thread *b)
{
	return !text_compare_without_numbers(model_thread_name(model, a->thread),
					     model_thread_name(model, b->thread));
}

/* Whether an idle thread may be of the pool of one that is stuck: its name says no other one. */
static bool has_idle(const struct model *model, const struct why_live_thread *threads,
		     uint32_t count, const enum pool_role *roles)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; roles[i] == ROLE_STUCK && k < count; k++)
			if (roles[k] == ROLE_IDLE && is_like(model, &threads[i], &threads[k]))
				return true;
	return false;
}

/* Marks the waits. The pool of the first thread takes the place of what is known of the process. */
static void pool_add(struct why_hangs *hangs, const struct model *model,
		     const struct why_live_thread *threads, uint32_t count,
		     const enum pool_role *roles, struct why_standstill *standstill)
{
	const struct why_live_thread *first = NULL;

	for (uint32_t i = 0; i < count; i++) {
		if (roles[i] != ROLE_STUCK)
			continue;
		first = first ?: &threads[i];
		hangs->waits.data[threads[i].wait].stuck = true;
		standstill->threads += is_like(model, first, &threads[i]);
	}
	standstill->thread = first->thread;
	standstill->of = standstill->threads;
	if (hangs->standstills.len) {
		const struct why_standstill *last =
			&hangs->standstills.data[hangs->standstills.len - 1];

		hangs->standstills.len -= model->threads.data[last->thread].pid ==
					  model->threads.data[first->thread].pid;
	}
	vec_add(&hangs->standstills, *standstill);
}

void why_pool_examine(struct why_hangs *hangs, const struct model *model, struct stack_names *names,
		      const struct why_live_thread *threads, uint32_t count)
{
	enum pool_role roles[THREADS_MAX];
	struct why_standstill standstill = {.threads = 0};

	if (!names || count > THREADS_MAX)
		return;
	for (uint32_t i = 0; i < count; i++) {
		const struct why_pool_row *row = NULL;

		roles[i] = role_of(hangs, model, names, &threads[i], &row);
		if (roles[i] == ROLE_MAY_END)
			return;
		if (roles[i] == ROLE_STUCK && !standstill.pool)
			standstill.pool = row->text;
	}
	if (standstill.pool && !has_idle(model, threads, count, roles))
		pool_add(hangs, model, threads, count, roles, &standstill);
}
