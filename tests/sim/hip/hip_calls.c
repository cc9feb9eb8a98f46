// SPDX-License-Identifier: Apache-2.0
/*
 * Calls the functions of the HIP, RCCL and roctx stand-ins, each with distinct arguments, and logs
 * the calls (programs/log.h): hip-calls [--log FILE] [--pause], as programs/calls.c.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/log.h"
#include "programs/session.h"
#include "sim_hip.h"
#include "sim_nccl.h"

ncclResult_t ncclAllToAll(const void *sendbuff, void *recvbuff, size_t count,
			  ncclDataType_t datatype, ncclComm_t comm, hipStream_t stream);
ncclResult_t ncclAllToAllv(const void *sendbuff, const size_t sendcounts[], const size_t sdispls[],
			   void *recvbuff, const size_t recvcounts[], const size_t rdispls[],
			   ncclDataType_t datatype, ncclComm_t comm, hipStream_t stream);
void roctxMarkA(const char *message);
int roctxRangePushA(const char *message);
int roctxRangePop(void);
uint64_t roctxRangeStartA(const char *message);
void roctxRangeStop(uint64_t id);

#define RANKS 2
#define FLOATS 4096
#define U(pointer) ((uintptr_t)(pointer))

#define MUST(call)                                                                                 \
	do {                                                                                       \
		int must_result = (int)(call);                                                     \
                                                                                                   \
		if (must_result) {                                                                 \
			fprintf(stderr, "hip-calls: simulated: %s: error %d\n", #call,             \
				must_result);                                                      \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static const struct sim_image kernels_image = {SIM_IMAGE_MAGIC, 1};
static struct sim_fatbin kernels_fatbin = {SIM_FATBIN_MAGIC, 1, &kernels_image, NULL};

/*
 * What clang makes of a kernel: a function that launches it, and a constant that has the kernel's
 * own name. The constant's address is what hipLaunchKernel gets.
 */
#define KERNEL(kernel, mangled, stub)                                                              \
	void kernel##_stub(void) __asm__(stub);                                                    \
	void kernel##_stub(void)                                                                   \
	{                                                                                          \
	}                                                                                          \
	extern void (*const kernel)(void) __asm__(mangled);                                        \
	void (*const kernel)(void) = kernel##_stub;                                                \
	__attribute__((constructor)) static void kernel##_register(void)                           \
	{                                                                                          \
		__hipRegisterFunction(__hipRegisterFatBinary(&kernels_fatbin), &kernel,            \
				      (char *)mangled, mangled, (unsigned int)-1, NULL, NULL,      \
				      NULL, NULL, NULL);                                           \
	}

KERNEL(scale, "_Z5scalemPfi", "_Z20__device_stub__scalemPfi")
/* The name of the namespace ends with a digit. */
KERNEL(twice, "_ZN3ns25twiceIfEEvmPT_i", "_ZN3ns220__device_stub__twiceIfEEvmPT_i")
KERNEL(plain_c, "plain_c", "__device_stub__plain_c")

struct calls {
	hipStream_t stream, other;
	hipEvent_t event;
	char *device, *device2, *host;
	ncclComm_t comms[RANKS];
	hipStream_t streams[RANKS];
};

#define SIZE_KEYS "\"block\": [%u, %u, %u], \"shared_bytes\": %zu, \"stream\": %lu"
#define SIZE_VALUES(block, shared, stream)                                                         \
	(block).x, (block).y, (block).z, (size_t)(shared), U(stream)
#define LAUNCH_KEYS(kernel) "\"kernel\": \"" kernel "\", \"grid\": [%u, %u, %u], " SIZE_KEYS
#define LAUNCH_VALUES(grid, block, shared, stream)                                                 \
	(grid).x, (grid).y, (grid).z, SIZE_VALUES(block, shared, stream)
#define SCALE "scale(unsigned long, float*, int)"

