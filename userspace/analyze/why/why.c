// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/walk/why_instance.h"
#include "analyze/why/walk/why_walk.h"
#include "analyze/why/why_median_internal.h"
#include "analyze/why/why_varied_internal.h"
#include "analyze/why/why_walk_types.h"
#include "analyze/why/why_whole_internal.h"
#include "util/memory.h"
#include "util/terminal.h"

const struct why_cause_row why_causes[WHY_CAUSE_COUNT] = {
#define CAUSE(id, ...) [WHY_##id] = CAUSE_ROW(__VA_ARGS__),
#define CAUSE_ROW(name, text, colour, source, role, shown, spent, culprit)                         \
	{                                                                                          \
		name, text, TERMINAL_##colour, source, WHY_ROLE_##role, WHY_OBJECT_##shown, spent, \
			culprit                                                                    \
	}
	WHY_CAUSES(CAUSE)
#undef CAUSE_ROW
#undef CAUSE
};

const char *const why_grade_names[] = {
	[WHY_GRADE_UNKNOWN] = "unknown",
	[WHY_GRADE_LIKELY] = "likely",
	[WHY_GRADE_CERTAIN] = "certain",
};

/* ---- selection of instances ---- */

/* Surplus of instances at which the fastest ones are dropped. */
#define SLACK 4096

static bool wants_threads(const struct why_query *query)
{
	return (query->tid || query->comm || query->program) && !query->spans && !query->windows;
}

static bool wants_thread(const struct why_query *query, const struct model *model, uint32_t index)
{
	const struct model_thread *thread = &model->threads.data[index];
	const struct model_process *process = model_process_of(model, index);

	if (!thread->traced)
		return false;
	if (query->program)
		return thread->pid == query->program && process && process->main_thread == index;
	if (!query->comm)
		return thread->tid == query->tid;
	return !strcmp(model_thread_name(model, index), query->comm) ||
	       !strcmp(model_thread_kind_name(model, index), query->comm);
}

/* When the program began that waffle-bpf started in a thread; 0: it started none there. Before
 * that, the thread was a copy of waffle-bpf, which waited until the capture was ready. */
static uint64_t launched_ts(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);
	uint32_t parent, main;

	if (!process || !process->ppid)
		return 0;
	parent = map_get(&model->pids, process->ppid);
	if (parent == MAP_NONE)
		return 0;
	main = model->processes.data[parent].main_thread;
	if (main == MODEL_NONE || !model->threads.data[main].own)
		return 0;
	for (size_t i = 0; i < model->execs.len; i++)
		if (model->execs.data[i].thread == thread)
			return model->execs.data[i].ts;
	return 0;
}

static void pick_window(struct why *why, const struct why_query *query, bool *found)
{
	const struct model *model = why->model;
	uint64_t from = query->from_ts > model->start_ts ? query->from_ts : model->start_ts;
	uint64_t to = query->to_ts < model->end_ts ? query->to_ts : model->end_ts;

	/* A reused tid names several threads; takes those that existed in the window. */
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		struct why_instance instance = why_window_instance(i, from, to);
		uint64_t launched;

		if (!wants_thread(query, model, i))
			continue;
		*found = true;
		instance.program = query->program;
		if (thread->exit_ts && thread->exit_ts < to)
			instance.to_ts = thread->exit_ts;
		if (thread->exit_ts && thread->first_ts > from && !query->comm &&
		    why->instances.len)
			instance.from_ts = thread->first_ts;
		if (thread->born_ts > instance.from_ts)
			instance.from_ts = thread->born_ts;
		launched = launched_ts(model, i);
		if (launched > instance.from_ts && launched < instance.to_ts)
			instance.from_ts = launched;
		if (instance.from_ts < instance.to_ts)
			vec_add(&why->instances, instance);
	}
}

/* The threads of `why` whose waits are searched, and where those are added. */
struct wait_search {
	struct why *why;
	const struct why_query *query;
	struct why_instance *threads; /* by thread; to_ts 0: not wanted */
};

static void keep_slowest(struct why *why, uint32_t slowest);

static int wait_take(const struct model_interval *interval, void *arg)
{
	struct wait_search *search = arg;
	struct why_instance instance = search->threads[interval->thread];

	if (interval->state == WAFFLE_THREAD_RUNNING)
		return 0;
	if (instance.from_ts < interval->from_ts)
		instance.from_ts = interval->from_ts;
	if (instance.to_ts > interval->to_ts)
		instance.to_ts = interval->to_ts;
	if (instance.from_ts >= instance.to_ts)
		return 0;
	vec_add(&search->why->instances, instance);
	if (search->why->instances.len / 2 >= (size_t)search->query->waits + SLACK)
		keep_slowest(search->why, search->query->waits);
	return 0;
}

/* Replaces the threads' windows by their longest waits. */
static void pick_waits(struct why *why, const struct why_query *query)
{
	const struct model *model = why->model;
	struct wait_search search = {
		.why = why,
		.query = query,
		.threads = memory_zeroed(model->threads.len + 1, sizeof(*search.threads))};

	for (size_t i = 0; i < why->instances.len; i++)
		search.threads[why->instances.data[i].thread] = why->instances.data[i];
	why->instances.len = 0;
	model_each_interval(model, wait_take, &search);
	keep_slowest(why, query->waits);
	free(search.threads);
}

