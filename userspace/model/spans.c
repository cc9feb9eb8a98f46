// SPDX-License-Identifier: Apache-2.0
/* Spans and events: begins and ends meet by id, in whatever order they come. */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "model/order.h"

/* A span that has not met its end; replaced in spans_finish(). */
#define OPEN UINT64_MAX

/* Keeps a copy of a frame; MODEL_NONE in *at if the site has no keys to read from it. */
static int keep_frame(struct builder *builder, const struct waffle_rec_hit *hit, uint32_t *at)
{
	struct model *model = builder->model;
	size_t words = (hit->frame_bytes + 7u) / 8;
	size_t len = model->frames.len;

	*at = MODEL_NONE;
	if (!builder->sites.data[hit->site].has_keys)
		return 0;
	if (len >= MODEL_NONE - words || !vec_reserve(&model->frames, words + 1))
		return -ENOMEM;
	model->frames.data[len] = hit->frame_bytes;
	model->frames.data[len + words] = 0;
	memcpy(&model->frames.data[len + 1], hit + 1, hit->frame_bytes);
	model->frames.len += words + 1;
	*at = (uint32_t)len;
	return 0;
}

static uint32_t span_find(const struct model *model, uint64_t id)
{
	return id ? map_get(&model->span_ids, id) : MODEL_NONE;
}

/* Takes the begin of a span that has its end already: records may come late. */
static bool span_complete(struct model *model, const struct model_span *begin, uint32_t *index)
{
	struct model_span *span, ended;

	*index = span_find(model, begin->id);
	if (*index == MODEL_NONE)
		return false;
	span = &model->spans.data[*index];
	if (!(span->flags & MODEL_SPAN_BEGUN_BEFORE) || begin->start_ts > span->end_ts)
		return false;
	ended = *span;
	*span = *begin;
	span->end_ts = ended.end_ts;
	span->end_thread = ended.end_thread;
	span->flags = ended.end_thread != begin->thread ? MODEL_SPAN_MOVED : 0;
	return true;
}

static int span_begin(struct builder *builder, const struct waffle_rec_hit *hit,
		      const struct waffle_frame *frame, uint32_t thread, uint32_t kept)
{
	struct model *model = builder->model;
	struct model_span span = {
		.id = frame->id,
		.parent_id = frame->parent,
		.trace_hi = frame->trace_hi,
		.trace_lo = frame->trace_lo,
		.start_ts = hit->rec.ts,
		.end_ts = OPEN,
		.site = hit->site,
		.thread = thread,
		.end_thread = thread,
		.parent = span_find(model, frame->parent),
		.cpu = hit->rec.cpu,
		.frame = kept,
	};
	uint32_t index;

	if (!span_complete(model, &span, &index)) {
		index = (uint32_t)model->spans.len;
		if (index == MODEL_NONE || !vec_push(&model->spans, span) ||
		    !map_set(&model->span_ids, span.id, index))
			return -ENOMEM;
	}
	if (!builder->sites.data[hit->site].has_links)
		return 0;
	return links_add(model, MODEL_NODE_SPAN, index, hit->site, kept);
}

static int event_add(struct builder *builder, const struct waffle_rec_hit *hit,
		     const struct waffle_frame *frame, uint32_t thread, uint32_t kept)
{
	struct model *model = builder->model;
	struct model_event event = {
		.id = frame->id,
		.parent_id = frame->parent,
		.trace_hi = frame->trace_hi,
		.trace_lo = frame->trace_lo,
		.ts = hit->rec.ts,
		.site = hit->site,
		.thread = thread,
		.parent = span_find(model, frame->parent),
		.frame = kept,
		.cpu = hit->rec.cpu,
	};
	uint32_t index = (uint32_t)model->events.len;

	if (index == MODEL_NONE || !vec_push(&model->events, event))
		return -ENOMEM;
	if (!builder->sites.data[hit->site].has_links)
		return 0;
	return links_add(model, MODEL_NODE_EVENT, index, hit->site, kept);
}

static bool hit_makes_sense(const struct builder *builder, const struct waffle_rec_hit *hit,
			    const struct waffle_frame *frame)
{
	unsigned kind;

	if (!hit->rec.tid || hit->site >= builder->sites.len || hit->frame_bytes < sizeof(*frame))
		return false;
	kind = builder->sites.data[hit->site].kind;
	if (!kind || kind >= WAFFLE_SITE_KIND_COUNT || kind == WAFFLE_SITE_SPAN_END)
		return false;
	return frame->id || kind != WAFFLE_SITE_SPAN;
}

int spans_add_hit(struct builder *builder, const struct waffle_rec_hit *hit)
{
	struct waffle_frame frame = {0};
	uint32_t thread, kept;

	if (hit->frame_bytes >= sizeof(frame))
		memcpy(&frame, hit + 1, sizeof(frame));
	if (!hit_makes_sense(builder, hit, &frame)) {
		builder->model->bad_records++;
		return 0;
	}
	thread = threads_running(builder, hit->rec.tid, hit->tgid, hit->rec.ts);
	if (thread == MODEL_NONE || keep_frame(builder, hit, &kept))
		return -ENOMEM;
	if (builder->sites.data[hit->site].kind == WAFFLE_SITE_SPAN)
		return span_begin(builder, hit, &frame, thread, kept);
	return event_add(builder, hit, &frame, thread, kept);
}

