// SPDX-License-Identifier: Apache-2.0
#include "target/process/cpu_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "target/process/process.h"

bool process_cpu_time(struct cpu_time *time, pid_t pid)
{
	uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t user, system, start;
	char line[PROCESS_STAT_BYTES];
	const char *at = process_stat(pid, line);

	/* Fields 14, 15 and 22. */
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			  " %*d %*d %*d %*d %*d %*d %" SCNu64,
			  &user, &system, &start) != 3)
		return false;
	*time = (struct cpu_time){.ran_ns = (user + system) * tick_ns, .start_ns = start * tick_ns};
	return true;
}