static void launches(struct calls *calls)
{
	uint64_t ns = 1000;
	int count = FLOATS;
	void *args[] = {&ns, &calls->device, &count};
	dim3 grid = {3, 5, 7}, block = {32, 2, 4};
	hipLaunchConfig_t config = {.gridDim = {9, 8, 7},
				    .blockDim = {64, 1, 2},
				    .dynamicSmemBytes = 2048,
				    .stream = calls->other};

	MUST(LOGGED(hipLaunchKernel, (&scale, grid, block, args, 1024, calls->stream),
		    LAUNCH_KEYS(SCALE), LAUNCH_VALUES(grid, block, 1024, calls->stream)));
	MUST(LOGGED(hipLaunchKernel, (&twice, block, grid, args, 1025, NULL),
		    LAUNCH_KEYS("void ns2::twice<float>(unsigned long, float*, int)"),
		    LAUNCH_VALUES(block, grid, 1025, NULL)));
	MUST(LOGGED(hipLaunchKernel, (&plain_c, grid, block, args, 1026, SIM_STREAM_LEGACY),
		    LAUNCH_KEYS("plain_c"), LAUNCH_VALUES(grid, block, 1026, SIM_STREAM_LEGACY)));
	MUST(LOGGED(hipLaunchKernel, (&scale, grid, block, args, 1027, SIM_STREAM_PER_THREAD),
		    LAUNCH_KEYS(SCALE), LAUNCH_VALUES(grid, block, 1027, SIM_STREAM_PER_THREAD)));
	/* Stream 0 is the thread's own here, which is waited for. */
	MUST(LOGGED(hipLaunchKernel_spt, (&scale, grid, block, args, 513, NULL), LAUNCH_KEYS(SCALE),
		    LAUNCH_VALUES(grid, block, 513, NULL)));
	MUST(LOGGED(hipStreamSynchronize_spt, (NULL), "\"stream\": %lu", U(NULL)));
	MUST(LOGGED(hipExtLaunchKernel,
		    (&scale, grid, block, args, 514, calls->other, calls->event, NULL, 1),
		    LAUNCH_KEYS(SCALE), LAUNCH_VALUES(grid, block, 514, calls->other)));
	MUST(LOGGED(hipLaunchCooperativeKernel, (&scale, grid, block, args, 256, calls->stream),
		    LAUNCH_KEYS(SCALE), LAUNCH_VALUES(grid, block, 256, calls->stream)));
	MUST(LOGGED(hipLaunchKernelExC, (&config, &scale, args), LAUNCH_KEYS(SCALE),
		    LAUNCH_VALUES(config.gridDim, config.blockDim, 2048, calls->other)));
}

static void module_launches(struct calls *calls)
{
	uint64_t ns = 1000;
	int count = FLOATS;
	void *args[] = {&ns, &calls->device, &count};
	dim3 grid = {2, 1, 6}, block = {17, 3, 5}, global = {34, 9, 5};
	hipModule_t module;
	hipFunction_t function;

#define JITTED "jitted(float*)"
	MUST(hipModuleLoadData(&module, &kernels_fatbin));
	MUST(LOGGED(hipModuleGetFunction, (&function, module, "_Z6jittedPf"),
		    "\"kernel\": \"_Z6jittedPf\", \"function\": %lu", U(function)));
	MUST(LOGGED(hipModuleLaunchKernel,
		    (function, 2, 1, 6, 17, 3, 5, 640, calls->stream, args, NULL),
		    LAUNCH_KEYS(JITTED), LAUNCH_VALUES(grid, block, 640, calls->stream)));
	MUST(LOGGED(hipModuleLaunchCooperativeKernel,
		    (function, 2, 1, 6, 17, 3, 5, 641, calls->other, args), LAUNCH_KEYS(JITTED),
		    LAUNCH_VALUES(grid, block, 641, calls->other)));
	/* Its grid is the global size divided by the block. */
#define GLOBAL_KEYS "\"kernel\": \"" JITTED "\", \"global\": [%u, %u, %u], " SIZE_KEYS
	MUST(LOGGED(hipExtModuleLaunchKernel,
		    (function, 34, 9, 5, 17, 3, 5, 642, calls->stream, args, NULL, NULL, NULL, 0),
		    GLOBAL_KEYS, LAUNCH_VALUES(global, block, 642, calls->stream)));
	MUST(LOGGED(hipHccModuleLaunchKernel,
		    (function, 34, 9, 5, 17, 3, 5, 643, calls->other, args, NULL, NULL, NULL),
		    GLOBAL_KEYS, LAUNCH_VALUES(global, block, 643, calls->other)));
}

#define COPY_KEYS "\"bytes\": %d, \"kind\": %d"
#define STREAM_KEY ", \"stream\": %lu"
#define SET_KEYS "\"bytes\": %d, \"stream\": %lu"

