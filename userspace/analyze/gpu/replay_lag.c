// SPDX-License-Identifier: Apache-2.0
/*
 * How long the GPU takes to begin an operation. Each operation that began after all it waited for
 * is a sample, for what it waited for last: its launch, or another operation.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_build_internal.h"
#include "util/memory.h"

/* Enough samples for a median. */
#define SAMPLES_MAX 65536

typedef VEC(uint64_t) samples;

struct lag_scan {
	const struct gpu_timeline *timeline;
	uint64_t *waited_ts; /* of each operation: the last end that it waited for; 0: none */
	samples launch[GPU_OP_KIND_COUNT], order[GPU_OP_KIND_COUNT];
};

static void waited_add(struct lag_scan *scan, uint32_t from, uint32_t to)
{
	uint64_t end_ts = scan->timeline->ops.data[from].end_ts;

	if (scan->waited_ts[to] < end_ts)
		scan->waited_ts[to] = end_ts;
}

static void sample_take(struct lag_scan *scan, const struct gpu_timeline_op *op, uint64_t waited_ts)
{
	const struct gpu_timeline *timeline = scan->timeline;
	uint64_t launch_ts = op->launch == MODEL_NONE ? 0 : timeline->launches.data[op->launch].ts;

	if (launch_ts > waited_ts && op->start_ts >= launch_ts)
		vec_add(&scan->launch[op->kind], op->start_ts - launch_ts);
	else if (waited_ts && waited_ts >= launch_ts && op->start_ts >= waited_ts)
		vec_add(&scan->order[op->kind], op->start_ts - waited_ts);
}

static int number_compare(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* The lower median: one that occurred. */
static uint32_t median_take(samples *from)
{
	uint64_t median = 0;

	if (from->len) {
		qsort(from->data, from->len, sizeof(*from->data), number_compare);
		median = from->data[(from->len - 1) / 2];
	}
	vec_free(from);
	return median < REPLAY_LAG_MAX ? (uint32_t)median : REPLAY_LAG_MAX;
}

struct replay_lags replay_lags_measure(const struct gpu_timeline *timeline,
				       const replay_order *order)
{
	struct lag_scan scan = {.timeline = timeline};
	size_t step = timeline->ops.len / SAMPLES_MAX + 1;
	struct replay_lags lags;

	scan.waited_ts = memory_zeroed(timeline->ops.len, sizeof(*scan.waited_ts));
	for (size_t i = 0; i < order->len; i++)
		waited_add(&scan, order->data[i].from, order->data[i].to);
	for (size_t i = 0; i < timeline->edges.len; i++)
		waited_add(&scan, timeline->edges.data[i].from, timeline->edges.data[i].to);
	for (size_t i = 0; i < timeline->ops.len; i += step)
		sample_take(&scan, &timeline->ops.data[i], scan.waited_ts[i]);
	for (unsigned kind = 0; kind < GPU_OP_KIND_COUNT; kind++) {
		lags.launch[kind] = median_take(&scan.launch[kind]);
		lags.order[kind] = median_take(&scan.order[kind]);
	}
	free(scan.waited_ts);
	return lags;
}
