/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of processes that belong together: a process with its descendants, the processes of a
 * cgroup, of a container or of a unit of systemd.
 *
 * They are read once from /proc, so a process that begins meanwhile may be missing. Who wants
 * those, too, first makes sure that it learns of forks, then reads the set again. A process whose
 * parent has exited is nobody's descendant any more.
 *
 * This process and its own descendants are never part of a set: a tracer that traces itself would
 * record its own work for ever.
 */
#ifndef WAFFLE_TARGET_PROCESS_PROCESS_SET_H
#define WAFFLE_TARGET_PROCESS_PROCESS_SET_H

#include "target/process/process.h"

/* Adds all living descendants of the listed processes, each once. Returns 0 or a negative errno. */
int process_set_add_descendants(pid_list *pids, struct error *err);
/* The number of those descendants. Negative errno: they can't be read. */
long process_set_descendants(const pid_list *pids);

enum cgroup_name {
	CGROUP_PATH,      /* "/system.slice/nginx.service", also below /sys/fs/cgroup */
	CGROUP_UNIT,      /* "nginx.service", "nginx", "system.slice": a unit of the system */
	CGROUP_CONTAINER, /* an id or its first digits, or a name */
	CGROUP_NAMES
};

/* Adds all processes of a cgroup and of the cgroups in it. -ESRCH with a message: there is none;
 * -EINVAL: the name fits several. */
int process_set_add_cgroup(pid_list *pids, enum cgroup_name kind, const char *name,
			   struct error *err);

/*
 * Which cgroup of a path has this name: the length of the part of the path that ends with it, or 0.
 * `controllers` is the second field of a line of /proc/PID/cgroup, which is empty for version 2.
 *
 *	/system.slice/docker-4f1c….scope/init   CONTAINER "4f1c"   ->
 * /system.slice/docker-4f1c….scope
 */
size_t cgroup_find(enum cgroup_name kind, const char *name, const char *controllers,
		   const char *path);

#endif
