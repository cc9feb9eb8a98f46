/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPU did, as libwaffle-gpu recorded it: operations with the GPU's own times, the calls
 * that launched them, and what they had to wait for. model/gpu/gpu.h has the host's side, from the
 * probes of CUDA's calls. It supplies streams, events and synchronisations here.
 *
 *	struct gpu_timeline *timeline = gpu_timeline_new(model);
 *
 *	if (!timeline->ops.len)
 *		… no times were recorded
 *	gpu_timeline_free(timeline);
 *
 * An operation belongs to a launch by the process and the correlation id alone, never by time.
 * CUPTI counts these ids anew whenever it is armed, so a launch and its operations lie in the same
 * arming. A launch belongs to the host call, recorded by the probes, in which its thread was. What
 * is not known is MODEL_NONE and counted.
 *
 * Devices and streams belong to a process. Two processes may use one GPU under different numbers,
 * and nothing in a capture says that they do.
 *
 * Everything lies in arrays, whose elements refer to each other by index. The model must outlive
 * the timeline. Times (_ts) are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef WAFFLE_MODEL_GPU_GPU_TIMELINE_H
#define WAFFLE_MODEL_GPU_GPU_TIMELINE_H

#include "model/gpu/gpu_op_kind.h"
#include "model/model.h"
#include "util/keymap.h"
#include "util/map.h"

/* There may be many millions, so it is as small as can be: 48 bytes. */
struct gpu_timeline_op {
	uint64_t start_ts, end_ts; /* end_ts >= start_ts */
	uint64_t bytes : 48;       /* of a copy or a set; else 0 */
	uint64_t copy : 8;         /* for gpu_timeline_copy_name(); 0: unknown, or no copy */
	uint64_t kind : 3;         /* enum gpu_op_kind */
	uint64_t graph : 1; /* a node of a graph: all nodes of one launch have its correlation id */
	uint64_t clamped : 1; /* its start was before its launch, and was moved there */
	/* In model.spans: model_gpu_value() has its other values. MODEL_NONE: the model kept
	 * operations apart (model_filter.gpu_apart). */
	uint32_t span;
	uint32_t name;     /* in timeline.names */
	uint32_t stream;   /* in timeline.streams */
	uint32_t launch;   /* in timeline.launches, or MODEL_NONE */
	uint32_t captured; /* the `capture` event of its graph node, or MODEL_NONE */
	/* Of the work of its stream that ended before this began, what ended last. It is what this
	 * waited for by the order of the stream. MODEL_NONE: none. */
	uint32_t previous;
};

struct gpu_timeline_stream {
	uint64_t context, number; /* CUPTI's number, not the handle */
	uint32_t device;          /* in timeline.devices */
	uint32_t op, op_count;    /* range in timeline.ops */
	uint32_t thread;          /* the track of its first operation */
};

struct gpu_timeline_device {
	uint64_t number; /* as the process counts its devices */
	uint32_t pid;
	uint32_t op, op_count;         /* range in timeline.ops */
	uint32_t stream, stream_count; /* range in timeline.streams */
};

/* A call that launched operations. 32 bytes. */
struct gpu_timeline_launch {
	uint64_t ts;          /* its begin */
	uint32_t correlation; /* unique in its arming, or the launch has no operations */
	uint32_t event;       /* the `launch`, in model.events; MODEL_NONE: kept apart, see above */
	uint32_t thread;
	uint32_t host; /* the call of the probes: a span or event; MODEL_NONE: not recorded */
	uint32_t span; /* the program's innermost span around it, or MODEL_NONE */
	uint32_t host_kind : 1; /* enum model_node_kind */
	uint32_t op : 31;       /* the first one in timeline.launched: gpu_launch_op_count() */
};

enum gpu_edge_kind {
	GPU_EDGE_EVENT, /* a stream waited for an event that was recorded after `from` */
	/* The legacy default stream and the blocking streams wait for each other. */
	GPU_EDGE_LEGACY,
};

/*
 * `to` could not begin before `from` had ended; they are on different streams. The order within a
 * stream and the order launch -> operation are not listed: they are `previous` and `launch`.
 */
struct gpu_timeline_edge {
	uint32_t from, to; /* in timeline.ops */
	uint8_t kind;      /* enum gpu_edge_kind */
	bool violated;     /* the times contradict it: `from` ended after `to` had begun */
};

/* No record says whether the host's memory of a copy is pageable, so that the copy's call waits.
 * One that only submits a copy takes some tens of microseconds, also if a probe records it. One
 * that takes longer than this has waited. */
#define GPU_COPY_WAITS_NS 100000

/* A call of the host that returned only when operations were done. */
struct gpu_timeline_sync {
	uint64_t start_ts, end_ts;
	uint32_t span; /* in model.spans: the call of the probes; MODEL_NONE: CUPTI recorded it */
	uint32_t thread;
	uint32_t op, op_count; /* range in timeline.awaited: the last of each stream */
};

/* What a process said of its recording of GPU times, summed over its sessions. */
struct gpu_timeline_session {
	uint64_t armed_ts, disarmed_ts; /* the first and last; 0 and UINT64_MAX: unknown */
	uint64_t cupti;                 /* version; 0: unknown */
	uint64_t clock_error_ns;        /* the largest */
	uint64_t dropped, zero_times, clamped, unknown;
	uint32_t pid;
	uint32_t event; /* the last one, in model.events */
	bool unavailable;
};

