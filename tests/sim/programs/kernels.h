/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mimics nvcc's output for `__global__ void name(uint64_t ns, float *data, int count)`. That is a
 * host function with the C++ name, which launches, and its registration at the program's start. The
 * first parameter is the kernel's duration (sim_cuda.h).
 */
#ifndef SIM_KERNELS_H
#define SIM_KERNELS_H

#include <stdint.h>

#include "log.h"
#include "must.h"
#include "sim_cuda.h"

/* nvcc uses the same sections. */
__attribute__((section(".nv_fatbin"))) static const struct sim_image kernels_image = {
	SIM_IMAGE_MAGIC, 1};
__attribute__((section(".nvFatBinSegment"))) static struct sim_fatbin kernels_fatbin = {
	SIM_FATBIN_MAGIC, 1, &kernels_image, NULL};

/* `mangled` is the C++ name of name(unsigned long, float*, int). */
#define KERNEL(name, mangled)                                                                      \
	void name(uint64_t ns, float *data, int count) __asm__(mangled);                           \
	__attribute__((noinline)) void name(uint64_t ns, float *data, int count)                   \
	{                                                                                          \
		void *args[] = {&ns, &data, &count};                                               \
		dim3 grid, block;                                                                  \
		size_t shared;                                                                     \
		cudaStream_t stream;                                                               \
                                                                                                   \
		__cudaPopCallConfiguration(&grid, &block, &shared, &stream);                       \
		MUST(LOGGED(cudaLaunchKernel,                                                      \
			    ((const void *)name, grid, block, args, shared, stream),               \
			    "\"kernel\": \"" #name "(unsigned long, float*, int)\", "              \
			    "\"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], "                    \
			    "\"shared_bytes\": %zu, \"stream\": %lu",                              \
			    grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,             \
			    (uintptr_t)stream));                                                   \
	}                                                                                          \
	__attribute__((constructor)) static void name##_register(void)                             \
	{                                                                                          \
		void **handle = __cudaRegisterFatBinary(&kernels_fatbin);                          \
                                                                                                   \
		__cudaRegisterFunction(handle, (const char *)name, (char *)mangled, mangled, -1,   \
				       NULL, NULL, NULL, NULL, NULL);                              \
		__cudaRegisterFatBinaryEnd(handle);                                                \
	}

/* name<<<grid, block, shared, stream>>>(…) */
#define LAUNCH(name, grid, block, shared, stream, ...)                                             \
	(__cudaPushCallConfiguration(grid, block, shared, stream), name(__VA_ARGS__))

#endif
