/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .waffle file: captures write it, and all other commands read it. docs/file-format.md
 * describes its layout. A chunk is either whole or ignored: if the writer is killed at any byte,
 * readers use the file up to its last whole chunk.
 */
#ifndef WAFFLE_STORE_STORE_H
#define WAFFLE_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/host.h"
#include "store/record.h"
#include "target/elf/site.h"
#include "util/error.h"

/* In a finished file, produced = delivered + lost. */
struct store_counts {
	uint64_t produced;
	uint64_t delivered;
	uint64_t lost;
};

/* Facts about a capture. Strings may be empty, never NULL. */
struct store_meta {
	uint64_t start_ts, end_ts; /* CLOCK_MONOTONIC ns; end_ts 0: the writer did not finish */
	uint64_t boot_ns;          /* CLOCK_BOOTTIME when CLOCK_MONOTONIC was start_ts */
	uint64_t real_ns;          /* CLOCK_REALTIME at the same time */
	const char *hostname;
	const char *kernel;  /* uname release */
	const char *machine; /* uname machine */
	const char *version; /* of waffle-bpf */
	const char *command; /* the traced command, for display */
	const char *filter;  /* the capture's filter expression; empty: none */
	const char *sources; /* the recorded sources, "spans,sched,io"; empty: an older file */
	const char *boot_id; /* /proc/sys/kernel/random/boot_id; empty: an older file */
	const char *trigger; /* why the flight recorder wrote the file; empty: it did not */
	uint64_t trigger_ts; /* when; 0 without `trigger` */
	uint32_t cpu_count;
	bool sched; /* the scheduler source was on */
	/* At the end, or in the last counts chunk if the file is truncated. */
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
};

/* Facts about a process (command line, parent) from outside the record stream. */
struct store_process {
	uint32_t pid, ppid;
	uint64_t ts;         /* when they were read */
	const char *cmdline; /* arguments joined by spaces */
};

/*
 * Entries of tables, which records refer to by number. The first entry added has number 1; 0 means
 * none. An entry may follow the records that refer to it, both in the capture and in the file.
 */

/* A stack: return addresses, innermost first. */
struct store_stack {
	const uint64_t *addresses;
	uint32_t count;
	uint32_t pid; /* 0: a kernel stack */
	bool cut;     /* the real stack is known to be deeper */
};
#define STORE_STACK_MAX 127 /* addresses; PERF_MAX_STACK_DEPTH */

/* An address of a user stack with this bit is no address but a frame of a run-time: the `value` of
 * a store_name of the process. That of Python is "Trainer.step (/srv/train.py:31)", that of the JVM
 * begins with STORE_JVM: "[JVM] com.acme.OrderBook.match". */
#define STORE_NAMED (1ull << 63)
#define STORE_JVM "[JVM] "

/* Lengths of the name and the detail of an object. A reader refuses a file with longer ones, which
 * waffle does not write: an export has them with each wait for the object. */
#define STORE_OBJECT_NAME_MAX 4095u
#define STORE_OBJECT_DETAIL_MAX 255u

/* A named object that a thread can wait for. */
struct store_object {
	uint64_t ino;
	uint32_t dev;     /* in the kernel's numbering of devices; 0: only `name` is known */
	uint32_t pid;     /* process in which it was seen as a descriptor or address */
	const char *name; /* "/data/shard-7", "pipe:[123]", "socket:[45]", "anon_inode:[timerfd]" */
	/* `detail`: the endpoints of a socket, "tcp 10.0.0.1:80 -> 10.0.0.2:5000"; the type of a
	 * file system, "ext4"; "cgroup cpu"; what an epoll instance watches; else "". */
	const char *detail;
};

/* An executable segment of an ELF file, with the address that the linker gave it. */
struct store_segment {
	uint64_t offset;  /* in the file */
	uint64_t address; /* link-time */
	uint64_t size;    /* in the file */
};
#define STORE_SEGMENTS_MAX 8 /* of a file */

