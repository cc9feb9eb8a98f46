// SPDX-License-Identifier: Apache-2.0
#include "target/process/path_at.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/process/mounts.h"
#include "util/input.h"

#define CACHED_TRIES_MAX 4
#define ENTRIES_MAX 20000 /* of one directory */

static int open_how(int root, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC, .resolve = resolve};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int path_at_open(int root, const char *path, int flags)
{
	return open_how(root, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int path_at_cached(int root, const char *path, int flags)
{
	uint64_t inside = root < 0 ? 0 : RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
	int fd = -EAGAIN;

	/* The kernel also returns EAGAIN if a directory was renamed meanwhile. So try again. */
	for (unsigned i = 0; i < CACHED_TRIES_MAX && fd == -EAGAIN; i++)
		fd = open_how(root < 0 ? AT_FDCWD : root, path, flags | O_PATH,
			      RESOLVE_CACHED | inside);
	return fd == -EINVAL ? -EAGAIN : fd; /* Linux before 5.12 */
}

int path_at_peek(const char *path, int flags)
{
	return mounts_are_local(getpid(), MOUNTS_ANY) ? open_how(AT_FDCWD, path, flags | O_PATH, 0)
						      : path_at_cached(-1, path, flags);
}

int path_at_file(int root, const char *path)
{
	int place = root < 0 ? -1 : path_at_open(root, path, O_PATH), fd = -EINVAL;
	struct stat status;
	char name[64];

	if (root < 0)
		return input_open(path);
	if (place < 0)
		return place;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
	if (!fstat(place, &status) && S_ISREG(status.st_mode)) {
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	close(place);
	return fd;
}

bool path_at_follow(int root, const char *path, char real[PATH_MAX])
{
	int place = path_at_open(root, path, O_PATH);
	char name[64];
	ssize_t len;

	if (place < 0)
		return false;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
	len = readlink(name, real, PATH_MAX - 1);
	real[len > 0 ? len : 0] = '\0';
	close(place);
	return len > 0;
}

void path_at_list(int root, const char *folder, const char *prefix, struct wire_out *names)
{
	int fd = path_at_open(root, folder, O_RDONLY | O_DIRECTORY);
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!entries) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (unsigned i = 0; i < ENTRIES_MAX && (entry = readdir(entries)); i++)
		if (entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix)))
			wire_put(names, entry->d_name, strlen(entry->d_name) + 1);
	closedir(entries);
}
