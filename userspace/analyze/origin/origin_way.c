// SPDX-License-Identifier: Apache-2.0
/* The way from the symptom to an end, as steps between nodes. */
#include <errno.h>
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"

struct way {
	struct origin *origin;
	const struct origin_walk *walk;
	struct origin_node at; /* where the way has come to */
};

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

/* What stands for a landing: of a call the span around it, or the span between the two that the
 * next step leaves. */
static struct origin_node shown_node(const struct way *way, const struct origin_landing *landing,
				     const struct origin_landing *next)
{
	const struct model *model = way->origin->model;
	uint32_t span;

	if (!landing->called)
		return node_of(landing);
	span = span_around(model, landing->index);
	if (next && next->anchor != MODEL_NONE && next->anchor > span)
		span = next->anchor;
	return span_node(model, span);
}

static bool step_add(struct way *way, struct origin_step step)
{
	step.from = way->at;
	way->at = step.to;
	return vec_push(&way->origin->steps, step);
}

/* The step that led to a landing, with the one to its anchor if that is elsewhere. */
static bool landing_steps(struct way *way, const struct origin_landing *landing,
			  const struct origin_landing *next)
{
	bool calls = landing->via == ORIGIN_VIA_COLLECTIVE || landing->via == ORIGIN_VIA_MESSAGE;
	struct origin_step step = {.to = shown_node(way, landing, next),
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
		inside.to = span_node(way->origin->model, landing->anchor);
		if (!is_same(&inside.to, &way->at) && !step_add(way, inside))
			return false;
	}
	/* A span of several ranks' calls, as when one process is many ranks. A step that is less
	 * than certain is shown, since it limits the grade of the end. */
	if (is_same(&step.to, &way->at) && step.grade == WHY_GRADE_CERTAIN)
		return true;
	return step_add(way, step);
}

static bool steps_add(struct way *way, uint32_t end)
{
	const struct origin_landing *landings = way->walk->landings.data;
	uint32_t count = landings[end].steps, at = end;
	uint32_t *path = calloc(count + (size_t)1, sizeof(*path));
	bool good = path;

	for (uint32_t i = count + 1; good && i--; at = landings[at].prev)
		path[i] = at;
	if (good)
		way->at = node_of(&landings[path[0]]);
	for (uint32_t i = 1; good && i <= count; i++)
		good = landing_steps(way, &landings[path[i]],
				     i < count ? &landings[path[i + 1]] : NULL);
	free(path);
	return good;
}

static uint8_t end_grade(const struct origin_landing *landing, uint8_t basis)
{
	if (basis == ORIGIN_ANY_RANK)
		return WHY_GRADE_UNKNOWN;
	return basis == ORIGIN_FLOW && landing->grade > WHY_GRADE_LIKELY ? WHY_GRADE_LIKELY
									 : landing->grade;
}

bool origin_way_add(struct origin *origin, const struct origin_walk *walk,
		    const struct origin_reached *reached)
{
	const struct origin_landing *landing = &walk->landings.data[reached->landing];
	struct way way = {.origin = origin, .walk = walk};
	struct origin_end end = {.step = origin->steps.len,
				 .basis = reached->basis,
				 .grade = end_grade(landing, reached->basis)};

	if (!steps_add(&way, reached->landing))
		return false;
	end.node = way.at;
	end.step_count = origin->steps.len - end.step;
	return vec_push(&origin->ends, end);
}
