// SPDX-License-Identifier: Apache-2.0
/*
 * A program that records itself at a rate: events with two integers, evenly in steps of a
 * millisecond. Prints how many it recorded, and the CPU time in ns that the process spent elsewhere
 * than in this thread, which is the collector's.
 *
 *	rate CPU EVENTS_A_SECOND SECONDS
 */
#include <stdio.h>
#include <stdlib.h>

#include <waffle_macros.h>

#include "window.h"

#define STEP_NS 1000000ull

int main(int argc, char **argv)
{
	unsigned long long rate = argc == 4 ? strtoull(argv[2], NULL, 10) : 0, done = 0, cpu;
	double seconds = argc == 4 ? atof(argv[3]) : 0;
	uint64_t begin, now;

	if (!rate || seconds <= 0) {
		fprintf(stderr, "usage: rate CPU EVENTS_A_SECOND SECONDS\n");
		return 2;
	}
	window_pin(atoi(argv[1]));
	begin = now = window_now();
	cpu = window_clock(CLOCK_PROCESS_CPUTIME_ID) - window_clock(CLOCK_THREAD_CPUTIME_ID);
	while ((double)(now - begin) < seconds * 1e9) {
		uint64_t next = now + STEP_NS;
		unsigned long long goal =
			(unsigned long long)((double)(next - begin) * 1e-9 * (double)rate);

		for (; done < goal; done++)
			EVENT("event", KV_I64("turn", (long long)done), KV_I64("turns", 1));
		while ((now = window_now()) < next)
			nanosleep(&(struct timespec){.tv_nsec = (long)(next - now)}, NULL);
	}
	cpu = window_clock(CLOCK_PROCESS_CPUTIME_ID) - window_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("%llu %llu %.3f\n", done, cpu, (double)(now - begin) * 1e-9);
	return 0;
}
