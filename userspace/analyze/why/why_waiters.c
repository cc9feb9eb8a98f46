// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_waiters.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_jvm.h"
#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/text.h"

/* Limits of the threads to explain: their number, and how often they left a CPU together. */
#define EXAMINED_MAX 16
#define SWITCHES_MAX 1000000
/* Who waits for the thread for less than this part of the time is not listed. */
#define LISTED_PARTS 10
#define LISTED_MAX 3
/* If one wait of a thread takes all of the time but this part, the thread may wait for any work. */
#define ONCE_PARTS 10
/* The descriptor of which a thread reads its signals. */
#define SIGNALS "anon_inode:[signalfd"

/* ---- the threads to examine ---- */

struct choice {
	uint32_t thread;
	uint64_t switches;
};

/* First the threads that processes began with, then those that do most: threads that only wait for
 * work, as a garbage collector's, are the last. */
static int by_interest(const struct model *model, uint32_t left, uint32_t right)
{
	const struct model_thread *a = &model->threads.data[left];
	const struct model_thread *b = &model->threads.data[right];

	if ((a->tid == a->pid) != (b->tid == b->pid))
		return a->tid == a->pid ? -1 : 1;
	if (a->running_ns != b->running_ns)
		return a->running_ns > b->running_ns ? -1 : 1;
	return left < right ? -1 : left > right;
}

static int candidates_compare(const void *left, const void *right, void *model)
{
	const struct choice *a = left, *b = right;

	return by_interest(model, a->thread, b->thread);
}

static uint32_t explained_thread(const struct model *model, const struct why_query *query)
{
	uint32_t i = 0;

	while (i < model->threads.len && model->threads.data[i].tid != query->tid)
		i++;
	return i;
}

/* Siblings in a pool wait for each other: only their main thread tells more than the explained one
 * itself. */
static bool is_sibling(const struct model *model, uint32_t thread, uint32_t explained)
{
	const struct model_thread *a = &model->threads.data[thread];
	const struct model_thread *b = &model->threads.data[explained];

	return a->pid == b->pid && a->tid != a->pid && a->comm == b->comm;
}

static bool waits_much(const struct model_thread *thread, const struct why_query *query)
{
	return thread->blocked_ns + thread->runnable_ns >=
	       (query->to_ts - query->from_ts) / LISTED_PARTS;
}

static struct choice *candidates_new(size_t *count, const struct model *model,
				     const struct why_query *query)
{
	struct choice *all = memory_get((model->threads.len + 1) * sizeof(*all));
	uint64_t *switches = memory_zeroed(model->threads.len, sizeof(*switches));
	uint32_t explained = explained_thread(model, query);

	*count = 0;
	for (size_t i = 0; i < model->switches.len; i++)
		if (model->switches.data[i].prev < model->threads.len)
			switches[model->switches.data[i].prev]++;
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];

		if (thread->traced && thread->has_sched && !thread->own && i != explained &&
		    waits_much(thread, query) && !is_sibling(model, i, explained))
			all[(*count)++] = (struct choice){i, switches[i]};
	}
	free(switches);
	return all;
}

/* Returns their number; `windows` has room for EXAMINED_MAX. */
static size_t choose(struct why_window *windows, const struct model *model,
		     const struct why_query *query)
{
	size_t count, chosen = 0;
	struct choice *all = candidates_new(&count, model, query);
	uint64_t left = SWITCHES_MAX;

	qsort_r(all, count, sizeof(*all), candidates_compare, (void *)model);
	for (size_t i = 0; i < count && chosen < EXAMINED_MAX; i++) {
		if (all[i].switches > left)
			continue;
		left -= all[i].switches;
		windows[chosen++] =
			(struct why_window){query->from_ts, query->to_ts, all[i].thread};
	}
	free(all);
	return chosen;
}

/* ---- those that wait ---- */

/* Whether a thread waits for signals, and its own timeouts end most of these waits. A lock that its
 * program made itself may be such a wait, too. */
static bool is_signal_loop(const struct why *why, const struct why_step *step)
{
	return text_begins(strtab_get(why->texts, step->object), SIGNALS) && !step->meaning &&
	       step->wakes > 1 && step->woken_by == MODEL_NONE &&
	       2 * step->woken_count > step->wakes - 1;
}

