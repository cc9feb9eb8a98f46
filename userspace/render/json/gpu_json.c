// SPDX-License-Identifier: Apache-2.0
#include "render/json/gpu_json.h"

#include <stdlib.h>

#include "analyze/gpu/gpu_starved.h"
#include "render/place.h"
#include "util/json.h"
#include "util/memory.h"
#include "util/template_fold.h"
#include "util/utf8.h"

/* Limits of a name, if the tables are for people. */
#define NAME_COLUMNS 130
#define NAME_BYTES 240

struct gpu_json {
	struct json *json;
	size_t rows; /* limit for each table; SIZE_MAX: all rows, for programs */
};

/* Begins a table. Returns the number of its rows. */
static size_t rows_begin(const struct gpu_json *out, const char *key, size_t count)
{
	json_key(out->json, key);
	json_array_begin(out->json);
	return count < out->rows ? count : out->rows;
}

static void rows_end(const struct gpu_json *out, const char *key, size_t count)
{
	char name[64];

	json_array_end(out->json);
	if (count <= out->rows)
		return;
	snprintf(name, sizeof(name), "%s_left_out", key);
	json_field_u64(out->json, name, count - out->rows);
}

/* The name of a kernel or span. For people it is shortened, as in the text. */
static void name_json(const struct gpu_json *out, const char *name)
{
	char *folded;

	if (out->rows == SIZE_MAX) {
		json_field_string(out->json, "name", name);
		return;
	}
	folded = template_fold(name, NAME_COLUMNS);
	json_key(out->json, "name");
	json_string_len(out->json, folded, utf8_cut(folded, NAME_BYTES));
	free(folded);
}

static void sums_json(const struct gpu_json *out, const char *key, const gpu_sums *sums, bool bytes)
{
	struct json *json = out->json;
	size_t rows = rows_begin(out, key, sums->len);

	for (size_t i = 0; i < rows; i++) {
		const struct gpu_sum *sum = &sums->data[i];

		json_object_begin(json);
		name_json(out, sum->name);
		json_field_u64(json, "count", sum->count);
		json_field_u64(json, "total_ns", sum->total_ns);
		json_field_u64(json, "min_ns", sum->min_ns);
		json_field_u64(json, "max_ns", sum->max_ns);
		if (bytes)
			json_field_u64(json, "bytes", sum->bytes);
		if (bytes && sum->total_ns)
			json_field_f64(json, "bytes_per_second",
				       (double)sum->bytes / (double)sum->total_ns * 1e9);
		json_object_end(json);
	}
	rows_end(out, key, sums->len);
}

static void levels_json(const struct gpu_json *out, const struct gpu_device_report *device)
{
	struct json *json = out->json;
	size_t rows = rows_begin(out, "concurrency", device->levels.len);

	for (size_t i = 0; i < rows; i++) {
		json_object_begin(json);
		json_field_u64(json, "operations", device->levels.data[i].level);
		json_field_u64(json, "ns", device->levels.data[i].ns);
		json_object_end(json);
	}
	rows_end(out, "concurrency", device->levels.len);
}

static void thread_json(struct json *json, const struct model *model, uint32_t thread)
{
	if (thread == MODEL_NONE)
		return;
	json_field_u64(json, "tid", place_tid(model, thread));
	json_field_string(json, "thread", model_thread_name(model, thread));
}

static void starved_json(const struct gpu_json *out, const struct gpu_report *report,
			 const struct gpu_device_report *device)
{
	const struct gpu_timeline *timeline = report->timeline;
	struct json *json = out->json;
	size_t rows;

	json_field_u64(json, "starved_count", device->starved_count);
	rows = rows_begin(out, "starved", device->starved.len);
	for (size_t i = 0; i < rows; i++) {
		const struct gpu_stretch *at = &device->starved.data[i];

		json_object_begin(json);
		json_field_u64(json, "from_ns", at->from_ts);
		json_field_u64(json, "to_ns", at->to_ts);
		thread_json(json, timeline->model, at->thread);
		json_object_end(json);
	}
	rows_end(out, "starved", device->starved.len);
}

static void stream_json(struct json *json, const struct gpu_timeline_stream *stream,
			const struct gpu_stream_report *report)
{
	json_object_begin(json);
	json_field_u64(json, "stream", stream->number);
	json_field_u64(json, "context", stream->context);
	json_field_u64(json, "operations", report->operations);
	json_field_u64(json, "queue_max", report->queue_max);
	json_key(json, "states");
	json_object_begin(json);
	json_field_u64(json, "idle_ns", report->state_ns[GPU_STATE_IDLE]);
	json_field_u64(json, "queued_ns", report->state_ns[GPU_STATE_QUEUED]);
	json_field_u64(json, "running_ns", report->state_ns[GPU_STATE_RUNNING]);
	json_field_u64(json, "waiting_ns", report->state_ns[GPU_STATE_WAITING]);
	json_field_u64(json, "complete_ns", report->state_ns[GPU_STATE_COMPLETE]);
	json_object_end(json);
	json_object_end(json);
}

