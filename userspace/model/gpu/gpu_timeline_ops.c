// SPDX-License-Identifier: Apache-2.0
/* The operations of a timeline, by device and stream. */
#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu_timeline_internal.h"
#include "util/memory.h"

const char *const gpu_op_kind_names[GPU_OP_KIND_COUNT] = {
	[GPU_OP_KERNEL] = "kernel", [GPU_OP_COPY] = "copy", [GPU_OP_SET] = "set",
	[GPU_OP_GRAPH] = "graph",   [GPU_OP_HOST] = "host", [GPU_OP_WAIT] = "wait",
};

/* What orders streams: their device, then their own numbers. */
struct stream_key {
	uint64_t device, context, stream;
	uint32_t pid, index;
};

struct op_load {
	struct timeline_build *build;
	struct keymap stream_at; /* process, device, context and number -> index in streams */
	VEC(struct stream_key) streams;
};

static unsigned op_kind(const struct timeline_values *values)
{
	for (unsigned kind = 0; kind < GPU_OP_KIND_COUNT; kind++)
		if (timeline_has(values, TIMELINE_OP) &&
		    values->text_len[TIMELINE_OP] == strlen(gpu_op_kind_names[kind]) &&
		    !memcmp(values->text[TIMELINE_OP], gpu_op_kind_names[kind],
			    values->text_len[TIMELINE_OP]))
			return kind;
	return GPU_OP_KIND_COUNT;
}

static uint32_t op_stream(struct op_load *load, uint32_t pid, const struct timeline_values *values)
{
	uint64_t context =
		timeline_has(values, TIMELINE_CONTEXT) ? values->number[TIMELINE_CONTEXT] : 0;
	uint64_t key[] = {pid, values->number[TIMELINE_DEVICE], context,
			  values->number[TIMELINE_STREAM]};
	uint32_t found = keymap_get(&load->stream_at, key, sizeof(key));

	if (found != MAP_NONE)
		return found;
	found = (uint32_t)load->streams.len;
	keymap_put(&load->stream_at, key, sizeof(key), found);
	vec_add(&load->streams, (struct stream_key){key[1], key[2], key[3], pid, found});
	return found;
}

/* The launch with the operation's correlation id; MODEL_NONE: unknown. */
static uint32_t op_launch(struct op_load *load, uint32_t pid, const struct timeline_values *values,
			  uint64_t start_ts)
{
	struct gpu_timeline *timeline = load->build->timeline;
	uint32_t found = MAP_NONE, arming = timeline_arming_at(load->build, pid, start_ts);

	if (arming != MODEL_NONE && timeline_has(values, TIMELINE_CORRELATION) &&
	    values->number[TIMELINE_CORRELATION] <= UINT32_MAX)
		found = map_get(&load->build->launch_at,
				timeline_launch_key(arming, values->number[TIMELINE_CORRELATION]));
	if (found == TIMELINE_REPEATED) {
		timeline->repeated++;
		return MODEL_NONE;
	}
	if (found == MAP_NONE) {
		timeline->without_launch++;
		return MODEL_NONE;
	}
	if (start_ts < timeline->launches.data[found].ts) {
		timeline->early++;
		return MODEL_NONE;
	}
	timeline->launches.data[found].op_count++;
	return found;
}

static uint32_t op_captured(const struct op_load *load, uint32_t pid,
			    const struct timeline_values *values)
{
	uint64_t key[] = {pid, 0, 0};

	if (!timeline_has(values, TIMELINE_GRAPH_NODE))
		return MODEL_NONE;
	key[1] = timeline_has(values, TIMELINE_GRAPH) ? values->number[TIMELINE_GRAPH] : 0;
	key[2] = values->number[TIMELINE_GRAPH_NODE];
	return keymap_get(&load->build->captured_at, key, sizeof(key));
}

