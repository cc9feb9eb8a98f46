// SPDX-License-Identifier: Apache-2.0
#include "analyze/why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why_walk.h"

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
	[WHY_RUNNING] = "it computed itself",
	[WHY_CPU_CONTENTION] = "runnable behind another thread",
	[WHY_LOCK] = "the holder of a lock computed",
	[WHY_GIL] = "the holder of Python's interpreter lock computed",
	[WHY_DISK_READ] = "a device was read",
	[WHY_DISK_WRITE] = "a device was written",
	[WHY_PAGE_FAULT_MAJOR] = "a touched page was read from a device",
	[WHY_PAGE_FAULT_MINOR] = "pages were mapped when first touched",
	[WHY_CPU_QUOTA] = "its cgroup's CPU time was used up",
	[WHY_STOPPED] = "stopped by a signal or a tracer",
	[WHY_SLEEP] = "it asked to sleep",
	[WHY_TIMER] = "a timeout or timer ran out",
	[WHY_PIPE] = "the other end of a pipe",
	[WHY_SOCKET] = "the peer of a socket",
	[WHY_PROCESS_EXIT] = "a child process had to end",
	[WHY_GPU] = "a GPU",
	[WHY_COLLECTIVE] = "the other members of a collective operation",
	[WHY_INTERRUPT] = "an interrupt of which no more is known",
	[WHY_USER_WORK] = "another thread computed what was waited for",
	[WHY_NOT_RECORDED] = "the chain leaves what was recorded",
	[WHY_UNKNOWN] = "records are lost or contradict each other",
};

const char *const why_grade_names[] = {
	[WHY_GRADE_UNKNOWN] = "unknown",
	[WHY_GRADE_LIKELY] = "likely",
	[WHY_GRADE_CERTAIN] = "certain",
};

/* ---- which instances ---- */

static bool pick_window(struct why *why, const struct why_query *query, bool *found)
{
	const struct model *model = why->model;
	uint64_t from = query->from_ts > model->start_ts ? query->from_ts : model->start_ts;
	uint64_t to = query->to_ts < model->end_ts ? query->to_ts : model->end_ts;

	/* A tid that was used again is several threads: those that were there in the window. */
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		struct why_instance instance = {
			.span = MODEL_NONE, .thread = i, .from_ts = from, .to_ts = to};

		if (thread->tid != query->tid || !thread->traced)
			continue;
		*found = true;
		if (thread->exit_ts && thread->exit_ts < to)
			instance.to_ts = thread->exit_ts;
		if (thread->exit_ts && thread->first_ts > from && why->instances.len)
			instance.from_ts = thread->first_ts;
		if (instance.from_ts < instance.to_ts && !vec_push(&why->instances, instance))
			return false;
	}
	return true;
}

static bool pick_spans(struct why *why, const struct why_query *query)
{
	const struct model *model = why->model;

	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		struct why_instance instance = {
			.span = i,
			.thread = span->thread,
			.from_ts = span->start_ts,
			.to_ts = span->end_ts,
			.begun_before = span->flags & MODEL_SPAN_BEGUN_BEFORE,
			.unfinished = span->flags & MODEL_SPAN_UNFINISHED,
		};

		if (query->span_id && span->id != query->span_id)
			continue;
		if (query->name && strcmp(model_site(model, span->site)->name, query->name) != 0)
			continue;
		if (span->thread < model->threads.len && span->start_ts <= span->end_ts &&
		    !vec_push(&why->instances, instance))
			return false;
	}
	return true;
}

static int slower(const void *left, const void *right)
{
	const struct why_instance *a = left, *b = right;
	uint64_t a_ns = a->to_ts - a->from_ts, b_ns = b->to_ts - b->from_ts;

	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	if (a->from_ts != b->from_ts)
		return a->from_ts < b->from_ts ? -1 : 1;
	return a->span < b->span ? -1 : a->span > b->span;
}

static int pick(struct why *why, const struct why_query *query, struct error *err)
{
	bool found = false;

	if (query->tid ? !pick_window(why, query, &found) : !pick_spans(why, query))
		return error_set(err, ENOMEM, "out of memory");
	if (query->tid && !found)
		return error_set(err, ENOENT, "thread %u is not one of the recorded process's",
				 query->tid);
	if (why->instances.len)
		qsort(why->instances.data, why->instances.len, sizeof(*why->instances.data),
		      slower);
	if (query->slowest && why->instances.len > query->slowest)
		why->instances.len = query->slowest;
	return 0;
}

/* ---- one instance ---- */

