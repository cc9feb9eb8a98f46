// SPDX-License-Identifier: Apache-2.0
/* Flows: arrows from cause to effect, for links and for the ways from symptoms to their origins. */
#include <stdlib.h>

#include "analyze/origin/origin_symptoms.h"
#include "export/perfetto/perfetto_internal.h"
#include "model/gpu/gpu_timeline.h"
#include "util/memory.h"

/* Number of symptoms, and of origins of each, whose ways become arrows. */
#define SYMPTOMS_MAX 256
#define ENDS_MAX 10

static uint64_t node_start(const struct perfetto *p, uint32_t node)
{
	const struct model *m = p->model;

	return node < m->spans.len ? m->spans.data[node].start_ts
				   : m->events.data[node - m->spans.len].ts;
}

static uint32_t node_of(const struct perfetto *p, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? index : flows_event_node(p, index);
}

static bool node_is_slice(const struct model *m, uint8_t kind, uint32_t index)
{
	if (kind == MODEL_NODE_SPAN)
		return index < m->spans.len;
	return index < m->events.len &&
	       model_site(m, m->events.data[index].site)->kind != WAFFLE_SITE_COUNTER;
}

/* ---- edges ---- */

static const struct flow_edge no_edge = {MODEL_NONE, MODEL_NONE};

/*
 * The edge of a link. Both ends must exist, and the cause must not begin after its effect, since
 * Perfetto would reverse such an arrow. (The order can differ between the clocks of two hosts, or
 * for a rank that waits for a later one.) Other links, and links to themselves, become annotations.
 */
static struct flow_edge link_edge(const struct perfetto *p, const struct model_link *link)
{
	struct flow_edge edge;

	if (!node_is_slice(p->model, link->from_kind, link->from) ||
	    !node_is_slice(p->model, link->to_kind, link->to))
		return no_edge;
	edge.effect = node_of(p, link->from_kind, link->from);
	edge.cause = node_of(p, link->to_kind, link->to);
	if (edge.cause == edge.effect || node_start(p, edge.cause) > node_start(p, edge.effect))
		return no_edge;
	return edge;
}

/* The node of a way after `count` of its steps; MODEL_NONE: it is not in the capture. */
static uint32_t way_node(const struct perfetto *p, const struct origin *origin,
			 const struct origin_way *way, size_t count)
{
	const struct origin_node *node = count ? &way->steps.data[count - 1].to : &origin->symptom;

	return node->index == MODEL_NONE ? MODEL_NONE : node_of(p, node->kind, node->index);
}

/*
 * Adds the edges of a way, except those of links, which are there. Where a step leads to something
 * that began later, as a span of another rank may have, its effect is the next node towards the
 * symptom that did not begin before it. No edge spans steps that are left out.
 */
static void way_add(struct perfetto *p, const struct origin *origin, const struct origin_way *way)
{
	for (size_t i = way->steps.len; i; i--) {
		uint32_t cause = way_node(p, origin, way, i), effect = MODEL_NONE;
		size_t at = i, first = way->left_out && i > way->head ? way->head + 1 : 0;

		if (cause == MODEL_NONE || way->steps.data[i - 1].via == ORIGIN_VIA_LINK)
			continue;
		while (at > first &&
		       (effect == MODEL_NONE || node_start(p, effect) < node_start(p, cause)))
			effect = way_node(p, origin, way, --at);
		if (effect == MODEL_NONE || effect == cause ||
		    node_start(p, effect) < node_start(p, cause))
			continue;
		vec_add(&p->flows.edges, (struct flow_edge){effect, cause});
	}
}

static int edge_compare(const void *left, const void *right)
{
	const struct flow_edge *a = left, *b = right;

	if (a->effect != b->effect)
		return a->effect < b->effect ? -1 : 1;
	return a->cause < b->cause ? -1 : a->cause > b->cause;
}