/* A mapping of a file in a process, executable or not, for resolving addresses. Without a path: an
 * unknown mapping replaced that of a file. */
struct store_mapping {
	uint64_t ts; /* when it was seen */
	uint64_t start, end, offset;
	uint64_t ino;
	uint32_t dev;
	uint32_t pid;
	const char *path;
	uint8_t build_id[20];
	uint32_t build_id_bytes; /* 0: none */
	/* Segments of the file, so that its debug file alone is enough to symbolize. Present only
	 * for executable mappings; older files have none. */
	const struct store_segment *segments;
	uint32_t segment_count;
};

/* A kernel address that occurs in a stack, with the name from the kernel that was running. */
struct store_symbol {
	uint64_t address;
	uint32_t offset; /* of the address within the function */
	/* "ext4_file_read_iter", followed by " [module]" for a function of a module. */
	const char *name;
};

/* Meaning of a value of a key of type WAFFLE_KEY_CODE: a function of a process, or the name under
 * which a handle was obtained. If a value has several entries, the latest one at or before the
 * record's time is valid; of entries with equal times, the last one. */
struct store_name {
	uint64_t value;
	uint32_t pid;
	const char *name; /* demangled; "": the meaning is unknown from `since` on */
	uint64_t since;   /* 0: from the beginning, as in older files */
};

/* ---- writer ---- */

struct store_writer;

/*
 * Creates a file in the folder of `path` that only the user who called sudo can read
 * (util/output.h). store_writer_publish() or store_writer_close() gives it the final name and
 * replaces an old file of that name.
 */
int store_writer_open(struct store_writer **writer, const char *path, const struct store_meta *meta,
		      struct error *err);

/* The same, but never replaces an old file: -EEXIST. */
int store_writer_open_new(struct store_writer **writer, const char *path,
			  const struct store_meta *meta, struct error *err);

/* The same as store_writer_open() for a file that somebody else opens, publishes and closes: the
 * writer only makes its bytes. `write` takes all of them or returns a negative errno with a
 * message. `path` is for messages. */
struct store_outlet {
	int (*write)(void *arg, const void *data, size_t bytes, struct error *err);
	void *arg;
};
int store_writer_open_outlet(struct store_writer **writer, const char *path,
			     const struct store_outlet *outlet, const struct store_meta *meta,
			     struct error *err);

/* The same for use while programs are traced: a separate process writes the file
 * (store/file_process_internal.h). With `only_new` an old file is never replaced (-EEXIST). Only
 * this call waits for the file system; it returns -EINTR when `stop` becomes readable. */
int store_writer_open_apart(struct store_writer **writer, const char *path, bool only_new, int stop,
			    const struct store_meta *meta, struct error *err);

/* Progress of that process. */
struct store_progress {
	size_t queued;     /* bytes in memory that it has not accepted yet */
	uint64_t kept;     /* bytes in the file */
	uint64_t moved_ns; /* when it last accepted or finished anything */
	bool busy;         /* some bytes are not in the file yet */
};
struct store_progress store_writer_progress(struct store_writer *writer);
/* Waits until progress is likely, `stop` is readable, or `ms` milliseconds have passed. */
void store_writer_wait(struct store_writer *writer, int stop, int ms);

/* Gives the file its final name. From now on a killed writer leaves a readable file. */
int store_writer_publish(struct store_writer *writer, struct error *err);
/* Whether it has it by now. */
bool store_writer_is_published(struct store_writer *writer);
/* Frees the writer. Removes its file unless it was published; an old file of that name stays. */
void store_writer_discard(struct store_writer *writer);

/* Adds a site. Sites are numbered 0, 1, … in the order of adding, and hits refer to them by
 * number. */
int store_writer_add_site(struct store_writer *writer, const struct site_info *site,
			  struct error *err);
int store_writer_add_process(struct store_writer *writer, const struct store_process *process,
			     struct error *err);

/* The hosts of a job, in the order of their indexes. A file without any is of one host, which META
 * describes. */
