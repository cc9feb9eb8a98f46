// SPDX-License-Identifier: Apache-2.0
/*
 * The stand-in for libamdhip64.so: HIP's functions on the simulated device of the driver's
 * stand-in, whose files are linked into this library. So one layer is seen, as with the real one.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "sim_hip.h"

/* The driver's second bodies, which no header declares. */
#define PTSZ(name) __typeof__(name) name##_ptsz;
#define PTDS(name) __typeof__(name) name##_ptds;
PTSZ(cuLaunchKernel)
PTSZ(cuLaunchCooperativeKernel)
PTSZ(cuMemcpyAsync)
PTSZ(cuMemsetD8Async)
PTSZ(cuStreamSynchronize)
PTSZ(cuStreamWaitEvent)
PTSZ(cuEventRecord)
PTSZ(cuLaunchHostFunc)
PTSZ(cuStreamBeginCapture_v2)
PTSZ(cuStreamEndCapture)
PTSZ(cuGraphLaunch)
PTDS(cuMemcpy)
PTDS(cuMemsetD8_v2)

#define INVALID_DEVICE_FUNCTION 98
#define KERNELS_MAX 64

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CUresult init_result;

static void init(void)
{
	init_result = cuInit(0);
}

static CUresult ready(void)
{
	pthread_once(&once, init);
	return init_result;
}

#define HIP(name, parameters, call)                                                                \
	SIM_API hipError_t name parameters                                                         \
	{                                                                                          \
		CUresult first = ready();                                                          \
                                                                                                   \
		SIM_CALL(hipError_t);                                                              \
		return (hipError_t)(first == CUDA_SUCCESS ? (call) : first);                       \
	}
#define HIP_SPT(name, parameters, call, call_spt)                                                  \
	HIP(name, parameters, call)                                                                \
	HIP(name##_spt, parameters, call_spt)

/* ---- kernels: registered by the address of the variable that has their name ---- */

struct kernel {
	const void *host;
	const char *name;
	const void *code;
	CUfunction function;
};

static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel kernels[KERNELS_MAX];
static unsigned kernel_count;

SIM_API void **__hipRegisterFatBinary(const void *data)
{
	const void **modules = calloc(1, sizeof(*modules));

	if (modules)
		*modules = data;
	return (void **)modules;
}

SIM_API void __hipUnregisterFatBinary(void **modules)
{
	(void)modules; /* the process exits */
}

SIM_API void __hipRegisterFunction(void **modules, const void *hostFunction, char *deviceFunction,
				   const char *deviceName, unsigned int threadLimit, uint3 *tid,
				   uint3 *bid, dim3 *blockDim, dim3 *gridDim, int *wSize)
{
	(void)deviceFunction, (void)threadLimit, (void)tid, (void)bid, (void)blockDim;
	(void)gridDim, (void)wSize;
	pthread_mutex_lock(&kernels_lock);
	if (kernel_count == KERNELS_MAX)
		abort();
	kernels[kernel_count++] = (struct kernel){hostFunction, strdup(deviceName), *modules, NULL};
	pthread_mutex_unlock(&kernels_lock);
}

static CUfunction kernel_of(const void *host)
{
	CUfunction function = NULL;
	CUmodule module;

	pthread_mutex_lock(&kernels_lock);
	for (unsigned i = 0; i < kernel_count && !function; i++) {
		struct kernel *kernel = &kernels[i];

		if (kernel->host != host)
			continue;
		if (!kernel->function && cuModuleLoadData(&module, kernel->code) == CUDA_SUCCESS)
			cuModuleGetFunction(&kernel->function, module, kernel->name);
		function = kernel->function;
	}
	pthread_mutex_unlock(&kernels_lock);
	return function;
}

static CUresult launch(__typeof__(cuLaunchKernel) *how, CUfunction f, dim3 grid, dim3 block,
		       void **args, size_t shared, hipStream_t stream)
{
	if (!f)
		return (CUresult)INVALID_DEVICE_FUNCTION;
	return how(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned int)shared,
		   stream, args, NULL);
}

