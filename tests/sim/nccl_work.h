/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the stand-in for libnccl.so.2. */
#ifndef SIM_NCCL_INTERNAL_H
#define SIM_NCCL_INTERNAL_H

#include "nccl_comm.h"
#include "simulation.h"

/* ncclX and pncclX are two names of one function, the first one weak, as in the real library. */
#define NCCL_API __attribute__((visibility("default")))
#define DEFINE_NCCL(name, ...)                                                                     \
	NCCL_API ncclResult_t name(__VA_ARGS__) __attribute__((weak, alias("p" #name)));           \
	ncclResult_t p##name(__VA_ARGS__);                                                         \
	NCCL_API ncclResult_t p##name(__VA_ARGS__)

/* The work of one call: a rank's part in a collective, or one side of a pair. */
struct task {
	const char *kernel; /* "AllReduce" */
	ncclComm_t comm;
	cudaStream_t stream;
	uint64_t bytes;
	int peer_from, peer_to; /* for a pair; -1: a collective */
	uint32_t time;          /* round of its meeting */
	uint64_t last_ns;
};

/* Executes it now, or at the end of the group. */
ncclResult_t task_submit(const struct task *task);

/* Waits for the creation of a communicator now, or at the end of the group. */
ncclResult_t join_submit(ncclComm_t comm);

#endif
