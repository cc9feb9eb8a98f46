/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls of a capture mean to GPUs: which work was put on which stream, what a
 * synchronisation waits for, and which calls of different ranks are one collective. It is made
 * from the roles of sites (target/site.h), not from names of functions (but that CUDA marks those
 * whose stream 0 is the thread's own by _ptsz or _ptds), and only of what is in the model: a filter
 *takes from it too. What is said here is what the calls say; when a GPU began and ended its work is
 *not known.
 *
 *	struct model_gpu *gpu;
 *
 *	if (model_gpu_new(&gpu, model) < 0) …
 *	if (model_gpu_awaited(gpu, span, &awaited) < 0) …
 *	vec_free(&awaited.ops);
 *	model_gpu_free(gpu);
 *
 * All functions take a NULL gpu: there is nothing in it. The model must outlive it.
 */
#ifndef WAFFLE_MODEL_GPU_H
#define WAFFLE_MODEL_GPU_H

#include "model/model.h"

struct model_gpu;

/* *gpu is NULL if no site of the capture has a role. -ENOMEM. */
int model_gpu_new(struct model_gpu **gpu, const struct model *model);
void model_gpu_free(struct model_gpu *gpu);

/* ---- streams ---- */

/* A call that puts something on a stream. */
struct model_gpu_op {
	uint64_t ts;     /* of the launch, or of the call's begin */
	uint64_t stream; /* handle; 0: the default stream */
	uint16_t role;   /* enum site_role: LAUNCH, COPY, SET, COLLECTIVE, P2P, SEND, RECV;
			    STREAM_WAIT; EVENT_RECORD (of model_gpu_recorded() only) */
	uint8_t node;    /* enum model_node_kind */
	uint32_t index;  /* of the span or event */
	uint32_t thread; /* that made the call */
	uint32_t pid;
	uint32_t channel; /* number of the stream, the same for all that is put on it */
	bool host;        /* a function of the program, which a thread of it runs */
	bool maybe;       /* of model_gpu_awaited(): whether that stream is waited for is not known
			   */
};

/*
 * The last thing that was put on a stream of a process before a time. A collective in a group is
 * put there when the outermost group ends. The handle 1 is the default stream as 0 is; 2 is that of
 * `thread` alone, which is used for nothing else. False: nothing was.
 */
bool model_gpu_last(const struct model_gpu *gpu, uint32_t pid, uint64_t stream, uint32_t thread,
		    uint64_t before_ts, struct model_gpu_op *op);
/* What was put on the stream of an op before it; false: nothing. `previous` may be `op`. */
bool model_gpu_previous(const struct model_gpu *gpu, const struct model_gpu_op *op,
			struct model_gpu_op *previous);
/* The last record of an event of a process before a time; its stream is the one recorded. */
bool model_gpu_recorded(const struct model_gpu *gpu, uint32_t pid, uint64_t event,
			uint64_t before_ts, struct model_gpu_op *op);

struct model_gpu_awaited {
	VEC(struct model_gpu_op) ops; /* the latest first */
	bool more;                    /* there are more streams than can be looked at */
};

/*
 * What a span waits for that is a synchronisation (of a stream, an event, or all streams; or may be
 * one) or a copy on no stream, which is synchronous: the last op of each stream that it waits for.
 * An op that was waited for before by another one that has ended is left out. Where that is a
 * STREAM_WAIT, the op before it is there as well. For an event it is the last op of the stream that
 * the event was recorded on, before that; a STREAM_WAIT among them stands for what its event waits
 * for, see model_gpu_behind(). Of the legacy default stream it is the last op of each stream that
 * that waits for, too. No ops: nothing known, or not such a span. `awaited` is emptied first.
 * -ENOMEM.
 */
int model_gpu_awaited(const struct model_gpu *gpu, uint32_t span,
		      struct model_gpu_awaited *awaited);
/* The same of an op that is to be done, as far as it is the legacy default stream's, or waits for
 * that: the last ops of other streams, if they are not known to have ended by a time. */
int model_gpu_around(const struct model_gpu *gpu, const struct model_gpu_op *op, uint64_t by_ts,
		     struct model_gpu_awaited *awaited);
/* Whether there is anything on the streams that a synchronisation waits for, done or not. */
bool model_gpu_is_known(const struct model_gpu *gpu, uint32_t span);
/* A span of a call that has a role, as an op; the stream that it names. */
struct model_gpu_op model_gpu_op(const struct model_gpu *gpu, uint32_t span);
uint64_t model_gpu_stream(const struct model_gpu *gpu, uint32_t span);
/* The op that a STREAM_WAIT makes its stream wait for: on the stream that the event was recorded
 * on, the last before that. False: not known. */
bool model_gpu_behind(const struct model_gpu *gpu, const struct model_gpu_op *wait,
		      struct model_gpu_op *op);

/* Whether a synchronisation that ended before a time has waited for an op. */
bool model_gpu_waited(const struct model_gpu *gpu, const struct model_gpu_op *op,
		      uint64_t before_ts);

/* Whether a call is known to have failed: it has put nothing on a stream and waited for nothing. */
bool model_gpu_failed(const struct model_gpu *gpu, uint32_t span);

/* A value of a span or event by its key's name; false: it has none. */
bool model_gpu_value(const struct model *model, uint8_t node, uint32_t index, const char *key,
		     struct value *value);

/* ---- collectives ---- */

/*
 * A send and the recv that it meets are a collective of two: the k-th from one rank to another of
 * their communicator.
 */

/* A rank's call of a collective. */
struct model_rank_call {
	uint64_t arrival_ts; /* begin of the call; in a group: of the outermost group's end */
	uint32_t span;
	uint32_t group_end; /* span in which it was launched, or MODEL_NONE */
	uint32_t thread;
	uint32_t pid;
	uint32_t rank; /* MODEL_NONE: not known */
};

/* One collective of a communicator, as called on all ranks that were traced. */
struct model_collective {
	uint64_t comm;   /* the same on every rank */
	uint64_t seq;    /* number in its communicator, or of the sends from one rank to another:
			    from its creation if `alignment` is COLLECTIVE_BY_CREATION, else from
			    somewhere */
	uint32_t site;   /* of the calls, and their name with it; of a send or recv, of the first */
	uint32_t nranks; /* that call it; 0: not known */
	uint32_t from, to;                   /* ranks of a send and its recv; else MODEL_NONE */
	const struct model_rank_call *calls; /* by rank, then pid; the send before the recv */
	uint32_t count;
	uint32_t last;    /* index into calls: who arrived last. More than one call, else 0 */
	uint32_t members; /* how many of the ranks are traced, whether they have called it or not */
	/* A traced rank that had not called it when the capture ended, and the thread of the call
	   before it; MODEL_NONE: all that are traced are known to have, or nothing is known. */
	uint32_t late_rank, late_thread;
	uint8_t alignment; /* enum model_alignment */
	bool rooted;       /* a rank may be done with it before others have come */
};

enum model_alignment {
	COLLECTIVE_ALONE,       /* no other rank's call is known to be the same collective: one
				   rank was traced, or which is which is not certain */
	COLLECTIVE_BY_CREATION, /* counted from the communicator's creation on every rank */
	COLLECTIVE_BY_ORDER,    /* the only way in which operations, counts and times agree */
};

/* The collective that a span is a call of, or whose group it ends (the first one in it); NULL: it
 * is none. */
const struct model_collective *model_collective_of(const struct model_gpu *gpu, uint32_t span);

/* The next span that was in the group that another one in it, or that ends it, belongs to: the
 * first one for its end. MODEL_NONE: it was the last, or there is no such group. */
uint32_t model_gpu_group_next(const struct model_gpu *gpu, uint32_t span);

/* All, by communicator and seq. */
size_t model_collective_count(const struct model_gpu *gpu);
const struct model_collective *model_collective_at(const struct model_gpu *gpu, size_t index);

/* Calls of collectives that could not be aligned with those of other traced ranks. */
uint64_t model_collectives_unaligned(const struct model_gpu *gpu);

#endif
