/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of a thread, of both versions: where they are, what they may use, and who uses it. */
#ifndef WAFFLE_TARGET_PROCESS_CGROUP_H
#define WAFFLE_TARGET_PROCESS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Path of the cgroup with inode `ino` among the cgroups of a thread, and those above them: of
 * version 2, and of the hierarchy of version 1 that has the controller, such as "cpu". The
 * hierarchies of version 1 number their folders each on their own. */
bool cgroup_path(char *path, size_t size, pid_t tid, uint64_t ino, const char *controller);

/* How much of a disk a cgroup may use in a second, or that it can be frozen. */
struct cgroup_io_limit {
	uint64_t cgroup; /* inode of its folder */
	uint64_t limit;  /* bytes or requests a second */
	uint32_t dev;    /* in the kernel's encoding: struct file_key */
	uint32_t kind;   /* WAFFLE_IO_LIMIT_* */
};
/* Fills in the limits of a process's cgroup and those above it, and its cgroup of each version if
 * that can be frozen. Returns their number. */
size_t cgroup_io_limits(pid_t pid, struct cgroup_io_limit *limits, size_t max);

/* Whether the cgroup of a process, or one above it, has as many processes and threads as it may
 * (pids.max), so that fork() and clone() fail with EAGAIN. Sets the cgroup and the limit. */
bool cgroup_pids_are_used_up(struct cgroup_io_limit *limit, pid_t pid);

/* Whether the cgroup of a process, or one above it, gets less CPU time than others beside it by
 * default: cpu.weight or cpu.shares. Sets the cgroup with the lowest part of the default. */
bool cgroup_weight_is_low(struct cgroup_io_limit *limit, pid_t pid);

/* Calls a function with the pids of the first thousand processes of the cgroup at `path` and those
 * below it. */
void cgroup_processes_each(const char *path, void (*each)(pid_t pid, void *arg), void *arg);

/* The process with the most resident memory. */
struct cgroup_user {
	uint64_t bytes;
	uint32_t pid; /* 0: none */
	char comm[16];
};
/* Finds it among those processes. False: there is none. */
bool cgroup_memory_user(struct cgroup_user *user, const char *path);

#endif
