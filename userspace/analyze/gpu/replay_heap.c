// SPDX-License-Identifier: Apache-2.0
/* A replay in the order of time: of the nodes that are ready, the one that was ready first. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_run_internal.h"
#include "model/order_heap.h"
#include "util/memory.h"

/* The state of one replay. Arrays have an element for each node unless stated otherwise. */
struct run {
	const struct replay_graph *graph;
	const struct replay_change *change;
	struct replay_result *result;
	struct replay_index from;
	uint32_t *next;        /* the next selected node of the same queue, or REPLAY_NONE */
	uint32_t *waits_for;   /* number of dependencies that are not scheduled yet */
	uint64_t *earliest;    /* start that the scheduled dependencies allow */
	uint64_t *engine_free; /* for each engine */
	/* The nodes whose dependencies have all been scheduled, and when these allow them to start.
	 * Nodes that are ready at the same time keep their recorded order. */
	order_heap ready;
};

/* ---- preparation ---- */

/* Links the nodes of each queue. A node outside of the selection leaves the queue at its recorded
 * time. */
static void queues_link(struct run *run)
{
	const struct replay_graph *graph = run->graph;
	uint32_t *last = replay_numbers_none(graph->queue_count);

	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		uint32_t *tail;

		run->next[i] = REPLAY_NONE;
		if (graph->nodes.data[i].queue == REPLAY_NONE)
			continue;
		tail = &last[graph->nodes.data[i].queue];
		if (*tail == REPLAY_NONE && graph->release_ts)
			replay_later(&run->earliest[i],
				     graph->release_ts[graph->nodes.data[i].queue]);
		if (replay_is_selected(run->change, i) && *tail != REPLAY_NONE) {
			if (replay_is_selected(run->change, *tail)) {
				run->next[*tail] = i;
				run->waits_for[i]++;
			} else {
				replay_later(&run->earliest[i],
					     replay_leaves_ts(&graph->nodes.data[*tail]));
			}
		}
		/* A queue goes on with the selected nodes, whatever lies between them. */
		if (replay_is_selected(run->change, i) || *tail == REPLAY_NONE ||
		    !replay_is_selected(run->change, *tail))
			*tail = i;
	}
	free(last);
}

/* Counts what nodes wait for. What is outside of the selection allows them to start when it did so
 * in the recording. */
static void dependencies_count(struct run *run)
{
	const struct replay_graph *graph = run->graph;

	for (size_t i = 0; i < graph->edges.len; i++) {
		const struct replay_edge *edge = &graph->edges.data[i];
		const struct replay_node *from = &graph->nodes.data[edge->from];

		if (replay_is_cut(run->change, i) || !replay_is_selected(run->change, edge->to))
			continue;
		if (replay_is_selected(run->change, edge->from))
			run->waits_for[edge->to]++;
		else
			replay_later(&run->earliest[edge->to],
				     replay_edge_allows(edge, from->start_ts, from->dur_ns));
	}
}

/* A node with nothing before it starts at its recorded time. */
static void queues_release(struct run *run)
{
	const struct replay_graph *graph = run->graph;
	bool *begun = memory_zeroed(graph->queue_count, sizeof(*begun));

	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		const struct replay_node *node = &graph->nodes.data[i];

		if (!replay_is_selected(run->change, i))
			continue;
		if (node->queue != REPLAY_NONE) {
			if (begun[node->queue])
				continue;
			begun[node->queue] = true;
		}
		if (!run->waits_for[i] && !run->earliest[i])
			run->earliest[i] = node->start_ts;
	}
	free(begun);
}

static void run_open(struct run *run)
{
	size_t nodes = run->graph->nodes.len;

	run->next = memory_get(nodes * sizeof(*run->next));
	run->waits_for = memory_zeroed(nodes, sizeof(*run->waits_for));
	run->earliest = memory_zeroed(nodes, sizeof(*run->earliest));
	run->engine_free = memory_zeroed(run->graph->engine_count, sizeof(*run->engine_free));
	memset(run->result->start_ts, 0xff, nodes * sizeof(*run->result->start_ts));
	run->from = replay_index_from(run->graph);
	dependencies_count(run);
	queues_link(run);
	queues_release(run);
}

static void run_close(struct run *run)
{
	replay_index_free(&run->from);
	free(run->next);
	free(run->waits_for);
	free(run->earliest);
	free(run->engine_free);
	vec_free(&run->ready);
}

/* ---- the algorithm ---- */

static void ready_add(struct run *run, uint32_t node)
{
	order_heap_add(&run->ready, (struct order_item){run->earliest[node], node});
}

static void dependency_done(struct run *run, uint32_t node, uint64_t allowed_ts)
{
	replay_later(&run->earliest[node], allowed_ts);
	if (!--run->waits_for[node])
		ready_add(run, node);
}

static void node_schedule(struct run *run, struct order_item ready)
{
	const struct replay_graph *graph = run->graph;
	const struct replay_node *node = &graph->nodes.data[ready.index];
	uint64_t start_ts = ready.ts, dur_ns = replay_duration(graph, run->change, ready.index),
		 end_ts;

	if (node->engine != REPLAY_NONE)
		replay_later(&start_ts, run->engine_free[node->engine]);
	end_ts = clock_after(start_ts, dur_ns);
	if (node->engine != REPLAY_NONE)
		run->engine_free[node->engine] = end_ts;
	run->result->start_ts[ready.index] = start_ts;
	run->result->nodes_executed++;
	run->result->operations_executed += node->is_operation;
	if (run->next[ready.index] != REPLAY_NONE)
		dependency_done(run, run->next[ready.index], clock_after(end_ts, node->gap_ns));
	for (uint32_t i = run->from.first[ready.index]; i < run->from.first[ready.index + 1]; i++) {
		const struct replay_edge *edge = &graph->edges.data[run->from.edges[i]];

		if (!replay_is_cut(run->change, run->from.edges[i]) &&
		    replay_is_selected(run->change, edge->to))
			dependency_done(run, edge->to, replay_edge_allows(edge, start_ts, dur_ns));
	}
}

void replay_run_heap(const struct replay_graph *graph, const struct replay_change *change,
		     struct replay_result *result)
{
	struct run run = {.graph = graph, .change = change, .result = result};

	run_open(&run);
	for (uint32_t i = 0; i < graph->nodes.len; i++)
		if (!run.waits_for[i] && replay_is_selected(change, i))
			ready_add(&run, i);
	while (run.ready.len)
		node_schedule(&run, order_heap_take(&run.ready));
	run_close(&run);
}
