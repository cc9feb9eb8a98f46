/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enriches records on their way from the drain to the file. The kernel's records contain the
 * kernel's stack numbers and inodes; these become entries of the file's tables. /proc is read some
 * milliseconds after a record was made. So less is known of processes that have exited by then.
 */
#ifndef WAFFLE_CAPTURE_DETAILS_H
#define WAFFLE_CAPTURE_DETAILS_H

#include "probe/kernel.h"
#include "store/store.h"
#include "target/mmap_watch.h"

struct details;

int details_open(struct details **details, struct kernel *kernel, struct store_writer *writer,
		 struct error *err);
void details_close(struct details *details);

/* Adds a mapping event of any process. Events of targets are processed in order with the records.
 * `traced`: the process is known to be a target. */
void details_told(struct details *details, const struct mmap_event *event, bool traced);
/* Announces the records before `before_ts`. All older mapping events must have been passed to
 * details_told(). Negative errno: writing failed. */
int details_round(struct details *details, uint64_t before_ts, struct error *err);
/* Call it at the end, after all records. */
int details_finish(struct details *details, struct error *err);

/* Enriches a record in place. Records must come in order. Negative errno: writing failed. */
int details_record(struct details *details, struct waffle_rec *rec, struct error *err);

/* Prepares a file before a process maps it. */
void details_file(struct details *details, int fd, const char *path);
/* The same for the libraries that a new program will map, if stacks are recorded. */
void details_needed(struct details *details, pid_t pid);

/* A process has a new program or mapping. Writes its mappings now, while it lives. */
int details_process(struct details *details, pid_t pid, struct error *err);
/* Waits until the unwind tables of its files are made. While programs are traced, it waits at most
 * some milliseconds. */
int details_tables(struct details *details, bool traced, struct error *err);
/* The process has ended. Its exit record may be missing. */
void details_forget(struct details *details, pid_t pid);

/* Number of recorded stacks (of waits, wake-ups, spans and events) that are not in the file. The
 * file's table was full, or too many others arrived while a thread waited. */
uint64_t details_stacks_left_out(const struct details *details);
/* Describes what stacks of spans lack. NULL: nothing known. */
const char *details_stack_warning(const struct details *details);

#endif
