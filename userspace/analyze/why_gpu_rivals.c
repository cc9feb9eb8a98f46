// SPDX-License-Identifier: Apache-2.0
/*
 * Which op a call waited for to the end: on one stream that is the last one. Of several streams'
 * last ones those are left that no other one waits for; which of them it was is not known.
 */
#include <stdlib.h>

#include "analyze/why_gpu_gather.h"

/* A copy that is slower than this, in bytes a nanosecond, does not wait for the bus. */
#define BYTES_PER_NS 1
#define RIVALS_MAX (4 * STREAMS_MAX)

bool is_small(const struct gather *gather, const struct model_gpu_op *op)
{
	uint64_t bytes;

	return (op->role == SITE_ROLE_COPY || op->role == SITE_ROLE_SET) &&
	       why_gpu_bytes(gather->walk->model, op, &bytes) &&
	       bytes / BYTES_PER_NS < (gather->to_ts - gather->from_ts) / 2;
}

/* What a STREAM_WAIT stands for; itself if that is not known. */
static struct model_gpu_op resolve(const struct gather *gather, struct model_gpu_op op)
{
	for (unsigned i = 0; i < WAITS_MAX && op.role == SITE_ROLE_STREAM_WAIT; i++) {
		struct model_gpu_op behind;

		if (!model_gpu_behind(gather->walk->gpu.model, &op, &behind))
			break;
		op = behind;
	}
	return op;
}

/* A small copy waits for the kernel in front of it. */
static bool kernel_before(const struct gather *gather, const struct model_gpu_op *copy,
			  struct model_gpu_op *kernel)
{
	struct model_gpu_op op = *copy;

	for (unsigned i = 0; i < OPS_MAX && op_before(gather, &op, &op); i++) {
		*kernel = resolve(gather, op);
		if (kernel->role == SITE_ROLE_LAUNCH || kernel->role == SITE_ROLE_COLLECTIVE)
			return true;
	}
	return false;
}

static void add(struct gather *gather, const struct model_gpu_op *op)
{
	for (size_t i = 0; op->role == SITE_ROLE_STREAM_WAIT && i < gather->rivals.len; i++)
		if (gather->rivals.data[i].node == op->node &&
		    gather->rivals.data[i].index == op->index)
			return;
	if (gather->rivals.len == RIVALS_MAX)
		gather->more = true;
	else if (!vec_push(&gather->rivals, *op))
		gather->memory = false;
}

/* A STREAM_WAIT is over when what it waits for is, and what is before it on its stream. */
static void replace_waits(struct gather *gather)
{
	const struct model_gpu *gpu = gather->walk->gpu.model;
	struct model_gpu_op behind;
	size_t kept = 0;

	for (size_t i = 0; i < gather->rivals.len && gather->memory; i++) {
		struct model_gpu_op op = gather->rivals.data[i];

		if (op.role != SITE_ROLE_STREAM_WAIT || !model_gpu_behind(gpu, &op, &behind))
			continue;
		if (!model_gpu_waited(gpu, &behind, gather->from_ts))
			add(gather, &behind);
		if (op_before(gather, &op, &op))
			add(gather, &op);
	}
	for (size_t i = 0; i < gather->rivals.len; i++) {
		struct model_gpu_op op = gather->rivals.data[i];

		if (op.role != SITE_ROLE_STREAM_WAIT || !model_gpu_behind(gpu, &op, &behind))
			gather->rivals.data[kept++] = op;
	}
	gather->rivals.len = kept;
}

/* Kernels in place of small copies; the others are left out if there is anything else. */
static void drop_small(struct gather *gather)
{
	size_t kept = 0;

	for (size_t i = 0; i < gather->rivals.len; i++) {
		struct model_gpu_op *op = &gather->rivals.data[i], kernel;

		if (!is_small(gather, op))
			gather->rivals.data[kept++] = *op;
		else if (kernel_before(gather, op, &kernel))
			gather->rivals.data[kept++] = kernel;
	}
	if (kept)
		gather->rivals.len = kept;
}

/* The latest first. */
static int op_compare(const void *left, const void *right)
{
	const struct model_gpu_op *a = left, *b = right;

	if (a->ts != b->ts)
		return a->ts > b->ts ? -1 : 1;
	return a->index > b->index ? -1 : a->index < b->index;
}

/* An op waits only for what was put on a stream before it. */
static void drop_waited(struct gather *gather)
{
	size_t kept = 0;

	qsort(gather->rivals.data, gather->rivals.len, sizeof(*gather->rivals.data), op_compare);
	gather_again(gather);
	for (size_t i = 0; i < gather->rivals.len && gather->memory; i++) {
		struct model_gpu_op op = gather->rivals.data[i];

		if (gather_has(gather, &op))
			continue;
		gather->rivals.data[kept++] = op;
		gather_op(gather, &op);
	}
	gather->rivals.len = kept;
}

bool gather_rivals(struct gather *gather, const struct model_gpu_awaited *awaited,
		   const struct model_gpu_op *last)
{
	struct model_gpu_op resolved = resolve(gather, *last);

	gather->rivals.len = 0;
	for (size_t i = 0; i < awaited->ops.len; i++)
		if (awaited->ops.data[i].maybe == last->maybe)
			add(gather, &awaited->ops.data[i]);
	replace_waits(gather);
	/* What they waited for has ended. */
	if (!gather->rivals.len)
		add(gather, &resolved);
	if (!gather->memory)
		return false;
	drop_small(gather);
	if (gather->rivals.len > 1)
		drop_waited(gather);
	return gather->memory;
}
