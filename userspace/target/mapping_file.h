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
/* What -EACCES and -EPERM of mapping_open() mean: "CAP_…", which is missing. */
const char *mapping_open_needs(pid_t pid);
int mapping_open(const struct mapping *mapping, pid_t pid, char *path, size_t path_size);

/* The same for a mapping that is known from elsewhere: the process may be gone or have other
 * mappings by now. Only the very file is opened, by its path as we see it if by none of the
 * process's. */
int mapping_open_same(const struct mapping *mapping, pid_t pid, char *path, size_t path_size);

#endif
