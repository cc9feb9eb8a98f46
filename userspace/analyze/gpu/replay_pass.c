// SPDX-License-Identifier: Apache-2.0
/* A replay in one pass over the nodes, each of which looks back at what it waits for. */
#include <stdlib.h>

#include "analyze/gpu/replay_run_internal.h"
#include "util/memory.h"

struct pass_queue {
	uint64_t free_ts; /* its nodes so far have left it */
	bool begun;       /* one of them is replayed */
};

struct pass_engine {
	uint64_t free_ts;
	uint64_t ready_ts; /* of its last node */
};

struct pass {
	const struct replay_graph *graph;
	const struct replay_change *change;
	struct replay_index to;
	struct pass_queue *queues;
	struct pass_engine *engines;
	uint64_t *start_ts; /* of each node */
};

/* Nothing is known of the order of a queue before the first node that is replayed: what is outside
 * of the selection leaves it at its recorded time. */
static void node_skip(struct pass *pass, uint32_t index)
{
	const struct replay_node *node = &pass->graph->nodes.data[index];

	pass->start_ts[index] = UINT64_MAX;
	if (node->queue != REPLAY_NONE && !pass->queues[node->queue].begun)
		pass->queues[node->queue].free_ts = replay_leaves_ts(node);
}

/* When the edges of a node allow it to start. Sets *waits if one of them is from a node that is
 * replayed. False: one is from a later node. */
static bool edges_allow(const struct pass *pass, uint32_t index, uint64_t *ts, bool *waits)
{
	const struct replay_graph *graph = pass->graph;

	for (uint32_t i = pass->to.first[index]; i < pass->to.first[index + 1]; i++) {
		const struct replay_edge *edge = &graph->edges.data[pass->to.edges[i]];
		const struct replay_node *from = &graph->nodes.data[edge->from];

		if (replay_is_cut(pass->change, pass->to.edges[i]))
			continue;
		if (!replay_is_selected(pass->change, edge->from)) {
			replay_later(ts, replay_edge_allows(edge, from->start_ts, from->dur_ns));
			continue;
		}
		if (edge->from >= index)
			return false;
		*waits = true;
		replay_later(ts,
			     replay_edge_allows(edge, pass->start_ts[edge->from],
						replay_duration(graph, pass->change, edge->from)));
	}
	return true;
}

/* False: another node of the engine was ready later and would have been the second one. */
static bool engine_take(struct pass_engine *engine, uint64_t *ts, uint64_t dur_ns)
{
	if (*ts < engine->ready_ts)
		return false;
	engine->ready_ts = *ts;
	replay_later(ts, engine->free_ts);
	engine->free_ts = clock_after(*ts, dur_ns);
	return true;
}

static bool node_place(struct pass *pass, uint32_t index)
{
	const struct replay_node *node = &pass->graph->nodes.data[index];
	struct pass_queue *queue = node->queue == REPLAY_NONE ? NULL : &pass->queues[node->queue];
	uint64_t ts = queue ? queue->free_ts : 0;
	uint64_t dur_ns = replay_duration(pass->graph, pass->change, index);
	bool waits = queue && queue->begun;

	if (!edges_allow(pass, index, &ts, &waits))
		return false;
	/* With nothing before it, it starts at its recorded time. */
	if (!waits && !ts)
		ts = node->start_ts;
	if (node->engine != REPLAY_NONE && !engine_take(&pass->engines[node->engine], &ts, dur_ns))
		return false;
	pass->start_ts[index] = ts;
	if (queue)
		*queue = (struct pass_queue){clock_after(clock_after(ts, dur_ns), node->gap_ns),
					     true};
	return true;
}

bool replay_run_pass(const struct replay_graph *graph, const struct replay_change *change,
		     struct replay_result *result)
{
	struct pass pass = {
		.graph = graph,
		.change = change,
		.to = replay_index_to(graph),
		.queues = memory_zeroed(graph->queue_count, sizeof(*pass.queues)),
		.engines = memory_zeroed(graph->engine_count, sizeof(*pass.engines)),
		.start_ts = result->start_ts,
	};
	bool fits = true;

	for (uint32_t i = 0; i < graph->queue_count && graph->release_ts; i++)
		pass.queues[i].free_ts = graph->release_ts[i];
	for (uint32_t i = 0; i < graph->nodes.len && fits; i++) {
		if (!replay_is_selected(change, i)) {
			node_skip(&pass, i);
			continue;
		}
		fits = node_place(&pass, i);
		result->nodes_executed++;
		result->operations_executed += graph->nodes.data[i].is_operation;
	}
	free(pass.queues);
	free(pass.engines);
	replay_index_free(&pass.to);
	return fits;
}
