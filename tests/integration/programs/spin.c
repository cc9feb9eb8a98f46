// SPDX-License-Identifier: Apache-2.0
/*
 * Spins on one CPU in spans of a millisecond for argv[1] milliseconds, and says what the kernel
 * counts meanwhile: its CPU time, and what was stolen of that CPU.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "waffle.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t exec_ns(void)
{
	uint64_t ns = 0;
	FILE *file = fopen("/proc/self/schedstat", "re");

	if (!file || fscanf(file, "%" SCNu64, &ns) != 1)
		exit(1);
	fclose(file);
	return ns;
}

static uint64_t steal_ns(int cpu)
{
	uint64_t ticks = 0;
	char line[256], name[16];
	FILE *file = fopen("/proc/stat", "re");

	if (!file)
		exit(1);
	snprintf(name, sizeof(name), "cpu%d ", cpu);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), "%*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks);
	fclose(file);
	return ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void say(const char *when, int cpu)
{
	uint64_t steal = steal_ns(cpu), exec = exec_ns();

	printf("%s ts=%" PRIu64 " exec=%" PRIu64 " steal=%" PRIu64 "\n", when, now_ns(), exec,
	       steal);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t end = now_ns() + (argc > 1 ? strtoull(argv[1], NULL, 10) : 1000) * 1000000;
	int cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return 1;
	printf("thread tid=%d cpu=%d\n", (int)getpid(), cpu);
	say("begin", cpu);
	while (now_ns() < end) {
		uint64_t until = now_ns() + 1000000;
		WAFFLE_SPAN("spin");

		while (now_ns() < until)
			;
	}
	say("end", cpu);
	return 0;
}