struct gpu_timeline {
	const struct model *model;
	VEC(struct gpu_timeline_op) ops; /* by device, stream, start_ts, then as in model.spans */
	VEC(struct gpu_timeline_stream) streams;
	VEC(struct gpu_timeline_device) devices;
	/* By ts. Behind the last one stands another one that only has `op`. */
	VEC(struct gpu_timeline_launch) launches;
	VEC(struct gpu_timeline_edge) edges; /* by to, then from */
	VEC(struct gpu_timeline_sync) syncs; /* by begin */
	VEC(struct gpu_timeline_session) sessions;
	VEC(const char *) names;
	VEC(const char *) copies; /* names of the directions of copies */
	VEC(uint32_t) launched;   /* operations by launch */
	VEC(uint32_t) awaited;    /* operations by sync */
	uint32_t *program_span;   /* for gpu_timeline_program_span() */
	bool simulated;           /* no GPU did the work */
	bool probed;              /* probes recorded calls of CUDA */
	bool ordered; /* they, or libwaffle-gpu, recorded the calls that order streams */
	/* Operations of an unknown kind, or without a stream. They are in no array. */
	uint64_t unknown_ops;
	uint64_t without_launch; /* operations whose launch is not in the capture */
	uint64_t repeated;       /* operations whose correlation id several launches have */
	uint64_t early;          /* operations that began before their launch; they have none */
	uint64_t edges_left_out; /* too many to keep, or between operations of one instant */
	/* Calls of the host that waited for operations, but which thread waited, or for which
	 * operation, is unknown. */
	uint64_t unknown_waits, unknown_wait_ns;
	struct map session_of; /* pid -> index in sessions */
};

struct gpu_timeline *gpu_timeline_new(const struct model *model);
/* The same if the program made calls of a GPU; otherwise NULL. */
struct gpu_timeline *gpu_timeline_of_calls(const struct model *model);
/* gpu_timeline_new() of a model that was loaded with gpu_apart: takes the records out of it. */
struct gpu_timeline *gpu_timeline_take(struct model *model);
void gpu_timeline_free(struct gpu_timeline *timeline);

/* The session of a process; NULL: it said nothing. */
const struct gpu_timeline_session *gpu_timeline_session(const struct gpu_timeline *timeline,
							uint32_t pid);

/* What ended last of the operations that one depends on, by the order of its stream or by an edge;
 * of several that of its stream, then the first one. MODEL_NONE: it depends on none. */
uint32_t gpu_timeline_needed(const struct gpu_timeline *timeline, uint32_t op);

/* The operation of a synchronisation that ended last; MODEL_NONE: it ended before the call began,
 * or after it, so the call did not wait for it. */
uint32_t gpu_timeline_awaited(const struct gpu_timeline *timeline,
			      const struct gpu_timeline_sync *sync);

/* The name of a synchronisation's function. */
const char *gpu_timeline_sync_name(const struct gpu_timeline *timeline,
				   const struct gpu_timeline_sync *sync);

/* Whether a kernel of that name moves data between GPUs, for NCCL or a relative. */
bool gpu_timeline_communicates(const char *name);

/* The first edge that leads to an operation. The edges of the operation follow it. */
static inline size_t gpu_timeline_edges_to(const struct gpu_timeline *timeline, uint32_t op)
{
	size_t low = 0, high = timeline->edges.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (timeline->edges.data[middle].to < op)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The innermost span around `span`, or itself, that is the program's own and not a call of CUDA or
 * NCCL. MODEL_NONE: none. */
static inline uint32_t gpu_timeline_program_span(const struct gpu_timeline *timeline, uint32_t span)
{
	return span == MODEL_NONE ? MODEL_NONE : timeline->program_span[span];
}

/* How many operations a launch of timeline.launches has, in timeline.launched. */
static inline uint32_t gpu_launch_op_count(const struct gpu_timeline_launch *launch)
{
	return launch[1].op - launch->op;
}

/* The call of a launch, in model.spans; MODEL_NONE: it was not recorded, or as an event, which has
 * no duration. */
static inline uint32_t gpu_launch_host_span(const struct gpu_timeline_launch *launch)
{
	return launch->host_kind == MODEL_NODE_SPAN ? launch->host : MODEL_NONE;
}

static inline uint32_t gpu_launch_pid(const struct gpu_timeline *timeline,
				      const struct gpu_timeline_launch *launch)
{
	return timeline->model->threads.data[launch->thread].pid;
}

/* The direction of a copy; NULL: unknown, or it is no copy. */
static inline const char *gpu_timeline_copy_name(const struct gpu_timeline *timeline,
						 const struct gpu_timeline_op *op)
{
	return op->copy ? timeline->copies.data[op->copy - 1] : NULL;
}

static inline const char *gpu_timeline_name(const struct gpu_timeline *timeline,
					    const struct gpu_timeline_op *op)
{
	return timeline->names.data[op->name];
}

static inline uint32_t gpu_timeline_device_of(const struct gpu_timeline *timeline,
					      const struct gpu_timeline_op *op)
{
	return timeline->streams.data[op->stream].device;
}

#endif
