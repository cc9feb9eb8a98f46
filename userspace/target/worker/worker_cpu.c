// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "target/worker/worker_internal.h"

/* CPU time of a living process; 0: unknown. */
static uint64_t process_cpu_ns(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000ull + (uint64_t)used.tv_nsec;
}

/* CPU time of the children of a process that have ended (proc_pid_stat(5): cutime, cstime). */
static uint64_t ended_cpu_ns(pid_t pid)
{
	char path[64], line[512] = "", *end;
	unsigned long user, kernel;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "re");
	if (!stat)
		return 0;
	(void)!fgets(line, sizeof(line), stat);
	fclose(stat);
	end = strrchr(line, ')');
	if (!end || sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %lu %lu",
			   &user, &kernel) != 2)
		return 0;
	return (uint64_t)(user + kernel) * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

uint64_t worker_helper_cpu_ns(pid_t helper)
{
	uint64_t sum = process_cpu_ns(helper) + ended_cpu_ns(helper);
	FILE *children;
	char path[64];
	pid_t child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", helper, helper);
	children = fopen(path, "re");
	while (children && fscanf(children, "%d", &child) == 1)
		sum += process_cpu_ns(child);
	if (children)
		fclose(children);
	return sum;
}
