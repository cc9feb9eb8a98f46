// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

/* A node whose dependencies have all been scheduled. */
struct ready {
	uint64_t ts; /* they allow it to start then */
	uint32_t node;
};

/* The state of one replay. Arrays have an element for each node unless stated otherwise. */
struct run {
	const struct replay_graph *graph;
	const struct replay_change *change;
	struct replay_result *result;
	uint32_t *first_edge;    /* in by_from; one more than there are nodes */
	uint32_t *by_from;       /* edges, ordered by `from` */
	uint32_t *next;          /* the next selected node of the same queue, or REPLAY_NONE */
	uint32_t *waits_for;     /* number of dependencies that are not scheduled yet */
	uint64_t *earliest;      /* start that the scheduled dependencies allow */
	uint64_t *engine_free;   /* for each engine */
	VEC(struct ready) ready; /* binary heap, the smallest first */
};

static bool is_selected(const struct replay_change *change, uint32_t node)
{
	return !change->selected || change->selected[node];
}

static bool is_cut(const struct replay_change *change, size_t edge)
{
	return change->cut && change->cut[edge];
}

static uint64_t after(uint64_t ts, uint64_t ns)
{
	return ns > UINT64_MAX - ts ? UINT64_MAX : ts + ns;
}

static void later(uint64_t *ts, uint64_t than)
{
	if (*ts < than)
		*ts = than;
}

/* When a node left its queue in the recording. */
static uint64_t leaves_ts(const struct replay_node *node)
{
	return after(after(node->start_ts, node->dur_ns), node->gap_ns);
}

static uint64_t duration(const struct run *run, uint32_t node)
{
	return run->change->dur_ns ? run->change->dur_ns[node]
				   : run->graph->nodes.data[node].dur_ns;
}

/* ---- the heap ---- */

/* Nodes that are ready at the same time keep their recorded order. */
static bool is_before(struct ready left, struct ready right)
{
	return left.ts < right.ts || (left.ts == right.ts && left.node < right.node);
}

