// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/hang/why_hang.h"
#include "analyze/why/hang/why_hang_internal.h"

#include <stdlib.h>

#include "analyze/why/lookup/why_jvm.h"
#include "analyze/why/lookup/why_wait.h"
#include "util/memory.h"

uint32_t why_hang_owner(const struct model *model, struct stack_names *names,
			const struct model_open_wait *wait, bool *sure)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	enum futex_use use = FUTEX_USE_UNKNOWN;
	bool lock;

	*sure = false;
	if (wait->owner >= model->threads.len)
		return MODEL_NONE;
	if (names && wait->user_stack)
		use = futex_use_by(functions,
				   stack_names_functions(names, wait->user_stack, wait->ts,
							 functions, STACK_NAMES_FUNCTIONS));
	lock = futex_use_is_lock(use);
	if (wait->flags & WAFFLE_OPEN_WAIT_WORD) {
		*sure = true;
		return wait->owner;
	}
	if (wait->flags & WAFFLE_OPEN_WAIT_JOIN) {
		*sure = use == FUTEX_USE_ENDS;
		return lock || use == FUTEX_USE_OTHER ? MODEL_NONE : wait->owner;
	}
	*sure = lock;
	/* A condition variable's words may look like a read-write lock by chance. */
	if (wait->flags & WAFFLE_OPEN_WAIT_RWLOCK)
		return lock ? wait->owner : MODEL_NONE;
	return use == FUTEX_USE_OTHER || use == FUTEX_USE_ENDS ? MODEL_NONE : wait->owner;
}

bool why_hang_is_orphan(const struct model *model, struct stack_names *names,
			const struct model_open_wait *wait)
{
	return wait->ended && why_awaited_by(model, names, wait) == WHY_AWAITS_ENDED;
}

bool why_hang_is_shared(const struct model *model, const struct model_open_wait *wait)
{
	return wait->args >= model->syscall_args.len ||
	       !(model->syscall_args.data[wait->args + 1] & WAIT_FUTEX_PRIVATE);
}

bool why_hang_is_lock(const struct model *model, struct stack_names *names,
		      const struct model_open_wait *wait)
{
	return why_awaits_lock(why_awaited_by(model, names, wait));
}

bool why_hang_is_for_ranks(const struct model *model, struct stack_names *names,
			   const struct model_open_wait *wait)
{
	return why_awaited_by(model, names, wait) == WHY_AWAITS_RANKS;
}

bool why_hang_is_join(const struct model *model, struct stack_names *names,
		      const struct model_open_wait *wait)
{
	return why_awaited_by(model, names, wait) == WHY_AWAITS_END;
}

/* The open wait of a thread, as an index in `waits`, which are still in the order of the model. */
static uint32_t wait_of(const struct model *model, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);

	return wait ? (uint32_t)(wait - model->open_waits.data) : MODEL_NONE;
}

/* Each wait has at most one next one. So a walk along them either ends or comes into a cycle. */
static void deadlocks_find(struct why_hangs *hangs)
{
	/* By wait: the number of the walk that came by first; 0: none. */
	uint32_t *walks = memory_zeroed(hangs->waits.len + 1, sizeof(*walks));

	for (uint32_t i = 0; i < hangs->waits.len; i++) {
		struct why_deadlock deadlock = {.first = UINT32_MAX};
		uint32_t at = i;

		while (at != MODEL_NONE && !walks[at]) {
			walks[at] = i + 1;
			at = hangs->waits.data[at].next;
		}
		if (at == MODEL_NONE || walks[at] != i + 1)
			continue;
		for (uint32_t first = at; !deadlock.count || at != first; deadlock.count++) {
			hangs->waits.data[at].deadlock = (uint32_t)hangs->deadlocks.len;
			deadlock.first = at < deadlock.first ? at : deadlock.first;
			deadlock.perhaps |= hangs->waits.data[at].awaits == WHY_AWAITS_PROCESS;
			deadlock.others |= hangs->waits.data[at].others;
			at = hangs->waits.data[at].next;
		}
		vec_add(&hangs->deadlocks, deadlock);
	}
	free(walks);
}

/* ---- order ---- */

/* What the sorting needs of a wait. */
struct ranked {
	unsigned kind;
	uint32_t deadlock, place; /* place in the cycle */
	uint64_t ns;
	uint32_t old; /* index before */
};

