// SPDX-License-Identifier: Apache-2.0
#include "target/process/file_lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

bool file_lock_awaited(struct awaited_lock *lock, int syscall, const __u64 *args,
		       const struct image *image)
{
	struct flock range;

	*lock = (struct awaited_lock){.posix = syscall == SYS_fcntl};
	if (syscall == SYS_flock) {
		lock->shared = args[1] & LOCK_SH;
		return lock->wanted = true;
	}
	if (!lock->posix || (args[1] != F_SETLKW && args[1] != F_OFD_SETLKW) ||
	    !image_read(image, args[2], &range, sizeof(range)))
		return false;
	lock->shared = range.l_type == F_RDLCK;
	lock->wanted = range.l_whence == SEEK_SET && !range.l_start && !range.l_len;
	return lock->wanted;
}

bool file_lock_is_in_way(const struct awaited_lock *lock, pid_t tid, const char *fd)
{
	char path[64], line[256], kind[16], mode[16];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", tid, fd);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "lock: %*u: %15s %*s %15s", kind, mode) == 2 &&
			(lock->posix ? !strcmp(kind, "POSIX") || !strcmp(kind, "OFDLCK")
				     : !strcmp(kind, "FLOCK")) &&
			(!lock->shared || !strcmp(mode, "WRITE"));
	fclose(file);
	return found;
}
