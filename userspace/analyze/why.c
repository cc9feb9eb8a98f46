// SPDX-License-Identifier: Apache-2.0
/* Which instances to explain: the slowest that were asked for, then one pass over the model. */
#include "analyze/why_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const why_cause_names[WHY_CAUSE_COUNT] = {
	[WHY_RUNNING] = "running",
	[WHY_CPU_CONTENTION] = "cpu-contention",
	[WHY_LOCK] = "lock",
	[WHY_GIL] = "gil",
	[WHY_DISK_READ] = "disk-read",
	[WHY_DISK_WRITE] = "disk-write",
	[WHY_PAGE_FAULT_MAJOR] = "page-fault-major",
	[WHY_PAGE_FAULT_MINOR] = "page-fault-minor",
	[WHY_CPU_QUOTA] = "cpu-quota",
	[WHY_STOPPED] = "stopped",
	[WHY_SLEEP] = "sleep",
	[WHY_TIMER] = "timer",
	[WHY_PIPE] = "pipe",
	[WHY_SOCKET] = "socket",
	[WHY_PROCESS_EXIT] = "process-exit",
	[WHY_GPU] = "gpu",
	[WHY_COLLECTIVE] = "collective",
	[WHY_INTERRUPT] = "interrupt",
	[WHY_USER_WORK] = "user-work",
	[WHY_NOT_RECORDED] = "not-recorded",
	[WHY_UNKNOWN] = "unknown",
};

const char *const why_cause_texts[WHY_CAUSE_COUNT] = {
	[WHY_RUNNING] = "its own code ran",
	[WHY_CPU_CONTENTION] = "runnable, but not yet on a CPU",
	[WHY_LOCK] = "the holder of a lock ran",
	[WHY_GIL] = "the holder of Python's interpreter lock ran",
	[WHY_DISK_READ] = "read from a disk",
	[WHY_DISK_WRITE] = "written to a disk",
	[WHY_PAGE_FAULT_MAJOR] = "pages read from a disk as they were touched",
	[WHY_PAGE_FAULT_MINOR] = "pages given as they were touched",
	[WHY_CPU_QUOTA] = "the CPU time of its cgroup was used up",
	[WHY_STOPPED] = "stopped by a signal or a tracer",
	[WHY_SLEEP] = "it asked to sleep",
	[WHY_TIMER] = "a timeout or timer had to run out",
	[WHY_PIPE] = "the other end of a pipe",
	[WHY_SOCKET] = "the peer of a socket",
	[WHY_PROCESS_EXIT] = "the end of a process",
	[WHY_GPU] = "the GPU",
	[WHY_COLLECTIVE] = "the other ranks",
	[WHY_INTERRUPT] = "an interrupt of which no more is known",
	[WHY_USER_WORK] = "another thread ran",
	[WHY_NOT_RECORDED] = "not recorded",
	[WHY_UNKNOWN] = "unknown: records are lost or contradict each other",
};

const char *const why_grade_names[] = {
	[WHY_GRADE_UNKNOWN] = "unknown",
	[WHY_GRADE_LIKELY] = "likely",
	[WHY_GRADE_CERTAIN] = "certain",
};

struct why *why_alloc(const struct model *model)
{
	struct why *why = calloc(1, sizeof(*why));

	if (!why)
		return NULL;
	why->model = model;
	why->texts = strtab_new();
	if (why->texts)
		return why;
	free(why);
	return NULL;
}

void why_free(struct why *why)
{
	if (!why)
		return;
	strtab_free(why->texts);
	vec_free(&why->instances);
	vec_free(&why->parts);
	vec_free(&why->steps);
	free(why);
}

struct why_instance why_instance_of(const struct model *model, uint32_t index)
{
	const struct model_span *span = &model->spans.data[index];

	return (struct why_instance){
		.span = index,
		.thread = span->thread,
		.from_ts = span->start_ts,
		.to_ts = span->end_ts,
		.begun_before = span->flags & MODEL_SPAN_BEGUN_BEFORE,
		.unfinished = span->flags & MODEL_SPAN_UNFINISHED,
	};
}

/* ---- which ---- */

