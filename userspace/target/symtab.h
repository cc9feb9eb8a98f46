/* SPDX-License-Identifier: Apache-2.0 */
/* A symbol table of an ELF file, sorted by address. The ELF file has to stay open. */
#ifndef WAFFLE_TARGET_SYMTAB_H
#define WAFFLE_TARGET_SYMTAB_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/vec.h"

enum symtab_kind {
	SYMTAB_CODE, /* functions, and labels in code */
	SYMTAB_DATA, /* variables */
};

struct symtab_entry {
	uint64_t start, end;
	uint32_t name; /* offset in the string table */
	uint8_t rank;  /* of symbols at one address, the one to show has the highest */
};

struct symtab {
	Elf *elf;
	size_t strings; /* section of the names */
	VEC(struct symtab_entry) list;
};

/* Reads the table of a type (SHT_SYMTAB, SHT_DYNSYM). -ENOENT: none with such symbols; -ENOMEM. */
int symtab_read(struct symtab *symtab, Elf *elf, uint32_t type, enum symtab_kind kind);
void symtab_free(struct symtab *symtab);

/*
 * The symbol that an address lies in, or NULL. Of several names of one address (aliases) it is the
 * plainest: "read" rather than "__read". `start` may be NULL.
 */
const char *symtab_find(const struct symtab *symtab, uint64_t address, uint64_t *start);

/* Whether there is a symbol of that name. */
bool symtab_has(const struct symtab *symtab, const char *name);

/* The underscores that a name begins with; the fewer, the plainer. */
unsigned symbol_underscores(const char *name);

#endif
