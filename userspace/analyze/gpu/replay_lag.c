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
#define SAMPLES_MIN 16

typedef VEC(uint64_t) samples;

struct lag_scan {
	const struct gpu_timeline *timeline;
	struct replay_lags *lags;
	uint32_t *waited; /* of each operation: what it waited for that ended last, or MODEL_NONE */
	uint64_t least[GPU_OP_KIND_COUNT][2]; /* from a launch to the begin, of all operations */
	size_t step;                          /* every step-th operation is a sample */
	samples launch[GPU_OP_KIND_COUNT][2], order[GPU_OP_KIND_COUNT][2]; /* as in replay_lags */
};

static void waited_add(struct lag_scan *scan, uint32_t from, uint32_t to)
{
	const struct gpu_timeline_op *ops = scan->timeline->ops.data;
	uint32_t *last = &scan->waited[to];

	if (*last == MODEL_NONE || ops[*last].end_ts < ops[from].end_ts)
		*last = from;
}

static void sample_take(struct lag_scan *scan, uint32_t index)
{
	const struct gpu_timeline *timeline = scan->timeline;
	const struct gpu_timeline_op *op = &timeline->ops.data[index];
	uint32_t last = scan->waited[index];
	uint64_t waited_ts = last == MODEL_NONE ? 0 : timeline->ops.data[last].end_ts;
	uint64_t launch_ts = op->launch == MODEL_NONE ? 0 : timeline->launches.data[op->launch].ts;

	if (launch_ts && op->start_ts >= launch_ts && !op->clamped &&
	    op->start_ts - launch_ts < scan->least[op->kind][op->graph])
		scan->least[op->kind][op->graph] = op->start_ts - launch_ts;
	scan->lags->launched_last[index] = launch_ts > waited_ts && op->start_ts >= launch_ts;
	if (index % scan->step)
		return;
	if (scan->lags->launched_last[index])
		vec_add(&scan->launch[op->kind][op->graph], op->start_ts - launch_ts);
	else if (waited_ts && waited_ts >= launch_ts && op->start_ts >= waited_ts)
		vec_add(&scan->order[op->kind][replay_same_launch(timeline, last, index)],
			op->start_ts - waited_ts);
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

/* The few samples may all be of something unusual, such as the first launch of a graph. */
static void lags_take(struct lag_scan *scan, unsigned kind, unsigned which)
{
	struct replay_lags *lags = scan->lags;
	size_t count = scan->launch[kind][which].len;

	lags->launch[kind][which] = median_take(&scan->launch[kind][which]);
	lags->order[kind][which] = median_take(&scan->order[kind][which]);
	lags->few[kind][which] = count < SAMPLES_MIN;
	if (lags->few[kind][which] && scan->least[kind][which] < lags->launch[kind][which])
		lags->launch[kind][which] = (uint32_t)scan->least[kind][which];
}

struct replay_lags replay_lags_measure(const struct gpu_timeline *timeline,
				       const replay_edges *order)
{
	struct replay_lags lags;
	struct lag_scan scan = {
		.timeline = timeline, .lags = &lags, .step = timeline->ops.len / SAMPLES_MAX + 1};

	lags.launched_last = memory_zeroed(timeline->ops.len, sizeof(*lags.launched_last));
	scan.waited = memory_get(timeline->ops.len * sizeof(*scan.waited));
	memset(scan.waited, 0xff, timeline->ops.len * sizeof(*scan.waited));
	memset(scan.least, 0xff, sizeof(scan.least));
	for (size_t i = 0; i < order->len; i++)
		waited_add(&scan, order->data[i].from, order->data[i].to);
	for (size_t i = 0; i < timeline->edges.len; i++)
		waited_add(&scan, timeline->edges.data[i].from, timeline->edges.data[i].to);
	for (uint32_t i = 0; i < timeline->ops.len; i++)
		sample_take(&scan, i);
	for (unsigned kind = 0; kind < GPU_OP_KIND_COUNT; kind++)
		for (unsigned which = 0; which < 2; which++)
			lags_take(&scan, kind, which);
	free(scan.waited);
	return lags;
}

uint32_t replay_lag_launch(const struct replay_lags *lags, const struct gpu_timeline *timeline,
			   uint32_t op)
{
	const struct gpu_timeline_op *at = &timeline->ops.data[op];
	uint64_t ns;

	if (!lags->few[at->kind][at->graph] || !lags->launched_last[op])
		return lags->launch[at->kind][at->graph];
	ns = at->start_ts - timeline->launches.data[at->launch].ts;
	return ns < REPLAY_LAG_MAX ? (uint32_t)ns : REPLAY_LAG_MAX;
}
