/* SPDX-License-Identifier: Apache-2.0 */
/* Damages .waffle files in a way that their checksums do not detect. */
#ifndef WAFFLE_FUZZ_CHECKSUMS_H
#define WAFFLE_FUZZ_CHECKSUMS_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "require.h"
#include "store/bytes_internal.h"
#include "store/format_internal.h"

/* Corrects the checksums of all reachable chunks. */
static inline void mend_checksums(unsigned char *file, size_t size)
{
	size_t at = FILE_HEADER_BYTES;

	if (size >= FILE_HEADER_BYTES)
		put_le(file + 12, chunk_checksum(file, 12), 4);
	while (size >= at && size - at >= CHUNK_HEADER_BYTES) {
		unsigned char *header = file + at;
		size_t stored = load_le(header + 8, 4);

		if (stored > size - at - CHUNK_HEADER_BYTES)
			return;
		put_le(header + 20, chunk_checksum(header + CHUNK_HEADER_BYTES, stored), 4);
		put_le(header + CHUNK_HEADER_BYTES - 4,
		       chunk_checksum(header, CHUNK_HEADER_BYTES - 4), 4);
		at += CHUNK_HEADER_BYTES + stored;
	}
}

/* Returns a descriptor of an in-memory file with these bytes and correct checksums, and its
 * path. */
static inline int damaged_file(const uint8_t *data, size_t size, char path[64])
{
	unsigned char *copy = malloc(size + 1);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	require(copy && fd >= 0);
	memcpy(copy, data, size);
	mend_checksums(copy, size);
	require(write(fd, copy, size) == (ssize_t)size);
	free(copy);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

#endif
