/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files on file systems that may not answer, and reads memory of other processes. A process
 * may map a file on such a file system, and then whoever reads that memory waits for its server. A
 * separate process does all this, and the caller waits for it at most OPENER_WAIT_MS.
 *
 * A process that is stuck in such a call can't be killed. It is left behind and replaced. While
 * OPENER_STUCK_MAX processes are stuck, nothing more is opened. A path at which a process is stuck
 * is not tried again until all stuck processes are gone. A stuck process holds no descriptor of the
 * tracer, so no probe stays armed because of it.
 *
 * Any thread may call these functions. They work like those of place.h.
 */
#ifndef WAFFLE_TARGET_PROCESS_OPENER_H
#define WAFFLE_TARGET_PROCESS_OPENER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OPENER_WAIT_MS 250
#define OPENER_STUCK_MAX 4

/* Returns a descriptor, which the caller closes, or a negative errno. -ETIMEDOUT: the file system
 * does not answer. -EBUSY: too many other requests are stuck. */
int opener_file(int root, const char *path);
/* False: the path does not exist, or its file system does not answer. */
bool opener_follow(int root, const char *path, char real[PATH_MAX]);
/* Returns the names in the form of path_at_list(). The caller frees them. NULL: there are none. */
char *opener_list(int root, const char *folder, const char *prefix, size_t *bytes);

/* As pread(), for a file of /proc/PID that shows memory: mem, environ, cmdline. Of these it reads
 * 128 KiB at most; other files it reads itself. -ETIMEDOUT: the memory is that of a file whose file
 * system does not answer. Then no memory of this process is read until all stuck processes are
 * gone. */
ssize_t opener_read(int fd, void *to, size_t size, uint64_t offset);

/* Once this descriptor is readable, requests return without waiting. -1: there is none. */
void opener_stop_at(int fd);
/* Sets a deadline: until `ns` (CLOCK_MONOTONIC), requests wait no longer than to that time. 0: no
 * deadline. */
void opener_until(uint64_t ns);

/* Ends the process that opens files, if one was started. */
void opener_stop(void);

#endif
