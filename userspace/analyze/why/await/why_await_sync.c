// SPDX-License-Identifier: Apache-2.0
/*
 * Finds what a call waits for: the work that earlier calls put on its streams, and the ranks that
 * have not arrived in the collectives among that work. We do not know when a GPU begins and
 * finishes its work, only that the last op of a stream finishes last.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/await/why_await.h"
#include "analyze/why/await/why_await_gather_internal.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"

/* Number of rivals to name in a text. */
#define RIVALS_NAMED 3

bool why_await_role_waits(unsigned role)
{
#define OTHER(...)
#define WAITS(id, ...) [SITE_ROLE_##id] = true,
	static const bool waits[SITE_ROLE_COUNT] = {SITE_ROLES(OTHER, WAITS, WAITS)};
#undef WAITS
#undef OTHER

	return role < SITE_ROLE_COUNT && waits[role];
}

/* ---- texts ---- */

/* Adds a text from a memory stream, and frees the stream. */
static uint32_t take_text(struct gather *gather, FILE *out, char **text, const size_t *len)
{
	uint32_t number;

	memory_require(!fclose(out));
	number = strtab_put(gather->walk->why->texts, *text, *len);
	free(*text);
	return number;
}

/* "waits for the GPU: kernel gemm on stream 0x7f01, and what was put there before" */
static void add_meaning(struct gather *gather)
{
	const char *object = strtab_get(gather->walk->why->texts, gather->sync->object);
	bool host = gather->sync->end != WHY_GPU;
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);

	fprintf(out, "waits for %s%s%s%s", host ? "" : "the GPU", *object && !host ? ": " : "",
		object, gather->queued ? ", and what was put there before" : "");
	gather->sync->meaning = take_text(gather, out, &text, &len);
}

/* ---- when all ranks have arrived ---- */

/* The span that the program was in when it put an op on a stream. */
static uint32_t span_of(const struct gather *gather, const struct model_gpu_op *op)
{
	const struct model *model = gather->walk->model;
	uint32_t parent = op->node == MODEL_NODE_SPAN ? model->spans.data[op->index].parent
						      : model->events.data[op->index].parent;

	return parent == MODEL_NONE && op->node == MODEL_NODE_SPAN ? op->index : parent;
}

/* "kernel gemm on stream 0x7f01" */
static void put_op(struct gather *gather, const struct model_gpu_op *op, FILE *out)
{
	const struct model_collective *collective = collective_of(gather, op);

	if (collective)
		fputs(collective_name(gather, collective), out);
	else
		why_await_put_op(out, gather->walk->model, op);
	fputs(" on ", out);
	why_await_put_stream(out, op->stream);
}

/* Whether an op is a collective of which not all arrivals are known. */
static bool op_is_incomplete(const struct gather *gather, const struct model_gpu_op *op)
{
	const struct model_collective *collective = collective_of(gather, op);

	return collective && collective_is_incomplete(collective);
}

/* ", launched in" and the span that the program was in. */
static void put_launched(const struct gather *gather, const struct model_gpu_op *op, FILE *out)
{
	const struct model *model = gather->walk->model;
	uint32_t span = span_of(gather, op);

	if (span < model->spans.len)
		fprintf(out, ", launched in %s",
			model_site(model, model->spans.data[span].site)->name);
}

/* "kernel gemm on stream 0x7f01, or kernel softmax on stream 0x7f02, or 3 more". `launched` adds
 * the spans. */
static void put_rivals(struct gather *gather, bool launched, FILE *out)
{
	size_t found = 0;

	for (size_t i = 0; i < gather->rivals.len; i++) {
		if (op_is_incomplete(gather, &gather->rivals.data[i]) || found++ >= RIVALS_NAMED)
			continue;
		fputs(found > 1 ? ", or " : "", out);
		put_op(gather, &gather->rivals.data[i], out);
		if (launched)
			put_launched(gather, &gather->rivals.data[i], out);
	}
	if (found > RIVALS_NAMED)
		fprintf(out, ", or %zu more", found - RIVALS_NAMED);
}

