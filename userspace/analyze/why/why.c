// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/why_await_internal.h"
#include "analyze/why/why_each_internal.h"
#include "analyze/why/why_median_internal.h"
#include "analyze/why/why_parts_internal.h"
#include "analyze/why/why_slices_internal.h"
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
	return (query->tid || query->comm) && !query->spans && !query->windows;
}

static bool wants_thread(const struct why_query *query, const struct model *model, uint32_t index)
{
	const struct model_thread *thread = &model->threads.data[index];

	if (!thread->traced)
		return false;
	return query->comm ? !strcmp(model_thread_name(model, index), query->comm)
			   : thread->tid == query->tid;
}

static void pick_window(struct why *why, const struct why_query *query, bool *found)
{
	const struct model *model = why->model;
	uint64_t from = query->from_ts > model->start_ts ? query->from_ts : model->start_ts;
	uint64_t to = query->to_ts < model->end_ts ? query->to_ts : model->end_ts;

	/* A reused tid names several threads; takes those that existed in the window. */
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		struct why_instance instance = {.span = MODEL_NONE,
						.thread = i,
						.from_ts = from,
						.to_ts = to,
						.ended_by = MODEL_NONE};

		if (!wants_thread(query, model, i))
			continue;
		*found = true;
		if (thread->exit_ts && thread->exit_ts < to)
			instance.to_ts = thread->exit_ts;
		if (thread->exit_ts && thread->first_ts > from && !query->comm &&
		    why->instances.len)
			instance.from_ts = thread->first_ts;
		if (thread->born_ts > instance.from_ts)
			instance.from_ts = thread->born_ts;
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

static struct why_instance span_instance(const struct model *model, uint32_t index)
{
	const struct model_span *span = &model->spans.data[index];

	return (struct why_instance){
		.span = index,
		.thread = span->thread,
		.from_ts = span->start_ts,
		.to_ts = span->end_ts,
		.begun_before = span->flags & MODEL_SPAN_BEGUN_BEFORE,
		.unfinished = span->flags & MODEL_SPAN_UNFINISHED,
		.left = span->flags & MODEL_SPAN_LEFT,
		.ranks_behind = !model_span_ranks(span),
		.ended_by = span->flags & MODEL_SPAN_MOVED ? span->end_thread : MODEL_NONE,
	};
}

static int slower(const void *left, const void *right)
{
	const struct why_instance *a = left, *b = right;
	uint64_t a_ns = a->to_ts - a->from_ts, b_ns = b->to_ts - b->from_ts;

	if (a->ranks_behind != b->ranks_behind)
		return a->ranks_behind ? 1 : -1;
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

static void pick_spans(struct why *why, const struct why_query *query)
{
	const struct model *model = why->model;

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
			vec_add(&why->instances, span_instance(model, i));
		if (query->slowest && why->instances.len / 2 >= (size_t)query->slowest + SLACK)
			keep_slowest(why, query->slowest);
	}
}

static void pick_these(struct why *why, const struct why_query *query)
{
	const struct model *model = why->model;

	for (size_t i = 0; i < query->span_count; i++)
		if (why_can_explain(model, &model->spans.data[query->spans[i]]))
			vec_add(&why->instances, span_instance(model, query->spans[i]));
}

static void add_medians(struct why *why)
{
	struct why_medians medians = {0};

	why_medians_find(&medians, why);
	for (size_t i = 0; i < medians.found.len; i++) {
		struct why_instance instance =
			span_instance(why->model, medians.found.data[i].span);

		instance.median_of = medians.found.data[i].of;
		vec_add(&why->instances, instance);
	}
	vec_free(&medians.found);
}

static void pick_windows(struct why *why, const struct why_query *query)
{
	for (size_t i = 0; i < query->window_count; i++) {
		const struct why_window *window = &query->windows[i];
		struct why_instance instance = {.span = MODEL_NONE,
						.thread = window->thread,
						.from_ts = window->from_ts,
						.to_ts = window->to_ts,
						.ended_by = MODEL_NONE};

		if (model_is_traced(why->model, window->thread) && window->from_ts < window->to_ts)
			vec_add(&why->instances, instance);
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
	keep_slowest(why, wants_threads(query) ? 0 : query->slowest);
	if (query->median && !wants_threads(query))
		add_medians(why);
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

/* Up to this many similar threads stay apart. */
#define ALIKE_MAX 4

static int compare(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static uint32_t pid_of(const struct model *model, const struct why_sum *sum)
{
	return model->threads.data[sum->part.thread].pid;
}

/*
 * The process that a culprit shares with those that are alike. 0: it need not be the same one, as
 * with the many short processes of a build. Ranks, and threads in a span, are told apart by their
 * process.
 */
static uint32_t alike_pid(const struct model *model, const struct why_sum *sum)
{
	const struct model_process *process = model_process_of(model, sum->part.thread);
	bool ranked = process && process->rank != MODEL_NONE;

	return ranked || sum->site != MODEL_NONE ? pid_of(model, sum) : 0;
}

/* 0: the culprits differ only in their thread, or their process. */
static int alike(const struct model *model, const struct why_sum *a, const struct why_sum *b)
{
	uint32_t on_a = model_host_of(model, a->part.thread);
	uint32_t on_b = model_host_of(model, b->part.thread);

	return compare(a->part.cause, b->part.cause)
		       ?: compare(model->threads.data[a->part.thread].comm,
				  model->threads.data[b->part.thread].comm)
			       ?: compare(a->site, b->site)
				       ?: compare(a->part.object, b->part.object)
					       ?: compare(on_a, on_b)
						       ?: compare(alike_pid(model, a),
								  alike_pid(model, b));
}

/* Groups similar sums, those of each process together. */
static int alike_compare(const void *left, const void *right, void *arg)
{
	const struct why_sum *a = left, *b = right;
	const struct model *model = arg;

	return alike(model, a, b) ?: compare(pid_of(model, a), pid_of(model, b)) ?: larger(a, b);
}

static void add_sum(struct why_walk *walk, struct why_sum *to, const struct why_sum *sum)
{
	why_sampled_join(walk, to, sum);
	to->part.ns += sum->part.ns;
	to->part.stretches += sum->part.stretches;
	to->part.threads += sum->part.threads;
	for (unsigned i = 0; i <= WHY_GRADE_CERTAIN; i++)
		to->grade_ns[i] += sum->grade_ns[i];
}

/* Moves the sums of threads other than the instance's own to the front, and returns their
 * number. */
static size_t others_first(struct why_walk *walk, uint32_t own)
{
	size_t others = 0;

	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_sum sum = walk->sums.data[i];

		if (sum.part.thread == own || sum.part.thread >= walk->model->threads.len)
			continue;
		walk->sums.data[i] = walk->sums.data[others];
		walk->sums.data[others++] = sum;
	}
	return others;
}

/* Merges similar sums, which are grouped by process, into one: the largest, with the time of
 * all. */
static struct why_sum group_sum(struct why_walk *walk, const struct why_sum *sums, size_t count)
{
	struct why_sum all;
	size_t most = 0;
	uint32_t processes = 1;

	for (size_t i = 1; i < count; i++) {
		processes += pid_of(walk->model, &sums[i]) != pid_of(walk->model, &sums[i - 1]);
		if (larger(&sums[i], &sums[most]) < 0)
			most = i;
	}
	all = sums[most];
	all.part.processes = processes;
	for (size_t i = 0; i < count; i++)
		if (i != most)
			add_sum(walk, &all, &sums[i]);
	return all;
}

/* Merges the sums of many similar threads. */
static void fold(struct why_walk *walk, uint32_t own)
{
	struct why_sum *sums = walk->sums.data;
	size_t others = others_first(walk, own), kept = 0;

	if (others <= ALIKE_MAX)
		return;
	qsort_r(sums, others, sizeof(*sums), alike_compare, (void *)walk->model);
	for (size_t i = 0, end; i < others; i = end) {
		for (end = i + 1; end < others && !alike(walk->model, &sums[i], &sums[end]);)
			end++;
		if (end - i <= ALIKE_MAX) {
			memmove(&sums[kept], &sums[i], (end - i) * sizeof(*sums));
			kept += end - i;
			continue;
		}
		sums[kept] = group_sum(walk, &sums[i], end - i);
		kept++;
	}
	memmove(&sums[kept], &sums[others], (walk->sums.len - others) * sizeof(*sums));
	walk->sums.len -= others - kept;
}

/* Notes whether records were dropped during the instance. */
static void judge(struct why_instance *instance, const struct why_walk *walk)
{
	const struct model *model = walk->model;

	if (windows_touch(&walk->all_losses, instance->from_ts, instance->to_ts))
		instance->loss = true;
	if (instance->span != MODEL_NONE &&
	    model->spans.data[instance->span].flags & MODEL_SPAN_LOSS)
		instance->loss = true;
}

static void grade(struct why_sum *sum, const struct why_instance *instance)
{
	/* We can only guess when the span moved to the other thread. */
	bool elsewhere = instance->ended_by != MODEL_NONE;
	bool doubtful = instance->loss || instance->begun_before || elsewhere;

	sum->part.grade = why_grade_of(sum->grade_ns, sum->part.ns);
	if (doubtful && sum->part.grade == WHY_GRADE_CERTAIN)
		sum->part.grade = WHY_GRADE_LIKELY;
}

/* Adds time that waffle-bpf itself took for the capture. */
static void add_own(struct why_instance *instance, const struct why_walk *walk,
		    const struct why_part *part)
{
	if (part->object &&
	    (part->object == walk->own_cpu_text || part->object == walk->own_hold_text))
		instance->own_ns += part->ns;
}

static void take_sums(struct why *why, struct why_walk *walk, struct why_instance *instance)
{
	if (walk->sums.len)
		qsort(walk->sums.data, walk->sums.len, sizeof(*walk->sums.data), larger);
	instance->part = (uint32_t)why->parts.len;
	instance->part_count = (uint32_t)walk->sums.len;
	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_sum *sum = &walk->sums.data[i];

		grade(sum, instance);
		add_own(instance, walk, &sum->part);
		why_sampled_take(walk, sum, &sum->part);
		sum->part.step = (uint32_t)why->steps.len;
		vec_need(&why->steps, sum->part.step_count);
		vec_add(&why->parts, sum->part);
		memcpy(&why->steps.data[why->steps.len], walk->chains.data[sum->chain].steps,
		       sum->part.step_count * sizeof(struct why_step));
		for (uint32_t k = 0; k < sum->part.step_count; k++) {
			struct why_step *step = &why->steps.data[why->steps.len + k];

			if (step->series_last)
				why_series_describe(walk, step);
		}
		why->steps.len += sum->part.step_count;
	}
}

/* Like take_sums(), but unsorted and without chains. */
static void take_parts(struct why *why, struct why_walk *walk, struct why_instance *instance)
{
	instance->part = 0;
	instance->part_count = (uint32_t)walk->sums.len;
	why->parts.len = 0;
	why->places.len = 0;
	vec_need(&why->parts, walk->sums.len);
	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_sum *sum = &walk->sums.data[i];

		grade(sum, instance);
		why_sampled_take(walk, sum, &sum->part);
		why->parts.data[why->parts.len++] = sum->part;
	}
}

static void walk_instance(struct why_walk *walk, struct why_instance *instance)
{
	walk->instance = instance;
	walk->end_ts = instance->to_ts;
	walk->depth = 0;
	walk->sums.len = 0;
	walk->sampled.len = 0;
	if (walk->more_sums.len)
		map_free(&walk->more_sums);
	walk->instances++;
	why_await_forget(&walk->awaits);
	if (instance->ended_by < walk->model->threads.len)
		why_walk_handed_over(walk, instance);
	else
		why_walk_time(walk, instance->thread, instance->from_ts, instance->to_ts, NULL);
	/* Without chains, the caller adds up instances by names, not by threads. */
	if (!walk->no_chains)
		fold(walk, instance->thread);
}

static void explain_all(struct why *why, struct why_walk *walk)
{
	struct windows windows = {0};

	for (size_t i = 0; i < why->instances.len; i++)
		windows_add(&windows, why->instances.data[i].from_ts, why->instances.data[i].to_ts);
	windows_merge(&windows);
	why_evidence_init(walk, NULL);
	why_intervals_load(&walk->intervals, &windows);
	windows_free(&windows);
	for (size_t i = 0; i < why->instances.len; i++) {
		struct why_instance *instance = &why->instances.data[i];

		walk_instance(walk, instance);
		judge(instance, walk);
		take_sums(why, walk, instance);
	}
}

struct why *why_walk_begin(struct why_walk *walk, const struct model *model,
			   struct stack_names *names)
{
	struct why *why = memory_zeroed(1, sizeof(*why));

	why->model = model;
	why->texts = strtab_make();
	*walk = (struct why_walk){.why = why, .model = model, .names = names};
	why_intervals_init(&walk->intervals, model);
	return why;
}

static int start(struct why **why, struct why_walk *walk, const struct model *model,
		 const struct why_query *query, struct error *err)
{
	*walk = (struct why_walk){0};
	*why = NULL;
	if (!model->sched)
		return error_set(err, ENODATA,
				 "the capture has no scheduler records, which show why threads "
				 "waited; record it with the source sched");
	*why = why_walk_begin(walk, model, query->names);
	why_await_init(&walk->awaits, model, query->timeline);
	return 0;
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
	int result = start(why, &walk, model, query, err);

	result = result ?: pick(*why, query, err);
	if (!result)
		explain_all(*why, &walk);
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
	vec_free(&why->places);
	sample_places_free(why->sample_places);
	vec_free(&why->records);
	vec_free(&why->stops);
	vec_free(&why->ios);
	free(why);
}

/* ---- one instance after another ---- */

/* Number of switches around a slice whose intervals are loaded with it. */
#define AROUND (WHY_EACH_SWITCHES / 8)

/* Adds the time around a slice, but none before the first slice or behind the last one. */
static void batch_widen(const struct model *model, struct why_batch *batch, bool first, bool last)
{
	size_t from = why_switch_after(model, batch->from_ts);
	size_t to = why_switch_after(model, batch->to_ts) + AROUND;

	if (!first && from >= AROUND)
		batch->from_ts = model->switches.data[from - AROUND].ts;
	if (!last && to < model->switches.len)
		batch->to_ts = model->switches.data[to].ts;
}

struct why_batch why_batch_from(const struct model *model, uint32_t first)
{
	size_t at;
	struct why_batch batch = {.first = first, .end = first};
	uint64_t limit = UINT64_MAX;

	while (batch.first < model->spans.len &&
	       !why_is_counted(model, &model->spans.data[batch.first]))
		batch.first++;
	batch.end = batch.first;
	if (batch.first == model->spans.len)
		return batch;
	batch.from_ts = model->spans.data[batch.first].start_ts;
	at = why_switch_after(model, batch.from_ts) + WHY_EACH_SWITCHES;
	if (at < model->switches.len)
		limit = model->switches.data[at].ts;
	for (; batch.end < model->spans.len; batch.end++) {
		const struct model_span *span = &model->spans.data[batch.end];

		if (!why_is_counted(model, span) || span->end_ts <= batch.to_ts)
			continue;
		if (span->start_ts > limit)
			break;
		batch.to_ts = span->end_ts;
	}
	batch_widen(model, &batch, !first, batch.end == model->spans.len);
	return batch;
}

int why_batch_explain(struct why_walk *walk, const struct model_marks *marks,
		      const struct why_batch *batch, why_each_fn each, void *arg)
{
	const struct model *model = walk->model;
	struct windows windows = {0};
	int result = 0;

	if (batch->first < batch->end) {
		windows_add(&windows, batch->from_ts, batch->to_ts);
		why_intervals_load_next(&walk->intervals, marks, &windows);
	}
	for (uint32_t i = batch->first; i < batch->end && !result; i++) {
		struct why_instance instance = span_instance(model, i);

		if (!why_is_counted(model, &model->spans.data[i]))
			continue;
		instance.loss = model->spans.data[i].flags & MODEL_SPAN_LOSS;
		walk_instance(walk, &instance);
		take_parts(walk->why, walk, &instance);
		result = each(walk->why, &instance, arg);
	}
	windows_free(&windows);
	return result;
}

int why_slices(const struct model *model, struct stack_names *names,
	       const struct why_slice_fns *fns, void *arg, struct error *err)
{
	struct why_walk walk;
	struct why *why;
	int result = start(&why, &walk, model, &(struct why_query){.names = names}, err);

	walk.no_chains = true;
	if (!result) {
		why_evidence_init(&walk, NULL);
		result = why_slices_explain(&walk, fns, arg);
	}
	why_walk_free(&walk);
	why_free(why);
	return result;
}

int why_each(struct why **why, const struct model *model, struct stack_names *names,
	     why_each_fn each, void *arg, struct error *err)
{
	struct why_walk walk;
	int result = start(why, &walk, model, &(struct why_query){.names = names}, err);

	struct model_marks *marks = NULL;

	walk.no_chains = true;
	if (!result) {
		why_evidence_init(&walk, NULL);
		marks = model_marks_new(model, WHY_EACH_SWITCHES / 4, why_intervals_note,
					&walk.intervals);
	}
	for (uint32_t next = 0; next < model->spans.len && !result;) {
		struct why_batch batch = why_batch_from(model, next);

		result = why_batch_explain(&walk, marks, &batch, each, arg);
		next = batch.end;
	}
	model_marks_free(marks);
	return finish(why, &walk, result);
}
