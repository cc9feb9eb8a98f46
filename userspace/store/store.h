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
	const char *sources; /* what was recorded, "spans,sched,io"; empty: an older file */
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

/*
 * Tables that records refer to by number, from 1 on in the order of adding; 0 is none. They may
 * come after the records that name them, in the file as in the capture.
 */

/* Return addresses, innermost first. */
struct store_stack {
	const uint64_t *addresses;
	uint32_t count;
	uint32_t pid; /* of a user stack; 0: a kernel stack */
	bool cut;     /* it is known to go on behind the last one */
};
#define STORE_STACK_MAX 127 /* addresses; PERF_MAX_STACK_DEPTH */

/* An address of a stack of a process is no address but a frame of Python: that many in the table of
 * names, "Trainer.step (/srv/train.py:31)". */
#define STORE_PYTHON (1ull << 63)

/* What a thread can wait for that has a name. */
struct store_object {
	uint64_t ino;
	uint32_t dev;     /* as the kernel numbers devices; 0: only `name` is known */
	uint32_t pid;     /* whose file descriptor or address it was seen as */
	const char *name; /* "/data/shard-7", "pipe:[123]", "socket:[45]", "anon_inode:[timerfd]" */
	const char *detail; /* a socket's ends "tcp 10.0.0.1:80 -> 10.0.0.2:5000"; a file system's
			       type "ext4"; what an epoll watches; else "" */
};

/* A part of an ELF file that is loaded as code: where the linker has put it. */
struct store_segment {
	uint64_t offset;  /* in the file */
	uint64_t address; /* link-time */
	uint64_t size;    /* in the file */
};
#define STORE_SEGMENTS_MAX 8 /* of a file */

/* A file mapped by a process, for addresses; not only executable parts. Without a path: something
 * that has taken the place of a file, and nobody knows which it is. */
struct store_mapping {
	uint64_t ts; /* when it was seen */
	uint64_t start, end, offset;
	uint64_t ino;
	uint32_t dev;
	uint32_t pid;
	const char *path;
	uint8_t build_id[20];
	uint32_t build_id_bytes; /* 0: none */
	/* Of the file, with which addresses are named by its debug file alone. Only where the
	 * mapping is executable, else and in older files none. */
	const struct store_segment *segments;
	uint32_t segment_count;
};

/* A kernel address that a stack has, as the kernel that was running named it. */
struct store_symbol {
	uint64_t address;
	uint32_t offset;  /* of the address in the function */
	const char *name; /* "ext4_file_read_iter", with " [module]" if it is one's */
};

/* What a value of a key of type WAFFLE_KEY_CODE stands for: a function of a process, or the name
 * under which a handle was got. Of several for a value that counts which holds from the latest time
 * at or before the record's, and of those with the same time the last. */
struct store_name {
	uint64_t value;
	uint32_t pid;
	const char *name; /* demangled; "": it is not known what the value stands for since then */
	uint64_t since;   /* 0: from the begin on, as in older files */
};

/* ---- writer ---- */

struct store_writer;

/*
 * Creates a file beside `path`, for the user who called sudo only (util/output.h). It gets its
 * name, and replaces an old file of that name, with store_writer_publish() or store_writer_close().
 */
int store_writer_open(struct store_writer **writer, const char *path, const struct store_meta *meta,
		      struct error *err);

/* The same while programs are traced: another process writes the file, and nothing here waits for
 * its file system (store/file_process.h) but this, until `stop` is readable (-EINTR). */
int store_writer_open_apart(struct store_writer **writer, const char *path, int stop,
			    const struct store_meta *meta, struct error *err);

/* How far that process has come. */
struct store_progress {
	size_t queued;     /* bytes in memory that it has not taken yet */
	uint64_t kept;     /* bytes that are in the file */
	uint64_t moved_ns; /* when it last took or finished anything */
	bool busy;         /* not all is in the file */
};
struct store_progress store_writer_progress(struct store_writer *writer);
/* Waits until there may be progress, `stop` is readable, or so many ms have passed. */
void store_writer_wait(struct store_writer *writer, int stop, int ms);

/* Gives the file its name: from now on a killed writer leaves a readable file. */
int store_writer_publish(struct store_writer *writer, struct error *err);
/* Frees the writer. Removes its file unless that was published; an old file stays. */
void store_writer_discard(struct store_writer *writer);

/* Adds a site; sites are numbered 0, 1, … in the order of adding, and hits name them so. */
int store_writer_add_site(struct store_writer *writer, const struct site_info *site,
			  struct error *err);
int store_writer_add_process(struct store_writer *writer, const struct store_process *process,
			     struct error *err);

/* Whether there is room for one more stack, object or name. Readers keep all tables in memory, so
 * the tables are limited. If not, the entry is counted as left out. */
bool store_writer_has_room(struct store_writer *writer);
uint64_t store_writer_left_out(const struct store_writer *writer);

/* Each adds an entry to its table; strings and arrays are copied. Returns 0 also if there is no
 * room, so a caller that numbers entries has to check before. */
int store_writer_add_stack(struct store_writer *writer, const struct store_stack *stack,
			   struct error *err);
int store_writer_add_object(struct store_writer *writer, const struct store_object *object,
			    struct error *err);
int store_writer_add_mapping(struct store_writer *writer, const struct store_mapping *mapping,
			     struct error *err);
int store_writer_add_symbol(struct store_writer *writer, const struct store_symbol *symbol,
			    struct error *err);
int store_writer_add_name(struct store_writer *writer, const struct store_name *name,
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

/* Writes the rest, the time index and the final counts: what store_writer_close() does unless it
 * was done before. Of one that is apart this queues only: wait until it is not busy, then close it.
 */
void store_writer_finish(struct store_writer *writer, uint64_t end_ts,
			 const struct store_counts *counts);
/* Finishes the file, and frees the writer, also on an error. What is queued is not waited for. */
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
/* By number, from 1 on; NULL for 0 and what is not there. Mappings, symbols, names: from 0 on. */
const struct store_stack *store_reader_stack(const struct store_reader *reader, uint32_t number);
const struct store_object *store_reader_object(const struct store_reader *reader, uint32_t number);
uint32_t store_reader_mapping_count(const struct store_reader *reader);
const struct store_mapping *store_reader_mapping(const struct store_reader *reader, uint32_t index);
uint32_t store_reader_symbol_count(const struct store_reader *reader);
const struct store_symbol *store_reader_symbol(const struct store_reader *reader, uint32_t index);
uint32_t store_reader_name_count(const struct store_reader *reader);
const struct store_name *store_reader_name(const struct store_reader *reader, uint32_t index);
/* The writer did not finish, or the file was cut: how many bytes at its end can't be used. */
bool store_reader_truncated(const struct store_reader *reader, uint64_t *bytes);
/* How many table entries were skipped, because they need more memory than our writer allows. */
uint64_t store_reader_skipped(const struct store_reader *reader);
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
/* The number of that record in the file, from 1 on and whatever the window is; 0 for the task
 * records that a window begins with, which are copies. */
uint64_t store_reader_number(const struct store_reader *reader);

#endif
