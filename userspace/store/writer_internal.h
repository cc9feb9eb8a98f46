/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a writer share:
 *
 *	writer.c         opens and closes it, takes records
 *	writer_tables.c  the tables that records refer to
 *	writer_chunks.c  packs chunks and gives them to the file, the process or the memory
 *	writer_compact.c drops rows of tables that a writer without a file no longer needs
 *	writer_memory.c  a writer without a file: what it keeps, and the files made of that
 *
 * A function that returns int returns 0 or -writer->code, which every further call returns.
 */
#ifndef WAFFLE_STORE_WRITER_INTERNAL_H
#define WAFFLE_STORE_WRITER_INTERNAL_H

#include <zstd.h>

#include "store/dictionary_internal.h"
#include "store/encode_internal.h"
#include "store/file_process_internal.h"
#include "store/format_internal.h"
#include "store/keep_internal.h"
#include "store/store.h"
#include "util/output.h"

/* A table is written when it has reached this size, so that one more string still fits in the
 * chunk. */
#define WRITER_TABLE_BYTES (CHUNK_RAW_MAX / 2)

/* Tables that records refer to by number. Each is written as chunks of its own, before the
 * records. */
enum writer_table {
	TABLE_SITES,
	TABLE_PROCESSES,
	TABLE_STACKS,
	TABLE_OBJECTS,
	TABLE_MAPPINGS,
	TABLE_SYMBOLS,
	TABLE_NAMES,
	TABLE_TIMED_NAMES,
	TABLE_RANKS,
	TABLE_ATTRIBUTES,
	TABLE_HOSTS,
	TABLE_CAPTURES,
	TABLE_TRANSPORTS,
	TABLE_COUNT
};

/* Entries of a table that are not written yet. */
struct writer_waiting {
	byte_vec bytes;
	uint32_t count;
};

/* All tables, but for stacks and objects of a writer without a file. */
struct table_state {
	struct strtab *strings;
	uint32_t strings_written, strings_counted;
	struct writer_waiting tables[TABLE_COUNT];
	uint32_t counts_of[TABLE_COUNT]; /* entries added to each table */
	/* Memory they take in a reader: processes and mappings, all others. */
	size_t tables_bytes[2];
};

struct store_writer {
	char *path;
	struct file_process *process; /* writes the file; NULL: this process does, with `output` */
	struct keep *keep;            /* keeps the chunks in memory; NULL: there is a file */
	struct store_outlet outlet;   /* without `write`: none */
	struct output output;
	int fd;             /* of the output, written to without a buffer */
	uint64_t bytes;     /* of whole chunks, including the file's header */
	uint64_t persisted; /* records in those chunks */
	chunk_entries index;
	struct encoder *encoder; /* the current data chunk */
	struct encoder *tasks;   /* a copy of the records in it that name threads and tracks */
	struct table_state state;
	uint64_t left_out; /* entries dropped because there was no room */
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	ZSTD_CCtx *zstd;
	byte_vec out; /* a chunk in the form written to the file */
	bool finished;
	struct error failed; /* the first error, if code */
	int code;
};

/* NULL: out of memory. */
struct store_writer *writer_new(const char *path);
void writer_free(struct store_writer *writer);

/* Stores an error. Returns -code. */
int writer_fail(struct store_writer *writer, int code, const char *what);
/* Reports the stored error. */
int writer_result(const struct store_writer *writer, struct error *err);

/* Takes over an error of the process that writes. */
const struct file_state *writer_process_look(struct store_writer *writer);
int writer_process_send(struct store_writer *writer, enum file_request request, const void *data,
			size_t bytes);
/* Number of records in the first `bytes` of the file. */
uint64_t writer_records_kept(const struct store_writer *writer, uint64_t bytes);

/* Writes all of `out`. On an error the file is truncated to its last whole chunk. */
int writer_write(struct store_writer *writer);
/* Compresses and writes a chunk. */
int writer_chunk(struct store_writer *writer, struct chunk_header header, const void *payload,
		 size_t bytes);
/* Writes a chunk that is packed in `out`. */
int writer_packed(struct store_writer *writer, struct chunk_entry entry);
/* Writes what an encoder has as a chunk, and empties it. */
int writer_records(struct store_writer *writer, enum chunk_type type, struct encoder *encoder);
/* Writes all records so far and, with a file, the tables before them. */
int writer_data(struct store_writer *writer);
/* Writes all entries of tables that are not written yet. */
int writer_tables(struct store_writer *writer);
/* Adds the stacks or objects that are kept to new counts. */
void writer_rows_counted(struct store_writer *writer, enum store_numbered what);
/* Memory that the tables take in a reader, without stacks and objects that are kept. */
size_t writer_table_bytes(const struct store_writer *writer);

#endif
