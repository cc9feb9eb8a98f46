// SPDX-License-Identifier: Apache-2.0
#include "analyze/report.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/why/why_busiest.h"
#include "analyze/why/why_pick.h"
#include "model/gpu/gpu_timeline.h"
#include "util/keymap.h"
#include "util/memory.h"
#include "util/threads.h"

static const char *const sort_names[] = {
	[REPORT_SORT_TOTAL] = "total",       [REPORT_SORT_COUNT] = "count",
	[REPORT_SORT_P50] = "p50",           [REPORT_SORT_P99] = "p99",
	[REPORT_SORT_MAX] = "max",           [REPORT_SORT_RUNNING] = "running",
	[REPORT_SORT_RUNNABLE] = "runnable", [REPORT_SORT_BLOCKED] = "blocked",
	[REPORT_SORT_NAME] = "name",
};
_Static_assert(sizeof(sort_names) / sizeof(*sort_names) == REPORT_SORT_COUNT_OF,
	       "each sort has a name");

const char *report_sort_name(unsigned sort)
{
	return sort < REPORT_SORT_COUNT_OF ? sort_names[sort] : NULL;
}

/* State while a report is built. Slot site_count stands for unknown sites. */
struct making {
	struct report *report;
	const struct model *model;
	uint32_t site_count;
	uint32_t *rows;       /* site → row in spans, events or counters, depending on its kind */
	uint64_t *durations;  /* of whole spans, grouped by row */
	size_t *ends;         /* end of each row's durations so far */
	struct keymap row_of; /* kind, name and category → row */
};

static uint32_t site_slot(const struct making *making, uint32_t site)
{
	return site < making->site_count ? site : making->site_count;
}

/* ---- rows ---- */

/* Whether the table of names counts the span. */
static bool has_row(const struct model *model, size_t span)
{
	return model_is_selected(model, span) &&
	       !site_is_bookkeeping(model_site(model, model->spans.data[span].site));
}

static uint32_t add_row(struct report *report, uint32_t slot, const struct site_info *site,
			unsigned kind)
{
	if (kind == WAFFLE_SITE_SPAN) {
		vec_add(&report->spans,
			(struct report_span){.name = site->name,
					     .category = site->category,
					     .site = slot,
					     .slowest = {MODEL_NONE, MODEL_NONE, MODEL_NONE}});
		return (uint32_t)report->spans.len - 1;
	}
	if (kind == WAFFLE_SITE_COUNTER) {
		vec_add(&report->counters,
			(struct report_counter){.name = site->name, .category = site->category});
		return (uint32_t)report->counters.len - 1;
	}
	vec_add(&report->events, (struct report_event){.name = site->name,
						       .category = site->category,
						       .kind = (uint16_t)kind});
	return (uint32_t)report->events.len - 1;
}

/* Sites of the same kind, name and category share a row. */
static void site_row(struct making *making, uint32_t slot, unsigned kind)
{
	const struct site_info *site = model_site(making->model, slot);
	size_t name_len = strlen(site->name), category_len = strlen(site->category);
	size_t len = name_len + category_len + 2;
	char *key = memory_get(len);
	uint32_t row;

	key[0] = (char)kind;
	memcpy(key + 1, site->name, name_len + 1);
	memcpy(key + 2 + name_len, site->category, category_len);
	row = keymap_get(&making->row_of, key, len);
	if (row == MAP_NONE) {
		row = add_row(making->report, slot, site, kind);
		keymap_put(&making->row_of, key, len, row);
	}
	free(key);
	making->rows[slot] = row;
}

/* Makes rows for the sites that were hit, in the order of the sites. */
static void make_rows(struct making *making)
{
	const struct model *model = making->model;
	bool *hit = memory_zeroed((size_t)making->site_count + 1, sizeof(*hit));

	for (size_t i = 0; i < model->spans.len; i++)
		if (has_row(model, i))
			hit[site_slot(making, model->spans.data[i].site)] = true;
	for (size_t i = 0; i < model->events.len; i++)
		hit[site_slot(making, model->events.data[i].site)] = true;
	for (uint32_t slot = 0; slot <= making->site_count; slot++)
		if (hit[slot])
			site_row(making, slot,
				 slot < making->site_count ? model_site(model, slot)->kind
							   : WAFFLE_SITE_SPAN);
	free(hit);
}

