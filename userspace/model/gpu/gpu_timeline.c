// SPDX-License-Identifier: Apache-2.0
#include "model/gpu/gpu_timeline.h"

#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu.h"
#include "model/gpu/gpu_records.h"
#include "model/gpu/gpu_timeline_internal.h"
#include "util/memory.h"

/* Calls may be nested as deeply as a capture is long, so each span looks at its parent only, whose
 * index is less than its own. */
static void program_spans_find(struct gpu_timeline *timeline)
{
	const struct model *model = timeline->model;

	timeline->program_span = memory_get(model->spans.len * sizeof(uint32_t));
	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		const struct site_info *site = model_site(model, span->site);

		if (site->role == SITE_ROLE_NONE || site_role_is_mpi(site->role))
			timeline->program_span[i] = i;
		else
			timeline->program_span[i] = span->parent < i
							    ? timeline->program_span[span->parent]
							    : MODEL_NONE;
	}
}

static void timeline_build_free(struct timeline_build *build)
{
	vec_free(&build->armings);
	vec_free(&build->waits);
	vec_free(&build->handles);
	vec_free(&build->launch_stream);
	timeline_correlations_free(&build->launch_at);
	timeline_correlations_free(&build->wait_at);
	keymap_free(&build->captured_at);
	timeline_sites_free(build->sites);
}

/* Takes the records, which may be NULL. */
static struct gpu_timeline *timeline_make(const struct model *model, struct gpu_records *records)
{
	struct gpu_timeline *timeline = memory_zeroed(1, sizeof(*timeline));
	struct timeline_build build = {.timeline = timeline, .model = model, .records = records};
	struct model_gpu *gpu;

	timeline->model = model;
	timeline->simulated = model_simulated(model);
	program_spans_find(timeline);
	build.sites = timeline_sites_find(model);
	if (records && build.sites) {
		timeline_launches_load(&build);
		timeline_ops_load(&build);
	}
	gpu_records_free(records);
	build.records = NULL;
	if (timeline->ops.len) {
		timeline_launched_find(timeline);
		timeline_order_find(timeline);
		gpu = model_gpu_new(model);
		timeline_edges_find(&build, gpu);
		model_gpu_free(gpu);
	}
	timeline_build_free(&build);
	return timeline;
}

struct gpu_timeline *gpu_timeline_new(const struct model *model)
{
	return timeline_make(model, gpu_records_of(model));
}

struct gpu_timeline *gpu_timeline_of_calls(const struct model *model)
{
	return model_gpu_has_calls(model) ? gpu_timeline_new(model) : NULL;
}

struct gpu_timeline *gpu_timeline_take(struct model *model)
{
	struct gpu_records *records = model->gpu_records;

	model->gpu_records = NULL;
	return timeline_make(model, records);
}

void gpu_timeline_free(struct gpu_timeline *timeline)
{
	if (!timeline)
		return;
	for (size_t i = 0; i < timeline->names.len; i++)
		free((char *)timeline->names.data[i]);
	for (size_t i = 0; i < timeline->copies.len; i++)
		free((char *)timeline->copies.data[i]);
	vec_free(&timeline->names);
	vec_free(&timeline->copies);
	vec_free(&timeline->ops);
	vec_free(&timeline->streams);
	vec_free(&timeline->devices);
	vec_free(&timeline->launches);
	vec_free(&timeline->edges);
	vec_free(&timeline->syncs);
	vec_free(&timeline->sessions);
	map_free(&timeline->session_of);
	vec_free(&timeline->launched);
	vec_free(&timeline->awaited);
	free(timeline->program_span);
	free(timeline);
}

const char *gpu_timeline_sync_name(const struct gpu_timeline *timeline,
				   const struct gpu_timeline_sync *sync)
{
	const struct model *model = timeline->model;

	return sync->span == MODEL_NONE
		       ? "synchronize"
		       : model_site(model, model->spans.data[sync->span].site)->name;
}

uint32_t gpu_timeline_needed(const struct gpu_timeline *timeline, uint32_t op)
{
	uint32_t last = timeline->ops.data[op].previous;

	for (size_t i = gpu_timeline_edges_to(timeline, op);
	     i < timeline->edges.len && timeline->edges.data[i].to == op; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];

		if (!edge->violated &&
		    (last == MODEL_NONE ||
		     timeline->ops.data[edge->from].end_ts > timeline->ops.data[last].end_ts))
			last = edge->from;
	}
	return last;
}

uint32_t gpu_timeline_awaited(const struct gpu_timeline *timeline,
			      const struct gpu_timeline_sync *sync)
{
	uint32_t last = MODEL_NONE;

	for (uint32_t i = 0; i < sync->op_count; i++) {
		uint32_t op = timeline->awaited.data[sync->op + i];

		if (last == MODEL_NONE ||
		    timeline->ops.data[op].end_ts > timeline->ops.data[last].end_ts)
			last = op;
	}
	if (last == MODEL_NONE || timeline->ops.data[last].end_ts <= sync->start_ts ||
	    timeline->ops.data[last].end_ts > sync->end_ts)
		return MODEL_NONE;
	return last;
}

/* The function's own name in the name of a kernel. That may be mangled: after "_Z", "_ZL" or "_ZN"
 * come the length and the bytes of the outermost name. The name of a function template begins with
 * its return type, void. */
static const char *function_name(const char *name)
{
	if (!strncmp(name, "_Z", 2)) {
		name += 2;
		name += *name == 'L' || *name == 'N';
		return name + strspn(name, "0123456789");
	}
	return strncmp(name, "void ", 5) ? name : name + 5;
}

bool gpu_timeline_communicates(const char *name)
{
	static const char *const begins[] = {"nccl", "rccl", "msccl"};

	name = function_name(name);
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}
