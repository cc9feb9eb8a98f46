/* SPDX-License-Identifier: Apache-2.0 */
/* Private to model/: the parts of struct model_gpu. */
#ifndef WAFFLE_MODEL_GPU_GPU_INTERNAL_H
#define WAFFLE_MODEL_GPU_GPU_INTERNAL_H

#include "model/gpu/gpu.h"
#include "util/keymap.h"

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
	GPU_COMM_ADDRESS,
	GPU_COMM_ID,
	GPU_KEY_COUNT
};

#define GPU_KEY_NONE UINT8_MAX /* the site has no key of that name */

/* Handles of the default streams, from the CUDA headers. */
#define STREAM_NULL 0
#define STREAM_LEGACY 1
#define STREAM_PER_THREAD 2

#define STREAM_FLAG_NON_BLOCKING 1 /* cudaStreamNonBlocking */

struct gpu_site {
	uint16_t role;   /* enum site_role */
	bool per_thread; /* its stream 0 is the thread's own (_ptsz, _ptds, HIP's _spt) */
	bool library;    /* an event of libwaffle-gpu, which may say the same as a probe's call */
	uint8_t keys[GPU_KEY_COUNT]; /* key indexes, or GPU_KEY_NONE */
};

/* A sequence of calls in order of time: those on one stream, those that record one event, or those
 * on all streams of a process. */
enum channel_kind { CHANNEL_STREAM, CHANNEL_EVENT, CHANNEL_DEVICE };

/* Whether a stream and the legacy default stream wait for each other. */
enum stream_blocking {
	STREAM_UNKNOWN, /* created before the capture */
	STREAM_BLOCKING,
	STREAM_NON_BLOCKING,
	STREAM_MIXED, /* the handle was reused for streams of both kinds */
	/* Unknown, but the program orders the stream against the legacy one with events. That would
	 * be useless for a blocking stream, so we take it for a non-blocking one. */
	STREAM_ORDERED,
};

struct channel {
	uint64_t handle;
	uint32_t pid, thread; /* thread: index plus one for a thread's own default stream; else 0 */
	uint8_t kind;         /* enum channel_kind */
	uint8_t blocking;     /* enum stream_blocking; streams only */
	uint32_t sibling;     /* next stream of the process */
	uint32_t ops, op_count;     /* range in gpu.ops */
	uint32_t syncs, sync_count; /* range in gpu.syncs */
	uint32_t last;              /* while scanning: the last op */
	/* While scanning: the graph that a stream is being captured into, or that an event was last
	 * recorded in, as the index in gpu.graphs plus one. 0: none. */
	uint32_t graph;
	bool settled; /* while scanning: whether a stream is being captured is known */
};

/* When the span has ended, all ops that were put on the channel until `ts` are done. */
struct gpu_sync {
	uint64_t ts;
	uint32_t span;
	uint32_t channel;
};

/* A communicator, as the call that created it describes it. */
struct gpu_comm {
	uint64_t comm; /* of its ncclUniqueId: the same on all ranks */
	uint32_t rank, nranks;
};

struct model_gpu {
	const struct model *model;
	bool library;           /* some sites are events of libwaffle-gpu */
	struct gpu_site *sites; /* by site index; the last one is for unknown sites */
	VEC(struct channel) channels;
	struct keymap channel_at;   /* kind, process, handle and thread → channel */
	struct map streams;         /* pid → first stream */
	uint32_t *ops;              /* nodes, by channel, then time */
	VEC(struct gpu_sync) syncs; /* by channel, then ts */
	struct map grouped; /* span of a collective, send or recv → span of its group's end */
	/* The calls of a group as a list: span of the group's end → first call, call → next. */
	struct map group_next;
	VEC(struct model_gpu_call) calls; /* of collectives, in order of time */
	VEC(struct model_gpu_init) inits;
	/* Communicators whose memory can't be read, by process and address. */
	VEC(struct gpu_comm) comms;
	struct keymap comm_at; /* pid and address → index in comms */
	VEC(uint32_t) graphs;  /* channel being captured; MODEL_NONE: capture ended */
	struct map in_graph;   /* nodes that went into a graph instead of to a stream */
	struct map repeated;   /* events of libwaffle-gpu whose calls a probe recorded, too */
};

/* The node of a span or event: spans have the first numbers, and events follow. */
static inline uint32_t gpu_node(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? index : (uint32_t)model->spans.len + index;
}

/* Whether calls of a role reach their stream only when their group ends. */
static inline bool gpu_role_communicates(unsigned role)
{
	return role == SITE_ROLE_COLLECTIVE || role == SITE_ROLE_P2P || role == SITE_ROLE_SEND ||
	       role == SITE_ROLE_RECV;
}

/* ---- gpu_values.c ---- */

