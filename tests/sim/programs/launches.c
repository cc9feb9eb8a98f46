// SPDX-License-Identifier: Apache-2.0
/*
 * For the benchmarks: launches of a simulated kernel.
 *
 *	launches [--rate N] [--seconds S] [--pause]
 *
 * Without --rate it launches as fast as it can; with it, it computes between launches so long that,
 * alone, it makes N a second: how many it really makes then shows what a tracer costs it. Prints
 * a line of JSON. The computing is measured out at the start; with --pause it waits for a line on
 * stdin after that, and prints "ready" before, so that the tracer comes in between.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "log.h"

KERNEL(nothing, "_Z7nothingmPfi")

#define CALIBRATE 20000
#define LOOK 64 /* launches between two looks at the clock */

static volatile uint64_t sink;

static void compute(uint64_t turns)
{
	uint64_t value = sink + 1;

	for (uint64_t i = 0; i < turns; i++)
		value = value * 6364136223846793005u + 1442695040888963407u;
	sink = value;
}

static void launch(cudaStream_t stream)
{
	static const dim3 grid = {1, 1, 1}, block = {32, 1, 1};
	uint64_t ns = 0;
	float *data = NULL;
	int count = 0;
	void *args[] = {&ns, &data, &count};

	MUST(cudaLaunchKernel((const void *)nothing, grid, block, args, 0, stream));
}

static uint64_t run(cudaStream_t stream, uint64_t launches, uint64_t turns)
{
	uint64_t begin = log_now_ns();

	for (uint64_t i = 0; i < launches; i++) {
		launch(stream);
		compute(turns);
	}
	return log_now_ns() - begin;
}

/* How many turns make one launch and its computing last `period_ns`. */
static uint64_t calibrate(cudaStream_t stream, double period_ns)
{
	double turns = 1000;

	for (int round = 0; round < 6; round++) {
		double alone = (double)run(stream, CALIBRATE / 10, 0) / (CALIBRATE / 10.0);
		double both =
			(double)run(stream, CALIBRATE / 10, (uint64_t)turns) / (CALIBRATE / 10.0);
		double turn = (both - alone) / turns;

		if (turn <= 0 || period_ns <= alone)
			return 0;
		turns = (period_ns - alone) / turn;
	}
	return (uint64_t)turns;
}

int main(int argc, char **argv)
{
	double rate = 0, seconds = 1;
	uint64_t turns = 0, launches = 0, begin, now;
	bool pause = false;
	cudaStream_t stream;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--pause"))
			pause = true;
		else if (!strcmp(argv[i], "--rate") && i + 1 < argc)
			rate = atof(argv[++i]);
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = atof(argv[++i]);
		else
			return fprintf(stderr, "usage: launches [--rate N] [--seconds S] "
					       "[--pause]\n"),
			       2;
	}
	/* The kernels take no time, and neither does the driver: what is measured is the call. */
	setenv("WAFFLE_SIM_LAUNCH_NS", "0", 0);
	MUST(cudaStreamCreate(&stream));
	run(stream, CALIBRATE, 0);
	if (rate > 0)
		turns = calibrate(stream, 1e9 / rate);
	if (pause) {
		char line[16];

		printf("simulated launches: ready\n");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
	}
	begin = log_now_ns();
	do {
		run(stream, LOOK, turns);
		launches += LOOK;
		now = log_now_ns();
	} while ((double)(now - begin) < seconds * 1e9);
	printf("{\"simulated\": true, \"launches\": %llu, \"seconds\": %.6f, \"turns\": %llu}\n",
	       (unsigned long long)launches, (double)(now - begin) / 1e9,
	       (unsigned long long)turns);
	return 0;
}
