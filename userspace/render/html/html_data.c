// SPDX-License-Identifier: Apache-2.0
/* Tables of the page: names of spans with the distribution of their durations, and slow spans. */
#include <stdlib.h>
#include <string.h>

#include "analyze/histogram.h"
#include "render/html/html_internal.h"
#include "render/json/summary_json.h"
#include "render/json/values.h"
#include "util/memory.h"

/* ---- names ---- */

/* Counts HISTOGRAM_BINS bins for each name shown, over its complete spans. */
static uint64_t *count_durations(const struct html_page *page)
{
	const struct model *model = page->model;
	uint64_t *counts = memory_zeroed(page->rows * HISTOGRAM_BINS + 1, sizeof(*counts));

	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		uint32_t row = html_row_of(page, i);

		if (row != MODEL_NONE && !(span->flags & MODEL_SPAN_CUT))
			counts[row * HISTOGRAM_BINS +
			       histogram_bin(span->end_ts - span->start_ts)]++;
	}
	return counts;
}

static void bins_json(struct json *json, const uint64_t *counts)
{
	json_key(json, "bins");
	json_array_begin(json);
	for (unsigned bin = 0; bin < HISTOGRAM_BINS; bin++) {
		if (!counts[bin])
			continue;
		json_array_begin(json);
		json_u64(json, bin);
		json_u64(json, counts[bin]);
		json_array_end(json);
	}
	json_array_end(json);
}

static void span_json(struct html_page *page, uint32_t index, const uint64_t *counts)
{
	const struct report_span *row = &page->report->spans.data[index];
	struct json *json = page->json;

	json_object_begin(json);
	html_field_text(page, "name", row->name);
	html_field_text(page, "category", row->category);
	json_field_u64(json, "count", row->count);
	json_field_u64(json, "total_ns", row->total_ns);
	json_field_u64(json, "p50_ns", row->p50_ns);
	json_field_u64(json, "p99_ns", row->p99_ns);
	json_field_u64(json, "max_ns", row->max_ns);
	json_field_u64(json, "sched_ns", row->sched_ns);
	json_field_u64(json, "running_ns", row->running_ns);
	json_field_u64(json, "runnable_ns", row->runnable_ns);
	json_field_u64(json, "blocked_ns", row->blocked_ns);
	json_field_u64(json, "unfinished", row->unfinished);
	json_field_u64(json, "begun_before", row->begun_before);
	json_field_u64(json, "left", row->left);
	json_field_u64(json, "with_loss", row->with_loss);
	bins_json(json, counts + (size_t)index * HISTOGRAM_BINS);
	html_causes_row(page, index);
	json_object_end(json);
}

void html_spans(struct html_page *page)
{
	uint64_t *counts = count_durations(page);

	json_key(page->json, "spans");
	json_array_begin(page->json);
	for (uint32_t i = 0; i < page->rows; i++)
		span_json(page, i, counts);
	json_array_end(page->json);
	json_field_u64(page->json, "spans_left_out", page->report->spans.len - page->rows);
	free(counts);
}

/* ---- slow spans ---- */

static void wait_json(struct html_page *page, const struct report_slow *slow)
{
	const struct model *model = page->model;
	struct model_interval interval = {.thread = model->spans.data[slow->span].thread,
					  .state = WAFFLE_THREAD_BLOCKED,
					  .from_ts = slow->wait_from_ts,
					  .task_state = slow->task_state,
					  .syscall = slow->syscall,
					  .args = slow->args};
	char text[HTML_STATE_TEXT], thread[HTML_THREAD_TEXT];
	size_t len;

	if (!slow->wait_ns)
		return;
	html_state_text(model, &interval, text);
	len = strlen(text);
	if (slow->interrupt || slow->waker != MODEL_NONE)
		snprintf(text + len, sizeof(text) - len, "%swoken by %s", len ? ", " : "",
			 slow->interrupt ? "an interrupt"
					 : html_thread(model, slow->waker, thread));
	json_key(page->json, "wait");
	json_object_begin(page->json);
	json_field_u64(page->json, "duration_ns", slow->wait_ns);
	json_field_string(page->json, "text", text);
	json_object_end(page->json);
}

static void slow_json(struct html_page *page, const struct report_slow *slow)
{
	const struct model *model = page->model;
	const struct model_span *span = &model->spans.data[slow->span];
	struct json *json = page->json;
	char thread[HTML_THREAD_TEXT];

	html_field_text(page, "name", model_site(model, span->site)->name);
	json_field_hex64(json, "id", span->id);
	json_field_string(json, "thread", html_thread(model, span->thread, thread));
	json_field_u64(json, "start_ns", span->start_ts - model->start_ts);
	summary_json_span(json, span);
	json_key(json, "args");
	json_object_begin(json);
	values_write(json, model, span->site, span->frame);
	json_object_end(json);
	wait_json(page, slow);
	html_causes_slow(page, slow->span);
}

void html_slowest(struct html_page *page)
{
	struct html_views *views = html_views_new(page);

	json_key(page->json, "slowest");
	json_array_begin(page->json);
	for (size_t i = 0; i < page->report->slowest.len; i++) {
		json_object_begin(page->json);
		slow_json(page, &page->report->slowest.data[i]);
		html_view_write(page, views, i);
		json_object_end(page->json);
	}
	json_array_end(page->json);
	html_views_free(views);
}
