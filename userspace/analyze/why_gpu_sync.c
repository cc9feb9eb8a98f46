// SPDX-License-Identifier: Apache-2.0
/*
 * What a call waits for: the work that is on its streams, as the calls before it say, and the ranks
 * that the collectives among that work have yet to hear of. When a GPU began and ended its work is
 * not known; what was put on a stream last ends last.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/why_gpu_gather.h"

/* A copy that is slower than this, in bytes a nanosecond, does not wait for the bus. */
#define BYTES_PER_NS 1

/* How the roles wait. */
static const struct {
	bool waits, spins;
} roles[SITE_ROLE_COUNT] = {
	[SITE_ROLE_SYNC_STREAM] = {true, true},
	[SITE_ROLE_SYNC_EVENT] = {true, true},
	[SITE_ROLE_SYNC_DEVICE] = {true, true},
	[SITE_ROLE_COPY] = {true, true},
	/* These do work of their own, and wait for ranks now and then. */
	[SITE_ROLE_COLLECTIVE] = {true, false},
	[SITE_ROLE_SEND] = {true, false},
	[SITE_ROLE_RECV] = {true, false},
	[SITE_ROLE_GROUP_END] = {true, false},
	[SITE_ROLE_COMM_INIT] = {true, false},
};

bool why_gpu_role_waits(unsigned role)
{
	return role < SITE_ROLE_COUNT && roles[role].waits;
}

/* What a STREAM_WAIT stands for; itself if that is not known. */
static struct model_gpu_op resolve(const struct gather *gather, struct model_gpu_op op)
{
	for (unsigned i = 0; i < STREAMS_MAX && op.role == SITE_ROLE_STREAM_WAIT; i++) {
		struct model_gpu_op behind;

		if (!model_gpu_behind(gather->walk->gpu.model, &op, &behind))
			break;
		op = behind;
	}
	return op;
}

/* ---- words ---- */

/* Adds a text that was written to memory. */
static bool take_text(struct gather *gather, FILE *out, char **text, const size_t *len,
		      uint32_t *number)
{
	bool good = out && !fclose(out);

	*number = good ? strtab_add(gather->walk->why->texts, *text, *len) : STRTAB_NONE;
	free(*text);
	return *number != STRTAB_NONE;
}

/* "waits for the GPU: kernel gemm on stream 0x7f01, and what was put there before" */
static bool add_meaning(struct gather *gather)
{
	const char *object = strtab_get(gather->walk->why->texts, gather->sync->object);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out)
		fprintf(out, "waits for the GPU%s%s%s", *object ? ": " : "", object,
			gather->queued ? ", and what was put there before" : "");
	return take_text(gather, out, &text, &len, &gather->sync->meaning);
}

/* ---- what is waited for when all have arrived ---- */

/* The span that the program was in when it put something on a stream. */
static uint32_t span_of(const struct gather *gather, const struct model_gpu_op *op)
{
	const struct model *model = gather->walk->model;
	uint32_t parent = op->node == MODEL_NODE_SPAN ? model->spans.data[op->index].parent
						      : model->events.data[op->index].parent;

	return parent == MODEL_NONE && op->node == MODEL_NODE_SPAN ? op->index : parent;
}

static bool end_at_op(struct gather *gather, const struct model_gpu_op *op, bool alone)
{
	struct why_sync *sync = gather->sync;
	const struct model_collective *collective = collective_of(gather, op);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	sync->waits = true;
	sync->end = WHY_GPU;
	sync->grade = alone ? WHY_GRADE_CERTAIN : WHY_GRADE_LIKELY;
	sync->launch_ts = op->ts;
	sync->launch_thread = op->thread;
	sync->launch_span = span_of(gather, op);
	if (out) {
		if (collective)
			fputs(collective_name(gather, collective), out);
		else
			why_gpu_put_op(out, gather->walk->model, op);
		fputs(" on ", out);
		why_gpu_put_stream(out, op->stream);
	}
	return take_text(gather, out, &text, &len, &sync->object) && add_meaning(gather);
}

/* The one rank of a collective of which no call is known; MODEL_NONE: there are more. */
static uint32_t missing_rank(const struct model_collective *collective)
{
	uint32_t missing = MODEL_NONE;

	if (collective->from != MODEL_NONE)
		return collective->calls[0].rank == collective->from ? collective->to
								     : collective->from;
	if (collective->count + 1 != collective->nranks)
		return MODEL_NONE;
	for (uint32_t rank = 0; rank < collective->nranks; rank++) {
		bool found = false;

		for (uint32_t i = 0; i < collective->count; i++)
			found |= collective->calls[i].rank == rank;
		if (!found && missing != MODEL_NONE)
			return MODEL_NONE;
		if (!found)
			missing = rank;
	}
	return missing;
}

