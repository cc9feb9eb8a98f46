/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confines the processes that parse untrusted files. sandbox_drop() drops all privileges and closes
 * all descriptors but two. After sandbox_shut() a process can only compute, read the descriptors
 * that it receives, and reply. It cannot open files, connect, execute programs or send signals.
 *
 * Libraries may still call open(). The filter traps it, and a signal handler passes the path to a
 * sandbox_open_fn, which requests a descriptor over the socket.
 */
#ifndef WAFFLE_TARGET_WORKER_SANDBOX_H
#define WAFFLE_TARGET_WORKER_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* Descriptors of the sockets after sandbox_drop(). 0 to 2 are /dev/null. */
#define SANDBOX_SOCKET 3
#define SANDBOX_CONTROL 4

/* Call it in a new process with a single thread. Returns 0 or a negative errno, after which the
 * process must exit. */
int sandbox_drop(int socket, int control);

/* Serves an open(): returns a descriptor or a negative errno, and writes the resolved path to
 * `real`. Runs in a signal handler. */
typedef int (*sandbox_open_fn)(const char *path, char *real, size_t size);
int sandbox_shut(sandbox_open_fn open);
/* Sets the path that /proc/self/fd shows for such a descriptor and its duplicates. */
void sandbox_name(int fd, const char *path);

/* The process's memory limit in bytes. 0: none, as with sanitizers. */
size_t sandbox_memory(void);
/* Limits CPU time to so many seconds from now on. */
void sandbox_seconds(unsigned seconds);
/* Calls `work` and aborts it, at any point, after so many milliseconds of CPU time. False: it was
 * aborted. Outside a sandbox there is no limit. */
bool sandbox_limited(unsigned milliseconds, void (*work)(void *arg), void *arg);

#endif
