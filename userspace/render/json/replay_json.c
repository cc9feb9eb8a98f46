// SPDX-License-Identifier: Apache-2.0
#include "render/json/replay_json.h"

#include "analyze/gpu/replay.h"
#include "model/gpu/gpu_op_kind.h"
#include "render/json/summary_json.h"
#include "render/json/values.h"
#include "util/json.h"

/* More are only counted: a capture with a wrong clock has as many as it has operations. */
#define VIOLATIONS_LISTED 1000

static void op_json(struct json *json, const struct gpu_timeline *timeline, uint32_t index)
{
	const struct gpu_timeline_op *op = &timeline->ops.data[index];
	const struct gpu_timeline_stream *stream = &timeline->streams.data[op->stream];

	json_field_string(json, "name", gpu_timeline_name(timeline, op));
	json_field_string(json, "op", gpu_op_kind_names[op->kind]);
	json_field_u64(json, "device", timeline->devices.data[stream->device].number);
	json_field_u64(json, "stream", stream->number);
}

static void node_json(struct json *json, const char *key, const struct replay_build *build,
		      uint32_t node)
{
	const struct gpu_timeline *timeline = build->timeline;
	struct replay_origin origin = build->origins.data[node];

	json_key(json, key);
	json_object_begin(json);
	switch (origin.kind) {
	case REPLAY_ORIGIN_LAUNCH:
		json_field_string(json, "name", "launch");
		json_field_u64(json, "correlation",
			       timeline->launches.data[origin.index].correlation);
		break;
	case REPLAY_ORIGIN_MEETING:
		json_field_string(json, "name", "collective");
		break;
	case REPLAY_ORIGIN_SYNC:
		json_field_string(
			json, "name",
			gpu_timeline_sync_name(timeline, &timeline->syncs.data[origin.index]));
		break;
	default:
		op_json(json, timeline, origin.index);
		break;
	}
	json_field_u64(json, "start_ns", build->graph.nodes.data[node].start_ts);
	json_object_end(json);
}

static void violations_json(struct json *json, const struct replay_report *report)
{
	json_field_u64(json, "dependencies", report->dependencies);
	json_field_u64(json, "violations", report->violations.len);
	json_key(json, "violated");
	json_array_begin(json);
	for (size_t i = 0; i < report->violations.len && i < VIOLATIONS_LISTED; i++) {
		const struct replay_violation *violation = &report->violations.data[i];

		json_object_begin(json);
		node_json(json, "from", report->build, violation->from);
		node_json(json, "to", report->build, violation->to);
		json_field_u64(json, "early_ns", violation->early_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void rows_json(struct json *json, const struct replay_report *report)
{
	json_key(json, "what_if");
	json_array_begin(json);
	for (size_t i = 0; i < report->rows.len; i++) {
		const struct replay_row *row = &report->rows.data[i];

		json_object_begin(json);
		json_field_string(json, "what_if", row->what_if->text);
		json_field_u64(json, "changed", row->matched);
		json_field_u64(json, "untimed", row->untimed);
		json_field_u64(json, "unmodified_ns", row->unmodified_ns);
		json_field_u64(json, "replayed_ns", row->replayed_ns);
		json_field_u64(json, "low_ns", row->low_ns);
		json_field_u64(json, "high_ns", row->high_ns);
		json_field_f64(json, "change", row->change);
		json_object_end(json);
	}
	json_array_end(json);
}

static void on_gpu_json(struct json *json, const struct replay_report *report)
{
	const struct replay_device_result *device = &report->device;

	json_key(json, "on_gpu");
	json_object_begin(json);
	json_field_string(json, "device", device->name);
	json_field_bool(json, "simulated", device->simulated);
	json_field_u64(json, "operations", device->operations);
	json_field_u64(json, "ns", device->ns);
	json_field_f64(json, "error", replay_report_device_error(report));
	json_field_u64(json, "overhead_ns", device->overhead_ns);
	json_object_end(json);
}

int replay_print_json(const struct replay_report *report, FILE *out)
{
	const struct replay_result *result = &report->result;
	struct json *json = json_new(out, true);

	json_object_begin(json);
	json_field_string(json, "mode", replay_mode_names[report->mode]);
	json_field_u64(json, "operations_total", result->operations_total);
	json_field_u64(json, "operations_executed", result->operations_executed);
	json_field_u64(json, "calls", result->nodes_total - result->operations_total);
	json_field_u64(json, "measured_ns", result->measured_ns);
	/* A dry run replays nothing. */
	if (report->mode != REPLAY_DRY_RUN) {
		json_field_u64(json, "replayed_ns", result->replayed_ns);
		json_field_f64(json, "error", report->error);
	}
	json_field_bool(json, "deterministic", replay_report_deterministic(report));
	if (report->on_gpu)
		on_gpu_json(json, report);
	json_field_u64(json, "unknown_waits", report->build->timeline->unknown_waits);
	json_field_u64(json, "unknown_wait_ns", report->build->timeline->unknown_wait_ns);
	violations_json(json, report);
	rows_json(json, report);
	summary_json_records(json, report->build->timeline->model);
	json_object_end(json);
	return json_close(json);
}

/* ---- comparison ---- */

static void side_json(struct json *json, const char *key, const struct gpu_timeline *timeline,
		      uint32_t index)
{
	const struct model_span *span;

	json_key(json, key);
	if (index == MODEL_NONE) {
		json_null(json);
		return;
	}
	span = &timeline->model->spans.data[timeline->ops.data[index].span];
	json_object_begin(json);
	op_json(json, timeline, index);
	json_field_u64(json, "start_ns", span->start_ts);
	json_key(json, "args");
	json_object_begin(json);
	values_write(json, timeline->model, span->site, span->frame);
	json_object_end(json);
	json_object_end(json);
}

static void divergence_json(struct json *json, const struct replay_comparison *comparison)
{
	const struct replay_divergence *first = &comparison->first;

	json_field_u64(json, "diverging_streams", comparison->diverging_streams);
	json_key(json, "divergence");
	if (!comparison->diverging_streams) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_field_u64(json, "stream", first->stream);
	json_field_u64(json, "position", first->position);
	json_field_string(json, "what", first->what);
	side_json(json, "a", comparison->a, first->a);
	side_json(json, "b", comparison->b, first->b);
	json_object_end(json);
}

static void spread_json(struct json *json, const struct replay_comparison *comparison)
{
	json_key(json, "spread");
	json_array_begin(json);
	for (size_t i = 0; i < comparison->spread.len; i++) {
		const struct replay_spread *row = &comparison->spread.data[i];

		json_object_begin(json);
		json_field_string(json, "name", row->name);
		json_field_u64(json, "count", row->count);
		json_field_u64(json, "a_ns", row->a_ns);
		json_field_u64(json, "b_ns", row->b_ns);
		json_field_u64(json, "max_difference_ns", row->max_diff_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

int replay_print_comparison_json(const struct replay_comparison *comparison, FILE *out)
{
	struct json *json = json_new(out, true);

	json_object_begin(json);
	json_field_bool(json, "simulated", comparison->a->simulated || comparison->b->simulated);
	json_field_bool(json, "deterministic", !comparison->diverging_streams);
	json_field_u64(json, "operations_a", comparison->ops_a);
	json_field_u64(json, "operations_b", comparison->ops_b);
	json_field_u64(json, "operations_equal", comparison->equal);
	divergence_json(json, comparison);
	spread_json(json, comparison);
	json_object_end(json);
	return json_close(json);
}
