/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of inject.h. */
#ifndef WAFFLE_TARGET_INJECT_INJECT_INTERNAL_H
#define WAFFLE_TARGET_INJECT_INJECT_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "target/process/image.h"
#include "target/process/process.h"
#include "util/error.h"

/* ---- whether it may be done ---- */

/* Returns 0, or a negative errno with a message that says why not. */
int inject_check_process(pid_t pid, struct error *err);
int inject_check_file(pid_t pid, const char *library, struct error *err);

/* ---- functions of the process ---- */

/* What the process's libc has. */
struct inject_libc {
	uint64_t open;     /* dlopen() */
	int flags;         /* the second argument for it */
	uint64_t copy;     /* memccpy() */
	uint64_t errno_at; /* errno of a thread, from its thread pointer on */
	uint64_t restorer; /* code that calls rt_sigreturn() */
};
int inject_libc_find(struct inject_libc *libc, const struct image *image,
		     const struct mappings *mappings, struct error *err);

/* Whether a mapping is the first one of a loaded object. A program may also have mapped the file to
 * read it, as those do that name their own functions. */
bool inject_is_loaded(const struct mappings *mappings, size_t first);
/* Whether the process may run code at an address. */
bool inject_is_code(const struct mappings *mappings, uint64_t address);

/* A function of an object that is mapped at `base`, by the tables that its loader uses. 0: it has
 * none. */
uint64_t inject_symbol(const struct image *image, uint64_t base, const char *name);

/* ---- the system call in which a thread waits ---- */

/* Whether this is a system call in which no loader and no allocator waits with a lock. */
bool inject_call_is_safe(uint64_t number, const uint64_t arguments[6]);
/* Whether the registers are those of a thread that such a call was interrupted in. Then they become
 * those that make the call again. */
bool inject_call_rewind(struct user_regs_struct *registers);

/* ---- what the thread runs ---- */

/* Bytes that are written below the stack pointer at most, and that have to be free below them. */
#define INJECT_FRAME_MAX (32u << 10)
#define INJECT_STACK_MIN (192u << 10)
/* What ptrace() gives of a thread's vector registers at most: XSAVE with AMX has 11 KiB. */
#define INJECT_VECTORS_MAX (20u << 10)

struct inject_call {
	uint64_t function;
	const char *text;       /* the first argument, or … */
	uint64_t first, second; /* … `first`, and the second one */
};

struct inject_thread {
	struct user_regs_struct registers; /* to return to */
	uint64_t mask;                     /* signal mask */
	unsigned char vectors[INJECT_VECTORS_MAX];
	size_t vector_bytes;
	int error; /* errno */
};

/*
 * Lays out the memory from *at on that makes a thread call the function and then go on as it was,
 * and gives the registers to begin with. `mask` is the signal mask meanwhile. Returns the bytes, or
 * 0 if the vector registers have a form that is not known.
 */
size_t inject_frame_make(unsigned char frame[INJECT_FRAME_MAX], uint64_t *at,
			 struct user_regs_struct *begin, const struct inject_thread *thread,
			 const struct inject_libc *libc, const struct inject_call *call,
			 uint64_t mask);

/* ---- doing it ---- */

/* Makes a thread of the process call a function, and waits until it has. */
int inject_run(pid_t pid, const struct image *image, const struct inject_libc *libc,
	       const struct inject_call *call, struct error *err);

#endif
