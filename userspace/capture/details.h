/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the drain and the file: replaces what the kernel's records of waits refer to (numbers of
 * stacks, inodes) by entries of the file's tables, and writes those. /proc is asked when a record
 * passes, some milliseconds after it was made: of a process that is gone by then, less is known.
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

/* What the kernel told of mappings of any process; of targets, it takes its turn among the records.
 * `traced`: the process is known to be a target. */
void details_told(struct details *details, const struct mmap_event *event, bool traced);
/* All of it was told that is older than records before `before_ts`, which come now. Negative errno:
 * of writing. */
int details_round(struct details *details, uint64_t before_ts, struct error *err);
/* At the end, when all records were seen. */
int details_finish(struct details *details, struct error *err);

/* Sees each record on its way to the file, in order, and changes it. Negative errno: of writing. */
int details_record(struct details *details, struct waffle_rec *rec, struct error *err);

/* The same for one file of it. */
void details_file(struct details *details, int fd, const char *path);
/* The libraries that a new program will map are looked at before it does, if that is of use. */
void details_needed(struct details *details, pid_t pid);

/* A process has a new program or mapping: what it has mapped is written while it lives. */
int details_process(struct details *details, pid_t pid, struct error *err);
/* Waits until the unwinding tables for their stacks are made; while programs are traced, for some
 * milliseconds only. */
int details_tables(struct details *details, bool traced, struct error *err);
/* The process has ended, whether or not its exit record arrived. */
void details_forget(struct details *details, pid_t pid);

/* What stacks of spans lack; NULL: nothing that is known. */
/* How many stacks of waits, wake-ups, spans and events were taken but are not in the file so far:
 * the file's table was full, or too many others came while a thread waited. */
uint64_t details_stacks_left_out(const struct details *details);
const char *details_stack_warning(const struct details *details);

#endif
