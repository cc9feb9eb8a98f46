// SPDX-License-Identifier: Apache-2.0
/*
 * The stand-in for libcuda.so.1: memory and copies. A device's memory is host memory. Copies move
 * their bytes, and last as long as over a bus.
 */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static uint64_t copies; /* of the process, to inject errors */

static uint64_t bytes_ns(size_t bytes)
{
	const struct sim_config *config = sim_config();

	return config->copy_latency_ns +
	       (config->copy_bytes_per_ns > 0
			? (uint64_t)((double)bytes / config->copy_bytes_per_ns)
			: 0);
}

static uint64_t copy_run(struct op *op, uint64_t start_ns)
{
	memmove((void *)op->words[0], (const void *)op->words[1], op->words[2]);
	return start_ns + op->duration_ns;
}

static CUresult copy(CUstream handle, bool per_thread, uint32_t kind, uintptr_t dst, uintptr_t src,
		     size_t bytes, bool wait)
{
	uint64_t nth = __atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED);
	double slow = sim_slow_factor(&sim_config()->slow_copy, nth);
	struct op op = {.run = copy_run,
			.words = {dst, src, bytes},
			.about = {.op = SIM_COPY, .kind = kind, .bytes = bytes}};

	op.duration_ns = (uint64_t)((double)bytes_ns(bytes) * slow);
	return op_submit(stream_of(handle, per_thread), &op, wait);
}

static uint64_t set8_run(struct op *op, uint64_t start_ns)
{
	memset((void *)op->words[0], (int)op->words[1], op->words[2]);
	return start_ns + op->duration_ns;
}

static uint64_t set32_run(struct op *op, uint64_t start_ns)
{
	uint32_t *at = (uint32_t *)op->words[0];

	for (uintptr_t i = 0; i < op->words[2]; i++)
		at[i] = (uint32_t)op->words[1];
	return start_ns + op->duration_ns;
}

static CUresult set(CUstream handle, bool per_thread, op_run run, uintptr_t dst, uintptr_t value,
		    size_t count, bool wait)
{
	size_t bytes = count * (run == set32_run ? 4 : 1);
	struct op op = {
		.run = run, .words = {dst, value, count}, .about = {.op = SIM_SET, .bytes = bytes}};

	op.duration_ns = bytes_ns(bytes);
	return op_submit(stream_of(handle, per_thread), &op, wait);
}

static CUresult memory_get(uintptr_t *at, size_t bytes)
{
	void *memory;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memory = malloc(bytes);
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*at = (uintptr_t)memory;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	SIM_CALL(CUresult);
	return memory_get((uintptr_t *)dptr, bytesize);
}

SIM_API CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	SIM_CALL(CUresult);
	(void)flags;
	return memory_get((uintptr_t *)dptr, bytesize);
}

SIM_API CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	SIM_CALL(CUresult);
	return memory_get((uintptr_t *)pp, bytesize);
}

SIM_API CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	SIM_CALL(CUresult);
	(void)Flags;
	return memory_get((uintptr_t *)pp, bytesize);
}

SIM_API CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	SIM_CALL(CUresult);
	streams_wait(false); /* as in the real driver */
	free((void *)(uintptr_t)dptr);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemFreeHost(void *p)
{
	SIM_CALL(CUresult);
	streams_wait(false);
	free(p);
	return CUDA_SUCCESS;
}

static CUresult cuMemAllocAsync_on(CUdeviceptr *dptr, size_t bytes, CUstream stream,
				   bool per_thread)
{
	(void)stream, (void)per_thread;
	return memory_get((uintptr_t *)dptr, bytes);
}
DEFINE_TWO(cuMemAllocAsync, _ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream), NULL,
	   dptr, bytesize, hStream)

static uint64_t free_run(struct op *op, uint64_t start_ns)
{
	free((void *)op->words[0]);
	return start_ns;
}

static CUresult cuMemFreeAsync_on(CUdeviceptr dptr, CUstream stream, bool per_thread)
{
	struct op op = {.run = free_run, .words = {(uintptr_t)dptr}};

	return op_submit(stream_of(stream, per_thread), &op, false);
}
DEFINE_TWO(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream hStream), NULL, dptr, hStream)

