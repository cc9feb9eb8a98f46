// SPDX-License-Identifier: Apache-2.0
/*
 * The event of inside.c by LTTng-UST, in the same bursts. Prints the median costs of an event and
 * of a read of the counter in ns, as inside.c does.
 *
 *	lttng CPU ROUNDS
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "window.h"

#define BURST 10000

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double burst_clock(void)
{
	uint64_t before = window_now();

	for (long i = 0; i < BURST; i++) {
		uint64_t now = __builtin_ia32_rdtsc();

		__asm__ __volatile__("" ::"r"(now) : "memory");
	}
	return (double)(window_now() - before) / BURST;
}

static double burst_event(void)
{
	uint64_t before = window_now();

	for (long i = 0; i < BURST; i++) {
		lttng_ust_tracepoint(waffle_bench, event, i, (long)BURST);
		__asm__ __volatile__("" ::: "memory");
	}
	return (double)(window_now() - before) / BURST;
}

int main(int argc, char **argv)
{
	int rounds = argc == 3 ? atoi(argv[2]) : 0;
	double *costs = calloc((size_t)(rounds > 0 ? rounds : 1) * 2, sizeof(*costs));

	if (rounds <= 0 || !costs) {
		fprintf(stderr, "usage: lttng CPU ROUNDS\n");
		return 2;
	}
	window_pin(atoi(argv[1]));
	/* The first rounds touch the memory of the buffers. Between bursts they are emptied. */
	for (int i = -10; i < rounds; i++) {
		double clock = burst_clock(), event = burst_event();

		usleep(20000);
		if (i < 0)
			continue;
		costs[i] = clock;
		costs[rounds + i] = event;
	}
	qsort(costs, (size_t)rounds, sizeof(*costs), compare);
	qsort(costs + rounds, (size_t)rounds, sizeof(*costs), compare);
	printf("clock %.3f\nevent %.3f\n", costs[rounds / 2], costs[rounds + rounds / 2]);
	free(costs);
	return 0;
}
