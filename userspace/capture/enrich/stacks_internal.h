/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of spans and events. Loads the unwind tables of the files that a process has mapped into
 * the kernel, and decodes the records. A file's table is made once, when the first process that
 * maps the file is examined. A separate thread makes it, since a large library takes some tenths of
 * a second. Until then, stacks end at code without frame pointers, and count as early.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_STACKS_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_STACKS_INTERNAL_H

#include "kernel/kernel.h"
#include "store/store.h"
#include "target/process/jvm.h"
#include "target/process/python.h"

struct stacks;

int stacks_open(struct stacks **stacks, struct kernel *kernel, struct store_writer *writer,
		struct error *err);
void stacks_free(struct stacks *stacks);

/* Examines the current mappings of a process. `wait`: for the tables of its files, most of which
 * are made in milliseconds. A process that is gone is no error; -ENOMEM. */
int stacks_process(struct stacks *stacks, pid_t pid, bool wait, struct error *err);
/* Loads the tables that were finished since the last call. 0 or -ENOMEM. */
int stacks_round(struct stacks *stacks, struct error *err);
/* Waits for tables, then loads them: for `all`, or only for those that are there soon
 * (table_maker_wait()). While programs are traced, it waits some milliseconds at most. */
int stacks_ready(struct stacks *stacks, bool all, bool traced, struct error *err);
/* A user stack of `ts` is cut. It counts as early if not all tables of its process were there. */
void stacks_cut(struct stacks *stacks, uint32_t tgid, uint64_t ts);
/* Number of early stacks, which might not be cut with all tables. */
uint64_t stacks_early(const struct stacks *stacks);
/* Describes what stacks lack, and why. NULL: nothing known. */
const char *stacks_warning(const struct stacks *stacks);
/* Prepares the table of a file before processes map it. `fd` stays the caller's. */
void stacks_file(struct stacks *stacks, int fd, const char *path);
/* A process has a child, since `ts`. The BPF programs know that already: bpf/stack.h. */
int stacks_fork(struct stacks *stacks, pid_t parent, pid_t child, uint64_t ts, struct error *err);
/* The process has ended, or runs a new program, since `ts`. What was read of it later is of the
 * process or program that is there now, and stays. */
void stacks_forget(struct stacks *stacks, pid_t pid, uint64_t ts);

/* Stores a code object of Python. */
int stacks_code(struct stacks *stacks, const struct waffle_rec_code *code);

/*
 * Converts a Python stack to at most frames->python_count addresses. Each is STORE_NAMED with a
 * number, for which the file has a name: "Trainer.step (/srv/train.py:31)". `words`: two per frame,
 * as in the record. If the record of a code object was lost, the object is read from the process;
 * if that fails, the name is "?". Returns the number of addresses, or a negative errno: writing
 * failed.
 */
int stacks_python(struct stacks *stacks, const struct waffle_rec_frames *frames,
		  const uint64_t *words, uint64_t *addresses, struct error *err);

/* Names the frame of Java in a stack of a process, if it has a JVM, as jvm_frames_name() does. */
int stacks_jvm(struct stacks *stacks, struct store_stack *stack, uint64_t ts, uint64_t *addresses,
	       struct error *err);

/* The same for a thread that is blocked: whether the JVM of a process is known, whether an address
 * is in its code, and jvm_frames_step(). */
bool stacks_jvm_ready(struct stacks *stacks, uint32_t tgid, const struct image *image);
bool stacks_jvm_has(const struct stacks *stacks, uint32_t tgid, uint64_t address);
bool stacks_jvm_step(struct stacks *stacks, uint32_t tgid, const struct image *image,
		     struct jvm_frame *frame, uint64_t *address);

/* The interpreter of a process, valid until other functions are called. NULL: the process is not
 * known. */
const struct python *stacks_interpreter(const struct stacks *stacks, uint32_t tgid);

#endif
