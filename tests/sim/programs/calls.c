// SPDX-License-Identifier: Apache-2.0
/*
 * Calls every function of the stand-ins that a tracer may watch, each with distinct arguments, and
 * logs the calls (log.h): calls [--log FILE] [--pause]. With --pause it waits for a line on stdin
 * before the first call and for another one at the end, so that a tracer can attach.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "log.h"
#include "session.h"
#include "sim_nccl.h"

KERNEL(scale, "_Z5scalemPfi")

#define RANKS 2
#define FLOATS 4096

#define U(pointer) ((uintptr_t)(pointer))

/* The second bodies, which no header declares. */
cudaError_t cudaLaunchKernel_ptsz(const void *func, dim3 gridDim, dim3 blockDim, void **args,
				  size_t sharedMem, cudaStream_t stream);
cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
				 cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);

struct calls {
	cudaStream_t stream, other;
	cudaEvent_t event;
	float *device, *device2, *host;
	ncclComm_t comms[RANKS];
	cudaStream_t streams[RANKS];
};

#define LAUNCH_KEYS                                                                                \
	"\"kernel\": \"scale(unsigned long, float*, int)\", \"grid\": [%u, %u, %u], "              \
	"\"block\": [%u, %u, %u], \"shared_bytes\": %zu, \"stream\": %lu"
#define LAUNCH_VALUES(grid, block, shared, stream)                                                 \
	(grid).x, (grid).y, (grid).z, (block).x, (block).y, (block).z, (size_t)(shared), U(stream)

static void launches(struct calls *calls)
{
	uint64_t ns = 1000;
	int count = FLOATS;
	void *args[] = {&ns, &calls->device, &count};
	dim3 grid = {3, 5, 7}, block = {32, 2, 4};
	cudaLaunchConfig_t config = {.gridDim = {9, 8, 7},
				     .blockDim = {64, 1, 2},
				     .dynamicSmemBytes = 2048,
				     .stream = calls->other};
	cudaKernel_t kernel;

	LAUNCH(scale, grid, block, 1024, calls->stream, ns, calls->device, count);
	MUST(LOGGED(cudaLaunchKernel_ptsz,
		    ((const void *)scale, grid, block, args, 512, calls->other), LAUNCH_KEYS,
		    LAUNCH_VALUES(grid, block, 512, calls->other)));
	/* Stream 0 denotes the thread's own stream here. */
	MUST(LOGGED(cudaLaunchKernel_ptsz, ((const void *)scale, grid, block, args, 513, NULL),
		    LAUNCH_KEYS, LAUNCH_VALUES(grid, block, 513, NULL)));
	MUST(LOGGED(cudaStreamSynchronize_ptsz, (NULL), "\"stream\": %lu", U(NULL)));
	MUST(LOGGED(cudaLaunchKernelExC, (&config, (const void *)scale, args), LAUNCH_KEYS,
		    LAUNCH_VALUES(config.gridDim, config.blockDim, 2048, calls->other)));
	MUST(LOGGED(cudaLaunchCooperativeKernel,
		    ((const void *)scale, grid, block, args, 256, calls->stream), LAUNCH_KEYS,
		    LAUNCH_VALUES(grid, block, 256, calls->stream)));
	/* As a stub of CUDA 13 does: a tracer sees cudaLaunchKernel with a handle. */
	MUST(__cudaGetKernel(&kernel, (const void *)scale));
	MUST(LOGGED(__cudaLaunchKernel, (kernel, grid, block, args, 128, calls->stream),
		    LAUNCH_KEYS, LAUNCH_VALUES(grid, block, 128, calls->stream)));
}

static void driver_launches(struct calls *calls)
{
	uint64_t ns = 1000;
	int count = FLOATS;
	void *args[] = {&ns, &calls->device, &count};
	CUlaunchConfig config = {.gridDimX = 2,
				 .gridDimY = 3,
				 .gridDimZ = 4,
				 .blockDimX = 5,
				 .blockDimY = 6,
				 .blockDimZ = 7,
				 .sharedMemBytes = 99,
				 .hStream = calls->other};
	CUmodule module;
	CUfunction function;

	MUST(LOGGED(cuModuleLoadData, (&module, &kernels_fatbin), "%s", ""));
	MUST(LOGGED(cuModuleGetFunction, (&function, module, "_Z6jittedPf"),
		    "\"kernel\": \"_Z6jittedPf\", \"function\": %lu", U(function)));
	MUST(LOGGED(cuLaunchKernel, (function, 2, 1, 6, 17, 3, 5, 640, calls->stream, args, NULL),
		    "\"kernel\": \"jitted(float*)\", \"grid\": [2, 1, 6], \"block\": [17, 3, 5], "
		    "\"shared_bytes\": 640, \"stream\": %lu",
		    U(calls->stream)));
	MUST(LOGGED(cuLaunchKernelEx, (&config, function, args, NULL),
		    "\"kernel\": \"jitted(float*)\", \"grid\": [2, 3, 4], \"block\": [5, 6, 7], "
		    "\"shared_bytes\": 99, \"stream\": %lu",
		    U(calls->other)));
}

