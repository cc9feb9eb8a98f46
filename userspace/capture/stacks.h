/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of spans and events. Gives the kernel the unwinding tables of the files that a process has
 * mapped, and decodes its records. A file's table is made once, when the first process that maps it
 * is looked at. A thread of its own makes it, since a large library takes some tenths of a second.
 * Until then code without frame pointers has no callers.
 */
#ifndef WAFFLE_CAPTURE_STACKS_H
#define WAFFLE_CAPTURE_STACKS_H

#include "probe/kernel.h"
#include "store/store.h"

struct stacks;

int stacks_open(struct stacks **stacks, struct kernel *kernel, struct store_writer *writer,
		struct error *err);
void stacks_free(struct stacks *stacks);

/* Looks at what a process has mapped now. A process that is gone is no error; -ENOMEM. */
int stacks_process(struct stacks *stacks, pid_t pid, struct error *err);
/* Takes over the tables that were made since the last call. 0 or -ENOMEM. */
int stacks_round(struct stacks *stacks, struct error *err);
/* The same, after waiting for all of them; while programs are traced, for some milliseconds. */
int stacks_ready(struct stacks *stacks, bool traced, struct error *err);
/* What stacks lack, and why; NULL: nothing that is known. */
const char *stacks_warning(const struct stacks *stacks);
/* Prepares the table of a file before processes map it. `fd` stays the caller's. */
void stacks_file(struct stacks *stacks, int fd, const char *path);
/* A process has a child. The BPF programs know that already: bpf/stack.h. */
int stacks_fork(struct stacks *stacks, pid_t parent, pid_t child, struct error *err);
/* The process has ended, or runs a new program. */
void stacks_forget(struct stacks *stacks, pid_t pid);

/* Remembers a code object of Python. */
int stacks_code(struct stacks *stacks, const struct waffle_rec_code *code);

/*
 * A stack of Python as addresses, as many as frames->python_count at most: STORE_PYTHON and a
 * number, for which the file has a name, "Trainer.step (/srv/train.py:31)". `words`: two a frame,
 * as the record has them. Code objects that the kernel told nothing of, because records were lost,
 * are looked up in the process; what is not found is "?". How many, or a negative errno: of
 * writing.
 */
int stacks_python(struct stacks *stacks, const struct waffle_rec_frames *frames,
		  const uint64_t *words, uint64_t *addresses, struct error *err);

#endif
