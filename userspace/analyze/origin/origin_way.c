// SPDX-License-Identifier: Apache-2.0
/*
 * Ways from the symptom to the ends. The landings of a walk are a tree, since each knows the one
 * that it came from. So the ways share what they have in common, and a way is made of landings only
 * when somebody asks for it.
 */
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"
#include "util/memory.h"

struct way {
	const struct origin *origin;
	struct origin_way *made;
	struct origin_node at; /* where the way has come to */
};

/* ---- nodes ---- */

static struct origin_node node_of(const struct origin_landing *landing)
{
	return (struct origin_node){
		.id = landing->id, .index = landing->index, .kind = landing->kind};
}

static struct origin_node span_node(const struct model *model, uint32_t span)
{
	return (struct origin_node){
		.id = model->spans.data[span].id, .index = span, .kind = MODEL_NODE_SPAN};
}

static bool is_same(const struct origin_node *a, const struct origin_node *b)
{
	return a->kind == b->kind && a->index == b->index;
}

/* The span of the program around a call; the call itself if there is none. */
static uint32_t span_around(const struct model *model, uint32_t call)
{
	uint32_t span = call;

	for (unsigned depth = 0; depth < ORIGIN_DEPTH_MAX && span != MODEL_NONE; depth++) {
		if (!model_site(model, model->spans.data[span].site)->call)
			return span;
		if (model->spans.data[span].parent == MODEL_NONE ||
		    model->spans.data[model->spans.data[span].parent].thread !=
			    model->spans.data[call].thread)
			return call;
		span = model->spans.data[span].parent;
	}
	return call;
}

/* The node that people see for a landing. For a call, it is the span around it. If the next step
 * leaves a span that lies between the two, it is that one. */
static struct origin_node shown_node(const struct model *model,
				     const struct origin_landing *landing,
				     const struct origin_landing *next)
{
	uint32_t span;

	if (!landing->called)
		return node_of(landing);
	span = span_around(model, landing->index);
	if (next && next->anchor != MODEL_NONE && next->anchor > span)
		span = next->anchor;
	return span_node(model, span);
}

struct origin_node origin_end_node(const struct model *model, const struct origin_landing *landing)
{
	return shown_node(model, landing, NULL);
}

/* ---- steps ---- */

static void step_add(struct way *way, struct origin_step step)
{
	const struct origin *origin = way->origin;
	uint32_t known = map_get(&origin->known[step.to.kind], step.to.id);

	/* The numbers come later than the keys: see origin_find_records(). */
	if (known < origin->records.len)
		step.to.record = origin->records.data[known];
	step.from = way->at;
	way->at = step.to;
	vec_add(&way->made->steps, step);
}

/* Adds the step that led to a landing. If it left a span around the place where the way is, the
 * step to that span comes first. */
static void landing_steps(struct way *way, const struct origin_landing *landing,
			  const struct origin_landing *next)
{
	const struct model *model = way->origin->model;
	bool calls = landing->via == ORIGIN_VIA_COLLECTIVE || landing->via == ORIGIN_VIA_MESSAGE;
	struct origin_step step = {.to = shown_node(model, landing, next),
				   .collective = landing->collective,
				   .from_call = calls ? landing->from_call : MODEL_NONE,
				   .to_call = landing->to_call,
				   .via = landing->via,
				   .grade = landing->step_grade};
	struct origin_step inside = {.collective = MODEL_NONE,
				     .from_call = MODEL_NONE,
				     .to_call = MODEL_NONE,
				     .via = ORIGIN_VIA_INSIDE,
				     .grade = WHY_GRADE_CERTAIN};

	if (landing->anchor != MODEL_NONE) {
		inside.to = span_node(model, landing->anchor);
		if (!is_same(&inside.to, &way->at))
			step_add(way, inside);
	}
	/* Both ends may be one span, if it encloses the calls of several ranks. We show such a step
	 * only if it limits the grade of the end. */
	if (!is_same(&step.to, &way->at) || step.grade != WHY_GRADE_CERTAIN)
		step_add(way, step);
}

/* Adds the steps from a landing to a later one on the way to it. */
static void steps_add(struct way *way, uint32_t first, uint32_t last)
{
	const struct origin_landing *landings = way->origin->landings.data;
	uint32_t count = landings[last].steps - landings[first].steps, at = last;
	uint32_t *path = memory_get((count + (size_t)1) * sizeof(*path));

	for (uint32_t i = count + 1; i--; at = landings[at].prev)
		path[i] = at;
	way->at =
		shown_node(way->origin->model, &landings[first], count ? &landings[path[1]] : NULL);
	for (uint32_t i = 1; i <= count; i++)
		landing_steps(way, &landings[path[i]], i < count ? &landings[path[i + 1]] : NULL);
	free(path);
}

static uint32_t way_begin(const struct origin_landing *landings, uint32_t at)
{
	while (landings[at].prev != MODEL_NONE)
		at = landings[at].prev;
	return at;
}

void origin_way_find(struct origin_way *found, const struct origin *origin,
		     const struct origin_end *end)
{
	const struct origin_landing *landings = origin->landings.data;
	const struct origin_landing *last = &landings[end->landing];
	struct way way = {.origin = origin, .made = found};
	uint32_t at = end->landing;

	*found = (struct origin_way){0};
	if (last->steps <= 2 * ORIGIN_WAY_HALF) {
		steps_add(&way, way_begin(landings, at), at);
		found->head = found->steps.len;
		return;
	}
	steps_add(&way, way_begin(landings, last->head), last->head);
	found->head = found->steps.len;
	for (unsigned i = 0; i < ORIGIN_WAY_HALF; i++)
		at = landings[at].prev;
	steps_add(&way, at, end->landing);
	found->left_out = last->steps - 2 * ORIGIN_WAY_HALF;
}

void origin_way_free(struct origin_way *way)
{
	vec_free(&way->steps);
}
