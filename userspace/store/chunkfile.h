/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A .waffle file as a list of whole chunks: from its index, or by walking over the headers if there
 * is none. It reads with pread: a mapped file that someone cuts short meanwhile would kill us.
 */
#ifndef WAFFLE_STORE_CHUNKFILE_H
#define WAFFLE_STORE_CHUNKFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <zstd.h>

#include "store/bytes.h"
#include "store/dictionary.h"
#include "store/format.h"
#include "util/error.h"

struct chunk_file {
	char *path;
	int fd;
	uint64_t size;
	uint64_t end;    /* of the last whole chunk */
	bool finished;   /* the end chunk is there */
	uint64_t end_ts; /* from it */
	bool from_index; /* entries are the index's */
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	chunk_entries entries; /* without index and end */
	ZSTD_DCtx *zstd;
	byte_vec stored, raw; /* of the chunk loaded last */
};

int chunk_file_open(struct chunk_file *file, const char *path, struct error *err);
void chunk_file_close(struct chunk_file *file);

/* Loads a chunk; the cursor stays valid until the next load. */
int chunk_file_load(struct chunk_file *file, const struct chunk_entry *entry, struct cursor *cursor,
		    struct error *err);
/* "… is damaged at byte N": the chunk's bytes make no sense. Returns -EBADMSG. */
int chunk_file_damaged(const struct chunk_file *file, uint64_t offset, struct error *err);

#endif
