// SPDX-License-Identifier: Apache-2.0
/* Pools of threads that all wait for other jobs: one in the queue of the same pool has no thread
 * left to do it. For which job each waits is memory of the program, which is not recorded. */
#include "analyze/why/hang/why_hang_internal.h"

#include <ctype.h>
#include <string.h>

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

struct pool_member {
	const struct why_live_thread *thread;
	enum pool_role role;
	const struct why_pool_row *row; /* NULL: it is of no pool */
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

/* The length of what is before the last number of a name; 0 without a number. */
static size_t before_number(const char *name)
{
	size_t end = strlen(name);

	while (end && !isdigit((unsigned char)name[end - 1]))
		end--;
	while (end && isdigit((unsigned char)name[end - 1]))
		end--;
	return end;
}

/* Whether two threads may be of one pool, as "ThreadPoolExecutor-0_1" and "-0_2", but not "-1_1".
 */
static bool is_like(const struct model *model, const struct pool_member *a,
		    const struct pool_member *b)
{
	const char *name = model_thread_name(model, a->thread->thread);
	const char *other = model_thread_name(model, b->thread->thread);
	size_t len = before_number(name);

	return a->row == b->row && len == before_number(other) && !strncmp(name, other, len) &&
	       !text_compare_without_numbers(name + len, other + len);
}

/* Whether an idle thread may be of the pool of one that is stuck: its name says no other one. */
static bool has_idle(const struct model *model, const struct pool_member *members, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; members[i].role == ROLE_STUCK && k < count; k++)
			if (members[k].role == ROLE_IDLE &&
			    is_like(model, &members[i], &members[k]))
				return true;
	return false;
}

/* Marks the waits. The pool of the first thread takes the place of what is known of the process. */
static void pool_add(struct why_hangs *hangs, const struct model *model,
		     const struct pool_member *members, uint32_t count)
{
	struct why_standstill standstill = {.threads = 0};
	const struct pool_member *first = NULL;

	for (uint32_t i = 0; i < count; i++) {
		if (members[i].role != ROLE_STUCK)
			continue;
		first = first ?: &members[i];
		hangs->waits.data[members[i].thread->wait].stuck = true;
		standstill.threads += is_like(model, first, &members[i]);
	}
	standstill.pool = first->row->text;
	standstill.thread = first->thread->thread;
	standstill.of = standstill.threads;
	if (hangs->standstills.len) {
		const struct why_standstill *last =
			&hangs->standstills.data[hangs->standstills.len - 1];

		hangs->standstills.len -=
			model->threads.data[last->thread].pid == first->thread->pid;
	}
	vec_add(&hangs->standstills, standstill);
}

void why_pool_examine(struct why_hangs *hangs, const struct model *model, struct stack_names *names,
		      const struct why_live_thread *threads, uint32_t count)
{
	struct pool_member members[THREADS_MAX];
	bool stuck = false;

	if (!names || count > THREADS_MAX)
		return;
	for (uint32_t i = 0; i < count; i++) {
		struct pool_member *member = &members[i];

		*member = (struct pool_member){.thread = &threads[i]};
		member->role = role_of(hangs, model, names, member->thread, &member->row);
		if (member->role == ROLE_MAY_END)
			return;
		stuck |= member->role == ROLE_STUCK;
	}
	if (stuck && !has_idle(model, members, count))
		pool_add(hangs, model, members, count);
}
