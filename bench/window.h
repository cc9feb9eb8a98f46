/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload's own clock: prints "<CLOCK_MONOTONIC ns> <ns an operation>" for every 100 ms, so that
 * run.py can compare the windows in which something traced it with those in which nothing did, in
 * one run.
 */
#ifndef WAFFLE_BENCH_WINDOW_H
#define WAFFLE_BENCH_WINDOW_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define WINDOW_NS 100000000ull

struct window {
	uint64_t start, since, operations, until;
	bool of_cpu; /* operations cost this thread's CPU time: others on the CPU don't count */
	uint64_t cpu_since;
};

static inline uint64_t window_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static inline uint64_t window_now(void)
{
	return window_clock(CLOCK_MONOTONIC);
}

static inline struct window window_begin(double seconds)
{
	uint64_t now = window_now();

	return (struct window){
		.start = now, .since = now, .until = now + (uint64_t)(seconds * 1e9)};
}

static inline struct window window_begin_cpu(double seconds)
{
	struct window window = window_begin(seconds);

	window.of_cpu = true;
	window.cpu_since = window_clock(CLOCK_THREAD_CPUTIME_ID);
	return window;
}

/* The cost of the operations of this window. */
static inline uint64_t window_spent(struct window *window, uint64_t now)
{
	uint64_t cpu, spent = now - window->since;

	if (window->of_cpu) {
		cpu = window_clock(CLOCK_THREAD_CPUTIME_ID);
		spent = cpu - window->cpu_since;
		window->cpu_since = cpu;
	}
	return spent;
}

/* Counts operations; call it every few microseconds. False: the time is up. */
static inline bool window_count(struct window *window, uint64_t operations)
{
	uint64_t now = window_now();

	window->operations += operations;
	if (now - window->since >= WINDOW_NS) {
		printf("%llu %.3f\n", (unsigned long long)now,
		       (double)window_spent(window, now) / (double)window->operations);
		fflush(stdout);
		window->since = now;
		window->operations = 0;
	}
	return now < window->until;
}

static inline void window_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
}

#endif
