// SPDX-License-Identifier: Apache-2.0
/* Follows data that has arrived back to the calls that sent it. */
#include <stdlib.h>

#include "analyze/origin/origin_internal.h"
#include "util/memory.h"

static const struct model_collective *collective_of(const struct origin_climb *climb,
						    const struct origin_arrival *arrival)
{
	return model_collective_at(climb->walk->index->comm, arrival->collective);
}

static bool span_is_in(const struct model *model, uint32_t span, uint32_t within)
{
	return span != MODEL_NONE && (span == within || model->spans.data[span].parent == within) &&
	       model->spans.data[span].thread == model->spans.data[within].thread;
}

/* Whether a call lies in the span `within` with no other span in between. Such a span has closed
 * since, and the data may have gone with it. */
static bool call_is_in(const struct model *model, const struct model_rank_call *call,
		       uint32_t within)
{
	return within != MODEL_NONE && (span_is_in(model, call->span, within) ||
					span_is_in(model, call->end_span, within) ||
					span_is_in(model, call->group_end, within));
}

static uint8_t arrival_grade(const struct origin_climb *climb, const struct origin_arrival *arrival,
			     uint32_t within)
{
	const struct model_collective *collective;

	if (!climb->nearest || arrival->collective == MODEL_NONE || !arrival->exact)
		return WHY_GRADE_LIKELY;
	collective = collective_of(climb, arrival);
	if (collective->flow == FLOW_UNKNOWN || collective->alignment == COLLECTIVE_BY_ORDER ||
	    collective->alignment == COLLECTIVE_UNSURE || collective->data != MODEL_DATA_SOME)
		return WHY_GRADE_LIKELY;
	return call_is_in(climb->walk->index->model, &collective->calls[arrival->call], within)
		       ? WHY_GRADE_CERTAIN
		       : WHY_GRADE_LIKELY;
}

