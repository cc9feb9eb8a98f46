// SPDX-License-Identifier: Apache-2.0
/* The operations of a timeline, by device and stream. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu_records.h"
#include "model/gpu/gpu_timeline_internal.h"
#include "model/order.h"
#include "model/order_heap.h"
#include "util/memory.h"

struct op_load {
	struct timeline_build *build;
	uint32_t *name_of; /* site -> name; the last one is for unknown sites */
	/* Stream of the records -> stream of the timeline; MODEL_NONE: it has no operations. */
	uint32_t *stream_at;
};

/* ---- names ---- */

static uint32_t name_find(struct gpu_timeline *timeline, struct keymap *known, const char *name)
{
	uint32_t found = keymap_get(known, name, strlen(name));

	if (found != MAP_NONE)
		return found;
	found = (uint32_t)timeline->names.len;
	keymap_put(known, name, strlen(name), found);
	vec_add(&timeline->names, memory_text(name));
	return found;
}

/* Sites of the same name, such as those of kernels with and without a graph, are one name. */
static void names_find(struct op_load *load)
{
	const struct model *model = load->build->model;
	const struct timeline_sites *sites = load->build->sites;
	struct keymap known = {0};

	load->name_of = memory_zeroed((size_t)sites->count + 1, sizeof(*load->name_of));
	for (uint32_t i = 0; i <= sites->count; i++)
		if (sites->site[i].kind == TIMELINE_SITE_OP)
			load->name_of[i] = name_find(load->build->timeline, &known,
						     model_site(model, i)->name);
	keymap_free(&known);
}

/* ---- streams and devices ---- */

/* Whether an operation has a begin and an end. */
static bool op_is_whole(const struct timeline_build *build, const struct gpu_record_op *op)
{
	if (op->end_ts == GPU_RECORD_OPEN || op->end_ts < op->start_ts)
		return false;
	/* A model has cut the spans that were open when the capture began. */
	return op->span != MODEL_NONE || op->start_ts >= build->model->start_ts ||
	       op->end_ts < build->model->start_ts;
}

static void ops_count(struct timeline_build *build)
{
	struct gpu_records *records = build->records;

	build->timeline->unknown_ops = records->unknown_ops + records->ended.len;
	for (size_t i = 0; i < records->op_count; i++) {
		const struct gpu_record_op *op = gpu_record_op(records, i);

		if (op->placeless)
			continue;
		if (op_is_whole(build, op))
			records->streams.data[op->stream].op_count++;
		else
			build->timeline->unknown_ops++;
	}
}