static void end_at_op(struct gather *gather, const struct model_gpu_op *op, bool alone)
{
	struct why_sync *sync = gather->sync;
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);

	sync->waits = true;
	/* The records do not say which thread runs a host function. */
	sync->end = op->host ? WHY_USER_WORK : WHY_GPU;
	sync->grade = alone && !gather->may && !op->host ? WHY_GRADE_CERTAIN : WHY_GRADE_LIKELY;
	sync->launch_ts = op->ts;
	sync->launch_thread = op->thread;
	sync->launch_span = span_of(gather, op);
	put_op(gather, op, out);
	sync->object = take_text(gather, out, &text, &len);
	add_meaning(gather);
}

/* The only rank of a collective without a known call; MODEL_NONE: there are more, or it is not
 * known. */
static uint32_t missing_rank(struct gather *gather, const struct model_collective *collective)
{
	uint32_t missing = MODEL_NONE, found = 0;
	bool *called;

	if (collective->from != MODEL_NONE)
		return collective->calls[0].rank == collective->from ? collective->to
								     : collective->from;
	if (collective->count + 1 != collective->nranks ||
	    gather_calls(gather, collective) < collective->count)
		return MODEL_NONE;
	called = memory_zeroed(collective->nranks, sizeof(*called));
	for (uint32_t i = 0; i < collective->count; i++)
		if (collective->calls[i].rank < collective->nranks)
			called[collective->calls[i].rank] = true;
	for (uint32_t rank = 0; rank < collective->nranks; rank++) {
		found += called[rank];
		if (!called[rank])
			missing = rank;
	}
	free(called);
	return found == collective->count ? missing : MODEL_NONE;
}

/* Whether the ranks of a collective may have the same numbers as in the job. A message has two
 * ranks, and its communicator is not known. */
static bool has_ranks_of_job(const struct gather *gather, const struct model_collective *collective)
{
	const struct model *model = gather->walk->model;
	const struct model_process *process =
		model_process_of(model, model->spans.data[gather->sync->span].thread);

	return collective->from != MODEL_NONE || !process || !process->world_size ||
	       collective->nranks == process->world_size;
}

/* Whether the other ranks of a collective are traced, although it is not known which of their calls
 * belong to it. `rank`: the only one, or MODEL_NONE. */
static bool others_are_traced(const struct gather *gather,
			      const struct model_collective *collective, uint32_t rank)
{
	const struct why_awaits *awaits = &gather->walk->awaits;

	if (collective->alignment != COLLECTIVE_ALONE)
		return false;
	if (collective->members > 1 || !collective->mpi)
		return collective->members > 1;
	if (rank != MODEL_NONE && has_ranks_of_job(gather, collective))
		return map_get(&awaits->ranks, rank) != MAP_NONE;
	return awaits->mpi_ranks;
}

/* The call waits for a collective with ranks that made no known call, or at unknown times. Another
 * op may be behind it or on another stream: then we do not know which of them took so long. */
static void end_at_others(struct gather *gather, const struct model_collective *collective)
{
	struct why_sync *sync = gather->sync;
	const char *name = collective_name(gather, collective);
	uint32_t rank = missing_rank(gather, collective);
	bool traced = others_are_traced(gather, collective, rank);
	bool rivals = false;
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);

	for (size_t i = 0; i < gather->rivals.len; i++)
		rivals |= !op_is_incomplete(gather, &gather->rivals.data[i]);
	sync->waits = true;
	sync->end = WHY_COLLECTIVE;
	sync->grade = rank == MODEL_NONE || rivals ? WHY_GRADE_UNKNOWN : WHY_GRADE_LIKELY;
	if (rank != MODEL_NONE)
		fprintf(out, "rank %" PRIu32 " %s %s, %s", rank,
			collective->from == MODEL_NONE ? "in" : "at the other end of", name,
			traced ? "whose calls cannot be distinguished" : "which is not traced");
	else
		fprintf(out, "ranks in %s%s", name,
			!collective->comparable ? ", on hosts whose clocks are not aligned"
			: traced                ? ", whose calls cannot be distinguished"
						: " that are not traced");
	if (rivals) {
		fputs(", or ", out);
		put_rivals(gather, false, out);
	}
	sync->object = take_text(gather, out, &text, &len);
	out = memory_stream(&text, &len);
	fprintf(out, "waits for %s", strtab_get(gather->walk->why->texts, sync->object));
	sync->meaning = take_text(gather, out, &text, &len);
}