/* Copies: the name, the two sides and, for asynchronous ones, the stream. */
#define DEFINE_COPY(name, kind, dst_type, src_type)                                                \
	static CUresult name##_on(dst_type dst, src_type src, size_t bytes, bool per_thread)       \
	{                                                                                          \
		return copy(NULL, per_thread, kind, (uintptr_t)dst, (uintptr_t)src, bytes, true);  \
	}                                                                                          \
	DEFINE_TWO(name, _ptds, (dst_type dst, src_type src, size_t ByteCount), NULL, dst, src,    \
		   ByteCount)

#define DEFINE_COPY_ASYNC(name, kind, dst_type, src_type)                                          \
	static CUresult name##_on(dst_type dst, src_type src, size_t bytes, CUstream stream,       \
				  bool per_thread)                                                 \
	{                                                                                          \
		return copy(stream, per_thread, kind, (uintptr_t)dst, (uintptr_t)src, bytes,       \
			    false);                                                                \
	}                                                                                          \
	DEFINE_TWO(name, _ptsz, (dst_type dst, src_type src, size_t ByteCount, CUstream hStream),  \
		   SIM_SEEN(NULL, NULL, NULL, hStream), dst, src, ByteCount, hStream)

DEFINE_COPY(cuMemcpy, 0, CUdeviceptr, CUdeviceptr)
DEFINE_COPY(cuMemcpyHtoD_v2, 1, CUdeviceptr, const void *)
DEFINE_COPY(cuMemcpyDtoH_v2, 2, void *, CUdeviceptr)
DEFINE_COPY(cuMemcpyDtoD_v2, 8, CUdeviceptr, CUdeviceptr)
DEFINE_COPY_ASYNC(cuMemcpyAsync, 0, CUdeviceptr, CUdeviceptr)
DEFINE_COPY_ASYNC(cuMemcpyHtoDAsync_v2, 1, CUdeviceptr, const void *)
DEFINE_COPY_ASYNC(cuMemcpyDtoHAsync_v2, 2, void *, CUdeviceptr)
DEFINE_COPY_ASYNC(cuMemcpyDtoDAsync_v2, 8, CUdeviceptr, CUdeviceptr)

static CUresult cuMemcpyPeerAsync_on(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
				     CUstream stream, bool per_thread)
{
	return copy(stream, per_thread, 10, (uintptr_t)dst, (uintptr_t)src, bytes, false);
}
DEFINE_TWO(cuMemcpyPeerAsync, _ptsz,
	   (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
	    CUcontext srcContext, size_t ByteCount, CUstream hStream),
	   SIM_SEEN(NULL, NULL, NULL, NULL, NULL, hStream),
	   ((void)dstContext, (void)srcContext, dstDevice), srcDevice, ByteCount, hStream)

static CUresult cuMemsetD8_v2_on(CUdeviceptr dst, unsigned char value, size_t count,
				 bool per_thread)
{
	return set(NULL, per_thread, set8_run, (uintptr_t)dst, value, count, true);
}
DEFINE_TWO(cuMemsetD8_v2, _ptds, (CUdeviceptr dstDevice, unsigned char uc, size_t N), NULL,
	   dstDevice, uc, N)

static CUresult cuMemsetD8Async_on(CUdeviceptr dst, unsigned char value, size_t count,
				   CUstream stream, bool per_thread)
{
	return set(stream, per_thread, set8_run, (uintptr_t)dst, value, count, false);
}
DEFINE_TWO(cuMemsetD8Async, _ptsz,
	   (CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream),
	   SIM_SEEN(NULL, NULL, NULL, hStream), dstDevice, uc, N, hStream)

static CUresult cuMemsetD32Async_on(CUdeviceptr dst, unsigned int value, size_t count,
				    CUstream stream, bool per_thread)
{
	return set(stream, per_thread, set32_run, (uintptr_t)dst, value, count, false);
}
DEFINE_TWO(cuMemsetD32Async, _ptsz,
	   (CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream),
	   SIM_SEEN(NULL, NULL, NULL, hStream), dstDevice, ui, N, hStream)