/* ---- spans ---- */

static uint64_t span_duration(const struct model *model, uint32_t index)
{
	return model->spans.data[index].end_ts - model->spans.data[index].start_ts;
}

/* Spans whose duration is not certain come last, see model_span_ranks(). */
static bool is_slower(const struct model *model, uint32_t span, uint32_t than)
{
	bool ranks = model_span_ranks(&model->spans.data[span]);

	if (ranks != model_span_ranks(&model->spans.data[than]))
		return ranks;
	return span_duration(model, span) > span_duration(model, than);
}

static void keep_slowest(struct report_span *row, const struct model *model, uint32_t index)
{
	unsigned at = REPORT_SLOWEST_PER_NAME;

	while (at && (row->slowest[at - 1] == MODEL_NONE ||
		      is_slower(model, index, row->slowest[at - 1])))
		at--;
	for (unsigned i = REPORT_SLOWEST_PER_NAME - 1; i > at; i--)
		row->slowest[i] = row->slowest[i - 1];
	if (at < REPORT_SLOWEST_PER_NAME)
		row->slowest[at] = index;
}

static void count_span(struct report_span *row, const struct model *model, uint32_t index)
{
	const struct model_span *span = &model->spans.data[index];
	uint64_t duration = span->end_ts - span->start_ts;

	keep_slowest(row, model, index);
	row->with_loss += !!(span->flags & MODEL_SPAN_LOSS);
	row->unfinished += !!(span->flags & MODEL_SPAN_UNFINISHED);
	row->begun_before += !!(span->flags & MODEL_SPAN_BEGUN_BEFORE);
	row->left += !!(span->flags & MODEL_SPAN_LEFT);
	if (span->flags & MODEL_SPAN_CUT)
		return;
	row->count++;
	row->total_ns += duration;
	if (duration > row->max_ns)
		row->max_ns = duration;
	if (!(span->flags & MODEL_SPAN_HAS_SCHED))
		return;
	row->sched_count++;
	row->sched_ns += duration;
	row->running_ns += span->running_ns;
	row->runnable_ns += span->runnable_ns;
	row->blocked_ns += duration - span->running_ns - span->runnable_ns;
}

/* The row of a span; MODEL_NONE: it has none. */
static uint32_t span_row(const struct making *making, size_t index)
{
	const struct model_span *span = &making->model->spans.data[index];

	return !has_row(making->model, index) ? MODEL_NONE
					      : making->rows[site_slot(making, span->site)];
}

static void percentiles(struct making *making)
{
	const struct model *model = making->model;
	struct report *report = making->report;
	size_t at = 0;

	making->durations = memory_get((model->spans.len + 1) * sizeof(*making->durations));
	making->ends = memory_zeroed(report->spans.len + 1, sizeof(*making->ends));
	for (size_t i = 0; i < report->spans.len; i++) {
		making->ends[i] = at;
		at += report->spans.data[i].count;
	}
	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		uint32_t row = span_row(making, i);

		if (!(span->flags & MODEL_SPAN_CUT) && row != MODEL_NONE)
			making->durations[making->ends[row]++] = span->end_ts - span->start_ts;
	}
	for (size_t i = 0; i < report->spans.len; i++) {
		struct report_span *row = &report->spans.data[i];
		uint64_t *durations = making->durations + making->ends[i] - row->count;

		if (!row->count)
			continue;
		row->p50_ns =
			select_rank(durations, row->count, select_percentile_rank(row->count, 50));
		row->p99_ns =
			select_rank(durations, row->count, select_percentile_rank(row->count, 99));
	}
	free(making->durations);
	making->durations = NULL;
}