const char *const gpu_json_idle_keys[GPU_IDLE_COUNT] = {
	[GPU_IDLE_STARVED] = "launch_starved_ns",
	[GPU_IDLE_BLOCKING] = "blocking_ns",
	[GPU_IDLE_STALLED] = "dependency_stalled_ns",
	[GPU_IDLE_UNKNOWN] = "unknown_ns",
};

static void idle_json(struct json *json, const struct gpu_device_report *device)
{
	json_key(json, "idle");
	json_object_begin(json);
	for (unsigned i = 0; i < GPU_IDLE_COUNT; i++)
		json_field_u64(json, gpu_json_idle_keys[i], device->idle_ns[i]);
	json_object_end(json);
}

static void device_numbers(const struct gpu_json *out, const struct gpu_device_report *device)
{
	uint64_t window = device->to_ts - device->from_ts;
	struct json *json = out->json;

	json_field_u64(json, "from_ns", device->from_ts);
	json_field_u64(json, "to_ns", device->to_ts);
	json_field_u64(json, "window_ns", window);
	json_field_u64(json, "busy_ns", device->busy_ns);
	json_field_f64(json, "utilization",
		       window ? (double)device->busy_ns / (double)window : 0.0);
	json_field_u64(json, "operations", device->operations);
	json_field_u64(json, "max_concurrency", device->max_concurrency);
	levels_json(out, device);
	idle_json(json, device);
	json_key(json, "communication");
	json_object_begin(json);
	json_field_u64(json, "busy_ns", device->comm_ns);
	json_field_u64(json, "exposed_ns", device->exposed_ns);
	json_object_end(json);
	json_key(json, "launch_delay");
	json_object_begin(json);
	json_field_u64(json, "count", device->launches);
	json_field_u64(json, "total_ns", device->delay_total_ns);
	json_field_u64(json, "p50_ns", device->delay_p50_ns);
	json_field_u64(json, "p99_ns", device->delay_p99_ns);
	json_field_u64(json, "max_ns", device->delay_max_ns);
	json_object_end(json);
	json_field_u64(json, "queue_max", device->queue_max);
}

/* Streams that only have synchronisations, or nothing in the window, are rows of zeros. They come
 * with all rows only. */
static void streams_json(const struct gpu_json *out, const struct gpu_report *report,
			 const struct gpu_timeline_device *at)
{
	bool all = out->rows == SIZE_MAX;
	size_t used = 0, shown = 0, rows;

	for (uint32_t i = at->stream; i < at->stream + at->stream_count; i++)
		used += all || report->streams[i].operations;
	rows = rows_begin(out, "streams", used);
	for (uint32_t i = at->stream; i < at->stream + at->stream_count && shown < rows; i++) {
		if (!all && !report->streams[i].operations)
			continue;
		stream_json(out->json, &report->timeline->streams.data[i], &report->streams[i]);
		shown++;
	}
	rows_end(out, "streams", used);
	if (!all)
		json_field_u64(out->json, "streams_unused", at->stream_count - used);
}

static void device_json(const struct gpu_json *out, const struct gpu_report *report, uint32_t index)
{
	const struct gpu_timeline_device *at = &report->timeline->devices.data[index];
	const struct gpu_device_report *device = &report->devices[index];
	struct json *json = out->json;

	json_object_begin(json);
	json_field_u64(json, "device", at->number);
	json_field_u64(json, "pid", model_pid_real(report->timeline->model, at->pid));
	device_numbers(out, device);
	sums_json(out, "kernels", &device->kernels, false);
	sums_json(out, "copies", &device->copies, true);
	sums_json(out, "sets", &device->sets, true);
	sums_json(out, "spans", &device->spans, false);
	starved_json(out, report, device);
	streams_json(out, report, at);
	json_object_end(json);
}

static void memory_json(const struct gpu_json *out, const struct gpu_report *report)
{
	struct json *json = out->json;
	size_t rows = rows_begin(out, "memory", report->memory.len);

	for (size_t i = 0; i < rows; i++) {
		const struct gpu_memory *memory = &report->memory.data[i];

		json_object_begin(json);
		json_field_u64(json, "pid", model_pid_real(report->timeline->model, memory->pid));
		json_field_u64(json, "allocations", memory->allocations);
		json_field_u64(json, "frees", memory->frees);
		json_field_u64(json, "peak_bytes", memory->peak_bytes);
		json_field_u64(json, "end_bytes", memory->end_bytes);
		json_object_end(json);
	}
	rows_end(out, "memory", report->memory.len);
}

