// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_waiters.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

/* Limit of the threads to explain. */
#define EXAMINED_MAX 16
/* Who waits for the thread for less than this part of the time is not listed. */
#define LISTED_PARTS 10
#define LISTED_MAX 3

/* ---- the threads to examine ---- */

struct candidate {
	uint32_t thread;
	bool main;
	uint64_t running_ns;
};

/* First the threads that processes began with, then those that do most: pools are idle. */
static int by_interest(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->main != b->main)
		return a->main ? -1 : 1;
	if (a->running_ns != b->running_ns)
		return a->running_ns > b->running_ns ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static bool waits_much(const struct model_thread *thread, const struct why_query *query)
{
	return thread->blocked_ns + thread->runnable_ns >=
	       (query->to_ts - query->from_ts) / LISTED_PARTS;
}

/* Returns their number; `windows` has room for EXAMINED_MAX. */
static size_t choose(struct why_window *windows, const struct model *model,
		     const struct why_query *query)
{
	struct candidate *all = memory_get((model->threads.len + 1) * sizeof(*all));
	size_t count = 0;

	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];

		if (thread->traced && thread->has_sched && !thread->own &&
		    thread->tid != query->tid && waits_much(thread, query))
			all[count++] = (struct candidate){i, thread->tid == thread->pid,
							  thread->running_ns};
	}
	qsort(all, count, sizeof(*all), by_interest);
	count = count < EXAMINED_MAX ? count : EXAMINED_MAX;
	for (size_t i = 0; i < count; i++)
		windows[i] = (struct why_window){query->from_ts, query->to_ts, all[i].thread};
	free(all);
	return count;
}

/* ---- those that wait ---- */

static struct why_waiter waiter_of(const struct why *why, uint32_t number, uint32_t tid)
{
	const struct why_instance *instance = &why->instances.data[number];
	const struct model *model = why->model;
	struct why_waiter waiter = {.instance = number};

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];

		if (part->thread >= model->threads.len ||
		    model->threads.data[part->thread].tid != tid)
			continue;
		if (!waiter.ns)
			waiter.part = i;
		waiter.ns += part->ns;
	}
	return waiter;
}

static int longest_first(const void *left, const void *right)
{
	const struct why_waiter *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->instance < b->instance ? -1 : a->instance > b->instance;
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
	struct why_query others = {.windows = windows, .names = query->names};
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

		if (waiter.ns && waiter.ns >= (instance->to_ts - instance->from_ts) / LISTED_PARTS)
			vec_add(&waiters->list, waiter);
	}
	if (waiters->list.len)
		qsort(waiters->list.data, waiters->list.len, sizeof(*waiters->list.data),
		      longest_first);
	keep_names_once(waiters);
	return 0;
}

void why_waiters_free(struct why_waiters *waiters)
{
	why_free(waiters->why);
	vec_free(&waiters->list);
}
