/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collectives and messages that NCCL reports to its profiler, put together from their events.
 *
 *	task ──┬─ kernel's channels: begin and end on the GPU, as NCCL's own thread saw them
 *	       │	└─ their phases
 *	       └─ proxy ops (one a channel and peer) ── their steps, each in one state of waiting
 *
 * NCCL starts and stops events on several threads. Handles are numbers of a bounded pool with a
 * generation, so a stop that never comes, or comes twice, does no harm. Nothing is allocated: what
 * finds no room is counted as lost. All functions are thread-safe.
 */
#ifndef WAFFLE_USDT_GPU_NCCL_TASKS_H
#define WAFFLE_USDT_GPU_NCCL_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/gpu/nccl_abi.h"

/* What the steps of a task wait for. */
enum nccl_wait {
	NCCL_WAIT_GPU,     /* to produce or consume data */
	NCCL_WAIT_PEER,    /* to be ready to receive */
	NCCL_WAIT_NETWORK, /* sending, or making received data visible to the GPU */
	NCCL_WAIT_RECEIVE, /* data that the peer has not sent, or that are on their way */
	NCCL_WAITS
};

/* How the end of a task is known. */
enum nccl_end {
	NCCL_END_ENQUEUED, /* not at all: only when NCCL had given it to the GPU */
	NCCL_END_PROXY,    /* when the last proxy op ended */
	NCCL_END_KERNEL,   /* when the kernel's last channel was seen to end */
};

/* A communicator, as init() has it. */
struct nccl_comm {
	uint64_t hash;        /* 0: unknown, as in versions 1 to 3 */
	int32_t rank, nranks; /* -1: unknown */
	int *mask;            /* NCCL's word; NULL: finalize() was called */
	char name[24];        /* the program's, or empty */
	bool used;
	bool finished; /* NCCL reports nothing more of its tasks; atomic */
};

/* NCCL's texts are copied: the program may unload NCCL before they are written. */
#define NCCL_TEXT_BYTES 32

struct nccl_task {
	struct nccl_comm *comm;
	bool message;               /* a send or receive, not a collective */
	char func[NCCL_TEXT_BYTES]; /* "": unknown, as the next two */
	char algo[NCCL_TEXT_BYTES], proto[NCCL_TEXT_BYTES];
	int datatype; /* number; -1: unknown */
	int32_t rank, peer;
	uint64_t comm_hash; /* 0: that of `comm` */
	uint64_t seq, count;
	uint32_t channels; /* that the kernel uses; 0: unknown */
	/* CLOCK_MONOTONIC; 0: not yet. */
	uint64_t start_ns, enqueued_ns, kernel_ns /* begin of its first channel */, proxy_end_ns,
		kernel_end_ns;
	uint64_t gpu_begin, gpu_end; /* the GPU's clock; 0: unknown */
	/* At barriers with the kernels of other ranks: of the channel that was there for the
	 * longest time. */
	uint64_t barrier_ns;
	bool has_phases;
	/* For each kind the time in which at least one step waited so. */
	uint64_t wait_ns[NCCL_WAITS];
	bool has_steps;
	bool kernels; /* its kernel reports channels */
	/* Private to nccl_tasks.c. */
	uint32_t steps[NCCL_WAITS]; /* that wait now */
	uint64_t changed_ns;
	uint32_t open;  /* children */
	uint32_t ended; /* channels of the kernel */
	uint32_t generation, next;
	uint8_t state;
};

enum nccl_end nccl_task_end(const struct nccl_task *task);
/* The latest time that is known of it. */
uint64_t nccl_task_end_ns(const struct nccl_task *task);

/* Begins an event. Returns its handle; NULL: nobody wants such events, or there is no room. */
void *nccl_event_begin(struct nccl_comm *comm, const struct nccl_layout *layout,
		       const uint8_t *description, uint64_t now_ns);
void nccl_event_end(void *handle, uint64_t now_ns);
/* A state of enum nccl_state begins. `timer`: the GPU's clock, or 0. */
void nccl_event_state(void *handle, int state, uint64_t timer, uint64_t now_ns);

/*
 * Takes a task that is complete: all channels of its kernel have ended. Where NCCL
 * does not report that, also a task without any report for a second, or for half a minute if its
 * kernel may still begin. `all`: any task. Call it until it returns false.
 */
bool nccl_tasks_take(struct nccl_task *task, uint64_t now_ns, bool all);

/* Whether a task of the communicator was not taken yet. */
bool nccl_tasks_has(const struct nccl_comm *comm);

struct nccl_losses {
	uint64_t tasks;  /* that had no room */
	uint64_t events; /* parts of tasks that had no room */
	uint64_t late;   /* parts of tasks that were written already, or of other processes */
};
struct nccl_losses nccl_losses(void);

/* In the child of a fork(). Tasks that were half changed may be lost; all numbers stay valid. */
void nccl_tasks_fork_child(void);

#endif
