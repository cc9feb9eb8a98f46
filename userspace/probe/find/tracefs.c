// SPDX-License-Identifier: Apache-2.0
#include "probe/find/tracefs.h"

#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* Opens the events directory below a mount of /proc/mounts. -1: another file system, or no
 * permission. */
static int open_below(const struct mntent *mount)
{
	char path[PATH_MAX];
	const char *events;

	if (!strcmp(mount->mnt_type, "tracefs"))
		events = "events";
	else if (!strcmp(mount->mnt_type, "debugfs")) /* it mounts tracefs when it is used */
		events = "tracing/events";
	else
		return -1;
	if (snprintf(path, sizeof(path), "%s/%s", mount->mnt_dir, events) >= (int)sizeof(path))
		return -1;
	return open(path, FOLDER_FLAGS);
}

static int open_mounted(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *mount;
	int fd = -1;

	while (mounts && fd < 0 && (mount = getmntent(mounts)))
		fd = open_below(mount);
	if (mounts)
		endmntent(mounts);
	return fd;
}

/* The mount lives as long as a descriptor in it. */
static int open_detached(void)
{
	int context = fsopen("tracefs", FSOPEN_CLOEXEC), mount = -1, fd = -1, saved;

	if (context >= 0 && !fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (mount >= 0)
		fd = openat(mount, "events", FOLDER_FLAGS);
	saved = errno;
	if (mount >= 0)
		close(mount);
	if (context >= 0)
		close(context);
	errno = saved;
	return fd;
}

int tracefs_open_events(struct error *err)
{
	int fd = open_mounted();

	if (fd < 0)
		fd = open_detached();
	if (fd >= 0)
		return fd;
	return error_set(err, errno,
			 "tracepoints: tracefs is not mounted where it can be read, and mounting "
			 "it aside failed: %s; run as root, or mount it on /sys/kernel/tracing",
			 strerror(errno));
}
