// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay_compare.h"

#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu.h"
#include "util/memory.h"

/* One of the two captures. */
struct compared_side {
	const struct gpu_timeline *timeline;
	VEC(uint32_t) streams; /* of the timeline, by first use */
	uint32_t *ordinal;     /* of each stream of the timeline; MODEL_NONE: nothing ran there */
	/* Operations that are compared, by ordinal of the stream; and where each stream begins. */
	VEC(uint32_t) ops;
	VEC(size_t) first;
	uint32_t *position; /* of each operation of the timeline: index in ops */
};

/* What waits are is for the host; streams are compared by the work on them. */
static bool is_compared(const struct gpu_timeline_op *op)
{
	return op->kind != GPU_OP_WAIT;
}

/* ---- streams by first use ---- */

struct use {
	uint64_t ts;
	uint32_t stream;
};

static int use_compare(const void *left, const void *right)
{
	const struct use *a = left, *b = right;

	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	return a->stream < b->stream ? -1 : a->stream > b->stream;
}

/* The host's order is the same in each run of a program, that of the GPU may not be. */
static uint64_t use_ts(const struct gpu_timeline *timeline, const struct gpu_timeline_op *op)
{
	return op->launch == MODEL_NONE ? op->start_ts : timeline->launches.data[op->launch].ts;
}

static void side_ops(struct compared_side *side, const struct gpu_timeline_stream *stream)
{
	vec_add(&side->first, side->ops.len);
	for (uint32_t i = 0; i < stream->op_count; i++) {
		if (!is_compared(&side->timeline->ops.data[stream->op + i]))
			continue;
		side->position[stream->op + i] = (uint32_t)side->ops.len;
		vec_add(&side->ops, stream->op + i);
	}
}

static void side_open(struct compared_side *side, const struct gpu_timeline *timeline)
{
	VEC(struct use) uses = {0};

	*side = (struct compared_side){.timeline = timeline};
	for (uint32_t i = 0; i < timeline->streams.len; i++) {
		const struct gpu_timeline_stream *stream = &timeline->streams.data[i];
		struct use use = {UINT64_MAX, i};

		for (uint32_t j = stream->op; j < stream->op + stream->op_count; j++) {
			const struct gpu_timeline_op *op = &timeline->ops.data[j];

			if (is_compared(op) && use_ts(timeline, op) < use.ts)
				use.ts = use_ts(timeline, op);
		}
		if (use.ts != UINT64_MAX)
			vec_add(&uses, use);
	}
	if (uses.len)
		qsort(uses.data, uses.len, sizeof(*uses.data), use_compare);
	side->ordinal = memory_get(timeline->streams.len * sizeof(*side->ordinal));
	memset(side->ordinal, 0xff, timeline->streams.len * sizeof(*side->ordinal));
	side->position = memory_zeroed(timeline->ops.len, sizeof(*side->position));
	for (uint32_t i = 0; i < uses.len; i++) {
		vec_add(&side->streams, uses.data[i].stream);
		side->ordinal[uses.data[i].stream] = i;
		side_ops(side, &timeline->streams.data[uses.data[i].stream]);
	}
	vec_add(&side->first, side->ops.len);
	vec_free(&uses);
}

static void side_close(struct compared_side *side)
{
	vec_free(&side->streams);
	vec_free(&side->ops);
	vec_free(&side->first);
	free(side->ordinal);
	free(side->position);
}

/* ---- one operation ---- */

static bool value_is_equal(const struct value *a, const struct value *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == WAFFLE_KEY_STR)
		return a->null == b->null && a->text_len == b->text_len &&
		       (a->null || !memcmp(a->text, b->text, a->text_len));
	if (a->type == WAFFLE_KEY_DIM3)
		return !memcmp(a->dim, b->dim, sizeof(a->dim));
	return a->u64 == b->u64;
}

