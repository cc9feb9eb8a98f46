/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the test programs: lines "kind key=value …", which say what a program did and when. */
#ifndef TESTS_INTEGRATION_LOG_H
#define TESTS_INTEGRATION_LOG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static inline void sleep_ms(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};

	/* A sleep of 0 would give the CPU away as well. */
	while (ms && nanosleep(&left, &left))
		;
}

static inline void spin_ms(long ms)
{
	long long end = now_ns() + ms * 1000000ll;

	while (now_ns() < end)
		;
}

static inline int thread_id(void)
{
	return (int)syscall(SYS_gettid);
}

#endif
