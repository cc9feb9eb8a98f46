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

/* Those of flock(2) and of fcntl(2) do not know of each other. */
enum file_lock_kind {
	FILE_LOCK_NONE,
	FILE_LOCK_FLOCK,
	FILE_LOCK_POSIX, /* of F_SETLKW: it belongs to a process */
	FILE_LOCK_OFD,   /* of F_OFD_SETLKW: it belongs to an open file, like that of flock(2) */
};

/* A lock that a thread waits for. */
struct awaited_lock {
	enum file_lock_kind kind; /* FILE_LOCK_NONE: it waits for none */
	bool shared;              /* it is only for readers */
};

/* Gets the lock that a system call of a thread with these first arguments waits for. False: none,
 * or one of a part of a file, or its open file has such a lock already: that is not in its way, but
 * all descriptors of the open file show it. */
bool file_lock_awaited(struct awaited_lock *lock, pid_t tid, int syscall, const __u64 *args,
		       const struct image *image);

/* The kind of the lock of a descriptor that is in the way of that, if there are several the last
 * one of the list; FILE_LOCK_NONE: there is none. */
enum file_lock_kind file_lock_in_way(const struct awaited_lock *lock, pid_t tid, int fd);

#endif
