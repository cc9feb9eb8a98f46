/* SPDX-License-Identifier: Apache-2.0 */
/* A symbol table of an ELF file, sorted by address. The ELF file has to stay open. */
#ifndef WAFFLE_TARGET_ELF_SYMTAB_H
#define WAFFLE_TARGET_ELF_SYMTAB_H

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
	uint32_t name; /* offset in the string table, or in `names` */
	uint8_t rank;  /* the symbol with the highest rank names its address */
};

struct symtab {
	Elf *elf;
	size_t strings;    /* section index of the string table */
	const char *names; /* of Go's functions, in the file; NULL: they are in the string table */
	VEC(struct symtab_entry) list;
};

/* Reads a table of type SHT_SYMTAB or SHT_DYNSYM. -ENOENT: it has no such symbols; -ENOMEM. */
int symtab_read(struct symtab *symtab, Elf *elf, uint32_t type, enum symtab_kind kind);
/* Reads Go's own table of functions, in symtab_go.c. -ENOENT: the file has none that is known. */
int symtab_read_go(struct symtab *symtab, Elf *elf);
void symtab_free(struct symtab *symtab);

/*
 * The symbol that contains an address, or NULL. Among aliases it prefers the plainest name: "read"
 * over "__read". `start` may be NULL.
 */
const char *symtab_find(const struct symtab *symtab, uint64_t address, uint64_t *start);

/* Whether there is a symbol of that name. */
bool symtab_has(const struct symtab *symtab, const char *name);

/* Number of leading underscores; fewer make a plainer name. */
unsigned symbol_underscores(const char *name);

#endif
