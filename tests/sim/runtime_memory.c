// SPDX-License-Identifier: Apache-2.0
/* The stand-in for libcudart: memory, copies, streams, events, graphs. */
#include "runtime.h"

DEFINE_ONE(cudaMalloc, (void **devPtr, size_t size),
	   driver->cuMemAlloc_v2((CUdeviceptr *)devPtr, size))
DEFINE_ONE(cudaMallocManaged, (void **devPtr, size_t size, unsigned int flags),
	   driver->cuMemAllocManaged((CUdeviceptr *)devPtr, size, flags))
DEFINE_ONE(cudaMallocHost, (void **ptr, size_t size), driver->cuMemHostAlloc(ptr, size, 0))
DEFINE_ONE(cudaHostAlloc, (void **pHost, size_t size, unsigned int flags),
	   driver->cuMemHostAlloc(pHost, size, flags))
DEFINE_ONE(cudaFree, (void *devPtr), driver->cuMemFree_v2((CUdeviceptr)(uintptr_t)devPtr))
DEFINE_ONE(cudaFreeHost, (void *ptr), driver->cuMemFreeHost(ptr))
DEFINE_TWO(cudaMallocAsync, _ptsz, (void **devPtr, size_t size, cudaStream_t hStream),
	   driver->cuMemAllocAsync((CUdeviceptr *)devPtr, size, hStream))
DEFINE_TWO(cudaFreeAsync, _ptsz, (void *devPtr, cudaStream_t hStream),
	   driver->cuMemFreeAsync((CUdeviceptr)(uintptr_t)devPtr, hStream))

static CUresult copy(const struct driver *driver, void *dst, const void *src, size_t count,
		     enum cudaMemcpyKind kind)
{
	CUdeviceptr to = (uintptr_t)dst, from = (uintptr_t)src;

	switch (kind) {
	case cudaMemcpyHostToDevice:
		return driver->cuMemcpyHtoD_v2(to, src, count);
	case cudaMemcpyDeviceToHost:
		return driver->cuMemcpyDtoH_v2(dst, from, count);
	case cudaMemcpyDeviceToDevice:
		return driver->cuMemcpyDtoD_v2(to, from, count);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return driver->cuMemcpy(to, from, count);
	}
	return CUDA_ERROR_INVALID_VALUE;
}
DEFINE_TWO(cudaMemcpy, _ptds, (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
	   copy(driver, dst, src, count, kind))

static CUresult copy_async(const struct driver *driver, void *dst, const void *src, size_t count,
			   enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUdeviceptr to = (uintptr_t)dst, from = (uintptr_t)src;

	switch (kind) {
	case cudaMemcpyHostToDevice:
		return driver->cuMemcpyHtoDAsync_v2(to, src, count, stream);
	case cudaMemcpyDeviceToHost:
		return driver->cuMemcpyDtoHAsync_v2(dst, from, count, stream);
	case cudaMemcpyDeviceToDevice:
		return driver->cuMemcpyDtoDAsync_v2(to, from, count, stream);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return driver->cuMemcpyAsync(to, from, count, stream);
	}
	return CUDA_ERROR_INVALID_VALUE;
}
DEFINE_TWO(cudaMemcpyAsync, _ptsz,
	   (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
	    cudaStream_t stream),
	   copy_async(driver, dst, src, count, kind, stream))

/* Copies row by row. The real one passes a description of the whole copy to the driver. */
static CUresult copy_rows(const struct driver *driver, char *dst, size_t dpitch, const char *src,
			  size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind,
			  cudaStream_t stream)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t row = 0; row < height && result == CUDA_SUCCESS; row++)
		result = copy_async(driver, dst + row * dpitch, src + row * spitch, width, kind,
				    stream);
	return result;
}
DEFINE_TWO(cudaMemcpy2DAsync, _ptsz,
	   (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	    enum cudaMemcpyKind kind, cudaStream_t stream),
	   copy_rows(driver, dst, dpitch, src, spitch, width, height, kind, stream))

/* The stream is always explicit, so one body is enough, as in the real library. */
DEFINE_ONE(cudaMemcpyPeerAsync,
	   (void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
	    cudaStream_t stream),
	   ((void)dstDevice, (void)srcDevice,
	    driver->cuMemcpyPeerAsync((CUdeviceptr)(uintptr_t)dst, NULL,
				      (CUdeviceptr)(uintptr_t)src, NULL, count, stream)))

DEFINE_TWO(cudaMemset, _ptds, (void *devPtr, int value, size_t count),
	   driver->cuMemsetD8_v2((CUdeviceptr)(uintptr_t)devPtr, (unsigned char)value, count))
DEFINE_TWO(cudaMemsetAsync, _ptsz, (void *devPtr, int value, size_t count, cudaStream_t stream),
	   driver->cuMemsetD8Async((CUdeviceptr)(uintptr_t)devPtr, (unsigned char)value, count,
				   stream))

DEFINE_ONE(cudaStreamCreate, (cudaStream_t * pStream), driver->cuStreamCreate(pStream, 0))
DEFINE_ONE(cudaStreamCreateWithFlags, (cudaStream_t * pStream, unsigned int flags),
	   driver->cuStreamCreate(pStream, flags))
DEFINE_ONE(cudaStreamCreateWithPriority, (cudaStream_t * pStream, unsigned int flags, int priority),
	   driver->cuStreamCreateWithPriority(pStream, flags, priority))
DEFINE_ONE(cudaStreamDestroy, (cudaStream_t stream), driver->cuStreamDestroy_v2(stream))
DEFINE_TWO(cudaStreamQuery, _ptsz, (cudaStream_t stream), driver->cuStreamQuery(stream))
DEFINE_TWO(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), driver->cuStreamSynchronize(stream))
DEFINE_TWO(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
	   driver->cuStreamWaitEvent(stream, event, flags))
DEFINE_TWO(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
	   driver->cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode))
DEFINE_TWO(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *pGraph),
	   driver->cuStreamEndCapture(stream, pGraph))

DEFINE_ONE(cudaGraphInstantiate,
	   (cudaGraphExec_t * pGraphExec, cudaGraph_t graph, unsigned long long flags),
	   driver->cuGraphInstantiateWithFlags(pGraphExec, graph, flags))
DEFINE_TWO(cudaGraphLaunch, _ptsz, (cudaGraphExec_t graphExec, cudaStream_t stream),
	   driver->cuGraphLaunch(graphExec, stream))
DEFINE_ONE(cudaGraphExecDestroy, (cudaGraphExec_t graphExec), driver->cuGraphExecDestroy(graphExec))
DEFINE_ONE(cudaGraphDestroy, (cudaGraph_t graph), driver->cuGraphDestroy(graph))

DEFINE_ONE(cudaEventCreate, (cudaEvent_t * event), driver->cuEventCreate(event, 0))
DEFINE_ONE(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags),
	   driver->cuEventCreate(event, flags))
DEFINE_ONE(cudaEventDestroy, (cudaEvent_t event), driver->cuEventDestroy_v2(event))
DEFINE_TWO(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
	   driver->cuEventRecord(event, stream))
DEFINE_TWO(cudaEventRecordWithFlags, _ptsz,
	   (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
	   driver->cuEventRecordWithFlags(event, stream, flags))
DEFINE_ONE(cudaEventQuery, (cudaEvent_t event), driver->cuEventQuery(event))
DEFINE_ONE(cudaEventSynchronize, (cudaEvent_t event), driver->cuEventSynchronize(event))
DEFINE_ONE(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end),
	   driver->cuEventElapsedTime(ms, start, end))
