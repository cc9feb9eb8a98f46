/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the functions of a file begin and end, and what holds at single addresses of them, by its
 * call frame information (cfi.h). It is there in stripped files, too.
 */
#ifndef WAFFLE_TARGET_CFI_INDEX_H
#define WAFFLE_TARGET_CFI_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind.h"
#include "target/elffile.h"

struct cfi_index;

/* Link-time addresses. Of a function that has parts in several places it is one of these. */
struct cfi_function {
	uint64_t from, to;
};

/* A file without such information is no error. It has to stay open. -ENOMEM. */
int cfi_index_open(struct cfi_index **index, const struct elf_file *file);
void cfi_index_close(struct cfi_index *index); /* NULL is allowed */

/* The function that an address lies in; false: none is known there. NULL has none. */
bool cfi_index_find(const struct cfi_index *index, uint64_t address, struct cfi_function *function);

/* How far a thread at an instruction is from the state that a call enters a function with. */
enum cfi_stack {
	CFI_STACK_UNKNOWN, /* nothing is said of this address, or it is in .plt */
	CFI_STACK_ENTERED, /* nothing is on the stack but the return address, if it is there */
	CFI_STACK_USED,    /* something is, so this is the middle of a function */
	CFI_STACK_NONE,    /* there is no return address: a thread begins here */
};
enum cfi_stack cfi_index_stack(const struct cfi_index *index, uint64_t address);

#endif
