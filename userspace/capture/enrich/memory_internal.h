/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the mappings of processes to the capture, so that addresses can be named later. /proc is
 * read at the first request for a process, and again for an address outside all known mappings. If
 * that finds nothing new (code generated at run time), it is repeated less and less often. If a
 * process has exited by then, only the mappings reported by the kernel are known.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_MEMORY_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_MEMORY_INTERNAL_H

#include <sys/types.h>

#include "kernel/kernel.h"
#include "store/store.h"
#include "target/process/mmap_watch.h"

struct memory;

/* Without `kernel`, assumes that no process calls exec while its mappings are read. */
int memory_open(struct memory **memory, const struct kernel *kernel, struct store_writer *writer,
		struct error *err);
void memory_close(struct memory *memory);

/* Writes the mappings of the addresses that a record of `ts` contains. With 0 addresses, writes all
 * mappings of the process. A process that is gone, or runs another program by now, is no error. */
int memory_need(struct memory *memory, pid_t pid, uint64_t ts, const uint64_t *addresses,
		uint32_t count, struct error *err);

/* How many of the first addresses lay in code at `ts`, as far as is known. After a function without
 * a frame pointer, unwinding by frame pointers continues with garbage. */
uint32_t memory_code(const struct memory *memory, pid_t pid, uint64_t ts, const uint64_t *addresses,
		     uint32_t count);

/* A new process has the mappings of its parent. If it has exited when it is first requested, those
 * of the parent are used. */
void memory_fork(struct memory *memory, pid_t parent, pid_t child);

/*
 * Adds a mapping event of a traced process, or MMAP_LOST. All calls must be ordered by time. The
 * kernel maps a new program before its exec completes, and only the exec's record says whether the
 * program gained privileges. With `may_get_rights`, its mappings wait for memory_exec().
 */
int memory_told(struct memory *memory, const struct mmap_event *event, bool may_get_rights,
		struct error *err);

/* Writes mappings that waited until their files were parsed. With `all`, also writes the others,
 * without the facts of their files. */
int memory_late(struct memory *memory, bool all, struct error *err);
/* Number of mappings that were written without the facts of their files, since these were not
 * parsed in time, or too many waited for that. */
uint64_t memory_unparsed(const struct memory *memory);

/* The process has run a new program since `ts`, so its old mappings are forgotten. For a privileged
 * program nothing is written. */
int memory_exec(struct memory *memory, pid_t pid, uint64_t ts, bool has_rights, struct error *err);

/* The process has ended. */
void memory_forget(struct memory *memory, pid_t pid);

#endif