HIP_SPT(hipLaunchKernel,
	(const void *function_address, dim3 numBlocks, dim3 dimBlocks, void **args,
	 size_t sharedMemBytes, hipStream_t stream),
	launch(cuLaunchKernel, kernel_of(function_address), numBlocks, dimBlocks, args,
	       sharedMemBytes, stream),
	launch(cuLaunchKernel_ptsz, kernel_of(function_address), numBlocks, dimBlocks, args,
	       sharedMemBytes, stream))
HIP_SPT(hipLaunchCooperativeKernel,
	(const void *f, dim3 gridDim, dim3 blockDimX, void **kernelParams,
	 unsigned int sharedMemBytes, hipStream_t stream),
	launch(cuLaunchKernel, kernel_of(f), gridDim, blockDimX, kernelParams, sharedMemBytes,
	       stream),
	launch(cuLaunchKernel_ptsz, kernel_of(f), gridDim, blockDimX, kernelParams, sharedMemBytes,
	       stream))
HIP(hipExtLaunchKernel,
    (const void *function_address, dim3 numBlocks, dim3 dimBlocks, void **args,
     size_t sharedMemBytes, hipStream_t stream, hipEvent_t startEvent, hipEvent_t stopEvent,
     int flags),
    ((void)startEvent, (void)stopEvent, (void)flags,
     launch(cuLaunchKernel, kernel_of(function_address), numBlocks, dimBlocks, args, sharedMemBytes,
	    stream)))
HIP(hipLaunchKernelExC, (const hipLaunchConfig_t *config, const void *fPtr, void **args),
    launch(cuLaunchKernel, kernel_of(fPtr), config->gridDim, config->blockDim, args,
	   config->dynamicSmemBytes, config->stream))
HIP(hipModuleLaunchKernel,
    (hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
     unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
     unsigned int sharedMemBytes, hipStream_t stream, void **kernelParams, void **extra),
    cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
		   stream, kernelParams, extra))
HIP(hipModuleLaunchCooperativeKernel,
    (hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
     unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
     unsigned int sharedMemBytes, hipStream_t stream, void **kernelParams),
    cuLaunchCooperativeKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
			      sharedMemBytes, stream, kernelParams))
/* The work size is that of all work items: a grid of blocks times their size. */
HIP(hipExtModuleLaunchKernel,
    (hipFunction_t f, uint32_t globalWorkSizeX, uint32_t globalWorkSizeY, uint32_t globalWorkSizeZ,
     uint32_t localWorkSizeX, uint32_t localWorkSizeY, uint32_t localWorkSizeZ,
     size_t sharedMemBytes, hipStream_t hStream, void **kernelParams, void **extra,
     hipEvent_t startEvent, hipEvent_t stopEvent, uint32_t flags),
    ((void)startEvent, (void)stopEvent, (void)flags,
     cuLaunchKernel(f, globalWorkSizeX / localWorkSizeX, globalWorkSizeY / localWorkSizeY,
		    globalWorkSizeZ / localWorkSizeZ, localWorkSizeX, localWorkSizeY,
		    localWorkSizeZ, (unsigned int)sharedMemBytes, hStream, kernelParams, extra)))
HIP(hipHccModuleLaunchKernel,
    (hipFunction_t f, uint32_t globalWorkSizeX, uint32_t globalWorkSizeY, uint32_t globalWorkSizeZ,
     uint32_t blockDimX, uint32_t blockDimY, uint32_t blockDimZ, size_t sharedMemBytes,
     hipStream_t hStream, void **kernelParams, void **extra, hipEvent_t startEvent,
     hipEvent_t stopEvent),
    ((void)startEvent, (void)stopEvent,
     cuLaunchKernel(f, globalWorkSizeX / blockDimX, globalWorkSizeY / blockDimY,
		    globalWorkSizeZ / blockDimZ, blockDimX, blockDimY, blockDimZ,
		    (unsigned int)sharedMemBytes, hStream, kernelParams, extra)))
