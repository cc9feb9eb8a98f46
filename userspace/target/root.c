// SPDX-License-Identifier: Apache-2.0
#include "target/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/process.h"

#define ENTRIES_MAX 20000 /* of one directory */

static int open_in_root(const struct root *root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

const char *root_inside(const struct root *root, const char *path)
{
	return root->prefix && !strncmp(path, root->path, root->prefix) && path[root->prefix] == '/'
		       ? path + root->prefix
		       : path;
}

static void path_go_inside(const struct root *root, char *path)
{
	const char *inside = root_inside(root, path);

	memmove(path, inside, strlen(inside) + 1);
}

int root_open(struct root *root, pid_t pid)
{
	char path[64];
	int probe;

	*root = (struct root){0};
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	root->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root->fd < 0)
		return errno == EACCES ? -EACCES : -ESRCH;
	probe = open_in_root(root, "/", O_PATH);
	if (probe < 0) {
		root_close(root);
		return probe;
	}
	close(probe);
	process_link(pid, "root", root->path);
	root->prefix = strcmp(root->path, "/") != 0 ? strlen(root->path) : 0;
	process_link(pid, "exe", root->program);
	process_link(pid, "cwd", root->folder);
	path_go_inside(root, root->program);
	path_go_inside(root, root->folder);
	return 0;
}

void root_close(struct root *root)
{
	if (root->fd >= 0)
		close(root->fd);
	root->fd = -1;
}

bool root_follow(const struct root *root, const char *path, char real[PATH_MAX])
{
	int place = open_in_root(root, path, O_PATH);
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

int root_file(const struct root *root, const char *path)
{
	int place = open_in_root(root, path, O_PATH), fd = -EINVAL;
	char name[64];
	struct stat status;

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

char *root_read(const struct root *root, const char *path, size_t max, size_t *bytes)
{
	int fd = root_file(root, path);
	struct stat status;
	char *text = NULL;
	ssize_t got;

	*bytes = 0;
	if (fd >= 0 && !fstat(fd, &status) && status.st_size > 0 && (size_t)status.st_size <= max)
		text = malloc((size_t)status.st_size);
	while (text && *bytes < (size_t)status.st_size &&
	       (got = read(fd, text + *bytes, (size_t)status.st_size - *bytes)) > 0)
		*bytes += (size_t)got;
	if (fd >= 0)
		close(fd);
	return text;
}

void root_folder_each(const struct root *root, const char *folder, const char *prefix,
		      root_each each, void *arg)
{
	int fd = open_in_root(root, folder, O_RDONLY | O_DIRECTORY);
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	char path[PATH_MAX];

	if (!entries) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (unsigned i = 0; i < ENTRIES_MAX && (entry = readdir(entries)); i++) {
		if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) <
		    (int)sizeof(path))
			each(path, arg);
	}
	closedir(entries);
}
