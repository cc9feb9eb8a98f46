/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one .waffle file: its tables, and the records of a window of time. All numbers and times
 * are the file's own. A store_reader (store/store.h) presents one or several of these.
 */
#ifndef WAFFLE_STORE_FILE_READER_INTERNAL_H
#define WAFFLE_STORE_FILE_READER_INTERNAL_H

#include "store/chunkfile_internal.h"
#include "store/decode_internal.h"
#include "store/dictionary_internal.h"
#include "store/leaves_internal.h"
#include "store/store.h"

struct file_reader {
	struct chunk_file file;
	struct dictionary dictionary;
	struct store_meta meta;
	uint64_t data_chunks, data_records;
	/* What the decoder needs to know of the file's sites. The owner sets these after the file
	 * was opened, and before it is read. */
	const struct site_info *const *sites;
	uint32_t site_count;
	struct decoder *decoder; /* NULL: not needed so far */
	/* State of the walk over a window. */
	struct store_window window;
	/* The last record before the window that names each thread or track. */
	VEC(union file_naming {
		struct waffle_rec rec;
		struct waffle_rec_task task;
		struct waffle_rec_track track;
		struct waffle_rec_thread_name name;
	})
	tasks;
	size_t next_task, next_entry;
	const struct chunk_entry *current; /* chunk that is being decoded, or NULL */
	uint64_t decoded;                  /* chunks */
	/* What the owner wants to be left out: see struct store_leave_out. */
	uint32_t leave_out_kinds;
	const struct leaves *leaves; /* NULL: none */
	bool has_leaves;             /* set by leaves_find() */
	struct store_left_out left_out;
	/* Numbers in the file: of the last record returned, and of the last one of the current
	 * chunk. */
	uint64_t number, before;
};

/* After an error there is nothing to close. `scratch` must outlive the reader; its owner may set
 * another one between two calls. */
int file_reader_open(struct file_reader *reader, const char *path, struct chunk_scratch *scratch,
		     struct error *err);
void file_reader_close(struct file_reader *reader);
/* As store_reader_truncated(). */
bool file_reader_truncated(const struct file_reader *reader, uint64_t *bytes);

/* As store_reader_seek() and store_reader_next(). */
int file_reader_seek(struct file_reader *reader, struct store_window window, struct error *err);
int file_reader_next(struct file_reader *reader, const struct waffle_rec **rec, struct error *err);
/* No record that file_reader_next() will return is earlier; UINT64_MAX: there is none left. Reads
 * only the index. */
uint64_t file_reader_next_ts(const struct file_reader *reader);
/* Frees what only reading needs, after the last record. A seek begins again. */
void file_reader_rest(struct file_reader *reader);

#endif
