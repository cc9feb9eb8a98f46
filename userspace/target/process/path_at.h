/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and lists files below a root directory, which is given as an O_PATH descriptor. For
 * path_at_cached() and path_at_file() root may be -1: then the path is one that we see ourselves.
 * Only regular files and directories are opened, since opening a device may have side effects. The
 * caller closes the descriptors. All but path_at_cached() and path_at_peek() may wait for a file
 * server.
 */
#ifndef WAFFLE_TARGET_PROCESS_PATH_AT_H
#define WAFFLE_TARGET_PROCESS_PATH_AT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/wire.h"

/* Opens a path below a root. Negative errno. */
int path_at_open(int root, const char *path, int flags);
/* Returns an O_PATH descriptor of a path, or a negative errno. Uses only what the kernel has in its
 * memory (RESOLVE_CACHED), so it never waits for a file system. -EAGAIN: the kernel does not know
 * the path without asking the file system. */
int path_at_cached(int root, const char *path, int flags);
/* The same for a path that we see ourselves. Does ask the file system if all our mounts answer
 * without a server (mounts.h). */
int path_at_peek(const char *path, int flags);
/* Opens a regular file for reading. Negative errno; -EINVAL: it is a directory, a device, … */
int path_at_file(int root, const char *path);
/* Resolves a path to the one that the kernel shows us. False: it does not exist. */
bool path_at_follow(int root, const char *path, char real[PATH_MAX]);
/* Appends the names of a directory's entries that start with a prefix, each with its NUL. */
void path_at_list(int root, const char *folder, const char *prefix, struct wire_out *names);

#endif
