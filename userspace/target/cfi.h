/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's call frame information (.eh_frame and .debug_frame) as a table of rows that the
 * kernel's programs can search (bpf/unwind.h). The format is that of DWARF 5, section 6.4, with the
 * changes of the Linux Standard Base, "Exception Frames". The file is not trusted: an entry that
 * makes no sense is left out, and what a row cannot say is marked as such.
 */
#ifndef WAFFLE_TARGET_CFI_H
#define WAFFLE_TARGET_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind.h"
#include "target/elffile.h"

/* Rows sorted by address; there is a row where functions end. */
struct cfi_table {
	uint64_t base; /* link-time address that rows count from */
	struct waffle_unwind_row *rows;
	size_t count;
	size_t functions; /* entries that were read */
	size_t bad;       /* entries that were left out */
	bool cut;         /* the file exceeds the limit: the rest of its code has no rows */
};

/* Linkers write a row in about five bytes of .eh_frame. */
#define CFI_ROWS_MAX (8u << 20)

/* A file without such information is no error: an empty table. -ENOMEM. */
int cfi_table_read(struct cfi_table *table, const struct elf_file *file);
void cfi_table_free(struct cfi_table *table);

/* What holds at a link-time address; NULL: no function is known there. */
const struct waffle_unwind_row *cfi_table_find(const struct cfi_table *table, uint64_t address);

#endif