static bool key_is_equal(const struct compared_side *a, const struct gpu_timeline_op *op_a,
			 const struct compared_side *b, const struct gpu_timeline_op *op_b,
			 const char *key)
{
	struct value value_a, value_b;
	bool has_a =
		model_gpu_value(a->timeline->model, MODEL_NODE_SPAN, op_a->span, key, &value_a);
	bool has_b =
		model_gpu_value(b->timeline->model, MODEL_NODE_SPAN, op_b->span, key, &value_b);

	return has_a == has_b && (!has_a || value_is_equal(&value_a, &value_b));
}

/* Whether two operations have waited for the same ones of other streams. */
static bool waits_are_equal(const struct compared_side *a, uint32_t op_a,
			    const struct compared_side *b, uint32_t op_b)
{
	size_t i = gpu_timeline_edges_to(a->timeline, op_a);
	size_t j = gpu_timeline_edges_to(b->timeline, op_b);
	size_t len_a = a->timeline->edges.len, len_b = b->timeline->edges.len, count = 0, other = 0;

	while (i + count < len_a && a->timeline->edges.data[i + count].to == op_a)
		count++;
	while (j + other < len_b && b->timeline->edges.data[j + other].to == op_b)
		other++;
	if (count != other)
		return false;
	/* They are in the order of the operations, which differs between the captures. So each has
	 * to be among those of the other. */
	for (size_t k = 0; k < count; k++) {
		uint32_t from = a->timeline->edges.data[i + k].from;
		uint32_t stream = a->ordinal[a->timeline->ops.data[from].stream];
		bool found = stream == MODEL_NONE;

		for (size_t l = 0; l < other && !found; l++) {
			uint32_t same = b->timeline->edges.data[j + l].from;

			found = b->ordinal[b->timeline->ops.data[same].stream] == stream &&
				b->position[same] - b->first.data[stream] ==
					a->position[from] - a->first.data[stream];
		}
		if (!found)
			return false;
	}
	return true;
}

/* What differs; NULL: nothing. */
static const char *op_differs(const struct compared_side *a, uint32_t index_a,
			      const struct compared_side *b, uint32_t index_b)
{
	static const char *const keys[] = {"grid", "block", "shared_bytes", "bytes", "kind"};
	const struct gpu_timeline_op *op_a = &a->timeline->ops.data[index_a];
	const struct gpu_timeline_op *op_b = &b->timeline->ops.data[index_b];

	if (op_a->kind != op_b->kind)
		return "operation";
	if (strcmp(gpu_timeline_name(a->timeline, op_a), gpu_timeline_name(b->timeline, op_b)) != 0)
		return op_a->kind == GPU_OP_KERNEL ? "kernel" : "name";
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!key_is_equal(a, op_a, b, op_b, keys[i]))
			return keys[i];
	return waits_are_equal(a, index_a, b, index_b) ? NULL : "waits";
}

/* ---- names ---- */

struct comparer {
	struct replay_comparison *result;
	struct compared_side a, b;
	struct keymap names; /* of equal operations -> index in result->spread */
};

static void names_add(struct keymap *names, const struct gpu_timeline *timeline)
{
	for (size_t i = 0; i < timeline->ops.len; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[i];
		const char *name = gpu_timeline_name(timeline, op);

		if (op->kind == GPU_OP_KERNEL)
			keymap_put(names, name, strlen(name), 0);
	}
}

static void names_compare(struct comparer *comparer)
{
	struct replay_comparison *result = comparer->result;
	struct keymap a = {0}, b = {0}, both = {0};
	uint64_t fewer;

	names_add(&a, result->a);
	names_add(&b, result->b);
	names_add(&both, result->a);
	names_add(&both, result->b);
	result->names_a = a.len;
	result->names_b = b.len;
	result->names_both = a.len + b.len - both.len;
	fewer = a.len < b.len ? a.len : b.len;
	result->other_program = fewer ? 2 * result->names_both < fewer : a.len || b.len;
	keymap_free(&a);
	keymap_free(&b);
	keymap_free(&both);
}