/* Whether the call may wait for another rank's GPU in a collective that is none of the rivals. */
static bool may_wait_for_peer_gpu(const struct gather *gather)
{
	for (size_t i = 0; i < gather->rivals.len; i++) {
		const struct model_collective *collective =
			collective_of(gather, &gather->rivals.data[i]);

		if (collective && (collective == gather->peers_busy || gather->rivals.len == 1))
			return false;
	}
	return gather->peers_busy;
}

/*
 * The call waits for one of several ops, and we do not know which took so long. They may be on
 * different streams. Or (`peer`) the op follows a collective that all ranks have called, and that
 * ends only when the slowest GPU has reached it.
 */
static void end_at_one_of(struct gather *gather, bool peer)
{
	struct why_sync *sync = gather->sync;
	uint32_t *numbers[] = {&sync->object, &sync->meaning};
	bool gpu = peer, host = false;

	for (size_t i = 0; i < gather->rivals.len; i++) {
		gpu |= !gather->rivals.data[i].host;
		host |= gather->rivals.data[i].host;
	}
	sync->waits = true;
	sync->end = gpu ? WHY_GPU : WHY_USER_WORK;
	sync->grade = WHY_GRADE_UNKNOWN;
	for (unsigned meaning = 0; meaning < 2; meaning++) {
		char *text = NULL;
		size_t len;
		FILE *out = memory_stream(&text, &len);

		if (meaning)
			fprintf(out, "waits for %s", host ? "" : "the GPU: ");
		put_rivals(gather, meaning, out);
		if (peer)
			fprintf(out, ", or another rank's GPU before %s",
				collective_name(gather, gather->peers_busy));
		*numbers[meaning] = take_text(gather, out, &text, &len);
	}
}

/* Nothing is known about the stream: its work was put there before the capture. */
static void end_at_unknown(struct gather *gather)
{
	const struct model *model = gather->walk->model;
	struct why_sync *sync = gather->sync;
	char *text = NULL;
	size_t len;
	FILE *out;

	sync->waits = true;
	sync->spins = false;
	sync->end = WHY_GPU;
	sync->grade = WHY_GRADE_LIKELY;
	if (role_of(model, sync->span) == SITE_ROLE_SYNC_STREAM) {
		out = memory_stream(&text, &len);
		why_await_put_stream(out, model_gpu_stream(gather->walk->awaits.gpu, sync->span));
		sync->object = take_text(gather, out, &text, &len);
	}
	add_meaning(gather);
}

/* ---- calls ---- */

/* All known ranks have arrived. */
static void end_at_rivals(struct gather *gather)
{
	const struct model_gpu_op *op = gather->rivals.data;
	const struct model_collective *collective = collective_of(gather, op);
	bool peer = may_wait_for_peer_gpu(gather);

	if (op_is_incomplete(gather, op) || gather->incomplete)
		end_at_others(gather,
			      op_is_incomplete(gather, op) ? collective : gather->incomplete);
	else if (gather->rivals.len > 1 || peer)
		end_at_one_of(gather, peer);
	else /* A collective also waits for the GPUs of the other ranks. */
		end_at_op(gather, op,
			  !gather->others && !collective && op->role != SITE_ROLE_P2P &&
				  op->role != SITE_ROLE_SEND && op->role != SITE_ROLE_RECV);
}

/* The last op of a stream that is certainly awaited; otherwise of one that may be. */
static const struct model_gpu_op *last_of(const struct model_gpu_awaited *awaited)
{
	for (size_t i = 0; i < awaited->ops.len; i++)
		if (!awaited->ops.data[i].maybe)
			return &awaited->ops.data[i];
	return awaited->ops.len ? &awaited->ops.data[0] : NULL;
}

static void end_at_work(struct gather *gather, const struct model_gpu_awaited *awaited)
{
	gather_rivals(gather, awaited, last_of(awaited));
	end_at_rivals(gather);
}

static void make_sync(struct gather *gather, const struct model_gpu_awaited *awaited)
{
	const struct model_gpu_op *last = last_of(awaited);

	for (size_t i = 0; i < awaited->ops.len; i++)
		if (!awaited->ops.data[i].maybe || awaited->ops.data[i].channel == last->channel)
			gather_op(gather, &awaited->ops.data[i]);
	gather->sync->spins = true;
	if (last)
		end_at_work(gather, awaited);
	else if (!model_gpu_is_known(gather->walk->awaits.gpu, gather->sync->span))
		end_at_unknown(gather);
}

