/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of processes that belong together: a process with its descendants, or the processes of a
 * cgroup, of a container or of a unit of systemd.
 *
 * Each function reads /proc once, so a process that begins meanwhile may be missing. A caller that
 * needs those processes, too, first starts to follow forks and then reads the set again. A process
 * whose parent has exited is no longer a descendant.
 *
 * This process and its own descendants are never part of a set: a tracer that traces itself would
 * record its own work for ever.
 */
#ifndef WAFFLE_TARGET_PROCESS_PROCESS_SET_H
#define WAFFLE_TARGET_PROCESS_PROCESS_SET_H

#include "target/process/process.h"

/* Adds all living descendants of the listed processes, each once. Returns 0 or a negative errno
 * with a message. */
int process_set_add_descendants(pid_list *pids, struct error *err);
/* The number of processes that process_set_add_descendants() would add, or a negative errno. */
long process_set_descendants(const pid_list *pids);

enum cgroup_name {
	CGROUP_PATH,      /* "/system.slice/nginx.service", also below /sys/fs/cgroup */
	CGROUP_UNIT,      /* "nginx.service", "nginx", "system.slice": a unit of the system */
	CGROUP_CONTAINER, /* an id or its first digits, or a name */
	CGROUP_NAMES
};

/* Adds all processes of a cgroup and of the cgroups below it. Returns 0 or a negative errno with a
 * message: -ESRCH if there is no such process, -EINVAL if several containers match the name. */
int process_set_add_cgroup(pid_list *pids, enum cgroup_name kind, const char *name,
			   struct error *err);

/*
 * Finds the cgroup of this name in a path, and returns the length of the path up to its end. 0: the
 * path has none. `controllers` is the second field of a line of /proc/PID/cgroup; it is empty for
 * version 2. Example, with CGROUP_CONTAINER and the name "4f1c":
 *
 *	/system.slice/docker-4f1c….scope/init
 *	|------------ result -----------|
 */
size_t cgroup_find(enum cgroup_name kind, const char *name, const char *controllers,
		   const char *path);

#endif