static int instance_compare(const void *left, const void *right)
{
	const struct why_instance *a = left, *b = right;
	uint64_t a_ns = a->to_ts - a->from_ts, b_ns = b->to_ts - b->from_ts;

	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	if (a->from_ts != b->from_ts)
		return a->from_ts < b->from_ts ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

/* Leaves the slowest ones, in order. */
static void cut(struct why *why, uint32_t slowest)
{
	if (why->instances.len)
		qsort(why->instances.data, why->instances.len, sizeof(struct why_instance),
		      instance_compare);
	if (slowest && why->instances.len > slowest)
		why->instances.len = slowest;
}

static bool add_instance(struct why *why, uint32_t slowest, struct why_instance instance)
{
	if (!vec_push(&why->instances, instance))
		return false;
	/* Now and then, so that it costs little and no more than twice as many are held. */
	if (slowest && why->instances.len >= 2 * (size_t)slowest + 64)
		cut(why, slowest);
	return true;
}

static int pick_named(struct why *why, const struct why_query *query, struct error *err)
{
	const struct model *model = why->model;
	uint32_t sites = store_reader_site_count(model->reader);
	bool *wanted = calloc((size_t)sites + 1, sizeof(*wanted));
	bool good = wanted;

	for (uint32_t i = 0; good && i <= sites; i++)
		wanted[i] = !query->name || !strcmp(model_site(model, i)->name, query->name);
	for (size_t i = 0; good && i < model->spans.len; i++) {
		uint32_t site = model->spans.data[i].site;

		if (wanted[site < sites ? site : sites])
			good = add_instance(why, query->slowest,
					    why_instance_of(model, (uint32_t)i));
	}
	free(wanted);
	if (!good)
		return -ENOMEM;
	cut(why, query->slowest);
	if (!why->instances.len && query->name)
		return error_set(err, ENOENT, "no span '%s' in the capture", query->name);
	return 0;
}

static int pick_id(struct why *why, const struct why_query *query, struct error *err)
{
	uint32_t span = map_get(&why->model->span_ids, query->span_id);

	if (span == MAP_NONE || span >= why->model->spans.len)
		return error_set(err, ENOENT, "no span has the id %016" PRIx64, query->span_id);
	return vec_push(&why->instances, why_instance_of(why->model, span)) ? 0 : -ENOMEM;
}

/* A tid that was used again is as many threads as had it in the window. */
static int pick_thread(struct why *why, const struct why_query *query, struct error *err)
{
	const struct model *model = why->model;
	bool found = false;

	for (size_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		struct why_instance instance = {
			.span = MODEL_NONE,
			.thread = (uint32_t)i,
			.from_ts =
				query->from_ts > model->start_ts ? query->from_ts : model->start_ts,
			.to_ts = query->to_ts && query->to_ts < model->end_ts ? query->to_ts
									      : model->end_ts,
		};

		if (thread->tid != query->tid)
			continue;
		found = true;
		/* After its end it was not there; before its first sign that is not known. */
		if (thread->exit_ts && thread->exit_ts < instance.to_ts)
			instance.to_ts = thread->exit_ts;
		if (instance.to_ts > instance.from_ts && thread->first_ts <= instance.to_ts &&
		    !add_instance(why, query->slowest, instance))
			return -ENOMEM;
	}
	cut(why, query->slowest);
	if (why->instances.len)
		return 0;
	return error_set(err, ENOENT,
			 found ? "thread %" PRIu32 " was not there in that time"
			       : "no thread %" PRIu32 " in the capture",
			 query->tid);
}

/* ---- why ---- */

static int explain_all(struct why *why, const struct why_names *names)
{
	struct why_windows windows = {0};
	struct why_walker *walker = NULL;
	struct why_data data;
	int result = why_data_init(&data, why->model, names);

	if (result)
		return result;
	for (size_t i = 0; !result && i < why->instances.len; i++)
		if (!vec_push(&windows.list, (struct why_window){why->instances.data[i].from_ts,
								 why->instances.data[i].to_ts}))
			result = -ENOMEM;
	if (!result)
		result = why_data_load(&data, &windows);
	if (!result)
		result = why_walker_new(&walker, why, &data);
	for (size_t i = 0; !result && i < why->instances.len; i++)
		result = why_explain(walker, &why->instances.data[i]);
	why_walker_free(walker);
	vec_free(&windows.list);
	why_data_free(&data);
	return result;
}

int why_new(struct why **out, const struct model *model, const struct why_query *query,
	    struct error *err)
{
	struct why *why = why_alloc(model);
	int result = -ENOMEM;

	*out = NULL;
	if (why)
		result = query->tid       ? pick_thread(why, query, err)
			 : query->span_id ? pick_id(why, query, err)
					  : pick_named(why, query, err);
	if (!result)
		result = explain_all(why, query->names);
	if (result) {
		why_free(why);
		return error_set(err, -result, "out of memory; ask for fewer spans");
	}
	*out = why;
	return 0;
}
