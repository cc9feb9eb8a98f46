// SPDX-License-Identifier: Apache-2.0
#include "render/json/gpu_graph.h"

#include <inttypes.h>
#include <string.h>

#include "model/gpu/gpu_op_kind.h"
#include "render/place.h"
#include "util/json.h"
#include "util/terminal.h"
#include "util/units.h"

static const char *const edge_names[] = {
	[GPU_EDGE_EVENT] = "event",
	[GPU_EDGE_LEGACY] = "default stream",
};

static bool is_shown(const struct gpu_report *report, uint32_t op)
{
	const struct gpu_timeline_op *at = &report->timeline->ops.data[op];
	const struct gpu_device_report *device =
		&report->devices[gpu_timeline_device_of(report->timeline, at)];

	return at->end_ts >= device->from_ts && at->start_ts <= device->to_ts;
}

/* ---- dot ---- */

#define LABEL_CHARACTERS 80

/* Prints a text between quotes. */
static void put_quoted(FILE *out, const char *text)
{
	size_t left = strlen(text);

	for (unsigned i = 0; left && i < LABEL_CHARACTERS; i++) {
		struct terminal_char at = terminal_char(text, left);

		if (*at.shown == '"' || *at.shown == '\\')
			fputc('\\', out);
		fwrite(at.shown, 1, at.shown_bytes, out);
		text += at.bytes;
		left -= at.bytes;
	}
}

static void dot_op(const struct gpu_report *report, uint32_t op, FILE *out)
{
	const struct gpu_timeline_op *at = &report->timeline->ops.data[op];
	char duration[UNITS_TEXT];

	fprintf(out, "\t\to%" PRIu32 " [label=\"", op);
	put_quoted(out, gpu_timeline_name(report->timeline, at));
	fprintf(out, "\\n%s\"];\n", units_format_duration(duration, at->end_ts - at->start_ts));
}

static void dot_stream(const struct gpu_report *report, uint32_t index, FILE *out)
{
	const struct gpu_timeline *timeline = report->timeline;
	const struct gpu_timeline_stream *stream = &timeline->streams.data[index];
	const struct gpu_timeline_device *device = &timeline->devices.data[stream->device];

	fprintf(out,
		"\tsubgraph cluster_%" PRIu32 " {\n\t\tlabel=\"process %" PRIu32 ", GPU %" PRIu64
		", stream %" PRIu64 "\";\n",
		index, model_pid_real(timeline->model, device->pid), device->number,
		stream->number);
	for (uint32_t i = stream->op; i < stream->op + stream->op_count; i++)
		if (is_shown(report, i))
			dot_op(report, i, out);
	fputs("\t}\n", out);
}

static void dot_launches(const struct gpu_report *report, FILE *out)
{
	const struct gpu_timeline *timeline = report->timeline;

	for (uint32_t i = 0; i < timeline->launches.len; i++) {
		const struct gpu_timeline_launch *launch = &timeline->launches.data[i];
		bool any = false;

		for (uint32_t k = launch->op; k < launch->op + gpu_launch_op_count(launch); k++) {
			uint32_t op = timeline->launched.data[k];

			if (!is_shown(report, op))
				continue;
			any = true;
			fprintf(out, "\tl%" PRIu32 " -> o%" PRIu32 " [style=dashed];\n", i, op);
		}
		if (!any)
			continue;
		fprintf(out, "\tl%" PRIu32 " [shape=box, label=\"", i);
		put_quoted(out, model_thread_name(timeline->model, launch->thread));
		fputs("\"];\n", out);
	}
}

static void dot_syncs(const struct gpu_report *report, FILE *out)
{
	const struct gpu_timeline *timeline = report->timeline;

	for (uint32_t i = 0; i < timeline->syncs.len; i++) {
		const struct gpu_timeline_sync *sync = &timeline->syncs.data[i];
		bool any = false;

		for (uint32_t k = sync->op; k < sync->op + sync->op_count; k++) {
			uint32_t op = timeline->awaited.data[k];

			if (!is_shown(report, op))
				continue;
			any = true;
			fprintf(out, "\to%" PRIu32 " -> s%" PRIu32 " [style=dashed];\n", op, i);
		}
		if (!any)
			continue;
		fprintf(out, "\ts%" PRIu32 " [shape=box, label=\"", i);
		put_quoted(out, gpu_timeline_sync_name(timeline, sync));
		fputs("\"];\n", out);
	}
}

void gpu_graph_print_dot(const struct gpu_report *report, FILE *out)
{
	const struct gpu_timeline *timeline = report->timeline;

	fprintf(out, "digraph gpu {\n\trankdir=LR;\n");
	if (timeline->simulated)
		fputs("\tlabel=\"simulated\";\n", out);
	for (uint32_t i = 0; i < timeline->streams.len; i++)
		dot_stream(report, i, out);
	for (uint32_t i = 0; i < timeline->ops.len; i++) {
		uint32_t previous = timeline->ops.data[i].previous;

		if (previous != MODEL_NONE && is_shown(report, i) && is_shown(report, previous))
			fprintf(out, "\to%" PRIu32 " -> o%" PRIu32 ";\n", previous, i);
	}
	for (size_t i = 0; i < timeline->edges.len; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];

		if (is_shown(report, edge->from) && is_shown(report, edge->to))
			fprintf(out, "\to%" PRIu32 " -> o%" PRIu32 " [label=\"%s\"%s];\n",
				edge->from, edge->to, edge_names[edge->kind],
				edge->violated ? ", color=red" : "");
	}
	dot_launches(report, out);
	dot_syncs(report, out);
	fputs("}\n", out);
}

