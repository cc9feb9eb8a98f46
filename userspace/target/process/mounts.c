// SPDX-License-Identifier: Apache-2.0
#include "target/process/mounts.h"
#include "util/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 4096 /* a user may make 100,000 mounts */
#define DEVICES_MAX 256
#define VALID_NS 100000000ull

static const char *const local[] = {"bcachefs", "btrfs", "erofs",   "exfat",    "ext2",   "ext3",
				    "ext4",     "f2fs",  "iso9660", "jfs",      "nilfs2", "ntfs3",
				    "overlay",  "ramfs", "rootfs",  "squashfs", "tmpfs",  "udf",
				    "vfat",     "xfs",   "zfs"};

/* File systems that the kernel itself serves. autofs is not among them: it waits for a daemon. */
static const char *const kernels[] = {
	"binfmt_misc", "bpf",      "cgroup",     "cgroup2",   "configfs", "debugfs", "devpts",
	"devtmpfs",    "efivarfs", "fusectl",    "hugetlbfs", "mqueue",   "nsfs",    "proc",
	"pstore",      "resctrl",  "securityfs", "selinuxfs", "sysfs",    "tracefs"};

static bool is_listed(const char *const list[], size_t count, const char *type)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(type, list[i]))
			return true;
	return false;
}

bool mounts_type_is_local(const char *type)
{
	return is_listed(local, sizeof(local) / sizeof(local[0]), type);
}

static bool answers(const char *type)
{
	return strcmp(type, "overlay") != 0 &&
	       (mounts_type_is_local(type) ||
		is_listed(kernels, sizeof(kernels) / sizeof(kernels[0]), type));
}

struct devices {
	uint64_t list[DEVICES_MAX];
	unsigned count;
};

/* The mounts that were read last. We keep them because callers ask again for each file. */
static _Thread_local struct {
	pid_t pid;
	uint64_t ts;
	bool all;   /* answer without a server */
	bool known; /* all lines were read and all waiting devices are listed */
	struct devices answering, waiting, local; /* `local`: also overlays */
} last;

static bool devices_have(const struct devices *devices, uint64_t device)
{
	for (unsigned i = 0; i < devices->count; i++)
		if (devices->list[i] == device)
			return true;
	return false;
}

/* False: there is no room. */
static bool devices_add(struct devices *devices, uint64_t device)
{
	if (devices_have(devices, device))
		return true;
	if (devices->count == DEVICES_MAX)
		return false;
	devices->list[devices->count++] = device;
	return true;
}

/* proc(5): "36 35 98:0 /root /path rw,noatime shared:1 - ext3 /dev/root rw,errors=continue" */
static void line_note(char *line)
{
	char *end = strstr(line, " - "), *type;
	unsigned major, minor;
	uint64_t device;

	if (!end || sscanf(line, "%*u %*u %u:%u", &major, &minor) != 2) {
		last.all = last.known = false;
		return;
	}
	device = (uint64_t)major << 20 | minor;
	type = end + 3;
	type = strsep(&type, " \n");
	if (mounts_type_is_local(type))
		devices_add(&last.local, device);
	if (answers(type)) {
		devices_add(&last.answering, device);
		return;
	}
	last.all = false;
	if (strcmp(type, "overlay") != 0)
		last.known &= devices_add(&last.waiting, device);
}

static void mounts_read(pid_t pid)
{
	char path[64], *line = NULL;
	unsigned lines = 0;
	size_t size = 0;
	FILE *file;

	if (last.pid == pid && clock_monotonic_ns() - last.ts < VALID_NS)
		return;
	last.pid = pid;
	last.ts = clock_monotonic_ns();
	last.answering.count = last.waiting.count = last.local.count = 0;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	file = fopen(path, "re");
	last.all = last.known = file != NULL;
	while (file && lines < LINES_MAX && getline(&line, &size, file) > 0) {
		line_note(line);
		lines++;
	}
	if (!lines || lines == LINES_MAX)
		last.all = last.known = false;
	free(line);
	if (file)
		fclose(file);
}

bool mounts_are_local(pid_t pid, uint64_t device)
{
	mounts_read(pid);
	return last.all && (device == MOUNTS_ANY || devices_have(&last.answering, device));
}

bool mounts_device_waits(pid_t pid, uint64_t device)
{
	mounts_read(pid);
	return !last.known || devices_have(&last.waiting, device);
}

bool mounts_device_is_local(pid_t pid, uint64_t device)
{
	mounts_read(pid);
	return devices_have(&last.local, device);
}

bool mounts_device_answers(pid_t pid, uint64_t device)
{
	mounts_read(pid);
	return devices_have(&last.answering, device);
}
