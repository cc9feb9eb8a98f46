/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .waffle file: what a capture writes and everything else reads. docs/file-format.md has its
 * layout. Chunks are whole or absent: a file whose writer was killed at any byte is read up to its
 * last whole chunk.
 */
#ifndef WAFFLE_STORE_STORE_H
#define WAFFLE_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/record.h"
#include "target/site.h"
#include "util/error.h"

/* Produced = delivered + lost holds in a finished file. */
struct store_counts {
	uint64_t produced;
	uint64_t delivered;
	uint64_t lost;
};

/* Facts about a capture. Strings may be empty, never NULL. */
struct store_meta {
	uint64_t start_ts, end_ts; /* CLOCK_MONOTONIC ns; end_ts 0: the writer did not finish */
	uint64_t boot_ns; /* CLOCK_BOOTTIME at the moment that CLOCK_MONOTONIC was start_ts */
	uint64_t real_ns; /* CLOCK_REALTIME at that moment */
	const char *hostname;
	const char *kernel;  /* uname release */
	const char *machine; /* uname machine */
	const char *version; /* of waffle-bpf */
	const char *command; /* what was traced, for people */
	const char *filter;  /* the expression that it was recorded with; empty: none */
	uint32_t cpu_count;
	bool sched; /* the scheduler source was on */
	struct store_counts
		counts[WAFFLE_SOURCE_COUNT]; /* of the end; of the last chunk if cut off */
};

/* A process as known from outside the record stream (its cmdline, parent). */
struct store_process {
	uint32_t pid, ppid;
	uint64_t ts;         /* when this was read */
	const char *cmdline; /* arguments joined by spaces */
};

/* ---- writer ---- */

struct store_writer;

/*
 * Creates `path` (O_EXCL beside it, renamed into place at once so that a killed writer leaves a
 * readable file; an old file of the name is replaced). The file belongs to the user who called
 * sudo.
 */
int store_writer_open(struct store_writer **writer, const char *path, const struct store_meta *meta,
		      struct error *err);

/* Adds a site; sites are numbered 0, 1, … in the order of adding, and hits name them so. */
int store_writer_add_site(struct store_writer *writer, const struct site_info *site,
			  struct error *err);
int store_writer_add_process(struct store_writer *writer, const struct store_process *process,
			     struct error *err);

/*
 * Appends a record. Records come almost in the order of their times (a late one is kept and costs a
 * few bytes). On an error (disk full) the file stays readable up to its last whole chunk and every
 * further call fails the same way.
 */
int store_writer_append(struct store_writer *writer, const struct waffle_rec *rec,
			struct error *err);

/* Writes out what is buffered as a chunk, with the counts so far. Call it at least once a second.
 */
int store_writer_flush(struct store_writer *writer, const struct store_counts *counts,
		       struct error *err);

/* Records on disk in whole chunks, and bytes of the file so far. */
uint64_t store_writer_persisted(const struct store_writer *writer);
uint64_t store_writer_bytes(const struct store_writer *writer);

/* Writes the rest, the time index and the final counts, and frees the writer, also on an error. */
int store_writer_close(struct store_writer *writer, uint64_t end_ts,
		       const struct store_counts *counts, struct error *err);

/* ---- reader ---- */

struct store_reader;

/* Window of time to read; {0, UINT64_MAX} is all. Records outside are skipped, chunk by chunk. */
struct store_window {
	uint64_t from_ts, to_ts;
};
#define STORE_ALL ((struct store_window){0, UINT64_MAX})

/* Opens a file: "not a .waffle file", "version 7 is newer than this program", … are errors; a file
 * that is cut off is not, see store_reader_truncated(). */
int store_reader_open(struct store_reader **reader, const char *path, struct error *err);
void store_reader_close(struct store_reader *reader);

const struct store_meta *store_reader_meta(const struct store_reader *reader);
uint32_t store_reader_site_count(const struct store_reader *reader);
const struct site_info *store_reader_site(const struct store_reader *reader, uint32_t index);
uint32_t store_reader_process_count(const struct store_reader *reader);
const struct store_process *store_reader_process(const struct store_reader *reader, uint32_t index);
/* The writer did not finish, or the file was cut: how many bytes at its end can't be used. */
bool store_reader_truncated(const struct store_reader *reader, uint64_t *bytes);
/* Data chunks of the file, and those decoded since the last seek (for tests of the index). */
uint64_t store_reader_chunks(const struct store_reader *reader, uint64_t *decoded);

/*
 * Starts (again) at the first record of a window; both ends belong to it. A window that begins
 * later than 0 gives first, of each thread, the last task record before it: names are known.
 */
int store_reader_seek(struct store_reader *reader, struct store_window window, struct error *err);
/* The next record, valid until the next call: 1, or 0 at the end, or a negative errno. */
int store_reader_next(struct store_reader *reader, const struct waffle_rec **rec,
		      struct error *err);

#endif
