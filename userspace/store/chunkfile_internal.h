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

/* What loading a chunk needs beside the file. Files that one thread reads may share it. */
struct chunk_scratch {
	ZSTD_DCtx *zstd;
	byte_vec stored; /* payload of the chunk loaded last, as stored */
};

bool chunk_scratch_init(struct chunk_scratch *scratch); /* false: out of memory */
void chunk_scratch_free(struct chunk_scratch *scratch);

struct chunk_file {
	char *path;
	int fd; /* -1: closed, and opened again when a chunk is loaded */
	uint64_t device, inode;
	uint64_t size;
	unsigned version;
	uint64_t end;    /* offset of the end of the last whole chunk */
	bool finished;   /* the file has an end chunk */
	uint64_t end_ts; /* from the end chunk; CLOCK_MONOTONIC ns */
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	chunk_entries entries; /* all chunks but index and end */
	struct chunk_scratch *scratch;
	byte_vec raw; /* payload of the chunk loaded last, decompressed */
};

int chunk_file_open(struct chunk_file *file, const char *path, struct chunk_scratch *scratch,
		    struct error *err);
void chunk_file_close(struct chunk_file *file);
/* Closes the descriptor, of which a process has few. */
void chunk_file_put_down(struct chunk_file *file);
/* The same, and frees the loaded chunk. */
void chunk_file_rest(struct chunk_file *file);

/* Loads a chunk. The cursor is valid until the next load. */
int chunk_file_load(struct chunk_file *file, const struct chunk_entry *entry, struct cursor *cursor,
		    struct error *err);
/* Sets the message "… is damaged at byte N" for a chunk with invalid contents. Returns -EBADMSG. */
int chunk_file_damaged(const struct chunk_file *file, uint64_t offset, struct error *err);

#endif
