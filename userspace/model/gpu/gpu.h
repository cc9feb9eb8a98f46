/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPU and NCCL calls of a capture mean: which work went to which stream, and what a
 * synchronisation waits for. model/comm/comm.h tells which calls of different ranks are one
 * collective.
 *
 * The meaning of a call comes from the role of its site (target/elf/site.h), not from the name of
 * the function. The one exception is CUDA's suffixes _ptsz and _ptds. They mark functions whose
 * stream 0 is a stream of the calling thread. Only calls in the model count, so that a filter
 * limits this too. The calls do not say when the GPU began or finished the work.
 *
 *	struct model_gpu *gpu = model_gpu_new(model);
 *	struct model_gpu_awaited awaited = {0};
 *
 *	model_gpu_awaited(gpu, span, &awaited);
 *	vec_free(&awaited.ops);
 *	model_gpu_free(gpu);
 *
 * All functions accept a NULL gpu, which stands for no calls, except model_gpu_op() and
 * model_gpu_stream(). The model must outlive it.
 */
#ifndef WAFFLE_MODEL_GPU_GPU_H
#define WAFFLE_MODEL_GPU_GPU_H

#include "model/model.h"

struct model_gpu;

/* Whether a site of the capture has a role of CUDA or NCCL. */
bool model_gpu_has_calls(const struct model *model);
/* NULL: none has, or there are too many spans and events. */
struct model_gpu *model_gpu_new(const struct model *model);
void model_gpu_free(struct model_gpu *gpu);

/* ---- streams ---- */

/* A call that puts work on a stream (an operation, "op"). */
struct model_gpu_op {
	uint64_t ts;     /* call's begin; in a group: the group end's begin */
	uint64_t stream; /* handle; 0: the default stream */
	/* enum site_role: LAUNCH, COPY, SET, COLLECTIVE, P2P, SEND, RECV or STREAM_WAIT; only
	 * model_gpu_recorded() returns EVENT_RECORD. */
	uint16_t role;
	uint8_t node;    /* enum model_node_kind */
	uint32_t index;  /* of the span or event */
	uint32_t thread; /* the calling thread */
	uint32_t pid;
	uint32_t channel; /* number of the stream */
	bool host;        /* host function: a thread of the program runs it */
	/* Set by model_gpu_awaited(): it is unknown whether the caller waits for that stream. */
	bool maybe;
};

/*
 * The last op that a process put on a stream before a time; false: none. A collective in a group
 * reaches its stream when the outermost group ends. Handle 1 is the default stream, like 0. Handle
 * 2 is the default stream of `thread` alone; for other handles `thread` has no meaning.
 */
bool model_gpu_last(const struct model_gpu *gpu, uint32_t pid, uint64_t stream, uint32_t thread,
		    uint64_t before_ts, struct model_gpu_op *op);
/* The op before `op` on its stream; false: none. `previous` may point to `op`. */
bool model_gpu_previous(const struct model_gpu *gpu, const struct model_gpu_op *op,
			struct model_gpu_op *previous);
/* The last EVENT_RECORD of an event before a time; op->stream is the stream that it recorded. */
bool model_gpu_recorded(const struct model_gpu *gpu, uint32_t pid, uint64_t event,
			uint64_t before_ts, struct model_gpu_op *op);

struct model_gpu_awaited {
	VEC(struct model_gpu_op) ops; /* latest first */
	bool more;                    /* the process has more streams than we examine */
	/* Streams that were examined so far, in all calls with this struct: their number is
	 * limited, too. */
	uint64_t examined;
};

/*
 * What a call waits for: a stream, event or device synchronisation, a call that may synchronise, or
 * a synchronous copy (one without a stream argument). The result holds the last op of each stream
 * concerned, without those that an earlier, finished synchronisation covered.
 *
 * If such an op is a STREAM_WAIT, the result also holds the op before it. The STREAM_WAIT itself
 * stands for the work that its event depends on, see model_gpu_behind(). For an event, only ops put
 * on the stream before the event was recorded count. For the legacy default stream, the result also
 * holds the last op of every stream that it synchronises with.
 *
 * No ops: nothing is known, or the span does not synchronise. `awaited` is emptied first.
 */