static void count_spans(struct making *making)
{
	const struct model *model = making->model;

	for (size_t i = 0; i < model->spans.len; i++) {
		uint32_t row = span_row(making, i);

		if (row == MODEL_NONE)
			making->report->bookkeeping += model_is_selected(model, i);
		else
			count_span(&making->report->spans.data[row], model, (uint32_t)i);
	}
	percentiles(making);
}

/* ---- events and counters ---- */

static bool counter_value(const struct model *model, const struct model_event *event,
			  double *number)
{
	struct value_walk walk = model_values(model, event->site, event->frame);
	struct value value;

	if (!value_walk_next(&walk, &value))
		return false;
	switch (value.type) {
	case WAFFLE_KEY_I64:
		*number = (double)value.i64;
		return true;
	case WAFFLE_KEY_U64:
		*number = (double)value.u64;
		return true;
	case WAFFLE_KEY_F64:
		*number = value.f64;
		return isfinite(value.f64);
	default:
		return false;
	}
}

static void count_value(struct report_counter *row, const struct model *model,
			const struct model_event *event)
{
	double value;

	if (!counter_value(model, event, &value)) {
		row->ignored++;
		return;
	}
	if (!row->count++) {
		row->min = value;
		row->max = value;
	}
	row->min = value < row->min ? value : row->min;
	row->max = value > row->max ? value : row->max;
	row->last = value;
	row->mean += (value - row->mean) / (double)row->count;
}

static void count_events(struct making *making)
{
	const struct model *model = making->model;

	for (size_t i = 0; i < model->events.len; i++) {
		const struct model_event *event = &model->events.data[i];
		uint32_t row = making->rows[site_slot(making, event->site)];

		if (model_site(model, event->site)->kind == WAFFLE_SITE_COUNTER)
			count_value(&making->report->counters.data[row], model, event);
		else
			making->report->events.data[row].count++;
	}
}

/* ---- slowest spans ---- */

static int slow_compare(const void *left, const void *right, void *arg)
{
	const uint32_t *a = left, *b = right;

	if (is_slower(arg, *a, *b))
		return -1;
	return is_slower(arg, *b, *a) ? 1 : *a < *b ? -1 : *a > *b;
}

static void find_slowest(struct report *report, uint32_t wanted)
{
	VEC(uint32_t) order = {0};

	for (size_t i = 0; i < report->spans.len; i++)
		for (unsigned j = 0; j < REPORT_SLOWEST_PER_NAME; j++)
			if (report->spans.data[i].slowest[j] != MODEL_NONE)
				vec_add(&order, report->spans.data[i].slowest[j]);
	if (order.len)
		qsort_r(order.data, order.len, sizeof(*order.data), slow_compare,
			(void *)report->model);
	for (size_t i = 0; i < order.len && i < wanted; i++)
		vec_add(&report->slowest, (struct report_slow){.span = order.data[i],
							       .syscall = -1,
							       .args = MODEL_NONE,
							       .waker = MODEL_NONE});
	vec_free(&order);
}

static void slow_interval(struct report_slow *slow, const struct model_span *span,
			  const struct model_interval *interval)
{
	uint64_t from = interval->from_ts > span->start_ts ? interval->from_ts : span->start_ts;
	uint64_t to = interval->to_ts < span->end_ts ? interval->to_ts : span->end_ts;

	if (interval->state == WAFFLE_THREAD_BLOCKED && to > from && to - from > slow->wait_ns) {
		slow->wait_ns = to - from;
		slow->wait_from_ts = from;
		slow->task_state = interval->task_state;
		slow->syscall = interval->syscall;
		slow->args = interval->args;
		slow->waker = MODEL_NONE;
		slow->interrupt = false;
	} else if (interval->state == WAFFLE_THREAD_RUNNABLE && interval->woken && slow->wait_ns &&
		   slow->wait_from_ts + slow->wait_ns == interval->from_ts) {
		slow->interrupt = interval->interrupt;
		slow->waker = interval->interrupt ? MODEL_NONE : interval->by;
	}
}

