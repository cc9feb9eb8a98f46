/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL's profiler plugins and NCCL exchange, in its versions 1 to 7 (NCCL 2.23 to 2.32). From
 * NCCL's src/include/plugin/profiler/. A description of an event is read by offsets, since the
 * structs of the versions differ in little else. The last members of a collective in version 7 are
 * not read: NCCL 2.31 may not have all of those that 2.32 has.
 */
#ifndef WAFFLE_USDT_GPU_NCCL_ABI_H
#define WAFFLE_USDT_GPU_NCCL_ABI_H

#include <stdbool.h>
#include <stdint.h>

#define NCCL_VERSIONS 7 /* the latest version of the interface; the first one is 1 */

/* Types of events, which are also the bits of the mask that says which of them NCCL reports. */
enum nccl_event_type {
	NCCL_EVENT_COLL = 2,
	NCCL_EVENT_P2P = 4,
	NCCL_EVENT_PROXY_OP = 8,
	NCCL_EVENT_PROXY_STEP = 16,
	NCCL_EVENT_KERNEL_CHANNEL = 64,  /* since version 3 */
	NCCL_EVENT_KERNEL_PHASE = 32768, /* since version 7; its parent is a channel */
};

/* States of a proxy step: what it waits for from now on. */
enum nccl_state {
	NCCL_STATE_SEND_GPU_WAIT = 8,    /* the GPU has to produce the data */
	NCCL_STATE_SEND_WAIT = 9,        /* the network sends */
	NCCL_STATE_RECV_WAIT = 10,       /* data from the peer, by the network */
	NCCL_STATE_RECV_FLUSH_WAIT = 11, /* received data reach the GPU's memory */
	NCCL_STATE_RECV_GPU_WAIT = 12,   /* the GPU has to consume the data */
	NCCL_STATE_SEND_PEER_WAIT = 20,  /* the receiver has to be ready; since version 4 */
	/* The arguments of the next two have the GPU's time. */
	NCCL_STATE_KERNEL_STOP = 22, /* a channel has ended on the GPU */
	NCCL_STATE_PHASE_STOP = 31,  /* a phase has ended on the GPU */
};

/* Phases of a kernel on symmetric memory. */
enum nccl_phase {
	NCCL_PHASE_INITIAL_SYNC, /* a barrier with the kernels of the other ranks */
	NCCL_PHASE_COMPUTE,
	NCCL_PHASE_FINAL_SYNC, /* a barrier */
};

/* Offsets in a description. All versions have the parent at 8 and the rank at 16. */
#define NCCL_AT_PARENT 8
#define NCCL_AT_RANK 16
#define NCCL_AT_PID 24         /* a proxy op has its process here: pid_t */
#define NCCL_AT_TIMER 32       /* a channel has the GPU's time here, since version 4: u64 */
#define NCCL_AT_PHASE 25       /* a phase has its enum nccl_phase here: u8 */
#define NCCL_AT_PHASE_TIMER 40 /* a phase has the GPU's time here: u64 */

/* A task is a collective or a message. 0: the version does not have the member. */
struct nccl_task_layout {
	uint16_t hash;  /* u64: the communicator's, in versions whose init() does not get it */
	uint16_t seq;   /* u64 */
	uint16_t func;  /* const char *; version 1: u8, a number */
	uint16_t count; /* size_t */
	uint16_t peer;  /* int */
	uint16_t datatype, algo, proto; /* as func */
	uint16_t channels;              /* u8 */
};

struct nccl_layout {
	struct nccl_task_layout coll, p2p;
	bool numbers;   /* names are numbers */
	bool wide_type; /* the type is u64, not u8 */
	bool kernels;   /* kernels report their channels */
	bool timer;     /* channels have the GPU's times */
	bool phases;    /* kernels report the phases of channels */
};

/* By the version of the interface; [0] is not used. */
extern const struct nccl_layout nccl_layouts[NCCL_VERSIONS + 1];

/* Names of the numbers of version 1: src/include/nccl_common.h, and nccl.h for types. */
const char *nccl_function_name(unsigned number);
const char *nccl_algorithm_name(unsigned number);
const char *nccl_protocol_name(unsigned number);
/* The number of a type by its name, "ncclFloat32"; -1: unknown. */
int nccl_type_number(const char *name);
/* The name of a type as in probes/nccl.probes; NULL: unknown. */
const char *nccl_type_name(unsigned number);
unsigned nccl_type_bytes(unsigned number); /* 0: unknown */

typedef int (*nccl_logger)(int level, unsigned long flags, const char *file, int line,
			   const char *format, ...);

/* The exported struct of a version. `context` is the plugin's, and so are handles. init() differs:
 * v1 to v3 (context, mask), v4 (context, mask, name, hash, nodes, ranks, rank, logger), v5 to v7
 * (context, hash, mask, name, nodes, ranks, rank, logger). */
struct nccl_plugin {
	const char *name;
	void *init;
	int (*start)(void *context, void **handle, const void *description);
	int (*stop)(void *handle);
	int (*record)(void *handle, int state, const void *arguments);
	int (*finalize)(void *context);
};

#endif
