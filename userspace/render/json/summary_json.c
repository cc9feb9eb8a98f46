// SPDX-License-Identifier: Apache-2.0
#include "render/json/summary_json.h"

#include "store/record.h"

void summary_json_counts(struct json *json, const struct store_counts *counts)
{
	json_field_u64(json, "produced", counts->produced);
	json_field_u64(json, "delivered", counts->delivered);
	json_field_u64(json, "lost", counts->lost);
}

void summary_json_filter(struct json *json, const struct model *model)
{
	const struct model_filtered *filtered = &model->filtered;

	if (*model->meta->filter)
		json_field_string(json, "recorded_filter", model->meta->filter);
	if (*model->meta->trigger) {
		json_field_string(json, "trigger", model->meta->trigger);
		json_field_u64(json, "trigger_ns", model->meta->trigger_ts);
	}
	if (model->selecting)
		json_field_string(json, "where", model->selecting);
	if (!filtered->expression)
		return;
	json_key(json, "filter");
	json_object_begin(json);
	json_field_string(json, "expression", filtered->expression);
	json_field_u64(json, "spans", model->spans.len + filtered->spans);
	json_field_u64(json, "spans_kept", model->spans.len);
	json_field_u64(json, "events", model->events.len + filtered->events);
	json_field_u64(json, "events_kept", model->events.len);
	json_object_end(json);
}

void summary_json_simulated(struct json *json, const struct model *model)
{
	if (!model_simulated(model))
		return;
	json_key(json, "simulated");
	json_bool(json, true);
}

void summary_json_records(struct json *json, const struct model *model)
{
	uint64_t bytes_cut;

	summary_json_simulated(json, model);
	json_key(json, "records");
	json_object_begin(json);
	summary_json_counts(json, &model->counts);
	json_key(json, "sources");
	json_object_begin(json);
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		json_key(json, record_source_name(i));
		json_object_begin(json);
		summary_json_counts(json, &model->sources[i]);
		json_object_end(json);
	}
	json_object_end(json);
	json_object_end(json);
	json_key(json, "loss");
	json_array_begin(json);
	for (size_t i = 0; i < model->losses.len; i++) {
		const struct model_loss *loss = &model->losses.data[i];

		json_object_begin(json);
		json_field_string(json, "source", record_source_name(loss->source));
		json_field_u64(json, "cpu", loss->cpu);
		json_field_u64(json, "from_ns", loss->from_ts);
		json_field_u64(json, "to_ns", loss->to_ts);
		json_field_u64(json, "count", loss->count);
		json_object_end(json);
	}
	json_array_end(json);
	json_field_bool(json, "truncated", store_reader_truncated(model->reader, &bytes_cut));
	json_field_u64(json, "bytes_cut", bytes_cut);
	json_field_u64(json, "table_entries_skipped", store_reader_skipped(model->reader));
	if (store_reader_newer(model->reader))
		json_field_bool(json, "newer", true);
	json_field_u64(json, "bad_records", model->bad_records);
}

void summary_json_span(struct json *json, const struct model_span *span)
{
	uint64_t duration = span->end_ts - span->start_ts;

	json_field_u64(json, "duration_ns", duration);
	if (span->flags & MODEL_SPAN_HAS_SCHED) {
		json_field_u64(json, "running_ns", span->running_ns);
		json_field_u64(json, "runnable_ns", span->runnable_ns);
		json_field_u64(json, "blocked_ns", duration - span->running_ns - span->runnable_ns);
	}
	json_field_bool(json, "unfinished", span->flags & MODEL_SPAN_UNFINISHED);
	json_field_bool(json, "begun_before", span->flags & MODEL_SPAN_BEGUN_BEFORE);
	json_field_bool(json, "left", span->flags & MODEL_SPAN_LEFT);
	json_field_bool(json, "loss", span->flags & MODEL_SPAN_LOSS);
}
