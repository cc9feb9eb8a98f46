/* SPDX-License-Identifier: Apache-2.0 */
/* Private to why_await_*.c: collects what a call waits for. */
#ifndef WAFFLE_ANALYZE_WHY_AWAIT_WHY_AWAIT_GATHER_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_AWAIT_WHY_AWAIT_GATHER_INTERNAL_H

#include "analyze/why/why_walk_types.h"

/* Limit of ops to search for collectives. */
#define OPS_MAX 65536
/* Limit of streams to search. */
#define STREAMS_MAX 4096

/* What we have collected about a call. */
struct gather {
	struct why_walk *walk;
	struct why_sync *sync;
	uint64_t from_ts, to_ts; /* of the call */
	uint32_t pid;
	uint32_t ops;                    /* number of ops searched */
	struct map arrived;              /* collectives whose last rank is in why_awaits.arrivals */
	struct map seen;                 /* channel → index in tops */
	VEC(struct model_gpu_op) tops;   /* per stream, the last op searched */
	VEC(struct model_gpu_op) todo;   /* ops on other streams, still to search */
	VEC(struct model_gpu_op) rivals; /* ops that may have taken so long, the latest first */
	struct model_gpu_awaited around;
	bool more;      /* a limit was reached: OPS_MAX, STREAMS_MAX, or that of the walk */
	uint32_t found; /* number of collectives and messages of a call of MPI that are known */
	/* The last collective of which not all arrivals are known. */
	const struct model_collective *incomplete;
	/* The last collective that the GPU of another rank may have joined late, because it still
	 * had earlier work to do. */
	const struct model_collective *peers_busy;
	bool may;    /* it is unknown whether the call waits */
	bool again;  /* this is the second search; the first one was for collectives */
	bool others; /* the call waits, or may wait, for work besides the rivals */
	bool queued; /* such work precedes a rival on its stream */
};

static inline unsigned role_of(const struct model *model, uint32_t span)
{
	return model_site(model, model->spans.data[span].site)->role;
}

/* ---- why_await_gather.c ---- */

/* Counts an op that was searched. */
void gather_count(struct gather *gather);
/* Number of a collective's calls that may be searched. */
uint32_t gather_calls(struct gather *gather, const struct model_collective *collective);
/* Sorts the ranks by their arrival. */
void gather_sort(struct gather *gather);

/* Adds the last rank to arrive in each collective of a group, unless it is the call's own. `span`
 * is the group's end or a call in it. */
void gather_group(struct gather *gather, uint32_t span);
/* The same for all collectives and messages that a call of MPI starts or completes. */
void gather_mpi(struct gather *gather, uint32_t span);
/* Adds a rank that arrived after the call began. */
void gather_arrival(struct gather *gather, struct why_arrival arrival);
/* Adds the last ranks of all collectives that an op depends on, on its own stream and on the
 * streams that it waits for. */
void gather_op(struct gather *gather, const struct model_gpu_op *last);

/* Resets the search, so that gather_op() visits everything again. */
void gather_again(struct gather *gather);
/* Whether it is unknown when some of the ranks arrived: they are not traced, or we do not know
 * which of their calls belong to this collective, or their clocks are not aligned. */
bool collective_is_incomplete(const struct model_collective *collective);
/* Whether the call cannot end before others have come to a collective. */
bool collective_needs_others(const struct gather *gather,
			     const struct model_collective *collective);
/* The collective of an op: its own, or the one that NCCL launched the op for. NULL: none. */
const struct model_collective *collective_of(const struct gather *gather,
					     const struct model_gpu_op *op);
/* The name of the call by which the process takes part in the collective. */
const char *collective_name(struct gather *gather, const struct model_collective *collective);
/* The unfinished op before an op on its stream; false: none is known. */
bool op_before(const struct gather *gather, const struct model_gpu_op *op,
	       struct model_gpu_op *previous);

/* ---- why_await_rivals.c ---- */

/* A copy or set that is too small to take half of the wait. */
bool is_small(const struct gather *gather, const struct model_gpu_op *op);
/*
 * Fills `rivals` with the ops that may have taken so long: per stream, the last op and the last
 * host function. Candidates are the awaited ops whose `maybe` equals last->maybe, and what these
 * wait for on other streams. There is at least one rival. Sets others and queued.
 */
void gather_rivals(struct gather *gather, const struct model_gpu_awaited *awaited,
		   const struct model_gpu_op *last);
/* Adds a synchronous copy. It replaces the rivals before it on its stream. */
void gather_copy(struct gather *gather, const struct model_gpu_op *copy);

#endif
