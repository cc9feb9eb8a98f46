/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file in pieces, up to the size that it had when it was opened. */
#ifndef WAFFLE_EXPORT_REPAIR_PIECES_INTERNAL_H
#define WAFFLE_EXPORT_REPAIR_PIECES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#define PIECE_BYTES ((size_t)256 << 10)

struct pieces {
	int fd;
	uint64_t size; /* of the file */
	uint64_t from; /* where in the file the piece begins */
	size_t len;    /* 0 after the last piece */
	unsigned char bytes[PIECE_BYTES];
};

/* Starts at the begin of a file. Returns 0 or a negative errno. */
int pieces_begin(struct pieces *pieces, int fd, const char *path, struct error *err);
/* Reads the next piece. Returns 0, also at the end, or a negative errno. */
int pieces_next(struct pieces *pieces, const char *path, struct error *err);
/* The same from an offset on. */
int pieces_seek(struct pieces *pieces, uint64_t offset, const char *path, struct error *err);
/* Whether all bytes from an offset on are 0, as a file system may leave them after a power cut. */
int pieces_only_zeros(struct pieces *pieces, uint64_t offset, const char *path, bool *zeros,
		      struct error *err);

#endif