HIP_SPT(hipLaunchHostFunc, (hipStream_t stream, hipHostFn_t fn, void *userData),
	cuLaunchHostFunc(stream, fn, userData), cuLaunchHostFunc_ptsz(stream, fn, userData))
HIP(hipModuleLoadData, (hipModule_t * module, const void *image), cuModuleLoadData(module, image))
HIP(hipModuleGetFunction, (hipFunction_t * function, hipModule_t module, const char *kname),
    cuModuleGetFunction(function, module, kname))

/* ---- memory ---- */

#define D(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

HIP_SPT(hipMemcpy, (void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind),
	((void)kind, cuMemcpy(D(dst), D(src), sizeBytes)),
	((void)kind, cuMemcpy_ptds(D(dst), D(src), sizeBytes)))
HIP_SPT(hipMemcpyAsync,
	(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t stream),
	((void)kind, cuMemcpyAsync(D(dst), D(src), sizeBytes, stream)),
	((void)kind, cuMemcpyAsync_ptsz(D(dst), D(src), sizeBytes, stream)))
HIP(hipMemcpyWithStream,
    (void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t stream),
    ((void)kind, cuMemcpyAsync(D(dst), D(src), sizeBytes, stream) ?: cuStreamSynchronize(stream)))
HIP(hipMemcpyHtoD, (hipDeviceptr_t dst, void *src, size_t sizeBytes),
    cuMemcpyHtoD_v2(D(dst), src, sizeBytes))
HIP(hipMemcpyDtoH, (void *dst, hipDeviceptr_t src, size_t sizeBytes),
    cuMemcpyDtoH_v2(dst, D(src), sizeBytes))
HIP(hipMemcpyDtoD, (hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes),
    cuMemcpyDtoD_v2(D(dst), D(src), sizeBytes))
HIP(hipMemcpyHtoDAsync, (hipDeviceptr_t dst, void *src, size_t sizeBytes, hipStream_t stream),
    cuMemcpyHtoDAsync_v2(D(dst), src, sizeBytes, stream))
HIP(hipMemcpyDtoHAsync, (void *dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream),
    cuMemcpyDtoHAsync_v2(dst, D(src), sizeBytes, stream))
HIP(hipMemcpyDtoDAsync,
    (hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream),
    cuMemcpyDtoDAsync_v2(D(dst), D(src), sizeBytes, stream))
HIP(hipMemcpyPeerAsync,
    (void *dst, int dstDeviceId, const void *src, int srcDevice, size_t sizeBytes,
     hipStream_t stream),
    ((void)dstDeviceId, (void)srcDevice,
     cuMemcpyPeerAsync(D(dst), NULL, D(src), NULL, sizeBytes, stream)))
HIP_SPT(hipMemset, (void *dst, int value, size_t sizeBytes),
	cuMemsetD8_v2(D(dst), (unsigned char)value, sizeBytes),
	cuMemsetD8_v2_ptds(D(dst), (unsigned char)value, sizeBytes))
HIP_SPT(hipMemsetAsync, (void *dst, int value, size_t sizeBytes, hipStream_t stream),
	cuMemsetD8Async(D(dst), (unsigned char)value, sizeBytes, stream),
	cuMemsetD8Async_ptsz(D(dst), (unsigned char)value, sizeBytes, stream))
HIP(hipMemsetD8, (hipDeviceptr_t dest, unsigned char value, size_t count),
    cuMemsetD8_v2(D(dest), value, count))
HIP(hipMemsetD8Async, (hipDeviceptr_t dest, unsigned char value, size_t count, hipStream_t stream),
    cuMemsetD8Async(D(dest), value, count, stream))
