// SPDX-License-Identifier: Apache-2.0
#include "target/process/file_lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

static enum file_lock_kind kind_named(const char *name)
{
	return !strcmp(name, "FLOCK")    ? FILE_LOCK_FLOCK
	       : !strcmp(name, "POSIX")  ? FILE_LOCK_POSIX
	       : !strcmp(name, "OFDLCK") ? FILE_LOCK_OFD
					 : FILE_LOCK_NONE;
}

static enum file_lock_kind kind_of_call(int syscall, uint64_t command)
{
	return syscall == SYS_flock                              ? FILE_LOCK_FLOCK
	       : syscall == SYS_fcntl && command == F_SETLKW     ? FILE_LOCK_POSIX
	       : syscall == SYS_fcntl && command == F_OFD_SETLKW ? FILE_LOCK_OFD
								 : FILE_LOCK_NONE;
}

bool file_lock_awaited(struct awaited_lock *lock, pid_t tid, int syscall, const __u64 *args,
		       const struct image *image)
{
	struct flock range;

	*lock = (struct awaited_lock){.kind = kind_of_call(syscall, args[1])};
	if (lock->kind == FILE_LOCK_FLOCK) {
		lock->shared = args[1] & LOCK_SH;
		return true;
	}
	if (!lock->kind || !image_read(image, args[2], &range, sizeof(range)))
		return false;
	lock->shared = range.l_type == F_RDLCK;
	return range.l_whence == SEEK_SET && !range.l_start && !range.l_len &&
	       (lock->kind == FILE_LOCK_POSIX ||
		file_lock_in_way(lock, tid, (int)args[0]) != FILE_LOCK_OFD);
}

enum file_lock_kind file_lock_in_way(const struct awaited_lock *lock, pid_t tid, int fd)
{
	char path[64], line[256], name[16], mode[16];
	enum file_lock_kind found = FILE_LOCK_NONE;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, fd);
	file = fopen(path, "re");
	if (!file)
		return found;
	while (fgets(line, sizeof(line), file)) {
		enum file_lock_kind kind = sscanf(line, "lock: %*u: %15s %*s %15s", name, mode) == 2
						   ? kind_named(name)
						   : FILE_LOCK_NONE;

		if (kind > found && (kind == FILE_LOCK_FLOCK) == (lock->kind == FILE_LOCK_FLOCK) &&
		    (!lock->shared || !strcmp(mode, "WRITE")))
			found = kind;
	}
	fclose(file);
	return found;
}
