/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the end of a call is seen. A return probe puts the kernel's trampoline in place of the return
 * address, which breaks what looks at the stack or leaves it otherwise: exceptions,
 * pthread_cancel(), coroutines, Go; and not only in traced processes, but wherever the file is
 * mapped when children are followed. So return probes are for functions of which is known that they
 * do nothing but return (WAFFLE_CALL_NOUNWIND). Of others the own return instructions are probed,
 * which changes nothing in the program but is dearer, as the kernel single-steps them.
 */
#ifndef WAFFLE_CALL_RETURNS_H
#define WAFFLE_CALL_RETURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/cfi_index.h"

/*
 * Whether a return probe leaves a program alive on a kernel ("6.12.9-generic"). On x86-64, 6.11 to
 * 6.13 return by a system call of its own (uretprobe()), which seccomp filters refuse, as those of
 * containers do. It was mended in 6.14 and in later updates of these (cf6cb56ef244), of which the
 * version does not tell for sure.
 */
bool returns_probe_is_safe(const char *release);

#define RETURNS_MAX 64
#define LEAVES_MAX 32

/* Link-time addresses. */
struct returns {
	uint32_t count, leave_count;
	uint64_t list[RETURNS_MAX];  /* of return instructions */
	uint64_t leaves[LEAVES_MAX]; /* where it jumps to outside of itself */
};

/* What is known of the stack at an instruction: a function can only be left where nothing of it is
 * there. */
typedef enum cfi_stack (*returns_stack_fn)(uint64_t address, void *arg);

/*
 * Adds the return instructions of a function, or a part of one, at `address`, of `bytes` bytes, all
 * of which are at `code`. A jump to what is in a register or in memory is one of a `switch` if it
 * looks so, or if the stack is still in use. False if the function may be left otherwise, by a jump
 * whose target is not known, or if it is not understood. Data among the code must not be taken for
 * returns: instructions have to begin where its jumps go, and returns are not where the stack is in
 * use.
 */
bool returns_add(struct returns *returns, uint16_t machine, const uint8_t *code, size_t bytes,
		 uint64_t address, returns_stack_fn stack, void *arg);

#endif