static void copies(struct calls *calls)
{
	void *dst = calls->device, *dst2 = calls->device2, *host = calls->host;

	MUST(LOGGED(hipMemcpy, (dst, host, 4096, 1), COPY_KEYS, 4096, 1));
	MUST(LOGGED(hipMemcpyAsync, (host, dst, 444, 2, calls->stream), COPY_KEYS STREAM_KEY, 444,
		    2, U(calls->stream)));
	MUST(LOGGED(hipMemcpyAsync, (dst2, dst, 333, hipMemcpyDeviceToDeviceNoCU, calls->other),
		    COPY_KEYS STREAM_KEY, 333, 1024, U(calls->other)));
	MUST(LOGGED(hipMemcpyAsync_spt, (dst2, dst, 334, 3, calls->other), COPY_KEYS STREAM_KEY,
		    334, 3, U(calls->other)));
	MUST(LOGGED(hipMemcpyWithStream, (dst2, dst, 335, 4, calls->stream), COPY_KEYS STREAM_KEY,
		    335, 4, U(calls->stream)));
	MUST(LOGGED(hipMemcpyHtoD, (dst, host, 50), "\"bytes\": %d", 50));
	MUST(LOGGED(hipMemcpyHtoDAsync, (dst, host, 51, calls->stream), SET_KEYS, 51,
		    U(calls->stream)));
	MUST(LOGGED(hipMemcpyDtoHAsync, (host, dst2, 52, calls->stream), SET_KEYS, 52,
		    U(calls->stream)));
	MUST(LOGGED(hipMemcpyDtoDAsync, (dst, dst2, 53, calls->other), SET_KEYS, 53,
		    U(calls->other)));
	MUST(LOGGED(hipMemcpyPeerAsync, (dst2, 1, dst, 0, 777, calls->other),
		    "\"to_device\": 1, \"from_device\": 0, " SET_KEYS, 777, U(calls->other)));
	MUST(LOGGED(hipMemset, (dst, 1, 61), "\"bytes\": %d", 61));
	MUST(LOGGED(hipMemsetAsync, (dst, 1, 62, calls->stream), SET_KEYS, 62, U(calls->stream)));
	MUST(LOGGED(hipMemsetD8Async, (dst, 1, 63, calls->other), SET_KEYS, 63, U(calls->other)));
	MUST(LOGGED(hipMemsetD32Async, (dst, 1, 64, calls->other), "\"count\": %d, \"stream\": %lu",
		    64, U(calls->other)));
}

#define ALLOC_KEYS "\"bytes\": %d, \"address\": %lu"
#define ADDRESS_KEY "\"address\": %lu"

static void allocations(struct calls *calls)
{
	void *memory = NULL;

	MUST(LOGGED(hipMalloc, (&memory, 7001), ALLOC_KEYS, 7001, U(memory)));
	MUST(LOGGED(hipFree, (memory), ADDRESS_KEY, U(memory)));
	MUST(LOGGED(hipMallocAsync, (&memory, 7002, calls->stream), ALLOC_KEYS, 7002, U(memory)));
	MUST(LOGGED(hipFreeAsync, (memory, calls->stream), ADDRESS_KEY STREAM_KEY, U(memory),
		    U(calls->stream)));
	MUST(LOGGED(hipHostMalloc, (&memory, 7003, 0), ALLOC_KEYS, 7003, U(memory)));
	MUST(LOGGED(hipHostFree, (memory), ADDRESS_KEY, U(memory)));
	MUST(LOGGED(hipMallocManaged, (&memory, 7004, 1), ALLOC_KEYS, 7004, U(memory)));
	MUST(LOGGED(hipFree, (memory), ADDRESS_KEY, U(memory)));
}

#define EVENT_KEYS "\"event\": %lu, \"stream\": %lu"

static void waits(struct calls *calls)
{
	MUST(LOGGED(hipEventRecord, (calls->event, calls->stream), EVENT_KEYS, U(calls->event),
		    U(calls->stream)));
	MUST(LOGGED(hipStreamWaitEvent, (calls->other, calls->event, 0), EVENT_KEYS,
		    U(calls->event), U(calls->other)));
	MUST(LOGGED(hipEventSynchronize, (calls->event), "\"event\": %lu", U(calls->event)));
	MUST(LOGGED(hipEventRecordWithFlags, (calls->event, calls->other, 0), EVENT_KEYS,
		    U(calls->event), U(calls->other)));
	MUST(LOGGED(hipStreamSynchronize, (calls->stream), "\"stream\": %lu", U(calls->stream)));
	MUST(LOGGED(hipDeviceSynchronize, (), "%s", ""));
}

