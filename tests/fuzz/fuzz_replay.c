// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target for replays: the input is a timeline of a GPU, six bytes for each thing in it,
 * and a what-if behind them. Times may contradict all dependencies.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_compare.h"
#include "analyze/gpu/replay_report.h"
#include "require.h"
#include "util/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STREAMS 4
#define THREADS 3
#define SPANS 8
#define THINGS_MAX 200
#define THING_BYTES 6

static struct model_span spans[SPANS];
static struct model_context contexts[SPANS];
static struct model_thread threads[THREADS];
static struct model_process process = {.rank = MODEL_NONE};
static const struct store_meta meta = {.filter = ""};
static struct site_info site = {
	.name = "x", .category = "gpu", .file = "", .func = "", .object = ""};

static struct model model_make(void)
{
	struct model model = {.meta = &meta, .host_count = 1};

	for (uint32_t i = 0; i < SPANS; i++)
		spans[i] = (struct model_span){.start_ts = i * 10,
					       .end_ts = i * 20,
					       .thread = i % THREADS,
					       .end_thread = i % THREADS,
					       .parent = MODEL_NONE,
					       .frame = MODEL_NONE};
	model.spans.data = spans;
	model.spans.len = SPANS;
	model.contexts.data = contexts;
	model.contexts.len = SPANS;
	model.threads.data = threads;
	model.threads.len = THREADS;
	model.processes.data = &process;
	model.processes.len = 1;
	model.sites.data = &site;
	model.sites.len = 1;
	model.strings = strtab_make();
	return model;
}

/* ---- a timeline ---- */

static void op_add(struct gpu_timeline *timeline, const uint8_t *at)
{
	const struct gpu_timeline_op *last =
		timeline->ops.len ? &timeline->ops.data[timeline->ops.len - 1] : NULL;
	struct gpu_timeline_op op = {.kind = at[1] % GPU_OP_KIND_COUNT,
				     .stream = at[2] % STREAMS,
				     .copy = at[1] >> 7,
				     .span = at[3] % SPANS,
				     .launch = MODEL_NONE,
				     .captured = MODEL_NONE,
				     .previous = MODEL_NONE};

	/* Operations are sorted by stream, then by begin. */
	if (last && op.stream < last->stream)
		op.stream = last->stream;
	op.start_ts = at[4] + (last && last->stream == op.stream ? last->start_ts : 0);
	op.end_ts = op.start_ts + at[5];
	if (timeline->launches.len && at[3] & 0x80)
		op.launch = at[3] % (uint32_t)timeline->launches.len;
	vec_add(&timeline->ops, op);
}

static void launch_add(struct gpu_timeline *timeline, const uint8_t *at)
{
	struct gpu_timeline_launch launch = {
		.ts = at[4] + (timeline->launches.len
				       ? timeline->launches.data[timeline->launches.len - 1].ts
				       : 0),
		.correlation = (uint32_t)timeline->launches.len,
		.thread = at[2] % THREADS,
		.host = at[3] & 1 ? at[3] % SPANS : MODEL_NONE,
		.host_kind = MODEL_NODE_SPAN,
		.span = MODEL_NONE};

	vec_add(&timeline->launches, launch);
}

/* Refers to operations, so it comes after all of them. */
static void sync_add(struct gpu_timeline *timeline, const uint8_t *at)
{
	struct gpu_timeline_sync sync = {.start_ts = at[4],
					 .end_ts = (uint64_t)at[4] + at[5],
					 .span = at[3] % SPANS,
					 .thread = at[2] % THREADS,
					 .op = (uint32_t)timeline->awaited.len};

	if (!timeline->ops.len)
		return;
	vec_add(&timeline->awaited, at[3] % (uint32_t)timeline->ops.len);
	sync.op_count = 1;
	vec_add(&timeline->syncs, sync);
}

static void edge_add(struct gpu_timeline *timeline, const uint8_t *at)
{
	uint32_t count = (uint32_t)timeline->ops.len;
	struct gpu_timeline_edge edge;

	if (!count)
		return;
	edge = (struct gpu_timeline_edge){at[2] % count, at[3] % count, GPU_EDGE_EVENT, false};
	vec_add(&timeline->edges, edge);
}

