// SPDX-License-Identifier: Apache-2.0
/*
 * Which file systems the gate watches: those of a local disk or of memory. The kernel opens each
 * executed file for the gate. The open of a file on a network or FUSE file system waits for its
 * server, which may itself be about to exec, so these are left out: their programs are not held.
 */
#include <fcntl.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/gate_internal.h"

static const char *const local[] = {"bcachefs", "btrfs", "erofs",   "exfat",    "ext2",   "ext3",
				    "ext4",     "f2fs",  "iso9660", "jfs",      "nilfs2", "ntfs3",
				    "overlay",  "ramfs", "rootfs",  "squashfs", "tmpfs",  "udf",
				    "vfat",     "xfs",   "zfs"};

static bool is_local(const char *type)
{
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (!strcmp(type, local[i]))
			return true;
	return false;
}

/* Decodes the octal escapes of proc(5): "\040" is a space. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		if (at[0] == '\\' && at[1] && at[2] && at[3]) {
			*to = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = '\0';
}

/* Sends a place in a mount to the gate. If another mount covers it, the path leads elsewhere: then
 * nothing is sent. */
static bool mount_send(const struct gate *gate, pid_t pid, const char *path, unsigned long mount)
{
	const struct gate_answer nothing = {0};
	struct statx status;
	char whole[4200];
	bool sent = false;
	int fd;

	snprintf(whole, sizeof(whole), "/proc/%d/root%s", pid, path);
	fd = open(whole, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	if (!syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID,
		     &status) &&
	    (status.stx_mask & STATX_MNT_ID) && status.stx_mnt_id == mount)
		sent = gate_send(gate->socket, &nothing, sizeof(nothing), fd);
	close(fd);
	return sent;
}

/* proc(5): "36 35 98:0 /root /path rw,noatime shared:1 - ext3 /dev/root rw,errors=continue". */
static bool line_send(struct gate *gate, pid_t pid, char *line)
{
	unsigned major, minor;
	char *fields[6], *rest = line, *type;
	uint64_t device;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		fields[i] = strsep(&rest, " ");
	type = rest ? strstr(rest, "- ") : NULL;
	if (!type || sscanf(fields[2], "%u:%u", &major, &minor) != 2)
		return false;
	device = (uint64_t)major << 32 | minor;
	type += 2;
	type = strsep(&type, " ");
	if (map_get(&gate->devices, device) != MAP_NONE || !is_local(type) ||
	    strstr(fields[5], "noexec"))
		return false;
	unescape(fields[4]);
	return mount_send(gate, pid, fields[4], strtoul(fields[0], NULL, 10)) &&
	       map_set(&gate->devices, device, 1);
}

unsigned gate_mark(struct gate *gate, pid_t pid)
{
	char path[64], *line = NULL;
	unsigned count = 0;
	size_t size = 0;
	FILE *mounts;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	mounts = gate->pid ? fopen(path, "re") : NULL;
	while (mounts && getline(&line, &size, mounts) > 0)
		count += line_send(gate, pid, line);
	free(line);
	if (mounts)
		fclose(mounts);
	return count;
}
