// SPDX-License-Identifier: Apache-2.0
/* Collects the ranks that had not arrived in the collectives on a call's streams. */
#include "analyze/why/await/why_await_gather_internal.h"

#include <stdlib.h>

#include "analyze/why/await/why_await.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"

void gather_arrival(struct gather *gather, struct why_arrival arrival)
{
	const uint64_t key = (uintptr_t)arrival.collective + (arrival.of_root ? 1 : 0);

	if (arrival.ts <= gather->from_ts || map_get(&gather->arrived, key) != MAP_NONE)
		return;
	if (gather->may && arrival.grade == WHY_GRADE_CERTAIN)
		arrival.grade = WHY_GRADE_LIKELY;
	vec_add(&gather->walk->awaits.arrivals, arrival);
	map_put(&gather->arrived, key, 0);
	gather->sync->arrival_count++;
}

static int by_ts(const void *left, const void *right)
{
	const struct why_arrival *a = left, *b = right;

	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	return a->collective < b->collective ? -1 : a->collective > b->collective;
}

void gather_sort(struct gather *gather)
{
	if (gather->sync->arrival_count)
		qsort(&gather->walk->awaits.arrivals.data[gather->sync->arrival],
		      gather->sync->arrival_count, sizeof(struct why_arrival), by_ts);
}

void gather_count(struct gather *gather)
{
	if (!why_await_steps(gather->walk, 1) || gather->ops++ == OPS_MAX)
		gather->more = true;
}

uint32_t gather_calls(struct gather *gather, const struct model_collective *collective)
{
	return (uint32_t)why_await_steps(gather->walk, collective->count);
}

bool collective_is_incomplete(const struct model_collective *collective)
{
	if (collective->alignment == COLLECTIVE_ALONE)
		return collective->nranks != 1;
	/* Without a common clock, it is unknown when the others arrived. */
	return collective->count < collective->nranks || !collective->comparable;
}

bool collective_needs_others(const struct gather *gather, const struct model_collective *collective)
{
	const struct model_rank_call *last = &collective->calls[collective->count - 1];
	bool root = false;

	if (!collective->mpi || collective->synchronizes)
		return collective->synchronizes;
	/* Without elements there is nothing to wait for, but a message waits nevertheless. */
	if (collective->data == MODEL_DATA_NONE && collective->flow != FLOW_NONE &&
	    collective->flow != FLOW_PAIR)
		return false;
	for (uint32_t i = 0; i < collective->count; i++)
		root |= collective->calls[i].pid == gather->pid &&
			collective->calls[i].rank == collective->root;
	switch (collective->flow) {
	case FLOW_FROM_ROOT:
		return !root;
	case FLOW_TO_ROOT:
		return root;
	case FLOW_PAIR: /* the receiver is the last one */
		return last->pid == gather->pid && (collective->count > 1 || !collective->rooted);
	default:
		return true;
	}
}

static bool is_own(const struct gather *gather, uint32_t thread)
{
	return thread == gather->walk->model->spans.data[gather->sync->span].thread;
}

/* Adds a traced rank that had not arrived when the capture ended. */
static void add_late(struct gather *gather, const struct model_collective *collective)
{
	const struct model *model = gather->walk->model;

	if (is_own(gather, collective->late_thread) ||
	    !(model->spans.data[gather->sync->span].flags & MODEL_SPAN_UNFINISHED))
		return;
	gather_arrival(gather, (struct why_arrival){
				       .ts = UINT64_MAX,
				       .collective = collective,
				       .site = collective->site,
				       .span = MODEL_NONE,
				       .thread = collective->late_thread,
				       .rank = collective->late_rank,
				       .grade = WHY_GRADE_LIKELY,
			       });
}

/* Whether a rank certainly waits for the last one. For a message only the receiver does: a short
 * message may be sent before the receiver arrives. */
static bool must_wait(const struct model_collective *collective)
{
	bool one_way = collective->from == MODEL_NONE ? collective->rooted : collective->last == 1;

	return collective->alignment == COLLECTIVE_BY_CREATION && !one_way;
}

/* Whether no other rank can have come last, with the errors of their hosts' clocks and the ranks
 * that are not traced. */
