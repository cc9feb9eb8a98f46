/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private copy of the parts of a file that are needed. The file's owner may write to it or
 * truncate it while we parse it. A shared mapping would then change under the parser, or raise
 * SIGBUS. Each block is read once, at its first use.
 */
#ifndef WAFFLE_TARGET_WORKER_FILECOPY_H
#define WAFFLE_TARGET_WORKER_FILECOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/map.h"
#include "util/vec.h"

/* Limit of the copied bytes. Nothing that we search for is that large. */
#define FILE_COPY_MAX (256u << 20)

struct file_copy {
	int fd; /* owned by the caller */
	struct stat at_first;
	struct map at; /* number of a block → its index in `blocks` */
	VEC(unsigned char *) blocks;
	bool short_read; /* the file ended before its recorded size */
	bool too_large;
};

/* Returns 0 or a negative errno. -EINVAL: not a regular file. */
int file_copy_open(struct file_copy *copy, int fd);
void file_copy_close(struct file_copy *copy);

/* Copies bytes of the file. False: they are past its end, or cannot be read. */
bool file_copy_get(struct file_copy *copy, uint64_t offset, void *to, size_t bytes);

/* 0; -ESTALE: the file changed meanwhile; -EFBIG: the limit was exceeded. */
int file_copy_state(const struct file_copy *copy);

/* Whether a file is unchanged since fstat() filled `at_first`. */
bool file_unchanged(int fd, const struct stat *at_first);

#endif
