/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a process has mapped. */
#ifndef WAFFLE_TARGET_MAPPING_FILE_H
#define WAFFLE_TARGET_MAPPING_FILE_H

#include "target/process.h"

/*
 * Opens the file of a mapping, also if it was deleted or lies in another mount namespace, and
 * writes a path into `path` by which the kernel finds the same file while the process lives.
 * Negative errno on failure, also if the process has another file there by now.
 */
/* The name of the capability ("CAP_…") that is missing when mapping_open() returns -EACCES or
 * -EPERM. */
const char *mapping_open_needs(pid_t pid);
int mapping_open(const struct mapping *mapping, pid_t pid, char *path, size_t path_size);

/* The same for a mapping of the past: the process may have ended, or have other mappings by now.
 * Only the same file, by device and inode, is opened: by the process's paths, or else by the path
 * as we see it. */
int mapping_open_same(const struct mapping *mapping, pid_t pid, char *path, size_t path_size);

#endif
