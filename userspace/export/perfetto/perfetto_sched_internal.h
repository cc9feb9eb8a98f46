/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduler data of a trace. perfetto_sched.c decides what to write, and perfetto_bundle.c writes
 * it. */
#ifndef WAFFLE_EXPORT_PERFETTO_PERFETTO_SCHED_INTERNAL_H
#define WAFFLE_EXPORT_PERFETTO_PERFETTO_SCHED_INTERNAL_H

#include "export/perfetto/perfetto_internal.h"

/* Perfetto rejects a trace with more CPUs. */
#define CPUS_MAX 1024
#define BUNDLE_SWITCHES 1024

struct waking {
	uint64_t ts;
	uint32_t thread;
	uint16_t cpu; /* CPU on which the thread then ran */
	uint8_t flags;
};

/* A waking whose waker the trace does not show running on a CPU, so the event names it. */
struct named_waking {
	struct waking waking;
	uint32_t waker;
};

struct free_mark {
	uint64_t ts;
	uint32_t thread;
};

/* Data of a CPU that is collected until it is written as a bundle. */
struct cpu {
	struct sequence sequence;
	/* The thread that runs according to the data written; MODEL_NONE: idle or unknown. */
	uint32_t current;
	bool primed;
	bool lost;
	uint64_t last_ts;
	VEC(uint64_t) ts;
	VEC(uint32_t) next;
	VEC(uint16_t) prev_state;
	VEC(struct waking) wakings;
	VEC(struct named_waking) named;
	VEC(struct free_mark) freed;
};

/* The last periods in which a thread ran, the newest first. They tell on which CPU a waker was. */
#define RUNS 4
struct sched_run {
	uint64_t from, to;
	uint16_t cpu;
};

struct perfetto_sched {
	struct perfetto *p;
	struct cpu *cpus;
	uint32_t cpu_count;
	struct sched_run (*runs)[RUNS];
	uint64_t *out_ts;      /* by thread: when it last left a CPU */
	uint32_t *comm_bundle; /* by thread: the last bundle that contains its name … */
	uint32_t *comm_index;  /* … and its index there */
	uint32_t bundles;
	/* A bit for each switch: the next switch of the CPU is from this switch's next thread. */
	unsigned char *confirmed;
	VEC(uint32_t) comms; /* threads with a name in the bundle */
};

static inline const struct model_thread *thread_at(const struct perfetto_sched *s, uint32_t thread)
{
	return thread < s->p->model->threads.len ? &s->p->model->threads.data[thread] : NULL;
}

/* Writes the collected data of a CPU. */
void cpu_flush(struct perfetto_sched *s, struct cpu *cpu);
/* Writes a switch in the long form. It is used for the first switches of a CPU, since Perfetto
 * skips the first compact one. */
void cpu_put_switch(struct perfetto_sched *s, struct cpu *cpu, uint64_t ts, uint32_t prev,
		    uint16_t prev_state, uint32_t next);
/* Writes that a CPU has a frequency of `khz` from `ts` on. */
void cpu_put_frequency(struct perfetto_sched *s, struct cpu *cpu, uint64_t ts, uint32_t khz);
/* Writes that records of a CPU were lost. */
void cpu_put_lost(struct perfetto_sched *s, struct cpu *cpu);

#endif
