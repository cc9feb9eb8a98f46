/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of the stand-in for NCCL; see sim_cuda.h. */
#ifndef SIM_NCCL_H
#define SIM_NCCL_H

#include "sim_cuda.h"

#ifdef SIM_NVIDIA_HEADERS
#include <nccl.h>
#else

typedef struct ncclComm *ncclComm_t;
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
} ncclResult_t;

typedef enum {
	ncclInt8 = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclFloat32 = 7,
	ncclFloat64 = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10,
	ncclFloat8e5m2 = 11,
	ncclNumTypes = 12,
} ncclDataType_t;

typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;

#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_CONFIG_UNDEF_INT (-2147483647 - 1)

typedef struct ncclConfig_v22800 {
	size_t size;
	unsigned int magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs;
	const char *netName;
	int splitShare, trafficClass;
	const char *commName;
	int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer,
		nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_DECLARE(name, ...) ncclResult_t name(__VA_ARGS__), p##name(__VA_ARGS__)

NCCL_DECLARE(ncclGetVersion, int *version);
NCCL_DECLARE(ncclGetUniqueId, ncclUniqueId *uniqueId);
NCCL_DECLARE(ncclMemAlloc, void **ptr, size_t size);
NCCL_DECLARE(ncclMemFree, void *ptr);
NCCL_DECLARE(ncclCommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank);
NCCL_DECLARE(ncclCommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
	     ncclConfig_t *config);
NCCL_DECLARE(ncclCommInitRankScalable, ncclComm_t *newcomm, int nranks, int myrank, int nId,
	     ncclUniqueId *commIds, ncclConfig_t *config);
NCCL_DECLARE(ncclCommInitAll, ncclComm_t *comm, int ndev, const int *devlist);
NCCL_DECLARE(ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
	     ncclConfig_t *config);
NCCL_DECLARE(ncclCommShrink, ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
	     ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags);
NCCL_DECLARE(ncclCommFinalize, ncclComm_t comm);
NCCL_DECLARE(ncclCommDestroy, ncclComm_t comm);
NCCL_DECLARE(ncclCommAbort, ncclComm_t comm);
NCCL_DECLARE(ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *asyncError);
NCCL_DECLARE(ncclCommCount, const ncclComm_t comm, int *count);
NCCL_DECLARE(ncclCommCuDevice, const ncclComm_t comm, int *device);
NCCL_DECLARE(ncclCommUserRank, const ncclComm_t comm, int *rank);
const char *ncclGetErrorString(ncclResult_t result);
const char *pncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
const char *pncclGetLastError(ncclComm_t comm);
NCCL_DECLARE(ncclGroupStart, void);
NCCL_DECLARE(ncclGroupEnd, void);

NCCL_DECLARE(ncclAllReduce, const void *sendbuff, void *recvbuff, size_t count,
	     ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclReduceScatter, const void *sendbuff, void *recvbuff, size_t recvcount,
	     ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclAllGather, const void *sendbuff, void *recvbuff, size_t sendcount,
	     ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclAlltoAll, const void *sendbuff, void *recvbuff, size_t count,
	     ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclReduce, const void *sendbuff, void *recvbuff, size_t count,
	     ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
	     cudaStream_t stream);
NCCL_DECLARE(ncclBroadcast, const void *sendbuff, void *recvbuff, size_t count,
	     ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclGather, const void *sendbuff, void *recvbuff, size_t count,
	     ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclScatter, const void *sendbuff, void *recvbuff, size_t count,
	     ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclBcast, void *buff, size_t count, ncclDataType_t datatype, int root,
	     ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclSend, const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
	     ncclComm_t comm, cudaStream_t stream);
NCCL_DECLARE(ncclRecv, void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	     ncclComm_t comm, cudaStream_t stream);
#endif
#endif
