/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the stack of a thread that is blocked, from the registers with which it entered the kernel,
 * by reading the memory of its process. */
#ifndef WAFFLE_CAPTURE_ENRICH_HALTED_STACK_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_HALTED_STACK_INTERNAL_H

#include "bpf/record.h"
#include "target/process/image.h"

/* The unwinding tables of the files of a process. A table is made when a walk needs it, unless that
 * would be after `until_ns` of CLOCK_MONOTONIC. NULL: out of memory, or no such process. */
struct halted_code;
struct halted_code *halted_code_open(pid_t pid, uint64_t until_ns);
void halted_code_close(struct halted_code *code);

/* Writes up to `room` addresses, innermost first, and returns their number. `code` NULL, and code
 * without a table: frame pointers are followed. */
uint32_t halted_stack_walk(uint64_t *addresses, uint32_t room,
			   const struct waffle_rec_halted *halted, const struct image *image,
			   struct halted_code *code);

#endif