static bool is_last_known(struct gather *gather, const struct model_collective *collective)
{
	const struct model *model = gather->walk->model;
	const struct model_rank_call *last = &collective->calls[collective->last];
	uint32_t count;

	if (collective->count < collective->nranks)
		return false; /* a rank that is not traced may have come later */
	if (model->host_count < 2)
		return true;
	count = gather_calls(gather, collective);
	for (uint32_t i = 0; i < count; i++) {
		const struct model_rank_call *call = &collective->calls[i];

		if (i != collective->last &&
		    !model_order_known(model, call->thread, call->arrival_ts, last->thread,
				       last->arrival_ts))
			return false;
	}
	return count == collective->count;
}

/* Whether another rank's GPU may still have had earlier work to do when that rank arrived. */
static bool others_are_busy(struct gather *gather, const struct model_collective *collective)
{
	const struct model_gpu *gpu = gather->walk->awaits.gpu;
	uint32_t count = gather_calls(gather, collective);

	if (count < collective->count)
		return true;
	for (uint32_t i = 0; i < count; i++) {
		const struct model_rank_call *call = &collective->calls[i];
		struct model_gpu_op op = model_gpu_op(gpu, call->span), previous;

		if (!is_own(gather, call->thread) && model_gpu_previous(gpu, &op, &previous) &&
		    !model_gpu_waited(gpu, &previous, call->arrival_ts))
			return true;
	}
	return false;
}

/* Adds the rank of a call, if the own call may have waited for it. */
static void gather_rank(struct gather *gather, const struct model_collective *collective,
			const struct model_rank_call *call, bool of_root)
{
	/* A call that ended before the rank arrived did not have to wait. */
	if (is_own(gather, call->thread) || call->arrival_ts >= gather->to_ts)
		return;
	gather_arrival(gather,
		       (struct why_arrival){
			       .ts = call->arrival_ts,
			       .collective = collective,
			       .site = gather->walk->model->spans.data[call->span].site,
			       .span = call->span,
			       .thread = call->thread,
			       .rank = call->rank,
			       .of_root = of_root,
			       .grade = must_wait(collective) && is_last_known(gather, collective)
						? WHY_GRADE_CERTAIN
						: WHY_GRADE_LIKELY,
		       });
}

/* A rank that gets data from a root waits for it first, also if others come after it has left. */
static void gather_root(struct gather *gather, const struct model_collective *collective)
{
	uint32_t count;

	if (!collective->mpi || collective->flow != FLOW_FROM_ROOT ||
	    !collective_needs_others(gather, collective))
		return;
	count = gather_calls(gather, collective);
	for (uint32_t i = 0; i < count; i++)
		if (i != collective->last && collective->calls[i].rank == collective->root)
			gather_rank(gather, collective, &collective->calls[i], true);
}

/* Adds the last rank to arrive in a collective, unless it is the call's own. */
static void gather_collective(struct gather *gather, const struct model_collective *collective)
{
	if (!collective)
		return;
	gather->found++;
	if (collective_is_incomplete(collective) &&
	    (!gather->incomplete ||
	     (collective->mpi && !collective_needs_others(gather, gather->incomplete))))
		gather->incomplete = collective;
	if (!gather->peers_busy && !collective->mpi && !collective_is_incomplete(collective) &&
	    others_are_busy(gather, collective))
		gather->peers_busy = collective;
	if (collective->late_rank != MODEL_NONE)
		add_late(gather, collective);
	if (collective->alignment == COLLECTIVE_ALONE || collective->count < 2 ||
	    !collective->comparable)
		return;
	gather_root(gather, collective);
	gather_rank(gather, collective, &collective->calls[collective->last], false);
}

void gather_mpi(struct gather *gather, uint32_t span)
{
	const struct why_awaits *awaits = &gather->walk->awaits;
	size_t at =
		lower_bound(awaits->completions.len, i, awaits->completions.data[i].span < span);

	gather_collective(gather, model_collective_of(awaits->comm, span));
	gather_collective(gather, model_collective_received(awaits->comm, span));
	for (; at < awaits->completions.len && awaits->completions.data[at].span == span &&
	       !gather->more;
	     at++) {
		gather_collective(
			gather,
			model_collective_at(awaits->comm, awaits->completions.data[at].collective));
		gather_count(gather);
	}
}

void gather_group(struct gather *gather, uint32_t span)
{
	const struct model_gpu *gpu = gather->walk->awaits.gpu;
	const struct model_comm *comm = gather->walk->awaits.comm;

	gather_collective(gather, model_collective_of(comm, span));
	while (!gather->more && (span = model_gpu_group_next(gpu, span)) != MODEL_NONE) {
		gather_collective(gather, model_collective_of(comm, span));
		gather_count(gather);
	}
}