int store_writer_add_host(struct store_writer *writer, const struct store_host *host,
			  struct error *err);
/* Their processes have to be added in the same order. */
int store_writer_add_capture(struct store_writer *writer, const struct store_capture *capture,
			     struct error *err);
int store_writer_add_transport(struct store_writer *writer, const struct store_transport *transport,
			       struct error *err);
int store_writer_add_rank(struct store_writer *writer, const struct store_rank *rank,
			  struct error *err);
int store_writer_add_attribute(struct store_writer *writer, const struct store_attribute *attribute,
			       struct error *err);

/* Whether there is room for one more stack, object or name. The tables are limited because readers
 * keep them in memory. False counts the entry as left out. */
bool store_writer_has_room(struct store_writer *writer);
uint64_t store_writer_left_out(const struct store_writer *writer);

/* These functions add an entry to a table and copy its strings and arrays. They also return 0 when
 * there is no room, so a caller that numbers entries calls store_writer_has_room() before. */
enum store_numbered { STORE_STACKS, STORE_OBJECTS };
/* The number that the next stack or object gets. With a file they are numbered from 1. */
uint32_t store_writer_next(const struct store_writer *writer, enum store_numbered what);
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
 * Appends a record. Records should come roughly in the order of their times; a late one costs a few
 * more bytes. After an error (disk full) the file is readable up to its last whole chunk, and every
 * further call returns the same error.
 */
int store_writer_append(struct store_writer *writer, const struct waffle_rec *rec,
			struct error *err);

/* Writes all buffered records as a chunk, followed by the counts so far. Call it at least once a
 * second. */
int store_writer_flush(struct store_writer *writer, const struct store_counts *counts,
		       struct error *err);

/* Records on disk in whole chunks, and the file's size so far in bytes. */
uint64_t store_writer_persisted(const struct store_writer *writer);
uint64_t store_writer_bytes(const struct store_writer *writer);

/* Writes the remaining records, the time index and the final counts. store_writer_close() does so
 * unless it was done before. With a separate process this only queues them: wait until the progress
 * is not busy, then close. */
void store_writer_finish(struct store_writer *writer, uint64_t end_ts,
			 const struct store_counts *counts);
/* Finishes the file and frees the writer, also on an error. It does not wait for queued bytes. */
int store_writer_close(struct store_writer *writer, uint64_t end_ts,
		       const struct store_counts *counts, struct error *err);

/*
 * ---- a writer without a file ----
 *
 * It keeps the last records in memory, encoded, until they are written to files: the flight
 * recorder. Records are in segments, which are dropped as wholes, so that what is kept is complete
 * from a known time on. The tables are kept whole, within the limits of a file.
 */
int store_writer_open_memory(struct store_writer **writer, struct error *err);
/* Begins a segment. All records since `from_ts` are appended after this call. */
int store_writer_begin_segment(struct store_writer *writer, uint64_t from_ts, struct error *err);
/* Adds a record that only a file that begins with the current segment needs: the state of a thread.
 * Names of threads, speeds of CPUs and begins of open spans are added without this. */
int store_writer_append_head(struct store_writer *writer, const struct waffle_rec *rec,
			     struct error *err);
/* What is appended from now on was made at `now` or before, though records of tracks have any time
 * that a program gave them. Without this call, records were made at their own times. */
void store_writer_set_now(struct store_writer *writer, uint64_t now);
/* A process has ended by `now`, and all its records were appended. Without a file its rows in the
 * tables are dropped with the records. */
void store_writer_forget(struct store_writer *writer, uint32_t pid, uint64_t now);
/* Drops the oldest segments: those before the last one that begins at `from_ts` or earlier, and
 * more if more than `max_bytes` are in use. */
void store_writer_drop(struct store_writer *writer, uint64_t from_ts, uint64_t max_bytes);
/* Whether there are so many stacks or objects that some should be dropped. With a file: never. */
bool store_writer_should_sweep(const struct store_writer *writer, enum store_numbered what);
/* Drops stacks or objects to which no record refers that is kept, and that may_drop() lets go:
 * nobody appends the number again before it is that of a new one. */
