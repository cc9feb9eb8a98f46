/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a process sees, in its mount namespace and below its root. Paths are as it sees
 * them and are not trusted: absolute links start at its root, and nothing leads out of that. Only
 * regular files and folders are opened, as opening a device may have effects.
 */
#ifndef WAFFLE_TARGET_ROOT_H
#define WAFFLE_TARGET_ROOT_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct root {
	int fd;
	char program[PATH_MAX]; /* "": not known */
	char folder[PATH_MAX];  /* that it works in; as well */
	size_t prefix;          /* bytes of its path in ours */
	char path[PATH_MAX];    /* ours */
};

/* -ESRCH: the process has ended; -EACCES: no permission; -ENOSYS: the kernel can't resolve paths
 * below a root (openat2(2)). */
int root_open(struct root *root, pid_t pid);
void root_close(struct root *root);

/* A path that the kernel shows us, as the process sees it. */
const char *root_inside(const struct root *root, const char *path);

/* Where a path leads to, as the kernel shows that to us; false: nowhere. */
bool root_follow(const struct root *root, const char *path, char real[PATH_MAX]);

/* Opens a file to read it; a negative errno, -EINVAL: it is a folder, a device, … */
int root_file(const struct root *root, const char *path);

/* A whole file of not more than `max` bytes; to be freed. NULL: none. */
char *root_read(const struct root *root, const char *path, size_t max, size_t *bytes);

/* Calls `each` with the paths of a folder's entries whose names begin so. */
typedef void (*root_each)(const char *path, void *arg);
void root_folder_each(const struct root *root, const char *folder, const char *prefix,
		      root_each each, void *arg);

#endif
