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

/* When all ranks had arrived at the collective of an operation; 0: it is of none. */
static inline uint64_t replay_meet_ts(const struct replay_build *build, uint32_t op)
{
	return build->meet_ts ? build->meet_ts[op] : 0;
}

/* ---- replay_meetings.c ---- */

/* Fills meetings, met, meet_ts and ranks. */
void replay_meetings_find(struct replay_build *build);

/* ---- replay_nodes.c ---- */

/* The number of the node of each launch, sync, arrival (by operation) and meeting. */
struct replay_node_numbers {
	uint32_t *launch, *sync, *meeting;
	uint32_t *arrival; /* NULL: no meetings */
};

/* Adds the nodes and the gaps of the host's queues. */
void replay_nodes_add(struct replay_build *build, const struct replay_node_numbers *numbers);
/* Gives copies their engines. */
void replay_engines_find(struct replay_build *build);

/* ---- replay_order.c ---- */

/* Appends what operations wait for by the order of their stream: edges between numbers of
 * timeline.ops, by `to`. */
void replay_order_find(const struct gpu_timeline *timeline, replay_edges *order);

/* ---- replay_lag.c ---- */

/*
 * Delays until operations begin. Nodes of graphs begin faster after each other, and later after
 * their launch.
 */
struct replay_lags {
	/* Medians by kind, in nanoseconds. launch: after the begin of the launch; of a graph: [1].
	 * order: after the end of what it waited for; if one launch has launched both: [1]. */
	uint32_t launch[GPU_OP_KIND_COUNT][2], order[GPU_OP_KIND_COUNT][2];
	/* So few samples that launch[] is no median, but the least of all delays. */
	bool few[GPU_OP_KIND_COUNT][2];
	bool *launched_last; /* of each timeline.ops: of all it waited for, its launch came last */
};

static inline bool replay_same_launch(const struct gpu_timeline *timeline, uint32_t from,
				      uint32_t to)
{
	return timeline->ops.data[to].launch != MODEL_NONE &&
	       timeline->ops.data[from].launch == timeline->ops.data[to].launch;
}

/* The caller frees launched_last. */
struct replay_lags replay_lags_measure(const struct gpu_timeline *timeline,
				       const replay_edges *order);
/* From the begin of its launch until an operation begins. If there are few samples, those that they
 * are of keep their recorded delays. */
uint32_t replay_lag_launch(const struct replay_lags *lags, const struct gpu_timeline *timeline,
			   uint32_t op);

#endif
