// SPDX-License-Identifier: Apache-2.0
/*
 * The walk. It goes from landing to landing, the surest first, and at equal grades the fewest steps
 * first. From each landing it climbs through the spans around it:
 *
 *	landing ── a link of it, or of a span around it ──> what the program declared
 *	   │
 *	   ├───── data that arrived in the innermost span
 *	   │      around it that received any             ──> the senders' calls
 *	   │
 *	   └───── a parent on another thread             ──> that parent
 *
 * Each place is visited once, so cycles end. A place remembers up to which time its arrivals were
 * followed, so all visits of a place together follow each arrival once.
 */
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"

/* Kinds of places, for the keys of walk.seen and walk.marks. */
enum origin_place {
	PLACE_LINKED_SPAN,
	PLACE_LINKED_EVENT,
	PLACE_SENDER,
	PLACE_RECEIVER,
	PLACE_PARENT_OF_SPAN,
	PLACE_PARENT_OF_EVENT,
	PLACE_PARENT_LINKS_OF_SPAN,
	PLACE_PARENT_LINKS_OF_EVENT,
	PLACE_ANY_RANK,
	PLACE_LINKS_CERTAIN,
	PLACE_LINKS_LIKELY,
	PLACE_ARRIVALS,
	PLACE_ARRIVALS_SELF,
	PLACE_CALLS_SELF,
	PLACE_THREAD,
	PLACE_PROCESS,
};

/* A landing, and the span around it that the climb has reached. */
struct climb {
	struct origin_walk *walk;
	struct origin_landing from; /* a copy: the landings may move */
	uint32_t at;                /* its index */
	uint32_t index;             /* of the node that was reached */
	uint8_t kind;
	bool open;      /* no span so far has received data */
	bool continues; /* something leads on */
};

static uint64_t place_key(enum origin_place place, uint32_t index)
{
	return (uint64_t)place << 32 | index;
}

/* Whether it is the first visit. */
static bool place_enter(struct origin_walk *walk, enum origin_place place, uint32_t index)
{
	uint64_t key = place_key(place, index);

	if (map_get(&walk->seen, key) != MAP_NONE)
		return false;
	walk->failed |= !map_set(&walk->seen, key, 0);
	return !walk->failed;
}

/* Raises the time up to which the arrivals of a place were followed at a grade or a better one.
 * Returns the previous time. */
static uint64_t mark_raise(struct origin_walk *walk, uint64_t key, uint8_t grade, uint64_t ts)
{
	unsigned row = grade != WHY_GRADE_CERTAIN;
	uint32_t at = map_get(&walk->marks, key);
	struct origin_mark *mark;
	uint64_t previous;

	if (at == MAP_NONE) {
		at = (uint32_t)walk->mark_list.len;
		if (!vec_push(&walk->mark_list, (struct origin_mark){{0, 0}}) ||
		    !map_set(&walk->marks, key, at)) {
			walk->failed = true;
			return UINT64_MAX;
		}
	}
	mark = &walk->mark_list.data[at];
	previous = mark->ts[0];
	if (row && mark->ts[1] > previous)
		previous = mark->ts[1];
	if (mark->ts[row] < ts)
		mark->ts[row] = ts;
	return previous;
}

static uint64_t node_ts(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].start_ts
				       : model->events.data[index].ts;
}

static uint32_t node_thread(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].thread
				       : model->events.data[index].thread;
}

static uint32_t node_parent(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].parent
				       : model->events.data[index].parent;
}

static uint64_t node_id(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].id : model->events.data[index].id;
}

