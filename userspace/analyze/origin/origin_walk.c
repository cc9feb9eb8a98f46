// SPDX-License-Identifier: Apache-2.0
/*
 * The walk. It goes from landing to landing, the surest first, and at equal grades the fewest steps
 * first. From each landing it climbs through the spans around it:
 *
 *	landing ── a link of it, or of a span around it ──> what the program declared
 *	   │
 *	   ├───── data that arrived in a span around it,
 *	   │      or earlier on the thread                ──> the senders' calls
 *	   │
 *	   └───── a parent on another thread             ──> that parent
 *
 * Only data that arrived in the innermost of these spans can be certain. Older data may have stayed
 * in memory, so it is likely.
 *
 * Each place is visited once for a time and grade, so cycles end, and so does a walk of many ways
 * to one place: see struct origin_mark.
 */
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"
#include "util/memory.h"

/* ---- links ---- */

/* Whether a link counts: its cause is another node, and did not begin after the symptom. */
static bool link_counts(const struct origin_walk *walk, const struct model_link *link)
{
	const struct model *model = walk->index->model;
	struct model_node node;

	if (link->to_kind == link->from_kind && link->to == link->from)
		return false;
	return !model_node_find(model, link->to_kind, link->to, &node) ||
	       !origin_is_after(model, node.thread, node.ts, walk->symptom_thread,
				walk->symptom_ts);
}

/* Finds the links that the program declared for a node; returns their number. A model may have
 * links of calls as well. These say what the calls did, and the walk finds that out by itself. */
static size_t links_of(const struct model *model, uint8_t kind, uint32_t index, size_t *first)
{
	uint32_t site = kind == MODEL_NODE_SPAN ? model->spans.data[index].site
						: model->events.data[index].site;

	if (!model->links.len || model_site(model, site)->call)
		return 0;
	return model_links_from(model, kind, index, first);
}

/* Moves the time of a landing back to another moment, unless that is known to be later. */
static void ts_limit(const struct model *model, struct origin_landing *landing, uint32_t thread,
		     uint64_t ts)
{
	if (origin_is_after(model, thread, ts, landing->ts_thread, landing->ts))
		return;
	landing->ts = ts;
	landing->ts_thread = thread;
}

static void link_follow(struct origin_climb *climb, const struct model_link *link)
{
	struct origin_walk *walk = climb->walk;
	const struct model *model = walk->index->model;
	struct origin_landing to = origin_landing_from(climb, ORIGIN_VIA_LINK, WHY_GRADE_CERTAIN);

	to.kind = link->to_kind;
	to.index = link->to;
	to.id = link->to_id;
	to.mode = to.kind == MODEL_NODE_SPAN ? ORIGIN_MODE_SELF : ORIGIN_MODE_LINKS;
	if (to.kind == MODEL_NODE_EVENT && to.index != MODEL_NONE)
		ts_limit(model, &to, model->events.data[to.index].thread,
			 model->events.data[to.index].ts);
	origin_landing_push(walk, to);
}

static void links_follow(struct origin_climb *climb)
{
	struct origin_walk *walk = climb->walk;
	const struct model *model = walk->index->model;
	size_t first = 0, count = links_of(model, climb->kind, climb->index, &first);
	bool fresh;

	if (!count)
		return;
	/* A climb reaches an event only at its landing, which is visited once anyway. */
	fresh = climb->kind == MODEL_NODE_EVENT ||
		origin_mark_raise(walk, origin_place_key(ORIGIN_PLACE_LINKS, climb->index),
				  climb->from.grade, climb->from.ts) < climb->from.ts;
	for (size_t i = first; i < first + count; i++) {
		if (!link_counts(walk, &model->links.data[i]))
			continue;
		climb->continues = true;
		if (fresh)
			link_follow(climb, &model->links.data[i]);
	}
}

/* ---- climbing ---- */

static bool is_elsewhere(const struct model *model, uint8_t kind, uint32_t index, uint32_t parent)
{
	return model->spans.data[parent].thread != origin_node_thread(model, kind, index);
}

static uint32_t node_pid(const struct model *model, uint8_t kind, uint32_t index)
{
	return model->threads.data[origin_node_thread(model, kind, index)].pid;
}

static void context_follow(struct origin_climb *climb, uint32_t parent)
{
	const struct model *model = climb->walk->index->model;
	struct origin_landing to =
		origin_landing_from(climb, ORIGIN_VIA_CONTEXT, WHY_GRADE_CERTAIN);

	to.index = parent;
	ts_limit(model, &to, origin_node_thread(model, climb->kind, climb->index),
		 origin_node_ts(model, climb->kind, climb->index));
	to.mode = climb->from.mode == ORIGIN_MODE_ALL ? ORIGIN_MODE_ALL : ORIGIN_MODE_LINKS;
	to.flowed = true;
	to.from_call = climb->kind == MODEL_NODE_SPAN ? climb->index : MODEL_NONE;
	climb->continues = true;
	origin_landing_push(climb->walk, to);
}

