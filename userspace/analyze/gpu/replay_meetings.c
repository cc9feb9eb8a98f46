// SPDX-License-Identifier: Apache-2.0
/*
 * Collectives of several ranks. The kernel of a rank begins when the rank arrives, and then waits
 * for the other ranks. So its time has two parts: an arrival, which ends at once, and the transfer,
 * which begins when all have arrived.
 *
 *	arrival of rank 0 ──┐             ┌── transfer of rank 0
 *	arrival of rank 1 ──┼── meeting ──┼── transfer of rank 1
 *	arrival of rank 2 ──┘             └── transfer of rank 2
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_build_internal.h"
#include "model/comm/comm.h"
#include "util/memory.h"

struct meeting_scan {
	struct replay_build *build;
	const struct model *model;
	struct map op_of; /* span of a call of NCCL -> the first kernel that it launched */
};

/* The innermost call of NCCL around a launch; MODEL_NONE: none. */
static uint32_t nccl_span(const struct model *model, const struct gpu_timeline_launch *launch)
{
	uint32_t span = launch->host;

	if (span != MODEL_NONE && launch->host_kind == MODEL_NODE_EVENT)
		span = model->events.data[span].parent;
	while (span != MODEL_NONE &&
	       !site_role_is_nccl(model_site(model, model->spans.data[span].site)->role))
		span = model->spans.data[span].parent;
	return span;
}

static void kernels_find(struct meeting_scan *scan)
{
	const struct gpu_timeline *timeline = scan->build->timeline;

	for (size_t i = 0; i < timeline->launches.len; i++) {
		const struct gpu_timeline_launch *launch = &timeline->launches.data[i];
		uint32_t span =
			gpu_launch_op_count(launch) ? nccl_span(scan->model, launch) : MODEL_NONE;
		uint32_t op;

		if (span == MODEL_NONE)
			continue;
		op = timeline->launched.data[launch->op];
		if (timeline->ops.data[op].kind == GPU_OP_KERNEL &&
		    map_get(&scan->op_of, span) == MAP_NONE)
			map_put(&scan->op_of, span, op);
	}
}

static uint32_t call_op(const struct meeting_scan *scan, const struct model_rank_call *call)
{
	uint32_t op = map_get(&scan->op_of, call->span);

	if (op == MAP_NONE && call->group_end != MODEL_NONE)
		op = map_get(&scan->op_of, call->group_end);
	return op;
}

static void rank_note(struct replay_build *build, const struct model_rank_call *call)
{
	if (call->rank != MODEL_NONE && map_get(&build->ranks, call->pid) == MAP_NONE)
		map_put(&build->ranks, call->pid, call->rank);
}

/* All calls of a collective that have a kernel meet. */
static void meeting_add(struct meeting_scan *scan, const struct model_collective *collective)
{
	struct replay_build *build = scan->build;
	struct replay_meeting meeting = {.first = (uint32_t)build->met.len};

	for (uint32_t i = 0; i < collective->count; i++) {
		uint32_t op = call_op(scan, &collective->calls[i]);

		rank_note(build, &collective->calls[i]);
		if (op == MAP_NONE)
			continue;
		vec_add(&build->met, op);
		if (build->timeline->ops.data[op].start_ts > meeting.ts)
			meeting.ts = build->timeline->ops.data[op].start_ts;
	}
	meeting.count = (uint32_t)build->met.len - meeting.first;
	if (meeting.count < 2) {
		build->met.len = meeting.first;
		return;
	}
	vec_add(&build->meetings, meeting);
	if (!build->meet_ts)
		build->meet_ts = memory_zeroed(build->timeline->ops.len, sizeof(*build->meet_ts));
	for (uint32_t i = 0; i < meeting.count; i++) {
		uint64_t *ts = &build->meet_ts[build->met.data[meeting.first + i]];

		*ts = meeting.ts > *ts ? meeting.ts : *ts;
	}
}

static bool meets(const struct model_collective *collective)
{
	return !collective->mpi && collective->comparable && collective->synchronizes &&
	       collective->from == MODEL_NONE && collective->count > 1 &&
	       (collective->alignment == COLLECTIVE_BY_CREATION ||
		collective->alignment == COLLECTIVE_BY_ORDER);
}

/* Ranks of the job, as far as processes say it. */
static void ranks_find(struct replay_build *build, const struct model *model)
{
	for (size_t i = 0; i < model->processes.len; i++)
		if (model->processes.data[i].rank != MODEL_NONE)
			map_put(&build->ranks, model->processes.data[i].pid,
				model->processes.data[i].rank);
}

void replay_meetings_find(struct replay_build *build)
{
	struct meeting_scan scan = {.build = build, .model = build->timeline->model};
	struct model_gpu *gpu = model_gpu_new(scan.model);
	struct model_comm *comm = model_comm_new(scan.model, gpu);

	ranks_find(build, scan.model);
	if (model_collective_count(comm))
		kernels_find(&scan);
	for (size_t i = 0; i < model_collective_count(comm); i++)
		if (meets(model_collective_at(comm, i)))
			meeting_add(&scan, model_collective_at(comm, i));
	map_free(&scan.op_of);
	model_comm_free(comm);
	model_gpu_free(gpu);
}
