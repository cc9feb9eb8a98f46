// SPDX-License-Identifier: Apache-2.0
/*
 * Applies a filter to a capture that is already recorded, with the same result as at record time.
 * It evaluates an event once. It evaluates a span at its begin, and again at its end if the result
 * depends on the duration. rate() comes last: it sees everything that passed so far, in the order
 * of the decisions.
 *
 * The expression of --where is evaluated in the same way, but it only marks spans.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/eval.h"
#include "filter/split.h"
#include "model/build.h"
#include "model/order.h"
#include "util/memory.h"
#include "util/search.h"

#define DEPTH_UNKNOWN UINT32_MAX

struct keeper {
	struct builder *builder;
	struct model *model;
	const struct filter_expr *filter;
	bool *spans, *events; /* what is kept */
	uint32_t *depths;     /* of spans; NULL: the filter does not use them */
	signed char *sites;   /* decision by site alone: 1 keep, -1 drop, 0 not computed */
	/* What passes apart from rate(), with the time of the decision. Spans come first, then
	 * events (at an index behind all spans). */
	VEC(struct order_item) passed;
	struct waffle_frame head;      /* of the span or event being evaluated */
	char track[WAFFLE_COMM_BYTES]; /* name of its track, if it is on one */
};

/* ---- names of threads ---- */

