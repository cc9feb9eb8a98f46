/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A .waffle file as a list of whole chunks. The list comes from the file's index or, without one,
 * from walking over the chunk headers. The file is read with pread(): if it were mapped and another
 * program truncated it, a read would kill us with SIGBUS.
 */
#ifndef WAFFLE_STORE_CHUNKFILE_INTERNAL_H
#define WAFFLE_STORE_CHUNKFILE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <zstd.h>

#include "store/bytes_internal.h"
#include "store/dictionary_internal.h"
#include "store/format_internal.h"
#include "util/error.h"

struct chunk_file {
	char *path;
	int fd;
	uint64_t size;
	unsigned version;
	uint64_t end;    /* offset of the end of the last whole chunk */
	bool finished;   /* the file has an end chunk */
	uint64_t end_ts; /* from the end chunk; CLOCK_MONOTONIC ns */
	bool from_index; /* `entries` comes from the index */
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	chunk_entries entries; /* all chunks but index and end */
	ZSTD_DCtx *zstd;
	byte_vec stored, raw; /* payload of the chunk loaded last, as stored and decompressed */
};

int chunk_file_open(struct chunk_file *file, const char *path, struct error *err);
void chunk_file_close(struct chunk_file *file);

/* Loads a chunk. The cursor is valid until the next load. */
int chunk_file_load(struct chunk_file *file, const struct chunk_entry *entry, struct cursor *cursor,
		    struct error *err);
/* Sets the message "… is damaged at byte N" for a chunk with invalid contents. Returns -EBADMSG. */
int chunk_file_damaged(const struct chunk_file *file, uint64_t offset, struct error *err);

#endif
