/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread waits for inside of a call that waits for a GPU or for other ranks: blocked or
 * spinning, as the call's role says, not how the driver does it. First the ranks that have yet to
 * arrive in the collectives that are on the stream, one after the other; then the GPU.
 */
#ifndef WAFFLE_ANALYZE_WHY_GPU_H
#define WAFFLE_ANALYZE_WHY_GPU_H

#include <stdio.h>

#include "analyze/why.h"
#include "model/gpu.h"

struct why_walk;

/* The thread that arrived last in a collective, or at the making of a communicator. */
struct why_arrival {
	uint64_t ts;
	const struct model_collective *collective; /* NULL: of a communicator's making */
	uint32_t site;                             /* of the call */
	uint32_t span, thread, rank; /* span MODEL_NONE: it had not come when the capture ended */
	enum why_grade grade;
};

/* A call that waits. */
struct why_sync {
	uint32_t span;
	bool waits;  /* it does so for something that is known */
	bool spins;  /* time on a CPU is waiting too */
	uint8_t end; /* enum why_cause: what is waited for when all known ranks have arrived;
			WHY_CAUSE_COUNT: not known here */
	enum why_grade grade;     /* of that */
	uint32_t object, meaning; /* of that; texts */
	uint64_t launch_ts;       /* of what was put on the stream; 0: not known */
	uint32_t launch_thread, launch_span;
	uint32_t arrival, arrival_count; /* in why_gpu.arrivals, by ts */
};

struct why_gpu {
	struct model_gpu *model; /* NULL: the capture has no calls */
	struct map sync_of;      /* span → index in syncs */
	VEC(struct why_sync) syncs;
	VEC(struct why_arrival) arrivals;
	VEC(uint32_t) inits; /* spans that make communicators, by start_ts */
};

/* What a stretch of a thread's time is a wait for. */
struct why_await {
	uint32_t sync;    /* in why_gpu.syncs; MODEL_NONE: it is in no such call */
	uint32_t arrival; /* in why_gpu.arrivals; MODEL_NONE: all have arrived */
};
#define WHY_AWAIT_NOTHING ((struct why_await){MODEL_NONE, MODEL_NONE})

int why_gpu_init(struct why_gpu *gpu, const struct model *model);
void why_gpu_free(struct why_gpu *gpu);
/* Between instances: drops what takes much room and can be had again. */
void why_gpu_forget(struct why_gpu *gpu);

/* What the thread waits for at `from`, and until when, at most `to`, it is the same. 0: no memory.
 */
uint64_t why_gpu_cut(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
		     struct why_await *await);
/* Whether that holds of time on a CPU. */
bool why_gpu_spins(const struct why_walk *walk, const struct why_await *await);
/* Whether it is for a function of the program that a stream runs: the text of that, which the last
 * step of the path gets as well; 0: it is for something else. */
uint32_t why_gpu_host(struct why_walk *walk, const struct why_await *await);
/* The last step of the path is such a wait; `grade` is that of the way up to it. */
int why_gpu_walk(struct why_walk *walk, const struct why_await *await, enum why_grade grade);

/* ---- why_gpu_sync.c ---- */

/* Whether a call of a role may wait. */
bool why_gpu_role_waits(unsigned role);
/* What the call `sync->span` waits for. False: no memory. */
bool why_gpu_sync_make(struct why_walk *walk, struct why_sync *sync);

/* ---- why_gpu_text.c ---- */

void why_gpu_put_op(FILE *out, const struct model *model, const struct model_gpu_op *op);
void why_gpu_put_stream(FILE *out, uint64_t stream);
/* Of a copy or set; false: not known. */
bool why_gpu_bytes(const struct model *model, const struct model_gpu_op *op, uint64_t *bytes);

#endif
