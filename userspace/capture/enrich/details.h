/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enriches records on their way from the drain to the file. The kernel's records contain the
 * kernel's stack numbers and inodes; these become entries of the file's tables. /proc is read some
 * milliseconds after a record was made. So less is known of processes that have exited by then.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_DETAILS_H
#define WAFFLE_CAPTURE_ENRICH_DETAILS_H

#include "capture/enrich/told_internal.h"
#include "kernel/kernel.h"
#include "store/store.h"

struct details;

int details_open(struct details **details, struct kernel *kernel, struct store_writer *writer,
		 struct error *err);
void details_close(struct details *details);

/* Whether a process runs a privileged program, whose memory and environment are not read. */
bool details_is_private(const struct details *details, pid_t pid);
/* Whether mapping events are needed. */
bool details_wants_mappings(const struct details *details);
/* Adds a mapping event of any process. Pass it before the records from its time on. Negative errno:
 * writing failed. */
int details_told(struct details *details, const struct told_event *told, struct error *err);
/* Call it before each round of the drain. Negative errno: writing failed. */
int details_round(struct details *details, struct error *err);
/* Call it at the end, after all records. */
int details_finish(struct details *details, struct error *err);

/*
 * The stages that enrich a record in place, in this order; capture/stages.c lists the kinds of
 * records of each. Records must come in order of time. Negative errno: writing failed; -EINVAL: the
 * record is malformed, or the file has no room for what it says.
 */
/* Which threads belong to which process, and whether the process may be read. `gains_rights`: an
 * exec gave the program privileges. */
void details_process_record(struct details *details, const struct waffle_rec *rec,
			    bool gains_rights);
/* What is mapped in a process that forked, called exec or ended. */
int details_address_space(struct details *details, const struct waffle_rec *rec, bool gains_rights,
			  struct error *err);
/* The file, device or cgroup that a thread waited for. */
int details_object(struct details *details, struct waffle_rec *rec, struct error *err);
/* The mappings of the addresses of page faults. */
int details_addresses(struct details *details, const struct waffle_rec *rec, struct error *err);
/* Stacks, which get the file's numbers. */
int details_stacks(struct details *details, struct waffle_rec *rec, struct error *err);
/* Wake-ups by an interrupt, which only the kernel stack shows. The flags of the later switch repeat
 * those of the wake-up. */
void details_interrupt(struct details *details, struct waffle_rec *rec);

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
/* Number of recorded mappings without the facts of their files: memory_unparsed(). */
uint64_t details_unparsed(const struct details *details);
/* Describes what stacks of spans lack. NULL: nothing known. */
const char *details_stack_warning(const struct details *details);

#endif
