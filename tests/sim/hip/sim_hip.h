/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of HIP that the stand-in has, with the signatures of ROCm's hip_runtime_api.h (6.3;
 * hipLaunchKernelExC and hipEventRecordWithFlags are newer). Types that have the layout of CUDA's
 * are those of sim_cuda.h.
 */
#ifndef SIM_HIP_H
#define SIM_HIP_H

#include "sim_cuda.h"

typedef int hipError_t;
typedef CUstream hipStream_t;
typedef CUevent hipEvent_t;
typedef CUfunction hipFunction_t;
typedef CUmodule hipModule_t;
typedef CUgraph hipGraph_t;
typedef CUgraphExec hipGraphExec_t;
typedef void *hipDeviceptr_t;
typedef cudaLaunchConfig_t hipLaunchConfig_t;
typedef void (*hipHostFn_t)(void *userData);
/* hipMemcpyKind and hipStreamCaptureMode are enums. */
typedef int hipMemcpyKind;
typedef int hipStreamCaptureMode;

#define hipMemcpyDeviceToDeviceNoCU 1024
#define hipStreamNonBlocking 1

void **__hipRegisterFatBinary(const void *data);
void __hipUnregisterFatBinary(void **modules);
void __hipRegisterFunction(void **modules, const void *hostFunction, char *deviceFunction,
			   const char *deviceName, unsigned int threadLimit, uint3 *tid, uint3 *bid,
			   dim3 *blockDim, dim3 *gridDim, int *wSize);

/* X(name, parameters): functions with one body. */
#define HIP_FUNCTIONS(X)                                                                           \
	X(hipExtLaunchKernel, (const void *function_address, dim3 numBlocks, dim3 dimBlocks,       \
			       void **args, size_t sharedMemBytes, hipStream_t stream,             \
			       hipEvent_t startEvent, hipEvent_t stopEvent, int flags))            \
	X(hipModuleLaunchKernel,                                                                   \
	  (hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,   \
	   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,                 \
	   unsigned int sharedMemBytes, hipStream_t stream, void **kernelParams, void **extra))    \
	X(hipModuleLaunchCooperativeKernel,                                                        \
	  (hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,   \
	   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,                 \
	   unsigned int sharedMemBytes, hipStream_t stream, void **kernelParams))                  \
	X(hipExtModuleLaunchKernel,                                                                \
	  (hipFunction_t f, uint32_t globalWorkSizeX, uint32_t globalWorkSizeY,                    \
	   uint32_t globalWorkSizeZ, uint32_t localWorkSizeX, uint32_t localWorkSizeY,             \
	   uint32_t localWorkSizeZ, size_t sharedMemBytes, hipStream_t hStream,                    \
	   void **kernelParams, void **extra, hipEvent_t startEvent, hipEvent_t stopEvent,         \
	   uint32_t flags))                                                                        \
	X(hipHccModuleLaunchKernel,                                                                \
	  (hipFunction_t f, uint32_t globalWorkSizeX, uint32_t globalWorkSizeY,                    \
	   uint32_t globalWorkSizeZ, uint32_t blockDimX, uint32_t blockDimY, uint32_t blockDimZ,   \
	   size_t sharedMemBytes, hipStream_t hStream, void **kernelParams, void **extra,          \
	   hipEvent_t startEvent, hipEvent_t stopEvent))                                           \
	X(hipLaunchKernelExC, (const hipLaunchConfig_t *config, const void *fPtr, void **args))    \
	X(hipMemcpyWithStream,                                                                     \
	  (void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t stream))  \
	X(hipMemcpyHtoD, (hipDeviceptr_t dst, void *src, size_t sizeBytes))                        \
	X(hipMemcpyDtoH, (void *dst, hipDeviceptr_t src, size_t sizeBytes))                        \
	X(hipMemcpyDtoD, (hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes))               \
	X(hipMemcpyHtoDAsync,                                                                      \
	  (hipDeviceptr_t dst, void *src, size_t sizeBytes, hipStream_t stream))                   \
	X(hipMemcpyDtoHAsync,                                                                      \
	  (void *dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream))                   \
	X(hipMemcpyDtoDAsync,                                                                      \
	  (hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream))          \
	X(hipMemcpyPeerAsync, (void *dst, int dstDeviceId, const void *src, int srcDevice,         \
			       size_t sizeBytes, hipStream_t stream))                              \
	X(hipMemsetD8, (hipDeviceptr_t dest, unsigned char value, size_t count))                   \
	X(hipMemsetD8Async,                                                                        \
	  (hipDeviceptr_t dest, unsigned char value, size_t count, hipStream_t stream))            \
	X(hipMemsetD32Async, (hipDeviceptr_t dst, int value, size_t count, hipStream_t stream))    \
	X(hipMalloc, (void **ptr, size_t size))                                                    \
	X(hipMallocManaged, (void **dev_ptr, size_t size, unsigned int flags))                     \
	X(hipMallocAsync, (void **dev_ptr, size_t size, hipStream_t stream))                       \
	X(hipHostMalloc, (void **ptr, size_t size, unsigned int flags))                            \
	X(hipFree, (void *ptr))                                                                    \
	X(hipHostFree, (void *ptr))                                                                \
	X(hipFreeAsync, (void *dev_ptr, hipStream_t stream))                                       \
	X(hipDeviceSynchronize, (void))                                                            \
	X(hipEventSynchronize, (hipEvent_t event))                                                 \
	X(hipEventCreate, (hipEvent_t * event))                                                    \
	X(hipEventDestroy, (hipEvent_t event))                                                     \
	X(hipEventRecordWithFlags, (hipEvent_t event, hipStream_t stream, unsigned int flags))     \
	X(hipStreamCreate, (hipStream_t * stream))                                                 \
	X(hipStreamCreateWithFlags, (hipStream_t * stream, unsigned int flags))                    \
	X(hipStreamCreateWithPriority, (hipStream_t * stream, unsigned int flags, int priority))   \
	X(hipStreamDestroy, (hipStream_t stream))                                                  \
	X(hipModuleLoadData, (hipModule_t * module, const void *image))                            \
	X(hipModuleGetFunction, (hipFunction_t * function, hipModule_t module, const char *kname)) \
	X(hipGraphInstantiate, (hipGraphExec_t * pGraphExec, hipGraph_t graph, void *pErrorNode,   \
				char *pLogBuffer, size_t bufferSize))                              \
	X(hipGraphExecDestroy, (hipGraphExec_t graphExec))                                         \
	X(hipGraphDestroy, (hipGraph_t graph))