HIP(hipMemsetD32Async, (hipDeviceptr_t dst, int value, size_t count, hipStream_t stream),
    cuMemsetD32Async(D(dst), (unsigned int)value, count, stream))
HIP(hipMalloc, (void **ptr, size_t size), cuMemAlloc_v2((CUdeviceptr *)ptr, size))
HIP(hipMallocManaged, (void **dev_ptr, size_t size, unsigned int flags),
    cuMemAllocManaged((CUdeviceptr *)dev_ptr, size, flags))
HIP(hipMallocAsync, (void **dev_ptr, size_t size, hipStream_t stream),
    cuMemAllocAsync((CUdeviceptr *)dev_ptr, size, stream))
HIP(hipHostMalloc, (void **ptr, size_t size, unsigned int flags), cuMemHostAlloc(ptr, size, flags))
HIP(hipFree, (void *ptr), cuMemFree_v2(D(ptr)))
HIP(hipHostFree, (void *ptr), cuMemFreeHost(ptr))
HIP(hipFreeAsync, (void *dev_ptr, hipStream_t stream), cuMemFreeAsync(D(dev_ptr), stream))

/* ---- streams, events, graphs ---- */

HIP(hipDeviceSynchronize, (void), cuCtxSynchronize())
HIP(hipEventSynchronize, (hipEvent_t event), cuEventSynchronize(event))
HIP(hipEventCreate, (hipEvent_t * event), cuEventCreate(event, 0))
HIP(hipEventDestroy, (hipEvent_t event), cuEventDestroy_v2(event))
HIP(hipEventRecordWithFlags, (hipEvent_t event, hipStream_t stream, unsigned int flags),
    cuEventRecordWithFlags(event, stream, flags))
HIP_SPT(hipEventRecord, (hipEvent_t event, hipStream_t stream), cuEventRecord(event, stream),
	cuEventRecord_ptsz(event, stream))
HIP_SPT(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned int flags),
	cuStreamWaitEvent(stream, event, flags), cuStreamWaitEvent_ptsz(stream, event, flags))
HIP_SPT(hipStreamSynchronize, (hipStream_t stream), cuStreamSynchronize(stream),
	cuStreamSynchronize_ptsz(stream))
HIP(hipStreamCreate, (hipStream_t * stream), cuStreamCreate(stream, 0))
HIP(hipStreamCreateWithFlags, (hipStream_t * stream, unsigned int flags),
    cuStreamCreate(stream, flags))
HIP(hipStreamCreateWithPriority, (hipStream_t * stream, unsigned int flags, int priority),
    cuStreamCreateWithPriority(stream, flags, priority))
HIP(hipStreamDestroy, (hipStream_t stream), cuStreamDestroy_v2(stream))
HIP_SPT(hipStreamBeginCapture, (hipStream_t stream, hipStreamCaptureMode mode),
	cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode),
	cuStreamBeginCapture_v2_ptsz(stream, (CUstreamCaptureMode)mode))
HIP_SPT(hipStreamEndCapture, (hipStream_t stream, hipGraph_t *pGraph),
	cuStreamEndCapture(stream, pGraph), cuStreamEndCapture_ptsz(stream, pGraph))
HIP(hipGraphInstantiate,
    (hipGraphExec_t * pGraphExec, hipGraph_t graph, void *pErrorNode, char *pLogBuffer,
     size_t bufferSize),
    ((void)pErrorNode, (void)pLogBuffer, (void)bufferSize,
     cuGraphInstantiateWithFlags(pGraphExec, graph, 0)))
HIP(hipGraphExecDestroy, (hipGraphExec_t graphExec), cuGraphExecDestroy(graphExec))
HIP(hipGraphDestroy, (hipGraph_t graph), cuGraphDestroy(graph))
HIP_SPT(hipGraphLaunch, (hipGraphExec_t graphExec, hipStream_t stream),
	cuGraphLaunch(graphExec, stream), cuGraphLaunch_ptsz(graphExec, stream))