static int edge_compare(const void *left, const void *right)
{
	const struct gpu_timeline_edge *a = left, *b = right;

	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

/* The streams' ranges, and the list of operations by launch. */
static void timeline_finish(struct gpu_timeline *timeline)
{
	for (uint32_t i = 0; i < STREAMS; i++)
		vec_add(&timeline->streams, (struct gpu_timeline_stream){.number = i});
	vec_add(&timeline->devices, (struct gpu_timeline_device){.stream_count = STREAMS});
	for (uint32_t i = 0; i < timeline->ops.len; i++) {
		struct gpu_timeline_stream *stream =
			&timeline->streams.data[timeline->ops.data[i].stream];

		if (!stream->op_count++)
			stream->op = i;
	}
	for (uint32_t i = 0; i < timeline->launches.len; i++) {
		struct gpu_timeline_launch *launch = &timeline->launches.data[i];

		launch->op = (uint32_t)timeline->launched.len & INT32_MAX;
		for (uint32_t op = 0; op < timeline->ops.len; op++)
			if (timeline->ops.data[op].launch == i)
				vec_add(&timeline->launched, op);
	}
	vec_add(&timeline->launches, (struct gpu_timeline_launch){0});
	timeline->launches.len--;
	timeline->launches.data[timeline->launches.len].op =
		(uint32_t)timeline->launched.len & INT32_MAX;
	if (timeline->edges.len)
		qsort(timeline->edges.data, timeline->edges.len, sizeof(*timeline->edges.data),
		      edge_compare);
}

/* Launches first, then operations, then what refers to them. */
static void timeline_fill(struct gpu_timeline *timeline, const uint8_t *data, size_t count)
{
	static void (*const adds[])(struct gpu_timeline *, const uint8_t *) = {launch_add, op_add,
									       sync_add, edge_add};

	vec_add(&timeline->names, "kernel");
	vec_add(&timeline->copies, "HtoD");
	for (unsigned kind = 0; kind < 4; kind++)
		for (size_t i = 0; i < count; i++)
			if ((data[i * THING_BYTES] & 3) == kind)
				adds[kind](timeline, data + i * THING_BYTES);
	timeline_finish(timeline);
}

static void timeline_clear(struct gpu_timeline *timeline)
{
	vec_free(&timeline->ops);
	vec_free(&timeline->streams);
	vec_free(&timeline->devices);
	vec_free(&timeline->launches);
	vec_free(&timeline->copies);
	vec_free(&timeline->edges);
	vec_free(&timeline->syncs);
	vec_free(&timeline->names);
	vec_free(&timeline->launched);
	vec_free(&timeline->awaited);
}

/* ---- checks ---- */

static void check_replay(const struct gpu_timeline *timeline, const char *text)
{
	const struct replay_part all = REPLAY_PART_ALL;
	struct replay_build *build = replay_build_new(timeline);
	struct replay_what_if what_if;
	struct replay_report report;
	struct replay_answer answer;
	struct error err = ERROR_INIT;

	require(!replay_report_run(&report, build, &all, false, NULL, 0, &err));
	/* Whatever the times say, edges lead forward, so nothing waits for itself. */
	require(report.result.nodes_executed == report.result.nodes_total);
	require(report.violations.len <= report.dependencies);
	for (uint32_t i = 0; i < build->graph.nodes.len; i++)
		require(report.result.start_ts[i] != UINT64_MAX);
	if (!replay_what_if_parse(&what_if, text, &err)) {
		if (!replay_what_if_run(build, &what_if, NULL, &answer, &err))
			replay_result_free(&answer.result);
		replay_what_if_free(&what_if);
	}
	replay_report_free(&report);
	replay_build_free(build);
}

static void check_comparison(const struct gpu_timeline *timeline)
{
	struct replay_comparison *comparison = replay_compare(timeline, timeline);

	require(!comparison->diverging_streams && comparison->equal == comparison->ops_a);
	replay_comparison_free(comparison);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpu_timeline timeline = {0};
	size_t count, used;
	struct model model;
	char text[256] = "";

	if (!size)
		return 0;
	model = model_make();
	timeline.model = &model;
	count = data[0] % THINGS_MAX;
	if (count > (size - 1) / THING_BYTES)
		count = (size - 1) / THING_BYTES;
	used = 1 + count * THING_BYTES;
	memcpy(text, data + used, size - used < sizeof(text) ? size - used : sizeof(text) - 1);
	timeline_fill(&timeline, data + 1, count);
	check_replay(&timeline, text);
	check_comparison(&timeline);
	timeline_clear(&timeline);
	strtab_free(model.strings);
	return 0;
}
