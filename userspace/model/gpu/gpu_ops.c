// SPDX-License-Identifier: Apache-2.0
/* Looks up ops by channel and time. */
#include "model/gpu/gpu_internal.h"

#include "util/search.h"

struct model_gpu_op gpu_op(const struct model_gpu *gpu, uint32_t node)
{
	const struct model *model = gpu->model;
	struct model_gpu_op op = {.node = MODEL_NODE_SPAN, .index = node};
	uint32_t site, frame, group_end;

	if (node < model->spans.len) {
		const struct model_span *span = &model->spans.data[node];

		op.ts = span->start_ts;
		op.thread = span->thread;
		site = span->site;
		frame = span->frame;
		group_end = map_get(&gpu->grouped, node);
		if (group_end != MAP_NONE)
			op.ts = model->spans.data[group_end].start_ts;
	} else {
		const struct model_event *event = &model->events.data[node - model->spans.len];

		op.node = MODEL_NODE_EVENT;
		op.index = node - (uint32_t)model->spans.len;
		op.ts = event->ts;
		op.thread = event->thread;
		site = event->site;
		frame = event->frame;
	}
	op.role = gpu_site(gpu, site)->role;
	op.host =
		op.role == SITE_ROLE_LAUNCH && gpu_site(gpu, site)->keys[GPU_HOST] != GPU_KEY_NONE;
	op.pid = model->threads.data[op.thread].pid;
	op.stream = gpu_stream_of(gpu, site, frame);
	op.channel = gpu_of_context(gpu, site) ? MODEL_NONE
					       : gpu_stream(gpu, op.pid, op.stream, op.thread);
	return op;
}

static uint64_t op_ts(const struct model_gpu *gpu, uint32_t node)
{
	const struct model *model = gpu->model;
	uint32_t group_end;

	if (node >= model->spans.len)
		return model->events.data[node - model->spans.len].ts;
	group_end = map_get(&gpu->grouped, node);
	return model->spans.data[group_end == MAP_NONE ? node : group_end].start_ts;
}

/* The number of a channel's ops that were put there before a time. */
static uint32_t ops_before(const struct model_gpu *gpu, const struct channel *channel, uint64_t ts)
{
	return lower_bound(channel->op_count, i, op_ts(gpu, gpu->ops[channel->ops + i]) < ts);
}

bool gpu_op_last(const struct model_gpu *gpu, uint32_t channel, uint64_t before_ts,
		 struct model_gpu_op *op)
{
	const struct channel *at;
	uint32_t count;

	if (channel == MODEL_NONE)
		return false;
	at = &gpu->channels.data[channel];
	count = ops_before(gpu, at, before_ts);
	if (count)
		*op = gpu_op(gpu, gpu->ops[at->ops + count - 1]);
	return count > 0;
}

bool model_gpu_last(const struct model_gpu *gpu, uint32_t pid, uint64_t stream, uint32_t thread,
		    uint64_t before_ts, struct model_gpu_op *op)
{
	return gpu && gpu_op_last(gpu, gpu_stream(gpu, pid, stream, thread), before_ts, op);
}

bool model_gpu_recorded(const struct model_gpu *gpu, uint32_t pid, uint64_t event,
			uint64_t before_ts, struct model_gpu_op *op)
{
	return gpu &&
	       gpu_op_last(gpu, gpu_channel(gpu, CHANNEL_EVENT, pid, event, 0), before_ts, op);
}

bool model_gpu_previous(const struct model_gpu *gpu, const struct model_gpu_op *op,
			struct model_gpu_op *previous)
{
	const struct channel *at;
	uint32_t count, node;

	if (!gpu || op->channel == MODEL_NONE)
		return false;
	at = &gpu->channels.data[op->channel];
	node = gpu_node(gpu->model, op->node, op->index);
	/* Ops of one group have the same time. */
	for (count = ops_before(gpu, at, op->ts); count < at->op_count; count++)
		if (gpu->ops[at->ops + count] == node ||
		    op_ts(gpu, gpu->ops[at->ops + count]) > op->ts)
			break;
	if (!count)
		return false;
	*previous = gpu_op(gpu, gpu->ops[at->ops + count - 1]);
	return true;
}

bool model_gpu_behind(const struct model_gpu *gpu, const struct model_gpu_op *wait,
		      struct model_gpu_op *op)
{
	struct model_gpu_op record;
	struct value event;

	if (!gpu || wait->role != SITE_ROLE_STREAM_WAIT ||
	    !model_gpu_value(gpu->model, wait->node, wait->index, "event", &event))
		return false;
	return model_gpu_recorded(gpu, wait->pid, event.u64, wait->ts, &record) &&
	       gpu_op_last(gpu, record.channel, record.ts, op);
}

struct model_gpu_op model_gpu_op(const struct model_gpu *gpu, uint32_t span)
{
	return gpu_op(gpu, span);
}
