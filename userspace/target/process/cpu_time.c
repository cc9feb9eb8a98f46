// SPDX-License-Identifier: Apache-2.0
#include "target/process/cpu_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool process_cpu_time(struct cpu_time *time, pid_t pid)
{
	uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t user, system, start;
	char path[64], line[1024] = "";
	const char *at;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "re");
	if (!stat)
		return false;
	(void)!fgets(line, sizeof(line), stat);
	fclose(stat);
	/* Fields 14, 15 and 22. The name before them may have any characters. */
	at = strrchr(line, ')');
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			  " %*d %*d %*d %*d %*d %*d %" SCNu64,
			  &user, &system, &start) != 3)
		return false;
	*time = (struct cpu_time){.ran_ns = (user + system) * tick_ns, .start_ns = start * tick_ns};
	return true;
}
