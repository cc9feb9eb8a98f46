// SPDX-License-Identifier: Apache-2.0
/*
 * What an event costs in a program that records itself while other threads record at the same time,
 * one on each of some CPUs: the median CPU time of an event in ns, of bursts that fit into a ring.
 *
 *	threads THREADS ROUNDS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <waffle_macros.h>
#include <waffle_trace.h>

#include "window.h"

#define BURST 10000
#define THREADS_MAX 256

static pthread_barrier_t barrier;
static double *costs;
static int rounds;

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void *thread_main(void *arg)
{
	int number = (int)(long)arg;

	window_pin(number);
	for (int round = -10; round < rounds; round++) {
		uint64_t before;

		if (!number)
			waffle_trace_flush();
		pthread_barrier_wait(&barrier);
		before = window_clock(CLOCK_THREAD_CPUTIME_ID);
		for (long i = 0; i < BURST; i++) {
			EVENT("event", KV_I64("turn", i), KV_I64("turns", BURST));
			__asm__ __volatile__("" ::: "memory");
		}
		if (round >= 0)
			costs[number * rounds + round] =
				(double)(window_clock(CLOCK_THREAD_CPUTIME_ID) - before) / BURST;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc == 3 ? atoi(argv[1]) : 0;
	pthread_t all[THREADS_MAX];

	rounds = argc == 3 ? atoi(argv[2]) : 0;
	if (rounds <= 0 || threads <= 0 || threads > THREADS_MAX)
		goto usage;
	costs = calloc((size_t)threads * (size_t)rounds, sizeof(*costs));
	if (!costs || pthread_barrier_init(&barrier, NULL, (unsigned)threads))
		goto usage;
	for (long i = 0; i < threads; i++)
		if (pthread_create(&all[i], NULL, thread_main, (void *)i))
			goto usage;
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	qsort(costs, (size_t)threads * (size_t)rounds, sizeof(*costs), compare);
	printf("%.3f\n", costs[(size_t)threads * (size_t)rounds / 2]);
	free(costs);
	return 0;
usage:
	fprintf(stderr, "usage: threads THREADS ROUNDS\n");
	return 2;
}
