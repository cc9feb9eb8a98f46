// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the op that took a call so long. On one stream it is most likely the last op. If several
 * streams are awaited, directly or through others, we do not know which had the most work. The same
 * holds for the GPU and host functions on one stream.
 */
#include <stdlib.h>

#include "analyze/why/await/why_await.h"
#include "analyze/why/await/why_await_gather_internal.h"
#include "util/memory.h"

/* A copy slower than this, in bytes per nanosecond, is not limited by the bus. */
#define BYTES_PER_NS 1

bool is_small(const struct gather *gather, const struct model_gpu_op *op)
{
	uint64_t bytes;

	return (op->role == SITE_ROLE_COPY || op->role == SITE_ROLE_SET) &&
	       why_await_bytes(gather->walk->model, op, &bytes) &&
	       bytes / BYTES_PER_NS < (gather->to_ts - gather->from_ts) / 2;
}

/* Kinds of ops of which we keep the last one per stream. */
enum rival_kind { KIND_GPU, KIND_HOST, KIND_EVENT, KIND_COUNT };

struct stream_last {
	struct model_gpu_op ops[KIND_COUNT];
	bool found[KIND_COUNT];
	bool queued; /* more work precedes them */
};

/* A small copy waits for the kernel before it on the stream, so the kernel takes its place. */
static bool takes_place(const struct gather *gather, const struct model_gpu_op *op,
			const struct model_gpu_op *behind)
{
	return (op->role == SITE_ROLE_LAUNCH || op->role == SITE_ROLE_COLLECTIVE) &&
	       is_small(gather, behind);
}

/* Called for each op of a stream, from last to first. */
static void look_at(struct gather *gather, const struct model_gpu_op *op, struct stream_last *last)
{
	enum rival_kind kind = op->host ? KIND_HOST : KIND_GPU;
	struct model_gpu_op behind;

	if (op->role == SITE_ROLE_STREAM_WAIT) {
		/* The work that it stands for is on another stream. */
		if (model_gpu_behind(gather->walk->awaits.gpu, op, &behind))
			return;
		/* A wait for an unknown event is named only if nothing follows it. */
		if (last->found[KIND_GPU] || last->found[KIND_HOST] || last->found[KIND_EVENT]) {
			gather->others = true;
			return;
		}
		kind = KIND_EVENT;
	}
	if (last->found[kind] && !takes_place(gather, op, &last->ops[kind])) {
		last->queued = true;
		return;
	}
	gather->others |= last->found[kind];
	last->queued = last->queued && !last->found[kind];
	last->ops[kind] = *op;
	last->found[kind] = true;
}

static void add_stream(struct gather *gather, struct model_gpu_op op)
{
	struct stream_last last = {0};

	if (model_gpu_waited(gather->walk->awaits.gpu, &op, gather->from_ts))
		return;
	do {
		look_at(gather, &op, &last);
		gather_count(gather);
	} while (!gather->more && op_before(gather, &op, &op));
	gather->queued |= last.queued;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (last.found[kind])
			vec_add(&gather->rivals, last.ops[kind]);
}

/* Leaves out small copies if there is anything else. */
static void drop_small(struct gather *gather)
{
	size_t kept = 0;

	for (size_t i = 0; i < gather->rivals.len; i++)
		kept += !is_small(gather, &gather->rivals.data[i]);
	if (!kept || kept == gather->rivals.len)
		return;
	gather->others = true;
	kept = 0;
	for (size_t i = 0; i < gather->rivals.len; i++)
		if (!is_small(gather, &gather->rivals.data[i]))
			gather->rivals.data[kept++] = gather->rivals.data[i];
	gather->rivals.len = kept;
}

static void sort_rivals(struct gather *gather)
{
	qsort(gather->rivals.data, gather->rivals.len, sizeof(*gather->rivals.data),
	      model_gpu_op_compare);
}

void gather_rivals(struct gather *gather, const struct model_gpu_awaited *awaited,
		   const struct model_gpu_op *last)
{
	gather->rivals.len = 0;
	gather->others = last->maybe;
	gather->queued = false;
	gather_again(gather);
	for (size_t i = 0; i < awaited->ops.len; i++) {
		if (awaited->ops.data[i].maybe == last->maybe)
			gather_op(gather, &awaited->ops.data[i]);
		else
			gather->others = true;
	}
	gather->ops = 0;
	for (size_t i = 0; i < gather->tops.len; i++)
		add_stream(gather, gather->tops.data[i]);
	/* Only waits for finished work were found. */
	if (!gather->rivals.len) {
		vec_add(&gather->rivals, *last);
		gather->others = true;
	}
	drop_small(gather);
	sort_rivals(gather);
	gather->others |= gather->queued;
}

void gather_copy(struct gather *gather, const struct model_gpu_op *copy)
{
	size_t kept = 0;

	for (size_t i = 0; i < gather->rivals.len; i++) {
		if (gather->rivals.data[i].channel != copy->channel || gather->rivals.data[i].host)
			gather->rivals.data[kept++] = gather->rivals.data[i];
		else
			gather->queued = gather->others = true;
	}
	gather->rivals.len = kept;
	vec_add(&gather->rivals, *copy);
	sort_rivals(gather);
}
