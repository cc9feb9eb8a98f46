// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the table of functions of a Go program: what is read of it is sorted, and all names
 * end within the table. */
#include <stdint.h>
#include <string.h>

#include "../unit/go_file.h"
#include "require.h"
#include "target/elf/elffile.h"
#include "target/elf/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct symtab *symtab, size_t size)
{
	uint64_t before = 0, start;

	for (size_t i = 0; i < symtab->list.len; i++) {
		const struct symtab_entry *entry = &symtab->list.data[i];
		const char *name = symtab_find(symtab, entry->start, &start);

		require(entry->start >= before && entry->end > entry->start);
		require(name && start == entry->start && strlen(name) < size);
		before = entry->end;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symtab symtab;
	struct elf_file file;

	require(!elf_file_open_fd(&file, go_file(data, size), "go"));
	if (!symtab_read_go(&symtab, file.elf)) {
		check(&symtab, size);
		symtab_free(&symtab);
	}
	elf_file_close(&file);
	return 0;
}
