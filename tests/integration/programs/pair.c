// SPDX-License-Identifier: Apache-2.0
/*
 * Two processes on one CPU that take turns over two pipes. Prints "pids A B", waits for a line, and
 * works for as many milliseconds as its argument says. Then each prints its load: when it began and
 * ended, and how long it was running and runnable by the kernel's schedstat.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void schedstat(uint64_t *running, uint64_t *runnable)
{
	FILE *file = fopen("/proc/self/schedstat", "r");

	if (!file || fscanf(file, "%" SCNu64 " %" SCNu64, running, runnable) != 2)
		abort();
	fclose(file);
}

static void take_turns(int from, int to, uint64_t until)
{
	char byte = 0;

	while (read(from, &byte, 1) == 1 && !byte) {
		/* The times of a switch in a capture and in schedstat differ by about 1 µs. There
		 * are few switches, so that this hardly counts. */
		for (volatile int i = 0; i < 200000; i++)
			;
		byte = now_ns() >= until;
		if (write(to, &byte, 1) != 1)
			abort();
	}
	if (byte && write(to, &byte, 1) != 1)
		abort();
}

static void work(int from, int to, uint64_t until)
{
	uint64_t running[2], runnable[2], begin;

	sched_yield(); /* a switch brings schedstat up to date */
	begin = now_ns();
	schedstat(&running[0], &runnable[0]);
	take_turns(from, to, until);
	sched_yield();
	schedstat(&running[1], &runnable[1]);
	printf("load pid=%d begin=%" PRIu64 " end=%" PRIu64 " running=%" PRIu64 " runnable=%" PRIu64
	       "\n",
	       getpid(), begin, now_ns(), running[1] - running[0], runnable[1] - runnable[0]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 500, until;
	int there[2], back[2], go[2];
	cpu_set_t one;
	char byte = 0, line[64];
	pid_t child;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || pipe(there) || pipe(back) || pipe(go))
		return 1;
	child = fork();
	if (!child) {
		if (read(go[0], &until, sizeof(until)) != sizeof(until))
			return 1;
		work(there[0], back[1], until);
		pause();
	}
	printf("pids %d %d\n", getpid(), child);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	until = now_ns() + ms * 1000000;
	if (write(go[1], &until, sizeof(until)) != sizeof(until) || write(there[1], &byte, 1) != 1)
		return 1;
	work(back[0], there[1], until);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	kill(child, 9);
	waitpid(child, NULL, 0);
	return 0;
}