#define COPY_KEYS "\"bytes\": %zu, \"kind\": %d, \"stream\": %lu"
#define SET_KEYS "\"bytes\": %zu, \"stream\": %lu"

static void copies(struct calls *calls)
{
	size_t bytes = FLOATS * sizeof(float);
	void *dst = calls->device, *dst2 = calls->device2, *host = calls->host;
	CUdeviceptr to = U(dst), from = U(dst2);

	MUST(LOGGED(cudaMemcpy, (dst, host, 4096, cudaMemcpyHostToDevice),
		    "\"bytes\": %d, \"kind\": %d", 4096, 1));
	MUST(LOGGED(cudaMemcpyAsync, (dst, host, bytes, cudaMemcpyHostToDevice, calls->stream),
		    COPY_KEYS, bytes, 1, U(calls->stream)));
	MUST(LOGGED(cudaMemcpyAsync, (host, dst, 444, cudaMemcpyDeviceToHost, calls->stream),
		    COPY_KEYS, (size_t)444, 2, U(calls->stream)));
	MUST(LOGGED(cudaMemcpyAsync, (dst2, dst, 333, cudaMemcpyDeviceToDevice, calls->other),
		    COPY_KEYS, (size_t)333, 3, U(calls->other)));
	MUST(LOGGED(cudaMemcpyAsync, (dst2, dst, 222, cudaMemcpyDefault, calls->other), COPY_KEYS,
		    (size_t)222, 4, U(calls->other)));
	MUST(LOGGED(cudaMemcpyAsync_ptsz, (dst, host, 111, cudaMemcpyHostToDevice, calls->other),
		    COPY_KEYS, (size_t)111, 1, U(calls->other)));
	MUST(LOGGED(cudaMemcpy2DAsync,
		    (dst, 256, host, 128, 100, 5, cudaMemcpyHostToDevice, calls->stream),
		    "\"width\": 100, \"height\": 5, \"kind\": 1, \"stream\": %lu",
		    U(calls->stream)));
	MUST(LOGGED(cudaMemcpyPeerAsync, (dst2, 1, dst, 0, 777, calls->other),
		    "\"to_device\": 1, \"from_device\": 0, " SET_KEYS, (size_t)777,
		    U(calls->other)));
	MUST(LOGGED(cuMemcpyHtoDAsync_v2, (to, host, 51, calls->stream), SET_KEYS, (size_t)51,
		    U(calls->stream)));
	MUST(LOGGED(cuMemcpyDtoHAsync_v2, (host, from, 52, calls->stream), SET_KEYS, (size_t)52,
		    U(calls->stream)));
	MUST(LOGGED(cuMemcpyDtoDAsync_v2, (to, from, 53, calls->other), SET_KEYS, (size_t)53,
		    U(calls->other)));
	MUST(LOGGED(cuMemcpyAsync, (to, from, 54, calls->other), SET_KEYS, (size_t)54,
		    U(calls->other)));
	MUST(LOGGED(cudaMemset, (dst, 1, 61), "\"bytes\": %d", 61));
	MUST(LOGGED(cudaMemsetAsync, (dst, 1, 62, calls->stream), SET_KEYS, (size_t)62,
		    U(calls->stream)));
	MUST(LOGGED(cuMemsetD8Async, (to, 1, 63, calls->other), SET_KEYS, (size_t)63,
		    U(calls->other)));
}