/* A landing on a call of the collective of an arrival. */
static struct origin_landing call_landing(const struct origin_climb *climb,
					  const struct origin_arrival *arrival, uint32_t call,
					  uint8_t grade)
{
	const struct model_collective *collective = collective_of(climb, arrival);
	bool message = collective->flow == FLOW_PAIR;
	struct origin_landing to = origin_landing_from(
		climb, message ? ORIGIN_VIA_MESSAGE : ORIGIN_VIA_COLLECTIVE, grade);

	to.collective = arrival->collective;
	to.from_call = collective->calls[arrival->call].span;
	to.to_call = to.index = collective->calls[call].span;
	to.ts = collective->calls[call].arrival_ts;
	to.ts_thread = collective->calls[call].thread;
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

static void note_incomplete(struct origin_walk *walk, const struct origin_arrival *arrival,
			    const struct model_collective *collective)
{
	if (walk->incomplete == MODEL_NONE && collective->count < collective->nranks)
		walk->incomplete = arrival->collective;
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

static void senders_follow(struct origin_climb *climb, const struct origin_arrival *arrival,
			   uint32_t within)
{
	struct origin_walk *walk = climb->walk;
	const struct model_collective *collective = collective_of(climb, arrival);
	uint8_t grade = arrival_grade(climb, arrival, within);
	struct origin_landing own = call_landing(climb, arrival, arrival->call, grade);

	note_incomplete(walk, arrival, collective);
	if (collective_is_done(walk, arrival, collective->flow, own.grade))
		return;
	/* The spans around the receiving call may have closed since: their links count. */
	own.mode = ORIGIN_MODE_LINKS;
	own.ts = arrival->data_ts;
	if (arrival->has_one_sender)
		origin_landing_push(walk, own);
	for (uint32_t call = 0; call < collective->count; call++)
		if (gives(collective, call, arrival->call) && !call_is_late(walk, collective, call))
			origin_landing_push(walk, call_landing(climb, arrival, call, grade));
}

/* Leads to a common span and to those of other ranks that overlap it. All are landings, or ends
 * with `as_ends`. */
static void common_follow(struct origin_climb *climb, uint32_t span, bool as_ends)
{
	struct origin_walk *walk = climb->walk;
	const struct model *model = walk->index->model;
	origin_spans found = {0};

	vec_add(&found, span);
	origin_common_find(walk->index, span, &found);
	for (size_t i = 0; i < found.len; i++) {
		const struct model_span *to = &model->spans.data[found.data[i]];
		struct origin_landing landing =
			origin_landing_from(climb, ORIGIN_VIA_COLLECTIVE, WHY_GRADE_LIKELY);

		landing.index = found.data[i];
		landing.from_call = span;
		landing.to_call = landing.index;
		landing.ts = to->start_ts;
		landing.ts_thread = to->thread;
		landing.called = true;
		if (origin_is_after(model, to->thread, to->start_ts, walk->symptom_thread,
				    walk->symptom_ts))
			continue;
		if (!as_ends)
			origin_landing_push(walk, landing);
		else if (origin_place_enter(walk, ORIGIN_PLACE_ANY_RANK, landing.index))
			origin_end_add(walk, origin_landing_add(walk, landing), ORIGIN_ANY_RANK);
	}
	vec_free(&found);
}

/* Makes ends of all senders of an arrival with many senders. */
static void any_rank_add(struct origin_climb *climb, const struct origin_arrival *arrival,
			 uint32_t within)
{
	struct origin_walk *walk = climb->walk;
	const struct model_collective *collective;
	uint8_t grade = arrival_grade(climb, arrival, within);

	if (arrival->collective == MODEL_NONE) {
		common_follow(climb, arrival->call, true);
		return;
	}
	collective = collective_of(climb, arrival);
	note_incomplete(walk, arrival, collective);
	for (uint32_t call = 0; call < collective->count; call++)
		if (gives(collective, call, arrival->call) &&
		    !call_is_late(walk, collective, call) &&
		    origin_place_enter(walk, ORIGIN_PLACE_ANY_RANK, collective->calls[call].span))
			origin_end_add(
				walk,
				origin_landing_add(walk, call_landing(climb, arrival, call, grade)),
				ORIGIN_ANY_RANK);
}

/* Arrivals of an owner in [from_ts, to_ts]. */
struct arrivals_wanted {
	const struct origin_arrivals *list;
	uint64_t from_ts, to_ts, place;
	uint32_t owner;
	uint32_t within; /* the span that received them; MODEL_NONE: none did */
};

/* Whether an owner has data of one sender in [first, end) of a list. If no nearer span has received
 * data, the last arrival there with many senders becomes an end. */
static bool directed_has(struct origin_climb *climb, const struct arrivals_wanted *wanted,
			 size_t first, size_t end)
{
	const struct origin_arrival *list = wanted->list->list.data;
	const struct origin_arrival *last = &list[end - 1];

	if (climb->nearest && last->many != MODEL_NONE && last->many >= first)
		any_rank_add(climb, &list[last->many], wanted->within);
	return last->directed - list[first].directed + list[first].has_one_sender;
}

static void arrival_follow(struct origin_climb *climb, const struct origin_arrival *arrival,
			   uint32_t within)
{
	if (climb->walk->directed && !arrival->has_one_sender)
		return;
	if (arrival->collective == MODEL_NONE)
		common_follow(climb, arrival->call, false);
	else
		senders_follow(climb, arrival, within);
}

/* Follows the wanted arrivals. Returns whether there are any. */
static bool arrivals_follow(struct origin_climb *climb, const struct arrivals_wanted *wanted)
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
	done = origin_mark_raise(walk, wanted->place,
				 climb->nearest ? climb->from.grade : WHY_GRADE_LIKELY,
				 wanted->to_ts);
	if (done >= wanted->from_ts && done &&
	    (done >= wanted->to_ts ||
	     !origin_arrivals_find(list, wanted->owner, done + 1, wanted->to_ts, &first, &end)))
		return true;
	for (size_t i = first; i < end; i++)
		arrival_follow(climb, &list->list.data[i], wanted->within);
	return true;
}

/* Follows the wanted arrivals of a list by the begin of calls, if the data was there before the
 * landing. Returns whether there are any. */
static bool calls_follow(struct origin_climb *climb, const struct arrivals_wanted *wanted)
{
	struct origin_walk *walk = climb->walk;
	const struct origin_arrival *list = wanted->list->list.data;
	uint32_t many = MODEL_NONE;
	bool any = false;
	size_t first, end;

	origin_arrivals_find(wanted->list, wanted->owner, wanted->from_ts, wanted->to_ts, &first,
			     &end);
	for (size_t i = first; i < end; i++) {
		if (!origin_arrived_before(&climb->from, &list[i]))
			continue;
		any = true;
		climb->continues |= !walk->directed || list[i].has_one_sender;
		if (!list[i].has_one_sender)
			many = (uint32_t)i;
		arrival_follow(climb, &list[i], wanted->within);
	}
	if (walk->directed && climb->nearest && many != MODEL_NONE)
		any_rank_add(climb, &list[many], wanted->within);
	return any;
}

/* Follows the span that the climb has reached to those of other ranks with its name. Returns
 * whether there are any. */
static bool common_span_follow(struct origin_climb *climb)
{
	const struct origin_walk *walk = climb->walk;

	if (!origin_is_common(walk->index, climb->index))
		return false;
	climb->continues |= !walk->directed;
	common_follow(climb, climb->index, walk->directed);
	return true;
}

bool origin_span_follow(struct origin_climb *climb)
{
	const struct origin_index *index = climb->walk->index;
	const struct model_span *span = &index->model->spans.data[climb->index];
	struct arrivals_wanted wanted = {
		.list = &index->by_process,
		.owner = index->model->threads.data[span->thread].pid,
		.from_ts = span->start_ts,
		.to_ts = climb->from.ts,
		.place = origin_place_key(ORIGIN_PLACE_ARRIVALS, climb->index),
		.within = climb->index,
	};

	bool any = common_span_follow(climb);

	return arrivals_follow(climb, &wanted) || any;
}

uint64_t origin_end_before(const struct model *model, const struct origin_landing *landing,
			   const struct model_span *span)
{
	return origin_is_after(model, span->end_thread, span->end_ts, landing->ts_thread,
			       landing->ts)
		       ? landing->ts
		       : span->end_ts;
}

bool origin_arrived_before(const struct origin_landing *landing,
			   const struct origin_arrival *arrival)
{
	return landing->prev == MODEL_NONE || arrival->data_ts <= landing->ts;
}

bool origin_self_follow(struct origin_climb *climb)
{
	const struct origin_index *index = climb->walk->index;
	const struct model_span *span = &index->model->spans.data[climb->index];
	struct arrivals_wanted wanted = {
		.list = &index->by_process,
		.owner = index->model->threads.data[span->thread].pid,
		.from_ts = span->start_ts,
		.to_ts = origin_end_before(index->model, &climb->from, span),
		.place = origin_place_key(ORIGIN_PLACE_ARRIVALS_SELF, climb->index),
		.within = climb->index,
	};
	bool any = common_span_follow(climb);

	any = arrivals_follow(climb, &wanted) || any;

	wanted.list = &index->by_call;
	return calls_follow(climb, &wanted) || any;
}

void origin_thread_follow(struct origin_climb *climb)
{
	const struct origin_index *index = climb->walk->index;
	uint32_t thread = origin_node_thread(index->model, climb->from.kind, climb->from.index);
	uint32_t pid = index->model->threads.data[thread].pid;
	struct arrivals_wanted wanted = {
		.list = &index->by_thread,
		.owner = thread,
		.to_ts = climb->from.ts,
		.place = origin_place_key(ORIGIN_PLACE_THREAD, thread),
		.within = MODEL_NONE,
	};

	/* The steps leave the landing itself, not a span around it. */
	climb->kind = climb->from.kind;
	climb->index = climb->from.index;
	if (arrivals_follow(climb, &wanted))
		return;
	wanted.list = &index->by_process;
	wanted.owner = pid;
	wanted.place = origin_place_key(ORIGIN_PLACE_PROCESS, pid);
	arrivals_follow(climb, &wanted);
}
