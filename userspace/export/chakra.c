// SPDX-License-Identifier: Apache-2.0
#include "export/chakra.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_graph.h"
#include "util/memory.h"
#include "util/output.h"

/* Field numbers of et_def.proto. */
enum { METADATA_VERSION = 1, METADATA_ATTR = 2 };
enum {
	NODE_ID = 1,
	NODE_NAME = 2,
	NODE_TYPE = 3,
	NODE_CTRL_DEPS = 4,
	NODE_DATA_DEPS = 5,
	NODE_START_MICROS = 6,
	NODE_DURATION_MICROS = 7,
	NODE_ATTR = 10,
};
enum { ATTR_NAME = 1, ATTR_UINT64 = 13, ATTR_BOOL = 27 };
enum { TYPE_MEM_LOAD = 2, TYPE_MEM_STORE = 3, TYPE_COMP = 4 };

#define CHAKRA_VERSION "1.0.0"

/* Wire types of protobuf. */
enum { WIRE_VARINT = 0, WIRE_LENGTH = 2 };

typedef VEC(unsigned char) bytes;

/* ---- protobuf ---- */

static void put_varint(bytes *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		vec_add(out, (unsigned char)(value | 0x80));
	vec_add(out, (unsigned char)value);
}

static void put_number(bytes *out, unsigned field, uint64_t value)
{
	put_varint(out, field << 3 | WIRE_VARINT);
	put_varint(out, value);
}

static void put_bytes(bytes *out, unsigned field, const void *data, size_t len)
{
	put_varint(out, field << 3 | WIRE_LENGTH);
	put_varint(out, len);
	vec_need(out, len);
	if (len)
		memcpy(out->data + out->len, data, len);
	out->len += len;
}

/* `attribute` is the field of an attribute in the message, `type` that of its value. */
static void put_attribute(bytes *out, bytes *scratch, unsigned attribute, const char *name,
			  unsigned type, uint64_t value)
{
	scratch->len = 0;
	put_bytes(scratch, ATTR_NAME, name, strlen(name));
	put_number(scratch, type, value);
	put_bytes(out, attribute, scratch->data, scratch->len);
}

/* ---- nodes ---- */

struct chakra_writer {
	const struct replay_build *build;
	const bool *selected;
	struct replay_index to;
	uint32_t *previous; /* of each node: the node before it in its queue, or REPLAY_NONE */
	bytes node, deps, attribute;
	FILE *out;
};

static bool is_written(const struct chakra_writer *writer, uint32_t node)
{
	return !writer->selected || writer->selected[node];
}

/* A message and its length. */
static void message_write(struct chakra_writer *writer, const bytes *message)
{
	writer->attribute.len = 0;
	put_varint(&writer->attribute, message->len);
	fwrite(writer->attribute.data, 1, writer->attribute.len, writer->out);
	fwrite(message->data, 1, message->len, writer->out);
}

static unsigned node_type(const struct gpu_timeline *timeline, const struct gpu_timeline_op *op)
{
	const char *copy = gpu_timeline_copy_name(timeline, op) ?: "";

	if (op->kind != GPU_OP_COPY)
		return TYPE_COMP;
	if (!strcmp(copy, "HtoD"))
		return TYPE_MEM_LOAD;
	return !strcmp(copy, "DtoH") ? TYPE_MEM_STORE : TYPE_COMP;
}

static void put_dependencies(struct chakra_writer *writer, uint32_t index)
{
	const struct replay_graph *graph = &writer->build->graph;
	uint32_t previous = writer->previous[index];

	writer->deps.len = 0;
	if (previous != REPLAY_NONE) {
		put_varint(&writer->deps, previous);
		put_bytes(&writer->node, NODE_CTRL_DEPS, writer->deps.data, writer->deps.len);
	}
	writer->deps.len = 0;
	for (uint32_t i = writer->to.first[index]; i < writer->to.first[index + 1]; i++) {
		uint32_t edge = writer->to.edges[i], from = graph->edges.data[edge].from;

		if (!writer->build->cut[edge] && is_written(writer, from))
			put_varint(&writer->deps, from);
	}
	if (writer->deps.len)
		put_bytes(&writer->node, NODE_DATA_DEPS, writer->deps.data, writer->deps.len);
}

