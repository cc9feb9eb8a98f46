/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduler data of a trace: perfetto_sched.c decides what is said, perfetto_bundle.c writes it. */
#ifndef WAFFLE_EXPORT_PERFETTO_SCHED_H
#define WAFFLE_EXPORT_PERFETTO_SCHED_H

#include <errno.h>

#include "export/perfetto_internal.h"

/* Perfetto refuses a trace with more. */
#define CPUS_MAX 1024
#define BUNDLE_SWITCHES 1024

struct waking {
	uint64_t ts;
	uint32_t thread;
	uint16_t cpu; /* where it then ran */
	uint8_t flags;
};

/* A waking whose waker is not seen running: it is named. */
struct named_waking {
	struct waking waking;
	uint32_t waker;
};

struct free_mark {
	uint64_t ts;
	uint32_t thread;
};

/* What is collected of a CPU until it is written as a bundle. */
struct cpu {
	struct sequence sequence;
	uint32_t current; /* who runs as Perfetto has been told; MODEL_NONE: idle or not known */
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

/* The last times that a thread ran, the newest first: where a waker was when it woke somebody. */
#define RUNS 4
struct run {
	uint64_t from, to;
	uint16_t cpu;
};

struct sched {
	struct perfetto *p;
	struct cpu *cpus;
	uint32_t cpu_count;
	struct run (*runs)[RUNS];
	uint64_t *out_ts;      /* by thread: when it last left a CPU */
	uint32_t *comm_bundle; /* by thread: last bundle that holds its name … */
	uint32_t *comm_index;  /* … and where */
	uint32_t bundles;
	unsigned char *confirmed; /* a bit a switch: the next switch of its CPU is from its next */
	VEC(uint32_t) comms;      /* threads named in the bundle */
	int error;
};

static inline const struct model_thread *thread_at(const struct sched *s, uint32_t thread)
{
	return thread < s->p->model->threads.len ? &s->p->model->threads.data[thread] : NULL;
}

/* Appends to a vector; a failure is kept in the sched's error. */
#define sched_push(s, vec, ...)                                                                    \
	do {                                                                                       \
		if (!vec_push(vec, __VA_ARGS__))                                                   \
			(s)->error = -ENOMEM;                                                      \
	} while (0)

/* Writes what is collected of a CPU. */
void cpu_flush(struct sched *s, struct cpu *cpu);
/* Writes a long switch from prev to next: the first ones of a CPU, for Perfetto skips a compact
 * first one. */
void cpu_put_switch(struct sched *s, struct cpu *cpu, uint64_t ts, uint32_t prev,
		    uint16_t prev_state, uint32_t next);
/* Says that a CPU's frequency is khz from ts on. */
void cpu_put_frequency(struct sched *s, struct cpu *cpu, uint64_t ts, uint32_t khz);
/* Says that records of a CPU were lost. */
void cpu_put_lost(struct sched *s, struct cpu *cpu);

#endif
