// SPDX-License-Identifier: Apache-2.0
#include "target/worker/filecopy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES (64u << 10)

int file_copy_open(struct file_copy *copy, int fd)
{
	*copy = (struct file_copy){.fd = fd};
	if (fstat(fd, &copy->at_first))
		return -errno;
	return S_ISREG(copy->at_first.st_mode) ? 0 : -EINVAL;
}

void file_copy_close(struct file_copy *copy)
{
	for (size_t i = 0; i < copy->blocks.len; i++)
		free(copy->blocks.data[i]);
	vec_free(&copy->blocks);
	map_free(&copy->at);
}

static bool read_whole(struct file_copy *copy, unsigned char *to, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got = pread(copy->fd, to + done, bytes - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			copy->short_read |= !got;
			return false;
		}
		done += (size_t)got;
	}
	return true;
}

/* A block of the copy, read on first use. NULL: it cannot be read. */
static const unsigned char *block_of(struct file_copy *copy, uint64_t number)
{
	uint64_t left = (uint64_t)copy->at_first.st_size - number * BLOCK_BYTES;
	uint32_t known = map_get(&copy->at, number);
	unsigned char *block;

	if (known != MAP_NONE)
		return copy->blocks.data[known];
	copy->too_large |= copy->blocks.len >= FILE_COPY_MAX / BLOCK_BYTES;
	if (copy->too_large || copy->short_read)
		return NULL;
	block = malloc(BLOCK_BYTES);
	if (!block)
		return NULL;
	if (!read_whole(copy, block, left < BLOCK_BYTES ? left : BLOCK_BYTES,
			number * BLOCK_BYTES) ||
	    !vec_push(&copy->blocks, block)) {
		free(block);
		return NULL;
	}
	/* If the map cannot grow, fail: otherwise the block could be read twice with different
	 * contents. */
	return map_set(&copy->at, number, (uint32_t)copy->blocks.len - 1) ? block : NULL;
}

bool file_copy_get(struct file_copy *copy, uint64_t offset, void *to, size_t bytes)
{
	uint64_t size = (uint64_t)copy->at_first.st_size;
	char *at = to;

	if (offset > size || bytes > size - offset)
		return false;
	while (bytes) {
		const unsigned char *block = block_of(copy, offset / BLOCK_BYTES);
		size_t from = offset % BLOCK_BYTES;
		size_t part = bytes < BLOCK_BYTES - from ? bytes : BLOCK_BYTES - from;

		if (!block)
			return false;
		memcpy(at, block + from, part);
		at += part;
		offset += part;
		bytes -= part;
	}
	return true;
}

bool file_unchanged(int fd, const struct stat *at_first)
{
	struct stat now;

	return !fstat(fd, &now) && now.st_size == at_first->st_size &&
	       now.st_mtim.tv_sec == at_first->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == at_first->st_mtim.tv_nsec;
}

int file_copy_state(const struct file_copy *copy)
{
	if (copy->short_read || !file_unchanged(copy->fd, &copy->at_first))
		return -ESTALE;
	return copy->too_large ? -EFBIG : 0;
}
