// SPDX-License-Identifier: Apache-2.0
/*
 * The order of the operations on one stream. An operation may have waited for each one that had
 * ended when it began. It needs no edge from an operation that another one of these followed, since
 * the edges of that one imply it. Without overlap, only the previous operation is left.
 */
#include <stdlib.h>

#include "analyze/gpu/replay_build_internal.h"
#include "util/memory.h"

/* If more operations overlap, only those that ended last get edges, because each of them has an
 * edge to each operation that follows. */
#define WIDTH_MAX 16

struct order_scan {
	const struct gpu_timeline_op *ops; /* of the stream */
	uint32_t first;                    /* index of ops[0] in timeline.ops */
	replay_edges *order;
	uint32_t *by_end;             /* indexes in ops */
	uint32_t frontier[WIDTH_MAX]; /* that the next operation gets edges from, by end */
	uint32_t width;
};

static int end_compare(const void *left, const void *right, void *ops)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct gpu_timeline_op *op = ops;

	if (op[a].end_ts != op[b].end_ts)
		return op[a].end_ts < op[b].end_ts ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* An operation has ended. Those that ended before it began leave the frontier. */
static void frontier_add(struct order_scan *scan, uint32_t index)
{
	uint32_t drop = 0;

	while (drop < scan->width &&
	       scan->ops[scan->frontier[drop]].end_ts <= scan->ops[index].start_ts)
		drop++;
	if (!drop && scan->width == WIDTH_MAX)
		drop = 1;
	scan->width -= drop;
	for (uint32_t i = 0; i < scan->width; i++)
		scan->frontier[i] = scan->frontier[i + drop];
	scan->frontier[scan->width++] = index;
}

/* Ordered by end, in most streams without any work. Returns their number. */
static uint32_t ends_sort(struct order_scan *scan, uint32_t op_count)
{
	uint32_t count = 0;
	bool sorted = true;

	for (uint32_t i = 0; i < op_count; i++) {
		if (!replay_op_counts(&scan->ops[i]))
			continue;
		sorted &=
			!count || scan->ops[scan->by_end[count - 1]].end_ts <= scan->ops[i].end_ts;
		scan->by_end[count++] = i;
	}
	if (!sorted)
		qsort_r(scan->by_end, count, sizeof(*scan->by_end), end_compare,
			(void *)(uintptr_t)scan->ops);
	return count;
}

static void stream_scan(struct order_scan *scan, uint32_t op_count)
{
	uint32_t count = ends_sort(scan, op_count), at = 0;

	scan->width = 0;
	for (uint32_t i = 0; i < op_count; i++) {
		if (!replay_op_counts(&scan->ops[i]))
			continue;
		while (at < count && scan->by_end[at] < i &&
		       scan->ops[scan->by_end[at]].end_ts <= scan->ops[i].start_ts)
			frontier_add(scan, scan->by_end[at++]);
		for (uint32_t j = 0; j < scan->width; j++)
			vec_add(scan->order,
				(struct replay_edge){.from = scan->first + scan->frontier[j],
						     .to = scan->first + i});
	}
}

void replay_order_find(const struct gpu_timeline *timeline, replay_edges *order)
{
	struct order_scan scan = {
		.order = order,
		.by_end = memory_get(timeline->ops.len * sizeof(*scan.by_end)),
	};

	for (size_t i = 0; i < timeline->streams.len; i++) {
		const struct gpu_timeline_stream *stream = &timeline->streams.data[i];

		if (!stream->op_count)
			continue;
		scan.first = stream->op;
		scan.ops = timeline->ops.data + stream->op;
		stream_scan(&scan, stream->op_count);
	}
	free(scan.by_end);
}