/* A collective with ranks of which no call is known is all that is known to be on the stream. */
static bool end_at_others(struct gather *gather, const struct model_collective *collective)
{
	struct why_sync *sync = gather->sync;
	const char *name = collective_name(gather, collective);
	uint32_t rank = missing_rank(collective);
	/* But which calls meet is not known. */
	bool traced = collective->alignment == COLLECTIVE_ALONE && collective->members > 1;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	sync->waits = true;
	sync->end = WHY_COLLECTIVE;
	sync->grade = rank == MODEL_NONE ? WHY_GRADE_UNKNOWN : WHY_GRADE_LIKELY;
	if (out && rank != MODEL_NONE)
		fprintf(out, "rank %" PRIu32 " in %s%s, %s", rank,
			collective->from == MODEL_NONE ? "" : "the other end of ", name,
			traced ? "whose calls cannot be told apart" : "which is not traced");
	else if (out)
		fprintf(out, "ranks in %s%s", name,
			traced ? ", whose calls cannot be told apart" : " that are not traced");
	if (!take_text(gather, out, &text, &len, &sync->object))
		return false;
	out = open_memstream(&text, &len);
	if (out)
		fprintf(out, "waits for %s", strtab_get(gather->walk->why->texts, sync->object));
	return take_text(gather, out, &text, &len, &sync->meaning);
}

/* Nothing is known of what is on the stream: it was put there before the capture. */
static bool end_at_unknown(struct gather *gather)
{
	const struct model *model = gather->walk->model;
	struct why_sync *sync = gather->sync;
	struct value value;
	char *text = NULL;
	size_t len;
	FILE *out;

	sync->waits = true;
	sync->spins = false;
	sync->end = WHY_GPU;
	sync->grade = WHY_GRADE_LIKELY;
	if (role_of(model, sync->span) == SITE_ROLE_SYNC_STREAM &&
	    model_gpu_value(model, MODEL_NODE_SPAN, sync->span, "stream", &value)) {
		out = open_memstream(&text, &len);
		if (out)
			why_gpu_put_stream(out, value.u64);
		if (!take_text(gather, out, &text, &len, &sync->object))
			return false;
	}
	return add_meaning(gather);
}

/* ---- calls ---- */

/* Whether something is known of the streams that a call waits for; then it has been waited for. */
static bool was_done(const struct gather *gather)
{
	const struct why_walk *walk = gather->walk;
	const struct model_span *span = &walk->model->spans.data[gather->sync->span];
	struct model_gpu_op op;
	struct value value;

	switch (role_of(walk->model, gather->sync->span)) {
	case SITE_ROLE_SYNC_STREAM:
		return model_gpu_value(walk->model, MODEL_NODE_SPAN, gather->sync->span, "stream",
				       &value) &&
		       model_gpu_last(walk->gpu.model, gather->pid, value.u64, span->thread,
				      span->start_ts, &op);
	case SITE_ROLE_SYNC_EVENT:
		return model_gpu_value(walk->model, MODEL_NODE_SPAN, gather->sync->span, "event",
				       &value) &&
		       model_gpu_recorded(walk->gpu.model, gather->pid, value.u64, span->start_ts,
					  &op);
	default:
		return false;
	}
}

/* A copy that is too small to take half of the wait waits for the kernel in front of it. */
static bool kernel_before(const struct gather *gather, const struct model_gpu_op *copy,
			  struct model_gpu_op *kernel)
{
	struct model_gpu_op op = *copy;

	if ((copy->role != SITE_ROLE_COPY && copy->role != SITE_ROLE_SET) ||
	    why_gpu_bytes(gather->walk->model, copy) / BYTES_PER_NS >=
		    (gather->to_ts - gather->from_ts) / 2)
		return false;
	for (unsigned i = 0; i < OPS_MAX && op_before(gather, &op, &op); i++) {
		*kernel = resolve(gather, op);
		if (kernel->role == SITE_ROLE_LAUNCH || kernel->role == SITE_ROLE_COLLECTIVE)
			return true;
	}
	return false;
}

/* `alone`: there is no other stream that is waited for. */
static bool end_at_work(struct gather *gather, struct model_gpu_op op, bool alone)
{
	const struct model_collective *collective;
	struct model_gpu_op other;

	alone = alone && !op_before(gather, &op, &other);
	op = resolve(gather, op);
	alone = alone && !op_before(gather, &op, &other);
	if (kernel_before(gather, &op, &other)) {
		op = other;
		alone = false;
	}
	gather->queued = !alone;
	collective = collective_of(gather, &op);
	if (collective && collective_has_others(collective))
		return end_at_others(gather, collective);
	/* Of a collective the other ranks' GPUs are waited for as well. */
	return end_at_op(gather, &op,
			 alone && !collective && !gather->open && op.role != SITE_ROLE_P2P &&
				 op.role != SITE_ROLE_SEND && op.role != SITE_ROLE_RECV);
}

