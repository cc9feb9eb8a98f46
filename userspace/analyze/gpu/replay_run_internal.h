/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to analyze/gpu: the two ways to run a replay, with the same result.
 *
 * In a graph whose edges all lead to later nodes, each node can be placed in one pass over the
 * nodes. Only the order in which nodes take an engine may be another one than that of the nodes.
 * Then, and for edges that lead back, the nodes are started in the order of time.
 */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_RUN_INTERNAL_H
#define WAFFLE_ANALYZE_GPU_REPLAY_RUN_INTERNAL_H

#include "analyze/gpu/replay_graph.h"
#include "util/clock.h"

static inline bool replay_is_selected(const struct replay_change *change, uint32_t node)
{
	return !change->selected || change->selected[node];
}

static inline bool replay_is_cut(const struct replay_change *change, size_t edge)
{
	return change->cut && change->cut[edge];
}

static inline void replay_later(uint64_t *ts, uint64_t than)
{
	if (*ts < than)
		*ts = than;
}

/* When a node left its queue in the recording. */
static inline uint64_t replay_leaves_ts(const struct replay_node *node)
{
	return clock_after(clock_after(node->start_ts, node->dur_ns), node->gap_ns);
}

static inline uint64_t replay_duration(const struct replay_graph *graph,
				       const struct replay_change *change, uint32_t node)
{
	return change->dur_ns ? change->dur_ns[node] : graph->nodes.data[node].dur_ns;
}

static inline uint64_t replay_edge_allows(const struct replay_edge *edge, uint64_t start_ts,
					  uint64_t dur_ns)
{
	return clock_after(edge->after_start ? start_ts : clock_after(start_ts, dur_ns),
			   edge->lag_ns);
}

/* Both set result->start_ts and the numbers of what was executed. */

/* ---- replay_pass.c ---- */

/* One pass over the nodes. False: it does not fit this graph, and the result means nothing. */
bool replay_run_pass(const struct replay_graph *graph, const struct replay_change *change,
		     struct replay_result *result);

/* ---- replay_heap.c ---- */

/* In the order of time. */
void replay_run_heap(const struct replay_graph *graph, const struct replay_change *change,
		     struct replay_result *result);

#endif
