// SPDX-License-Identifier: Apache-2.0
#include "util/memory_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t memory_limit_default(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* proc_pid_status(5): VmData, which RLIMIT_DATA limits. UINT64_MAX: unknown. */
static uint64_t data_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	uint64_t kib, bytes = UINT64_MAX;
	char line[256];

	while (status && bytes == UINT64_MAX && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmData: %" SCNu64 " kB", &kib) == 1)
			bytes = kib * 1024;
	if (status)
		fclose(status);
	return bytes;
}

/* Limits private memory only. The kernel can reclaim mapped files, so they need no limit. */
void memory_limit_set(uint64_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit) || data_bytes() > bytes)
		return;
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < bytes)
		return;
	limit.rlim_cur = bytes;
	setrlimit(RLIMIT_DATA, &limit);
}

uint64_t memory_limit_get(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_DATA, &limit) || limit.rlim_cur == RLIM_INFINITY ? 0
										 : limit.rlim_cur;
}