static void allocations(struct calls *calls)
{
	void *memory = NULL;
	CUdeviceptr device = 0;

#define ALLOC_KEYS "\"bytes\": %d, \"address\": %lu"
	MUST(LOGGED(cudaMalloc, (&memory, 7001), ALLOC_KEYS, 7001, U(memory)));
	MUST(LOGGED(cudaFree, (memory), "\"address\": %lu", U(memory)));
	MUST(LOGGED(cudaMallocAsync, (&memory, 7002, calls->stream), ALLOC_KEYS, 7002, U(memory)));
	MUST(LOGGED(cudaFreeAsync, (memory, calls->stream), "\"address\": %lu", U(memory)));
	MUST(LOGGED(cudaMallocHost, (&memory, 7003), ALLOC_KEYS, 7003, U(memory)));
	MUST(LOGGED(cudaFreeHost, (memory), "\"address\": %lu", U(memory)));
	MUST(LOGGED(cudaMallocManaged, (&memory, 7004, 1), ALLOC_KEYS, 7004, U(memory)));
	MUST(LOGGED(cudaFree, (memory), "\"address\": %lu", U(memory)));
	MUST(LOGGED(cuMemAlloc_v2, (&device, 7005), ALLOC_KEYS, 7005, (uintptr_t)device));
	MUST(LOGGED(cuMemFree_v2, (device), "\"address\": %lu", (uintptr_t)device));
	MUST(LOGGED(ncclMemAlloc, (&memory, 7006), ALLOC_KEYS, 7006, U(memory)));
	MUST(LOGGED(ncclMemFree, (memory), "\"address\": %lu", U(memory)));
	/* A failing call is recorded, too. */
	LOGGED(cudaMalloc, (&memory, 0), "\"bytes\": %d", 0);
}

static void waits(struct calls *calls)
{
	MUST(LOGGED(cudaEventRecord, (calls->event, calls->stream),
		    "\"event\": %lu, \"stream\": %lu", U(calls->event), U(calls->stream)));
	MUST(LOGGED(cudaStreamWaitEvent, (calls->other, calls->event, 0),
		    "\"stream\": %lu, \"event\": %lu", U(calls->other), U(calls->event)));
	MUST(LOGGED(cudaEventSynchronize, (calls->event), "\"event\": %lu", U(calls->event)));
	MUST(LOGGED(cudaStreamSynchronize, (calls->stream), "\"stream\": %lu", U(calls->stream)));
	MUST(LOGGED(cudaStreamSynchronize_ptsz, (calls->other), "\"stream\": %lu",
		    U(calls->other)));
	MUST(LOGGED(cudaDeviceSynchronize, (), "%s", ""));
	MUST(LOGGED(cuEventRecord, (calls->event, calls->stream), "\"event\": %lu, \"stream\": %lu",
		    U(calls->event), U(calls->stream)));
	MUST(LOGGED(cuStreamWaitEvent, (calls->other, calls->event, 0),
		    "\"stream\": %lu, \"event\": %lu", U(calls->other), U(calls->event)));
	MUST(LOGGED(cuEventSynchronize, (calls->event), "\"event\": %lu", U(calls->event)));
	MUST(cuEventQuery(calls->event)); /* the event is done: no wait */
	MUST(LOGGED(cuStreamSynchronize, (calls->stream), "\"stream\": %lu", U(calls->stream)));
	MUST(LOGGED(cuCtxSynchronize, (), "%s", ""));
}

#define EVENT_KEYS "\"event\": %lu, \"stream\": %lu"

static void graphs(struct calls *calls)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	dim3 grid = {4, 4, 4}, block = {8, 8, 8};
	uint64_t ns = 1000;

	LAUNCH(scale, grid, block, 1, calls->stream, ns, calls->device, FLOATS);
	MUST(LOGGED(cudaStreamBeginCapture, (calls->stream, cudaStreamCaptureModeGlobal),
		    "\"stream\": %lu, \"mode\": 0", U(calls->stream)));
	LAUNCH(scale, grid, block, 2, calls->stream, ns, calls->device, FLOATS);
	/* From here on the other stream takes part. */
	MUST(LOGGED(cudaEventRecord, (calls->event, calls->stream), EVENT_KEYS, U(calls->event),
		    U(calls->stream)));
	MUST(LOGGED(cudaStreamWaitEvent, (calls->other, calls->event, 0), EVENT_KEYS,
		    U(calls->event), U(calls->other)));
	LAUNCH(scale, grid, block, 3, calls->other, ns, calls->device, FLOATS);
	MUST(LOGGED(cudaEventRecord, (calls->event, calls->other), EVENT_KEYS, U(calls->event),
		    U(calls->other)));
	MUST(LOGGED(cudaStreamWaitEvent, (calls->stream, calls->event, 0), EVENT_KEYS,
		    U(calls->event), U(calls->stream)));
	MUST(LOGGED(cudaStreamEndCapture, (calls->stream, &graph),
		    "\"stream\": %lu, \"graph\": %lu", U(calls->stream), U(graph)));
	MUST(LOGGED(cudaStreamSynchronize, (calls->stream), "\"stream\": %lu", U(calls->stream)));
	MUST(LOGGED(cudaStreamSynchronize, (calls->other), "\"stream\": %lu", U(calls->other)));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	MUST(LOGGED(cudaGraphLaunch, (exec, calls->stream), "\"graph\": %lu, \"stream\": %lu",
		    U(exec), U(calls->stream)));
	MUST(LOGGED(cuGraphLaunch, (exec, calls->other), "\"graph\": %lu, \"stream\": %lu", U(exec),
		    U(calls->other)));
	MUST(LOGGED(cudaDeviceSynchronize, (), "%s", ""));
	MUST(cudaGraphExecDestroy(exec));
	MUST(cudaGraphDestroy(graph));
}

