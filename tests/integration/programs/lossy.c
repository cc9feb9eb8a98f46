// SPDX-License-Identifier: Apache-2.0
/*
 * Two threads that hand a byte to each other as fast as they can, in spans "flooded", and what the
 * kernel says of each span: "flooded running= waiting= length=", in nanoseconds.
 */
#define _GNU_SOURCE
#include "log.h"

#include <pthread.h>
#include <sched.h>

#include "waffle_macros.h"

#define ROUNDS 3
#define ROUND_NS 300000000ll

static int there[2], back[2];

static void *echo(void *arg)
{
	char byte;

	while (read(there[0], &byte, 1) == 1)
		if (write(back[1], &byte, 1) != 1)
			exit(1);
	return arg;
}

/* Reads how long this thread has been on a CPU, and how long it has waited for one. */
static void read_schedstat(long long *running, long long *waiting)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "r");

	if (!file || fscanf(file, "%lld %lld", running, waiting) != 2)
		exit(1);
	fclose(file);
}

static void flood(void)
{
	long long begin = now_ns(), running[2], waiting[2], end;
	char byte = 'x';

	{
		SPAN("flooded");
		read_schedstat(&running[0], &waiting[0]);
		while (now_ns() < begin + ROUND_NS) {
			if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
				exit(1);
		}
		read_schedstat(&running[1], &waiting[1]);
	}
	end = now_ns();
	printf("flooded running=%lld waiting=%lld length=%lld\n", running[1] - running[0],
	       waiting[1] - waiting[0], end - begin);
}

/* On one CPU only: for another CPU the kernel counts waiting from the interrupt that wakes it. */
static void use_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

int main(void)
{
	pthread_t thread;

	use_one_cpu();
	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, echo, NULL))
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		flood();
	return 0;
}
