// SPDX-License-Identifier: Apache-2.0
/*
 * Spans at the end of known chains of calls, built without frame pointers: the program writes down
 * what its own run-time finds on the stack at each begin, function for function.
 *
 *	stacks LOG ROUNDS
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "waffle.h"

#define DEPTH_MAX 64

static FILE *out;
static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;

/* One line: the span's name and the callers' addresses, innermost first. */
static void note(const char *name)
{
	void *addresses[DEPTH_MAX];
	int count = backtrace(addresses, DEPTH_MAX);

	pthread_mutex_lock(&out_lock);
	fprintf(out, "%s", name);
	/* 0: here; 1: the function with the span, at another instruction than its probe */
	for (int i = 2; i < count; i++)
		fprintf(out, " %lx", (unsigned long)addresses[i]);
	fputc('\n', out);
	pthread_mutex_unlock(&out_lock);
}

static __attribute__((noinline)) int leaf(volatile int *sum)
{
	WAFFLE_SPAN("leaf");

	note("leaf");
	*sum += 1;
	return *sum;
}

__attribute__((noinline)) int recurse(int depth, volatile int *sum);

__attribute__((noinline)) int recurse(int depth, volatile int *sum)
{
	volatile char room[56];

	room[0] = (char)depth;
	*sum += room[0];
	return depth ? recurse(depth - 1, sum) + room[0] : leaf(sum) + room[0];
}

static int order(const void *a, const void *b)
{
	WAFFLE_SPAN("order");

	note("order");
	return *(const int *)a - *(const int *)b;
}

static void handler(int signo)
{
	WAFFLE_SPAN("handler");

	(void)signo;
	note("handler");
}

static void *thread(void *arg)
{
	recurse(3, arg);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler};
	long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	volatile int sum = 0;

	out = argc > 1 ? fopen(argv[1], "we") : NULL;
	if (!out)
		return 2;
	sigaction(SIGUSR1, &action, NULL);
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF) /* until the tracer is there */
		return 1;
	for (long i = 0; i < rounds; i++) {
		int numbers[] = {2, 1};
		pthread_t id;

		recurse((int)(i % 40), &sum);
		qsort(numbers, 2, sizeof(numbers[0]), order);
		raise(SIGUSR1);
		pthread_create(&id, NULL, thread, (void *)&sum);
		pthread_join(id, NULL);
	}
	fclose(out);
	return 0;
}
