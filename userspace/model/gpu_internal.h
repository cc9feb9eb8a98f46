/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of model/: the parts of struct model_gpu. */
#ifndef WAFFLE_MODEL_GPU_INTERNAL_H
#define WAFFLE_MODEL_GPU_INTERNAL_H

#include "model/gpu.h"

enum gpu_key {
	GPU_STREAM,
	GPU_EVENT,
	GPU_COMM,
	GPU_RANK,
	GPU_NRANKS,
	GPU_SEQ,
	GPU_COUNT,
	GPU_DATATYPE,
	GPU_OP,
	GPU_ROOT,
	GPU_PEER,
	GPU_FLAGS,
	GPU_RESULT,
	GPU_HOST,
	GPU_KEY_COUNT
};

#define GPU_KEY_NONE UINT8_MAX /* the site has none of that name */

/* Handles of the default streams in the CUDA headers. */
#define STREAM_NULL 0
#define STREAM_LEGACY 1
#define STREAM_PER_THREAD 2

#define STREAM_FLAG_NON_BLOCKING 1 /* cudaStreamNonBlocking */

struct gpu_site {
	uint16_t role;               /* enum site_role */
	bool per_thread;             /* its stream 0 is the thread's own: CUDA's second bodies */
	uint8_t keys[GPU_KEY_COUNT]; /* indexes of the site's keys; GPU_KEY_NONE */
};

/* What calls are ordered by: a stream, the records of an event, all streams of a process. */
enum channel_kind { CHANNEL_STREAM, CHANNEL_EVENT, CHANNEL_DEVICE };

/* Whether the legacy default stream waits for a stream, and that for it. */
enum stream_blocking {
	STREAM_UNKNOWN, /* it was made before the capture */
	STREAM_BLOCKING,
	STREAM_NON_BLOCKING,
	STREAM_MIXED, /* one handle was that of both kinds */
	/* Not known, but the program orders the two by events, which would be in vain. */
	STREAM_ORDERED,
};

struct channel {
	uint64_t handle;
	uint32_t pid, thread;       /* thread: of a thread's own default stream, plus one; else 0 */
	uint8_t kind;               /* enum channel_kind */
	uint8_t blocking;           /* enum stream_blocking, of a stream */
	uint32_t next, sibling;     /* of the same hash; the next stream of the process */
	uint32_t ops, op_count;     /* of gpu.ops */
	uint32_t syncs, sync_count; /* of gpu.syncs */
	uint32_t last;              /* while it is built: the last op */
	/* While it is built: the graph that a stream's calls make, or that an event was last
	   recorded in; number in gpu.graphs, plus one. 0: none. */
	uint32_t graph;
	bool settled; /* while it is built: whether a stream's calls make a graph is known */
};

/* What was put on the channel until `ts` has ended when the span has. */
struct gpu_sync {
	uint64_t ts;
	uint32_t span;
	uint32_t channel;
};

/*
 * A rank's call of a collective; or of a send or recv, which are a collective of two: those from
 * one rank to another are counted by themselves, and the places of the two are 0 and 1.
 */
struct gpu_call {
	uint64_t comm, seq, arrival_ts;
	uint64_t done_ts;       /* it had ended then at the latest; UINT64_MAX: not known */
	uint64_t signature;     /* of function, count, type and operation: the same on all ranks */
	uint32_t from, to;      /* ranks of a send or recv; MODEL_NONE */
	uint32_t place, places; /* of a collective, the rank and how many there are */
	uint32_t span, group_end, thread, pid, rank, channel;
	bool has_seq;
	bool rooted; /* a rank may be done with it before others have come */
};

typedef VEC(struct gpu_call) gpu_calls;

/* A communicator was made. */
struct gpu_init {
	uint64_t comm, ts;
	uint32_t pid, thread;
	uint32_t rank; /* MODEL_NONE: of all ranks of the process, or not known */
};

struct model_gpu {
	const struct model *model;
	struct gpu_site *sites; /* by index of the site, and one behind them for unknown ones */
	VEC(struct channel) channels;
	struct map channel_hash;    /* → the first channel */
	struct map streams;         /* pid → its first stream */
	uint32_t *ops;              /* nodes, by channel, then time */
	VEC(struct gpu_sync) syncs; /* by channel, then ts */
	struct map grouped;         /* span of a collective or p2p → span of its group's end */
	struct map group_next;      /* span of a group's end, or in it → the next one in it */
	VEC(struct gpu_init) inits;
	VEC(struct model_collective) collectives;
	VEC(struct model_rank_call) rank_calls;
	struct map collective_of; /* span → index */
	VEC(uint32_t) graphs;     /* the channel where it began; MODEL_NONE: it has ended */
	struct map in_graph;      /* nodes that were put into a graph, not on a stream */
	uint64_t unaligned;
};