static int look_at_interval(const struct model_interval *interval, void *arg)
{
	struct report *report = arg;

	if (interval->state == WAFFLE_THREAD_RUNNING)
		return 0;
	for (size_t i = 0; i < report->slowest.len; i++) {
		struct report_slow *slow = &report->slowest.data[i];
		const struct model_span *span = &report->model->spans.data[slow->span];

		if (span->thread == interval->thread && interval->from_ts <= span->end_ts &&
		    interval->to_ts > span->start_ts)
			slow_interval(slow, span, interval);
	}
	return 0;
}

/* ---- order ---- */

static uint64_t sort_key(const struct report_span *row, enum report_sort sort)
{
	switch (sort) {
	case REPORT_SORT_COUNT:
		return row->count;
	case REPORT_SORT_P50:
		return row->p50_ns;
	case REPORT_SORT_P99:
		return row->p99_ns;
	case REPORT_SORT_MAX:
		return row->max_ns;
	case REPORT_SORT_RUNNING:
		return row->running_ns;
	case REPORT_SORT_RUNNABLE:
		return row->runnable_ns;
	case REPORT_SORT_BLOCKED:
		return row->blocked_ns;
	case REPORT_SORT_NAME:
		return 0;
	default:
		return row->total_ns;
	}
}

static int row_compare(const void *left, const void *right, void *arg)
{
	const struct report_span *a = left, *b = right;
	const enum report_sort *sort = arg;
	uint64_t key_a = sort_key(a, *sort), key_b = sort_key(b, *sort);
	int order;

	if (key_a != key_b)
		return key_a > key_b ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->category, b->category);
}

