/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's call frame information (.eh_frame and .debug_frame) as a table of rows that the BPF
 * programs can search (bpf/unwind.h). The format is that of DWARF 5, section 6.4, with the changes
 * of the Linux Standard Base, "Exception Frames". The file is not trusted: a malformed entry is
 * skipped, and a rule that a row cannot express is marked as such.
 */
#ifndef WAFFLE_TARGET_DWARF_CFI_H
#define WAFFLE_TARGET_DWARF_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind.h"
#include "target/elf/elffile.h"

/* Rows are sorted by address. The end of each function has a row, too. */
struct cfi_table {
	uint64_t base; /* rows hold addresses relative to this link-time address */
	struct waffle_unwind_row *rows;
	size_t count;
	void *memory;     /* which the rows are in; NULL: they have their own */
	size_t functions; /* number of entries that were read */
	size_t bad;       /* number of entries that were skipped */
	bool cut;         /* the file exceeds a limit: the rest of its code has no rows */
};

/* Upper bound of rows per file. A row corresponds to about five bytes of .eh_frame. */
#define CFI_ROWS_MAX (8u << 20)

/* Returns 0 or -ENOMEM. A file without call frame information yields an empty table. */
int cfi_table_read(struct cfi_table *table, const struct elf_file *file);
void cfi_table_free(struct cfi_table *table);
/* Frees the rows, when a copy of them is elsewhere. */
void cfi_table_free_rows(struct cfi_table *table);

/* The row that applies at a link-time address. NULL: no known function contains the address. */
const struct waffle_unwind_row *cfi_table_find(const struct cfi_table *table, uint64_t address);

#endif