/* Such a call may wait or not. If no op is known, the wait is for something else. */
static void make_may_sync(struct gather *gather, const struct model_gpu_awaited *awaited)
{
	gather->may = true;
	for (size_t i = 0; i < awaited->ops.len; i++)
		gather_op(gather, &awaited->ops.data[i]);
	if (awaited->ops.len)
		end_at_work(gather, awaited);
}

/*
 * The records do not say whether the host's memory is pageable. From the device into pageable
 * memory, a copy's call returns only when the copy is done:
 * https://docs.nvidia.com/cuda/cuda-driver-api/api-sync-behavior.html
 * So many bytes take less than ten microseconds on any bus. A call that takes GPU_COPY_WAITS_NS for
 * them has waited.
 */
#define SMALL_COPY_BYTES 65536

static bool is_to_host(const struct gather *gather, const struct model_gpu_op *op)
{
	const struct model *model = gather->walk->model;
	struct value kind;

	if (model_gpu_value(model, op->node, op->index, "kind", &kind))
		return kind.type == WAFFLE_KEY_STR && kind.text_len == strlen("DtoH") &&
		       !memcmp(kind.text, "DtoH", kind.text_len);
	/* A function of the driver has the direction in its name. */
	return strstr(model_site(model, model->spans.data[op->index].site)->name, "DtoH");
}

/* Whether a small copy from the device took so long that it has waited for what was before it. */
static bool is_held_up(const struct gather *gather, const struct model_gpu_op *op)
{
	uint64_t bytes;

	return is_to_host(gather, op) && why_await_bytes(gather->walk->model, op, &bytes) &&
	       bytes <= SMALL_COPY_BYTES && gather->to_ts - gather->from_ts >= GPU_COPY_WAITS_NS;
}

/* A copy with a stream mostly returns at once. By the GPU's times we know which one waited. Without
 * them, blocked time in a small copy may be for a lock, too. */
static void make_stream_copy(struct gather *gather, const struct model_gpu_op *op)
{
	const struct why_awaits *awaits = &gather->walk->awaits;
	bool timed = why_await_has_operations(gather->walk, gather->pid);
	struct model_gpu_awaited before = {0};

	if (timed ? !why_await_timed(gather->walk, gather->sync->span) : !is_held_up(gather, op))
		return;
	model_gpu_before(awaits->gpu, op, &before);
	gather->may = true;
	for (size_t i = 0; i < before.ops.len; i++)
		if (!before.ops.data[i].maybe)
			gather_op(gather, &before.ops.data[i]);
	gather->more |= before.more;
	if (before.ops.len) {
		gather->sync->spins = true;
		gather->sync->polls = !timed;
		end_at_work(gather, &before);
	}
	vec_free(&before.ops);
}

/* A copy without a stream waits for the work before it, and for itself. */
static void make_copy(struct gather *gather, const struct model_gpu_awaited *awaited)
{
	const struct model_gpu *gpu = gather->walk->awaits.gpu;
	const struct model *model = gather->walk->model;
	struct model_gpu_op op = model_gpu_op(gpu, gather->sync->span);
	const struct model_gpu_op *last = last_of(awaited);
	bool small = is_small(gather, &op);

	if (model_gpu_value(model, op.node, op.index, "stream", &(struct value){0})) {
		make_stream_copy(gather, &op);
		return;
	}
	for (size_t i = 0; i < awaited->ops.len; i++)
		if (!awaited->ops.data[i].maybe)
			gather_op(gather, &awaited->ops.data[i]);
	gather->sync->spins = true;
	if (last && (small || !last->maybe))
		gather_rivals(gather, awaited, last);
	gather->others |= last != NULL;
	if (!last || !small)
		gather_copy(gather, &op);
	end_at_rivals(gather);
}

/* Number of the calls that create communicators and begin before ts. */
static size_t inits_before(const struct why_walk *walk, uint64_t ts)
{
	return lower_bound(walk->awaits.inits.len, i,
			   walk->model->spans.data[walk->awaits.inits.data[i].span].start_ts < ts);
}

/* Finds calls that create a communicator of the same size and overlap this call. If there is one
 * per rank, it waits for the last of them. */
