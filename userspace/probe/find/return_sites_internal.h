/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How to observe the end of a call. A return probe replaces the return address by the kernel's
 * trampoline. That breaks code that inspects or unwinds the stack: exceptions, pthread_cancel(),
 * coroutines, Go. With --machine-wide it affects every process that maps the file, not only traced
 * ones. So use return probes only for functions that are known to do nothing but return
 * (WAFFLE_CALL_NOUNWIND). For others we probe their return instructions. This changes nothing in
 * the program but costs more, since the kernel single-steps them.
 */
#ifndef WAFFLE_PROBE_FIND_RETURN_SITES_INTERNAL_H
#define WAFFLE_PROBE_FIND_RETURN_SITES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/dwarf/cfi_index.h"

/*
 * Whether a program survives a return probe on this kernel ("6.12.9-generic"). On x86-64, 6.11 to
 * 6.13 return through a system call (uretprobe()), which seccomp filters reject, for example those
 * of containers. The fix (cf6cb56ef244) is in 6.14 and in later updates of these releases, but the
 * version does not prove it.
 */
bool return_probe_is_safe(const char *release);

#define RETURN_SITES_MAX 64
#define LEAVES_MAX 32

/* All addresses are link-time. */
struct return_sites {
	uint32_t count, leave_count;
	uint64_t list[RETURN_SITES_MAX]; /* return instructions */
	uint64_t leaves[LEAVES_MAX];     /* targets of jumps that leave the function */
};

/* The stack state at an instruction. A function can only be left where it has nothing on the
 * stack. */
typedef enum cfi_stack (*return_sites_stack_fn)(uint64_t address, void *arg);

/*
 * Adds the return instructions of a function, or of a part of one. `code` holds all its `bytes`
 * bytes, which lie at `address`. An indirect jump belongs to a `switch` if it looks like one, or if
 * the stack is still in use. False: the function may be left by a jump to an unknown target, or its
 * code is not understood. Data among the code must not be mistaken for returns. So instructions
 * must begin at all targets of jumps, and no return may lie where the stack is in use.
 */
bool return_sites_add(struct return_sites *returns, uint16_t machine, const uint8_t *code,
		      size_t bytes, uint64_t address, return_sites_stack_fn stack, void *arg);

#endif
