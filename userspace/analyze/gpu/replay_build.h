/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a graph for replay.h of what a GPU did.
 *
 * Nodes are the operations of the GPU, the calls that launched them, and the calls that waited for
 * them. A thread's calls form a queue, and the time between two of them is the gap of the first: it
 * is kept as recorded. So is the part of a waiting call in which everything was done already.
 *
 * An operation waits for its launch, for the operations before it on its stream, and for the edges
 * between streams. Even then the GPU takes some microseconds to begin. Nobody knows how much of a
 * recorded delay that is and how much has another reason, such as a full GPU. So the graph has the
 * median delay of the operations of that kind, and the rest shows as the error of the replay.
 *
 * Nodes of a CUDA graph may overlap on one stream. There an operation waits for all those that had
 * ended when it began.
 *
 * Copies of one direction on one device share an engine, if no two of them overlap in the capture.
 */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_BUILD_H
#define WAFFLE_ANALYZE_GPU_REPLAY_BUILD_H

#include "analyze/gpu/replay.h"
#include "model/gpu/gpu_timeline.h"

/* What a node stands for. */
enum replay_origin_kind {
	REPLAY_ORIGIN_OP,     /* index in timeline.ops */
	REPLAY_ORIGIN_LAUNCH, /* index in timeline.launches */
	REPLAY_ORIGIN_SYNC,   /* index in timeline.syncs */
	/* A rank's kernel of a collective has begun, and now waits for the other ranks: index in
	 * timeline.ops. The node of the operation is the transfer that follows. */
	REPLAY_ORIGIN_ARRIVAL,
	REPLAY_ORIGIN_MEETING, /* all ranks have arrived: index in meetings */
};

struct replay_origin {
	uint32_t index : 29, kind : 3; /* enum replay_origin_kind */
};
#define REPLAY_ORIGIN_INDEX_MAX ((1u << 29) - 1)

/* Kernels of one collective on several ranks. */
struct replay_meeting {
	uint64_t ts;           /* begin of the last one */
	uint32_t first, count; /* range in met */
};

/* An edge from a rank's arrival to a meeting. */
struct replay_arrival {
	uint32_t edge, pid;
};

struct replay_build {
	const struct gpu_timeline *timeline;
	struct replay_graph graph;
	/* Of each edge: whether the recording has its nodes in the opposite order, so that it can't
	 * be a dependency. Such edges are only there for replay_check(). */
	bool *cut;
	VEC(struct replay_origin) origins; /* of each node */
	uint32_t *op_node;                 /* of each timeline.ops; REPLAY_NONE: none */
	/* Until an operation of a kind begins after another one: the median, in nanoseconds. */
	uint32_t order_lag_ns[GPU_OP_KIND_COUNT];
	VEC(struct replay_meeting) meetings;
	VEC(uint32_t) met; /* operations */
	VEC(struct replay_arrival) arrivals;
	/* Of each timeline.ops: when all ranks had arrived; 0: no collective. NULL: no meetings. */
	uint64_t *meet_ts;
	struct map ranks; /* pid -> rank, as far as known */
};

struct replay_build *replay_build_new(const struct gpu_timeline *timeline);
void replay_build_free(struct replay_build *build);

/* The process of a node; 0: a meeting, which is of several. */
uint32_t replay_build_pid(const struct replay_build *build, uint32_t node);

#endif
