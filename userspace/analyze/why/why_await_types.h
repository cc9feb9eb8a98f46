/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that wait for GPUs or ranks (why_await.h). */
#ifndef WAFFLE_ANALYZE_WHY_WHY_AWAIT_TYPES_H
#define WAFFLE_ANALYZE_WHY_WHY_AWAIT_TYPES_H

#include "analyze/why/why_types.h"
#include "model/comm/comm.h"
#include "model/gpu/gpu.h"
#include "model/gpu/gpu_timeline.h"

/* The rank that arrived last in a collective, or in the creation of a communicator. */
struct why_arrival {
	uint64_t ts;
	const struct model_collective *collective; /* NULL: creation of a communicator */
	uint32_t site;                             /* of the call */
	/* span MODEL_NONE: it had not arrived when the capture ended. */
	uint32_t span, thread, rank;
	bool of_root; /* it is the root of the collective, and not the last rank */
	enum why_grade grade;
};

/* A call that may wait. */
struct why_sync {
	uint32_t span;
	bool waits; /* we know something that it waits for */
	bool spins; /* it also waits while it is on a CPU */
	bool mpi;   /* a call of MPI: all of its time is waiting until the last rank has arrived */
	/* Nobody knows whether or for whom a call of MPI polls. So time on a CPU in it is no
	 * certain work, unless it `spins`; blocked time is explained by who ended it, as in other
	 * calls. */
	bool polls;
	/* enum why_cause: what it waits for after all known ranks have arrived. WHY_CAUSE_COUNT:
	 * unknown. */
	uint8_t end;
	enum why_grade grade;     /* of `end` */
	uint32_t object, meaning; /* texts of `end` */
	/* Texts of a host function that may be awaited: its name, and what the path says while a
	 * thread runs it. 0: none. */
	uint32_t host_name, host_object, host_meaning;
	uint64_t launch_ts; /* of the op that it waits for; 0: unknown */
	uint32_t launch_thread, launch_span;
	/* When the awaited work had ended, by the GPU's times: from then on the call waits for
	 * something else. UINT64_MAX: unknown. */
	uint64_t done_ts;
	uint32_t arrival, arrival_count; /* range in why_awaits.arrivals, by ts */
};

/* A call that creates a communicator. */
struct why_init {
	uint32_t span;
	uint64_t until_ts; /* when it and all those before it have ended */
};

/* A call that completes a nonblocking call of MPI, such as MPI_Wait. */
struct why_completion {
	uint32_t span;
	uint32_t collective; /* for model_collective_at() */
};

/* A capture is untrusted, so the searches of one walk may take only this many steps for each span
 * and event of the capture. An ordinary capture takes fewer than ten. */
#define WHY_AWAIT_STEPS 128
/* Limit of calls within calls to search. */
#define WHY_AWAIT_NESTED 64

struct why_awaits {
	struct model_gpu *gpu;   /* NULL: no GPU calls in the capture */
	struct model_comm *comm; /* NULL: no collectives */
	/* What the GPU did, with its own times; NULL: they were not recorded. */
	const struct gpu_timeline *timeline;
	struct gpu_timeline *own_timeline; /* the same, if we made it */
	struct map sync_of;                /* span → index in syncs */
	VEC(struct why_sync) syncs;
	VEC(struct why_arrival) arrivals;
	VEC(struct why_init) inits;             /* by start_ts */
	VEC(struct why_completion) completions; /* by span */
	bool mpi;                               /* the capture has calls of MPI */
	bool mpi_ranks;                         /* of more than one process */
	struct map ranks;                       /* those of all processes, in their jobs → 0 */
	struct map host_threads; /* process, name → thread + 1, or 0: why_await_host_thread() */
	/* For each span: itself or the innermost one around it that is a call that may wait;
	 * MODEL_NONE: none. NULL: the capture has no calls that may wait. */
	uint32_t *calls;
	uint64_t steps_left;
};

/* What a stretch of a thread's time waits for. */
struct why_await {
	uint32_t sync;    /* index in why_awaits.syncs; MODEL_NONE: not in such a call */
	uint32_t arrival; /* index in why_awaits.arrivals; MODEL_NONE: all have arrived */
	uint32_t host;    /* the thread that runs a host function meanwhile, or MODEL_NONE */
};
#define WHY_AWAIT_NOTHING ((struct why_await){MODEL_NONE, MODEL_NONE, MODEL_NONE})

#endif
