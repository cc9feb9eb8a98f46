// SPDX-License-Identifier: Apache-2.0
/*
 * More threads than CPUs that compute, sleep and wait for a lock in turns, so that every thread is
 * running, runnable and blocked for a while.
 *
 *	load THREADS SECONDS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "window.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t until;

static void spin(uint64_t ns)
{
	uint64_t end = window_now() + ns;

	while (window_now() < end)
		;
}

static void *work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	while (window_now() < until) {
		struct timespec pause = {.tv_nsec = 1000 * (rand_r(&seed) % 2000)};

		spin(1000 * (uint64_t)(rand_r(&seed) % 3000));
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&lock);
		spin(1000 * (uint64_t)(rand_r(&seed) % 200));
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[1]) : 0;
	pthread_t thread;

	if (count < 1) {
		fprintf(stderr, "usage: load THREADS SECONDS\n");
		return 2;
	}
	until = window_now() + (uint64_t)(atof(argv[2]) * 1e9);
	for (int i = 1; i < count; i++)
		if (pthread_create(&thread, NULL, work, (void *)(uintptr_t)i))
			return 1;
	work(NULL);
	pthread_exit(NULL); /* the others end by themselves */
}