/* By process, device, context, and the number of the stream. */
static int compare_streams(const void *left, const void *right, void *arg)
{
	const struct gpu_records *records = arg;
	const struct gpu_record_stream *a = &records->streams.data[*(const uint32_t *)left];
	const struct gpu_record_stream *b = &records->streams.data[*(const uint32_t *)right];

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static uint32_t device_add(struct gpu_timeline *timeline, const struct gpu_record_stream *stream)
{
	size_t count = timeline->devices.len;
	struct gpu_timeline_device *last = count ? &timeline->devices.data[count - 1] : NULL;

	if (!last || last->pid != stream->pid || last->number != stream->device) {
		vec_add(&timeline->devices,
			(struct gpu_timeline_device){.number = stream->device,
						     .pid = stream->pid,
						     .op = (uint32_t)timeline->ops.len,
						     .stream = (uint32_t)timeline->streams.len});
		last = &timeline->devices.data[count++];
	}
	last->stream_count++;
	last->op_count += stream->op_count;
	return (uint32_t)count - 1;
}

/* Adds a stream. Counts its operations in timeline.ops.len, which has none so far. */
static void stream_add(struct gpu_timeline *timeline, const struct gpu_record_stream *stream)
{
	uint32_t device = device_add(timeline, stream);

	vec_add(&timeline->streams, (struct gpu_timeline_stream){.context = stream->context,
								 .number = stream->number,
								 .device = device,
								 .op = (uint32_t)timeline->ops.len,
								 .thread = stream->thread});
	timeline->ops.len += stream->op_count;
}

static void streams_place(struct op_load *load)
{
	struct gpu_records *records = load->build->records;
	struct gpu_timeline *timeline = load->build->timeline;
	size_t count = records->streams.len;
	uint32_t *order = memory_get(count * sizeof(*order)); /* streams of the records */

	load->stream_at = memory_get(count * sizeof(*load->stream_at));
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	if (count)
		qsort_r(order, count, sizeof(*order), compare_streams, records);
	for (size_t i = 0; i < count; i++) {
		uint32_t stream = order[i];

		load->stream_at[stream] = MODEL_NONE;
		if (!records->streams.data[stream].op_count)
			continue;
		load->stream_at[stream] = (uint32_t)timeline->streams.len;
		stream_add(timeline, &records->streams.data[stream]);
	}
	free(order);
}

/* ---- operations ---- */

/* The launch with the operation's correlation id; MODEL_NONE: unknown. */
static uint32_t op_launch(struct timeline_build *build, const struct gpu_record_op *op)
{
	struct gpu_timeline *timeline = build->timeline;
	uint32_t pid = build->records->streams.data[op->stream].pid;
	uint32_t found = MODEL_NONE, arming = timeline_arming_at(build, pid, op->start_ts);

	if (arming != MODEL_NONE && op->has_correlation)
		found = timeline_launch_at(&build->launch_at, arming, op->correlation);
	if (found == TIMELINE_REPEATED) {
		timeline->repeated++;
		return MODEL_NONE;
	}
	if (found == MODEL_NONE) {
		timeline->without_launch++;
		return MODEL_NONE;
	}
	if (op->start_ts < timeline->launches.data[found].ts) {
		timeline->early++;
		return MODEL_NONE;
	}
	return found;
}

static uint32_t op_captured(const struct timeline_build *build, const struct gpu_record_op *op)
{
	const struct gpu_records *records = build->records;
	uint64_t key[] = {records->streams.data[op->stream].pid, 0, 0};

	if (op->node == MODEL_NONE)
		return MODEL_NONE;
	key[1] = records->nodes.data[op->node].graph;
	key[2] = records->nodes.data[op->node].node;
	return keymap_get(&build->captured_at, key, sizeof(key));
}

static void op_place(struct op_load *load, const struct gpu_record_op *record)
{
	struct gpu_timeline *timeline = load->build->timeline;
	uint32_t at = load->stream_at[record->stream], count = load->build->sites->count;
	struct gpu_timeline_stream *stream = &timeline->streams.data[at];
	struct gpu_timeline_op *op = &timeline->ops.data[stream->op + stream->op_count++];

	*op = (struct gpu_timeline_op){
		.start_ts = record->start_ts,
		.end_ts = record->end_ts,
		.bytes = record->bytes,
		.copy = record->kind == GPU_OP_COPY ? record->copy : 0,
		.kind = record->kind,
		.graph = record->graph,
		.clamped = record->clamped,
		.span = record->span,
		.name = load->name_of[record->site < count ? record->site : count],
		.stream = at,
		.captured = op_captured(load->build, record),
		.previous = MODEL_NONE,
		/* A synchronisation has the id of its own call, which launches nothing. */
		.launch = record->kind == GPU_OP_WAIT ? MODEL_NONE : op_launch(load->build, record),
	};
}

/* Moves the operations to their streams. The records of a chunk are freed before the next one's
 * operations need memory. */
static void ops_place(struct op_load *load)
{
	struct gpu_timeline *timeline = load->build->timeline;
	struct gpu_records *records = load->build->records;

	timeline->ops.data = memory_get(timeline->ops.len * sizeof(*timeline->ops.data));
	timeline->ops.cap = timeline->ops.len;
	for (size_t i = 0; i < records->op_count; i++) {
		const struct gpu_record_op *op = gpu_record_op(records, i);

		if (op_is_whole(load->build, op) && op->kind == GPU_OP_WAIT)
			timeline_wait_add(load->build, op);
		if (op_is_whole(load->build, op) && !op->placeless)
			op_place(load, op);
		if (i % GPU_RECORDS_CHUNK == GPU_RECORDS_CHUNK - 1) {
			free(records->chunks.data[i / GPU_RECORDS_CHUNK]);
			records->chunks.data[i / GPU_RECORDS_CHUNK] = NULL;
		}
	}
	for (size_t i = 0; i < timeline->streams.len; i++) {
		const struct gpu_timeline_stream *stream = &timeline->streams.data[i];

		free(order_array(&timeline->ops.data[stream->op], stream->op_count,
				 sizeof(*timeline->ops.data),
				 offsetof(struct gpu_timeline_op, start_ts)));
	}
}

void timeline_ops_load(struct timeline_build *build)
{
	struct op_load load = {.build = build};
	struct gpu_timeline *timeline = build->timeline;

	names_find(&load);
	ops_count(build);
	streams_place(&load);
	ops_place(&load);
	timeline->copies.data = build->records->copies.data;
	timeline->copies.len = build->records->copies.len;
	timeline->copies.cap = build->records->copies.cap;
	build->records->copies.data = NULL;
	build->records->copies.len = build->records->copies.cap = 0;
	free(load.name_of);
	free(load.stream_at);
}

/* `op` of a launch is first the number of its operations, then where they begin. Listing them moves
 * it to where those of the next launch begin, so at last each launch takes the one before. */
void timeline_launched_find(struct gpu_timeline *timeline)
{
	struct gpu_timeline_launch *launches = timeline->launches.data;
	uint32_t at = 0;

	memory_require(timeline->ops.len < 1u << 31); /* the width of gpu_timeline_launch.op */
	for (size_t i = 0; i < timeline->ops.len; i++)
		if (timeline->ops.data[i].launch != MODEL_NONE)
			launches[timeline->ops.data[i].launch].op++;
	for (size_t i = 0; i < timeline->launches.len; i++) {
		uint32_t count = launches[i].op;

		launches[i].op = at & INT32_MAX;
		at += count;
	}
	timeline->launched.data = memory_get(at * sizeof(uint32_t));
	timeline->launched.len = timeline->launched.cap = at;
	for (size_t i = 0; i < timeline->ops.len; i++)
		if (timeline->ops.data[i].launch != MODEL_NONE)
			timeline->launched.data[launches[timeline->ops.data[i].launch].op++] =
				(uint32_t)i;
	for (size_t i = timeline->launches.len; i; i--)
		launches[i].op = launches[i - 1].op;
	launches[0].op = 0;
}

/* ---- the order on a stream ---- */

/* Of two operations, that which ended last; if both did, the later one. */
static uint32_t later_end(const struct gpu_timeline *timeline, uint32_t a, uint32_t b)
{
	uint64_t a_end, b_end;

	if (a == MODEL_NONE)
		return b;
	a_end = timeline->ops.data[a].end_ts;
	b_end = timeline->ops.data[b].end_ts;
	if (a_end != b_end)
		return a_end > b_end ? a : b;
	return a > b ? a : b;
}

void timeline_order_find(struct gpu_timeline *timeline)
{
	order_heap running = {0}; /* operations, by their ends */

	for (size_t i = 0; i < timeline->streams.len; i++) {
		const struct gpu_timeline_stream *stream = &timeline->streams.data[i];
		uint32_t previous = MODEL_NONE;

		running.len = 0;
		for (uint32_t k = stream->op; k < stream->op + stream->op_count; k++) {
			struct gpu_timeline_op *op = &timeline->ops.data[k];

			if (op->kind == GPU_OP_WAIT)
				continue;
			while (running.len && running.data[0].ts <= op->start_ts)
				previous = later_end(timeline, previous,
						     order_heap_take(&running).index);
			op->previous = previous;
			order_heap_add(&running, (struct order_item){op->end_ts, k});
		}
	}
	vec_free(&running);
}
