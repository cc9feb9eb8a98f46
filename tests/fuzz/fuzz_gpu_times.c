// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target for what GPUs did, from a list of actions of four bytes: operations, launches,
 * sessions and calls of CUDA with any times and ids. The parts of a window must add up to it, and a
 * critical path has no gaps.
 */
#include "analyze/gpu/gpu_report.h"
#include "records.h"
#include "render/json/gpu_graph.h"
#include "render/json/gpu_json.h"
#include "render/text/gpu_text.h"
#include "util/terminal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define START 1000000007ull
#define PROCESSES 2

#define SITE(text, is, count, ...)                                                                 \
	{                                                                                          \
		.name = (text), .category = "gpu", .file = "", .func = "", .object = "/lib/x.so",  \
		.kind = (is), .key_count = (count), .keys = {                                      \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
static const struct site_info sites[] = {
	SITE("gemm\033[0m\"<x>", WAFFLE_SITE_SPAN, 6, {WAFFLE_KEY_STR, "op"},
	     {WAFFLE_KEY_U64, "device"}, {WAFFLE_KEY_U64, "stream"},
	     {WAFFLE_KEY_U64, "correlation"}, {WAFFLE_KEY_U64, "graph_node"},
	     {WAFFLE_KEY_U64, "bytes"}),
	SITE("launch", WAFFLE_SITE_EVENT, 1, {WAFFLE_KEY_U64, "correlation"}),
	SITE("session", WAFFLE_SITE_EVENT, 1, {WAFFLE_KEY_STR, "state"}),
	SITE("capture", WAFFLE_SITE_EVENT, 1, {WAFFLE_KEY_U64, "graph_node"}),
	SITE("wait", WAFFLE_SITE_EVENT, 1, {WAFFLE_KEY_U64, "correlation"}),
	/* It has no device. */
	SITE("synchronize", WAFFLE_SITE_SPAN, 4, {WAFFLE_KEY_STR, "op"}, {WAFFLE_KEY_STR, "kind"},
	     {WAFFLE_KEY_U64, "stream"}, {WAFFLE_KEY_U64, "correlation"}),
	/* With handles: made_ordered() */
	SITE("launch", WAFFLE_SITE_EVENT, 2, {WAFFLE_KEY_PTR, "handle"},
	     {WAFFLE_KEY_U64, "correlation"}),
	SITE("wait", WAFFLE_SITE_EVENT, 2, {WAFFLE_KEY_PTR, "handle"},
	     {WAFFLE_KEY_U64, "correlation"}),
	SITE("wait", WAFFLE_SITE_EVENT, 2, {WAFFLE_KEY_PTR, "event"},
	     {WAFFLE_KEY_U64, "correlation"}),
	SITE("event record", WAFFLE_SITE_EVENT, 2, {WAFFLE_KEY_PTR, "event"},
	     {WAFFLE_KEY_PTR, "handle"}),
	SITE("event record", WAFFLE_SITE_EVENT, 1, {WAFFLE_KEY_PTR, "event"}),
	SITE("stream wait", WAFFLE_SITE_EVENT, 2, {WAFFLE_KEY_PTR, "event"},
	     {WAFFLE_KEY_PTR, "handle"}),
	SITE("stream create", WAFFLE_SITE_EVENT, 2, {WAFFLE_KEY_PTR, "handle"},
	     {WAFFLE_KEY_U64, "flags"}),
	SITE("capture begin", WAFFLE_SITE_EVENT, 1, {WAFFLE_KEY_PTR, "handle"}),
	SITE("capture end", WAFFLE_SITE_EVENT, 2, {WAFFLE_KEY_PTR, "handle"},
	     {WAFFLE_KEY_U64, "result"}),
};
#define ORDERED 6 /* the first one with handles */
#define SITES (sizeof(sites) / sizeof(sites[0]))

struct made {
	struct store_writer *writer;
	struct error err;
	uint64_t ts, id;
};

struct made_hit {
	struct waffle_rec_hit head;
	uint64_t frame[4], words[24];
};

static void made_append(struct made *made, struct made_hit *hit, unsigned count)
{
	hit->head.frame_bytes = 32 + count * 8;
	store_writer_append(made->writer, &hit->head.rec, &made->err);
}

static struct made_hit made_hit(struct made *made, uint32_t site, uint32_t tid)
{
	return (struct made_hit){.head = {.rec = {made->ts, tid, WAFFLE_REC_HIT, 0},
					  .tgid = 1 + tid % PROCESSES,
					  .site = FIXTURE_SITES + ROLE_SITES + site},
				 .frame = {++made->id, 0, 0, 0}};
}

static unsigned put_text(uint64_t *words, const char *text)
{
	words[0] = strlen(text);
	words[1] = words[2] = words[3] = 0;
	memcpy(&words[1], text, strlen(text));
	return 1 + (unsigned)(strlen(text) + 7) / 8;
}

static void made_op(struct made *made, const uint8_t *at, uint32_t tid)
{
	static const char *const kinds[] = {"kernel", "copy", "set", "graph",
					    "host",   "wait", "odd", "kernel"};
	struct made_hit hit = made_hit(made, 0, tid);
	struct waffle_rec_on_track on = {.rec = {made->ts, tid, WAFFLE_REC_ON_TRACK, 0},
					 .id = made->id,
					 .tgid = hit.head.tgid,
					 .track = 1};
	struct waffle_rec_span_end end = {.rec = {made->ts + at[1], tid, WAFFLE_REC_SPAN_END, 0},
					  .span_id = made->id,
					  .tgid = hit.head.tgid,
					  .site = hit.head.site};
	unsigned count = put_text(hit.words, kinds[at[2] & 7]);

	hit.words[count++] = at[2] >> 3 & 1;
	hit.words[count++] = at[2] >> 4 & 3;
	hit.words[count++] = at[3] & 31;
	hit.words[count++] = at[3] >> 5;
	hit.words[count++] = at[3];
	store_writer_append(made->writer, &on.rec, &made->err);
	made_append(made, &hit, count);
	store_writer_append(made->writer, &end.rec, &made->err);
}

/* A call that waits, as CUPTI and libwaffle-gpu record it: its thread, or its time. */
static void made_wait(struct made *made, const uint8_t *at, uint32_t tid)
{
	static const char *const kinds[] = {"stream", "context", "event", "stream wait event"};
	struct made_hit hit = made_hit(made, 4 + (at[1] & 1), tid);
	struct waffle_rec_span_end end = {.rec = {made->ts + at[1], tid, WAFFLE_REC_SPAN_END, 0},
					  .span_id = made->id,
					  .tgid = hit.head.tgid,
					  .site = hit.head.site};
	unsigned count = 0;

	if (at[1] & 1) {
		count = put_text(hit.words, "wait");
		count += put_text(hit.words + count, kinds[at[2] >> 3 & 3]);
		hit.words[count++] = at[2] >> 5 & 3;
	}
	hit.words[count++] = at[3] & 31;
	made_append(made, &hit, count);
	if (at[1] & 1)
		store_writer_append(made->writer, &end.rec, &made->err);
}

/* An event of libwaffle-gpu for a call that has a stream or an event. */
static void made_ordered(struct made *made, const uint8_t *at, uint32_t tid)
{
	struct made_hit hit = made_hit(made, ORDERED + at[2] % (SITES - ORDERED), tid);

	hit.words[0] = at[3] >> 5;
	/* The second value of the first three sites is a correlation id. */
	hit.words[1] = at[3] & (at[2] % (SITES - ORDERED) < 3 ? 31 : 3);
	made_append(made, &hit, 2);
}

/* A call of any role: words are the keys of role_site(). */
static void made_call(struct made *made, const uint8_t *at, uint32_t tid)
{
	struct made_hit hit = made_hit(made, 0, tid);
	struct waffle_rec_return end = {.rec = {made->ts + at[1] % 32, tid, WAFFLE_REC_RETURN, 0},
					.span_id = made->id,
					.tgid = hit.head.tgid};

	end.site = hit.head.site = FIXTURE_SITES + at[2] % ROLE_SITES;
	hit.words[0] = at[3] & 3;
	hit.words[1] = at[3] >> 2 & 3;
	made_append(made, &hit, 8);
	if (hit.head.site % 2 != FIXTURE_SITES % 2)
		store_writer_append(made->writer, &end.rec, &made->err);
}

static void write_actions(struct store_writer *writer, const uint8_t *data, size_t size)
{
	static const char *const states[] = {"armed", "disarmed", "unavailable", ""};
	struct made made = {.writer = writer, .err = ERROR_INIT, .ts = START};

	for (unsigned i = 0; i < ROLE_SITES; i++) {
		struct site_info site = role_site(i / 2, i % 2);

		store_writer_add_site(writer, &site, &made.err);
	}
	for (unsigned i = 0; i < SITES; i++)
		store_writer_add_site(writer, &sites[i], &made.err);
	for (; size >= 4; data += 4, size -= 4) {
		uint32_t tid = 1 + (data[0] >> 3 & 3);
		struct made_hit hit;

		made.ts += data[0] >> 5;
		switch (data[0] & 7) {
		case 0:
		case 1:
		case 2:
			made_op(&made, data, tid);
			break;
		case 3:
		case 4:
			hit = made_hit(&made, 1, tid);
			hit.words[0] = data[3] & 31;
			made_append(&made, &hit, 1);
			break;
		case 5:
			hit = made_hit(&made, 2 + (data[1] & 1), tid);
			if (data[1] & 1)
				hit.words[0] = data[3] >> 5;
			made_append(&made, &hit,
				    data[1] & 1 ? 1 : put_text(hit.words, states[data[3] & 3]));
			break;
		case 6:
			made_wait(&made, data, tid);
			break;
		default:
			if (data[1] & 64)
				made_ordered(&made, data, tid);
			else
				made_call(&made, data, tid);
		}
	}
}

/* ---- what must hold ---- */

static void check_device(const struct gpu_report *report, uint32_t index)
{
	const struct gpu_timeline_device *at = &report->timeline->devices.data[index];
	const struct gpu_device_report *device = &report->devices[index];
	uint64_t window = device->to_ts - device->from_ts, levels = 0, idle = device->busy_ns;

	for (size_t i = 0; i < device->levels.len; i++)
		levels += device->levels.data[i].ns;
	for (unsigned i = 0; i < GPU_IDLE_COUNT; i++)
		idle += device->idle_ns[i];
	require(levels == window && idle == window);
	require(device->exposed_ns <= device->comm_ns && device->comm_ns <= device->kernel_ns &&
		device->kernel_ns <= device->busy_ns);
	for (uint32_t i = at->stream; i < at->stream + at->stream_count; i++) {
		uint64_t states = 0;

		for (unsigned state = 0; state < GPU_STATE_COUNT; state++)
			states += report->streams[i].state_ns[state];
		require(states == window);
	}
}

static void check_timeline(const struct gpu_timeline *timeline)
{
	for (uint32_t i = 0; i < timeline->ops.len; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[i];

		require(op->previous == MODEL_NONE ||
			(op->previous < i &&
			 timeline->ops.data[op->previous].end_ts <= op->start_ts));
		require(op->launch == MODEL_NONE ||
			timeline->launches.data[op->launch].ts <= op->start_ts);
	}
	for (size_t i = 0; i < timeline->edges.len; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];

		require(edge->from < timeline->ops.len && edge->to < timeline->ops.len);
		require(edge->violated == (timeline->ops.data[edge->from].end_ts >
					   timeline->ops.data[edge->to].start_ts));
	}
}

static void check_paths(const struct gpu_report *report)
{
	for (size_t i = 0; i < report->paths.len; i++) {
		const struct gpu_path *path = &report->paths.data[i];
		uint64_t at = path->from_ts;

		for (size_t k = 0; k < path->pieces.len; k++) {
			require(path->pieces.data[k].from_ts == at);
			at = path->pieces.data[k].to_ts;
		}
		require(!path->pieces.len || at == path->to_ts);
	}
}

static void check_texts(const struct gpu_report *report)
{
	const struct gpu_view view = {.rows = 0};
	char *bytes = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&bytes, &len);

	require(out);
	gpu_print_text(report, &view, out);
	gpu_graph_print_dot(report, out);
	require(!gpu_print_json(report, NULL, out));
	require(!gpu_graph_print_json(report, out));
	require(!fclose(out));
	for (size_t i = 0; i < len; i++)
		require(bytes[i] == '\n' || bytes[i] == '\t' ||
			!terminal_control(bytes + i, len - i));
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpu_report_options options = {.to_ts = UINT64_MAX, .stretches = 3, .pieces = true};
	struct model_filter keep = {0};
	struct store_reader *reader;
	struct error err = ERROR_INIT;
	struct model *model;

	if (size < 2)
		return 0;
	options.from_ts = START + data[0];
	keep.gpu_apart = data[1] & 2;
	options.to_ts = data[1] & 1 ? UINT64_MAX : START + data[0] + data[1];
	reader = input_reader(data + 2, size - 2, write_actions);
	if (!reader)
		return 0;
	if (!model_load(&model, reader, STORE_ALL, &keep, &err)) {
		struct gpu_timeline *timeline =
			model->gpu_records ? gpu_timeline_take(model) : gpu_timeline_new(model);
		struct gpu_report *report = gpu_report_new(timeline, &options);

		check_timeline(timeline);
		for (uint32_t i = 0; i < timeline->devices.len; i++)
			check_device(report, i);
		check_paths(report);
		check_texts(report);
		gpu_report_free(report);
		gpu_timeline_free(timeline);
		model_free(model);
	}
	store_reader_close(reader);
	return 0;
}