/* Functions with a second body, NAME_spt, in which the default stream is the thread's own. */
#define HIP_FUNCTIONS_SPT(X)                                                                       \
	X(hipLaunchKernel, (const void *function_address, dim3 numBlocks, dim3 dimBlocks,          \
			    void **args, size_t sharedMemBytes, hipStream_t stream))               \
	X(hipLaunchCooperativeKernel,                                                              \
	  (const void *f, dim3 gridDim, dim3 blockDimX, void **kernelParams,                       \
	   unsigned int sharedMemBytes, hipStream_t stream))                                       \
	X(hipMemcpy, (void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind))           \
	X(hipMemcpyAsync,                                                                          \
	  (void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t stream))  \
	X(hipMemset, (void *dst, int value, size_t sizeBytes))                                     \
	X(hipMemsetAsync, (void *dst, int value, size_t sizeBytes, hipStream_t stream))            \
	X(hipStreamSynchronize, (hipStream_t stream))                                              \
	X(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned int flags))          \
	X(hipEventRecord, (hipEvent_t event, hipStream_t stream))                                  \
	X(hipLaunchHostFunc, (hipStream_t stream, hipHostFn_t fn, void *userData))                 \
	X(hipStreamBeginCapture, (hipStream_t stream, hipStreamCaptureMode mode))                  \
	X(hipStreamEndCapture, (hipStream_t stream, hipGraph_t * pGraph))                          \
	X(hipGraphLaunch, (hipGraphExec_t graphExec, hipStream_t stream))

#define HIP_DECLARE(name, parameters) hipError_t name parameters;
#define HIP_DECLARE_SPT(name, parameters) hipError_t name parameters, name##_spt parameters;
HIP_FUNCTIONS(HIP_DECLARE)
HIP_FUNCTIONS_SPT(HIP_DECLARE_SPT)

#endif