static uint8_t weaker(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* ---- landings ---- */

/* A landing one step from where the climb is. The caller fills in the node. */
static struct origin_landing landing_from(const struct climb *climb, enum origin_via via,
					  uint8_t step_grade)
{
	bool own = climb->kind == climb->from.kind && climb->index == climb->from.index;

	return (struct origin_landing){
		.kind = MODEL_NODE_SPAN,
		.prev = climb->at,
		.anchor = own ? MODEL_NONE : climb->index,
		.collective = MODEL_NONE,
		.from_call = MODEL_NONE,
		.to_call = MODEL_NONE,
		.steps = climb->from.steps + 1,
		.via = (uint8_t)via,
		.grade = weaker(climb->from.grade, step_grade),
		.step_grade = step_grade,
		.flowed = climb->from.flowed,
	};
}

/* Returns the landing's index, or MODEL_NONE if out of memory. */
static uint32_t landing_add(struct origin_walk *walk, struct origin_landing landing)
{
	uint32_t at = (uint32_t)walk->landings.len;

	if (landing.index != MODEL_NONE)
		landing.id = node_id(walk->index->model, landing.kind, landing.index);
	walk->failed |= at == MODEL_NONE || !vec_push(&walk->landings, landing);
	return walk->failed ? MODEL_NONE : at;
}

static void landing_push(struct origin_walk *walk, struct origin_landing landing)
{
	uint32_t at = landing_add(walk, landing);

	if (at != MODEL_NONE)
		walk->failed |= !vec_push(&walk->queue[landing.grade != WHY_GRADE_CERTAIN], at);
}

static void end_add(struct origin_walk *walk, uint32_t landing, enum origin_basis basis)
{
	walk->failed |= !vec_push(&walk->ends, (struct origin_reached){landing, (uint8_t)basis});
}

/* ---- links ---- */

/* Whether a link counts: the program declared it, and its cause did not begin after the symptom.
 * Links of calls follow from what the calls do. */
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

/* The links of a node; returns their number. */
static size_t links_of(const struct model *model, uint8_t kind, uint32_t index, size_t *first)
{
	uint32_t site = kind == MODEL_NODE_SPAN ? model->spans.data[index].site
						: model->events.data[index].site;

	if (!model->links.len || model_site(model, site)->call)
		return 0;
	return model_links_from(model, kind, index, first);
}

static void links_follow(struct climb *climb)
{
	struct origin_walk *walk = climb->walk;
	const struct model *model = walk->index->model;
	bool certain = climb->from.grade == WHY_GRADE_CERTAIN, fresh;
	size_t first = 0, count = links_of(model, climb->kind, climb->index, &first);

	if (!count)
		return;
	/* The events that are reached are landings, and each is visited once. */
	fresh = climb->kind == MODEL_NODE_EVENT ||
		place_enter(walk, certain ? PLACE_LINKS_CERTAIN : PLACE_LINKS_LIKELY, climb->index);
	for (size_t i = first; i < first + count; i++) {
		const struct model_link *link = &model->links.data[i];
		struct origin_landing to = landing_from(climb, ORIGIN_VIA_LINK, WHY_GRADE_CERTAIN);

		if (!link_counts(walk, link))
			continue;
		climb->continues = true;
		to.kind = link->to_kind;
		to.index = link->to;
		to.id = link->to_id;
		to.mode = to.kind == MODEL_NODE_SPAN ? ORIGIN_MODE_SELF : ORIGIN_MODE_LINKS;
		if (fresh)
			landing_push(walk, to);
	}
}

/* ---- arrivals ---- */

static const struct model_collective *collective_of(const struct climb *climb,
						    const struct origin_arrival *arrival)
{
	return model_collective_at(climb->walk->index->comm, arrival->collective);
}

static bool span_is_in(const struct model *model, uint32_t span, uint32_t within)
{
	return span != MODEL_NONE && (span == within || model->spans.data[span].parent == within) &&
	       model->spans.data[span].thread == model->spans.data[within].thread;
}

/* Whether no span that has closed since lies between the call and the span `within`. */
static bool call_is_in(const struct model *model, const struct model_rank_call *call,
		       uint32_t within)
{
	return within != MODEL_NONE && (span_is_in(model, call->span, within) ||
					span_is_in(model, call->end_span, within) ||
					span_is_in(model, call->group_end, within));
}

static uint8_t arrival_grade(const struct climb *climb, const struct origin_arrival *arrival,
			     uint32_t within)
{
	const struct model_collective *collective;

	if (arrival->collective == MODEL_NONE || !arrival->exact)
		return WHY_GRADE_LIKELY;
	collective = collective_of(climb, arrival);
	if (collective->flow == FLOW_UNKNOWN || collective->alignment == COLLECTIVE_BY_ORDER)
		return WHY_GRADE_LIKELY;
	return call_is_in(climb->walk->index->model, &collective->calls[arrival->call], within)
		       ? WHY_GRADE_CERTAIN
		       : WHY_GRADE_LIKELY;
}

/* A landing on a call of the collective of an arrival. */
static struct origin_landing call_landing(const struct climb *climb,
					  const struct origin_arrival *arrival, uint32_t call,
					  uint8_t grade)
{
	const struct model_collective *collective = collective_of(climb, arrival);
	bool message = collective->flow == FLOW_PAIR;
	struct origin_landing to =
		landing_from(climb, message ? ORIGIN_VIA_MESSAGE : ORIGIN_VIA_COLLECTIVE, grade);

	to.collective = arrival->collective;
	to.from_call = collective->calls[arrival->call].span;
	to.to_call = to.index = collective->calls[call].span;
	to.ts = collective->calls[call].arrival_ts;
	to.called = true;
	to.flowed |= arrival->has_one_sender;
	return to;
}

static bool gives(const struct model_collective *collective, uint32_t from, uint32_t to)
{
	const struct model_rank_call *calls = collective->calls;

	switch (collective->flow) {
	case FLOW_PAIR:
		return calls[from].rank == collective->from && from != to;
	case FLOW_FROM_ROOT:
		return calls[from].rank == collective->root;
	case FLOW_PREFIX:
		return calls[from].rank <= calls[to].rank;
	default:
		return true;
	}
}

/* Whether a rank called the collective after the symptom, so that its data can't be in it. */
static bool call_is_late(const struct origin_walk *walk, const struct model_collective *collective,
			 uint32_t call)
{
	const struct model_rank_call *from = &collective->calls[call];

	return collective->comparable &&
	       origin_is_after(walk->index->model, from->thread, from->arrival_ts,
			       walk->symptom_thread, walk->symptom_ts);
}

/* Whether all senders of a collective were followed already, by another rank's arrival. */
static bool collective_is_done(struct origin_walk *walk, const struct origin_arrival *arrival,
			       uint8_t flow, uint8_t grade)
{
	if (flow != FLOW_ALL && flow != FLOW_UNKNOWN)
		return false;
	if (walk->shared[arrival->collective] > grade)
		return true;
	walk->shared[arrival->collective] = (uint8_t)(grade + 1);
	return false;
}

static void senders_follow(struct climb *climb, const struct origin_arrival *arrival,
			   uint32_t within)
{
	struct origin_walk *walk = climb->walk;
	const struct model_collective *collective = collective_of(climb, arrival);
	uint8_t grade = arrival_grade(climb, arrival, within);
	struct origin_landing own = call_landing(climb, arrival, arrival->call, grade);

	if (collective_is_done(walk, arrival, collective->flow, own.grade))
		return;
	/* The spans around the receiving call may have closed since: their links count. */
	own.mode = ORIGIN_MODE_LINKS;
	if (arrival->has_one_sender)
		landing_push(walk, own);
	for (uint32_t call = 0; call < collective->count; call++)
		if (gives(collective, call, arrival->call) && !call_is_late(walk, collective, call))
			landing_push(walk, call_landing(climb, arrival, call, grade));
}

/* Landings on a span of a common name and on those of other ranks, or all of them as ends. */
static void common_follow(struct climb *climb, uint32_t span, bool as_ends)
{
	struct origin_walk *walk = climb->walk;
	const struct model *model = walk->index->model;
	origin_spans found = {0};

	walk->failed |= !vec_push(&found, span) || !origin_common_find(walk->index, span, &found);
	for (size_t i = 0; !walk->failed && i < found.len; i++) {
		const struct model_span *to = &model->spans.data[found.data[i]];
		struct origin_landing landing =
			landing_from(climb, ORIGIN_VIA_COLLECTIVE, WHY_GRADE_LIKELY);

		landing.index = found.data[i];
		landing.from_call = span;
		landing.to_call = landing.index;
		landing.ts = to->start_ts;
		landing.called = true;
		if (origin_is_after(model, to->thread, to->start_ts, walk->symptom_thread,
				    walk->symptom_ts))
			continue;
		if (!as_ends)
			landing_push(walk, landing);
		else if (place_enter(walk, PLACE_ANY_RANK, landing.index))
			end_add(walk, landing_add(walk, landing), ORIGIN_ANY_RANK);
	}
	vec_free(&found);
}

/* The senders of data with many senders, as ends. */
static void any_rank_add(struct climb *climb, const struct origin_arrival *arrival, uint32_t within)
{
	struct origin_walk *walk = climb->walk;
	const struct model_collective *collective;
	uint8_t grade = arrival_grade(climb, arrival, within);

	if (arrival->collective == MODEL_NONE) {
		common_follow(climb, arrival->call, true);
		return;
	}
	collective = collective_of(climb, arrival);
	for (uint32_t call = 0; call < collective->count && !walk->failed; call++)
		if (gives(collective, call, arrival->call) &&
		    !call_is_late(walk, collective, call) &&
		    place_enter(walk, PLACE_ANY_RANK, collective->calls[call].span))
			end_add(walk, landing_add(walk, call_landing(climb, arrival, call, grade)),
				ORIGIN_ANY_RANK);
}

/* Arrivals of an owner in [from_ts, to_ts]. */
struct arrivals_wanted {
	const struct origin_arrivals *list;
	uint64_t from_ts, to_ts, place;
	uint32_t owner;
	uint32_t within; /* the span that received them; MODEL_NONE: none did */
};

/* Whether an owner has data of one sender in [first, end) of a list. The last arrival there with
 * many senders becomes an end. */
static bool directed_has(struct climb *climb, const struct arrivals_wanted *wanted, size_t first,
			 size_t end)
{
	const struct origin_arrival *list = wanted->list->list.data;
	const struct origin_arrival *last = &list[end - 1];

	if (last->many != MODEL_NONE && last->many >= first)
		any_rank_add(climb, &list[last->many], wanted->within);
	return last->directed - list[first].directed + list[first].has_one_sender;
}

/* Whether there are any. */
static bool arrivals_follow(struct climb *climb, const struct arrivals_wanted *wanted)
{
	struct origin_walk *walk = climb->walk;
	const struct origin_arrivals *list = wanted->list;
	uint64_t done;
	size_t first, end;

	if (!origin_arrivals_find(list, wanted->owner, wanted->from_ts, wanted->to_ts, &first,
				  &end))
		return false;
	if (walk->directed && !directed_has(climb, wanted, first, end))
		return true;
	climb->continues = true;
	done = mark_raise(walk, wanted->place, climb->from.grade, wanted->to_ts);
	if (done >= wanted->from_ts && done &&
	    (done >= wanted->to_ts ||
	     !origin_arrivals_find(list, wanted->owner, done + 1, wanted->to_ts, &first, &end)))
		return true;
	for (size_t i = first; i < end && !walk->failed; i++) {
		const struct origin_arrival *arrival = &list->list.data[i];

		if (walk->directed && !arrival->has_one_sender)
			continue;
		if (arrival->collective == MODEL_NONE)
			common_follow(climb, arrival->call, false);
		else
			senders_follow(climb, arrival, wanted->within);
	}
	return true;
}

/* A span that is open at the landing, and whose name spans of other ranks have. */
static bool common_open(struct climb *climb)
{
	const struct origin_walk *walk = climb->walk;

	if (!origin_is_common(walk->index, climb->index))
		return false;
	climb->continues |= !walk->directed;
	common_follow(climb, climb->index, walk->directed);
	return true;
}

/* Data that arrived in the span that the climb has reached, before the time of the landing. */
static bool span_follow(struct climb *climb)
{
	const struct origin_index *index = climb->walk->index;
	const struct model_span *span = &index->model->spans.data[climb->index];
	struct arrivals_wanted wanted = {
		.list = &index->by_process,
		.owner = index->model->threads.data[span->thread].pid,
		.from_ts = span->start_ts,
		.to_ts = climb->from.ts,
		.place = place_key(PLACE_ARRIVALS, climb->index),
		.within = climb->index,
	};

	return common_open(climb) | arrivals_follow(climb, &wanted);
}

/* The end of a span, but not after the symptom. */
static uint64_t end_before_symptom(const struct origin_walk *walk, const struct model_span *span)
{
	return origin_is_after(walk->index->model, span->end_thread, span->end_ts,
			       walk->symptom_thread, walk->symptom_ts)
		       ? walk->symptom_ts
		       : span->end_ts;
}

/* Data that arrived in the node of the landing itself, a span, or by a call that it made. */
static bool self_follow(struct climb *climb)
{
	const struct origin_index *index = climb->walk->index;
	const struct model_span *span = &index->model->spans.data[climb->index];
	struct arrivals_wanted wanted = {
		.list = &index->by_process,
		.owner = index->model->threads.data[span->thread].pid,
		.from_ts = span->start_ts,
		.to_ts = end_before_symptom(climb->walk, span),
		.place = place_key(PLACE_ARRIVALS_SELF, climb->index),
		.within = climb->index,
	};
	bool any = common_open(climb) | arrivals_follow(climb, &wanted);

	wanted.list = &index->by_call;
	wanted.place = place_key(PLACE_CALLS_SELF, climb->index);
	return arrivals_follow(climb, &wanted) | any;
}

/* Data that had arrived on the thread before the landing, or else in the process. */
static void thread_follow(struct climb *climb)
{
	const struct origin_index *index = climb->walk->index;
	uint32_t thread = node_thread(index->model, climb->from.kind, climb->from.index);
	uint32_t pid = index->model->threads.data[thread].pid;
	struct arrivals_wanted wanted = {
		.list = &index->by_thread,
		.owner = thread,
		.to_ts = climb->from.ts,
		.place = place_key(PLACE_THREAD, thread),
		.within = MODEL_NONE,
	};

	/* It is no step of the spans around the landing. */
	climb->kind = climb->from.kind;
	climb->index = climb->from.index;
	if (arrivals_follow(climb, &wanted))
		return;
	wanted.list = &index->by_process;
	wanted.owner = pid;
	wanted.place = place_key(PLACE_PROCESS, pid);
	arrivals_follow(climb, &wanted);
}

/* ---- climbing ---- */

static bool is_elsewhere(const struct model *model, uint8_t kind, uint32_t index, uint32_t parent)
{
	return model->spans.data[parent].thread != node_thread(model, kind, index);
}

static void context_follow(struct climb *climb, uint32_t parent)
{
	const struct model *model = climb->walk->index->model;
	struct origin_landing to = landing_from(climb, ORIGIN_VIA_CONTEXT, WHY_GRADE_CERTAIN);

	to.index = parent;
	to.ts = node_ts(model, climb->kind, climb->index);
	to.mode = climb->from.mode == ORIGIN_MODE_ALL ? ORIGIN_MODE_ALL : ORIGIN_MODE_LINKS;
	to.flowed = true;
	to.from_call = climb->kind == MODEL_NODE_SPAN ? climb->index : MODEL_NONE;
	climb->continues = true;
	landing_push(climb->walk, to);
}

/* Data that arrived in what the climb has reached. */
static void place_follow(struct climb *climb)
{
	bool own = climb->kind == climb->from.kind && climb->index == climb->from.index;

	if (climb->kind != MODEL_NODE_SPAN || !climb->open)
		return;
	if (own && climb->from.called)
		return; /* what a call received does not flow into what it sent */
	if (own && (climb->from.prev == MODEL_NONE || climb->from.mode == ORIGIN_MODE_SELF))
		climb->open = !self_follow(climb);
	else
		climb->open = !span_follow(climb);
}

static void landing_climb(struct origin_walk *walk, uint32_t at)
{
	const struct model *model = walk->index->model;
	struct climb climb = {.walk = walk, .from = walk->landings.data[at], .at = at};
	bool moved = false;

	climb.kind = climb.from.kind;
	climb.index = climb.from.index;
	climb.open = climb.from.mode != ORIGIN_MODE_LINKS;
	for (unsigned depth = 0; depth < ORIGIN_DEPTH_MAX && !walk->failed && !moved; depth++) {
		uint32_t parent = node_parent(model, climb.kind, climb.index);

		links_follow(&climb);
		place_follow(&climb);
		climb.open &= climb.from.mode != ORIGIN_MODE_SELF;
		if (parent == MODEL_NONE)
			break;
		moved = is_elsewhere(model, climb.kind, climb.index, parent);
		if (moved)
			context_follow(&climb, parent);
		climb.kind = MODEL_NODE_SPAN;
		climb.index = parent;
	}
	if (climb.open && !moved)
		thread_follow(&climb);
	if (walk->directed && !climb.continues && climb.from.flowed &&
	    climb.from.mode == ORIGIN_MODE_ALL)
		end_add(walk, at, ORIGIN_FLOW);
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
		index = node_parent(model, kind, index);
		kind = MODEL_NODE_SPAN;
	}
	return false;
}

