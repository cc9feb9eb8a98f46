/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files that a process has mapped. */
#ifndef WAFFLE_TARGET_PROCESS_MAPPING_FILE_H
#define WAFFLE_TARGET_PROCESS_MAPPING_FILE_H

#include "target/process/process.h"

/*
 * Opens the file of a mapping, even if it was deleted or lies in another mount namespace. Writes
 * into `path` a path by which the kernel finds the same file as long as the process lives. Returns
 * a negative errno on failure, including the case that another file is mapped there by now.
 */
/* The capability ("CAP_…") that is missing if mapping_open() returns -EACCES or -EPERM. */
const char *mapping_open_needs(pid_t pid);
int mapping_open(const struct mapping *mapping, pid_t pid, char *path, size_t path_size);

/* The same for a past mapping: the process may have ended or changed its mappings. Tries the
 * process's view of the path, then ours, and accepts only the same device and inode. */
int mapping_open_same(const struct mapping *mapping, pid_t pid, char *path, size_t path_size);

#endif