static bool make_sync(struct gather *gather)
{
	const struct why_walk *walk = gather->walk;
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX];
	uint32_t count =
		model_gpu_awaited(walk->gpu.model, gather->sync->span, ops, MODEL_GPU_AWAITED_MAX);

	for (uint32_t i = 0; i < count; i++)
		gather_op(gather, &ops[i]);
	if (!gather->memory)
		return false;
	gather->sync->spins = true;
	if (count)
		return end_at_work(gather, ops[0], count == 1);
	return was_done(gather) || end_at_unknown(gather);
}

/* A copy on no stream waits for what is before it, and for itself. */
static bool make_copy(struct gather *gather)
{
	const struct model *model = gather->walk->model;
	const struct model_span *span = &model->spans.data[gather->sync->span];
	struct model_gpu_op copy = {
		.ts = span->start_ts,
		.role = SITE_ROLE_COPY,
		.node = MODEL_NODE_SPAN,
		.index = gather->sync->span,
		.thread = span->thread,
		.pid = gather->pid,
	};
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX], op;
	uint32_t count;
	bool alone = true;

	if (model_gpu_value(model, copy.node, copy.index, "stream", &(struct value){0}))
		return true;
	count = model_gpu_awaited(gather->walk->gpu.model, gather->sync->span, ops,
				  MODEL_GPU_AWAITED_MAX);
	op = copy;
	for (uint32_t i = 0; i < count; i++) {
		if (ops[i].node == MODEL_NODE_SPAN && ops[i].index == copy.index)
			continue;
		gather_op(gather, &ops[i]);
		if (alone && why_gpu_bytes(model, &copy) / BYTES_PER_NS <
				     (gather->to_ts - gather->from_ts) / 2)
			op = resolve(gather, ops[i]);
		alone = false;
	}
	gather->sync->spins = true;
	gather->queued = !alone;
	return gather->memory && end_at_op(gather, &op, alone);
}

/* The makings of communicators of so many ranks that overlap this one, one of each rank. */
static bool make_init(struct gather *gather)
{
	struct why_walk *walk = gather->walk;
	const struct model *model = walk->model;
	uint32_t own = gather->sync->span, last = own, found = 1;
	struct value nranks, other, rank;
	uint64_t last_rank = 0;

	if (!model_gpu_value(model, MODEL_NODE_SPAN, own, "nranks", &nranks) || nranks.u64 < 2)
		return true;
	for (size_t i = 0; i < walk->gpu.inits.len; i++) {
		uint32_t at = walk->gpu.inits.data[i];
		const struct model_span *span = &model->spans.data[at];

		if (span->start_ts >= gather->to_ts)
			break;
		if (at == own || span->end_ts <= gather->from_ts ||
		    !model_gpu_value(model, MODEL_NODE_SPAN, at, "nranks", &other) ||
		    other.u64 != nranks.u64 ||
		    !model_gpu_value(model, MODEL_NODE_SPAN, at, "rank", &rank))
			continue;
		found++;
		if (span->start_ts > model->spans.data[last].start_ts) {
			last = at;
			last_rank = rank.u64;
		}
	}
	if (found != nranks.u64 || last == own)
		return true;
	gather_arrival(gather, (struct why_arrival){
				       .ts = model->spans.data[last].start_ts,
				       .site = model->spans.data[last].site,
				       .span = last,
				       .thread = model->spans.data[last].thread,
				       .rank = (uint32_t)last_rank,
				       .grade = WHY_GRADE_LIKELY,
			       });
	return gather->memory;
}

bool why_gpu_sync_make(struct why_walk *walk, struct why_sync *sync)
{
	const struct model *model = walk->model;
	const struct model_span *span = &model->spans.data[sync->span];
	unsigned role = role_of(model, sync->span);
	struct gather gather = {
		.walk = walk,
		.sync = sync,
		.from_ts = span->start_ts,
		.to_ts = span->end_ts,
		.pid = model->threads.data[span->thread].pid,
		.memory = true,
	};

	sync->arrival = (uint32_t)walk->gpu.arrivals.len;
	switch (role) {
	case SITE_ROLE_SYNC_STREAM:
	case SITE_ROLE_SYNC_EVENT:
	case SITE_ROLE_SYNC_DEVICE:
		return make_sync(&gather);
	case SITE_ROLE_COPY:
		return make_copy(&gather);
	case SITE_ROLE_COMM_INIT:
		return make_init(&gather);
	default:
		/* What the call does beside that is not known to be waiting for ranks. */
		gather_group(&gather, sync->span);
		return gather.memory;
	}
}
