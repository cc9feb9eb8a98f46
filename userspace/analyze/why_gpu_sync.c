// SPDX-License-Identifier: Apache-2.0
/*
 * What a call waits for: the work that is on its streams, as the calls before it say, and the ranks
 * that the collectives among that work have yet to hear of. When a GPU began and ended its work is
 * not known; what was put on a stream last ends last.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/why_walk.h"

/* Ops of a call's streams that are looked at for collectives. */
#define OPS_MAX 1024
/* Streams that are looked at, and STREAM_WAITs that lead from one to another. */
#define STREAMS_MAX 16
/* A copy that is slower than this, in bytes a nanosecond, does not wait for the bus. */
#define BYTES_PER_NS 1

/* What is gathered of a call. */
struct gather {
	struct why_walk *walk;
	struct why_sync *sync;
	uint64_t from_ts, to_ts; /* of the call */
	uint32_t pid;
	uint32_t ops; /* looked at so far */
	struct {
		uint32_t pid;
		uint64_t stream, ts;
	} seen[STREAMS_MAX]; /* streams, and up to when */
	uint32_t seen_count;
	const struct model_collective *open; /* the last one that has ranks that are not traced */
	bool queued;                         /* more than what is named has to be done */
	bool memory;
};

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
	[SITE_ROLE_GROUP_END] = {true, false},
	[SITE_ROLE_COMM_INIT] = {true, false},
};

bool why_gpu_role_waits(unsigned role)
{
	return role < SITE_ROLE_COUNT && roles[role].waits;
}

static unsigned role_of(const struct model *model, uint32_t span)
{
	return model_site(model, model->spans.data[span].site)->role;
}

/* ---- arrivals ---- */

static void add_arrival(struct gather *gather, struct why_arrival arrival)
{
	struct why_gpu *gpu = &gather->walk->gpu;
	struct why_sync *sync = gather->sync;
	uint32_t at;

	if (arrival.ts <= gather->from_ts)
		return;
	for (uint32_t i = 0; i < sync->arrival_count; i++)
		if (gpu->arrivals.data[sync->arrival + i].collective == arrival.collective)
			return;
	if (!vec_push(&gpu->arrivals, arrival)) {
		gather->memory = false;
		return;
	}
	/* By ts. */
	for (at = (uint32_t)gpu->arrivals.len - 1;
	     at > sync->arrival && gpu->arrivals.data[at - 1].ts > arrival.ts; at--)
		gpu->arrivals.data[at] = gpu->arrivals.data[at - 1];
	gpu->arrivals.data[at] = arrival;
	sync->arrival_count++;
}

static bool has_others(const struct model_collective *collective)
{
	if (collective->alignment == COLLECTIVE_ALONE)
		return collective->nranks != 1;
	return collective->count < collective->nranks;
}

/* The rank that arrived last, if that is another one than the call's. */
static void add_collective(struct gather *gather, const struct model_collective *collective)
{
	const struct model_rank_call *last;

	if (!collective)
		return;
	if (!gather->open && has_others(collective))
		gather->open = collective;
	if (collective->alignment == COLLECTIVE_ALONE || collective->count < 2)
		return;
	last = &collective->calls[collective->last];
	if (last->pid == gather->pid &&
	    last->thread == gather->walk->model->spans.data[gather->sync->span].thread)
		return;
	add_arrival(gather, (struct why_arrival){
				    .ts = last->arrival_ts,
				    .collective = collective,
				    .site = collective->site,
				    .span = last->span,
				    .thread = last->thread,
				    .rank = last->rank,
				    .grade = collective->alignment == COLLECTIVE_BY_CREATION
						     ? WHY_GRADE_CERTAIN
						     : WHY_GRADE_LIKELY,
			    });
}

/* The collective that an op is, or that the library made of one; NULL: none. */
static const struct model_collective *collective_of(const struct gather *gather,
						    const struct model_gpu_op *op)
{
	const struct model *model = gather->walk->model;
	uint32_t span;

	if (op->role == SITE_ROLE_COLLECTIVE)
		return op->node == MODEL_NODE_SPAN
			       ? model_collective_of(gather->walk->gpu.model, op->index)
			       : NULL;
	if (op->role != SITE_ROLE_LAUNCH || op->node != MODEL_NODE_EVENT)
		return NULL;
	for (span = model->events.data[op->index].parent; span < model->spans.len;
	     span = model->spans.data[span].parent) {
		unsigned role = role_of(model, span);

		if (role == SITE_ROLE_COLLECTIVE || role == SITE_ROLE_GROUP_END)
			return model_collective_of(gather->walk->gpu.model, span);
	}
	return NULL;
}

/* ---- work ---- */