/* Whether a server waits for no client in particular. One that waits for the next request of a
 * connection may hold what others of its threads want. */
static bool has_no_client(const struct why *why, const struct why_step *step)
{
	const char *object = strtab_get(why->texts, step->object);

	return !strstr(object, DESCRIPTOR_BETWEEN) && !strstr(object, "(unix");
}

/* Whether the thread of the instance waits for whoever has work for it, though it may be the
 * explained one that comes next. So does a worker that waits for the thread of its process that
 * waits for clients. A main thread may do so, too. */
static bool is_for_work(const struct why *why, const struct why_part *part, uint32_t explained_tid)
{
	const struct model_thread *threads = why->model->threads.data;
	const struct why_step *steps = &why->steps.data[part->step];

	if (!part->step_count || steps->state != WAFFLE_THREAD_BLOCKED || steps->owned)
		return false;
	for (uint32_t i = 0; i < part->step_count; i++) {
		if (threads[steps[i].thread].pid != threads[steps->thread].pid ||
		    threads[steps[i].thread].tid == explained_tid)
			break;
		if (steps[i].serves && (!i || has_no_client(why, &steps[i])))
			return true;
	}
	return is_signal_loop(why, steps);
}

static struct why_waiter waiter_of(const struct why *why, uint32_t number, uint32_t explained_tid)
{
	const struct why_instance *instance = &why->instances.data[number];
	struct why_waiter waiter = {.instance = number};
	uint64_t largest_ns = 0;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];

		if (is_for_work(why, part, explained_tid))
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
	/* Whoever has work for them ends the wait, and they did not miss it before. */
	if (why_jvm_is_own_thread(why->model, names, instance->thread))
		return true;
	return thread->tid != thread->pid &&
	       step->to_ts - step->from_ts >= length - length / ONCE_PARTS;
}

static int waiters_compare(const void *left, const void *right, void *arg)
{
	const struct why_waiter *a = left, *b = right;
	const struct why *why = arg;

	return by_interest(why->model, why->instances.data[a->instance].thread,
			   why->instances.data[b->instance].thread);
}

static const char *name_of(const struct why_waiters *waiters, size_t number)
{
	const struct why *why = waiters->why;
	uint32_t instance = waiters->list.data[number].instance;

	return model_thread_name(why->model, why->instances.data[instance].thread);
}

/* Keeps the first one of each name. */
static void keep_names_once(struct why_waiters *waiters)
{
	size_t kept = 0;

	for (size_t i = 0; i < waiters->list.len && kept < LISTED_MAX; i++) {
		bool known = false;

		for (size_t k = 0; k < kept && !known; k++)
			known = !strcmp(name_of(waiters, k), name_of(waiters, i));
		if (!known)
			waiters->list.data[kept++] = waiters->list.data[i];
	}
	waiters->list.len = kept;
}

int why_waiters_find(struct why_waiters *waiters, const struct model *model,
		     const struct why_query *query, struct error *err)
{
	struct why_window windows[EXAMINED_MAX];
	struct why_query others = {.windows = windows,
				   .through_tid = query->tid,
				   .names = query->names,
				   .timeline = query->timeline};
	int result;

	memset(waiters, 0, sizeof(*waiters));
	others.window_count = choose(windows, model, query);
	if (!others.window_count)
		return 0;
	result = why_new(&waiters->why, model, &others, err);
	if (result)
		return result;
	for (uint32_t i = 0; i < waiters->why->instances.len; i++) {
		const struct why_instance *instance = &waiters->why->instances.data[i];
		struct why_waiter waiter = waiter_of(waiters->why, i, query->tid);

		if (waiter.ns &&
		    waiter.ns >= (instance->to_ts - instance->from_ts) / LISTED_PARTS &&
		    !is_idle_worker(waiters->why, &waiter, query->names))
			vec_add(&waiters->list, waiter);
	}
	if (waiters->list.len)
		qsort_r(waiters->list.data, waiters->list.len, sizeof(*waiters->list.data),
			waiters_compare, waiters->why);
	keep_names_once(waiters);
	return 0;
}

void why_waiters_free(struct why_waiters *waiters)
{
	why_free(waiters->why);
	vec_free(&waiters->list);
}
