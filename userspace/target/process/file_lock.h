/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of whole files, flock(2) and fcntl(2). A lock of flock(2) belongs to an open file, which
 * the process that took it may have left to others, and may have ended since. So the descriptors
 * show who holds it (/proc/PID/fdinfo, proc(5)), and not the number in /proc/locks.
 */
#ifndef WAFFLE_TARGET_PROCESS_FILE_LOCK_H
#define WAFFLE_TARGET_PROCESS_FILE_LOCK_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "target/process/image.h"

/* A lock that a thread waits for. */
struct awaited_lock {
	bool wanted; /* false: it waits for none */
	bool posix;  /* of fcntl(2), otherwise of flock(2): these do not know of each other */
	bool shared; /* it is only for readers */
};

/* Gets the lock that a system call with these first arguments waits for. False: none, or one of a
 * part of a file. */
bool file_lock_awaited(struct awaited_lock *lock, int syscall, const __u64 *args,
		       const struct image *image);

/* Whether a descriptor of a thread has a lock that is in the way of that. `fd` is its name in
 * /proc/TID/fd. */
bool file_lock_is_in_way(const struct awaited_lock *lock, pid_t tid, const char *fd);

#endif