/* ---- streams ---- */

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void spread_add(struct comparer *comparer, const struct gpu_timeline_op *op_a,
		       const struct gpu_timeline_op *op_b)
{
	struct replay_comparison *result = comparer->result;
	const char *name = gpu_timeline_name(result->a, op_a);
	uint32_t index = keymap_get(&comparer->names, name, strlen(name));
	uint64_t a_ns = op_a->end_ts - op_a->start_ts, b_ns = op_b->end_ts - op_b->start_ts;
	struct replay_spread *row;

	if (index == MAP_NONE) {
		index = (uint32_t)result->spread.len;
		vec_add(&result->spread, (struct replay_spread){.name = name});
		keymap_put(&comparer->names, name, strlen(name), index);
	}
	row = &result->spread.data[index];
	row->count++;
	row->a_ns += a_ns;
	row->b_ns += b_ns;
	if (difference(a_ns, b_ns) > row->max_diff_ns)
		row->max_diff_ns = difference(a_ns, b_ns);
}

/* When the difference showed, in one of the captures. */
static uint64_t divergence_ts(const struct replay_comparison *result,
			      const struct replay_divergence *at)
{
	if (at->a != MODEL_NONE)
		return result->a->ops.data[at->a].start_ts - result->a->model->start_ts;
	return result->b->ops.data[at->b].start_ts - result->b->model->start_ts;
}

static void divergence_add(struct replay_comparison *result, const struct replay_divergence *at)
{
	if (!result->diverging_streams++ ||
	    divergence_ts(result, at) < divergence_ts(result, &result->first))
		result->first = *at;
}

/* The operations of a stream; 0: it does not exist. */
static size_t stream_ops(const struct compared_side *side, uint32_t stream, const uint32_t **ops)
{
	if (stream >= side->streams.len)
		return 0;
	*ops = side->ops.data + side->first.data[stream];
	return side->first.data[stream + 1] - side->first.data[stream];
}

static void stream_compare(struct comparer *comparer, uint32_t stream)
{
	struct replay_comparison *result = comparer->result;
	const uint32_t *a = NULL, *b = NULL;
	size_t len_a = stream_ops(&comparer->a, stream, &a);
	size_t len_b = stream_ops(&comparer->b, stream, &b);
	struct replay_divergence at = {stream, 1, MODEL_NONE, MODEL_NONE, NULL};

	for (size_t i = 0; i < len_a || i < len_b; i++) {
		at.position = i + 1;
		at.a = i < len_a ? a[i] : MODEL_NONE;
		at.b = i < len_b ? b[i] : MODEL_NONE;
		at.what = i < len_a && i < len_b
				  ? op_differs(&comparer->a, a[i], &comparer->b, b[i])
				  : "end";
		if (at.what) {
			divergence_add(result, &at);
			return;
		}
		result->equal++;
		spread_add(comparer, &result->a->ops.data[a[i]], &result->b->ops.data[b[i]]);
	}
}

static int spread_compare(const void *left, const void *right)
{
	const struct replay_spread *a = left, *b = right;
	uint64_t diff_a = difference(a->a_ns, a->b_ns), diff_b = difference(b->a_ns, b->b_ns);

	if (diff_a != diff_b)
		return diff_a > diff_b ? -1 : 1;
	return strcmp(a->name, b->name);
}

struct replay_comparison *replay_compare(const struct gpu_timeline *a, const struct gpu_timeline *b)
{
	struct replay_comparison *result = memory_zeroed(1, sizeof(*result));
	struct comparer comparer = {.result = result};

	result->a = a;
	result->b = b;
	side_open(&comparer.a, a);
	side_open(&comparer.b, b);
	result->ops_a = comparer.a.ops.len;
	result->ops_b = comparer.b.ops.len;
	result->streams_a = (uint32_t)comparer.a.streams.len;
	result->streams_b = (uint32_t)comparer.b.streams.len;
	names_compare(&comparer);
	for (uint32_t i = 0; i < result->streams_a || i < result->streams_b; i++)
		stream_compare(&comparer, i);
	if (result->spread.len)
		qsort(result->spread.data, result->spread.len, sizeof(*result->spread.data),
		      spread_compare);
	side_close(&comparer.a);
	side_close(&comparer.b);
	keymap_free(&comparer.names);
	return result;
}

void replay_comparison_free(struct replay_comparison *comparison)
{
	if (!comparison)
		return;
	vec_free(&comparison->spread);
	free(comparison);
}
