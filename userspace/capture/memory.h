/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings of processes, written into the capture so that addresses can be named later: when a
 * process is first asked for, and again when an address is not in what is known, but ever more
 * seldom where that brings nothing (code made at run time). Code is also known by what the kernel
 * told of it, which is all there is if the process is gone by then.
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

/* Sees to it that the mappings of these addresses are in the capture. 0 addresses: those that the
 * process has now. A process that is gone is no error; those of writing are. */
int memory_need(struct memory *memory, pid_t pid, const uint64_t *addresses, uint32_t count,
		struct error *err);

/* How many addresses from the first on lie in code, as far as is known. A stack that was unwound by
 * frame pointers ends in nonsense where a function does not keep one. */
uint32_t memory_code(const struct memory *memory, pid_t pid, const uint64_t *addresses,
		     uint32_t count);

/* A new process that has the memory of its parent: if it is gone when it is asked for, the parent's
 * mappings stand for its own. */
void memory_fork(struct memory *memory, pid_t parent, pid_t child);

/*
 * What the kernel told of a traced process, or MMAP_LOST, in its turn among all calls here. A new
 * program is mapped before its exec is done, and only then the capture learns whether the exec gave
 * it rights. With `may_get_rights`, its first mappings wait for memory_exec().
 */
int memory_told(struct memory *memory, const struct mmap_event *event, bool may_get_rights,
		struct error *err);

/* The process runs a new program since `ts`: what was there before is forgotten. Of a program with
 * rights nothing is written. */
int memory_exec(struct memory *memory, pid_t pid, uint64_t ts, bool has_rights, struct error *err);

/* The process has ended: nothing is known of it any more. */
void memory_forget(struct memory *memory, pid_t pid);

#endif
