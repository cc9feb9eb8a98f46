// SPDX-License-Identifier: Apache-2.0
/* Spans and events. Begin and end of a span are matched by id, in any order. */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "model/captures_internal.h"
#include "model/gpu/gpu_records.h"
#include "model/order.h"
#include "util/memory.h"

/* end_ts of a span without an end so far; spans_finish() replaces it. */
#define OPEN UINT64_MAX
/* Words to reserve for the values of returns. It is small, because returns seldom have strings. */
#define RETURN_WORDS_MAX 4

/* Whether the values of a hit can be read later, by its time. A span that began before the model
 * gets another one. */
static bool values_can_wait(const struct builder *builder, const struct waffle_rec_hit *hit)
{
	return builder->no_values && builder->sites.data[hit->site].plain &&
	       hit->rec.ts >= builder->model->start_ts;
}

/* Stores the values of a hit. MODEL_NONE: the site has no keys to decode them with, or they are
 * left in the file. */
static uint32_t values_add(struct builder *builder, const struct waffle_rec_hit *hit)
{
	const struct site_build *site = &builder->sites.data[hit->site];
	size_t head = sizeof(struct waffle_frame);

	if (!site->has_keys || values_can_wait(builder, hit))
		return MODEL_NONE;
	return frames_add(builder->model, (const char *)(hit + 1) + head,
			  (uint32_t)(hit->frame_bytes - head), site->return_words);
}

static uint32_t span_find(const struct model *model, uint64_t id)
{
	return id ? model_span_find(model, id) : MODEL_NONE;
}

/* A forked child has copies of the spans that are open at the fork, with the same ids. */
static bool span_is_of(const struct model *model, const struct model_span *span, uint32_t pid)
{
	uint32_t own = model->threads.data[span->thread].pid;

	return !own || !pid || own == pid;
}

/* Merges the begin of a span with its end that came first: records may come late. */
static bool span_complete(struct model *model, const struct model_span *begin, uint32_t *index)
{
	struct model_span *span, ended;

	*index = span_find(model, begin->id);
	if (*index == MODEL_NONE)
		return false;
	span = &model->spans.data[*index];
	if (!(span->flags & MODEL_SPAN_BEGUN_BEFORE) || begin->start_ts > span->end_ts ||
	    !span_is_of(model, span, model->threads.data[begin->thread].pid))
		return false;
	ended = *span;
	*span = *begin;
	span->end_ts = ended.end_ts;
	span->flags = ended.flags & MODEL_SPAN_LEFT;
	if (model_is_track(model, begin->thread))
		return true;
	span->end_thread = ended.end_thread;
	if (ended.end_thread != begin->thread)
		span->flags |= MODEL_SPAN_MOVED;
	return true;
}

/* Appends the values of a return that came before the begin. */
static void return_take(struct builder *builder, struct model_span *span)
{
	struct model *model = builder->model;
	uint32_t at = map_remove(&builder->returned, span->id), bytes;
	uint8_t values[WAFFLE_FRAME_MAX];

	if (at == MAP_NONE)
		return;
	bytes = FRAME_BYTES(model->frames.data[at]);
	memcpy(values, &model->frames.data[at + 1], bytes);
	span->frame = frames_append(model, span->frame, values, bytes);
}

/* Adds a span. An id that two spans have leads to the later one. */
static uint32_t span_add(struct model *model, const struct model_span *span)
{
	uint32_t index = (uint32_t)model->spans.len;

	memory_require(index != MODEL_NONE);
	vec_add(&model->spans, *span);
	id_index_put(&model->span_ids, model_span_array(model), index);
	return index;
}

/* Gives each of the first `count` spans a context. Those without a begin get an empty one. */
static void contexts_fill(struct model *model, size_t count)
{
	size_t from = model->contexts.len;

	if (from >= count)
		return;
	vec_need(&model->contexts, count - from);
	memset(&model->contexts.data[from], 0, (count - from) * sizeof(struct model_context));
	model->contexts.len = count;
}

