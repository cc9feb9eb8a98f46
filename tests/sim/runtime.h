/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the stand-ins for libcudart. */
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

#include "sim_cuda.h"
#include "simulation.h"

/* The driver's functions that the runtime calls: NAME, and whether NAME has a second body. */
#define DRIVER_FUNCTIONS(X)                                                                        \
	X(cuInit)                                                                                  \
	X(cuDriverGetVersion)                                                                      \
	X(cuDeviceGetCount)                                                                        \
	X(cuCtxSynchronize)                                                                        \
	X(cuLibraryLoadData)                                                                       \
	X(cuLibraryUnload)                                                                         \
	X(cuLibraryGetKernel)                                                                      \
	X(cuLaunchKernel)                                                                          \
	X(cuLaunchKernelEx)                                                                        \
	X(cuLaunchCooperativeKernel)                                                               \
	X(cuLaunchHostFunc)                                                                        \
	X(cuStreamAddCallback)                                                                     \
	X(cuMemAlloc_v2)                                                                           \
	X(cuMemAllocAsync)                                                                         \
	X(cuMemAllocManaged)                                                                       \
	X(cuMemFree_v2)                                                                            \
	X(cuMemFreeAsync)                                                                          \
	X(cuMemHostAlloc)                                                                          \
	X(cuMemFreeHost)                                                                           \
	X(cuMemcpy)                                                                                \
	X(cuMemcpyHtoD_v2)                                                                         \
	X(cuMemcpyDtoH_v2)                                                                         \
	X(cuMemcpyDtoD_v2)                                                                         \
	X(cuMemcpyAsync)                                                                           \
	X(cuMemcpyHtoDAsync_v2)                                                                    \
	X(cuMemcpyDtoHAsync_v2)                                                                    \
	X(cuMemcpyDtoDAsync_v2)                                                                    \
	X(cuMemcpyPeerAsync)                                                                       \
	X(cuMemsetD8_v2)                                                                           \
	X(cuMemsetD8Async)                                                                         \
	X(cuStreamCreate)                                                                          \
	X(cuStreamCreateWithPriority)                                                              \
	X(cuStreamDestroy_v2)                                                                      \
	X(cuStreamQuery)                                                                           \
	X(cuStreamSynchronize)                                                                     \
	X(cuStreamWaitEvent)                                                                       \
	X(cuStreamBeginCapture_v2)                                                                 \
	X(cuStreamEndCapture)                                                                      \
	X(cuGraphInstantiateWithFlags)                                                             \
	X(cuGraphLaunch)                                                                           \
	X(cuGraphExecDestroy)                                                                      \
	X(cuGraphDestroy)                                                                          \
	X(cuEventCreate)                                                                           \
	X(cuEventDestroy_v2)                                                                       \
	X(cuEventRecord)                                                                           \
	X(cuEventRecordWithFlags)                                                                  \
	X(cuEventQuery)                                                                            \
	X(cuEventSynchronize)                                                                      \
	X(cuEventElapsedTime)

struct driver {
#define DRIVER_MEMBER(name) __typeof__(name) *name;
	DRIVER_FUNCTIONS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

/*
 * The driver for one set of bodies: `per_thread` makes the default stream the thread's own. NULL:
 * there is no driver, or no device; the reason is the thread's last error.
 */
const struct driver *driver_get(bool per_thread);
/* Stores an error as the thread's last one, and returns it. */
cudaError_t runtime_result(CUresult result);

#define SIM_API __attribute__((visibility("default")))

/* Defines one function of the runtime, which uses the driver as `driver`. */
#define DEFINE_ONE(name, params, call)                                                             \
	SIM_API cudaError_t name params                                                            \
	{                                                                                          \
		const struct driver *driver = driver_get(false);                                   \
                                                                                                   \
		SIM_CALL(cudaError_t);                                                             \
		return driver ? runtime_result(call) : cudaPeekAtLastError();                      \
	}

/* Defines a function with two bodies, as in the driver. */
#define DEFINE_TWO(name, suffix, params, call)                                                     \
	DEFINE_ONE(name, params, call)                                                             \
	cudaError_t name##suffix params;                                                           \
	SIM_API cudaError_t name##suffix params                                                    \
	{                                                                                          \
		const struct driver *driver = driver_get(true);                                    \
                                                                                                   \
		SIM_CALL(cudaError_t);                                                             \
		return driver ? runtime_result(call) : cudaPeekAtLastError();                      \
	}

#endif
