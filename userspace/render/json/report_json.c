// SPDX-License-Identifier: Apache-2.0
#include "render/json/hosts_json.h"
#include "render/json/stragglers_json_internal.h"
#include "render/json/summary_json.h"
#include "render/place.h"
#include "render/json/hang_json_internal.h"
#include "render/json/impaired_json_internal.h"
#include "render/json/killed_json_internal.h"
#include "render/text/report_causes.h"
#include "render/text/report_text.h"
#include "store/record.h"
#include "util/json.h"

static void spans_json(struct json *json, const struct report *report)
{
	json_key(json, "spans");
	json_array_begin(json);
	for (size_t i = 0; i < report->spans.len; i++) {
		const struct report_span *row = &report->spans.data[i];

		json_object_begin(json);
		json_field_string(json, "name", row->name);
		json_field_string(json, "category", row->category);
		json_field_u64(json, "count", row->count);
		json_field_u64(json, "total_ns", row->total_ns);
		json_field_u64(json, "p50_ns", row->p50_ns);
		json_field_u64(json, "p99_ns", row->p99_ns);
		json_field_u64(json, "max_ns", row->max_ns);
		json_field_u64(json, "running_ns", row->running_ns);
		json_field_u64(json, "runnable_ns", row->runnable_ns);
		json_field_u64(json, "blocked_ns", row->blocked_ns);
		json_field_u64(json, "sched_count", row->sched_count);
		json_field_u64(json, "sched_ns", row->sched_ns);
		json_field_u64(json, "unfinished", row->unfinished);
		json_field_u64(json, "begun_before", row->begun_before);
		json_field_u64(json, "left", row->left);
		json_field_u64(json, "with_loss", row->with_loss);
		report_causes_json(json, report, row);
		json_object_end(json);
	}
	json_array_end(json);
}

static void counters_json(struct json *json, const struct report *report)
{
	json_key(json, "counters");
	json_array_begin(json);
	for (size_t i = 0; i < report->counters.len; i++) {
		const struct report_counter *row = &report->counters.data[i];

		json_object_begin(json);
		json_field_string(json, "name", row->name);
		json_field_string(json, "category", row->category);
		json_field_u64(json, "count", row->count);
		if (row->count) {
			json_field_f64(json, "min", row->min);
			json_field_f64(json, "max", row->max);
			json_field_f64(json, "last", row->last);
			json_field_f64(json, "mean", row->mean);
		}
		json_field_u64(json, "ignored", row->ignored);
		json_object_end(json);
	}
	json_array_end(json);
}

static void events_json(struct json *json, const struct report *report)
{
	json_key(json, "events");
	json_array_begin(json);
	for (size_t i = 0; i < report->events.len; i++) {
		json_object_begin(json);
		json_field_string(json, "name", report->events.data[i].name);
		json_field_string(json, "category", report->events.data[i].category);
		json_field_string(json, "kind", site_kind_name(report->events.data[i].kind));
		json_field_u64(json, "count", report->events.data[i].count);
		json_object_end(json);
	}
	json_array_end(json);
}

static void thread_fields(struct json *json, const struct model *model, uint32_t index)
{
	json_field_u64(json, "tid", place_tid(model, index));
	json_field_u64(json, "pid", place_pid(model, index));
	json_field_string(json, "comm", model_thread_name(model, index));
	place_json(json, model, index);
}

static void wait_json(struct json *json, const struct model *model, const struct report_slow *slow)
{
	if (!slow->wait_ns)
		return;
	json_key(json, "longest_wait");
	json_object_begin(json);
	json_field_u64(json, "start_ns", slow->wait_from_ts);
	json_field_u64(json, "duration_ns", slow->wait_ns);
	json_field_u64(json, "task_state", slow->task_state);
	if (slow->syscall >= 0)
		json_field_i64(json, "syscall", slow->syscall);
	if (slow->interrupt)
		json_field_bool(json, "woken_by_interrupt", true);
	if (slow->waker != MODEL_NONE) {
		json_key(json, "waker");
		json_object_begin(json);
		thread_fields(json, model, slow->waker);
		json_object_end(json);
	}
	json_object_end(json);
}

static void slow_json(struct json *json, const struct model *model, const struct report_slow *slow)
{
	const struct model_span *span = &model->spans.data[slow->span];

	json_object_begin(json);
	json_field_string(json, "name", model_site(model, span->site)->name);
	json_field_hex64(json, "id", span->id);
	thread_fields(json, model, span->thread);
	json_field_u64(json, "start_ns", span->start_ts);
	json_field_u64(json, "end_ns", span->end_ts);
	summary_json_span(json, span);
	wait_json(json, model, slow);
	json_object_end(json);
}

static void threads_json(struct json *json, const struct report *report)
{
	json_key(json, "threads");
	json_array_begin(json);
	for (size_t i = 0; i < report->threads.len; i++) {
		uint32_t index = report->threads.data[i];
		const struct model_thread *thread = &report->model->threads.data[index];

		json_object_begin(json);
		thread_fields(json, report->model, index);
		if (thread->has_sched) {
			json_field_u64(json, "running_ns", thread->running_ns);
			json_field_u64(json, "runnable_ns", thread->runnable_ns);
			json_field_u64(json, "blocked_ns", thread->blocked_ns);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

int report_print_json(const struct report *report, FILE *out)
{
	const struct model *model = report->model;
	struct json *json = json_new(out, true);

	json_object_begin(json);
	spans_json(json, report);
	counters_json(json, report);
	events_json(json, report);
	json_key(json, "slowest");
	json_array_begin(json);
	for (size_t i = 0; i < report->slowest.len; i++)
		slow_json(json, model, &report->slowest.data[i]);
	json_array_end(json);
	threads_json(json, report);
	stragglers_json(json, report->stragglers);
	hang_json(json, &report->hangs,
		  &(struct hang_view){.model = model, .names = report->names});
	killed_json(json, model);
	impaired_json(json, model);
	json_field_u64(json, "duration_ns", model->end_ts - model->start_ts);
	json_field_bool(json, "sched", model->sched);
	json_field_bool(json, "causes_partial", report->causes && report->causes->partial);
	hosts_json(json, model);
	summary_json_filter(json, model);
	summary_json_records(json, model);
	json_object_end(json);
	return json_close(json);
}
