/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files that users name. No function waits for data to appear: a FIFO without a writer is an
 * error. */
#ifndef WAFFLE_UTIL_INPUT_H
#define WAFFLE_UTIL_INPUT_H

#include <stddef.h>
#include <sys/types.h>

/* Opens a regular file. It only inspects other kinds of files, since opening a device can have side
 * effects. Negative errno: -EISDIR for a folder, -EINVAL for other kinds. */
int input_open(const char *path);
struct stat;
/* Like fstat(), without a request to the server of a network or FUSE file system. Fills in the
 * mode, owner, size, device, inode and times. Returns 0, or -1 with errno. */
int input_stat(int fd, struct stat *status);
/* The same for a link of /proc, such as "/proc/1/cwd", which is followed. */
int input_stat_link(const char *path, struct stat *status);
/* Reads a text, which may also come from a device or a pipe, up to its end or `max` bytes. Returns
 * the number of bytes or a negative errno. -EPIPE: a FIFO without a writer. */
ssize_t input_read(const char *path, char *text, size_t max);
ssize_t input_read_fd(int fd, char *text, size_t max);
/* Text for the errno of these functions (positive), for messages such as "%s: %s". */
const char *input_error(int code);

#endif
