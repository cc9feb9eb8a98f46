// SPDX-License-Identifier: Apache-2.0
/* Collects the calls for the sweep of gpu_timeline_edges.c: calls that put work on streams, calls
 * that record events and wait for them, and calls that wait for the GPU. */
#include <string.h>

#include "model/gpu/gpu_timeline_sweep_internal.h"
#include "util/memory.h"

struct sweep_process *timeline_sweep_process(struct timeline_sweep *sweep, uint32_t pid)
{
	uint32_t at = map_get(&sweep->process_at, pid);

	if (at == MAP_NONE) {
		at = (uint32_t)sweep->processes.len;
		map_put(&sweep->process_at, pid, at);
		vec_add(&sweep->processes, (struct sweep_process){.sync_end_ts = UINT64_MAX});
	}
	return &sweep->processes.data[at];
}

/* Notes which processes have launches that probes recorded. */
static void launches_find_probed(struct timeline_sweep *sweep)
{
	const struct gpu_timeline *timeline = sweep->timeline;
	uint32_t last = MODEL_NONE; /* most launches are of the thread of the one before */

	for (size_t i = 0; i < timeline->launches.len; i++) {
		const struct gpu_timeline_launch *launch = &timeline->launches.data[i];

		if (launch->host == MODEL_NONE)
			continue;
		if (launch->thread != last)
			timeline_sweep_process(sweep, gpu_launch_pid(timeline, launch))->probed =
				true;
		last = launch->thread;
	}
}

/* Lists the launches of each call, in their order. */
static void launches_by_node(struct timeline_sweep *sweep)
{
	const struct gpu_timeline *timeline = sweep->timeline;
	size_t nodes = sweep->model->spans.len + sweep->model->events.len;

	sweep->first_launch = memory_get(nodes * sizeof(uint32_t));
	sweep->next_launch = memory_get(timeline->launches.len * sizeof(uint32_t));
	memset(sweep->first_launch, 0xff, nodes * sizeof(uint32_t));
	for (size_t i = timeline->launches.len; i--;) {
		const struct gpu_timeline_launch *launch = &timeline->launches.data[i];
		uint32_t node;

		if (launch->host == MODEL_NONE)
			continue;
		node = gpu_node(sweep->model, launch->host_kind, launch->host);
		sweep->next_launch[i] = sweep->first_launch[node];
		sweep->first_launch[node] = (uint32_t)i;
	}
}

/* Marks the operations that are followed by another one of the same launch. */
static void inner_ops_mark(struct timeline_sweep *sweep)
{
	const struct gpu_timeline *timeline = sweep->timeline;

	sweep->inner = memory_zeroed(timeline->ops.len, 1);
	for (size_t i = 0; i < timeline->ops.len; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[i];

		if (op->previous != MODEL_NONE && op->launch != MODEL_NONE &&
		    timeline->ops.data[op->previous].launch == op->launch)
			sweep->inner[op->previous] = 1;
	}
}

static void item_add(struct timeline_sweep *sweep, uint64_t ts, uint32_t node, uint32_t channel,
		     enum sweep_kind kind)
{
	vec_add(&sweep->order, (struct order_item){ts, (uint32_t)sweep->items.len});
	vec_add(&sweep->items, (struct sweep_item){node, channel, (uint8_t)kind});
}

static void items_of_channel(struct timeline_sweep *sweep, uint32_t index)
{
	const struct channel *channel = &sweep->gpu->channels.data[index];

	for (uint32_t i = 0; i < channel->op_count; i++) {
		uint32_t node = sweep->gpu->ops[channel->ops + i];
		enum sweep_kind kind = channel->kind == CHANNEL_EVENT ? SWEEP_RECORD : SWEEP_PUT;

		item_add(sweep, gpu_op(sweep->gpu, node).ts, node, index, kind);
	}
}

/* Gives each launch that no probe recorded the channel of its stream. Captures from before
 * libwaffle-gpu recorded these calls don't say whether a handle of 0 is the default stream. */
static void own_launches_place(struct timeline_sweep *sweep)
{
	struct timeline_build *build = sweep->build;
	uint32_t thread = MODEL_NONE, handle = MODEL_NONE, channel = MODEL_NONE;

	if (!sweep->gpu->library || !build->launch_stream.len)
		return;
	sweep->own_channel = build->launch_stream.data;
	for (size_t i = 0; i < build->launch_stream.len; i++) {
		const struct gpu_timeline_launch *launch = &sweep->timeline->launches.data[i];
		uint32_t own = launch->host == MODEL_NONE ? sweep->own_channel[i] : MODEL_NONE;

		sweep->own_channel[i] = MODEL_NONE;
		if (own == MODEL_NONE)
			continue;
		/* Most launches are on the stream of the one before. */
		if (own != handle || launch->thread != thread)
			channel = gpu_channel_add(sweep->gpu, CHANNEL_STREAM,
						  gpu_launch_pid(sweep->timeline, launch),
						  build->handles.data[own], launch->thread);
		sweep->own_channel[i] = channel;
		handle = own;
		thread = launch->thread;
	}
}

static void items_of_syncs(struct timeline_sweep *sweep)
{
	for (size_t i = 0; i < sweep->model->spans.len; i++) {
		const struct model_span *span = &sweep->model->spans.data[i];
		unsigned role = gpu_site(sweep->gpu, span->site)->role;

		if ((role == SITE_ROLE_SYNC_STREAM || role == SITE_ROLE_SYNC_EVENT ||
		     role == SITE_ROLE_SYNC_DEVICE) &&
		    !(span->flags & MODEL_SPAN_CUT) && !model_gpu_failed(sweep->gpu, (uint32_t)i)) {
			item_add(sweep, span->start_ts, (uint32_t)i, MODEL_NONE, SWEEP_SYNC);
			timeline_sweep_process(sweep, sweep->model->threads.data[span->thread].pid)
				->probed = true;
		}
	}
}

/* Adds the waits of processes whose calls no probe recorded. */
static void items_of_waits(struct timeline_sweep *sweep)
{
	for (size_t i = 0; i < sweep->build->waits.len; i++) {
		const struct timeline_wait *wait = &sweep->build->waits.data[i];
		uint64_t ts = wait->start_ts;

		if (timeline_sweep_process(sweep, wait->pid)->probed)
			continue;
		/* The order of a thread's own calls is that of its events. */
		if (wait->event != MODEL_NONE)
			ts = sweep->model->events.data[wait->event].ts;
		item_add(sweep, ts, (uint32_t)i, MODEL_NONE, SWEEP_WAIT);
	}
}

void timeline_sweep_fill(struct timeline_sweep *sweep)
{
	struct gpu_timeline *timeline = sweep->timeline;

	if (sweep->gpu) {
		own_launches_place(sweep);
		launches_find_probed(sweep);
		launches_by_node(sweep);
		inner_ops_mark(sweep);
		for (uint32_t i = 0; i < sweep->gpu->channels.len; i++)
			if (sweep->gpu->channels.data[i].kind != CHANNEL_DEVICE)
				items_of_channel(sweep, i);
		items_of_syncs(sweep);
	}
	items_of_waits(sweep);
	order_sort(sweep->order.data, sweep->order.len);
	for (size_t i = 0; i < sweep->processes.len; i++)
		timeline->probed |= sweep->processes.data[i].probed;
	timeline->ordered = timeline->probed || (sweep->gpu && sweep->gpu->library);
}
