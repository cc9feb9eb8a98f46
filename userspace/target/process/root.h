/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a process sees in its mount namespace, below its root. Paths are as the process
 * sees them and are not trusted: absolute links start at its root, and no path leads out of it.
 * Only regular files and directories are opened, since opening a device may have side effects.
 */
#ifndef WAFFLE_TARGET_PROCESS_ROOT_H
#define WAFFLE_TARGET_PROCESS_ROOT_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct root {
	int fd;
	bool local;             /* no file system that the process sees waits for a server */
	char program[PATH_MAX]; /* "": unknown */
	char folder[PATH_MAX];  /* its working directory; "": unknown */
	size_t prefix;          /* bytes by which our path of it is longer */
	char path[PATH_MAX];    /* our path of its root */
};

/* Returns 0 or a negative errno, after which there is nothing to close. -ESRCH: the process has
 * ended; -EACCES: no permission; -ENOSYS: the kernel lacks openat2(2), which resolves paths below a
 * root. */
int root_open(struct root *root, pid_t pid);
void root_close(struct root *root);

/* Converts a path that the kernel shows us to the one that the process sees. The result points into
 * `path`. */
const char *root_inside(const struct root *root, const char *path);

/* Resolves a path to the one that the kernel shows us. False: it does not exist. */
bool root_follow(const struct root *root, const char *path, char real[PATH_MAX]);

/* Opens a file for reading. The caller closes the descriptor. Negative errno; -EINVAL: it is a
 * directory, a device, … */
int root_file(const struct root *root, const char *path);

/* A whole file of at most `max` bytes. The caller frees it. NULL: it cannot be read. */
char *root_read(const struct root *root, const char *path, size_t max, size_t *bytes);

/* Calls `each` with the paths of a directory's entries whose names start with a prefix. */
typedef void (*root_each)(const char *path, void *arg);
void root_folder_each(const struct root *root, const char *folder, const char *prefix,
		      root_each each, void *arg);

#endif