void store_writer_sweep(struct store_writer *writer, enum store_numbered what,
			bool (*may_drop)(uint32_t number, void *arg), void *arg);
/* Without a file: drops the rows of tables that are not needed any more if the tables are large. */
void store_writer_compact(struct store_writer *writer);
/* How often store_writer_compact() has dropped rows. Each time, names of Python frames that no
 * stack needs may be dropped. With a file: 0. */
uint64_t store_writer_names_dropped(const struct store_writer *writer);
struct store_kept {
	uint64_t from_ts;       /* all records since then are kept */
	uint64_t bytes;         /* in use, without tables */
	uint64_t segment_bytes; /* of the current segment */
};
struct store_kept store_writer_kept(const struct store_writer *writer);
/* Copies all that is kept to a new writer of a file, with which nothing else was done. Close it
 * with these counts, which are those of the copied records and of the losses among them. */
int store_writer_dump(struct store_writer *from, struct store_writer *to,
		      struct store_counts *counts, struct error *err);

/* ---- reader ---- */

struct store_reader;

/* Time window to read, {0, UINT64_MAX} for everything. The reader skips chunks and records
 * outside. */
struct store_window {
	uint64_t from_ts, to_ts;
};
#define STORE_ALL ((struct store_window){0, UINT64_MAX})

/* Opens a file. Errors are, for example, "not a .waffle file" and "version 7 is newer than this
 * program". A truncated file is no error, see store_reader_truncated(). */
int store_reader_open(struct store_reader **reader, const char *path, struct error *err);

struct store_open_options {
	/* Gets one line without an end for each thing that is not as it should be, such as a file
	 * that was cut off or a rank without a file. NULL: nobody wants them. */
	void (*warn)(const char *line, void *arg);
	void *arg;
};

/*
 * Opens several files as one job, which reads as one file would. Pids, CPUs, sites and the entries
 * of tables get numbers of the job (store/host.h), and records come in the order of time, in the
 * clock of the first file's host. Files of one boot share a clock. The clocks of other hosts are
 * corrected by the wall clock at first; see store_reader_set_clock().
 *
 * It is an error if a file is given twice, if files are of different jobs, or if two of them traced
 * one process at the same time, because its spans would count twice.
 */
int store_reader_open_files(struct store_reader **reader, const char *const *paths, uint32_t count,
			    const struct store_open_options *options, struct error *err);
void store_reader_close(struct store_reader *reader);

const struct store_meta *store_reader_meta(const struct store_reader *reader);
uint32_t store_reader_site_count(const struct store_reader *reader);
const struct site_info *store_reader_site(const struct store_reader *reader, uint32_t index);
uint32_t store_reader_process_count(const struct store_reader *reader);
const struct store_process *store_reader_process(const struct store_reader *reader, uint32_t index);
/* At least one. Host 0 of a file of one capture is the host of META. */
uint32_t store_reader_host_count(const struct store_reader *reader);
const struct store_host *store_reader_host(const struct store_reader *reader, uint32_t index);
/* Sets how the times of a host are corrected. Seek before the next record is read. Returns -EINVAL
 * if there is no such host or the drift is beyond STORE_DRIFT_MAX; -ENOTSUP if the reader has a
 * single file, whose times are corrected already. */
int store_reader_set_clock(struct store_reader *reader, uint32_t host,
			   const struct store_clock *clock);
/* What each waffle-bpf recorded: one in a file, unless several files were merged into it. */
uint32_t store_reader_capture_count(const struct store_reader *reader);
const struct store_capture *store_reader_capture(const struct store_reader *reader, uint32_t index);
/* Ranks of processes. A process may have several entries, of which the last one is valid. */
uint32_t store_reader_transport_count(const struct store_reader *reader);
const struct store_transport *store_reader_transport(const struct store_reader *reader,
						     uint32_t index);
