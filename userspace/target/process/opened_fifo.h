/* SPDX-License-Identifier: Apache-2.0 */
/* The named pipe that a thread opens: open(2) of one waits for the other end, and the thread has no
 * descriptor of it yet. */
#ifndef WAFFLE_TARGET_PROCESS_OPENED_FIFO_H
#define WAFFLE_TARGET_PROCESS_OPENED_FIFO_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/process/descriptors.h"
#include "target/process/image.h"

/* Whether this system call opens a file by its path. */
bool is_open_call(int syscall);

struct opened_fifo {
	struct file_key key;
	char path[PATH_MAX]; /* as the process sees it */
	/* What the call waits for: "nobody has opened it to read". It waits for nothing if it opens
	 * both ends. */
	const char *lacks;
};

/* Finds the named pipe that a process opens by such a call with these first arguments. Uses only
 * what the kernel has in its memory, so it waits for no file system. False: it opens another file,
 * or the path is relative to a descriptor. */
bool opened_fifo_find(struct opened_fifo *fifo, pid_t pid, const struct image *image, int syscall,
		      const uint64_t *args);

#endif
