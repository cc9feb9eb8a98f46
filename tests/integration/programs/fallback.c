// SPDX-License-Identifier: Apache-2.0
/*
 * Launches by the runtime that fail before they reach the driver, each followed by a launch by the
 * driver. Each pair runs on a thread of its own, in a function with a larger unwritten stack frame
 * than the one before. With a number as argument, so many launches that do not fail come first on
 * each thread. Prints the counts of all kinds.
 */
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/programs/kernels.h"

KERNEL(known, "_Z5knownmPfi")

#define DEPTHS 100
#define FAILURES 2 /* on each thread */

static const dim3 grid = {1, 1, 1}, block = {32, 1, 1};

static void unknown(void)
{
}

/* 0, or an error of the runtime's. */
static __attribute__((noinline)) int by_runtime(const void *function)
{
	uint64_t ns = 0;
	float *data = NULL;
	int count = 0, result;
	void *args[] = {&ns, &data, &count};

	result = (int)cudaLaunchKernel(function, grid, block, args, 0, NULL);
	__asm__ volatile("" ::: "memory");
	return result;
}

static __attribute__((noinline)) void by_driver(CUfunction function, unsigned bytes)
{
	uint64_t ns = 0;
	float *data = NULL;
	int count = 0;
	void *args[] = {&ns, &data, &count};
	char *room = alloca(bytes);

	__asm__ volatile("" ::"r"(room) : "memory");
	MUST(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
	__asm__ volatile("" ::"r"(room) : "memory");
}

static CUfunction function;
static int first, failed;

static void *fall_back(void *depth)
{
	for (int i = 0; i < first; i++)
		MUST(by_runtime((const void *)known));
	for (int i = 0; i < FAILURES; i++) {
		failed += by_runtime((const void *)unknown) != 0;
		by_driver(function, 16 * (unsigned)(uintptr_t)depth);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	CUmodule module;

	first = argc > 1 ? atoi(argv[1]) : 0;
	MUST(cudaDeviceSynchronize());
	MUST(cuModuleLoadData(&module, &kernels_fatbin));
	MUST(cuModuleGetFunction(&function, module, "_Z5knownmPfi"));
	for (uintptr_t depth = 0; depth < DEPTHS; depth++) {
		pthread_t thread;

		MUST(pthread_create(&thread, NULL, fall_back, (void *)depth));
		pthread_join(thread, NULL);
	}
	MUST(cudaDeviceSynchronize());
	printf("%d %d %d\n", first * DEPTHS, failed, DEPTHS * FAILURES);
	return 0;
}