uint32_t store_reader_rank_count(const struct store_reader *reader);
const struct store_rank *store_reader_rank(const struct store_reader *reader, uint32_t index);
/* Other attributes of processes, in the order in which they were read. */
uint32_t store_reader_attribute_count(const struct store_reader *reader);
const struct store_attribute *store_reader_attribute(const struct store_reader *reader,
						     uint32_t index);
/* Stacks and objects are looked up by number, from 1; mappings, symbols and names by index, from 0.
 * NULL if there is no such entry. */
const struct store_stack *store_reader_stack(const struct store_reader *reader, uint32_t number);
const struct store_object *store_reader_object(const struct store_reader *reader, uint32_t number);
uint32_t store_reader_mapping_count(const struct store_reader *reader);
const struct store_mapping *store_reader_mapping(const struct store_reader *reader, uint32_t index);
uint32_t store_reader_symbol_count(const struct store_reader *reader);
const struct store_symbol *store_reader_symbol(const struct store_reader *reader, uint32_t index);
uint32_t store_reader_name_count(const struct store_reader *reader);
const struct store_name *store_reader_name(const struct store_reader *reader, uint32_t index);
/* True if the writer did not finish or the file was truncated. *bytes: the number of unusable bytes
 * at its end. */
bool store_reader_truncated(const struct store_reader *reader, uint64_t *bytes);
/* Whether a newer program wrote the file, so that the reader may skip records or members. */
bool store_reader_newer(const struct store_reader *reader);
/* Number of table entries skipped because they would need more memory than waffle's writer
 * allows. */
uint64_t store_reader_skipped(const struct store_reader *reader);
/* Number of data chunks in the file, and of chunks decoded since the last seek (for tests of the
 * index). */
uint64_t store_reader_chunks(const struct store_reader *reader, uint64_t *decoded);

/*
 * Starts at the first record of a window, which includes both ends. If the window begins after 0,
 * the reader first returns each thread's last task record before it, so that names are known.
 */
int store_reader_seek(struct store_reader *reader, struct store_window window, struct error *err);
/* Returns 1 and the next record, which is valid until the next call; 0 at the end, or a negative
 * errno. */
int store_reader_next(struct store_reader *reader, const struct waffle_rec **rec,
		      struct error *err);
/* Number of that record in the file, from 1, independent of the window. In a job, the numbers of a
 * file follow those of the file before it. 0 for the copied task records at the beginning of a
 * window. */
uint64_t store_reader_number(const struct store_reader *reader);

/* What a reader leaves out because its user does not need it. */
struct store_leave_out {
	uint32_t kinds; /* of records: bits 1 << WAFFLE_REC_… */
	/* Also spans in which nothing happened and to which nothing refers, of sites without roles
	 * and links, if the job has a span of a site for which this holds. All files are read once
	 * to find them. NULL: no spans. */
	bool (*leaves_if)(const struct site_info *site);
};
/* Leaves out records from the next seek on; NULL: none any more. */
int store_reader_leave_out(struct store_reader *reader, const struct store_leave_out *what,
			   struct error *err);

/* The records that were left out since the last seek, by kind: their number, and the time of the
 * latest one. */
struct store_left_out {
	uint64_t records[WAFFLE_REC_KIND_COUNT], last_ts[WAFFLE_REC_KIND_COUNT];
};
void store_reader_left_out(const struct store_reader *reader, struct store_left_out *left_out);

/* What store_reader_write() wrote. */
struct store_written {
	/* `records`: those that the kernel delivered, as info counts them. The file has fewer,
	 * since the tracer keeps some to itself. */
	uint64_t records, bytes;
	uint64_t left_out; /* entries of tables for which a file has no room */
};
/* Writes all that the reader presents to a file, which reads like the reader itself. Only the
 * numbers of records differ: in a job they count the files one after the other, in the new file all
 * records by time. An old file of that name stays until the new one is complete. */
int store_reader_write(struct store_reader *reader, const char *path, struct store_written *written,
		       struct error *err);

#endif
