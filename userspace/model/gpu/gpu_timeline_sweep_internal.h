/* SPDX-License-Identifier: Apache-2.0 */
/* Private to model/gpu: the pass over the host's calls that finds the edges between streams, and
 * what synchronisations wait for. gpu_timeline_edges.c says what it does. */
#ifndef WAFFLE_MODEL_GPU_GPU_TIMELINE_SWEEP_INTERNAL_H
#define WAFFLE_MODEL_GPU_GPU_TIMELINE_SWEEP_INTERNAL_H

#include "model/gpu/gpu_internal.h"
#include "model/gpu/gpu_timeline_internal.h"
#include "model/order.h"

/* One stream or event of the host's view. */
struct timeline_lane {
	VEC(uint32_t) front;   /* operations of the last launch that end last; of an event: all */
	VEC(uint32_t) pending; /* further operations that the next operation waits for */
	uint64_t put_ts;       /* when the frontier last changed */
	uint64_t changes;      /* launches and waits so far */
	uint64_t legacy;       /* changes of the legacy stream that its operations wait for */
	bool recorded;         /* set if the event was recorded on a known stream */
	bool touched;          /* by a launch, since the last one of the legacy stream */
	bool dirty;            /* listed in its process */
};

struct sweep_process {
	VEC(uint32_t) dirty;   /* lanes that a device synchronisation may have to wait for */
	VEC(uint32_t) touched; /* blocking lanes with work after that of the legacy stream */
	/* The last device synchronisation: it covers what was put before its begin, as soon as it
	 * has returned. */
	uint64_t sync_start_ts, sync_end_ts;
	uint64_t covered_ts;
	bool probed; /* probes recorded its calls */
};

enum sweep_kind { SWEEP_PUT, SWEEP_RECORD, SWEEP_SYNC, SWEEP_WAIT };

struct sweep_item {
	uint32_t node; /* a node of the model; SWEEP_WAIT: an index in build.waits */
	uint32_t channel;
	uint8_t kind; /* enum sweep_kind */
};

struct timeline_sweep {
	struct timeline_build *build;
	struct gpu_timeline *timeline;
	const struct model *model;
	struct model_gpu *gpu;       /* NULL: no calls that order streams are known */
	struct timeline_lane *lanes; /* by channel */
	struct map process_at;
	VEC(struct sweep_process) processes;
	VEC(struct sweep_item) items;
	VEC(struct order_item) order;
	uint32_t *first_launch; /* node -> launch, or MODEL_NONE */
	uint32_t *next_launch;  /* launch -> the next one of the same node */
	unsigned char *inner;   /* operation -> another one of its launch follows it */
	/* Launches without a call of the probes, by launch: their channel, or MODEL_NONE. NULL: no
	 * launch has one. */
	uint32_t *own_channel;
	size_t own_next; /* the first launch that the sweep has not come to */
	struct timeline_follow *follow;
	timeline_ops sources; /* scratch */
	size_t kept;          /* operations for which lists of events and of waits have room */
	size_t steps_left;    /* see STEPS_EACH */
};

/* ---- gpu_timeline_sweep.c ---- */

/* Finds the calls that the sweep goes through, in order of time, and the launches of each. */
void timeline_sweep_fill(struct timeline_sweep *sweep);
/* Valid until the next call. */
struct sweep_process *timeline_sweep_process(struct timeline_sweep *sweep, uint32_t pid);

#endif