static int ranked_compare(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->deadlock != b->deadlock)
		return a->deadlock < b->deadlock ? -1 : 1;
	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->old < b->old ? -1 : a->old > b->old;
}

static struct ranked rank(const struct why_hangs *hangs, const struct model *model,
			  struct stack_names *names, uint32_t index)
{
	const struct why_hung *hung = &hangs->waits.data[index];
	const struct model_open_wait *wait = &model->open_waits.data[hung->wait];
	struct ranked ranked = {
		.deadlock = hung->deadlock, .ns = wait->ts - wait->from_ts, .old = index};

	if (hung->deadlock == MODEL_NONE)
		ranked.kind = why_awaits_in_vain(hung->awaits)                    ? 1
			      : hung->stuck                                       ? 2
			      : hung->owner != MODEL_NONE                         ? 3
			      : wait->task_state & WAFFLE_TASK_UNINTERRUPTIBLE    ? 4
			      : why_jvm_is_own_thread(model, names, wait->thread) ? 6
										  : 5;
	return ranked;
}

static void waits_sort(struct why_hangs *hangs, const struct model *model,
		       struct stack_names *names)
{
	size_t count = hangs->waits.len;
	struct ranked *ranks = memory_get((count + 1) * sizeof(*ranks));
	struct why_hung *old = memory_get((count + 1) * sizeof(*old));
	uint32_t *moved = memory_get((count + 1) * sizeof(*moved));

	for (uint32_t i = 0; i < count; i++)
		ranks[i] = rank(hangs, model, names, i);
	for (size_t i = 0; i < hangs->deadlocks.len; i++) {
		uint32_t at = hangs->deadlocks.data[i].first;

		for (uint32_t place = 0; place < hangs->deadlocks.data[i].count; place++) {
			ranks[at].place = place;
			at = hangs->waits.data[at].next;
		}
	}
	qsort(ranks, count, sizeof(*ranks), ranked_compare);
	for (uint32_t i = 0; i < count; i++) {
		old[i] = hangs->waits.data[ranks[i].old];
		moved[ranks[i].old] = i;
	}
	for (uint32_t i = 0; i < count; i++) {
		hangs->waits.data[i] = old[i];
		if (old[i].next != MODEL_NONE)
			hangs->waits.data[i].next = moved[old[i].next];
	}
	for (size_t i = 0; i < hangs->deadlocks.len; i++)
		hangs->deadlocks.data[i].first = moved[hangs->deadlocks.data[i].first];
	free(ranks);
	free(old);
	free(moved);
}

void why_hangs_find(struct why_hangs *hangs, const struct model *model, struct stack_names *names)
{
	*hangs = (struct why_hangs){.waits = {0}};
	for (uint32_t i = 0; i < model->open_waits.len; i++) {
		struct why_hung hung = {.wait = i, .next = MODEL_NONE, .deadlock = MODEL_NONE};

		hung.owner = why_hang_owner(model, names, &model->open_waits.data[i], &hung.sure);
		hung.awaits = hung.owner == MODEL_NONE
				      ? why_awaited_by(model, names, &model->open_waits.data[i])
			      : model->open_waits.data[i].flags & WAFFLE_OPEN_WAIT_JOIN
				      ? WHY_AWAITS_END
				      : WHY_AWAITS_LOCK;
		hangs->stopped += hung.awaits == WHY_AWAITS_NOTHING;
		hangs->ended += hung.awaits == WHY_AWAITS_ENDED;
		vec_add(&hangs->waits, hung);
	}
	if (hangs->waits.len) {
		why_children_find(hangs, model);
		why_ends_find(hangs, model);
	}
	for (size_t i = 0; i < hangs->waits.len; i++)
		if (hangs->waits.data[i].owner != MODEL_NONE)
			hangs->waits.data[i].next = wait_of(model, hangs->waits.data[i].owner);
	deadlocks_find(hangs);
	why_ends_check(hangs);
	if (hangs->waits.len) {
		why_standstills_find(hangs, model, names);
		waits_sort(hangs, model, names);
	}
}

void why_hangs_free(struct why_hangs *hangs)
{
	vec_free(&hangs->waits);
	vec_free(&hangs->deadlocks);
	vec_free(&hangs->standstills);
	vec_free(&hangs->children);
}
