// SPDX-License-Identifier: Apache-2.0
/*
 * Stream capture in CUDA: between two calls, work put on a stream goes into a graph instead. A
 * stream that waits for an event recorded by a captured stream joins the capture until it ends.
 * Captured work does not run, so nobody can wait for it. An event recorded in a capture cannot be
 * waited for either, until it is recorded elsewhere.
 */
#include "model/build.h"
#include "model/gpu/gpu_internal.h"
#include "util/memory.h"

/* CUDA errors with which a capture does not end. */
#define ERROR_UNMATCHED 903    /* begun on another stream */
#define ERROR_WRONG_THREAD 908 /* begun in another thread */

static bool is_open(const struct model_gpu *gpu, uint32_t channel)
{
	uint32_t graph = gpu->channels.data[channel].graph;

	return graph && gpu->graphs.data[graph - 1] != MODEL_NONE;
}

void gpu_graph_over(struct model_gpu *gpu, uint32_t channel)
{
	uint32_t graph = gpu->channels.data[channel].graph;

	if (graph && gpu->graphs.data[graph - 1] == channel)
		gpu->graphs.data[graph - 1] = MODEL_NONE;
	gpu->channels.data[channel].graph = 0;
	gpu->channels.data[channel].settled = true;
}

/* While another capture is open, we cannot tell which of the earlier calls belong to which
 * graph. */
bool gpu_graph_begun_before(const struct model_gpu *gpu, uint32_t channel)
{
	for (size_t i = 0; i < gpu->graphs.len; i++)
		if (gpu->graphs.data[i] != MODEL_NONE)
			return false;
	return !gpu->channels.data[channel].settled;
}

void gpu_graph_begin(struct model_gpu *gpu, uint32_t channel)
{
	gpu_graph_over(gpu, channel);
	memory_require(gpu->graphs.len < MODEL_NONE - 1);
	vec_add(&gpu->graphs, channel);
	gpu->channels.data[channel].graph = (uint32_t)gpu->graphs.len;
}

void gpu_graph_end(struct model_gpu *gpu, uint32_t channel, uint64_t result)
{
	uint32_t graph = gpu->channels.data[channel].graph;

	if (result == ERROR_UNMATCHED || result == ERROR_WRONG_THREAD)
		return;
	if (graph && gpu->graphs.data[graph - 1] == channel)
		gpu_graph_over(gpu, channel);
}

bool gpu_graph_can_take(const struct model_gpu *gpu, uint32_t site)
{
	const struct gpu_site *at = gpu_site(gpu, site);
	unsigned role = at->role;

	/* A copy without a stream is synchronous, and fails during a capture. */
	if (!gpu->graphs.len || at->keys[GPU_STREAM] == GPU_KEY_NONE)
		return false;
	return role == SITE_ROLE_LAUNCH || role == SITE_ROLE_COPY || role == SITE_ROLE_SET ||
	       role == SITE_ROLE_EVENT_RECORD || role == SITE_ROLE_STREAM_WAIT ||
	       gpu_role_communicates(role);
}

bool gpu_graph_take(struct model_gpu *gpu, uint32_t node, unsigned role, uint32_t stream,
		    uint32_t event)
{
	struct channel *channels = gpu->channels.data;
	bool taken = false;

	/* If the event's capture has ended, the wait fails; it counts as taken, too. */
	if (role == SITE_ROLE_STREAM_WAIT && channels[event].graph) {
		taken = true;
		if (is_open(gpu, event) && !is_open(gpu, stream))
			channels[stream].graph = channels[event].graph;
	}
	taken = taken || is_open(gpu, stream);
	if (role == SITE_ROLE_EVENT_RECORD)
		channels[event].graph = taken ? channels[stream].graph : 0;
	if (taken)
		map_put(&gpu->in_graph, node, 1);
	return taken;
}

bool gpu_in_graph(const struct model_gpu *gpu, uint32_t node)
{
	return map_get(&gpu->in_graph, node) != MAP_NONE;
}