/* Notes the context of a span whose begin was read. */
static void context_set(struct builder *builder, uint32_t index, const struct waffle_frame *frame)
{
	struct model *model = builder->model;

	/* The parent may come later. */
	if (frame->parent && model->spans.data[index].parent == MODEL_NONE)
		vec_add(&builder->orphans, (struct orphan){frame->parent, index});
	if (builder->no_contexts)
		return;
	contexts_fill(model, (size_t)index + 1);
	model->contexts.data[index] =
		(struct model_context){frame->parent, frame->trace_hi, frame->trace_lo};
}

static void span_begin(struct builder *builder, const struct waffle_rec_hit *hit,
		       const struct waffle_frame *frame, uint32_t thread, uint32_t values)
{
	struct model *model = builder->model;
	struct model_span span = {
		.id = frame->id,
		.start_ts = hit->rec.ts,
		.end_ts = OPEN,
		.site = hit->site,
		.thread = thread,
		.end_thread = thread,
		.parent = span_find(model, frame->parent),
		.cpu = model_is_track(model, thread) ? MODEL_CPU_NONE : hit->rec.cpu,
		.frame = values,
	};
	uint32_t index;

	if (span_complete(model, &span, &index))
		return_take(builder, &model->spans.data[index]);
	else
		index = span_add(model, &span);
	context_set(builder, index, frame);
	if (builder->sites.data[hit->site].has_links)
		links_add(model, MODEL_NODE_SPAN, index, hit->site, values);
}