/* Removes equal edges from `first` on. */
static void edges_unite(struct flow_index *flows, size_t first)
{
	struct flow_edge *edges = flows->edges.data;
	size_t kept = first;

	if (flows->edges.len - first > 1)
		qsort(edges + first, flows->edges.len - first, sizeof(*edges), edge_compare);
	for (size_t i = first; i < flows->edges.len; i++)
		if (i == first || edge_compare(&edges[i], &edges[kept - 1]) != 0)
			edges[kept++] = edges[i];
	flows->edges.len = kept;
}

static void origins_add(struct perfetto *p)
{
	struct origin_symptoms *symptoms = origin_symptoms_new(p->model, true, SYMPTOMS_MAX);

	for (size_t i = 0; i < symptoms->origins.len; i++) {
		const struct origin *origin = symptoms->origins.data[i];

		for (size_t end = 0; end < origin->ends.len && end < ENDS_MAX; end++) {
			struct origin_way way;

			origin_way_find(&way, origin, &origin->ends.data[end]);
			way_add(p, origin, &way);
			origin_way_free(&way);
		}
	}
	origin_symptoms_free(symptoms);
}

/* Adds an arrow from each launch to its operations on a GPU. Of those that follow each other on a
 * stream, as the nodes of a graph do, only the first one gets it. */
static void launches_add(struct perfetto *p)
{
	const struct gpu_timeline *timeline = p->timeline;

	for (size_t i = 0; i < timeline->ops.len; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[i];
		const struct gpu_timeline_launch *launch;
		struct flow_edge edge = {.effect = op->span};

		if (op->launch == MODEL_NONE ||
		    (op->previous != MODEL_NONE &&
		     timeline->ops.data[op->previous].launch == op->launch))
			continue;
		launch = &timeline->launches.data[op->launch];
		edge.cause = launch->host == MODEL_NONE
				     ? flows_event_node(p, launch->event)
				     : node_of(p, launch->host_kind, launch->host);
		vec_add(&p->flows.edges, edge);
	}
}

/* Lists the edges of each node. The counts are stored two places ahead, so that filling the lists
 * leaves the right values in begin[]. */
static void edges_index(struct perfetto *p)
{
	size_t nodes = p->model->spans.len + p->model->events.len;
	struct flow_index *f = &p->flows;

	f->begin = memory_zeroed(nodes + 2, sizeof(*f->begin));
	f->list = memory_get(2 * f->edges.len * sizeof(*f->list));
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < f->edges.len; i++) {
			const struct flow_edge *edge = &f->edges.data[i];

			if (edge->cause == MODEL_NONE)
				continue;
			if (pass == 0) {
				f->begin[edge->effect + 2]++;
				f->begin[edge->cause + 2]++;
			} else {
				f->list[f->begin[edge->cause + 1]++] = (uint32_t)(2 * i);
				f->list[f->begin[edge->effect + 1]++] = (uint32_t)(2 * i + 1);
			}
		}
		for (size_t n = 2; pass == 0 && n < nodes + 2; n++)
			f->begin[n] += f->begin[n - 1];
	}
}

void flows_begin(struct perfetto *p)
{
	const struct model *m = p->model;

	for (size_t i = 0; i < m->links.len; i++)
		vec_add(&p->flows.edges, link_edge(p, &m->links.data[i]));
	origins_add(p);
	launches_add(p);
	edges_unite(&p->flows, m->links.len);
	if (p->flows.edges.len)
		edges_index(p);
}

void flows_end(struct perfetto *p)
{
	vec_free(&p->flows.edges);
	free(p->flows.begin);
	free(p->flows.list);
}

/*
 * Each edge has a flow id, which begins at the cause and ends at the effect. If both have the same
 * time, Perfetto may see either first, and it ignores an end before its start. Then neither is
 * marked as the end.
 */
void event_flows(struct perfetto *p, uint32_t node, uint64_t ts)
{
	if (!p->flows.begin)
		return;
	for (uint32_t i = p->flows.begin[node]; i < p->flows.begin[node + 1]; i++) {
		const struct flow_edge *edge = &p->flows.edges.data[p->flows.list[i] / 2];
		bool caused = p->flows.list[i] % 2;

		event_add_flow(&p->encoder, (uint64_t)p->flows.list[i] / 2 + 1,
			       caused && node_start(p, edge->cause) < ts);
	}
}
