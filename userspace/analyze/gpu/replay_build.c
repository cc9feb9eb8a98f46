// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay_build.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_build_internal.h"
#include "util/memory.h"

static void edge_add(struct replay_build *build, uint32_t from, uint32_t to, uint32_t lag_ns,
		     bool after_start)
{
	if (from != REPLAY_NONE && to != REPLAY_NONE)
		vec_add(&build->graph.edges, (struct replay_edge){.from = from,
								  .to = to,
								  .lag_ns = lag_ns & REPLAY_LAG_MAX,
								  .after_start = after_start});
}

/* Where an operation begins. */
static uint32_t begin_node(const struct replay_build *build,
			   const struct replay_node_numbers *numbers, uint32_t op)
{
	if (numbers->arrival && numbers->arrival[op] != REPLAY_NONE)
		return numbers->arrival[op];
	return build->op_node[op];
}

/* The edges so far are the order of streams, between operations, all of which are nodes. */
static void order_connect(struct replay_build *build, const struct replay_node_numbers *numbers,
			  const struct replay_lags *lags)
{
	const struct gpu_timeline *timeline = build->timeline;

	for (size_t i = 0; i < build->graph.edges.len; i++) {
		struct replay_edge *edge = &build->graph.edges.data[i];
		unsigned kind = timeline->ops.data[edge->to].kind;

		edge->lag_ns =
			lags->order[kind][replay_same_launch(timeline, edge->from, edge->to)] &
			REPLAY_LAG_MAX;
		edge->from = build->op_node[edge->from];
		edge->to = begin_node(build, numbers, edge->to);
	}
}

/* What operations wait for. In a collective, the arrival waits for it. */
static void ops_connect(struct replay_build *build, const struct replay_node_numbers *numbers)
{
	const struct gpu_timeline *timeline = build->timeline;
	const struct gpu_timeline_op *ops = timeline->ops.data;
	struct replay_lags lags;

	vec_need(&build->graph.edges, 2 * timeline->ops.len + timeline->edges.len);
	replay_order_find(timeline, &build->graph.edges);
	lags = replay_lags_measure(timeline, &build->graph.edges);
	for (unsigned kind = 0; kind < GPU_OP_KIND_COUNT; kind++)
		build->order_lag_ns[kind] = lags.order[kind][0];
	order_connect(build, numbers, &lags);
	for (size_t i = 0; i < timeline->edges.len; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];

		edge_add(build, build->op_node[edge->from], begin_node(build, numbers, edge->to),
			 lags.order[ops[edge->to].kind][0], false);
	}
	for (uint32_t i = 0; i < timeline->ops.len; i++)
		if (ops[i].launch != MODEL_NONE)
			edge_add(build, numbers->launch[ops[i].launch],
				 begin_node(build, numbers, i),
				 replay_lag_launch(&lags, timeline, i), true);
	free(lags.launched_last);
}

/* The edges of collectives. */
static void meetings_connect(struct replay_build *build, const struct replay_node_numbers *numbers)
{
	for (uint32_t i = 0; i < build->meetings.len; i++) {
		const struct replay_meeting *meeting = &build->meetings.data[i];

		for (uint32_t j = meeting->first; j < meeting->first + meeting->count; j++) {
			uint32_t op = build->met.data[j], arrival = numbers->arrival[op];
			struct replay_arrival edge = {(uint32_t)build->graph.edges.len,
						      replay_build_pid(build, arrival)};

			edge_add(build, arrival, numbers->meeting[i], 0, true);
			vec_add(&build->arrivals, edge);
			edge_add(build, arrival, build->op_node[op], 0, true);
			edge_add(build, numbers->meeting[i], build->op_node[op], 0, true);
		}
	}
}

/* What calls of the host wait for. */
static void syncs_connect(struct replay_build *build, const uint32_t *sync_node)
{
	const struct gpu_timeline *timeline = build->timeline;

	for (size_t i = 0; i < timeline->syncs.len; i++) {
		const struct gpu_timeline_sync *sync = &timeline->syncs.data[i];

		for (uint32_t j = 0; j < sync->op_count; j++)
			edge_add(build, build->op_node[timeline->awaited.data[sync->op + j]],
				 sync_node[i], 0, false);
	}
}

static void edges_cut(struct replay_build *build)
{
	const struct replay_graph *graph = &build->graph;

	build->cut = memory_get(graph->edges.len * sizeof(*build->cut));
	for (size_t i = 0; i < graph->edges.len; i++)
		build->cut[i] = graph->edges.data[i].from >= graph->edges.data[i].to;
}

struct replay_build *replay_build_new(const struct gpu_timeline *timeline)
{
	struct replay_build *build = memory_zeroed(1, sizeof(*build));
	struct replay_node_numbers numbers;

	build->timeline = timeline;
	replay_meetings_find(build);
	build->op_node = replay_numbers_none(timeline->ops.len);
	numbers.launch = replay_numbers_none(timeline->launches.len);
	numbers.sync = replay_numbers_none(timeline->syncs.len);
	numbers.arrival = build->meet_ts ? replay_numbers_none(timeline->ops.len) : NULL;
	numbers.meeting = replay_numbers_none(build->meetings.len);
	replay_nodes_add(build, &numbers);
	replay_engines_find(build);
	ops_connect(build, &numbers);
	meetings_connect(build, &numbers);
	syncs_connect(build, numbers.sync);
	edges_cut(build);
	free(numbers.launch);
	free(numbers.sync);
	free(numbers.arrival);
	free(numbers.meeting);
	return build;
}

void replay_build_free(struct replay_build *build)
{
	if (!build)
		return;
	replay_graph_free(&build->graph);
	vec_free(&build->origins);
	vec_free(&build->meetings);
	vec_free(&build->met);
	vec_free(&build->arrivals);
	map_free(&build->ranks);
	free(build->meet_ts);
	free(build->op_node);
	free(build->cut);
	free(build);
}

uint32_t replay_build_pid(const struct replay_build *build, uint32_t node)
{
	const struct gpu_timeline *timeline = build->timeline;
	struct replay_origin origin = build->origins.data[node];
	uint32_t device, thread;

	switch (origin.kind) {
	case REPLAY_ORIGIN_MEETING:
		return 0;
	case REPLAY_ORIGIN_LAUNCH:
		return gpu_launch_pid(timeline, &timeline->launches.data[origin.index]);
	case REPLAY_ORIGIN_SYNC:
		thread = timeline->syncs.data[origin.index].thread;
		return timeline->model->threads.data[thread].pid;
	default:
		device = gpu_timeline_device_of(timeline, &timeline->ops.data[origin.index]);
		return timeline->devices.data[device].pid;
	}
}