/* Whether a span received data or called for some. */
static bool has_arrivals(const struct origin_walk *walk, uint32_t at)
{
	const struct origin_index *index = walk->index;
	const struct model_span *span = &index->model->spans.data[at];
	uint32_t pid = index->model->threads.data[span->thread].pid;
	uint64_t to_ts = end_before_symptom(walk, span);
	size_t first, end;

	return origin_is_common(index, at) ||
	       origin_arrivals_find(&index->by_process, pid, span->start_ts, to_ts, &first, &end) ||
	       origin_arrivals_find(&index->by_call, pid, span->start_ts, to_ts, &first, &end);
}

/* Whether a node that a link led to is where the declared causes end. */
static bool is_declared_end(const struct origin_walk *walk, const struct origin_landing *landing)
{
	if (landing->index == MODEL_NONE)
		return true;
	return !has_links(walk, landing->kind, landing->index) &&
	       (landing->kind != MODEL_NODE_SPAN || !has_arrivals(walk, landing->index));
}

/* The place of a landing that a step led to. */
static enum origin_place landing_place(const struct origin_landing *landing)
{
	bool links = landing->mode == ORIGIN_MODE_LINKS;

	if (landing->via == ORIGIN_VIA_LINK)
		return landing->kind == MODEL_NODE_SPAN ? PLACE_LINKED_SPAN : PLACE_LINKED_EVENT;
	if (landing->called)
		return links ? PLACE_RECEIVER : PLACE_SENDER;
	if (landing->from_call != MODEL_NONE)
		return links ? PLACE_PARENT_LINKS_OF_SPAN : PLACE_PARENT_OF_SPAN;
	return links ? PLACE_PARENT_LINKS_OF_EVENT : PLACE_PARENT_OF_EVENT;
}