void model_gpu_awaited(const struct model_gpu *gpu, uint32_t span,
		       struct model_gpu_awaited *awaited);
/* What an op must wait for on its stream, as a synchronisation of that stream in its place would.
 */
void model_gpu_before(const struct model_gpu *gpu, const struct model_gpu_op *op,
		      struct model_gpu_awaited *awaited);
/*
 * The ops on other streams that an op must wait for because it is on the legacy default stream, or
 * on a blocking stream. Ops known to be done by by_ts are left out.
 */
void model_gpu_around(const struct model_gpu *gpu, const struct model_gpu_op *op, uint64_t by_ts,
		      struct model_gpu_awaited *awaited);
/* Whether the capture has any op on the stream, or any record of the event, that a call waits for.
 * The op may be finished. False for calls that wait for neither a stream nor an event. */
bool model_gpu_is_known(const struct model_gpu *gpu, uint32_t span);
/* A span of a call with a role, as an op. */
struct model_gpu_op model_gpu_op(const struct model_gpu *gpu, uint32_t span);
/* The handle of the stream that the call of a span names. */
uint64_t model_gpu_stream(const struct model_gpu *gpu, uint32_t span);
/* The op that a STREAM_WAIT makes its stream wait for: the last one on the event's stream before
 * the event was recorded. False: unknown. */
bool model_gpu_behind(const struct model_gpu *gpu, const struct model_gpu_op *wait,
		      struct model_gpu_op *op);

/* Compares two ops for qsort(): the latest one first. */
int model_gpu_op_compare(const void *left, const void *right);

/* Whether a synchronisation that ended at or before a time covered the op. */
bool model_gpu_waited(const struct model_gpu *gpu, const struct model_gpu_op *op,
		      uint64_t before_ts);

/* Whether a call is known to have failed: then it put nothing on a stream and waited for
 * nothing. */
bool model_gpu_failed(const struct model_gpu *gpu, uint32_t span);

/* A value of a span or event by the name of its key; false: it has none. */
bool model_gpu_value(const struct model *model, uint8_t node, uint32_t index, const char *key,
		     struct value *value);

/* ---- groups and ranks ---- */

/* Iterates over the calls in a group. For the span of the group's end, the first call; for a call
 * in the group, the next one. MODEL_NONE: no more, or no group. */
uint32_t model_gpu_group_next(const struct model_gpu *gpu, uint32_t span);

/* One rank's call of a collective, send or recv. model/comm/comm.h matches the calls of the
 * ranks. */
struct model_gpu_call {
	uint64_t comm, seq;
	uint64_t arrival_ts; /* begin of the call, or of the end of its outermost group */
	uint64_t done_ts;    /* it was finished by then; UINT64_MAX: unknown */
	/* Hash of the function, count, datatype, op and root: equal on all ranks. A send and its
	 * recv have different names, so theirs omits the function. */
	uint64_t signature;
	uint64_t count;        /* of elements; UINT64_MAX: unknown */
	uint32_t rank, nranks; /* of the communicator; MODEL_NONE and 0: unknown */
	uint32_t from, to;     /* ranks of a send or recv; else MODEL_NONE */
	uint32_t root;         /* MODEL_NONE: none */
	uint32_t span;
	uint32_t done_span; /* the synchronisation that ended at done_ts, or MODEL_NONE */
	uint32_t group_end; /* span of the group end that launched it, or MODEL_NONE */
	uint32_t thread, pid, channel;
	uint16_t role; /* enum site_role: COLLECTIVE, SEND or RECV */
	bool has_seq;
};

/* All of them, in order of time. Returns their number. */
size_t model_gpu_calls(const struct model_gpu *gpu, const struct model_gpu_call **calls);

/* The creation of a communicator. */
struct model_gpu_init {
	uint64_t comm, ts;
	uint32_t pid, thread;
	uint32_t rank; /* MODEL_NONE: all ranks of the process, or unknown */
};

/* All of them, in order of time. Returns their number. */
size_t model_gpu_inits(const struct model_gpu *gpu, const struct model_gpu_init **inits);

#endif