static void event_add(struct builder *builder, const struct waffle_rec_hit *hit,
		      const struct waffle_frame *frame, uint32_t thread, uint32_t values)
{
	struct model *model = builder->model;
	bool track = model_is_track(model, thread);
	bool counter = builder->sites.data[hit->site].kind == WAFFLE_SITE_COUNTER;
	struct model_event event = {
		/* On a track a counter has an id only to be told from others. */
		.id = track && counter ? 0 : frame->id,
		.parent_id = frame->parent,
		.trace_hi = frame->trace_hi,
		.trace_lo = frame->trace_lo,
		.ts = hit->rec.ts,
		.site = hit->site,
		.thread = thread,
		.parent = span_find(model, frame->parent),
		.frame = values,
		.cpu = track ? MODEL_CPU_NONE : hit->rec.cpu,
	};
	uint32_t index = (uint32_t)model->events.len;

	memory_require(index != MODEL_NONE);
	vec_add(&model->events, event);
	if (builder->sites.data[hit->site].has_links)
		links_add(model, MODEL_NODE_EVENT, index, hit->site, values);
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

bool spans_hit_is_simulated(const struct builder *builder, const struct waffle_rec_hit *hit)
{
	struct value_walk walk =
		value_walk_begin(model_site(builder->model, hit->site), hit + 1, hit->frame_bytes);
	struct value value;

	while (value_walk_next(&walk, &value))
		if (value.type == WAFFLE_KEY_BOOL && value.u64 &&
		    !strcmp(value.key->name, "simulated"))
			return true;
	return false;
}

/* Whether a hit was kept apart, among the operations and launches of GPUs. */
static bool hit_is_apart(struct builder *builder, const struct waffle_rec_hit *hit,
			 const struct waffle_frame *frame, uint32_t thread)
{
	return gpu_records_hit(
		builder->model->gpu_records,
		&(struct gpu_record_hit){.ts = hit->rec.ts,
					 .id = frame->id,
					 .parent_id = frame->parent,
					 .site = hit->site,
					 .thread = thread,
					 .values = (const char *)(hit + 1) + sizeof(*frame),
					 .bytes = (uint32_t)(hit->frame_bytes - sizeof(*frame))});
}

void spans_add_hit(struct builder *builder, const struct waffle_rec_hit *hit)
{
	struct waffle_frame frame = {0};
	uint32_t thread, values;

	if (hit->frame_bytes >= sizeof(frame))
		memcpy(&frame, hit + 1, sizeof(frame));
	if (!hit_makes_sense(builder, hit, &frame)) {
		builder->model->bad_records++;
		return;
	}
	thread = tracks_take(builder, frame.id);
	if (thread != MODEL_NONE)
		tracks_touch(builder, thread, hit->rec.ts);
	else
		thread = threads_running(builder, hit->rec.tid, hit->tgid, hit->rec.ts);
	if (builder->sites.data[hit->site].session)
		builder->model->gpu_simulated |= spans_hit_is_simulated(builder, hit);
	if (builder->model->gpu_records && hit_is_apart(builder, hit, &frame, thread))
		return;
	values = values_add(builder, hit);
	if (builder->sites.data[hit->site].kind == WAFFLE_SITE_SPAN)
		span_begin(builder, hit, &frame, thread, values);
	else
		event_add(builder, hit, &frame, thread, values);
}

/* The common part of the two kinds of records that end a span. */
struct span_end {
	const struct waffle_rec *rec;
	uint64_t id;
	uint32_t tgid, site;
	uint16_t flags; /* MODEL_SPAN_LEFT, or 0 */
};

/* An end without a begin: the span was open when the capture began, or its begin was dropped. */
static void span_begun_before(struct builder *builder, const struct span_end *end, uint32_t thread)
{
	struct model *model = builder->model;
	const struct model_recorded *recorded = captures_at(model, thread, end->rec->ts);
	uint64_t begin = recorded && recorded->from_ts > model->threads_start_ts
				 ? recorded->from_ts
				 : model->threads_start_ts;
	uint64_t ts = end->rec->ts;
	bool known = end->site < builder->sites.len &&
		     builder->sites.data[end->site].kind == WAFFLE_SITE_SPAN;
	struct model_span span = {
		.id = end->id,
		.start_ts = begin < ts ? begin : ts,
		.end_ts = ts,
		.site = known ? end->site : MODEL_NONE,
		.thread = thread,
		.end_thread = thread,
		.parent = MODEL_NONE,
		.flags = MODEL_SPAN_BEGUN_BEFORE | end->flags,
		.cpu = MODEL_CPU_NONE,
		.frame = MODEL_NONE,
	};

	span_add(model, &span);
}

/* The span that ended. MODEL_NONE: none did, or its begin is not in the capture. */
static uint32_t span_end(struct builder *builder, const struct span_end *end)
{
	struct model *model = builder->model;
	uint32_t found = span_find(model, end->id);
	struct model_span *span;
	uint32_t thread;

	if (!end->id || !end->rec->tid) {
		model->bad_records++;
		return MODEL_NONE;
	}
	if (found != MODEL_NONE && model_is_track(model, model->spans.data[found].thread)) {
		thread = model->spans.data[found].thread;
		tracks_touch(builder, thread, end->rec->ts);
	} else {
		thread = threads_running(builder, end->rec->tid, end->tgid, end->rec->ts);
	}
	if (found == MODEL_NONE) {
		span_begun_before(builder, end, thread);
		return MODEL_NONE;
	}
	span = &model->spans.data[found];
	if (!span_is_of(model, span, end->tgid)) {
		/* A forked child ends its copy of the span. That is no end of the original, so it
		 * counts only if we know nothing of the original but its end. */
		if (span->flags & MODEL_SPAN_BEGUN_BEFORE)
			span_begun_before(builder, end, thread);
		return MODEL_NONE;
	}
	if (span->end_ts != OPEN) {
		model->bad_records++; /* ended twice */
		return MODEL_NONE;
	}
	if (end->rec->ts < span->start_ts)
		model->bad_records++; /* kept, with length zero */
	span->end_ts = end->rec->ts < span->start_ts ? span->start_ts : end->rec->ts;
	span->end_thread = thread;
	span->flags |= end->flags;
	if (thread != span->thread)
		span->flags |= MODEL_SPAN_MOVED;
	return found;
}

/* Whether an end is that of an operation that is kept apart. */
static bool end_is_apart(struct builder *builder, const struct span_end *end)
{
	struct gpu_record_end record = {.id = end->id, .ts = end->rec->ts, .site = end->site};

	if (!end->id || !end->rec->tid || !gpu_records_end(builder->model->gpu_records, &record))
		return false;
	if (model_is_track(builder->model, record.thread))
		tracks_touch(builder, record.thread, end->rec->ts);
	else
		threads_running(builder, end->rec->tid, end->tgid, end->rec->ts);
	return true;
}

void spans_add_end(struct builder *builder, const struct waffle_rec_span_end *end)
{
	struct span_end ended = {&end->rec, end->span_id, end->tgid, end->site, 0};

	if (builder->model->gpu_records && end_is_apart(builder, &ended))
		return;
	span_end(builder, &ended);
}

/* Stores the values of a return until its begin comes, possibly late. They belong to the last keys
 * of the site, so without the values of the first keys they cannot be decoded. */
static void return_defer(struct builder *builder, const struct waffle_rec_return *end)
{
	uint32_t at = frames_add(builder->model, end + 1, end->frame_bytes, 0);

	if (at != MODEL_NONE)
		map_put(&builder->returned, end->span_id, at);
}

void spans_add_return(struct builder *builder, const struct waffle_rec_return *end)
{
	struct span_end ended = {&end->rec, end->span_id, end->tgid, end->site,
				 end->flags & WAFFLE_RETURN_LEFT ? MODEL_SPAN_LEFT : 0};
	struct model *model = builder->model;
	struct site_build *site;
	uint32_t index;
	unsigned words = (end->frame_bytes + 7u) / 8;

	/* If the site differed from the begin's, the values would get wrong names. */
	if (end->site >= builder->sites.len || !builder->sites.data[end->site].call) {
		model->bad_records++;
		return;
	}
	index = span_find(model, end->span_id);
	if (index != MODEL_NONE && model->spans.data[index].site != end->site) {
		model->bad_records++;
		return;
	}
	site = &builder->sites.data[end->site];
	index = span_end(builder, &ended);
	if (!words || !site->has_keys)
		return;
	if (words > site->return_words)
		site->return_words = words < RETURN_WORDS_MAX ? (uint8_t)words : RETURN_WORDS_MAX;
	if (index != MODEL_NONE) {
		struct model_span *span = &model->spans.data[index];

		span->frame = frames_append(model, span->frame, end + 1, end->frame_bytes);
		return;
	}
	index = span_find(model, end->span_id);
	if (index != MODEL_NONE && model->spans.data[index].flags & MODEL_SPAN_BEGUN_BEFORE)
		return_defer(builder, end);
}

/* A file of the flight recorder has the begins of spans that were open at its start. */
static void span_cut(const struct model *model, struct model_span *span)
{
	if (span->start_ts >= model->start_ts || span->end_ts < model->start_ts)
		return;
	span->start_ts = model->start_ts;
	span->flags |= MODEL_SPAN_BEGUN_BEFORE;
	span->flags &= ~MODEL_SPAN_MOVED;
}

static void spans_close(struct builder *builder)
{
	struct model *model = builder->model;

	for (size_t i = 0; i < model->spans.len; i++) {
		struct model_span *span = &model->spans.data[i];
		const struct model_recorded *recorded;

		span_cut(model, span);
		if (span->end_ts != OPEN)
			continue;
		recorded = captures_at(model, span->thread, span->start_ts);
		span->flags |= MODEL_SPAN_UNFINISHED;
		span->end_ts = threads_end_after(builder, span->thread, span->start_ts);
		if (recorded && span->end_ts > recorded->to_ts)
			span->end_ts = recorded->to_ts;
		if (span->end_ts > model->threads_end_ts)
			span->end_ts = model->threads_end_ts;
		if (span->end_ts < span->start_ts)
			span->end_ts = span->start_ts;
	}
}

/* Whether the thread of an unfinished span hangs in it: most of it is a wait that goes on when the
 * capture ends. */
static bool span_hangs(const struct model *model, const struct model_span *span)
{
	const struct model_open_wait *wait = model_open_wait_of(model, span->thread);

	return wait && wait->from_ts >= span->start_ts && wait->ts <= span->end_ts &&
	       wait->ts - wait->from_ts > (span->end_ts - span->start_ts) / 2;
}

static void spans_mark_laps(struct model *model)
{
	for (size_t i = 0; i < model->spans.len; i++) {
		struct model_span *span = &model->spans.data[i];

		if (span->flags & (MODEL_SPAN_BEGUN_BEFORE | MODEL_SPAN_UNFINISHED) &&
		    model_site(model, span->site)->laps && !span_hangs(model, span))
			span->flags |= MODEL_SPAN_PART_OF_LAP;
	}
}

static void contexts_order(struct model *model, const uint32_t *rank)
{
	struct model_context *ordered = memory_get(model->contexts.cap * sizeof(*ordered));

	for (size_t i = 0; i < model->contexts.len; i++)
		ordered[rank[i]] = model->contexts.data[i];
	free(model->contexts.data);
	model->contexts.data = ordered;
}

static void spans_order(struct model *model)
{
	uint32_t *rank = order_vec(&model->spans, start_ts);

	if (!rank)
		return;
	contexts_order(model, rank);
	id_index_renumber(&model->span_ids, model_span_array(model), rank);
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
}

static void events_order(struct model *model)
{
	uint32_t *rank = order_vec(&model->events, ts);

	if (!rank)
		return;
	for (size_t i = 0; i < model->links.len; i++)
		if (model->links.data[i].from_kind == MODEL_NODE_EVENT)
			model->links.data[i].from = rank[model->links.data[i].from];
	free(rank);
}

/* Resolves the parents that came after their children. */
static void parents_resolve(struct builder *builder)
{
	struct model *model = builder->model;

	for (size_t i = 0; i < builder->orphans.len; i++) {
		const struct orphan *orphan = &builder->orphans.data[i];

		model->spans.data[orphan->span].parent = span_find(model, orphan->parent_id);
	}
	vec_free(&builder->orphans);
	for (size_t i = 0; i < model->events.len; i++)
		if (model->events.data[i].parent == MODEL_NONE)
			model->events.data[i].parent =
				span_find(model, model->events.data[i].parent_id);
}

static void parents_check(struct model *model)
{
	/* A parent must have a smaller index than its child. That makes every walk along parents
	 * end, even in a corrupt file. */
	for (size_t i = 0; i < model->spans.len; i++)
		if (model->spans.data[i].parent >= i)
			model->spans.data[i].parent = MODEL_NONE;
}

static void mark_lost(struct model *model, const struct windows *losses, uint16_t of, uint16_t flag)
{
	for (size_t i = 0; i < model->spans.len; i++) {
		struct model_span *span = &model->spans.data[i];

		if ((!of || span->flags & of) &&
		    windows_touch(losses, span->start_ts, span->end_ts))
			span->flags |= flag;
	}
}

static void spans_mark_losses(struct model *model)
{
	struct windows all, own = {0};

	if (!model->losses.len)
		return;
	model_losses(&all, model, false);
	mark_lost(model, &all, 0, MODEL_SPAN_LOSS);
	windows_free(&all);
	for (size_t i = 0; i < model->losses.len; i++) {
		const struct model_loss *loss = &model->losses.data[i];

		if (loss->count && loss->source == WAFFLE_SOURCE_SPANS)
			windows_add(&own, loss->from_ts, loss->to_ts);
	}
	windows_merge(&own);
	mark_lost(model, &own, MODEL_SPAN_BEGUN_BEFORE | MODEL_SPAN_UNFINISHED,
		  MODEL_SPAN_MAY_BE_LOST);
	windows_free(&own);
}

void spans_finish(struct builder *builder)
{
	struct model *model = builder->model;

	spans_close(builder);
	spans_mark_laps(model);
	parents_resolve(builder);
	if (!builder->no_contexts)
		contexts_fill(model, model->spans.len);
	spans_order(model);
	events_order(model);
	parents_check(model);
	links_resolve(model);
	spans_mark_losses(model);
}
