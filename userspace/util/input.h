/* SPDX-License-Identifier: Apache-2.0 */
/* Files that people name to be read. None is waited for: a FIFO has somebody who writes to it, or
 * it is an error. */
#ifndef WAFFLE_UTIL_INPUT_H
#define WAFFLE_UTIL_INPUT_H

#include <stddef.h>
#include <sys/types.h>

/* Opens an ordinary file; of others only what they are is looked at, as to open a device would do
 * something to it. Negative errno: -EISDIR a folder, -EINVAL something else. */
int input_open(const char *path);
/* Reads all of a text, which a device or a pipe may be, too, to its end or to `max` bytes. Returns
 * how many, or a negative errno: -EPIPE: a FIFO that nobody writes to. */
ssize_t input_read(const char *path, char *text, size_t max);
ssize_t input_read_fd(int fd, char *text, size_t max);
/* What was wrong, for a message: "%s: %s". */
const char *input_error(int code);

#endif
