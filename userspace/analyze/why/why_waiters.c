// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_waiters.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_jvm.h"
#include "analyze/why/lookup/why_lock_names.h"
#include "analyze/why/lookup/why_postgres.h"
#include "analyze/why/why_examined_internal.h"
#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/search.h"
#include "util/text.h"

/* Who waits for the thread for less than this part of the time is not listed. */
#define LISTED_PARTS 10
#define LISTED_MAX 3
/* If one wait of a thread takes all of the time but this part, the thread may wait for any work. */
#define ONCE_PARTS 10

/* ---- the threads to examine ---- */

static uint32_t explained_thread(const struct model *model, const struct why_query *query)
{
	uint32_t i = 0;

	while (i < model->threads.len && model->threads.data[i].tid != query->tid)
		i++;
	return i;
}

/* Siblings in a pool wait for each other: only their main thread, and those that wait for a lock,
 * tell more than the explained one itself. */
static bool is_sibling(const struct model *model, uint32_t thread, uint32_t explained)
{
	const struct model_thread *a = &model->threads.data[thread];
	const struct model_thread *b = &model->threads.data[explained];

	return a->pid == b->pid && a->tid != a->pid && a->comm == b->comm;
}

static bool is_of_process(const struct model *model, uint32_t thread, uint32_t explained)
{
	return explained < model->threads.len &&
	       model->threads.data[thread].pid == model->threads.data[explained].pid;
}

static bool waits_much(const struct model_thread *thread, const struct why_query *query)
{
	return thread->blocked_ns + thread->runnable_ns >=
	       (query->to_ts - query->from_ts) / LISTED_PARTS;
}

/* So many waits of a thread that have a stack are searched for a lock. */
#define WAITS_MAX 32

/* Whether functions of the thread show that it waits for a lock of the program's own. All threads
 * of a program may have one name, as those of MariaDB. */
static bool waits_for_lock(const struct model *model, struct stack_names *names, uint32_t thread)
{
	const struct model_wait *waits = model->waits.data;
	size_t first = lower_bound(model->waits.len, i, waits[i].thread < thread);
	unsigned searched = 0;

	for (size_t i = first; names && i < model->waits.len && searched < WAITS_MAX; i++) {
		const char *functions[STACK_NAMES_FUNCTIONS];
		uint32_t count;

		if (waits[i].thread != thread)
			break;
		if (!waits[i].user_stack)
			continue;
		searched++;
		count = stack_names_functions(names, waits[i].user_stack, waits[i].from_ts,
					      functions, STACK_NAMES_FUNCTIONS);
		if (why_lock_awaited(functions, count))
			return true;
	}
	return false;
}

/* What is explained, for is_candidate(). */
struct explained {
	const struct why_query *query;
	uint32_t thread;
};

static bool is_candidate(const struct model *model, uint32_t thread, const void *arg)
{
	const struct explained *explained = arg;

	return thread != explained->thread &&
	       waits_much(&model->threads.data[thread], explained->query) &&
	       (!is_sibling(model, thread, explained->thread) ||
		waits_for_lock(model, explained->query->names, thread));
}

/* ---- those that wait ---- */

static struct why_waiter waiter_of(const struct why *why, uint32_t number, uint32_t explained_tid)
{
	const struct why_instance *instance = &why->instances.data[number];
	struct why_waiter waiter = {.instance = number};
	uint64_t largest_ns = 0;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];

		if (why_waits_for_work(why, part, explained_tid))
			continue;
		if (part->through_ns > largest_ns) {
			largest_ns = part->through_ns;
			waiter.part = i;
		}
		waiter.ns += part->through_ns;
	}
	return waiter;
}

/* Whether a thread waits for whoever has work for it: then the explained one only came by. */
static bool is_idle_worker(const struct why *why, const struct why_waiter *waiter,
			   struct stack_names *names)
{
	const struct why_instance *instance = &why->instances.data[waiter->instance];
	const struct why_part *part = &why->parts.data[instance->part + waiter->part];
	const struct model_thread *thread = &why->model->threads.data[instance->thread];
	uint64_t length = instance->to_ts - instance->from_ts;
	const struct why_step *step;

	if (!part->step_count)
		return false;
	if (why_jvm_is_launcher(why->model, names, instance->thread))
		return true;
	step = &why->steps.data[part->step];
	if (step->owned || step->state != WAFFLE_THREAD_BLOCKED)
		return false;
	/* Nobody gets work by a connection that is not there yet. */
	if (descriptor_is_connecting(strtab_get(why->texts, step->object)))
		return false;
	/* Whoever has work for them ends the wait, and they did not miss it before. */
	if (why_jvm_is_own_thread(why->model, names, instance->thread) ||
	    (!step->meaning && why_postgres_is_background(why->model, instance->thread)))
		return true;
	return thread->tid != thread->pid &&
	       step->to_ts - step->from_ts >= length - length / ONCE_PARTS;
}

