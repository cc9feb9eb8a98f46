/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the processes that parse files of others are shut in. sandbox_drop() takes all privileges
 * away and closes all descriptors but two; sandbox_shut() lets a process compute, read descriptors
 * that it is sent, and answer, and nothing else: it opens nothing, connects to nothing, runs
 * nothing, and sends signals to nobody.
 *
 * Libraries may still call open(): that becomes a question to `open` here, which asks the other end
 * of the socket for a descriptor.
 */
#ifndef WAFFLE_TARGET_SANDBOX_H
#define WAFFLE_TARGET_SANDBOX_H

#include <stddef.h>

/* Where the sockets are after sandbox_drop(); 0 to 2 are /dev/null. */
#define SANDBOX_SOCKET 3
#define SANDBOX_CONTROL 4

/* In a process that was just made, with one thread. 0, or a negative errno: it must end then. */
int sandbox_drop(int socket, int control);

/* What becomes of an open(): a descriptor or a negative errno, and in `real` the file's own path.
 * It is called from a signal handler. */
typedef int (*sandbox_open_fn)(const char *path, char *real, size_t size);
int sandbox_shut(sandbox_open_fn open);
/* The path that /proc/self/fd shows for such a descriptor, and for its copies. */
void sandbox_name(int fd, const char *path);

/* Bytes of memory that it may have; 0: there is no limit, as with sanitizers. */
size_t sandbox_memory(void);
/* It may compute for so many seconds from now on. */
void sandbox_seconds(unsigned seconds);

#endif
