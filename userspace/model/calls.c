// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the parents of calls. A call does not know its parent, so we take the innermost span that
 * is open on its thread when it begins. Not every span can be a parent. Macros may begin and end a
 * span anywhere (WAFFLE_BEGIN). A span that ends on another thread, or that overlaps others without
 * nesting, does not enclose what the thread does meanwhile. The same holds for two probes matched
 * by a key, unless both fire on one thread.
 */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "util/memory.h"

/* Limit of open spans to search. Spans begun before the capture have equal start times, and the
 * inner ones come first. */
#define SAME_BEGIN_MAX 64

struct parent_scope {
	uint64_t end_ts;
	uint32_t span;
};

/* Stack of the spans that are open on a thread, the innermost last. */
struct parent_scopes {
	VEC(struct parent_scope) list;
};

struct nest {
	struct model *model;
	struct parent_scopes *threads;
};

static bool is_call(const struct model *model, uint32_t site)
{
	return model_site(model, site)->call;
}

static bool is_keyed(const struct model *model, uint32_t site)
{
	return model_site(model, site)->keyed;
}

static struct parent_scope *innermost(struct parent_scopes *open)
{
	return open->list.len ? &open->list.data[open->list.len - 1] : NULL;
}

static void close_until(struct parent_scopes *open, uint64_t ts)
{
	while (open->list.len && innermost(open)->end_ts <= ts)
		open->list.len--;
}

/* When two spans overlap without nesting: which of them can still enclose the thread's work. */
enum verdict { KEEP_OLD, KEEP_NEW, KEEP_NONE };

static enum verdict overlap_verdict(const struct model *model, const struct model_span *old,
				    const struct model_span *new)
{
	bool old_call = is_call(model, old->site), new_call = is_call(model, new->site);
	bool old_keyed = is_keyed(model, old->site), new_keyed = is_keyed(model, new->site);

	if (old_keyed != new_keyed)
		return old_keyed ? KEEP_NEW : KEEP_OLD;
	/* A function's span always nests, so the other one is no scope. */
	if (old_call != new_call)
		return old_call ? KEEP_OLD : KEEP_NEW;
	if (old_call)
		return KEEP_NONE; /* from a pair of probes */
	/* A child that outlives its parent is no scope. If the older span were a scope, the new one
	 * would be its child; as it is not, the older one is no scope. */
	if (model_context_of(model, new)->parent_id == old->id)
		return KEEP_OLD;
	return new->site == old->site ? KEEP_NONE : KEEP_NEW;
}

static bool may_be_scope(const struct model *model, const struct model_span *span)
{
	const unsigned lost = MODEL_SPAN_UNFINISHED | MODEL_SPAN_LOSS;

	if (span->flags & MODEL_SPAN_MOVED)
		return false;
	if (span->flags & MODEL_SPAN_CUT && is_keyed(model, span->site))
		return false;
	return (span->flags & lost) != lost; /* its end record may have been dropped */
}

/* Removes open spans that the new one proves to be no scopes. Returns whether the new one may be a
 * scope. */
static bool settle_overlaps(struct nest *nest, struct parent_scopes *open,
			    const struct model_span *new, uint64_t end_ts)
{
	bool scope = true;

	while (scope && open->list.len && innermost(open)->end_ts < end_ts) {
		const struct model_span *old = &nest->model->spans.data[innermost(open)->span];
		enum verdict verdict;

		if (old->start_ts == new->start_ts)
			break; /* it lies inside the new span */
		verdict = overlap_verdict(nest->model, old, new);
		if (verdict != KEEP_OLD)
			open->list.len--;
		scope = verdict == KEEP_NEW;
	}
	return scope;
}

static void open_add(struct nest *nest, struct parent_scopes *open, struct parent_scope added)
{
	const struct model_span *spans = nest->model->spans.data;
	size_t at = open->list.len;

	vec_need(&open->list, 1);
	while (at && open->list.data[at - 1].end_ts < added.end_ts) {
		if (spans[open->list.data[at - 1].span].start_ts != spans[added.span].start_ts ||
		    open->list.len - at == SAME_BEGIN_MAX)
			return;
		at--;
	}
	memmove(&open->list.data[at + 1], &open->list.data[at],
		(open->list.len - at) * sizeof(added));
	open->list.data[at] = added;
	open->list.len++;
}

/* The innermost open span that does not lie inside the new one. */
static uint32_t parent_of(struct parent_scopes *open, uint64_t end_ts)
{
	size_t at = open->list.len;

	for (size_t tries = 0; at && tries < SAME_BEGIN_MAX; at--, tries++)
		if (open->list.data[at - 1].end_ts >= end_ts)
			return open->list.data[at - 1].span;
	return MODEL_NONE;
}

static void nest_span(struct nest *nest, uint32_t index)
{
	struct model *model = nest->model;
	struct model_span *span = &model->spans.data[index];
	struct model_context *context = &model->contexts.data[index];
	struct parent_scopes *open = &nest->threads[span->thread];
	uint64_t end_ts = span->end_ts;
	bool scope = may_be_scope(model, span);
	uint32_t parent;

	close_until(open, span->start_ts);
	/* An unfinished span ended no later than the one around it. */
	if (span->flags & (MODEL_SPAN_UNFINISHED | MODEL_SPAN_LEFT) && innermost(open) &&
	    innermost(open)->end_ts < end_ts)
		end_ts = innermost(open)->end_ts;
	scope = scope && end_ts != span->start_ts && settle_overlaps(nest, open, span, end_ts);
	if (is_call(model, span->site) && span->parent == MODEL_NONE && !context->parent_id &&
	    !(span->flags & MODEL_SPAN_BEGUN_BEFORE)) {
		parent = span->flags & MODEL_SPAN_MOVED ? parent_of(open, span->start_ts)
							: parent_of(open, end_ts);
		if (parent != MODEL_NONE) {
			span->parent = parent;
			*context = model->contexts.data[parent];
			context->parent_id = model->spans.data[parent].id;
		}
	}
	if (scope)
		open_add(nest, open, (struct parent_scope){end_ts, index});
}

static void nest_event(struct nest *nest, struct model_event *event)
{
	struct model *model = nest->model;
	struct parent_scopes *open = &nest->threads[event->thread];
	const struct model_span *parent;

	close_until(open, event->ts);
	if (!is_call(model, event->site) || event->parent != MODEL_NONE || event->parent_id ||
	    !innermost(open))
		return;
	event->parent = innermost(open)->span;
	parent = &model->spans.data[event->parent];
	event->parent_id = parent->id;
	event->trace_hi = model->contexts.data[event->parent].trace_hi;
	event->trace_lo = model->contexts.data[event->parent].trace_lo;
}

void calls_find_parents(struct model *model)
{
	struct nest nest = {
		.model = model,
		.threads = memory_zeroed(model->threads.len, sizeof(*nest.threads)),
	};
	size_t span = 0, event = 0;

	while (span < model->spans.len || event < model->events.len) {
		if (event == model->events.len ||
		    (span < model->spans.len &&
		     model->spans.data[span].start_ts <= model->events.data[event].ts))
			nest_span(&nest, (uint32_t)span++);
		else
			nest_event(&nest, &model->events.data[event++]);
	}
	for (size_t i = 0; i < model->threads.len; i++)
		vec_free(&nest.threads[i].list);
	free(nest.threads);
}