static int name_compare(const void *left, const void *right)
{
	const struct thread_name *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

/* The name of a thread at a time. Before the first known name, that name. NULL: none is known. */
static const char *name_at(const struct builder *builder, uint32_t thread, uint64_t ts)
{
	const struct thread_name *names = builder->names.data;
	/* The first entry after the wanted thread and time. */
	size_t at = lower_bound(builder->names.len, i,
				names[i].thread < thread ||
					(names[i].thread == thread && names[i].ts <= ts));

	if (at && names[at - 1].thread == thread)
		at--;
	else if (at == builder->names.len || names[at].thread != thread)
		return NULL;
	return strtab_get(builder->model->strings, names[at].comm);
}

/* ---- filter subjects ---- */

static void subject_parent(const struct keeper *keeper, struct filter_subject *subject,
			   uint32_t parent, uint64_t parent_id)
{
	const struct model *model = keeper->model;

	if (parent == MODEL_NONE) {
		subject->depth = parent_id ? -1 : 0;
		return;
	}
	if (model->spans.data[parent].site != MODEL_NONE)
		subject->parent_name = model_site(model, model->spans.data[parent].site)->name;
	subject->depth = -1;
	if (keeper->depths && keeper->depths[parent] != DEPTH_UNKNOWN)
		subject->depth = (int64_t)keeper->depths[parent] + 1;
}

/* A track's name, cut to what a thread can have: live filters compare that. */
static const char *track_comm(struct keeper *keeper, uint32_t thread)
{
	const struct model_thread *track = &keeper->model->threads.data[thread];

	snprintf(keeper->track, sizeof(keeper->track), "%s",
		 strtab_get(keeper->model->strings, track->track_name));
	return keeper->track;
}

static void subject_thread(struct keeper *keeper, struct filter_subject *subject, uint32_t thread,
			   uint64_t ts)
{
	subject->pid = model_pid_real(keeper->model, keeper->model->threads.data[thread].pid);
	subject->tid = model_pid_real(keeper->model, keeper->model->threads.data[thread].tid);
	if (model_is_track(keeper->model, thread))
		subject->comm = track_comm(keeper, thread);
	else if (keeper->builder->want_names)
		subject->comm = name_at(keeper->builder, thread, ts);
}

static struct filter_subject subject_span(struct keeper *keeper, const struct model_span *span)
{
	struct filter_subject subject = {
		.site = model_site(keeper->model, span->site),
		.values = model_values(keeper->model, span->site, span->frame),
		.head = &keeper->head,
		.cpu = span->cpu,
		.dur_ns = span->end_ts - span->start_ts,
	};
	const struct model_context *context = model_context_of(keeper->model, span);

	keeper->head = (struct waffle_frame){span->id, context->parent_id, context->trace_hi,
					     context->trace_lo};
	subject_thread(keeper, &subject, span->thread, span->start_ts);
	subject_parent(keeper, &subject, span->parent, context->parent_id);
	return subject;
}

static struct filter_subject subject_event(struct keeper *keeper, const struct model_event *event)
{
	struct filter_subject subject = {
		.site = model_site(keeper->model, event->site),
		.values = model_values(keeper->model, event->site, event->frame),
		.head = &keeper->head,
		.cpu = event->cpu,
	};

	keeper->head = (struct waffle_frame){event->id, event->parent_id, event->trace_hi,
					     event->trace_lo};
	subject_thread(keeper, &subject, event->thread, event->ts);
	subject_parent(keeper, &subject, event->parent, event->parent_id);
	return subject;
}

/* ---- decisions ---- */

/* Whether the site alone makes a span pass: without its begin, nothing else is known of it. */
static bool site_passes(struct keeper *keeper, uint32_t site)
{
	struct residual residual = {0};

	if (site >= keeper->builder->sites.len)
		return false;
	if (!keeper->sites[site]) {
		memory_require(
			residual_make(&residual, keeper->filter, model_site(keeper->model, site)));
		keeper->sites[site] =
			residual.nodes.data[residual.nodes.len - 1].type == FILTER_TRUE ? 1 : -1;
		residual_free(&residual);
	}
	return keeper->sites[site] > 0;
}

static void set_depth(struct keeper *keeper, uint32_t index, int64_t depth)
{
	const struct model_span *span = &keeper->model->spans.data[index];

	if (keeper->depths)
		keeper->depths[index] = depth < 0 || span->flags & MODEL_SPAN_BEGUN_BEFORE
						? DEPTH_UNKNOWN
						: (uint32_t)depth;
}

/* Whether a span passes apart from rate(); *ts is the time of the decision. */
static bool span_passes(struct keeper *keeper, uint32_t index, uint64_t *ts)
{
	const struct model_span *span = &keeper->model->spans.data[index];
	struct filter_subject subject = subject_span(keeper, span);
	enum filter_truth truth;

	set_depth(keeper, index, subject.depth);
	*ts = span->start_ts;
	if (span->flags & MODEL_SPAN_BEGUN_BEFORE)
		return site_passes(keeper, span->site);
	truth = filter_eval(keeper->filter, &subject);
	if (truth == FILTER_UNKNOWN && !(span->flags & (MODEL_SPAN_UNFINISHED | MODEL_SPAN_LEFT))) {
		*ts = span->end_ts;
		subject.ended = true;
		truth = filter_eval(keeper->filter, &subject);
	}
	return truth == FILTER_YES;
}

static void find_passed(struct keeper *keeper)
{
	struct model *model = keeper->model;
	struct order_item item;

	for (size_t i = 0; i < model->spans.len; i++) {
		item.index = (uint32_t)i;
		if (span_passes(keeper, (uint32_t)i, &item.ts))
			vec_add(&keeper->passed, item);
	}
	for (size_t i = 0; i < model->events.len; i++) {
		struct filter_subject subject = subject_event(keeper, &model->events.data[i]);

		item = (struct order_item){model->events.data[i].ts,
					   (uint32_t)(model->spans.len + i)};
		if (filter_eval(keeper->filter, &subject) == FILTER_YES)
			vec_add(&keeper->passed, item);
	}
}

/* Marks what passes the whole filter, including rate(). */
static void mark_passed(struct keeper *keeper)
{
	const struct filter_rate *rate = &keeper->filter->rate;
	struct filter_rate_state state = {0};

	if (rate->unit_ns)
		order_sort(keeper->passed.data, keeper->passed.len);
	for (size_t i = 0; i < keeper->passed.len; i++) {
		const struct order_item *item = &keeper->passed.data[i];

		if (rate->unit_ns && !filter_rate_take(rate, &state, item->ts))
			continue;
		if (item->index < keeper->model->spans.len)
			keeper->spans[item->index] = true;
		else
			keeper->events[item->index - keeper->model->spans.len] = true;
	}
}

/* A parent's index is less than its children's. */
static void mark_children(struct keeper *keeper)
{
	struct model *model = keeper->model;

	for (size_t i = 0; i < model->spans.len; i++)
		if (model->spans.data[i].parent != MODEL_NONE)
			keeper->spans[i] |= keeper->spans[model->spans.data[i].parent];
	for (size_t i = 0; i < model->events.len; i++)
		if (model->events.data[i].parent != MODEL_NONE)
			keeper->events[i] |= keeper->spans[model->events.data[i].parent];
}

/* ---- leaving out ---- */

/* Maps old indexes to new ones; MODEL_NONE: removed. The caller frees it. */
static uint32_t *ranks(const bool *kept, size_t count)
{
	uint32_t *rank = memory_get(count * sizeof(*rank));
	uint32_t next = 0;

	for (size_t i = 0; i < count; i++)
		rank[i] = kept[i] ? next++ : MODEL_NONE;
	return rank;
}

static void map_renumber(struct map *map, const uint32_t *rank)
{
	struct map kept = {0};

	for (size_t i = 0; i < map->cap; i++) {
		const struct map_slot *slot = &map->slots[i];

		if (slot->value != MAP_NONE && rank[slot->value] != MODEL_NONE)
			map_put(&kept, slot->key, rank[slot->value]);
	}
	map_free(map);
	*map = kept;
}

static uint32_t renumber(uint32_t index, const uint32_t *rank)
{
	return index == MODEL_NONE ? MODEL_NONE : rank[index];
}

static void compact_spans(struct model *model, const uint32_t *rank)
{
	size_t len = 0;

	for (size_t i = 0; i < model->spans.len; i++) {
		struct model_span span = model->spans.data[i];

		span.parent = renumber(span.parent, rank);
		if (rank[i] == MODEL_NONE)
			continue;
		model->contexts.data[len] = model->contexts.data[i];
		model->spans.data[len++] = span;
	}
	model->filtered.spans = model->spans.len - len;
	model->spans.len = model->contexts.len = len;
}

static void compact_events(struct model *model, const uint32_t *rank, const uint32_t *span_rank)
{
	size_t len = 0;

	for (size_t i = 0; i < model->events.len; i++) {
		struct model_event event = model->events.data[i];

		event.parent = renumber(event.parent, span_rank);
		if (rank[i] != MODEL_NONE)
			model->events.data[len++] = event;
	}
	model->filtered.events = model->events.len - len;
	model->events.len = len;
}

static void compact_links(struct model *model, const uint32_t *const rank[])
{
	size_t len = 0;

	for (size_t i = 0; i < model->links.len; i++) {
		struct model_link link = model->links.data[i];

		link.from = rank[link.from_kind][link.from];
		link.to = renumber(link.to, rank[link.to_kind]);
		if (link.from != MODEL_NONE)
			model->links.data[len++] = link;
	}
	model->links.len = len;
}

static void leave_out(struct keeper *keeper)
{
	struct model *model = keeper->model;
	uint32_t *const rank[] = {
		[MODEL_NODE_SPAN] = ranks(keeper->spans, model->spans.len),
		[MODEL_NODE_EVENT] = ranks(keeper->events, model->events.len),
	};

	map_renumber(&model->event_ids, rank[MODEL_NODE_EVENT]);
	compact_events(model, rank[MODEL_NODE_EVENT], rank[MODEL_NODE_SPAN]);
	compact_spans(model, rank[MODEL_NODE_SPAN]);
	id_index_renumber(&model->span_ids, model_span_array(model), rank[MODEL_NODE_SPAN]);
	compact_links(model, (const uint32_t *const *)rank);
	free(rank[MODEL_NODE_SPAN]);
	free(rank[MODEL_NODE_EVENT]);
}

/* ---- the whole ---- */

static void keeper_prepare(struct keeper *keeper)
{
	const struct model *model = keeper->model;

	/* Spans and events share one range of numbers. */
	memory_require(model->spans.len + model->events.len < MODEL_NONE);
	keeper->spans = memory_zeroed(model->spans.len + 1, sizeof(*keeper->spans));
	keeper->events = memory_zeroed(model->events.len, sizeof(*keeper->events));
	keeper->sites = memory_zeroed(keeper->builder->sites.len, sizeof(*keeper->sites));
	if (filter_uses(keeper->filter, FILTER_DEPTH))
		keeper->depths = memory_zeroed(model->spans.len, sizeof(*keeper->depths));
	if (keeper->builder->names.len)
		qsort(keeper->builder->names.data, keeper->builder->names.len,
		      sizeof(struct thread_name), name_compare);
}

static void keeper_free(struct keeper *keeper)
{
	free(keeper->spans);
	free(keeper->events);
	free(keeper->sites);
	free(keeper->depths);
	vec_free(&keeper->passed);
}

/* The text of the expression, which lives as long as the model. */
static const char *keeper_expression(const struct keeper *keeper)
{
	const char *source = filter_source(keeper->filter);

	return strtab_get(keeper->model->strings,
			  strtab_put(keeper->model->strings, source, strlen(source)));
}

void filter_apply(struct builder *builder)
{
	struct keeper keeper = {
		.builder = builder, .model = builder->model, .filter = builder->keep->filter};

	keeper_prepare(&keeper);
	keeper.model->filtered.expression = keeper_expression(&keeper);
	find_passed(&keeper);
	mark_passed(&keeper);
	if (builder->keep->keep_children)
		mark_children(&keeper);
	leave_out(&keeper);
	keeper_free(&keeper);
}

void filter_select(struct builder *builder)
{
	struct keeper keeper = {
		.builder = builder, .model = builder->model, .filter = builder->where};

	keeper_prepare(&keeper);
	keeper.model->selecting = keeper_expression(&keeper);
	find_passed(&keeper);
	mark_passed(&keeper);
	keeper.model->selected = keeper.spans;
	keeper.spans = NULL;
	keeper_free(&keeper);
}
