/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_ones: 120 spans "request" that compute for 200 us and sleep for 1 ms. Two of them must also
 * take a mutex, of which a thread "loader" computes 60 ms in a span "load" before it lets go: lines
 * "slow ns= object=", how long it ran for them, by its own CPU time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "log.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "waffle_macros.h"

#define REQUESTS 120
#define SLOW(i) ((i) == 40 || (i) == 90)

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t wanted, held, given;

static long long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void compute(long long us)
{
	long long end = cpu_ns() + us * 1000;

	while (cpu_ns() < end)
		;
}

static void *loader(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "loader");
	for (int i = 0; i < REQUESTS; i++) {
		long long begin;

		if (!SLOW(i))
			continue;
		pthread_barrier_wait(&wanted);
		pthread_mutex_lock(&cache_lock);
		pthread_barrier_wait(&held);
		begin = cpu_ns();
		{
			SPAN("load", KV_I64("i", i));
			compute(60000);
		}
		begin = cpu_ns() - begin;
		pthread_mutex_unlock(&cache_lock);
		printf("slow ns=%lld object=%p\n", begin, (void *)&cache_lock);
		fflush(stdout);
		pthread_barrier_wait(&given);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&wanted, NULL, 2);
	pthread_barrier_init(&held, NULL, 2);
	pthread_barrier_init(&given, NULL, 2);
	pthread_create(&thread, NULL, loader, NULL);
	sleep_ms(20);
	for (int i = 0; i < REQUESTS; i++) {
		if (SLOW(i)) {
			pthread_barrier_wait(&wanted);
			pthread_barrier_wait(&held);
		}
		{
			SPAN("request", KV_I64("i", i));
			compute(200);
			sleep_ms(1);
			if (SLOW(i)) {
				pthread_mutex_lock(&cache_lock);
				pthread_mutex_unlock(&cache_lock);
			}
		}
		if (SLOW(i))
			pthread_barrier_wait(&given);
	}
	pthread_join(thread, NULL);
	return 0;
}