static int event_compare(const void *left, const void *right)
{
	const struct report_event *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int thread_compare(const void *left, const void *right, void *arg)
{
	const struct model *model = arg;
	const uint32_t *a = left, *b = right;
	const struct model_thread *thread_a = &model->threads.data[*a];
	const struct model_thread *thread_b = &model->threads.data[*b];

	if (thread_a->running_ns != thread_b->running_ns)
		return thread_a->running_ns > thread_b->running_ns ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

static void sort_rows(struct report *report, enum report_sort sort)
{
	if (report->spans.len)
		qsort_r(report->spans.data, report->spans.len, sizeof(*report->spans.data),
			row_compare, &sort);
	if (report->events.len)
		qsort(report->events.data, report->events.len, sizeof(*report->events.data),
		      event_compare);
	if (report->threads.len)
		qsort_r(report->threads.data, report->threads.len, sizeof(*report->threads.data),
			thread_compare, (void *)report->model);
}

/* ---- the whole report ---- */

static void list_threads(struct report *report)
{
	for (size_t i = 0; i < report->model->threads.len; i++)
		if (report->model->threads.data[i].traced)
			vec_add(&report->threads, (uint32_t)i);
}

static void count_losses(struct report *report)
{
	for (size_t i = 0; i < report->model->losses.len; i++) {
		const struct model_loss *loss = &report->model->losses.data[i];

		report->losses[loss->source].count += loss->count;
		report->losses[loss->source].intervals++;
	}
}

static void make(struct making *making, const struct report_options *options)
{
	struct report *report = making->report;

	making->rows = memory_zeroed((size_t)making->site_count + 1, sizeof(*making->rows));
	make_rows(making);
	count_spans(making);
	count_events(making);
	count_losses(report);
	find_slowest(report, options->slowest);
	list_threads(report);
	report->stragglers = stragglers_new(report->model, options->slowest);
	if (report->slowest.len && report->model->switches.len)
		model_each_interval_by_thread(report->model, look_at_interval, report);
	sort_rows(report, options->sort);
}

/* A thread that hardly ran only waited for something to do, so its waits are nothing to explain. */
#define RAN_AT_LEAST 100 /* this part of the capture */

/* The thread other than `but` that waited longest of those that did something; NULL: none did. */
static const struct model_thread *longest_waiting(const struct report *report, uint32_t but)
{
	const struct model *model = report->model;
	uint64_t ran = (model->end_ts - model->start_ts) / RAN_AT_LEAST;
	const struct model_thread *found = NULL;

	for (size_t i = 0; i < report->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[report->threads.data[i]];

		if (thread->has_sched && thread->tid != but && thread->running_ns >= ran &&
		    (!found || thread->blocked_ns > found->blocked_ns))
			found = thread;
	}
	return found;
}

static int explain_threads(struct report *report, const struct report_options *options,
			   struct error *err)
{
	struct why_query query = {.names = options->names, .timeline = report->timeline};
	const struct model_thread *thread;
	int result;

	/* With a filter, the user asked for something else. */
	if (report->model->filtered.expression || *report->model->meta->filter ||
	    why_busiest_thread(&query, report->model))
		return 0;
	result = why_new(&report->busiest, report->model, &query, err);
	thread = longest_waiting(report, query.tid);
	if (result || !thread)
		return result;
	query.tid = thread->tid;
	return why_new(&report->waiting, report->model, &query, err);
}

static int find_causes(struct report *report, const struct report_options *options,
		       struct error *err)
{
	struct why_aggregate_options of = {.names = options->names,
					   .stretches = WHY_AGGREGATE_STRETCHES};

	if (!report->model->sched)
		return 0;
	of.timeline = report->timeline = gpu_timeline_of_calls(report->model);
	if (!why_pick_has_spans(report->model))
		return explain_threads(report, options, err);
	return why_aggregate_new(&report->causes, report->model, &of, err);
}

const struct why_group *report_causes(const struct report *report, const struct report_span *row)
{
	const struct why_group *group =
		report->causes ? why_aggregate_group(report->causes, row->site) : NULL;

	return group && group->explained ? group : NULL;
}

/* Fewer spans are not worth a thread. */
#define SPANS_BESIDE 100000

/* A second thread makes the tables during the search for causes, which takes by far longer, but
 * begins with work for one thread. Both only read the model. */
struct report_tables {
	struct making making;
	const struct report_options *options;
	pthread_t thread;
	bool beside;
};

static void *tables_main(void *arg)
{
	struct report_tables *tables = arg;

	make(&tables->making, tables->options);
	return NULL;
}

static void tables_begin(struct report_tables *tables)
{
	const struct model *model = tables->making.model;

	/* Without spans, the threads whose waits are explained are those of a table. */
	tables->beside = model->spans.len >= SPANS_BESIDE && why_pick_has_spans(model) &&
			 threads_beside(1) &&
			 !pthread_create(&tables->thread, NULL, tables_main, tables);
	if (!tables->beside)
		tables_main(tables);
}

static void tables_end(struct report_tables *tables)
{
	if (tables->beside)
		pthread_join(tables->thread, NULL);
	free(tables->making.rows);
	free(tables->making.durations);
	free(tables->making.ends);
	keymap_free(&tables->making.row_of);
}

int report_new(struct report **report, const struct model *model,
	       const struct report_options *options, struct error *err)
{
	struct report *made = memory_zeroed(1, sizeof(*made));
	struct report_tables tables = {.making = {.report = made, .model = model},
				       .options = options};
	int result;

	*report = NULL;
	tables.making.site_count = model_site_count(model);
	made->model = model;
	made->truncated = store_reader_truncated(model->reader, &made->bytes_cut);
	made->skipped = store_reader_skipped(model->reader);
	made->names = options->names;
	tables_begin(&tables);
	why_hangs_find(&made->hangs, model, options->names);
	result = find_causes(made, options, err);
	tables_end(&tables);
	if (result) {
		report_free(made);
		return result;
	}
	*report = made;
	return 0;
}

void report_free(struct report *report)
{
	if (!report)
		return;
	why_aggregate_free(report->causes);
	why_free(report->busiest);
	why_free(report->waiting);
	gpu_timeline_free(report->timeline);
	why_hangs_free(&report->hangs);
	stragglers_free(report->stragglers);
	vec_free(&report->spans);
	vec_free(&report->events);
	vec_free(&report->counters);
	vec_free(&report->slowest);
	vec_free(&report->threads);
	free(report);
}