/* An end without a begin: the span was open when the capture began, or its begin is lost. */
static int span_begun_before(struct builder *builder, const struct waffle_rec_span_end *end,
			     uint32_t thread)
{
	struct model *model = builder->model;
	uint32_t index = (uint32_t)model->spans.len;
	bool known = end->site < builder->sites.len &&
		     builder->sites.data[end->site].kind == WAFFLE_SITE_SPAN;
	struct model_span span = {
		.id = end->span_id,
		.start_ts = model->start_ts < end->rec.ts ? model->start_ts : end->rec.ts,
		.end_ts = end->rec.ts,
		.site = known ? end->site : MODEL_NONE,
		.thread = thread,
		.end_thread = thread,
		.parent = MODEL_NONE,
		.flags = MODEL_SPAN_BEGUN_BEFORE,
		.cpu = MODEL_CPU_NONE,
		.frame = MODEL_NONE,
	};

	if (index == MODEL_NONE || !vec_push(&model->spans, span) ||
	    !map_set(&model->span_ids, span.id, index))
		return -ENOMEM;
	return 0;
}

int spans_add_end(struct builder *builder, const struct waffle_rec_span_end *end)
{
	struct model *model = builder->model;
	uint32_t index = span_find(model, end->span_id);
	struct model_span *span;
	uint32_t thread;

	if (!end->span_id || !end->rec.tid) {
		model->bad_records++;
		return 0;
	}
	thread = threads_running(builder, end->rec.tid, end->tgid, end->rec.ts);
	if (thread == MODEL_NONE)
		return -ENOMEM;
	if (index == MODEL_NONE)
		return span_begun_before(builder, end, thread);
	span = &model->spans.data[index];
	if (span->end_ts != OPEN) {
		model->bad_records++; /* ended twice */
		return 0;
	}
	if (end->rec.ts < span->start_ts)
		model->bad_records++; /* kept, as a span of no length */
	span->end_ts = end->rec.ts < span->start_ts ? span->start_ts : end->rec.ts;
	span->end_thread = thread;
	if (thread != span->thread)
		span->flags |= MODEL_SPAN_MOVED;
	return 0;
}

static void spans_close(struct builder *builder)
{
	struct model *model = builder->model;

	for (size_t i = 0; i < model->spans.len; i++) {
		struct model_span *span = &model->spans.data[i];

		if (span->end_ts != OPEN)
			continue;
		span->flags |= MODEL_SPAN_UNFINISHED;
		span->end_ts = threads_end_after(builder, span->thread, span->start_ts);
		if (span->end_ts > model->end_ts)
			span->end_ts = model->end_ts;
		if (span->end_ts < span->start_ts)
			span->end_ts = span->start_ts;
	}
}

static int spans_order(struct model *model)
{
	uint32_t *rank;

	if (!order_array(model->spans.data, model->spans.len, sizeof(struct model_span),
			 offsetof(struct model_span, start_ts), &rank))
		return -ENOMEM;
	if (!rank)
		return 0;
	for (size_t i = 0; i < model->span_ids.cap; i++)
		if (model->span_ids.slots[i].value != MAP_NONE)
			model->span_ids.slots[i].value = rank[model->span_ids.slots[i].value];
	for (size_t i = 0; i < model->spans.len; i++)
		if (model->spans.data[i].parent != MODEL_NONE)
			model->spans.data[i].parent = rank[model->spans.data[i].parent];
	for (size_t i = 0; i < model->events.len; i++)
		if (model->events.data[i].parent != MODEL_NONE)
			model->events.data[i].parent = rank[model->events.data[i].parent];
	for (size_t i = 0; i < model->links.len; i++)
		if (model->links.data[i].from_kind == MODEL_NODE_SPAN)
			model->links.data[i].from = rank[model->links.data[i].from];
	free(rank);
	return 0;
}

static int events_order(struct model *model)
{
	uint32_t *rank;

	if (!order_array(model->events.data, model->events.len, sizeof(struct model_event),
			 offsetof(struct model_event, ts), &rank))
		return -ENOMEM;
	if (!rank)
		return 0;
	for (size_t i = 0; i < model->links.len; i++)
		if (model->links.data[i].from_kind == MODEL_NODE_EVENT)
			model->links.data[i].from = rank[model->links.data[i].from];
	free(rank);
	return 0;
}

/* Parents that were not there yet when their child came. */
static void parents_resolve(struct model *model)
{
	for (size_t i = 0; i < model->spans.len; i++)
		if (model->spans.data[i].parent == MODEL_NONE)
			model->spans.data[i].parent =
				span_find(model, model->spans.data[i].parent_id);
	for (size_t i = 0; i < model->events.len; i++)
		if (model->events.data[i].parent == MODEL_NONE)
			model->events.data[i].parent =
				span_find(model, model->events.data[i].parent_id);
	/* A parent begins before its child: who follows parents gets to an end, whatever the file.
	 */
	for (size_t i = 0; i < model->spans.len; i++)
		if (model->spans.data[i].parent >= i)
			model->spans.data[i].parent = MODEL_NONE;
}

static int spans_mark_losses(struct model *model)
{
	struct windows losses;

	if (!model->losses.len)
		return 0;
	if (!model_losses(&losses, model, false))
		return -ENOMEM;
	for (size_t i = 0; i < model->spans.len; i++)
		if (windows_touch(&losses, model->spans.data[i].start_ts,
				  model->spans.data[i].end_ts))
			model->spans.data[i].flags |= MODEL_SPAN_LOSS;
	windows_free(&losses);
	return 0;
}

int spans_finish(struct builder *builder)
{
	struct model *model = builder->model;

	spans_close(builder);
	if (spans_order(model) || events_order(model))
		return -ENOMEM;
	parents_resolve(model);
	if (links_resolve(model))
		return -ENOMEM;
	return spans_mark_losses(model);
}
