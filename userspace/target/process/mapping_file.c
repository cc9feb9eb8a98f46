// SPDX-License-Identifier: Apache-2.0
#include "target/process/mapping_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target/process/mounts.h"
#include "target/process/opener.h"
#include "target/process/path_at.h"
#include "target/process/root.h"
#include "util/input.h"

/* Whether a file is the mapped one. Some file systems (btrfs, overlayfs) report another device
 * number in stat() than in mappings. For those we map the file and compare. */
static bool file_is(int fd, const struct mapping *mapping)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct error ignored = ERROR_INIT;
	struct mappings mine;
	struct stat status;
	bool same = false;
	void *page;

	if (input_stat(fd, &status) || !S_ISREG(status.st_mode) || !status.st_size)
		return false;
	/* The kernel encodes devices as major << 20 | minor (include/linux/kdev_t.h). */
	if (status.st_ino == mapping->ino &&
	    (major(status.st_dev) << 20 | minor(status.st_dev)) == mapping->dev)
		return true;
	page = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED)
		return false;
	if (!process_mappings_all(&mine, getpid(), &ignored)) {
		for (size_t i = 0; i < mine.list.len; i++) {
			const struct mapping *one = &mine.list.data[i];

			if (one->start <= (uintptr_t)page && (uintptr_t)page < one->end)
				same = one->ino == mapping->ino && one->dev == mapping->dev;
		}
		mappings_free(&mine);
	}
	munmap(page, size);
	return same;
}

/* Resolves the path below the process's root, so that absolute symbolic links stay inside it. */
static int open_in_root(const struct mapping *mapping, pid_t pid)
{
	struct root root;
	int fd;

	fd = root_open(&root, pid);
	if (fd)
		return fd == -EACCES ? fd : -ENOENT;
	fd = root_file(&root, root_inside(&root, mapping->path));
	root_close(&root);
	return fd;
}

static int same_or_none(int fd, const struct mapping *mapping)
{
	if (fd < 0 || file_is(fd, mapping))
		return fd;
	close(fd);
	return -ENOENT;
}

const char *mapping_open_needs(pid_t pid)
{
	char name[64];
	int fd;

	/* Reading this link requires access to the process; what follows requires access to the
	 * file. */
	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	fd = open(name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return "CAP_SYS_PTRACE";
	close(fd);
	return "CAP_DAC_READ_SEARCH";
}

static int task_open(const struct mapping *mapping, pid_t pid, char *path, size_t path_size)
{
	int fd;

	/* map_files refers to the mapped file itself, while its path may name a newer file. The
	 * check catches a process that called exec and mapped another file at the same
	 * addresses. */
	snprintf(path, path_size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start,
		 mapping->end);
	fd = mounts_are_local(pid, mapping->dev) ? path_at_file(-1, path) : opener_file(-1, path);
	fd = same_or_none(fd, mapping);
	if (fd < 0 && fd != -ESRCH && fd != -ETIMEDOUT) {
		snprintf(path, path_size, "/proc/%d/root%s", pid, mapping->path);
		fd = same_or_none(open_in_root(mapping, pid), mapping);
	}
	return fd;
}

int mapping_open(const struct mapping *mapping, pid_t pid, char *path, size_t path_size)
{
	int fd = task_open(mapping, pid, path, path_size);
	pid_t task = fd < 0 ? process_live_task(pid) : pid;

	return task == pid ? fd : task_open(mapping, task, path, path_size);
}

int mapping_open_same(const struct mapping *mapping, pid_t pid, char *path, size_t path_size)
{
	int fd = mapping_open(mapping, pid, path, path_size);

	if (fd >= 0)
		return fd;
	snprintf(path, path_size, "%s", mapping->path);
	if (path[0] != '/')
		return -ENOENT;
	fd = mounts_are_local(getpid(), mapping->dev) ? path_at_file(-1, path)
						      : opener_file(-1, path);
	return same_or_none(fd, mapping);
}
