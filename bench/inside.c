// SPDX-License-Identifier: Apache-2.0
/*
 * What a site costs in a program that has rings, beside reading the clock: bursts that fit in a
 * ring. Between them the ring is flushed, or a tracer gets PAUSE_US to read it. Prints the median
 * costs of an operation in ns, which run.py divides.
 *
 *	inside CPU ROUNDS [PAUSE_US]
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <waffle_macros.h>
#include <waffle_trace.h>

#include "window.h"

#define BURST 10000

static inline uint64_t counter(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	uint64_t count;

	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(count));
	return count;
#endif
}

static __attribute__((noinline)) void burst_clock(void)
{
	for (long i = 0; i < BURST; i++) {
		uint64_t now = counter();

		__asm__ __volatile__("" ::"r"(now) : "memory");
	}
}

static __attribute__((noinline)) void burst_event(void)
{
	for (long i = 0; i < BURST; i++) {
		EVENT("event", KV_I64("turn", i), KV_I64("turns", BURST));
		__asm__ __volatile__("" ::: "memory");
	}
}

static __attribute__((noinline)) void burst_span(void)
{
	for (long i = 0; i < BURST; i++) {
		SPAN("span", KV_I64("turn", i), KV_I64("turns", BURST));
		__asm__ __volatile__("" ::: "memory");
	}
}

/* A push and a pop. The barrier keeps the compiler from joining two of them. */
static __attribute__((noinline)) void burst_frame(void)
{
	for (long i = 0; i < BURST; i++) {
		FRAME();
		__asm__ __volatile__("" ::: "memory");
	}
}

/* Each is run in its mode. */
static const struct {
	const char *name;
	void (*run)(void);
	waffle_mode_t mode;
} bursts[] = {
	{"clock", burst_clock, WAFFLE_MODE_FAST},
	{"event", burst_event, WAFFLE_MODE_FAST},
	{"span", burst_span, WAFFLE_MODE_FAST},
	{"event_full", burst_event, WAFFLE_MODE_FULL},
	{"span_full", burst_span, WAFFLE_MODE_FULL},
	{"frame_full", burst_frame, WAFFLE_MODE_FULL},
	{"frame_fast", burst_frame, WAFFLE_MODE_FAST},
	{"event_off", burst_event, WAFFLE_MODE_OFF},
};
#define BURSTS (sizeof(bursts) / sizeof(bursts[0]))

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int rounds = argc >= 3 ? atoi(argv[2]) : 0;
	useconds_t pause = argc == 4 ? (useconds_t)atoi(argv[3]) : 0;
	double *costs = calloc((size_t)(rounds > 0 ? rounds : 1) * BURSTS, sizeof(*costs));

	if (rounds <= 0 || !costs) {
		fprintf(stderr, "usage: inside CPU ROUNDS [PAUSE_US]\n");
		return 2;
	}
	window_pin(atoi(argv[1]));
	/* The first rounds touch the memory of the ring. */
	for (int i = -50; i < rounds; i++) {
		for (size_t kind = 0; kind < BURSTS; kind++) {
			uint64_t before;

			waffle_trace_flush();
			if (pause)
				usleep(pause);
			/* A scope, since the process in mode off would disarm the sites. */
			WAFFLE_MODE_SCOPE(bursts[kind].mode);
			before = window_now();
			bursts[kind].run();
			if (i >= 0)
				costs[kind * (size_t)rounds + (size_t)i] =
					(double)(window_now() - before) / BURST;
		}
	}
	for (size_t kind = 0; kind < BURSTS; kind++) {
		double *of = costs + kind * (size_t)rounds;

		qsort(of, (size_t)rounds, sizeof(*of), compare);
		printf("%s %.3f\n", bursts[kind].name, of[rounds / 2]);
	}
	free(costs);
	return 0;
}
