// SPDX-License-Identifier: Apache-2.0
#include "target/process/descriptor_limit.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>

#include "target/process/process.h"

/* A process with more may take too long to count. */
#define COUNTED_MAX 65536u

/* The number of descriptors for which its table has room ("FDSize:", proc_pid_status(5)): it is
 * never made smaller. 0: unknown. */
static uint64_t table_size(pid_t pid)
{
	long size = process_status_field(pid, "FDSize");

	return size > 0 ? (uint64_t)size : 0;
}

static uint64_t open_count(pid_t pid)
{
	const struct dirent *entry;
	uint64_t count = 0;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		count += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return count;
}

bool descriptors_are_used_up(uint64_t *limit, pid_t pid)
{
	struct rlimit files;

	if (prlimit(pid, RLIMIT_NOFILE, NULL, &files) || !files.rlim_cur ||
	    files.rlim_cur > COUNTED_MAX || table_size(pid) < files.rlim_cur ||
	    open_count(pid) < files.rlim_cur)
		return false;
	*limit = files.rlim_cur;
	return true;
}