static void path_json(const struct gpu_json *out, const struct gpu_report *report,
		      const struct gpu_path *path)
{
	struct json *json = out->json;
	size_t rows;

	json_object_begin(json);
	json_field_u64(json, "pid", model_pid_real(report->timeline->model, path->pid));
	json_field_u64(json, "from_ns", path->from_ts);
	json_field_u64(json, "to_ns", path->to_ts);
	rows = rows_begin(out, "parts", path->sums.len);
	for (size_t i = 0; i < rows; i++) {
		json_object_begin(json);
		json_field_string(json, "kind", gpu_piece_names[path->sums.data[i].kind]);
		name_json(out, path->sums.data[i].name);
		if (path->sums.data[i].span)
			json_field_string(json, "span", path->sums.data[i].span);
		json_field_u64(json, "count", path->sums.data[i].count);
		json_field_u64(json, "total_ns", path->sums.data[i].total_ns);
		json_object_end(json);
	}
	rows_end(out, "parts", path->sums.len);
	json_object_end(json);
}

static void causes_json(const struct gpu_json *out, const struct why *why)
{
	struct json *json = out->json;
	gpu_causes sums = {0};
	size_t rows;

	if (why)
		gpu_starved_causes(why, &sums);
	rows = rows_begin(out, "starved_causes", sums.len);
	for (size_t i = 0; i < rows; i++) {
		const struct why_part *part = &why->parts.data[sums.data[i].part];

		json_object_begin(json);
		json_field_string(json, "cause", why_causes[sums.data[i].cause].name);
		json_field_u64(json, "ns", sums.data[i].ns);
		json_field_string(json, "grade", why_grade_names[part->grade]);
		json_field_string(json, "object", strtab_get(why->texts, part->object));
		thread_json(json, why->model, part->thread);
		json_object_end(json);
	}
	rows_end(out, "starved_causes", sums.len);
	vec_free(&sums);
}

static void sessions_json(const struct gpu_json *out, const struct gpu_timeline *timeline)
{
	struct json *json = out->json;
	size_t rows = rows_begin(out, "sessions", timeline->sessions.len);

	for (size_t i = 0; i < rows; i++) {
		const struct gpu_timeline_session *session = &timeline->sessions.data[i];

		json_object_begin(json);
		json_field_u64(json, "pid", model_pid_real(timeline->model, session->pid));
		json_field_bool(json, "unavailable", session->unavailable);
		json_field_u64(json, "cupti", session->cupti);
		json_field_u64(json, "clock_error_ns", session->clock_error_ns);
		json_field_u64(json, "dropped", session->dropped);
		json_field_u64(json, "zero_times", session->zero_times);
		json_field_u64(json, "clamped", session->clamped);
		json_field_u64(json, "unknown", session->unknown);
		json_object_end(json);
	}
	rows_end(out, "sessions", timeline->sessions.len);
}

static void unknown_json(struct json *json, const struct gpu_timeline *timeline)
{
	json_key(json, "not_attributed");
	json_object_begin(json);
	json_field_u64(json, "unknown_operations", timeline->unknown_ops);
	json_field_u64(json, "without_launch", timeline->without_launch);
	json_field_u64(json, "repeated_correlation", timeline->repeated);
	json_field_u64(json, "before_launch", timeline->early);
	json_field_u64(json, "edges_left_out", timeline->edges_left_out);
	json_field_u64(json, "unknown_waits", timeline->unknown_waits);
	json_field_u64(json, "unknown_wait_ns", timeline->unknown_wait_ns);
	json_field_bool(json, "calls_recorded", timeline->probed);
	json_field_bool(json, "events_recorded", timeline->ordered);
	json_field_bool(json, "scheduler_recorded", timeline->model->sched);
	json_object_end(json);
}

void gpu_json_members(struct json *json, const struct gpu_report *report, const struct why *why,
		      size_t rows)
{
	const struct gpu_timeline *timeline = report->timeline;
	const struct gpu_json out = {json, rows};
	size_t count;

	json_field_bool(json, "simulated", timeline->simulated);
	count = rows_begin(&out, "devices", timeline->devices.len);
	for (uint32_t i = 0; i < count; i++)
		device_json(&out, report, i);
	rows_end(&out, "devices", timeline->devices.len);
	json_field_u64(json, "records", timeline->ops.len);
	memory_json(&out, report);
	count = rows_begin(&out, "critical_paths", report->paths.len);
	for (size_t i = 0; i < count; i++)
		path_json(&out, report, &report->paths.data[i]);
	rows_end(&out, "critical_paths", report->paths.len);
	causes_json(&out, why);
	sessions_json(&out, timeline);
	unknown_json(json, timeline);
}

int gpu_print_json(const struct gpu_report *report, const struct why *why, FILE *out)
{
	struct json *json = json_new(out, true);

	json_object_begin(json);
	gpu_json_members(json, report, why, SIZE_MAX);
	json_object_end(json);
	return json_close(json);
}
