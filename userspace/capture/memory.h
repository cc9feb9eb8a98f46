/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the mappings of processes into the capture, so that addresses can be named later. They are
 * read in /proc when a process is first asked for, and again when an address is in none that is
 * known. Where that finds nothing new (code made at run time) it is repeated ever more seldom. For
 * a process that has exited by then, only the mappings that the kernel reported are known.
 */
#ifndef WAFFLE_CAPTURE_MEMORY_H
#define WAFFLE_CAPTURE_MEMORY_H

#include <sys/types.h>

#include "probe/kernel.h"
#include "store/store.h"
#include "target/mmap_watch.h"

struct memory;

/* Without `kernel`, assumes that no process calls exec while its mappings are read. */
int memory_open(struct memory **memory, const struct kernel *kernel, struct store_writer *writer,
		struct error *err);
void memory_close(struct memory *memory);

/* Writes the mappings of these addresses; with 0 addresses, all that the process has now. That a
 * process is gone is no error. */
int memory_need(struct memory *memory, pid_t pid, const uint64_t *addresses, uint32_t count,
		struct error *err);

/* How many of the first addresses lie in code, as far as is known. A stack that was unwound by
 * frame pointers goes on with nonsense behind a function that does not keep one. */
uint32_t memory_code(const struct memory *memory, pid_t pid, const uint64_t *addresses,
		     uint32_t count);

/* A new process has the memory of its parent. If it has exited when it is asked for, the parent's
 * mappings are used. */
void memory_fork(struct memory *memory, pid_t parent, pid_t child);

/*
 * The kernel reported a mapping of a traced process, or MMAP_LOST. All calls here are in the order
 * of time. The kernel maps a new program before its exec is done, and only the exec's record says
 * whether the program got rights. With `may_get_rights`, its mappings wait for memory_exec().
 */
int memory_told(struct memory *memory, const struct mmap_event *event, bool may_get_rights,
		struct error *err);

/* Writes mappings that waited until their files were parsed; with `all` the others, too, of which
 * no more is known then. */
int memory_late(struct memory *memory, bool all, struct error *err);

/* The process runs a new program since `ts`, so its old mappings are forgotten. Nothing is written
 * of a program with rights. */
int memory_exec(struct memory *memory, pid_t pid, uint64_t ts, bool has_rights, struct error *err);

/* The process has ended. */
void memory_forget(struct memory *memory, pid_t pid);

#endif