/* Whether that part of a stream was looked at; it is marked so. */
static bool is_seen(struct gather *gather, const struct model_gpu_op *op)
{
	for (uint32_t i = 0; i < gather->seen_count; i++) {
		bool seen = gather->seen[i].ts >= op->ts;

		if (gather->seen[i].pid != op->pid || gather->seen[i].stream != op->stream)
			continue;
		if (!seen)
			gather->seen[i].ts = op->ts;
		return seen;
	}
	if (gather->seen_count == STREAMS_MAX)
		return true;
	gather->seen[gather->seen_count].pid = op->pid;
	gather->seen[gather->seen_count].stream = op->stream;
	gather->seen[gather->seen_count++].ts = op->ts;
	return false;
}

/* What is on the stream in front of an op that is not done; false: nothing is known to be. */
static bool before(const struct gather *gather, const struct model_gpu_op *op,
		   struct model_gpu_op *previous)
{
	return model_gpu_previous(gather->walk->gpu.model, op, previous) &&
	       !model_gpu_waited(gather->walk->gpu.model, previous, gather->from_ts);
}

/* All that has to be done before an op is: of its stream, and of those that that waits for. */
static void look_at(struct gather *gather, const struct model_gpu_op *last)
{
	const struct model_gpu *gpu = gather->walk->gpu.model;
	struct model_gpu_op behind[STREAMS_MAX], op = *last;
	uint32_t todo = 0;

	if (is_seen(gather, &op))
		return;
	for (;;) {
		add_collective(gather, collective_of(gather, &op));
		if (op.role == SITE_ROLE_STREAM_WAIT && todo < STREAMS_MAX &&
		    model_gpu_behind(gpu, &op, &behind[todo]) && !is_seen(gather, &behind[todo]))
			todo++;
		if (gather->ops++ < OPS_MAX && before(gather, &op, &op))
			continue;
		if (!todo)
			return;
		op = behind[--todo];
	}
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
			fputs(model_site(gather->walk->model, collective->site)->name, out);
		else
			why_gpu_put_op(out, gather->walk->model, op);
		fputs(" on ", out);
		why_gpu_put_stream(out, op->stream);
	}
	return take_text(gather, out, &text, &len, &sync->object) && add_meaning(gather);
}

/* The one rank of a collective that is not traced; MODEL_NONE: there are more. */
static uint32_t missing_rank(const struct model_collective *collective)
{
	uint32_t missing = MODEL_NONE;

	if (collective->alignment == COLLECTIVE_ALONE && collective->count != 1)
		return MODEL_NONE;
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

/* A collective with ranks that were not traced is all that is known to be on the stream. */
static bool end_at_others(struct gather *gather, const struct model_collective *collective)
{
	struct why_sync *sync = gather->sync;
	const char *name = model_site(gather->walk->model, collective->site)->name;
	uint32_t rank = missing_rank(collective);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	sync->waits = true;
	sync->end = WHY_COLLECTIVE;
	sync->grade = rank == MODEL_NONE ? WHY_GRADE_UNKNOWN : WHY_GRADE_LIKELY;
	if (out && rank != MODEL_NONE)
		fprintf(out, "rank %" PRIu32 " in %s, which is not traced", rank, name);
	else if (out && collective->alignment == COLLECTIVE_ALONE && collective->count > 1)
		fprintf(out, "ranks in %s, whose calls cannot be told apart", name);
	else if (out)
		fprintf(out, "ranks in %s that are not traced", name);
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
	for (unsigned i = 0; i < OPS_MAX && before(gather, &op, &op); i++) {
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

	alone = alone && !before(gather, &op, &other);
	op = resolve(gather, op);
	alone = alone && !before(gather, &op, &other);
	if (kernel_before(gather, &op, &other)) {
		op = other;
		alone = false;
	}
	gather->queued = !alone;
	collective = collective_of(gather, &op);
	if (collective && has_others(collective))
		return end_at_others(gather, collective);
	/* Of a collective the other ranks' GPUs are waited for as well. */
	return end_at_op(gather, &op,
			 alone && !collective && !gather->open && op.role != SITE_ROLE_P2P);
}

static bool make_sync(struct gather *gather)
{
	const struct why_walk *walk = gather->walk;
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX];
	uint32_t count =
		model_gpu_awaited(walk->gpu.model, gather->sync->span, ops, MODEL_GPU_AWAITED_MAX);

	for (uint32_t i = 0; i < count; i++)
		look_at(gather, &ops[i]);
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
		look_at(gather, &ops[i]);
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
	add_arrival(gather, (struct why_arrival){
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
		add_collective(&gather, model_collective_of(walk->gpu.model, sync->span));
		return gather.memory;
	}
}