const struct gpu_site *gpu_site(const struct model_gpu *gpu, uint32_t site);
/* The value of a key in a call's values; false: it has none. */
bool gpu_value(const struct model_gpu *gpu, uint32_t site, uint32_t frame, enum gpu_key key,
	       struct value *value);
/* The same for a number; `missing` if there is none. */
uint64_t gpu_number(const struct model_gpu *gpu, uint32_t site, uint32_t frame, enum gpu_key key,
		    uint64_t missing);
/* The stream that a call names; STREAM_PER_THREAD if its 0 means that. */
uint64_t gpu_stream_of(const struct model_gpu *gpu, uint32_t site, uint32_t frame);
/* Whether a call records an event, or waits for one, on all streams of a context. The capture does
 * not say which streams these are. */
bool gpu_of_context(const struct model_gpu *gpu, uint32_t site);

/* ---- gpu_channels.c ---- */

/* Index of a channel; MODEL_NONE: it does not exist. `thread` matters for streams only. */
uint32_t gpu_stream(const struct model_gpu *gpu, uint32_t pid, uint64_t stream, uint32_t thread);
uint32_t gpu_channel(const struct model_gpu *gpu, enum channel_kind kind, uint32_t pid,
		     uint64_t handle, uint32_t thread);
/* The same, but adds a missing channel. */
uint32_t gpu_channel_add(struct model_gpu *gpu, enum channel_kind kind, uint32_t pid,
			 uint64_t handle, uint32_t thread);

/* ---- gpu_ops.c ---- */

/* The op of a node (gpu_node()). */
struct model_gpu_op gpu_op(const struct model_gpu *gpu, uint32_t node);
/* The last op that was put on a channel before a time; false: none. */
bool gpu_op_last(const struct model_gpu *gpu, uint32_t channel, uint64_t before_ts,
		 struct model_gpu_op *op);

/* ---- gpu_awaited.c ---- */

/* An op was done by `ts`, since the synchronisation `span` had waited for it then. UINT64_MAX and
 * MODEL_NONE: unknown. */
struct gpu_done {
	uint64_t ts;
	uint32_t span;
};
/* The earliest such time for an op that was put on a channel at ts. */
struct gpu_done gpu_done(const struct model_gpu *gpu, uint32_t channel, uint64_t ts);

/* Index within the channel of its first sync that covers an op put there at ts; sync_count:
 * none. */
uint32_t gpu_sync_after(const struct model_gpu *gpu, const struct channel *channel, uint64_t ts);

/* ---- gpu_syncs.c ---- */

void gpu_sync_add(struct model_gpu *gpu, uint64_t ts, uint32_t span, uint32_t channel);
/* Sorts the syncs and passes each on to the streams that its stream waited for. Call it once, after
 * all syncs are added and the ops are in place. */
void gpu_syncs_finish(struct model_gpu *gpu);

/* ---- gpu_graph.c ---- */

/* The scan calls these functions in order of time. */

/* Work put on the stream goes into a graph from now on. */
void gpu_graph_begin(struct model_gpu *gpu, uint32_t channel);
/* A call that ends the capture of a stream returned `result`, a CUDA error. */
void gpu_graph_end(struct model_gpu *gpu, uint32_t channel, uint64_t result);
/* The stream is known not to be captured now, even if the capture has no record of the end. */
void gpu_graph_over(struct model_gpu *gpu, uint32_t channel);
/* Whether a capture that ends on the stream must have begun before anything known of the stream. */
bool gpu_graph_begun_before(const struct model_gpu *gpu, uint32_t channel);
/* Whether calls of a site may go into a graph instead of to their stream. */
bool gpu_graph_can_take(const struct model_gpu *gpu, uint32_t site);
/* Returns whether the call goes into a graph instead of to its stream, and notes it then. `event`
 * is the channel of the call's event, if it has one. */
bool gpu_graph_take(struct model_gpu *gpu, uint32_t node, unsigned role, uint32_t stream,
		    uint32_t event);
bool gpu_in_graph(const struct model_gpu *gpu, uint32_t node);

/* ---- gpu_comms.c ---- */

/* Notes a call that created a communicator: its comm, rank and nranks are then those of calls on
 * that address. Call it in order of time. */
void gpu_comm_add(struct model_gpu *gpu, uint32_t pid, uint64_t address, struct gpu_comm comm);
/* The communicator at an address; NULL: its creation was not recorded, or does not describe it. */
const struct gpu_comm *gpu_comm_find(const struct model_gpu *gpu, uint32_t pid, uint64_t address);

/* ---- gpu_scan.c ---- */

/* Fills channels, ops, syncs and groups, and collects the calls of collectives in order of time. */
void gpu_scan(struct model_gpu *gpu);

#endif