/* ---- those that sleep ---- */

/* A thread's own sleeps; `ns` is 0 if they are less than half of its time. */
static struct why_waiter rest_of(const struct why *why, uint32_t number)
{
	const struct why_instance *instance = &why->instances.data[number];
	struct why_waiter rest = {.instance = number};
	uint64_t largest_ns = 0;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];

		if (part->cause != WHY_SLEEP || part->thread != instance->thread)
			continue;
		if (part->ns > largest_ns) {
			largest_ns = part->ns;
			rest.part = i;
		}
		rest.ns += part->ns;
	}
	if (rest.ns < (instance->to_ts - instance->from_ts) / 2)
		rest.ns = 0;
	return rest;
}

bool why_rests(const struct why *why)
{
	return why->instances.len == 1 && why->instances.data[0].span == MODEL_NONE &&
	       rest_of(why, 0).ns;
}

/* ---- the lists ---- */

static int waiters_compare(const void *left, const void *right, void *arg)
{
	const struct why_waiter *a = left, *b = right;
	const struct why *why = arg;

	return why_examined_compare(why->model, why->instances.data[a->instance].thread,
				    why->instances.data[b->instance].thread);
}

static const char *name_of(const struct why *why, const struct why_waiter *waiter)
{
	return model_thread_name(why->model, why->instances.data[waiter->instance].thread);
}

/* The system call in which it waits; -1: it is in none, or waits for a CPU. */
static int call_of(const struct why *why, const struct why_waiter *waiter)
{
	uint32_t first = why->instances.data[waiter->instance].part;
	const struct why_part *part = &why->parts.data[first + waiter->part];

	return part->step_count ? why->steps.data[part->step].syscall : -1;
}

/* Sorts a list, keeps the first one of those of a name that wait in the same way, and counts the
 * others. Returns how many are kept. */
static size_t keep_names_once(const struct why *why, struct why_waiter *list, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort_r(list, count, sizeof(*list), waiters_compare, (void *)(uintptr_t)why);
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		while (k < kept && (text_compare_without_numbers(name_of(why, &list[k]),
								 name_of(why, &list[i])) ||
				    call_of(why, &list[k]) != call_of(why, &list[i])))
			k++;
		if (k < kept)
			list[k].more++;
		else if (kept < LISTED_MAX)
			list[kept++] = list[i];
	}
	return kept;
}

/* A call of MPI waits for other processes, which are explained with it. */
static bool is_gpu_call(const struct site_info *site)
{
	return site->call && site->role != SITE_ROLE_NONE && !site_role_is_mpi(site->role);
}

uint32_t why_waiters_caller(const struct why *why)
{
	const struct model *model = why->model;
	uint32_t thread = MODEL_NONE;

	for (size_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];

		if (instance->span >= model->spans.len || (i && instance->thread != thread) ||
		    !is_gpu_call(model_site(model, model->spans.data[instance->span].site)))
			return 0;
		thread = instance->thread;
	}
	return thread < model->threads.len ? model->threads.data[thread].tid : 0;
}

int why_waiters_find(struct why_waiters *waiters, const struct model *model,
		     const struct why_query *query, struct error *err)
{
	struct why_window windows[WHY_EXAMINED_MAX];
	struct why_query others = {.windows = windows,
				   .through_tid = query->tid,
				   .names = query->names,
				   .timeline = query->timeline};
	const struct explained explained = {query, explained_thread(model, query)};
	int result;

	memset(waiters, 0, sizeof(*waiters));
	waiters->explained = explained.thread;
	others.window_count = why_examined_choose(windows, model, query, is_candidate, &explained);
	waiters->cut = others.window_count == WHY_EXAMINED_MAX;
	if (!others.window_count)
		return 0;
	result = why_new(&waiters->why, model, &others, err);
	if (result)
		return result;
	for (uint32_t i = 0; i < waiters->why->instances.len; i++) {
		const struct why_instance *instance = &waiters->why->instances.data[i];
		struct why_waiter waiter = waiter_of(waiters->why, i, query->tid);
		struct why_waiter rest = rest_of(waiters->why, i);

		if (rest.ns && is_of_process(model, instance->thread, explained.thread))
			vec_add(&waiters->resting, rest);
		if (waiter.ns &&
		    waiter.ns >= (instance->to_ts - instance->from_ts) / LISTED_PARTS &&
		    !is_idle_worker(waiters->why, &waiter, query->names))
			vec_add(&waiters->list, waiter);
	}
	waiters->list.len = keep_names_once(waiters->why, waiters->list.data, waiters->list.len);
	waiters->resting.len =
		keep_names_once(waiters->why, waiters->resting.data, waiters->resting.len);
	return 0;
}

void why_waiters_free(struct why_waiters *waiters)
{
	why_free(waiters->why);
	vec_free(&waiters->list);
	vec_free(&waiters->resting);
}
