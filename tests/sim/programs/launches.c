// SPDX-License-Identifier: Apache-2.0
/*
 * For the benchmarks: launches of a simulated kernel that takes no time.
 *
 *	launches runtime|driver RATE SECONDS
 *
 * RATE 0: as fast as it can. Else it computes between launches so long that, alone, it makes RATE
 * of them a second: what it then takes for one shows what a tracer costs it. Prints windows as
 * those of bench/window.h, but of CPU time, so that others on the CPU don't count; an operation is
 * a launch with the computing behind it. The stream's thread sleeps meanwhile: it does what was
 * launched when that is waited for, which isn't counted.
 *
 * The machine computes now faster and now slower, by more than launches are to cost. So it computes
 * without launches, too, before and behind each batch of them, and what the batch took is told at
 * the speed of the beginning.
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
#define AT_ONCE 256 /* launches between two looks at the clock; fewer than wake the stream */
#define ALONE 64    /* times that it computes without a launch, at each end of them */

struct launcher {
	CUfunction function; /* NULL: by the runtime */
	cudaStream_t stream;
	uint64_t turns; /* of computing, behind each launch */
	uint64_t value;
	double compute_ns; /* of CPU time, in the beginning; 0: it does not compute */
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

/* ns of CPU time that a launch takes. */
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

/* ns of CPU time that the computing behind a launch takes now. */
static double compute_now(struct launcher *launcher)
{
	uint64_t begin = window_clock(CLOCK_THREAD_CPUTIME_ID);

	for (unsigned i = 0; i < ALONE; i++)
		compute(launcher);
	return (double)(window_clock(CLOCK_THREAD_CPUTIME_ID) - begin) / ALONE;
}

/* Sets how much computing makes one launch and what is behind it last period_ns. */
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
	/* Neither does the driver take time: what is measured is the call. */
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