/* ---- JSON ---- */

static void op_json(struct json *json, const struct gpu_report *report, uint32_t op)
{
	const struct gpu_timeline *timeline = report->timeline;
	const struct gpu_timeline_op *at = &timeline->ops.data[op];
	const struct gpu_timeline_stream *stream = &timeline->streams.data[at->stream];
	const struct gpu_timeline_device *device = &timeline->devices.data[stream->device];

	json_object_begin(json);
	json_field_u64(json, "id", op);
	json_field_string(json, "kind", gpu_op_kind_names[at->kind]);
	json_field_string(json, "name", gpu_timeline_name(timeline, at));
	json_field_u64(json, "pid", model_pid_real(timeline->model, device->pid));
	json_field_u64(json, "device", device->number);
	json_field_u64(json, "stream", stream->number);
	json_field_u64(json, "start_ns", at->start_ts);
	json_field_u64(json, "end_ns", at->end_ts);
	if (at->launch != MODEL_NONE)
		json_field_u64(json, "launch", at->launch);
	if (at->previous != MODEL_NONE)
		json_field_u64(json, "previous", at->previous);
	json_object_end(json);
}

static void ops_json(struct json *json, const struct gpu_report *report)
{
	json_key(json, "operations");
	json_array_begin(json);
	for (uint32_t i = 0; i < report->timeline->ops.len; i++)
		if (is_shown(report, i))
			op_json(json, report, i);
	json_array_end(json);
}

static void edges_json(struct json *json, const struct gpu_report *report)
{
	const struct gpu_timeline *timeline = report->timeline;

	json_key(json, "edges");
	json_array_begin(json);
	for (size_t i = 0; i < timeline->edges.len; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];

		if (!is_shown(report, edge->from) || !is_shown(report, edge->to))
			continue;
		json_object_begin(json);
		json_field_u64(json, "from", edge->from);
		json_field_u64(json, "to", edge->to);
		json_field_string(json, "kind", edge_names[edge->kind]);
		if (edge->violated)
			json_field_bool(json, "violated", true);
		json_object_end(json);
	}
	json_array_end(json);
}

static void launches_json(struct json *json, const struct gpu_timeline *timeline)
{
	json_key(json, "launches");
	json_array_begin(json);
	for (uint32_t i = 0; i < timeline->launches.len; i++) {
		const struct gpu_timeline_launch *launch = &timeline->launches.data[i];

		json_object_begin(json);
		json_field_u64(json, "id", i);
		json_field_u64(json, "time_ns", launch->ts);
		json_field_u64(json, "tid", place_tid(timeline->model, launch->thread));
		json_field_u64(json, "correlation", launch->correlation);
		if (launch->span != MODEL_NONE)
			json_field_string(json, "span",
					  model_site(timeline->model,
						     timeline->model->spans.data[launch->span].site)
						  ->name);
		json_object_end(json);
	}
	json_array_end(json);
}

static void syncs_json(struct json *json, const struct gpu_timeline *timeline)
{
	json_key(json, "synchronizations");
	json_array_begin(json);
	for (size_t i = 0; i < timeline->syncs.len; i++) {
		const struct gpu_timeline_sync *sync = &timeline->syncs.data[i];

		json_object_begin(json);
		json_field_u64(json, "start_ns", sync->start_ts);
		json_field_u64(json, "end_ns", sync->end_ts);
		json_field_u64(json, "tid", place_tid(timeline->model, sync->thread));
		json_key(json, "operations");
		json_array_begin(json);
		for (uint32_t k = sync->op; k < sync->op + sync->op_count; k++)
			json_u64(json, timeline->awaited.data[k]);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void paths_json(struct json *json, const struct gpu_report *report)
{
	json_key(json, "critical_paths");
	json_array_begin(json);
	for (size_t i = 0; i < report->paths.len; i++) {
		const struct gpu_path *path = &report->paths.data[i];

		json_array_begin(json);
		for (size_t k = 0; k < path->pieces.len; k++) {
			const struct gpu_piece *piece = &path->pieces.data[k];

			json_object_begin(json);
			json_field_string(json, "kind", gpu_piece_names[piece->kind]);
			json_field_u64(json, "from_ns", piece->from_ts);
			json_field_u64(json, "to_ns", piece->to_ts);
			if (piece->op != MODEL_NONE)
				json_field_u64(json, "operation", piece->op);
			else
				json_field_u64(json, "tid",
					       place_tid(report->timeline->model, piece->thread));
			json_object_end(json);
		}
		json_array_end(json);
	}
	json_array_end(json);
}

int gpu_graph_print_json(const struct gpu_report *report, FILE *out)
{
	struct json *json = json_new(out, false);

	json_object_begin(json);
	json_field_bool(json, "simulated", report->timeline->simulated);
	ops_json(json, report);
	edges_json(json, report);
	launches_json(json, report->timeline);
	syncs_json(json, report->timeline);
	paths_json(json, report);
	json_object_end(json);
	return json_close(json);
}
