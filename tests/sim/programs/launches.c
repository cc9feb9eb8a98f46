// SPDX-License-Identifier: Apache-2.0
/*
 * For the benchmarks: launches of a simulated kernel that takes no time.
 *
 *	launches runtime|driver RATE SECONDS
 *
 * RATE 0: as fast as possible. Otherwise the program computes between launches so long that,
 * untraced, it makes RATE launches per second. The additional time per launch is then the cost of a
 * tracer. Prints windows like bench/window.h, but of CPU time, so that other programs on the CPU do
 * not count. An operation is a launch and the computing after it. The stream's thread sleeps
 * meanwhile: it executes launches when they are waited for, which is not counted.
 *
 * The speed of the machine varies by more than launches cost. So the program also computes without
 * launches, before and after each batch of them. The time of the batch is scaled to the speed at
 * the beginning.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/window.h"
#include "kernels.h"

KERNEL(nothing, "_Z7nothingmPfi")

#define WARM_UP 80 /* batches */
#define CALIBRATE 16
#define AT_ONCE 256 /* launches between two checks of the clock; too few to wake the stream */
#define ALONE 64    /* rounds of computing without launches, before and after each batch */

struct launcher {
	CUfunction function; /* NULL: launch by the runtime */
	cudaStream_t stream;
	uint64_t turns; /* rounds of computing after each launch */
	uint64_t value;
	double compute_ns; /* CPU time of computing, at the beginning; 0: it does not compute */
};

static void compute(struct launcher *launcher)
{
	for (uint64_t i = 0; i < launcher->turns; i++) {
		launcher->value = launcher->value * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(launcher->value));
	}
}

static void launch(const struct launcher *launcher)
{
	static const dim3 grid = {1, 1, 1}, block = {32, 1, 1};
	uint64_t ns = 0;
	float *data = NULL;
	int count = 0;
	void *args[] = {&ns, &data, &count};

	if (launcher->function)
		MUST(cuLaunchKernel(launcher->function, 1, 1, 1, 32, 1, 1, 0, launcher->stream,
				    args, NULL));
	else
		MUST(cudaLaunchKernel((const void *)nothing, grid, block, args, 0,
				      launcher->stream));
}

/* CPU time of a launch in ns. */
static double run(struct launcher *launcher, unsigned batches)
{
	uint64_t spent = 0;

	for (unsigned batch = 0; batch < batches; batch++) {
		uint64_t begin = window_clock(CLOCK_THREAD_CPUTIME_ID);

		for (unsigned i = 0; i < AT_ONCE; i++) {
			launch(launcher);
			compute(launcher);
		}
		spent += window_clock(CLOCK_THREAD_CPUTIME_ID) - begin;
		MUST(cudaStreamSynchronize(launcher->stream));
	}
	return (double)spent / batches / AT_ONCE;
}

/* Current CPU time of the computing after a launch, in ns. */
static double compute_now(struct launcher *launcher)
{
	uint64_t begin = window_clock(CLOCK_THREAD_CPUTIME_ID);

	for (unsigned i = 0; i < ALONE; i++)
		compute(launcher);
	return (double)(window_clock(CLOCK_THREAD_CPUTIME_ID) - begin) / ALONE;
}

/* Sets the amount of computing such that a launch and the computing together take period_ns. */
static void calibrate(struct launcher *launcher, double period_ns)
{
	double alone = run(launcher, CALIBRATE);

	launcher->turns = 1000;
	for (int round = 0; round < 6; round++) {
		double turn = (run(launcher, CALIBRATE) - alone) / (double)launcher->turns;

		if (turn <= 0 || period_ns <= alone)
			break;
		launcher->turns = (uint64_t)((period_ns - alone) / turn) + 1;
	}
	for (int i = 0; i < WARM_UP; i++)
		launcher->compute_ns += compute_now(launcher) / WARM_UP;
}

/* One window of WINDOW_NS. */
static void window_run(struct launcher *launcher)
{
	uint64_t until = window_now() + WINDOW_NS, now;
	double sum = 0, computed = 0, speed = 1;
	unsigned batches = 0;

	do {
		if (launcher->compute_ns > 0)
			computed += compute_now(launcher) / 2;
		sum += run(launcher, 1);
		if (launcher->compute_ns > 0)
			computed += compute_now(launcher) / 2;
		batches++;
		now = window_now();
	} while (now < until);
	if (launcher->compute_ns > 0)
		speed = launcher->compute_ns * batches / computed;
	printf("%llu %.3f\n", (unsigned long long)now, sum / batches * speed);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct launcher launcher = {0};
	uint64_t until;
	CUmodule module;

	if (argc != 4 || (strcmp(argv[1], "runtime") != 0 && strcmp(argv[1], "driver") != 0)) {
		fprintf(stderr, "usage: launches runtime|driver RATE SECONDS\n");
		return 2;
	}
	/* The driver takes no time either, so only the call is measured. */
	setenv("WAFFLE_SIM_LAUNCH_NS", "0", 0);
	MUST(cudaStreamCreate(&launcher.stream));
	window_pin(0); /* but not the stream's thread */
	if (!strcmp(argv[1], "driver")) {
		MUST(cuModuleLoadData(&module, &kernels_fatbin));
		MUST(cuModuleGetFunction(&launcher.function, module, "_Z7nothingmPfi"));
	}
	run(&launcher, WARM_UP);
	if (atof(argv[2]) > 0)
		calibrate(&launcher, 1e9 / atof(argv[2]));
	until = window_now() + (uint64_t)(atof(argv[3]) * 1e9);
	while (window_now() < until)
		window_run(&launcher);
	return 0;
}