/* Follows data that arrived in the span that the climb has reached. */
static void path_at_follow(struct origin_climb *climb)
{
	bool own = climb->kind == climb->from.kind && climb->index == climb->from.index;

	if (climb->kind != MODEL_NODE_SPAN || !climb->receives)
		return;
	if (own && climb->from.called)
		return; /* what a call received does not flow into what it sent */
	if (own && (climb->from.prev == MODEL_NONE || climb->from.mode == ORIGIN_MODE_SELF))
		climb->nearest &= !origin_self_follow(climb);
	else
		climb->nearest &= !origin_span_follow(climb);
}

static void landing_climb(struct origin_walk *walk, uint32_t at)
{
	const struct model *model = walk->index->model;
	struct origin_climb climb = {.walk = walk, .from = walk->landings.data[at], .at = at};
	bool moved = false, other_process = false;

	climb.kind = climb.from.kind;
	climb.index = climb.from.index;
	climb.receives = climb.from.mode != ORIGIN_MODE_LINKS;
	climb.nearest = true;
	for (unsigned depth = 0; depth < ORIGIN_DEPTH_MAX && !moved; depth++) {
		uint32_t parent = origin_node_parent(model, climb.kind, climb.index);

		links_follow(&climb);
		path_at_follow(&climb);
		climb.receives &= climb.from.mode != ORIGIN_MODE_SELF;
		if (parent == MODEL_NONE)
			break;
		moved = is_elsewhere(model, climb.kind, climb.index, parent);
		if (moved)
			context_follow(&climb, parent);
		other_process = node_pid(model, climb.kind, climb.index) !=
				node_pid(model, MODEL_NODE_SPAN, parent);
		climb.kind = MODEL_NODE_SPAN;
		climb.index = parent;
	}
	/* Within a process, a context says where the thread's work came from, so the search goes on
	 * there. A context from another process does not say what this thread had received. */
	if (climb.receives && (!moved || other_process))
		origin_thread_follow(&climb);
	if (walk->directed && !climb.continues && climb.from.flowed &&
	    climb.from.mode == ORIGIN_MODE_ALL)
		origin_end_add(walk, at, ORIGIN_FLOW);
}

/* ---- ends ---- */

/* Whether a node, or any span around it on any thread, has a link that counts. */
static bool has_links(const struct origin_walk *walk, uint8_t kind, uint32_t index)
{
	const struct model *model = walk->index->model;

	for (unsigned depth = 0; depth < ORIGIN_DEPTH_MAX && index != MODEL_NONE; depth++) {
		size_t first = 0, count = links_of(model, kind, index, &first);

		for (size_t i = first; i < first + count; i++)
			if (link_counts(walk, &model->links.data[i]))
				return true;
		index = origin_node_parent(model, kind, index);
		kind = MODEL_NODE_SPAN;
	}
	return false;
}

/* Whether data arrived during a span or by a call that began during it, or the span stands for a
 * collective itself. */
static bool has_arrivals(const struct origin_walk *walk, const struct origin_landing *landing)
{
	const struct origin_index *index = walk->index;
	const struct model_span *span = &index->model->spans.data[landing->index];
	uint32_t pid = index->model->threads.data[span->thread].pid;
	uint64_t to_ts = origin_end_before(index->model, landing, span);
	size_t first, end;

	if (origin_is_common(index, landing->index) ||
	    origin_arrivals_find(&index->by_process, pid, span->start_ts, to_ts, &first, &end))
		return true;
	origin_arrivals_find(&index->by_call, pid, span->start_ts, to_ts, &first, &end);
	for (; first < end; first++)
		if (origin_arrived_before(landing, &index->by_call.list.data[first]))
			return true;
	return false;
}

static enum origin_place received_place(uint8_t grade)
{
	return grade == WHY_GRADE_CERTAIN ? ORIGIN_PLACE_RECEIVED_CERTAIN
					  : ORIGIN_PLACE_RECEIVED_LIKELY;
}

/* Whether the node that a link led to is an origin: no link and no data leads on from it. */
static bool is_declared_end(struct origin_walk *walk, const struct origin_landing *landing)
{
	if (landing->index == MODEL_NONE)
		return true;
	if (landing->kind == MODEL_NODE_SPAN && has_arrivals(walk, landing)) {
		origin_place_enter(walk, received_place(landing->grade), landing->index);
		return false;
	}
	return !has_links(walk, landing->kind, landing->index);
}

/* Whether a later landing on an end, of its grade or a better one, found that it had received data.
 * Then the data leads on from it. */
