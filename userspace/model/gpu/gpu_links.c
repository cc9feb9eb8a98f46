// SPDX-License-Identifier: Apache-2.0
/*
 * Adds the links that follow from what GPU calls do:
 *
 *	synchronisation -> the work that it waits for
 *	wait for an event -> the record of the event
 *	record of an event -> the work before it on the stream
 *	end of a group -> the calls in the group
 */
#include "model/build.h"
#include "model/gpu/gpu_internal.h"
#include "util/memory.h"

static uint64_t node_id(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].id : model->events.data[index].id;
}

static void link_add(struct model *model, uint8_t from_kind, uint32_t from, uint8_t to_kind,
		     uint32_t to)
{
	struct model_link link = {
		.from_kind = from_kind,
		.to_kind = to_kind,
		.from = from,
		.to = to,
		.to_id = node_id(model, to_kind, to),
	};

	vec_add(&model->links, link);
}

static void link_op(struct model *model, uint8_t kind, uint32_t index,
		    const struct model_gpu_op *op)
{
	link_add(model, kind, index, op->node, op->index);
}

/* Links a wait for an event, by a stream or by the program. */
static void link_event(struct model *model, const struct model_gpu *gpu, uint8_t kind,
		       uint32_t index)
{
	bool span = kind == MODEL_NODE_SPAN;
	uint32_t thread = span ? model->spans.data[index].thread : model->events.data[index].thread;
	uint64_t ts = span ? model->spans.data[index].start_ts : model->events.data[index].ts;
	struct model_gpu_op record;
	struct value event;

	if (model_gpu_value(model, kind, index, "event", &event) &&
	    model_gpu_recorded(gpu, model->threads.data[thread].pid, event.u64, ts, &record))
		link_op(model, kind, index, &record);
}

static void link_record(struct model *model, const struct model_gpu *gpu, uint8_t kind,
			uint32_t index)
{
	struct model_gpu_op record = gpu_op(gpu, gpu_node(model, kind, index)), op;

	if (gpu_op_last(gpu, record.channel, record.ts, &op))
		link_op(model, kind, index, &op);
}

static void link_awaited(struct model *model, const struct model_gpu *gpu, uint32_t span,
			 struct model_gpu_awaited *awaited)
{
	model_gpu_awaited(gpu, span, awaited);
	for (size_t i = 0; i < awaited->ops.len; i++)
		if (!awaited->ops.data[i].maybe)
			link_op(model, MODEL_NODE_SPAN, span, &awaited->ops.data[i]);
}

static void link_node(struct model *model, const struct model_gpu *gpu, uint8_t kind,
		      uint32_t index, struct model_gpu_awaited *awaited)
{
	bool span = kind == MODEL_NODE_SPAN;
	uint32_t site = span ? model->spans.data[index].site : model->events.data[index].site;
	uint32_t group_end;

	if (span && (model->spans.data[index].flags & MODEL_SPAN_BEGUN_BEFORE ||
		     model_gpu_failed(gpu, index)))
		return;
	if (gpu_in_graph(gpu, gpu_node(model, kind, index)) ||
	    map_get(&gpu->repeated, gpu_node(model, kind, index)) != MAP_NONE)
		return;
	switch (gpu_site(gpu, site)->role) {
	case SITE_ROLE_SYNC_STREAM:
	case SITE_ROLE_SYNC_DEVICE:
	case SITE_ROLE_COPY:
		if (span)
			link_awaited(model, gpu, index, awaited);
		return;
	case SITE_ROLE_SYNC_EVENT:
	case SITE_ROLE_STREAM_WAIT:
		link_event(model, gpu, kind, index);
		return;
	case SITE_ROLE_EVENT_RECORD:
		link_record(model, gpu, kind, index);
		return;
	case SITE_ROLE_COLLECTIVE:
	case SITE_ROLE_P2P:
	case SITE_ROLE_SEND:
	case SITE_ROLE_RECV:
		group_end = span ? map_get(&gpu->grouped, index) : MAP_NONE;
		if (group_end != MAP_NONE)
			link_add(model, MODEL_NODE_SPAN, group_end, MODEL_NODE_SPAN, index);
		return;
	default:
		return;
	}
}

void gpu_links_add(struct model *model, const struct model_gpu *gpu)
{
	struct model_gpu_awaited awaited = {0};

	if (!gpu)
		return;
	for (size_t i = 0; i < model->spans.len; i++)
		link_node(model, gpu, MODEL_NODE_SPAN, (uint32_t)i, &awaited);
	for (size_t i = 0; i < model->events.len; i++)
		link_node(model, gpu, MODEL_NODE_EVENT, (uint32_t)i, &awaited);
	vec_free(&awaited.ops);
}