static void ready_push(struct run *run, uint32_t node)
{
	struct ready ready = {run->earliest[node], node};
	size_t at = run->ready.len;

	vec_add(&run->ready, ready);
	while (at && is_before(ready, run->ready.data[(at - 1) / 2])) {
		run->ready.data[at] = run->ready.data[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	run->ready.data[at] = ready;
}

static struct ready ready_pop(struct run *run)
{
	struct ready *heap = run->ready.data, first = heap[0];
	struct ready last = heap[--run->ready.len];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < run->ready.len) {
		if (child + 1 < run->ready.len && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return first;
}

/* ---- preparation ---- */

static void edges_order(struct run *run)
{
	const struct replay_graph *graph = run->graph;
	size_t nodes = graph->nodes.len;
	uint32_t *first = memory_zeroed(nodes + 2, sizeof(*first));

	/* first[n + 2] counts, then first[n + 1] is where the next edge of n goes, and in the end
	 * where those of n + 1 begin. */
	for (size_t i = 0; i < graph->edges.len; i++)
		first[graph->edges.data[i].from + 2]++;
	for (size_t i = 2; i < nodes + 2; i++)
		first[i] += first[i - 1];
	run->by_from = memory_get(graph->edges.len * sizeof(*run->by_from));
	for (size_t i = 0; i < graph->edges.len; i++)
		run->by_from[first[graph->edges.data[i].from + 1]++] = (uint32_t)i;
	run->first_edge = first;
}

/* Links the nodes of each queue. A node outside of the selection leaves the queue at its recorded
 * time. */
static void queues_link(struct run *run)
{
	const struct replay_graph *graph = run->graph;
	uint32_t *last = memory_get(graph->queue_count * sizeof(*last));

	memset(last, 0xff, graph->queue_count * sizeof(*last));
	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		uint32_t *tail;

		run->next[i] = REPLAY_NONE;
		if (graph->nodes.data[i].queue == REPLAY_NONE)
			continue;
		tail = &last[graph->nodes.data[i].queue];
		if (is_selected(run->change, i) && *tail != REPLAY_NONE) {
			if (is_selected(run->change, *tail)) {
				run->next[*tail] = i;
				run->waits_for[i]++;
			} else {
				later(&run->earliest[i], leaves_ts(&graph->nodes.data[*tail]));
			}
		}
		/* A queue goes on with the selected nodes, whatever lies between them. */
		if (is_selected(run->change, i) || *tail == REPLAY_NONE ||
		    !is_selected(run->change, *tail))
			*tail = i;
	}
	free(last);
}

static uint64_t edge_allows(const struct replay_edge *edge, uint64_t start_ts, uint64_t dur_ns)
{
	return after(edge->after_start ? start_ts : after(start_ts, dur_ns), edge->lag_ns);
}

/* Counts what nodes wait for. What is outside of the selection allows them to start when it did so
 * in the recording. */
static void dependencies_count(struct run *run)
{
	const struct replay_graph *graph = run->graph;

	for (size_t i = 0; i < graph->edges.len; i++) {
		const struct replay_edge *edge = &graph->edges.data[i];
		const struct replay_node *from = &graph->nodes.data[edge->from];

		if (is_cut(run->change, i) || !is_selected(run->change, edge->to))
			continue;
		if (is_selected(run->change, edge->from))
			run->waits_for[edge->to]++;
		else
			later(&run->earliest[edge->to],
			      edge_allows(edge, from->start_ts, from->dur_ns));
	}
}

/* A node with nothing before it starts at its recorded time. */
static void queues_release(struct run *run)
{
	const struct replay_graph *graph = run->graph;
	bool *begun = memory_zeroed(graph->queue_count, sizeof(*begun));

	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		const struct replay_node *node = &graph->nodes.data[i];

		if (!is_selected(run->change, i))
			continue;
		later(&run->earliest[i], node->release_ts);
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
	run->result->start_ts = memory_get(nodes * sizeof(*run->result->start_ts));
	memset(run->result->start_ts, 0xff, nodes * sizeof(*run->result->start_ts));
	edges_order(run);
	dependencies_count(run);
	queues_link(run);
	queues_release(run);
}

static void run_close(struct run *run)
{
	free(run->first_edge);
	free(run->by_from);
	free(run->next);
	free(run->waits_for);
	free(run->earliest);
	free(run->engine_free);
	vec_free(&run->ready);
}

/* ---- the algorithm ---- */

static void dependency_done(struct run *run, uint32_t node, uint64_t allowed_ts)
{
	later(&run->earliest[node], allowed_ts);
	if (!--run->waits_for[node])
		ready_push(run, node);
}

static void node_schedule(struct run *run, struct ready ready)
{
	const struct replay_graph *graph = run->graph;
	const struct replay_node *node = &graph->nodes.data[ready.node];
	uint64_t start_ts = ready.ts, dur_ns = duration(run, ready.node), end_ts;

	if (node->engine != REPLAY_NONE)
		later(&start_ts, run->engine_free[node->engine]);
	end_ts = after(start_ts, dur_ns);
	if (node->engine != REPLAY_NONE)
		run->engine_free[node->engine] = end_ts;
	run->result->start_ts[ready.node] = start_ts;
	run->result->nodes_executed++;
	run->result->operations_executed += node->operation != REPLAY_NONE;
	if (run->next[ready.node] != REPLAY_NONE)
		dependency_done(run, run->next[ready.node], after(end_ts, node->gap_ns));
	for (uint32_t i = run->first_edge[ready.node]; i < run->first_edge[ready.node + 1]; i++) {
		const struct replay_edge *edge = &graph->edges.data[run->by_from[i]];

		if (!is_cut(run->change, run->by_from[i]) && is_selected(run->change, edge->to))
			dependency_done(run, edge->to, edge_allows(edge, start_ts, dur_ns));
	}
}

/* A range of time that grows. */
struct extent {
	uint64_t from_ts, to_ts;
};

static void extent_add(struct extent *extent, uint64_t start_ts, uint64_t dur_ns)
{
	if (start_ts < extent->from_ts)
		extent->from_ts = start_ts;
	later(&extent->to_ts, after(start_ts, dur_ns));
}

static uint64_t extent_ns(const struct extent *extent)
{
	return extent->from_ts <= extent->to_ts ? extent->to_ts - extent->from_ts : 0;
}

static void makespans_measure(struct run *run)
{
	struct extent measured = {UINT64_MAX, 0}, replayed = {UINT64_MAX, 0};
	struct replay_result *result = run->result;

	for (uint32_t i = 0; i < run->graph->nodes.len; i++) {
		const struct replay_node *node = &run->graph->nodes.data[i];

		if (!is_selected(run->change, i))
			continue;
		result->nodes_total++;
		result->operations_total += node->operation != REPLAY_NONE;
		if (run->change->ignored && run->change->ignored[i])
			continue;
		extent_add(&measured, node->start_ts, node->dur_ns);
		if (result->start_ts[i] != UINT64_MAX)
			extent_add(&replayed, result->start_ts[i], duration(run, i));
	}
	result->measured_ns = extent_ns(&measured);
	result->replayed_ns = extent_ns(&replayed);
}

void replay_run(const struct replay_graph *graph, const struct replay_change *change,
		struct replay_result *result)
{
	static const struct replay_change unchanged;
	struct run run = {.graph = graph, .change = change ? change : &unchanged, .result = result};

	*result = (struct replay_result){0};
	run_open(&run);
	for (uint32_t i = 0; i < graph->nodes.len; i++)
		if (!run.waits_for[i] && is_selected(run.change, i))
			ready_push(&run, i);
	while (run.ready.len)
		node_schedule(&run, ready_pop(&run));
	makespans_measure(&run);
	run_close(&run);
}

void replay_result_free(struct replay_result *result)
{
	free(result->start_ts);
	*result = (struct replay_result){0};
}

double replay_error(const struct replay_result *result)
{
	return result->measured_ns ? (double)result->replayed_ns / (double)result->measured_ns - 1
				   : 0;
}

void replay_graph_free(struct replay_graph *graph)
{
	vec_free(&graph->nodes);
	vec_free(&graph->edges);
}

/* ---- the check ---- */

static void check_one(const struct replay_graph *graph, struct replay_violation pair,
		      bool after_start, replay_violations *violations)
{
	const struct replay_node *from = &graph->nodes.data[pair.from];
	uint64_t allowed_ts = after_start ? from->start_ts : after(from->start_ts, from->dur_ns);
	uint64_t start_ts = graph->nodes.data[pair.to].start_ts;

	if (start_ts >= allowed_ts)
		return;
	pair.early_ns = allowed_ts - start_ts;
	vec_add(violations, pair);
}

uint64_t replay_check(const struct replay_graph *graph, const bool *selected,
		      replay_violations *violations)
{
	const struct replay_change change = {.selected = selected};
	uint32_t *last = memory_get(graph->queue_count * sizeof(*last));
	uint64_t checked = 0;

	memset(last, 0xff, graph->queue_count * sizeof(*last));
	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		uint32_t *tail;

		if (!is_selected(&change, i) || graph->nodes.data[i].queue == REPLAY_NONE)
			continue;
		tail = &last[graph->nodes.data[i].queue];
		if (*tail != REPLAY_NONE) {
			check_one(graph, (struct replay_violation){*tail, i, 0, true}, false,
				  violations);
			checked++;
		}
		*tail = i;
	}
	free(last);
	for (size_t i = 0; i < graph->edges.len; i++) {
		const struct replay_edge *edge = &graph->edges.data[i];

		if (!is_selected(&change, edge->from) || !is_selected(&change, edge->to))
			continue;
		check_one(graph, (struct replay_violation){edge->from, edge->to, 0, false},
			  edge->after_start, violations);
		checked++;
	}
	return checked;
}
