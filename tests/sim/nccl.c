// SPDX-License-Identifier: Apache-2.0
/* The stand-in for libnccl.so.2: its functions. Data is not reduced; operations only take time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "nccl_work.h"

SIM_NOTE;

#define VERSION 22809 /* 2.28.9 */
/* The real library begins a line with its version in the same way. */
#define VERSION_LINE "NCCL version 2.28.9+cuda12.9 (simulated)"

extern const struct waffle_simulation waffle_simulation;
NCCL_API const struct waffle_simulation waffle_simulation = {
	.text = "simulated NCCL of waffle: no data are moved",
};

static const unsigned char type_bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

DEFINE_NCCL(ncclGetVersion, int *version)
{
	SIM_CALL(ncclResult_t);
	*version = VERSION;
	return ncclSuccess;
}

DEFINE_NCCL(ncclGetUniqueId, ncclUniqueId *uniqueId)
{
	SIM_CALL(ncclResult_t);
	if (getrandom(uniqueId->internal, sizeof(uniqueId->internal), 0) !=
	    sizeof(uniqueId->internal))
		return ncclSystemError;
	return ncclSuccess;
}

/* Once per process, as in the real library: NCCL_DEBUG=VERSION. */
static void tell_version(int rank)
{
	static bool told;
	const char *debug = getenv("NCCL_DEBUG");

	if (!rank && debug && strcmp(debug, "NONE") != 0 &&
	    !__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		puts(VERSION_LINE);
}

/* A device's memory is host memory, as in the driver. */
DEFINE_NCCL(ncclMemAlloc, void **ptr, size_t size)
{
	SIM_CALL(ncclResult_t);
	if (!ptr || !size)
		return ncclInvalidArgument;
	*ptr = malloc(size);
	return *ptr ? ncclSuccess : ncclSystemError;
}

DEFINE_NCCL(ncclMemFree, void *ptr)
{
	SIM_CALL(ncclResult_t);
	free(ptr);
	return ncclSuccess;
}

static ncclResult_t init_rank(ncclComm_t *comm, int nranks, const ncclUniqueId *id, int rank)
{
	char name[64];
	ncclResult_t result;

	tell_version(rank);
	comm_name(id, name);
	result = comm_join(comm, name, nranks, rank, rank);
	return result == ncclSuccess ? join_submit(*comm) : result;
}

DEFINE_NCCL(ncclCommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	SIM_CALL(ncclResult_t);
	return init_rank(comm, nranks, &commId, rank);
}

DEFINE_NCCL(ncclCommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
	    ncclConfig_t *config)
{
	SIM_CALL(ncclResult_t);
	(void)config;
	return init_rank(comm, nranks, &commId, rank);
}

DEFINE_NCCL(ncclCommInitRankScalable, ncclComm_t *newcomm, int nranks, int myrank, int nId,
	    ncclUniqueId *commIds, ncclConfig_t *config)
{
	SIM_CALL(ncclResult_t);
	(void)config;
	return nId < 1 ? ncclInvalidArgument : init_rank(newcomm, nranks, commIds, myrank);
}

DEFINE_NCCL(ncclCommInitAll, ncclComm_t *comm, int ndev, const int *devlist)
{
	ncclUniqueId id;
	char name[64];
	ncclResult_t result = ncclSuccess;

	SIM_CALL(ncclResult_t);
	if (getrandom(id.internal, sizeof(id.internal), 0) != sizeof(id.internal))
		return ncclSystemError;
	comm_name(&id, name);
	for (int i = 0; i < ndev && result == ncclSuccess; i++)
		result = comm_join(&comm[i], name, ndev, i, devlist ? devlist[i] : i);
	for (int i = 0; i < ndev && result == ncclSuccess; i++)
		result = join_submit(comm[i]);
	return result;
}

/* Splits a communicator: ranks with the same color form a new one, ordered by key and rank. */
static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm)
{
	struct shared *shared = comm->shared;
	uint32_t time = 2 * comm->splits++;
	int rank = 0, ranks = 0;
	char name[64];
	ncclResult_t result;

	shared->split[comm->rank].color = color;
	shared->split[comm->rank].key = key;
	meeting_arrive(&shared->splits, time, sim_now_ns());
	if (!meeting_wait(&shared->splits, time, &comm->aborted))
		return ncclInternalError;
	for (int i = 0; i < comm->nRanks; i++) {
		int other = shared->split[i].key;

		if (shared->split[i].color != color)
			continue;
		ranks++;
		if (other < key || (other == key && i < comm->rank))
			rank++;
	}
	/* The values of the next split must not be written before all ranks have read these. */
	meeting_arrive(&shared->splits, time + 1, sim_now_ns());
	if (!meeting_wait(&shared->splits, time + 1, &comm->aborted))
		return ncclInternalError;
	*newcomm = NULL;
	if (color < 0)
		return ncclSuccess;
	comm_name_child(comm, "split", comm->splits, (uint64_t)color, name);
	result = comm_join(newcomm, name, ranks, rank, comm->device);
	return result == ncclSuccess ? join_submit(*newcomm) : result;
}

