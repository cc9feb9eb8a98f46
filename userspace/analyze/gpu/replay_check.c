// SPDX-License-Identifier: Apache-2.0
/* Whether the recorded times keep the dependencies. */
#include <stdlib.h>

#include "analyze/gpu/replay.h"
#include "analyze/gpu/replay_run_internal.h"
#include "util/memory.h"

/* A violation by an edge, until they are in the order of the edges. */
struct found {
	struct replay_violation violation;
	uint32_t edge;
};

struct order_check {
	const struct replay_graph *graph;
	const struct replay_change *change;
	struct replay_index to;
	replay_violations *violations;
	VEC(struct found) found;
	uint64_t checked;
};

/* By how much a node started before the time that is allowed; 0: it did not. */
static uint64_t early_ns(const struct order_check *check, uint32_t node, uint64_t allowed_ts)
{
	uint64_t start_ts = check->graph->nodes.data[node].start_ts;

	return start_ts < allowed_ts ? allowed_ts - start_ts : 0;
}

static void queue_check(struct order_check *check, uint32_t previous, uint32_t index)
{
	const struct replay_node *from = &check->graph->nodes.data[previous];
	uint64_t early = early_ns(check, index, clock_after(from->start_ts, from->dur_ns));

	check->checked++;
	if (early)
		vec_add(check->violations, (struct replay_violation){previous, index, early, true});
}

/* In the order of the nodes, because what depends on each other is close then. */
static void edges_check(struct order_check *check, uint32_t index)
{
	const struct replay_graph *graph = check->graph;

	for (uint32_t i = check->to.first[index]; i < check->to.first[index + 1]; i++) {
		const struct replay_edge *edge = &graph->edges.data[check->to.edges[i]];
		const struct replay_node *from = &graph->nodes.data[edge->from];
		uint64_t early;

		if (!replay_is_selected(check->change, edge->from))
			continue;
		check->checked++;
		early = early_ns(check, index,
				 edge->after_start ? from->start_ts
						   : clock_after(from->start_ts, from->dur_ns));
		if (early)
			vec_add(&check->found, (struct found){{edge->from, index, early, false},
							      check->to.edges[i]});
	}
}

static int found_compare(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	return a->edge < b->edge ? -1 : a->edge > b->edge;
}

static void found_list(struct order_check *check)
{
	if (check->found.len)
		qsort(check->found.data, check->found.len, sizeof(*check->found.data),
		      found_compare);
	for (size_t i = 0; i < check->found.len; i++)
		vec_add(check->violations, check->found.data[i].violation);
	vec_free(&check->found);
}

uint64_t replay_check(const struct replay_graph *graph, const bool *selected,
		      replay_violations *violations)
{
	const struct replay_change change = {.selected = selected};
	uint32_t *last = replay_numbers_none(graph->queue_count);
	struct order_check check = {.graph = graph,
				    .change = &change,
				    .to = replay_index_to(graph),
				    .violations = violations};

	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		uint32_t queue = graph->nodes.data[i].queue;

		if (!replay_is_selected(&change, i))
			continue;
		if (queue != REPLAY_NONE) {
			if (last[queue] != REPLAY_NONE)
				queue_check(&check, last[queue], i);
			last[queue] = i;
		}
		edges_check(&check, i);
	}
	found_list(&check);
	free(last);
	replay_index_free(&check.to);
	return check.checked;
}
