// SPDX-License-Identifier: Apache-2.0
/* Syncs by channel and time: which calls have waited for the ops of a channel. */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "model/gpu/gpu_internal.h"
#include "model/order.h"
#include "util/memory.h"

void gpu_sync_add(struct model_gpu *gpu, uint64_t ts, uint32_t span, uint32_t channel)
{
	vec_add(&gpu->syncs, (struct gpu_sync){ts, span, channel});
}

/* Sorts the syncs by channel, then time. */
static void place_syncs(struct model_gpu *gpu)
{
	struct gpu_sync *placed = memory_get(gpu->syncs.len * sizeof(*placed));
	uint32_t at = 0;

	free(order_vec(&gpu->syncs, ts));
	for (size_t i = 0; i < gpu->channels.len; i++)
		gpu->channels.data[i].sync_count = 0;
	for (size_t i = 0; i < gpu->syncs.len; i++)
		gpu->channels.data[gpu->syncs.data[i].channel].sync_count++;
	for (size_t i = 0; i < gpu->channels.len; i++) {
		gpu->channels.data[i].syncs = at;
		at += gpu->channels.data[i].sync_count;
		gpu->channels.data[i].sync_count = 0;
	}
	for (size_t i = 0; i < gpu->syncs.len; i++) {
		struct channel *channel = &gpu->channels.data[gpu->syncs.data[i].channel];

		placed[channel->syncs + channel->sync_count++] = gpu->syncs.data[i];
	}
	if (gpu->syncs.len)
		memcpy(gpu->syncs.data, placed, gpu->syncs.len * sizeof(*placed));
	free(placed);
}

/* A stream that waits for an event continues when the event's stream has reached the event. So a
 * sync that covers the wait also covers the ops before the event on its stream. */
static void pass_on_sync(struct model_gpu *gpu, const struct channel *channel, uint32_t node)
{
	const struct model *model = gpu->model;
	bool span = node < model->spans.len;
	uint32_t event = span ? 0 : node - (uint32_t)model->spans.len, at;
	uint32_t site = span ? model->spans.data[node].site : model->events.data[event].site;
	uint32_t frame = span ? model->spans.data[node].frame : model->events.data[event].frame;
	uint64_t ts = span ? model->spans.data[node].start_ts : model->events.data[event].ts;
	struct model_gpu_op record;

	if (gpu_site(gpu, site)->role != SITE_ROLE_STREAM_WAIT ||
	    !model_gpu_recorded(gpu, channel->pid, gpu_number(gpu, site, frame, GPU_EVENT, 0), ts,
				&record) ||
	    record.channel == MODEL_NONE)
		return;
	at = gpu_sync_after(gpu, channel, ts);
	if (at < channel->sync_count)
		gpu_sync_add(gpu, record.ts, gpu->syncs.data[channel->syncs + at].span,
			     record.channel);
}

static void pass_on_syncs(struct model_gpu *gpu)
{
	size_t known = gpu->syncs.len;

	for (size_t i = 0; i < gpu->channels.len; i++) {
		const struct channel *channel = &gpu->channels.data[i];

		for (uint32_t k = 0; k < channel->op_count; k++)
			pass_on_sync(gpu, channel, gpu->ops[channel->ops + k]);
	}
	if (gpu->syncs.len > known)
		place_syncs(gpu);
}

/* An op on a blocking stream runs after all earlier ops of the legacy default stream. So a sync
 * that covers the former also covers the latter, and what the legacy stream waited for. */
static void pass_on_legacy(struct model_gpu *gpu)
{
	size_t known = gpu->syncs.len;

	for (size_t i = 0; i < known; i++) {
		struct gpu_sync sync = gpu->syncs.data[i];
		const struct channel *channel = &gpu->channels.data[sync.channel];
		uint32_t legacy = gpu_stream(gpu, channel->pid, STREAM_NULL, 0);
		struct model_gpu_op op;

		if (channel->kind != CHANNEL_STREAM || channel->blocking != STREAM_BLOCKING ||
		    !gpu_op_last(gpu, sync.channel, sync.ts, &op) ||
		    !gpu_op_last(gpu, legacy, op.ts, &op))
			continue;
		gpu_sync_add(gpu, op.ts, sync.span, legacy);
	}
	if (gpu->syncs.len > known)
		place_syncs(gpu);
}

void gpu_syncs_finish(struct model_gpu *gpu)
{
	place_syncs(gpu);
	pass_on_syncs(gpu);
	pass_on_legacy(gpu);
}
