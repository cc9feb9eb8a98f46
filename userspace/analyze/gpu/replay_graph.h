/* SPDX-License-Identifier: Apache-2.0 */
/* The graph that replay.h schedules, what may differ from the recording, and the result. */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_GRAPH_H
#define WAFFLE_ANALYZE_GPU_REPLAY_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

#define REPLAY_NONE UINT32_MAX
#define REPLAY_LAG_MAX ((1u << 31) - 1)

struct replay_node {
	uint64_t start_ts, dur_ns; /* as recorded */
	uint64_t gap_ns : 63;
	uint64_t is_operation : 1; /* a call of the host is not counted as one */
	uint32_t queue;  /* less than replay_graph.queue_count; REPLAY_NONE: edges alone order it */
	uint32_t engine; /* less than replay_graph.engine_count, or REPLAY_NONE */
};

/* `to` starts no earlier than lag_ns after the end of `from`, or after its start. */
struct replay_edge {
	uint32_t from, to;
	uint32_t lag_ns : 31;
	uint32_t after_start : 1;
};

typedef VEC(struct replay_edge) replay_edges;

struct replay_graph {
	VEC(struct replay_node) nodes; /* those of a queue are in the order of the queue */
	replay_edges edges;
	uint32_t queue_count, engine_count;
	uint64_t *release_ts; /* of each queue: its first node never starts earlier; NULL: none */
};

void replay_graph_free(struct replay_graph *graph);

/* An array of REPLAY_NONE. The caller frees it. */
uint32_t *replay_numbers_none(size_t count);

/* The edges by one of their ends: those of a node are edges[first[node]] to
 * edges[first[node + 1] - 1], in the order of the graph. */
struct replay_index {
	uint32_t *first, *edges;
};

struct replay_index replay_index_from(const struct replay_graph *graph);
struct replay_index replay_index_to(const struct replay_graph *graph);
void replay_index_free(struct replay_index *index);

/* What differs from the recording. A NULL array changes nothing. */
struct replay_change {
	/* For each node: whether it is replayed. What a selected node waits for outside of the
	 * selection happens at its recorded time. */
	const bool *selected;
	const uint64_t *dur_ns; /* for each node, instead of the recorded one */
	const bool *cut;        /* for each edge: it does not count */
	const bool *ignored;    /* for each node: the makespan ends without it */
};

struct replay_result {
	uint64_t *start_ts; /* of each node that was replayed; else UINT64_MAX */
	/* From the first start to the last end, as recorded and as replayed. */
	uint64_t measured_ns, replayed_ns;
	uint64_t nodes_total, nodes_executed;           /* of the selected ones */
	uint64_t operations_total, operations_executed; /* likewise, without calls of the host */
};

void replay_result_free(struct replay_result *result);

#endif
