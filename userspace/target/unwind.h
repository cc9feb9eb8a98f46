/* SPDX-License-Identifier: Apache-2.0 */
/* From a process's mappings and the tables of its files (target/cfi.h) to what the kernel's
 * programs unwind with (bpf/unwind.h). */
#ifndef WAFFLE_TARGET_UNWIND_H
#define WAFFLE_TARGET_UNWIND_H

#include "bpf/unwind.h"
#include "target/cfi.h"
#include "target/process.h"

/*
 * Where a table's rows lie in a process that has mapped its file so: start, end and base of
 * `placed`; its pages stay as they are. False: no code of the file is there.
 */
bool unwind_place(struct waffle_unwind_mapping *placed, const struct mapping *mapping,
		  const struct elf_segments *segments, const struct cfi_table *table);

#endif
