/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the stand-in of libnccl.so.2: what its files share. */
#ifndef SIM_NCCL_INTERNAL_H
#define SIM_NCCL_INTERNAL_H

#include "nccl_comm.h"
#include "simulation.h"

/* ncclX and pncclX are one function with two names, the first of them weak, as in the real one. */
#define NCCL_API __attribute__((visibility("default")))
#define DEFINE_NCCL(name, ...)                                                                     \
	NCCL_API ncclResult_t name(__VA_ARGS__) __attribute__((weak, alias("p" #name)));           \
	ncclResult_t p##name(__VA_ARGS__);                                                         \
	NCCL_API ncclResult_t p##name(__VA_ARGS__)

/* One call's work: what a rank does in a collective, or one side of a pair. */
struct task {
	const char *kernel; /* "AllReduce" */
	ncclComm_t comm;
	cudaStream_t stream;
	uint64_t bytes;
	int peer_from, peer_to; /* of a pair; -1: a collective */
	uint32_t time;          /* which one it is of its meeting */
	uint64_t last_ns;
};

/* Does it now, or at the end of the group. */
ncclResult_t task_submit(const struct task *task);

/* What a communicator's creation waits for is waited for at the end of the group. */
ncclResult_t join_submit(ncclComm_t comm);

#endif
