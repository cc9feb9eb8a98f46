/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private copy of the parts of a file that are needed. Its owner may write to the file or shorten
 * it while we parse it: a shared mapping would then change under the parser, or raise SIGBUS. Each
 * block is read once, when it is first needed.
 */
#ifndef WAFFLE_TARGET_FILECOPY_H
#define WAFFLE_TARGET_FILECOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/map.h"
#include "util/vec.h"

/* Limit of the copied bytes: nothing that we search for is that large. */
#define FILE_COPY_MAX (256u << 20)

struct file_copy {
	int fd; /* belongs to the caller */
	struct stat at_first;
	struct map at; /* a block's number → its index in `blocks` */
	VEC(unsigned char *) blocks;
	bool short_read; /* the file ended before its size */
	bool too_large;
};

/* 0; a negative errno, -EINVAL: not a regular file. */
int file_copy_open(struct file_copy *copy, int fd);
void file_copy_close(struct file_copy *copy);

/* Copies bytes of the file; false if they are not in it, or can't be read. */
bool file_copy_get(struct file_copy *copy, uint64_t offset, void *to, size_t bytes);

/* 0; -ESTALE: the file changed meanwhile; -EFBIG: more than the limit was needed. */
int file_copy_state(const struct file_copy *copy);

/* Whether a file is unchanged since fstat() filled `at_first`. */
bool file_unchanged(int fd, const struct stat *at_first);

#endif