static void op_add(struct op_load *load, uint32_t index, uint32_t name)
{
	struct timeline_build *build = load->build;
	const struct model_span *span = &build->model->spans.data[index];
	uint32_t pid = build->model->threads.data[span->thread].pid;
	struct gpu_timeline_op op = {.start_ts = span->start_ts,
				     .end_ts = span->end_ts,
				     .span = index,
				     .name = name,
				     .copy = MODEL_NONE,
				     .previous = MODEL_NONE};
	struct timeline_values values;

	timeline_values_read(build, span->site, span->frame, &values);
	op.kind = (uint8_t)op_kind(&values);
	/* A synchronisation of a context has no stream. */
	if (op.kind == GPU_OP_WAIT && !timeline_has(&values, TIMELINE_STREAM))
		return;
	if (op.kind == GPU_OP_KIND_COUNT || !timeline_has(&values, TIMELINE_DEVICE) ||
	    !timeline_has(&values, TIMELINE_STREAM) || span->flags & MODEL_SPAN_CUT ||
	    span->end_ts < span->start_ts) {
		build->timeline->unknown_ops++;
		return;
	}
	if (timeline_has(&values, TIMELINE_BYTES))
		op.bytes = values.number[TIMELINE_BYTES];
	if (op.kind == GPU_OP_COPY && values.text_len[TIMELINE_COPY] &&
	    timeline_has(&values, TIMELINE_COPY))
		op.copy = timeline_name(build, values.text[TIMELINE_COPY],
					values.text_len[TIMELINE_COPY]);
	op.stream = op_stream(load, pid, &values);
	/* A synchronisation has the id of its own call, which launches nothing. */
	op.launch =
		op.kind == GPU_OP_WAIT ? MODEL_NONE : op_launch(load, pid, &values, op.start_ts);
	op.captured = op_captured(load, pid, &values);
	op.graph =
		timeline_has(&values, TIMELINE_GRAPH) || timeline_has(&values, TIMELINE_GRAPH_NODE);
	op.clamped = timeline_has(&values, TIMELINE_CLAMPED) && values.number[TIMELINE_CLAMPED];
	vec_add(&build->timeline->ops, op);
}

/* ---- streams and devices ---- */

static int compare_streams(const void *left, const void *right)
{
	const struct stream_key *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return a->stream < b->stream ? -1 : a->stream > b->stream;
}

static uint32_t device_add(struct gpu_timeline *timeline, const struct stream_key *key)
{
	size_t count = timeline->devices.len;
	struct gpu_timeline_device *last = count ? &timeline->devices.data[count - 1] : NULL;

	if (!last || last->pid != key->pid || last->number != key->device) {
		vec_add(&timeline->devices,
			(struct gpu_timeline_device){.number = key->device,
						     .pid = key->pid,
						     .stream = (uint32_t)timeline->streams.len});
		count++;
	}
	timeline->devices.data[count - 1].stream_count++;
	return (uint32_t)count - 1;
}

/* Sorts the streams and gives them their devices. Returns the new index of each stream. */
static uint32_t *streams_place(struct op_load *load)
{
	struct gpu_timeline *timeline = load->build->timeline;
	uint32_t *placed = memory_get(load->streams.len * sizeof(*placed));

	if (load->streams.len)
		qsort(load->streams.data, load->streams.len, sizeof(*load->streams.data),
		      compare_streams);
	for (size_t i = 0; i < load->streams.len; i++) {
		const struct stream_key *key = &load->streams.data[i];
		uint32_t device = device_add(timeline, key);

		placed[key->index] = (uint32_t)i;
		vec_add(&timeline->streams, (struct gpu_timeline_stream){.context = key->context,
									 .number = key->stream,
									 .device = device,
									 .thread = MODEL_NONE});
	}
	return placed;
}