/*
 * All ranks belong to this process, each with its stream. The group keeps the single thread from
 * waiting for itself. The arguments of rank 0 and 1 differ by the communicator only.
 */
#define EACH_RANK(...)                                                                             \
	do {                                                                                       \
		MUST(LOGGED(ncclGroupStart, (), "%s", ""));                                        \
		for (int rank = 0; rank < RANKS; rank++) {                                         \
			ncclComm_t comm = calls->comms[rank];                                      \
			cudaStream_t stream = calls->streams[rank];                                \
                                                                                                   \
			__VA_ARGS__;                                                               \
		}                                                                                  \
		MUST(LOGGED(ncclGroupEnd, (), "%s", ""));                                          \
	} while (0)

#define COMM_KEYS "\"comm\": %lu, \"rank\": %d, \"nranks\": %d, \"stream\": %lu"
#define COMM_VALUES comm_hash(comm), rank, RANKS, U(stream)
#define COUNT_KEYS "\"count\": %d, \"datatype\": %d, "

static void collectives(struct calls *calls)
{
	void *a = calls->device, *b = calls->device2;

	EACH_RANK(MUST(LOGGED(ncclAllReduce, (a, b, 101, ncclFloat32, ncclMax, comm, stream),
			      COUNT_KEYS "\"op\": %d, " COMM_KEYS, 101, 7, 2, COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclReduceScatter, (a, b, 102, ncclFloat16, ncclSum, comm, stream),
			      COUNT_KEYS "\"op\": %d, " COMM_KEYS, 102, 6, 0, COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclAllGather, (a, b, 103, ncclBfloat16, comm, stream),
			      COUNT_KEYS COMM_KEYS, 103, 9, COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclAlltoAll, (a, b, 104, ncclInt8, comm, stream),
			      COUNT_KEYS COMM_KEYS, 104, 0, COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclReduce, (a, b, 105, ncclFloat64, ncclAvg, 1, comm, stream),
			      COUNT_KEYS "\"op\": %d, \"root\": %d, " COMM_KEYS, 105, 8, 4, 1,
			      COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclBroadcast, (a, b, 106, ncclInt64, 0, comm, stream),
			      COUNT_KEYS "\"root\": %d, " COMM_KEYS, 106, 4, 0, COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclBcast, (a, 107, ncclUint8, 1, comm, stream),
			      COUNT_KEYS "\"root\": %d, " COMM_KEYS, 107, 1, 1, COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclGather, (a, b, 108, ncclUint32, 1, comm, stream),
			      COUNT_KEYS "\"root\": %d, " COMM_KEYS, 108, 3, 1, COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclScatter, (a, b, 109, ncclUint64, 0, comm, stream),
			      COUNT_KEYS "\"root\": %d, " COMM_KEYS, 109, 5, 0, COMM_VALUES)));
	/* The second name of the same function. */
	EACH_RANK(MUST(LOGGED(pncclAllReduce, (a, b, 110, ncclInt32, ncclMin, comm, stream),
			      COUNT_KEYS "\"op\": %d, " COMM_KEYS, 110, 2, 3, COMM_VALUES)));
	EACH_RANK(
		MUST(LOGGED(ncclSend, (a, 111, ncclFloat32, 1 - rank, comm, stream),
			    COUNT_KEYS "\"peer\": %d, " COMM_KEYS, 111, 7, 1 - rank, COMM_VALUES));
		MUST(LOGGED(ncclRecv, (b, 111, ncclFloat32, 1 - rank, comm, stream),
			    COUNT_KEYS "\"peer\": %d, " COMM_KEYS, 111, 7, 1 - rank, COMM_VALUES)));
	for (int rank = 0; rank < RANKS; rank++)
		MUST(LOGGED(cudaStreamSynchronize, (calls->streams[rank]), "\"stream\": %lu",
			    U(calls->streams[rank])));
}