/* Whether a landing's place was visited before. A context is a place for each child, since the
 * child's begin limits what counts. */
static bool landing_is_known(struct origin_walk *walk, const struct origin_landing *landing)
{
	uint32_t index = landing->index;

	if (landing->prev == MODEL_NONE || landing->index == MODEL_NONE)
		return false;
	if (landing->via == ORIGIN_VIA_CONTEXT)
		index = landing->from_call != MODEL_NONE ? landing->from_call
							 : walk->landings.data[landing->prev].index;
	return !place_enter(walk, landing_place(landing), index);
}

static void landing_visit(struct origin_walk *walk, uint32_t at)
{
	const struct origin_landing *landing = &walk->landings.data[at];

	if (landing_is_known(walk, landing))
		return;
	if (landing->via == ORIGIN_VIA_LINK && landing->prev != MODEL_NONE &&
	    is_declared_end(walk, landing)) {
		if (!walk->directed)
			end_add(walk, at, ORIGIN_DECLARED);
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
		.mode = ORIGIN_MODE_ALL,
	};

	start.ts = kind == MODEL_NODE_SPAN ? model->spans.data[node].end_ts
					   : model->events.data[node].ts;
	walk->symptom_ts = start.ts;
	walk->symptom_thread = node_thread(model, kind, node);
	landing_push(walk, start);
}

bool origin_walk_run(struct origin_walk *walk, const struct origin_index *index, bool directed,
		     uint8_t kind, uint32_t node)
{
	*walk = (struct origin_walk){.index = index, .directed = directed};
	walk->shared = calloc(model_collective_count(index->comm) + 1, 1);
	walk->failed = !walk->shared;
	walk_start(walk, kind, node);
	while (!walk->failed) {
		unsigned row = walk->next[0] == walk->queue[0].len;

		if (walk->next[row] == walk->queue[row].len)
			break;
		landing_visit(walk, walk->queue[row].data[walk->next[row]++]);
	}
	return !walk->failed;
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