static void graphs(struct calls *calls)
{
	dim3 grid = {4, 4, 4}, block = {8, 8, 8};
	uint64_t ns = 1000;
	int count = FLOATS;
	void *args[] = {&ns, &calls->device, &count};
	hipGraph_t graph;
	hipGraphExec_t exec;

	MUST(LOGGED(hipStreamBeginCapture, (calls->stream, 0), "\"stream\": %lu, \"mode\": 0",
		    U(calls->stream)));
	MUST(LOGGED(hipLaunchKernel, (&scale, grid, block, args, 1, calls->stream),
		    LAUNCH_KEYS(SCALE), LAUNCH_VALUES(grid, block, 1, calls->stream)));
	MUST(LOGGED(hipStreamEndCapture, (calls->stream, &graph), "\"stream\": %lu, \"graph\": %lu",
		    U(calls->stream), U(graph)));
	MUST(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	MUST(LOGGED(hipGraphLaunch, (exec, calls->stream), "\"graph\": %lu, \"stream\": %lu",
		    U(exec), U(calls->stream)));
	MUST(LOGGED(hipStreamSynchronize, (calls->stream), "\"stream\": %lu", U(calls->stream)));
	MUST(hipGraphExecDestroy(exec));
	MUST(hipGraphDestroy(graph));
}

#define COMM_KEYS "\"comm\": %lu, \"rank\": %d, \"nranks\": %d, \"stream\": %lu"
#define COMM_VALUES comm_hash(comm), rank, RANKS, U(stream)
#define COUNT_KEYS "\"count\": %d, \"datatype\": %d, "
#define EACH_RANK(...)                                                                             \
	do {                                                                                       \
		MUST(LOGGED(ncclGroupStart, (), "%s", ""));                                        \
		for (int rank = 0; rank < RANKS; rank++) {                                         \
			ncclComm_t comm = calls->comms[rank];                                      \
			hipStream_t stream = calls->streams[rank];                                 \
                                                                                                   \
			__VA_ARGS__;                                                               \
		}                                                                                  \
		MUST(LOGGED(ncclGroupEnd, (), "%s", ""));                                          \
	} while (0)

static void collectives(struct calls *calls)
{
	void *a = calls->device, *b = calls->device2;
	const size_t parts[RANKS] = {3, 4};

	MUST(LOGGED(ncclCommInitAll, (calls->comms, RANKS, NULL), "\"nranks\": %d, \"comm\": %lu",
		    RANKS, comm_hash(calls->comms[0])));
	EACH_RANK(MUST(LOGGED(ncclAllReduce, (a, b, 101, ncclFloat32, ncclMax, comm, stream),
			      COUNT_KEYS "\"op\": %d, " COMM_KEYS, 101, 7, 2, COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclAllToAll, (a, b, 104, ncclInt8, comm, stream),
			      COUNT_KEYS COMM_KEYS, 104, 0, COMM_VALUES)));
	EACH_RANK(MUST(LOGGED(ncclAllToAllv,
			      (a, parts, parts, b, parts, parts, ncclUint8, comm, stream),
			      "\"datatype\": %d, " COMM_KEYS, 1, COMM_VALUES)));
	for (int rank = 0; rank < RANKS; rank++)
		MUST(LOGGED(hipStreamSynchronize, (calls->streams[rank]), "\"stream\": %lu",
			    U(calls->streams[rank])));
}

/* The program logs ranges itself: name, begin, end. */
static void ranges(void)
{
	uint64_t id, begin = log_now_ns(), inner;

	roctxRangePushA("outer range");
	inner = log_now_ns();
	roctxRangePushA("inner range");
	MUST(hipDeviceSynchronize());
	roctxRangePop();
	log_call("inner range", inner, log_now_ns(), 0, "%s", "");
	roctxMarkA("a mark");
	roctxRangePop();
	log_call("outer range", begin, log_now_ns(), 0, "%s", "");
	id = roctxRangeStartA("over threads");
	roctxRangeStop(id);
}

static hipStream_t stream_make(void)
{
	hipStream_t stream = NULL;

	MUST(LOGGED(hipStreamCreateWithFlags, (&stream, hipStreamNonBlocking),
		    "\"stream\": %lu, \"flags\": 1", U(stream)));
	return stream;
}

static void calls_make(struct calls *calls)
{
	calls->host = calloc(FLOATS, sizeof(float));
	calls->stream = stream_make();
	calls->other = stream_make();
	MUST(hipEventCreate(&calls->event));
	MUST(LOGGED(hipMalloc, ((void **)&calls->device, 16384), ALLOC_KEYS, 16384,
		    U(calls->device)));
	MUST(LOGGED(hipMalloc, ((void **)&calls->device2, 16385), ALLOC_KEYS, 16385,
		    U(calls->device2)));
	for (int rank = 0; rank < RANKS; rank++)
		calls->streams[rank] = stream_make();
}

int main(int argc, char **argv)
{
	struct calls calls = {0};
	bool pause = session_begin(argc, argv, "hip-calls");

	calls_make(&calls);
	launches(&calls);
	module_launches(&calls);
	copies(&calls);
	allocations(&calls);
	waits(&calls);
	graphs(&calls);
	collectives(&calls);
	ranges();
	return session_end(pause);
}
