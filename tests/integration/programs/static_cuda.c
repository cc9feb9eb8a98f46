// SPDX-License-Identifier: Apache-2.0
/* A program as nvcc links it: with kernels, and a runtime of its own that exports nothing. */
#include <stddef.h>

struct dim3 {
	unsigned x, y, z;
};

__attribute__((section(".nv_fatbin"), used)) static const char kernels[] = "kernels";

__attribute__((noinline)) int cudaLaunchKernel(const void *kernel, struct dim3 grid,
					       struct dim3 block, void **args, size_t shared,
					       void *stream)
{
	return kernel && args && stream && grid.x + block.x + shared ? 0 : 1;
}

int main(void)
{
	struct dim3 one = {1, 1, 1};

	return cudaLaunchKernel((const void *)main, one, one, NULL, 0, NULL) != 1;
}
