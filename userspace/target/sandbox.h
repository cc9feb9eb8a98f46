/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confines the processes that parse untrusted files. sandbox_drop() drops all privileges and closes
 * all descriptors but two. After sandbox_shut() a process can only compute, read the descriptors
 * that it receives, and answer: it opens nothing, connects to nothing, runs nothing, and sends
 * signals to nobody.
 *
 * Libraries may still call open(): a signal handler passes it to `open` below, which asks the other
 * end of the socket for a descriptor.
 */
#ifndef WAFFLE_TARGET_SANDBOX_H
#define WAFFLE_TARGET_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* Where the sockets are after sandbox_drop(); 0 to 2 are /dev/null. */
#define SANDBOX_SOCKET 3
#define SANDBOX_CONTROL 4

/* For a new process, with one thread. 0, or a negative errno: then it must end. */
int sandbox_drop(int socket, int control);

/* Answers an open(): returns a descriptor or a negative errno, and writes the file's own path to
 * `real`. It is called from a signal handler. */
typedef int (*sandbox_open_fn)(const char *path, char *real, size_t size);
int sandbox_shut(sandbox_open_fn open);
/* The path that /proc/self/fd shows for such a descriptor, and for its copies. */
void sandbox_name(int fd, const char *path);

/* Its limit of memory in bytes; 0: none, as with sanitizers. */
size_t sandbox_memory(void);
/* Limits its CPU time to so many seconds from now on. */
void sandbox_seconds(unsigned seconds);
/* Calls `work`, which it leaves after so many milliseconds of CPU time, wherever that is. False: it
 * was left. Elsewhere than in a sandbox there is no limit. */
bool sandbox_limited(unsigned milliseconds, void (*work)(void *arg), void *arg);

#endif