static int slower(const void *left, const void *right)
{
	const struct why_instance *a = left, *b = right;
	uint64_t a_ns = a->to_ts - a->from_ts, b_ns = b->to_ts - b->from_ts;

	if (a->ranks_behind != b->ranks_behind)
		return a->ranks_behind ? 1 : -1;
	if (a->once != b->once)
		return a->once ? 1 : -1;
	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	if (a->from_ts != b->from_ts)
		return a->from_ts < b->from_ts ? -1 : 1;
	return a->span < b->span ? -1 : a->span > b->span;
}

static void keep_slowest(struct why *why, uint32_t slowest)
{
	if (why->instances.len)
		qsort(why->instances.data, why->instances.len, sizeof(*why->instances.data),
		      slower);
	if (slowest && why->instances.len > slowest)
		why->instances.len = slowest;
}

/* Adds a span, unless the first `slowest` instances, which are in order, are all slower. 0: those
 * are not known yet. */
static void add_span(struct why *why, uint32_t span, uint32_t slowest)
{
	struct why_instance instance = why_span_instance(why->model, span);

	if (!slowest || slower(&instance, &why->instances.data[slowest - 1]) < 0)
		vec_add(&why->instances, instance);
}

/* The maximum number of instances to explain; 0: all. */
static uint32_t explained_max(const struct why_query *query)
{
	return query->varied ? query->slowest * WHY_VARIED_OF : query->slowest;
}

static void pick_spans(struct why *why, const struct why_query *query)
{
	const struct model *model = why->model;
	uint32_t slowest = 0, max = explained_max(query);

	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		if (query->span_id && span->id != query->span_id)
			continue;
		if (query->name && strcmp(model_site(model, span->site)->name, query->name) != 0)
			continue;
		if (!query->name && !query->span_id &&
		    site_is_bookkeeping(model_site(model, span->site)))
			continue;
		if (why_can_explain(model, span) && model_is_selected(model, i))
			add_span(why, i, slowest);
		if (max && why->instances.len / 2 >= (size_t)max + SLACK) {
			keep_slowest(why, max);
			slowest = max;
		}
	}
}

static void pick_these(struct why *why, const struct why_query *query)
{
	const struct model *model = why->model;

	for (size_t i = 0; i < query->span_count; i++)
		if (why_can_explain(model, &model->spans.data[query->spans[i]]))
			vec_add(&why->instances, why_span_instance(model, query->spans[i]));
}

static void add_medians(struct why *why)
{
	struct why_medians medians = {0};

	why_medians_find(&medians, why);
	for (size_t i = 0; i < medians.found.len; i++) {
		struct why_instance instance =
			why_span_instance(why->model, medians.found.data[i].span);

		instance.median_of = medians.found.data[i].of;
		vec_add(&why->instances, instance);
	}
	vec_free(&medians.found);
}

static void pick_windows(struct why *why, const struct why_query *query)
{
	for (size_t i = 0; i < query->window_count; i++) {
		const struct why_window *window = &query->windows[i];

		if (model_is_traced(why->model, window->thread) && window->from_ts < window->to_ts)
			vec_add(&why->instances,
				why_window_instance(window->thread, window->from_ts,
						    window->to_ts));
	}
}

static int pick(struct why *why, const struct why_query *query, struct error *err)
{
	bool found = false;

	if (query->spans)
		pick_these(why, query);
	else if (query->windows)
		pick_windows(why, query);
	else if (wants_threads(query))
		pick_window(why, query, &found);
	else
		pick_spans(why, query);
	if (wants_threads(query) && !found && query->comm)
		return error_set(err, ENOENT, "no thread is named %s", query->comm);
	if (wants_threads(query) && !found)
		return error_set(err, ENOENT, "thread %u is not one of the recorded process's",
				 query->tid);
	if (wants_threads(query) && query->waits)
		pick_waits(why, query);
	keep_slowest(why, wants_threads(query) ? 0 : explained_max(query));
	if (query->median && !wants_threads(query))
		add_medians(why);
	return 0;
}

/* ---- all of them ---- */

static void explain_all(struct why *why, struct why_walk *walk)
{
	struct windows windows = {0};

	for (size_t i = 0; i < why->instances.len; i++)
		windows_add(&windows, why->instances.data[i].from_ts, why->instances.data[i].to_ts);
	windows_merge(&windows);
	why_intervals_load(&walk->intervals, &windows);
	windows_free(&windows);
	for (size_t i = 0; i < why->instances.len; i++) {
		struct why_instance *instance = &why->instances.data[i];

		why_instance_walk(walk, instance);
		why_instance_take(why, walk, instance);
	}
}

static int finish(struct why **why, struct why_walk *walk, int result)
{
	why_walk_free(walk);
	if (result < 0) {
		why_free(*why);
		*why = NULL;
	}
	return result;
}

int why_new(struct why **why, const struct model *model, const struct why_query *query,
	    struct error *err)
{
	struct why_walk walk;
	int result = why_start(why, &walk, model, query->names, err);

	result = result ?: pick(*why, query, err);
	if (!result) {
		why_walk_prepare(&walk, NULL, query->timeline);
		walk.through_tid = query->through_tid;
		explain_all(*why, &walk);
		if (query->varied && !wants_threads(query))
			why_varied_keep(*why, query->slowest);
	}
	return finish(why, &walk, result);
}

void why_free(struct why *why)
{
	if (!why)
		return;
	strtab_free(why->texts);
	vec_free(&why->instances);
	vec_free(&why->parts);
	vec_free(&why->steps);
	vec_free(&why->locks);
	vec_free(&why->places);
	sample_places_free(why->sample_places);
	vec_free(&why->records);
	vec_free(&why->stops);
	vec_free(&why->ios);
	free(why);
}
