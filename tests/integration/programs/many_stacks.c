// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that sleep again and again, each time at the end of another call path. A growing number
 * selects the path: each bit chooses which of two functions is called next. Needs the flag
 * -fno-omit-frame-pointer.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, noclone))
#define BITS 20
#define THREADS 4

static volatile int sink;
static uint64_t end_ns;

CALLED void zero(unsigned number, int bits);
CALLED void one(unsigned number, int bits);
CALLED void last(void);

static CALLED void rest(void)
{
	struct timespec time = {.tv_nsec = 60000};

	syscall(SYS_nanosleep, &time, NULL);
	sink++;
}

static void next(unsigned number, int bits)
{
	if (!bits)
		rest();
	else if (number >> (bits - 1) & 1)
		one(number, bits - 1);
	else
		zero(number, bits - 1);
	sink++;
}

CALLED void zero(unsigned number, int bits)
{
	next(number, bits);
	sink++;
}

CALLED void one(unsigned number, int bits)
{
	next(number, bits);
	sink--;
}

CALLED void last(void)
{
	sink++;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *sleeper(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;

	for (; now_ns() < end_ns; number += THREADS)
		next(number % (1u << BITS), BITS);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	end_ns = now_ns() + (uint64_t)(argc > 1 ? atoi(argv[1]) : 1) * 1000000000;
	printf("code zero=%" PRIuPTR " one=%" PRIuPTR " last=%" PRIuPTR " bits=%d\n",
	       (uintptr_t)zero, (uintptr_t)one, (uintptr_t)last, BITS);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, sleeper, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