static void make_init(struct gather *gather)
{
	struct why_walk *walk = gather->walk;
	const struct model *model = walk->model;
	uint32_t own = gather->sync->span, last = own, found = 1;
	struct value nranks, other, rank;
	uint64_t last_rank = 0;

	if (!model_gpu_value(model, MODEL_NODE_SPAN, own, "nranks", &nranks) || nranks.u64 < 2)
		return;
	for (size_t i = inits_before(walk, gather->to_ts);
	     i-- && walk->awaits.inits.data[i].until_ts > gather->from_ts;) {
		uint32_t at = walk->awaits.inits.data[i].span;
		const struct model_span *span = &model->spans.data[at];

		if (!why_await_steps(walk, 1))
			return;
		if (at == own || span->end_ts <= gather->from_ts ||
		    !model_gpu_value(model, MODEL_NODE_SPAN, at, "nranks", &other) ||
		    other.u64 != nranks.u64 ||
		    !model_gpu_value(model, MODEL_NODE_SPAN, at, "rank", &rank))
			continue;
		found++;
		/* The first of the last ones. */
		if (span->start_ts > model->spans.data[own].start_ts &&
		    span->start_ts >= model->spans.data[last].start_ts) {
			last = at;
			last_rank = rank.u64;
		}
	}
	if (found != nranks.u64 || last == own)
		return;
	gather_arrival(gather, (struct why_arrival){
				       .ts = model->spans.data[last].start_ts,
				       .site = model->spans.data[last].site,
				       .span = last,
				       .thread = model->spans.data[last].thread,
				       .rank = (uint32_t)last_rank,
				       .grade = WHY_GRADE_LIKELY,
			       });
}

/* Whether a call of MPI never waits: it begins an operation, or asks whether one is complete. */
static bool returns_at_once(const struct site_info *site)
{
	bool waits = site->role == SITE_ROLE_MPI_WAIT || site->role == SITE_ROLE_MPI_WAIT_ANY ||
		     site->role == SITE_ROLE_MPI_WAIT_SOME;

	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		if (!strcmp(site->keys[i].name, "done") ||
		    (!waits && !strcmp(site->keys[i].name, "request")))
			return true;
	return false;
}

/* Number of a call's operations of which nothing is known: they began before the capture, or on a
 * communicator that was created before it. */
static uint64_t count_unknown(const struct gather *gather, unsigned role)
{
	uint64_t all = role == SITE_ROLE_MPI_SENDRECV ? 2 : 1;
	uint64_t known = gather->found + (uint64_t)model_comm_with_nobody(gather->walk->awaits.comm,
									  gather->sync->span);
	struct value count;

	if (role == SITE_ROLE_MPI_WAIT && model_gpu_value(gather->walk->model, MODEL_NODE_SPAN,
							  gather->sync->span, "count", &count))
		all = (int32_t)count.u64 > 0 ? (uint32_t)count.u64 : 0;
	return known < all ? all - known : 0;
}

/* The rank that a call receives from, which is the only one that it may wait for; -1: there are
 * more, or it is not known. */
static int32_t only_source(const struct gather *gather, uint64_t unknown)
{
	struct value source;

	if (unknown > 1 || gather->found ||
	    !model_gpu_value(gather->walk->model, MODEL_NODE_SPAN, gather->sync->span, "source",
			     &source))
		return -1;
	return (int32_t)source.u64;
}

/* The call may wait for ranks of which nothing is known. */
static void end_at_unknown_ranks(struct gather *gather, const struct site_info *site,
				 uint64_t unknown)
{
	int32_t source = only_source(gather, unknown);
	struct why_sync *sync = gather->sync;
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);

	sync->waits = true;
	sync->spins = true;
	sync->end = WHY_COLLECTIVE;
	sync->grade = source >= 0 ? WHY_GRADE_LIKELY : WHY_GRADE_UNKNOWN;
	if (source >= 0)
		fprintf(out, "rank %" PRId32 " at the other end of %s, whose call is not known",
			source, site->name);
	else
		fprintf(out, "ranks of %s, whose calls are not known", site->name);
	sync->object = take_text(gather, out, &text, &len);
	out = memory_stream(&text, &len);
	fprintf(out, "waits for %s", strtab_get(gather->walk->why->texts, sync->object));
	sync->meaning = take_text(gather, out, &text, &len);
}

/* A call of MPI waits for the ranks. When all known ones have arrived, it still waits for those
 * that are not traced or not matched, unless data from them is not needed. */
