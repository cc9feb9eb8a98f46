/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations and launches of libwaffle-gpu as they come out of a capture, before they are in
 * order. An operation takes 48 bytes here, and several hundred among the spans of a model. So a
 * model that is only loaded for its timeline keeps them apart (model_filter.gpu_apart).
 *
 *	records = gpu_records_new(model);        the model has its sites
 *	gpu_records_hit(records, &hit);          each of its hits, in the order of the file
 *	gpu_records_end(records, &end);          each end of a span
 *	timeline = gpu_timeline_take(model);     takes the records out of the model
 *	gpu_records_free(records);
 *
 * Times (_ts) are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef WAFFLE_MODEL_GPU_GPU_RECORDS_H
#define WAFFLE_MODEL_GPU_GPU_RECORDS_H

#include "model/gpu/gpu_op_kind.h"
#include "model/model.h"
#include "util/keymap.h"
#include "util/map.h"

/* end_ts of an operation whose end was not seen so far. */
#define GPU_RECORD_OPEN UINT64_MAX

/* Operations are in chunks, each of which is freed as soon as its operations are in the timeline.
 */
#define GPU_RECORDS_CHUNK (1u << 16)
#define GPU_RECORDS_RECENT 64
/* More names of directions are not told apart: they are unknown. */
#define GPU_COPIES_MAX 255

/* What a call of the host waited for. */
enum gpu_wait_kind { GPU_WAIT_OTHER, GPU_WAIT_STREAM, GPU_WAIT_CONTEXT, GPU_WAIT_EVENT };

/* The device or number of a stream, if a wait does not say it. */
#define GPU_RECORD_UNKNOWN UINT64_MAX

struct gpu_record_op {
	uint64_t start_ts, end_ts;
	/* As in struct gpu_timeline_op, but `copy` of a wait is an enum gpu_wait_kind. */
	uint64_t bytes : 48, copy : 8, kind : 3, graph : 1, clamped : 1;
	uint64_t has_correlation : 1;
	uint64_t placeless : 1; /* a wait without a device or a stream, which is on no stream */
	uint32_t site;
	uint32_t span;        /* in model.spans; MODEL_NONE: it is kept apart */
	uint32_t stream;      /* in gpu_records.streams */
	uint32_t correlation; /* valid with has_correlation */
	uint32_t node;        /* in gpu_records.nodes; MODEL_NONE: no node of a graph */
};

/* It has the size of a struct gpu_timeline_launch, which takes its place. */
struct gpu_record_launch {
	uint64_t ts;
	uint64_t parent_id; /* of the span around it; without meaning if there is an `event` */
	uint32_t event;     /* in model.events; MODEL_NONE: it is kept apart */
	uint32_t thread, correlation;
	uint32_t handle; /* index of its stream in gpu_records.handles; MODEL_NONE: unknown */
};

/* Which node of which graph an operation is. */
struct gpu_record_node {
	uint64_t graph, node;
};

struct gpu_record_stream {
	uint64_t device, context, number;
	uint32_t pid;
	uint32_t thread; /* the track of its first operation */
	uint32_t op_count;
};

struct timeline_sites;

struct gpu_records {
	const struct model *model;
	struct timeline_sites *sites;
	VEC(struct gpu_record_op *) chunks;
	size_t op_count;
	VEC(struct gpu_record_launch) launches;
	VEC(struct gpu_record_node) nodes;
	VEC(struct gpu_record_stream) streams;
	VEC(const char *) copies; /* names of the directions of copies; at most GPU_COPIES_MAX */
	VEC(uint64_t) handles;    /* handles of streams that launches have, each once */
	/* Operations of an unknown kind, without a stream, or without a begin or an end. */
	uint64_t unknown_ops;
	uint64_t bad_records;
	/* ---- private to gpu_records.c ---- */
	struct keymap stream_at, copy_at;
	struct map handle_at; /* handle -> index in `handles` */
	uint32_t last_handle; /* in `handles`: most launches are on the stream of the one before */
	/* Streams of the last operations, by a hash: most come again soon. */
	uint32_t recent[GPU_RECORDS_RECENT];
	struct map open; /* id of a span without an end so far -> its operation */
	/* The same of the last hit, which is not in `open` yet: most ends follow their begin. */
	uint64_t last_id; /* 0: it has an end */
	uint32_t last_op;
	VEC(uint64_t) ends; /* that came before their begin */
	struct map ended;   /* id of the span -> index in `ends` */
};

/* A hit of a site: the begin of a span, or an event. */
struct gpu_record_hit {
	uint64_t ts, id, parent_id;
	uint32_t site, thread;
	const void *values;
	uint32_t bytes; /* of the values */
};

/* NULL: no site of the model is one of libwaffle-gpu. */
struct gpu_records *gpu_records_new(const struct model *model);
/* The records of a model that has them among its spans and events. NULL as above. */
struct gpu_records *gpu_records_of(const struct model *model);
void gpu_records_free(struct gpu_records *records);

/* False: the hit is no operation and no launch, and belongs to the model. */
bool gpu_records_hit(struct gpu_records *records, const struct gpu_record_hit *hit);

struct gpu_record_end {
	uint64_t id, ts;
	uint32_t site;
	uint32_t thread; /* out: of the operation; MODEL_NONE: its begin was not seen */
};

/* False: the end is not that of an operation, and belongs to the model. */
bool gpu_records_end(struct gpu_records *records, struct gpu_record_end *end);

static inline struct gpu_record_op *gpu_record_op(const struct gpu_records *records, size_t index)
{
	return &records->chunks.data[index / GPU_RECORDS_CHUNK][index % GPU_RECORDS_CHUNK];
}

#endif
