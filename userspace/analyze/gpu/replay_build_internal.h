/* SPDX-License-Identifier: Apache-2.0 */
/* Private to analyze/gpu: the steps that build a graph, in the order in which they run. */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_BUILD_INTERNAL_H
#define WAFFLE_ANALYZE_GPU_REPLAY_BUILD_INTERNAL_H

#include "analyze/gpu/replay_build.h"

/* Whether an operation is a node. What the host waits for is in timeline.syncs. */
static inline bool replay_op_counts(const struct gpu_timeline_op *op)
{
	return op->kind != GPU_OP_WAIT;
}

/* Operations that another one waits for by the order of its stream: edges from operation to
 * operation, by `to`. */
typedef VEC(struct replay_edge) replay_order;

/* ---- replay_meetings.c ---- */

/* Fills meetings, met, meet_ts and ranks. */
void replay_meetings_find(struct replay_build *build);

/* ---- replay_nodes.c ---- */

/* The number of the node of each launch, sync, arrival (by operation) and meeting. */
struct replay_node_numbers {
	uint32_t *launch, *sync, *arrival, *meeting;
};

/* Adds the nodes and the gaps of the host's queues. */
void replay_nodes_add(struct replay_build *build, const struct replay_node_numbers *numbers);
/* Gives copies their engines. */
void replay_engines_find(struct replay_build *build);

/* ---- replay_order.c ---- */

/* Finds the order within streams, in numbers of timeline.ops. */
void replay_order_find(const struct gpu_timeline *timeline, replay_order *order);

/* ---- replay_lag.c ---- */

/* Median delays until an operation of a kind begins, in nanoseconds. */
struct replay_lags {
	uint32_t launch[GPU_OP_KIND_COUNT]; /* after the begin of its launch */
	uint32_t order[GPU_OP_KIND_COUNT];  /* after the end of what it waited for */
};

struct replay_lags replay_lags_measure(const struct gpu_timeline *timeline,
				       const replay_order *order);

#endif
