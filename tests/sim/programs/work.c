// SPDX-License-Identifier: Apache-2.0
/*
 * Work for the simulated GPU, for the tests of libwaffle-gpu:
 *
 *	work host	a host function between two kernels
 *	work graph	a graph that is launched again and again
 *	work fork	a child that uses no CUDA, and work of the parent after it
 *	work close	closes the CUPTI that it has opened itself, and works
 *	work streams N	a kernel on each of N streams
 *	work until FILE	kernels until the file exists
 *	work taken	a kernel, then another tool takes CUPTI's records, and another kernel
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"

KERNEL(work, "_Z4workmPfi")

static void launch(cudaStream_t stream)
{
	static const dim3 grid = {1, 2, 3}, block = {32, 1, 1};
	uint64_t ns = 10000;
	float *data = NULL;
	int count = 0;
	void *args[] = {&ns, &data, &count};

	MUST(cudaLaunchKernel((const void *)work, grid, block, args, 0, stream));
}

static void host(void *at)
{
	*(int *)at += 1;
}

static void host_run(cudaStream_t stream)
{
	int calls = 0;

	launch(stream);
	MUST(cudaLaunchHostFunc(stream, host, &calls));
	launch(stream);
	MUST(cudaStreamSynchronize(stream));
	printf("host functions %d\n", calls);
}

static void graph_run(cudaStream_t stream)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	launch(stream);
	launch(stream);
	MUST(cudaStreamEndCapture(stream, &graph));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	puts("instantiated");
	for (;;) {
		MUST(cudaGraphLaunch(exec, stream));
		MUST(cudaStreamSynchronize(stream));
		usleep(5000);
	}
}

static void fork_run(cudaStream_t stream)
{
	pid_t child;

	launch(stream);
	child = fork();
	if (!child)
		exit(0);
	waitpid(child, NULL, 0);
	launch(stream);
	MUST(cudaStreamSynchronize(stream));
}

static void close_run(cudaStream_t stream)
{
	void *cupti = dlopen("libcupti.so.12", RTLD_NOW);

	launch(stream);
	if (cupti)
		dlclose(cupti);
	launch(stream);
	MUST(cudaStreamSynchronize(stream));
}

static void until_run(cudaStream_t stream, const char *path)
{
	while (access(path, F_OK)) {
		launch(stream);
		MUST(cudaStreamSynchronize(stream));
		usleep(1000);
	}
}

static void streams_run(unsigned count)
{
	cudaStream_t stream;

	for (unsigned i = 0; i < count; i++) {
		MUST(cudaStreamCreate(&stream));
		launch(stream);
		MUST(cudaStreamSynchronize(stream));
		MUST(cudaStreamDestroy(stream));
	}
}

#define TAKEN_BYTES (1u << 20)

static uint64_t taken_buffer[TAKEN_BYTES / 8];
static unsigned taken; /* buffers that came back */

static void taken_request(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*buffer = (uint8_t *)taken_buffer;
	*size = TAKEN_BYTES;
	*records_max = 0;
}

static void taken_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			   size_t valid)
{
	(void)context, (void)stream, (void)buffer, (void)size, (void)valid;
	taken++;
}

static void taken_run(cudaStream_t stream)
{
	void *cupti = dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD);
	int (*take)(void (*)(uint8_t **, size_t *, size_t *),
		    void (*)(void *, uint32_t, uint8_t *, size_t, size_t)) = NULL;
	int (*flush)(uint32_t) = NULL;

	if (!cupti)
		exit(3);
	*(void **)&take = dlsym(cupti, "cuptiActivityRegisterCallbacks");
	*(void **)&flush = dlsym(cupti, "cuptiActivityFlushAll");
	launch(stream);
	MUST(cudaStreamSynchronize(stream));
	flush(0);
	take(taken_request, taken_complete);
	launch(stream);
	MUST(cudaStreamSynchronize(stream));
	flush(0);
	printf("taken %d\n", taken > 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	cudaStream_t stream;

	setvbuf(stdout, NULL, _IOLBF, 0);
	MUST(cudaStreamCreate(&stream));
	if (!strcmp(what, "host"))
		host_run(stream);
	else if (!strcmp(what, "graph"))
		graph_run(stream);
	else if (!strcmp(what, "fork"))
		fork_run(stream);
	else if (!strcmp(what, "close"))
		close_run(stream);
	else if (!strcmp(what, "taken"))
		taken_run(stream);
	else if (!strcmp(what, "streams"))
		streams_run(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
	else if (!strcmp(what, "until") && argc > 2)
		until_run(stream, argv[2]);
	else
		return 2;
	puts("end");
	return 0;
}
