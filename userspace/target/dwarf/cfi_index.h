/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and end of a file's functions, and the stack state at single addresses, by its call frame
 * information (cfi.h). Stripped files have this information, too.
 */
#ifndef WAFFLE_TARGET_DWARF_CFI_INDEX_H
#define WAFFLE_TARGET_DWARF_CFI_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind.h"
#include "target/elf/elffile.h"

struct cfi_index;

/* Link-time addresses. A function whose code is split has one of these per part. */
struct cfi_function {
	uint64_t from, to;
};

/* Returns 0 or -ENOMEM. A file without call frame information has no functions. It has to stay
 * open. */
int cfi_index_open(struct cfi_index **index, const struct elf_file *file);
void cfi_index_close(struct cfi_index *index); /* NULL is allowed */

/* The function that contains an address. False: none is known, or `index` is NULL. */
bool cfi_index_find(const struct cfi_index *index, uint64_t address, struct cfi_function *function);

/* How far the stack at an instruction differs from the stack at function entry. */
enum cfi_stack {
	CFI_STACK_UNKNOWN, /* the file has no information for this address, or it is in .plt */
	CFI_STACK_ENTERED, /* the stack holds at most the return address */
	CFI_STACK_USED,    /* the stack is in use, so this is the middle of a function */
	CFI_STACK_NONE,    /* there is no return address: a thread begins here */
};
enum cfi_stack cfi_index_stack(const struct cfi_index *index, uint64_t address);

#endif
