/* SPDX-License-Identifier: Apache-2.0 */
/* Private to model/gpu: the steps that build a timeline, in the order in which they run. */
#ifndef WAFFLE_MODEL_GPU_GPU_TIMELINE_INTERNAL_H
#define WAFFLE_MODEL_GPU_GPU_TIMELINE_INTERNAL_H

#include "model/gpu/gpu_timeline.h"
#include "model/gpu/gpu_timeline_values_internal.h"

struct gpu_records;
struct gpu_record_op;
struct model_gpu;

/* From here on a process records GPU times. */
struct timeline_arming {
	uint32_t pid;
	uint64_t ts;
};

/*
 * Arming and correlation id -> launch. CUPTI counts the ids up, so that a page of consecutive ones
 * costs less than a slot of a hash map for each.
 */
struct timeline_correlations {
	struct map pages; /* the upper bits of a key -> page in `launches` */
	VEC(uint32_t) launches;
	uint64_t last_key; /* of the last page */
	uint32_t last_page;
	bool has_last;
};

typedef VEC(uint32_t) timeline_ops; /* in timeline.ops */

/* In a page: several launches have the id. */
#define TIMELINE_REPEATED (MODEL_NONE - 1)

/* A call of the host that waited for operations, as CUPTI recorded it. */
struct timeline_wait {
	uint64_t start_ts, end_ts;
	uint64_t context, stream; /* CUPTI's numbers */
	uint32_t pid;
	uint32_t event; /* the `wait` of its thread, in model.events; MODEL_NONE: unknown */
	uint8_t kind;   /* enum gpu_wait_kind */
};

struct timeline_build {
	struct gpu_timeline *timeline;
	const struct model *model;
	struct timeline_sites *sites;
	struct gpu_records *records;
	/*
	 * CUPTI counts correlation ids anew each time that it is armed in a process. So ids belong
	 * to one arming of a process: these are in order of pid, then time, the first one of a
	 * process with a time of 0.
	 */
	VEC(struct timeline_arming) armings;
	struct timeline_correlations launch_at, wait_at; /* of a wait: its event */
	VEC(struct timeline_wait) waits;
	VEC(uint64_t) handles; /* those of gpu_records */
	/* By launch: its stream, in `handles`, or MODEL_NONE. Empty: no launch has one. */
	VEC(uint32_t) launch_stream;
	struct keymap captured_at; /* process, graph and graph node -> event */
};

/* ---- gpu_timeline_correlations.c ---- */

/* The launch with an id, or MODEL_NONE, or TIMELINE_REPEATED. */
uint32_t timeline_launch_at(struct timeline_correlations *correlations, uint32_t arming,
			    uint32_t correlation);
void timeline_launch_put(struct timeline_correlations *correlations, uint32_t arming,
			 uint32_t correlation, uint32_t launch);
void timeline_correlations_free(struct timeline_correlations *correlations);

/* ---- gpu_timeline_launch.c ---- */

/* Loads launches, captures and sessions. */
void timeline_launches_load(struct timeline_build *build);
/* The arming of a process that a time belongs to, in build.armings; MODEL_NONE: the process is not
 * known. */
uint32_t timeline_arming_at(const struct timeline_build *build, uint32_t pid, uint64_t ts);

/* ---- gpu_timeline_ops.c ---- */

/* Loads the operations, gives them their launches, and sorts them into streams and devices. */
void timeline_ops_load(struct timeline_build *build);
/* Lists the operations of each launch. */
void timeline_launched_find(struct gpu_timeline *timeline);
/* Finds what each operation followed on its stream. */
void timeline_order_find(struct gpu_timeline *timeline);

/* ---- gpu_timeline_waits.c ---- */

/* Notes a wait of the host that CUPTI recorded. A wait of a stream for an event is ignored. */
void timeline_wait_add(struct timeline_build *build, const struct gpu_record_op *op);
/* Follows the streams by CUPTI's numbers, in order of time. */
struct timeline_follow *timeline_follow_new(const struct timeline_build *build);
void timeline_follow_free(struct timeline_follow *follow);
/* Adds the operations that a call waited for. The call began at `ts`, and waited for a stream or a
 * context. False: the operations are unknown, or not all known. */
bool timeline_follow_wait(struct timeline_follow *follow, const struct timeline_wait *wait,
			  uint64_t ts, timeline_ops *ops);

/* ---- gpu_timeline_edges.c ---- */

/* Adds the edges between streams, and what synchronisations waited for. `gpu` may be NULL. */
void timeline_edges_find(struct timeline_build *build, struct model_gpu *gpu);

#endif
