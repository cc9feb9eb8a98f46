// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay_build.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_build_internal.h"
#include "util/memory.h"

static uint32_t *numbers_none(size_t count)
{
	uint32_t *numbers = memory_get(count * sizeof(*numbers));

	memset(numbers, 0xff, count * sizeof(*numbers));
	return numbers;
}

static void edge_add(struct replay_build *build, uint32_t from, uint32_t to, uint32_t lag_ns,
		     bool after_start)
{
	if (from != REPLAY_NONE && to != REPLAY_NONE)
		vec_add(&build->graph.edges, (struct replay_edge){.from = from,
								  .to = to,
								  .lag_ns = lag_ns & REPLAY_LAG_MAX,
								  .after_start = after_start});
}

/* What operations wait for. */
static void ops_connect(struct replay_build *build, const uint32_t *launch_node)
{
	const struct gpu_timeline *timeline = build->timeline;
	const struct gpu_timeline_op *ops = timeline->ops.data;
	struct replay_lags lags;
	replay_order order = {0};

	replay_order_find(timeline, &order);
	lags = replay_lags_measure(timeline, &order);
	for (size_t i = 0; i < order.len; i++)
		edge_add(build, build->op_node[order.data[i].from],
			 build->op_node[order.data[i].to], lags.order[ops[order.data[i].to].kind],
			 false);
	vec_free(&order);
	for (size_t i = 0; i < timeline->edges.len; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];

		edge_add(build, build->op_node[edge->from], build->op_node[edge->to],
			 lags.order[ops[edge->to].kind], false);
	}
	for (size_t i = 0; i < timeline->ops.len; i++)
		if (ops[i].launch != MODEL_NONE)
			edge_add(build, launch_node[ops[i].launch], build->op_node[i],
				 lags.launch[ops[i].kind], true);
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
	uint32_t *launch_node = numbers_none(timeline->launches.len);
	uint32_t *sync_node = numbers_none(timeline->syncs.len);

	build->timeline = timeline;
	build->op_node = numbers_none(timeline->ops.len);
	replay_nodes_add(build, launch_node, sync_node);
	replay_engines_find(build);
	ops_connect(build, launch_node);
	syncs_connect(build, sync_node);
	edges_cut(build);
	free(launch_node);
	free(sync_node);
	return build;
}

void replay_build_free(struct replay_build *build)
{
	if (!build)
		return;
	replay_graph_free(&build->graph);
	vec_free(&build->origins);
	vec_free(&build->meetings);
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
	case REPLAY_ORIGIN_LAUNCH:
		return timeline->launches.data[origin.index].pid;
	case REPLAY_ORIGIN_SYNC:
		thread =
			timeline->model->spans.data[timeline->syncs.data[origin.index].span].thread;
		return timeline->model->threads.data[thread].pid;
	default:
		device = gpu_timeline_device_of(timeline, &timeline->ops.data[origin.index]);
		return timeline->devices.data[device].pid;
	}
}