/* A span or an event by one number. */
static inline uint32_t gpu_node(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? index : (uint32_t)model->spans.len + index;
}

/* Whether calls of a role go to a stream when their group ends. */
static inline bool gpu_role_communicates(unsigned role)
{
	return role == SITE_ROLE_COLLECTIVE || role == SITE_ROLE_P2P || role == SITE_ROLE_SEND ||
	       role == SITE_ROLE_RECV;
}

/* ---- gpu.c ---- */

const struct gpu_site *gpu_site(const struct model_gpu *gpu, uint32_t site);
/* The value of a key that a site with a role has; false: it has none there. */
bool gpu_value(const struct model_gpu *gpu, uint32_t site, uint32_t frame, enum gpu_key key,
	       struct value *value);
/* The same of a number, or `missing`. */
uint64_t gpu_number(const struct model_gpu *gpu, uint32_t site, uint32_t frame, enum gpu_key key,
		    uint64_t missing);
/* The stream that a call names: STREAM_PER_THREAD where that is what 0 means. */
uint64_t gpu_stream_of(const struct model_gpu *gpu, uint32_t site, uint32_t frame);
/* Whether a call records an event, or waits for one, on all streams of a context: which these are
 * is not known. */
bool gpu_of_context(const struct model_gpu *gpu, uint32_t site);
/* MODEL_NONE: there is none. `thread` counts for a stream only. */
uint32_t gpu_stream(const struct model_gpu *gpu, uint32_t pid, uint64_t stream, uint32_t thread);
uint32_t gpu_channel(const struct model_gpu *gpu, enum channel_kind kind, uint32_t pid,
		     uint64_t handle, uint32_t thread);
/* The same, added if it is not there. MODEL_NONE: out of memory. */
uint32_t gpu_channel_add(struct model_gpu *gpu, enum channel_kind kind, uint32_t pid,
			 uint64_t handle, uint32_t thread);
/* ---- gpu_ops.c ---- */

/* By gpu_node(). */
struct model_gpu_op gpu_op(const struct model_gpu *gpu, uint32_t node);
/* The last op that was put on a channel before a time; false: there is none. */
bool gpu_op_last(const struct model_gpu *gpu, uint32_t channel, uint64_t before_ts,
		 struct model_gpu_op *op);

/* ---- gpu_awaited.c ---- */

/* Whether what was put there at ts was waited for by what had ended by then. */
bool gpu_waited(const struct model_gpu *gpu, uint32_t channel, uint64_t ts, uint64_t by_ts);
/* When at the latest what was put on a channel at ts had ended; UINT64_MAX: not known. */
uint64_t gpu_done(const struct model_gpu *gpu, uint32_t channel, uint64_t ts);

/* The first sync of a channel that covers what was put there at ts; sync_count: there is none. */
uint32_t gpu_sync_after(const struct model_gpu *gpu, const struct channel *channel, uint64_t ts);

/* ---- gpu_syncs.c ---- */

int gpu_sync_add(struct model_gpu *gpu, uint64_t ts, uint32_t span, uint32_t channel);
/* When all are there and the ops are placed. */
int gpu_syncs_finish(struct model_gpu *gpu);

/* ---- gpu_graph.c ---- */

/* In the order of time, while the channels are built. */
int gpu_graph_begin(struct model_gpu *gpu, uint32_t channel);
void gpu_graph_end(struct model_gpu *gpu, uint32_t channel, uint64_t result);
void gpu_graph_over(struct model_gpu *gpu, uint32_t channel);
/* Whether a graph ends that was begun before all that is known of its stream. */
bool gpu_graph_begun_before(const struct model_gpu *gpu, uint32_t channel);
/* Whether calls of a site may be put into a graph instead of on their stream. */
bool gpu_graph_can_take(const struct model_gpu *gpu, uint32_t site);
/* Whether a call that would put something on a stream puts it into a graph. `event`: the channel
 * of its event, if it has one. */
int gpu_graph_take(struct model_gpu *gpu, uint32_t node, unsigned role, uint32_t stream,
		   uint32_t event, bool *taken);
bool gpu_in_graph(const struct model_gpu *gpu, uint32_t node);

/* ---- gpu_scan.c ---- */

/* Fills channels, ops, syncs and groups, and collects the calls of collectives in order of time. */
int gpu_scan(struct model_gpu *gpu, gpu_calls *calls);

/* ---- collectives.c ---- */

/* Makes collectives of calls, whose order changes. */
int collectives_make(struct model_gpu *gpu, gpu_calls *calls);

#endif
