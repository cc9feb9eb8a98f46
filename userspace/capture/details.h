/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enriches records between the drain and the file. The kernel's records refer to numbers of stacks
 * and to inodes; these become entries of the file's tables. /proc is read when a record passes,
 * some milliseconds after it was made, so less is known of a process that has exited by then.
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

/* The kernel reported a mapping, of any process. Those of targets take their turn among the
 * records. `traced`: the process is known to be a target. */
void details_told(struct details *details, const struct mmap_event *event, bool traced);
/* The records before `before_ts` come now. All mappings that are older than these were passed to
 * details_told(). Negative errno: of writing. */
int details_round(struct details *details, uint64_t before_ts, struct error *err);
/* At the end, when all records were seen. */
int details_finish(struct details *details, struct error *err);

/* Enriches a record, in place. They must come in order. Negative errno: of writing. */
int details_record(struct details *details, struct waffle_rec *rec, struct error *err);

/* Prepares for a file before a process maps it. */
void details_file(struct details *details, int fd, const char *path);
/* The same for the libraries that a new program will map, if stacks are wanted. */
void details_needed(struct details *details, pid_t pid);

/* A process has a new program or mapping. Writes its mappings now, while it lives. */
int details_process(struct details *details, pid_t pid, struct error *err);
/* Waits until the unwinding tables for their stacks are made; while programs are traced, for some
 * milliseconds only. */
int details_tables(struct details *details, bool traced, struct error *err);
/* The process has ended, whether or not its exit record arrived. */
void details_forget(struct details *details, pid_t pid);

/* How many stacks of waits, wake-ups, spans and events were taken but are not in the file so far:
 * the file's table was full, or too many others came while a thread waited. */
uint64_t details_stacks_left_out(const struct details *details);
/* What stacks of spans lack; NULL: nothing that is known. */
const char *details_stack_warning(const struct details *details);

#endif