static const char *node_name(const struct gpu_timeline *timeline, struct replay_origin origin)
{
	switch (origin.kind) {
	case REPLAY_ORIGIN_LAUNCH:
		return "launch";
	case REPLAY_ORIGIN_MEETING:
		return "collective";
	case REPLAY_ORIGIN_SYNC:
		return gpu_timeline_sync_name(timeline, &timeline->syncs.data[origin.index]);
	default:
		return gpu_timeline_name(timeline, &timeline->ops.data[origin.index]);
	}
}

static void put_op_attributes(struct chakra_writer *writer, const struct gpu_timeline_op *op)
{
	const struct gpu_timeline *timeline = writer->build->timeline;
	const struct gpu_timeline_stream *stream = &timeline->streams.data[op->stream];
	bytes *out = &writer->node, *scratch = &writer->attribute;

	put_attribute(out, scratch, NODE_ATTR, "stream", ATTR_UINT64, stream->number);
	put_attribute(out, scratch, NODE_ATTR, "device", ATTR_UINT64,
		      timeline->devices.data[stream->device].number);
	if (op->bytes)
		put_attribute(out, scratch, NODE_ATTR, "tensor_size", ATTR_UINT64, op->bytes);
}

static void node_write(struct chakra_writer *writer, uint32_t index)
{
	const struct gpu_timeline *timeline = writer->build->timeline;
	const struct replay_node *node = &writer->build->graph.nodes.data[index];
	struct replay_origin origin = writer->build->origins.data[index];
	bool is_op = origin.kind == REPLAY_ORIGIN_OP;
	const struct gpu_timeline_op *op = is_op ? &timeline->ops.data[origin.index] : NULL;
	const char *name = node_name(timeline, origin);

	writer->node.len = 0;
	put_number(&writer->node, NODE_ID, index);
	put_bytes(&writer->node, NODE_NAME, name, strlen(name));
	put_number(&writer->node, NODE_TYPE, op ? node_type(timeline, op) : TYPE_COMP);
	put_dependencies(writer, index);
	put_number(&writer->node, NODE_START_MICROS,
		   node->start_ts < timeline->model->start_ts
			   ? 0
			   : (node->start_ts - timeline->model->start_ts) / 1000);
	put_number(&writer->node, NODE_DURATION_MICROS, (node->dur_ns + 500) / 1000);
	put_attribute(&writer->node, &writer->attribute, NODE_ATTR, "is_cpu_op", ATTR_BOOL, !op);
	/* Microseconds are too coarse for kernels. */
	put_attribute(&writer->node, &writer->attribute, NODE_ATTR, "duration_ns", ATTR_UINT64,
		      node->dur_ns);
	if (op)
		put_op_attributes(writer, op);
	message_write(writer, &writer->node);
}

/* ---- the whole ---- */

static void queues_order(struct chakra_writer *writer)
{
	const struct replay_graph *graph = &writer->build->graph;
	uint32_t *last = replay_numbers_none(graph->queue_count);

	writer->previous = memory_get(graph->nodes.len * sizeof(*writer->previous));
	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		uint32_t queue = graph->nodes.data[i].queue;

		writer->previous[i] = REPLAY_NONE;
		if (queue == REPLAY_NONE || !is_written(writer, i))
			continue;
		writer->previous[i] = last[queue];
		last[queue] = i;
	}
	free(last);
}

static void all_write(struct chakra_writer *writer)
{
	put_bytes(&writer->node, METADATA_VERSION, CHAKRA_VERSION, strlen(CHAKRA_VERSION));
	if (writer->build->timeline->simulated)
		put_attribute(&writer->node, &writer->attribute, METADATA_ATTR, "simulated",
			      ATTR_BOOL, true);
	message_write(writer, &writer->node);
	for (uint32_t i = 0; i < writer->build->graph.nodes.len; i++)
		if (is_written(writer, i))
			node_write(writer, i);
}

static void writer_close(struct chakra_writer *writer)
{
	replay_index_free(&writer->to);
	free(writer->previous);
	vec_free(&writer->node);
	vec_free(&writer->deps);
	vec_free(&writer->attribute);
}

int chakra_write_path(const struct replay_build *build, const bool *selected, const char *path,
		      struct error *err)
{
	struct chakra_writer writer = {.build = build, .selected = selected};
	struct output output;
	struct memory_guard guard = {output_abandon, &output, NULL};
	int result = output_open(&output, path, err);

	if (result)
		return result;
	memory_guard_set(&guard);
	writer.out = output.file;
	writer.to = replay_index_to(&build->graph);
	queues_order(&writer);
	all_write(&writer);
	memory_guard_remove(&guard);
	writer_close(&writer);
	return output_commit(&output, err);
}