DEFINE_NCCL(ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
	    ncclConfig_t *config)
{
	SIM_CALL(ncclResult_t);
	(void)config;
	return comm_good(comm) ? split(comm, color, key, newcomm) : ncclInvalidArgument;
}

/* Only the remaining ranks call this, so they cannot meet in the parent. The new name contains who
 * left. */
DEFINE_NCCL(ncclCommShrink, ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
	    ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
	uint64_t gone = 0;
	char name[64];
	ncclResult_t result;
	int rank;

	SIM_CALL(ncclResult_t);
	(void)config, (void)shrinkFlags;
	if (!comm_good(comm))
		return ncclInvalidArgument;
	rank = comm->rank;
	for (int i = 0; i < excludeRanksCount; i++) {
		int left = excludeRanksList[i];

		if (left < 0 || left >= comm->nRanks || left == comm->rank)
			return ncclInvalidArgument;
		gone |= 1ull << left;
		rank -= left < comm->rank;
	}
	comm_name_child(comm, "shrink", 0, gone, name);
	result = comm_join(newcomm, name, comm->nRanks - __builtin_popcountll(gone), rank,
			   comm->device);
	return result == ncclSuccess ? join_submit(*newcomm) : result;
}

DEFINE_NCCL(ncclCommFinalize, ncclComm_t comm)
{
	SIM_CALL(ncclResult_t);
	return comm_good(comm) ? ncclSuccess : ncclInvalidArgument;
}

DEFINE_NCCL(ncclCommDestroy, ncclComm_t comm)
{
	SIM_CALL(ncclResult_t);
	if (!comm_good(comm))
		return ncclInvalidArgument;
	comm_free(comm);
	return ncclSuccess;
}

/* Not freed, since kernels that wait for other ranks still use it. */
DEFINE_NCCL(ncclCommAbort, ncclComm_t comm)
{
	SIM_CALL(ncclResult_t);
	if (!comm_good(comm))
		return ncclInvalidArgument;
	__atomic_store_n(&comm->aborted, 1, __ATOMIC_SEQ_CST);
	return ncclSuccess;
}

DEFINE_NCCL(ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *asyncError)
{
	SIM_CALL(ncclResult_t);
	if (!comm_good(comm))
		return ncclInvalidArgument;
	*asyncError = comm->error;
	return ncclSuccess;
}

/*
 * A tracer derives the layout of a communicator from the two getters that follow. With
 * SIM_NCCL_OPAQUE their code does not show it, as that of a library which is built otherwise.
 */
#ifdef SIM_NCCL_OPAQUE
static __attribute__((noinline, noipa)) int number_of(const int *at)
{
	return *at;
}
#define NUMBER_OF(field) number_of(&(field))
#else
#define NUMBER_OF(field) (field)
#endif

DEFINE_NCCL(ncclCommCount, const ncclComm_t comm, int *count)
{
	SIM_CALL(ncclResult_t);
	if (!comm_good(comm))
		return ncclInvalidArgument;
	*count = NUMBER_OF(comm->nRanks);
	return ncclSuccess;
}

DEFINE_NCCL(ncclCommCuDevice, const ncclComm_t comm, int *device)
{
	SIM_CALL(ncclResult_t);
	if (!comm_good(comm))
		return ncclInvalidArgument;
	*device = comm->device;
	return ncclSuccess;
}

DEFINE_NCCL(ncclCommUserRank, const ncclComm_t comm, int *rank)
{
	SIM_CALL(ncclResult_t);
	if (!comm_good(comm))
		return ncclInvalidArgument;
	*rank = NUMBER_OF(comm->rank);
	return ncclSuccess;
}

NCCL_API const char *ncclGetErrorString(ncclResult_t result)
	__attribute__((weak, alias("pncclGetErrorString")));
const char *pncclGetErrorString(ncclResult_t result);
NCCL_API const char *pncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[] = {
		"no error",
		"unhandled cuda error (simulated)",
		"unhandled system error (simulated)",
		"internal error (simulated)",
		"invalid argument (simulated)",
		"invalid usage (simulated)",
		"remote process exited or there was a network error (simulated)",
		"NCCL operation in progress (simulated)",
	};

	return (unsigned int)result < sizeof(texts) / sizeof(texts[0]) ? texts[result]
								       : "unknown result code";
}

NCCL_API const char *ncclGetLastError(ncclComm_t comm)
	__attribute__((weak, alias("pncclGetLastError")));
const char *pncclGetLastError(ncclComm_t comm);
NCCL_API const char *pncclGetLastError(ncclComm_t comm)
{
	(void)comm;
	return "";
}

static ncclResult_t collective(const char *kernel, size_t count, ncclDataType_t datatype,
			       ncclComm_t comm, cudaStream_t stream)
{
	struct task task = {
		.kernel = kernel, .comm = comm, .stream = stream, .peer_from = -1, .peer_to = -1};

	if ((unsigned int)datatype >= ncclNumTypes)
		return ncclInvalidArgument;
	task.bytes = count * type_bytes[datatype];
	return task_submit(&task);
}