#define INIT_KEYS "\"rank\": %d, \"nranks\": %d, \"comm\": %lu"

/* Each rank of a communicator is created in its own thread, since blocking creation waits for
 * all. */
struct init {
	pthread_t thread;
	ncclComm_t parent, comm;
	ncclUniqueId id;
	int rank;
};

static void comm_end(ncclComm_t comm, int rank)
{
	uint64_t hash = comm_hash(comm);

	MUST(LOGGED(ncclCommDestroy, (comm), INIT_KEYS, rank, RANKS, hash));
}

static void *init_main(void *arg)
{
	struct init *init = arg;
	ncclComm_t split = NULL;

	MUST(LOGGED(ncclCommInitRank, (&init->comm, RANKS, init->id, init->rank), INIT_KEYS,
		    init->rank, RANKS, comm_hash(init->comm)));
	MUST(LOGGED(ncclCommSplit, (init->comm, 7, -init->rank, &split, NULL),
		    "\"color\": 7, \"key\": %d, " INIT_KEYS, -init->rank, RANKS - 1 - init->rank,
		    RANKS, comm_hash(split)));
	comm_end(split, RANKS - 1 - init->rank);
	comm_end(init->comm, init->rank);
	return NULL;
}

static void communicators(struct calls *calls)
{
	struct init inits[RANKS];
	ncclUniqueId id;

	MUST(LOGGED(ncclGetUniqueId, (&id), "%s", ""));
	for (int rank = 0; rank < RANKS; rank++) {
		inits[rank] = (struct init){.id = id, .rank = rank};
		MUST(pthread_create(&inits[rank].thread, NULL, init_main, &inits[rank]));
	}
	for (int rank = 0; rank < RANKS; rank++)
		MUST(pthread_join(inits[rank].thread, NULL));
	MUST(LOGGED(ncclCommInitAll, (calls->comms, RANKS, NULL), "\"nranks\": %d, \"comm\": %lu",
		    RANKS, comm_hash(calls->comms[0])));
}

static cudaStream_t stream_make(void)
{
	cudaStream_t stream = NULL;

	MUST(LOGGED(cudaStreamCreate, (&stream), "\"stream\": %lu", U(stream)));
	return stream;
}

/* Creates one stream in each of the other ways. */
static void streams(void)
{
	cudaStream_t stream;

	MUST(LOGGED(cudaStreamCreateWithFlags, (&stream, cudaStreamNonBlocking),
		    "\"stream\": %lu, \"flags\": 1", U(stream)));
	MUST(cudaStreamDestroy(stream));
	MUST(LOGGED(cudaStreamCreateWithPriority, (&stream, 0, -2),
		    "\"stream\": %lu, \"flags\": 0, \"priority\": -2", U(stream)));
	MUST(cudaStreamDestroy(stream));
	MUST(LOGGED(cuStreamCreate, (&stream, CU_STREAM_NON_BLOCKING),
		    "\"stream\": %lu, \"flags\": 1", U(stream)));
	MUST(cuStreamDestroy_v2(stream));
}

int main(int argc, char **argv)
{
	struct calls calls = {0};
	bool pause = session_begin(argc, argv, "calls");

	calls.host = calloc(FLOATS, sizeof(float));
	calls.stream = stream_make();
	calls.other = stream_make();
	MUST(cudaEventCreate(&calls.event));
	MUST(LOGGED(cudaMalloc, ((void **)&calls.device, FLOATS * sizeof(float)),
		    "\"bytes\": %zu, \"address\": %lu", FLOATS * sizeof(float), U(calls.device)));
	MUST(LOGGED(cudaMalloc, ((void **)&calls.device2, FLOATS * sizeof(float)),
		    "\"bytes\": %zu, \"address\": %lu", FLOATS * sizeof(float), U(calls.device2)));
	for (int rank = 0; rank < RANKS; rank++)
		calls.streams[rank] = stream_make();
	streams();
	launches(&calls);
	driver_launches(&calls);
	copies(&calls);
	allocations(&calls);
	waits(&calls);
	graphs(&calls);
	communicators(&calls);
	collectives(&calls);
	return session_end(pause);
}
