/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of why_gpu: what is gathered of a call that waits. */
#ifndef WAFFLE_ANALYZE_WHY_GPU_GATHER_H
#define WAFFLE_ANALYZE_WHY_GPU_GATHER_H

#include "analyze/why_walk.h"

/* Ops of a call's streams that are looked at for collectives. */
#define OPS_MAX 65536
/* Streams that are looked at. */
#define STREAMS_MAX 4096

/* What is gathered of a call. */
struct gather {
	struct why_walk *walk;
	struct why_sync *sync;
	uint64_t from_ts, to_ts; /* of the call */
	uint32_t pid;
	uint32_t ops;                    /* looked at so far */
	struct map seen;                 /* channel → index in tops */
	VEC(struct model_gpu_op) tops;   /* of each stream, the last one that was looked at */
	VEC(struct model_gpu_op) todo;   /* on other streams */
	VEC(struct model_gpu_op) rivals; /* any of them may have taken so long; the latest first */
	struct model_gpu_awaited around;
	bool more;                           /* there is more than can be looked at */
	const struct model_collective *open; /* the last one that has ranks that are not traced */
	const struct model_collective *met;  /* the last one that waits for other GPUs, perhaps */
	bool may;                            /* whether the call waits is not known */
	bool again;                          /* collectives were looked at before */
	bool others;                         /* more than the rivals has to be done, or may have */
	bool queued;                         /* of that, something in front of a rival */
	bool memory;
};

static inline unsigned role_of(const struct model *model, uint32_t span)
{
	return model_site(model, model->spans.data[span].site)->role;
}

/* ---- why_gpu_gather.c ---- */

/* The last rank of a collective, if that is another one than the call's. */
void gather_collective(struct gather *gather, const struct model_collective *collective);
/* Those of all collectives in a group, by its end or one call in it. */
void gather_group(struct gather *gather, uint32_t span);
/* A rank that came after the call began. */
void gather_arrival(struct gather *gather, struct why_arrival arrival);
/* Those of all collectives that have to be done before an op is: of its stream, and of those that
 * that waits for. */
void gather_op(struct gather *gather, const struct model_gpu_op *last);

/* Looks anew at what gather_op() says. */
void gather_again(struct gather *gather);
bool collective_has_others(const struct model_collective *collective);
/* The collective that an op is, or that the library made of one; NULL: none. */
const struct model_collective *collective_of(const struct gather *gather,
					     const struct model_gpu_op *op);
/* The name of the call by which the process takes part in it. */
const char *collective_name(const struct gather *gather, const struct model_collective *collective);
/* What is on the stream in front of an op that is not done; false: nothing is known to be. */
bool op_before(const struct gather *gather, const struct model_gpu_op *op,
	       struct model_gpu_op *previous);

/* ---- why_gpu_rivals.c ---- */

/* A copy or set that can't take half of the wait. */
bool is_small(const struct gather *gather, const struct model_gpu_op *op);
/*
 * Of what is awaited, `maybe` as `last` is or not, and of what that waits for on other streams, the
 * ops that may have taken so long: the last one of each stream, and the last function of the
 * program there. There is one at least; others and queued are set. False: no memory.
 */
bool gather_rivals(struct gather *gather, const struct model_gpu_awaited *awaited,
		   const struct model_gpu_op *last);
/* Adds a copy that does not return until it is done, in place of what is in front of it. */
bool gather_copy(struct gather *gather, const struct model_gpu_op *copy);

#endif