static int larger(const void *left, const void *right)
{
	const struct why_sum *a = left, *b = right;

	if (a->part.ns != b->part.ns)
		return a->part.ns > b->part.ns ? -1 : 1;
	if (a->part.cause != b->part.cause)
		return a->part.cause < b->part.cause ? -1 : 1;
	return a->part.thread < b->part.thread ? -1 : a->part.thread > b->part.thread;
}

/* Losses in its time, or a begin that was not seen, leave nothing certain. */
static void judge(struct why_instance *instance, const struct model *model)
{
	for (size_t i = 0; i < model->losses.len; i++)
		if (model->losses.data[i].from_ts < instance->to_ts &&
		    model->losses.data[i].to_ts > instance->from_ts)
			instance->loss = true;
	if (instance->span != MODEL_NONE &&
	    model->spans.data[instance->span].flags & MODEL_SPAN_LOSS)
		instance->loss = true;
}

/* Few stretches that are less sure do not matter: the grade that nine tenths of the time have. */
static enum why_grade grade_of(const struct why_sum *sum)
{
	uint64_t ns = sum->grade_ns[WHY_GRADE_CERTAIN];

	if (ns >= sum->part.ns - sum->part.ns / 10)
		return WHY_GRADE_CERTAIN;
	ns += sum->grade_ns[WHY_GRADE_LIKELY];
	return ns >= sum->part.ns - sum->part.ns / 10 ? WHY_GRADE_LIKELY : WHY_GRADE_UNKNOWN;
}

static bool take_sums(struct why *why, struct why_walk *walk, struct why_instance *instance)
{
	bool doubtful = instance->loss || instance->begun_before;

	if (walk->sums.len)
		qsort(walk->sums.data, walk->sums.len, sizeof(*walk->sums.data), larger);
	instance->part = (uint32_t)why->parts.len;
	instance->part_count = (uint32_t)walk->sums.len;
	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_sum *sum = &walk->sums.data[i];

		sum->part.grade = grade_of(sum);
		if (doubtful && sum->part.grade == WHY_GRADE_CERTAIN)
			sum->part.grade = WHY_GRADE_LIKELY;
		sum->part.step = (uint32_t)why->steps.len;
		if (!vec_reserve(&why->steps, sum->part.step_count) ||
		    !vec_push(&why->parts, sum->part))
			return false;
		memcpy(&why->steps.data[why->steps.len], sum->chain,
		       sum->part.step_count * sizeof(*sum->chain));
		why->steps.len += sum->part.step_count;
	}
	return true;
}

static int explain(struct why *why, struct why_walk *walk, struct why_instance *instance)
{
	int result;

	walk->instance = instance;
	walk->end_ts = instance->to_ts;
	walk->depth = 0;
	walk->sums.len = 0;
	judge(instance, why->model);
	result = why_walk_time(walk, instance->thread, instance->from_ts, instance->to_ts, NULL);
	if (result)
		return result;
	return take_sums(why, walk, instance) ? 0 : -ENOMEM;
}

static int explain_all(struct why *why, struct why_walk *walk)
{
	struct windows windows = {0};
	size_t count = why->instances.len;
	int result = 0;

	for (size_t i = 0; i < count && !result; i++)
		if (!windows_add(&windows, why->instances.data[i].from_ts,
				 why->instances.data[i].to_ts))
			result = -ENOMEM;
	windows_merge(&windows);
	if (!result)
		result = why_evidence_init(walk);
	if (!result)
		result = why_intervals_load(&walk->intervals, why->model, &windows);
	windows_free(&windows);
	for (size_t i = 0; i < count && !result; i++)
		result = explain(why, walk, &why->instances.data[i]);
	return result;
}

int why_new(struct why **why, const struct model *model, const struct why_query *query,
	    struct error *err)
{
	struct why_walk walk = {.model = model, .names = query->names};
	int result;

	*why = NULL;
	if (!model->sched)
		return error_set(err, ENODATA,
				 "the capture has no scheduler records, which tell why threads "
				 "waited: record it with the source sched");
	*why = calloc(1, sizeof(**why));
	if (!*why)
		return error_set(err, ENOMEM, "out of memory");
	(*why)->model = model;
	walk.why = *why;
	(*why)->texts = strtab_new();
	result = (*why)->texts ? pick(*why, query, err) : error_set(err, ENOMEM, "out of memory");
	if (!result) {
		result = explain_all(*why, &walk);
		if (result == -ENOMEM)
			error_set(err, ENOMEM, "out of memory");
	}
	why_walk_free(&walk);
	if (result) {
		why_free(*why);
		*why = NULL;
	}
	return result;
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
