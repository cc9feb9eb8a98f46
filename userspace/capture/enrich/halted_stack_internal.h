/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the stack of a thread that is blocked, from the registers with which it entered the kernel,
 * by reading the memory of its process. */
#ifndef WAFFLE_CAPTURE_ENRICH_HALTED_STACK_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_HALTED_STACK_INTERNAL_H

#include "bpf/record.h"
#include "capture/enrich/stacks_internal.h"
#include "target/process/image.h"

/* The code of a process, whose memory is `image`: the unwinding tables of its files, and its JVM,
 * whose frames get names in `stacks` (NULL: none). A table is made when a walk needs it, unless
 * that would be after `until_ns` of CLOCK_MONOTONIC. NULL: out of memory, or no such process. */
struct halted_code;
struct halted_code *halted_code_open(pid_t pid, const struct image *image, struct stacks *stacks,
				     uint64_t until_ns);
/* Whether it has a JVM. Only these walks name all its frames. */
bool halted_code_has_jvm(const struct halted_code *code);
void halted_code_close(struct halted_code *code);

/* Writes up to `room` addresses, or frames with STORE_NAMED, innermost first, and returns their
 * number. `code` NULL, and code
 * without a table: frame pointers are followed. */
uint32_t halted_stack_walk(uint64_t *addresses, uint32_t room,
			   const struct waffle_rec_halted *halted, const struct image *image,
			   struct halted_code *code);

#endif