static void make_mpi(struct gather *gather)
{
	const struct model *model = gather->walk->model;
	const struct site_info *site =
		model_site(model, model->spans.data[gather->sync->span].site);
	uint64_t unknown;

	gather->sync->mpi = true;
	gather_mpi(gather, gather->sync->span);
	if (returns_at_once(site))
		return;
	unknown = count_unknown(gather, site->role);
	if (gather->incomplete && collective_needs_others(gather, gather->incomplete)) {
		gather->sync->polls = !gather->incomplete->synchronizes;
		gather->sync->spins = true;
		end_at_others(gather, gather->incomplete);
	} else if (unknown && site->role != SITE_ROLE_MPI_SEND &&
		   site->role != SITE_ROLE_MPI_COMM_FREE) {
		gather->sync->polls = true;
		end_at_unknown_ranks(gather, site, unknown);
	} else if (gather->incomplete || unknown) {
		/* A long message is sent when its receiver has come. */
		gather->sync->polls = true;
	}
}

/* A host function that the call may wait for; NULL: none. */
static const struct model_gpu_op *host_rival(const struct gather *gather)
{
	for (size_t i = 0; i < gather->rivals.len; i++)
		if (gather->rivals.data[i].host)
			return &gather->rivals.data[i];
	return NULL;
}

/* Sets what the path says while a thread runs the host function. */
static void set_host(struct gather *gather, const struct model_gpu_op *op)
{
	struct strtab *texts = gather->walk->why->texts;
	struct why_sync *sync = gather->sync;
	struct value name;
	char *text = NULL;
	size_t len;
	FILE *out;

	if (!model_gpu_value(gather->walk->model, op->node, op->index, "host", &name) ||
	    name.type != WAFFLE_KEY_STR || !name.text_len)
		return;
	out = memory_stream(&text, &len);
	put_op(gather, op, out);
	sync->host_object = take_text(gather, out, &text, &len);
	out = memory_stream(&text, &len);
	fprintf(out, "waits for %s", strtab_get(texts, sync->host_object));
	sync->host_meaning = take_text(gather, out, &text, &len);
	sync->host_name = strtab_put(texts, name.text, name.text_len);
}

/* Decides by the role. `awaited` is what the call waits for on streams. */
static void make(struct gather *gather, const struct model_gpu_awaited *awaited)
{
	unsigned role = role_of(gather->walk->model, gather->sync->span);

	if (site_role_is_mpi(role)) {
		make_mpi(gather);
		return;
	}
	switch (role) {
	case SITE_ROLE_SYNC_STREAM:
	case SITE_ROLE_SYNC_EVENT:
	case SITE_ROLE_SYNC_DEVICE:
		make_sync(gather, awaited);
		break;
	case SITE_ROLE_COPY:
		make_copy(gather, awaited);
		break;
	case SITE_ROLE_MAY_SYNC:
		make_may_sync(gather, awaited);
		break;
	case SITE_ROLE_COMM_INIT:
		make_init(gather);
		break;
	default:
		/* Besides waiting for ranks, the call does other work. */
		gather_group(gather, gather->sync->span);
	}
}

void why_await_sync_make(struct why_walk *walk, struct why_sync *sync)
{
	const struct model *model = walk->model;
	const struct model_span *span = &model->spans.data[sync->span];
	struct model_gpu_awaited awaited = {0};
	struct gather gather = {
		.walk = walk,
		.sync = sync,
		.from_ts = span->start_ts,
		.to_ts = span->end_ts,
		.pid = model->threads.data[span->thread].pid,
	};
	const struct model_gpu_op *host;

	sync->arrival = (uint32_t)walk->awaits.arrivals.len;
	model_gpu_awaited(walk->awaits.gpu, sync->span, &awaited);
	make(&gather, &awaited);
	host = host_rival(&gather);
	gather_sort(&gather);
	if (why_await_by_times(walk, sync, sync->arrival_count || sync->end == WHY_COLLECTIVE,
			       host != NULL))
		gather.more = awaited.more = false;
	else if (host)
		set_host(&gather, host);
	/* A late rank may be among what was not searched. */
	if ((gather.more || awaited.more) && sync->waits)
		sync->grade = WHY_GRADE_UNKNOWN;
	vec_free(&awaited.ops);
	vec_free(&gather.around.ops);
	vec_free(&gather.todo);
	vec_free(&gather.rivals);
	vec_free(&gather.tops);
	map_free(&gather.seen);
	map_free(&gather.arrived);
}
