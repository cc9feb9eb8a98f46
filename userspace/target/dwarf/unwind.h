/* SPDX-License-Identifier: Apache-2.0 */
/* Combines a process's mappings and the unwind tables of its files (target/dwarf/cfi.h) into the
 * form that the BPF programs use (bpf/unwind.h). */
#ifndef WAFFLE_TARGET_DWARF_UNWIND_H
#define WAFFLE_TARGET_DWARF_UNWIND_H

#include "bpf/unwind.h"
#include "target/dwarf/cfi.h"
#include "target/process/process.h"

/*
 * Sets start, end and base of `placed` for a table whose file is mapped like this. Its `pages` stay
 * unchanged. False: no code of the file lies in the mapping.
 */
bool unwind_place(struct waffle_unwind_mapping *placed, const struct mapping *mapping,
		  const struct elf_segments *segments, const struct cfi_table *table);

#endif