static ncclResult_t pair(int from, int to, size_t count, ncclDataType_t datatype, ncclComm_t comm,
			 cudaStream_t stream)
{
	struct task task = {.kernel = "SendRecv",
			    .comm = comm,
			    .stream = stream,
			    .peer_from = from,
			    .peer_to = to};

	if ((unsigned int)datatype >= ncclNumTypes || from < 0 || to < 0 || from >= comm->nRanks ||
	    to >= comm->nRanks)
		return ncclInvalidArgument;
	task.bytes = count * type_bytes[datatype];
	return task_submit(&task);
}

/* A collective: its name, the name of its kernel, and its arguments up to the communicator. */
#define DEFINE_COLLECTIVE(name, kernel, count, ...)                                                \
	DEFINE_NCCL(name, __VA_ARGS__, ncclComm_t comm, cudaStream_t stream)                       \
	{                                                                                          \
		SIM_CALL(ncclResult_t);                                                            \
		UNUSED_##name;                                                                     \
		return collective(kernel, count, datatype, comm, stream);                          \
	}
#define BUFFERS (void)sendbuff, (void)recvbuff
#define UNUSED_ncclAllReduce BUFFERS, (void)op
#define UNUSED_ncclReduceScatter BUFFERS, (void)op
#define UNUSED_ncclAllGather BUFFERS
#define UNUSED_ncclAlltoAll BUFFERS
#define UNUSED_ncclReduce BUFFERS, (void)op, (void)root
#define UNUSED_ncclBroadcast BUFFERS, (void)root
#define UNUSED_ncclGather BUFFERS, (void)root
#define UNUSED_ncclScatter BUFFERS, (void)root
#define UNUSED_ncclBcast (void)buff, (void)root

DEFINE_COLLECTIVE(ncclAllReduce, "AllReduce_Sum_f32_RING_LL", count, const void *sendbuff,
		  void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op)
DEFINE_COLLECTIVE(ncclReduceScatter, "ReduceScatter_Sum_f32_RING_LL", recvcount,
		  const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
		  ncclRedOp_t op)
DEFINE_COLLECTIVE(ncclAllGather, "AllGather_RING_LL", sendcount, const void *sendbuff,
		  void *recvbuff, size_t sendcount, ncclDataType_t datatype)
DEFINE_COLLECTIVE(ncclAlltoAll, "SendRecv", count, const void *sendbuff, void *recvbuff,
		  size_t count, ncclDataType_t datatype)
DEFINE_COLLECTIVE(ncclReduce, "Reduce_Sum_f32_RING_LL", count, const void *sendbuff, void *recvbuff,
		  size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root)
DEFINE_COLLECTIVE(ncclBroadcast, "Broadcast_RING_LL", count, const void *sendbuff, void *recvbuff,
		  size_t count, ncclDataType_t datatype, int root)
DEFINE_COLLECTIVE(ncclGather, "SendRecv", count, const void *sendbuff, void *recvbuff, size_t count,
		  ncclDataType_t datatype, int root)
DEFINE_COLLECTIVE(ncclScatter, "SendRecv", count, const void *sendbuff, void *recvbuff,
		  size_t count, ncclDataType_t datatype, int root)
DEFINE_COLLECTIVE(ncclBcast, "Broadcast_RING_LL", count, void *buff, size_t count,
		  ncclDataType_t datatype, int root)

/* RCCL has two functions more. */
#ifdef SIM_RCCL
NCCL_DECLARE(ncclAllToAll, const void *sendbuff, void *recvbuff, size_t count,
	     ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclAllToAllv, const void *sendbuff, const size_t sendcounts[], const size_t sdispls[],
	     void *recvbuff, const size_t recvcounts[], const size_t rdispls[],
	     ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
#define UNUSED_ncclAllToAll BUFFERS
#define UNUSED_ncclAllToAllv BUFFERS, (void)sdispls, (void)recvcounts, (void)rdispls
DEFINE_COLLECTIVE(ncclAllToAll, "SendRecv", count, const void *sendbuff, void *recvbuff,
		  size_t count, ncclDataType_t datatype)
DEFINE_COLLECTIVE(ncclAllToAllv, "SendRecv", sendcounts[0], const void *sendbuff,
		  const size_t sendcounts[], const size_t sdispls[], void *recvbuff,
		  const size_t recvcounts[], const size_t rdispls[], ncclDataType_t datatype)
#endif

DEFINE_NCCL(ncclSend, const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
	    ncclComm_t comm, cudaStream_t stream)
{
	SIM_CALL(ncclResult_t);
	(void)sendbuff;
	if (!comm_good(comm))
		return ncclInvalidArgument;
	return pair(comm->rank, peer, count, datatype, comm, stream);
}

DEFINE_NCCL(ncclRecv, void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	    ncclComm_t comm, cudaStream_t stream)
{
	SIM_CALL(ncclResult_t);
	(void)recvbuff;
	if (!comm_good(comm))
		return ncclInvalidArgument;
	return pair(peer, comm->rank, count, datatype, comm, stream);
}