const struct model_collective *collective_of(const struct gather *gather,
					     const struct model_gpu_op *op)
{
	const struct model *model = gather->walk->model;
	const uint32_t *calls = gather->walk->awaits.calls;
	uint32_t span;

	if (op->role == SITE_ROLE_COLLECTIVE || op->role == SITE_ROLE_SEND ||
	    op->role == SITE_ROLE_RECV)
		return op->node == MODEL_NODE_SPAN
			       ? model_collective_of(gather->walk->awaits.comm, op->index)
			       : NULL;
	if (op->role != SITE_ROLE_LAUNCH || op->node != MODEL_NODE_EVENT)
		return NULL;
	span = model->events.data[op->index].parent;
	for (unsigned nested = 0; span < model->spans.len && nested < WHY_AWAIT_NESTED; nested++) {
		unsigned role;

		gather->walk->why->searched++;
		span = calls[span];
		if (span == MODEL_NONE)
			break;
		role = role_of(model, span);
		if (role == SITE_ROLE_COLLECTIVE || role == SITE_ROLE_SEND ||
		    role == SITE_ROLE_RECV || role == SITE_ROLE_GROUP_END)
			return model_collective_of(gather->walk->awaits.comm, span);
		span = model->spans.data[span].parent;
	}
	return NULL;
}

const char *collective_name(struct gather *gather, const struct model_collective *collective)
{
	const struct model *model = gather->walk->model;
	uint32_t site = collective->site, count = gather_calls(gather, collective);

	for (uint32_t i = 0; i < count; i++)
		if (collective->calls[i].pid == gather->pid)
			site = model->spans.data[collective->calls[i].span].site;
	return model_site(model, site)->name;
}

/* ---- work ---- */

/* Whether that part of a stream was searched before; marks it as searched. */
static bool is_seen(struct gather *gather, const struct model_gpu_op *op)
{
	uint32_t number = map_get(&gather->seen, op->channel);
	bool seen;

	if (number == MAP_NONE) {
		number = (uint32_t)gather->tops.len;
		gather->more |= number == STREAMS_MAX;
		vec_add(&gather->tops, *op);
		map_put(&gather->seen, op->channel, number);
		return gather->more;
	}
	seen = gather->tops.data[number].ts >= op->ts;
	if (!seen)
		gather->tops.data[number] = *op;
	return seen;
}

bool op_before(const struct gather *gather, const struct model_gpu_op *op,
	       struct model_gpu_op *previous)
{
	return model_gpu_previous(gather->walk->awaits.gpu, op, previous) &&
	       !model_gpu_waited(gather->walk->awaits.gpu, previous, gather->from_ts);
}

/* Adds ops that `op` must wait for by the rules of the legacy default stream. */
static void add_around(struct gather *gather, const struct model_gpu_op *op)
{
	model_gpu_around(gather->walk->awaits.gpu, op, gather->from_ts, &gather->around);
	gather->more |= gather->around.more;
	for (size_t i = 0; i < gather->around.ops.len; i++) {
		if (gather->around.ops.data[i].maybe)
			gather->others = true;
		else
			vec_add(&gather->todo, gather->around.ops.data[i]);
	}
}

/* Searches the op's stream, from the op back to finished work. */
static void gather_stream(struct gather *gather, struct model_gpu_op op)
{
	struct model_gpu_op behind;

	add_around(gather, &op);
	do {
		if (!gather->again)
			gather_collective(gather, collective_of(gather, &op));
		if (op.role == SITE_ROLE_STREAM_WAIT &&
		    model_gpu_behind(gather->walk->awaits.gpu, &op, &behind))
			vec_add(&gather->todo, behind);
		gather_count(gather);
	} while (!gather->more && op_before(gather, &op, &op));
}

void gather_op(struct gather *gather, const struct model_gpu_op *last)
{
	vec_add(&gather->todo, *last);
	while (gather->todo.len) {
		struct model_gpu_op op = gather->todo.data[--gather->todo.len];

		if (!is_seen(gather, &op))
			gather_stream(gather, op);
	}
}

void gather_again(struct gather *gather)
{
	map_free(&gather->seen);
	gather->seen = (struct map){0};
	gather->tops.len = 0;
	gather->ops = 0;
	gather->again = true;
}

uint64_t why_await_steps(struct why_walk *walk, uint64_t count)
{
	struct why_awaits *awaits = &walk->awaits;

	if (count > awaits->steps_left)
		count = awaits->steps_left;
	awaits->steps_left -= count;
	walk->why->searched += count;
	return count;
}