static bool end_has_received(const struct origin_walk *walk, const struct origin_landing *end)
{
	if (end->kind != MODEL_NODE_SPAN || end->index == MODEL_NONE)
		return false;
	for (unsigned grade = end->grade; grade <= WHY_GRADE_CERTAIN; grade++)
		if (map_get(&walk->seen, origin_place_key(received_place(grade), end->index)) !=
		    MAP_NONE)
			return true;
	return false;
}

static void received_ends_drop(struct origin_walk *walk)
{
	size_t count = 0;

	for (size_t i = 0; i < walk->ends.len; i++) {
		struct origin_reached end = walk->ends.data[i];

		if (end.basis != ORIGIN_DECLARED ||
		    !end_has_received(walk, &walk->landings.data[end.landing]))
			walk->ends.data[count++] = end;
	}
	walk->ends.len = count;
}

/* ---- landings ---- */

/* The place of a landing that a step led to. */
static enum origin_place landing_place(const struct origin_landing *landing)
{
	bool links = landing->mode == ORIGIN_MODE_LINKS;

	if (landing->via == ORIGIN_VIA_LINK)
		return landing->kind == MODEL_NODE_SPAN ? ORIGIN_PLACE_LINKED_SPAN
							: ORIGIN_PLACE_LINKED_EVENT;
	if (landing->called)
		return links ? ORIGIN_PLACE_RECEIVER : ORIGIN_PLACE_SENDER;
	if (landing->from_call != MODEL_NONE)
		return links ? ORIGIN_PLACE_PARENT_LINKS_OF_SPAN : ORIGIN_PLACE_PARENT_OF_SPAN;
	return links ? ORIGIN_PLACE_PARENT_LINKS_OF_EVENT : ORIGIN_PLACE_PARENT_OF_EVENT;
}

/* Whether a landing's place was visited before, at its time or a later one. A context is another
 * place for each child, since each child has a way of its own. */
static bool landing_is_known(struct origin_walk *walk, const struct origin_landing *landing)
{
	uint32_t index = landing->index;

	if (landing->prev == MODEL_NONE || landing->index == MODEL_NONE)
		return false;
	if (landing->via == ORIGIN_VIA_CONTEXT)
		index = landing->from_call != MODEL_NONE ? landing->from_call
							 : walk->landings.data[landing->prev].index;
	return origin_mark_raise(walk, origin_place_key(landing_place(landing), index),
				 landing->grade, landing->ts) >= landing->ts;
}

static void landing_visit(struct origin_walk *walk, uint32_t at)
{
	const struct origin_landing *landing = &walk->landings.data[at];

	if (landing_is_known(walk, landing))
		return;
	if (landing->via == ORIGIN_VIA_LINK && is_declared_end(walk, landing)) {
		if (!walk->directed)
			origin_end_add(walk, at, ORIGIN_DECLARED);
		return;
	}
	landing_climb(walk, at);
}

static void walk_start(struct origin_walk *walk, uint8_t kind, uint32_t node)
{
	const struct model *model = walk->index->model;
	struct origin_landing start = {
		.kind = kind,
		.index = node,
		.prev = MODEL_NONE,
		.anchor = MODEL_NONE,
		.collective = MODEL_NONE,
		.from_call = MODEL_NONE,
		.to_call = MODEL_NONE,
		.grade = WHY_GRADE_CERTAIN,
		.step_grade = WHY_GRADE_CERTAIN,
		.via = ORIGIN_VIA_COUNT,
		.mode = ORIGIN_MODE_ALL,
	};

	start.ts = kind == MODEL_NODE_SPAN ? model->spans.data[node].end_ts
					   : model->events.data[node].ts;
	start.ts_thread = origin_node_thread(model, kind, node);
	walk->symptom_ts = start.ts;
	walk->symptom_thread = start.ts_thread;
	origin_landing_push(walk, start);
}

void origin_walk_run(struct origin_walk *walk, const struct origin_index *index, bool directed,
		     uint8_t kind, uint32_t node)
{
	*walk = (struct origin_walk){
		.index = index, .directed = directed, .incomplete = MODEL_NONE};
	walk->shared = memory_zeroed(model_collective_count(index->comm), 1);
	walk_start(walk, kind, node);
	for (;;) {
		unsigned row = walk->next[0] == walk->queue[0].len;

		if (walk->next[row] == walk->queue[row].len)
			break;
		landing_visit(walk, walk->queue[row].data[walk->next[row]++]);
	}
	received_ends_drop(walk);
}

void origin_walk_free(struct origin_walk *walk)
{
	vec_free(&walk->landings);
	vec_free(&walk->ends);
	vec_free(&walk->queue[0]);
	vec_free(&walk->queue[1]);
	vec_free(&walk->mark_list);
	map_free(&walk->seen);
	map_free(&walk->marks);
	free(walk->shared);
}