/* Sorts the operations by stream. They are in the order of their begins, and stay so. */
static void ops_place(struct op_load *load)
{
	struct gpu_timeline *timeline = load->build->timeline;
	uint32_t *placed = streams_place(load), at = 0;
	struct gpu_timeline_op *sorted = memory_get(timeline->ops.len * sizeof(*sorted));

	for (size_t i = 0; i < timeline->ops.len; i++) {
		timeline->ops.data[i].stream = placed[timeline->ops.data[i].stream];
		timeline->streams.data[timeline->ops.data[i].stream].op_count++;
	}
	for (size_t i = 0; i < timeline->streams.len; i++) {
		struct gpu_timeline_stream *stream = &timeline->streams.data[i];
		struct gpu_timeline_device *device = &timeline->devices.data[stream->device];

		device->op = device->op_count ? device->op : at;
		device->op_count += stream->op_count;
		stream->op = at;
		at += stream->op_count;
		stream->op_count = 0;
	}
	for (size_t i = 0; i < timeline->ops.len; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[i];
		struct gpu_timeline_stream *stream = &timeline->streams.data[op->stream];

		if (!stream->op_count)
			stream->thread = load->build->model->spans.data[op->span].thread;
		sorted[stream->op + stream->op_count++] = *op;
	}
	free(timeline->ops.data);
	timeline->ops.data = sorted;
	timeline->ops.cap = timeline->ops.len;
	free(placed);
}

/* Lists the operations of each launch. */
static void launched_place(struct gpu_timeline *timeline)
{
	uint32_t at = 0;

	vec_need(&timeline->launched, timeline->ops.len);
	timeline->launched.len = 0;
	for (size_t i = 0; i < timeline->launches.len; i++) {
		timeline->launches.data[i].op = at;
		at += timeline->launches.data[i].op_count;
		timeline->launches.data[i].op_count = 0;
	}
	timeline->launched.len = at;
	for (size_t i = 0; i < timeline->ops.len; i++) {
		struct gpu_timeline_launch *launch;

		if (timeline->ops.data[i].launch == MODEL_NONE)
			continue;
		launch = &timeline->launches.data[timeline->ops.data[i].launch];
		timeline->launched.data[launch->op + launch->op_count++] = (uint32_t)i;
	}
}

void timeline_ops_load(struct timeline_build *build)
{
	const struct model *model = build->model;
	struct op_load load = {.build = build};

	for (size_t i = 0; i < model->spans.len; i++) {
		const struct timeline_site *site = timeline_site(build, model->spans.data[i].site);

		if (site->kind == TIMELINE_SITE_OP)
			op_add(&load, (uint32_t)i, site->name);
	}
	ops_place(&load);
	launched_place(build->timeline);
	keymap_free(&load.stream_at);
	vec_free(&load.streams);
}

/* ---- the order on a stream ---- */

/* Operations that are still running, as a heap: the first one ends first. */
struct running {
	const struct gpu_timeline *timeline;
	VEC(uint32_t) heap;
};

static uint64_t running_end(const struct running *running, size_t at)
{
	return running->timeline->ops.data[running->heap.data[at]].end_ts;
}

static void running_swap(struct running *running, size_t a, size_t b)
{
	uint32_t op = running->heap.data[a];

	running->heap.data[a] = running->heap.data[b];
	running->heap.data[b] = op;
}

static void running_add(struct running *running, uint32_t op)
{
	size_t at = running->heap.len;

	vec_add(&running->heap, op);
	while (at && running_end(running, at) < running_end(running, (at - 1) / 2)) {
		running_swap(running, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static uint32_t running_take(struct running *running)
{
	uint32_t first = running->heap.data[0];
	size_t at = 0;

	running->heap.data[0] = running->heap.data[--running->heap.len];
	for (;;) {
		size_t least = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
			if (child < running->heap.len &&
			    running_end(running, child) < running_end(running, least))
				least = child;
		if (least == at)
			return first;
		running_swap(running, at, least);
		at = least;
	}
}

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
	struct running running = {.timeline = timeline};

	for (size_t i = 0; i < timeline->streams.len; i++) {
		const struct gpu_timeline_stream *stream = &timeline->streams.data[i];
		uint32_t previous = MODEL_NONE;

		running.heap.len = 0;
		for (uint32_t k = stream->op; k < stream->op + stream->op_count; k++) {
			struct gpu_timeline_op *op = &timeline->ops.data[k];

			if (op->kind == GPU_OP_WAIT)
				continue;
			while (running.heap.len && running_end(&running, 0) <= op->start_ts)
				previous = later_end(timeline, previous, running_take(&running));
			op->previous = previous;
			running_add(&running, k);
		}
	}
	vec_free(&running.heap);
}
