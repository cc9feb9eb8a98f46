/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a compilation unit and those inlined into them, by address. */
#ifndef WAFFLE_TARGET_DWARF_SCOPES_H
#define WAFFLE_TARGET_DWARF_SCOPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct dwarf_scopes;

struct dwarf_scope {
	Dwarf_Die die;
	uint32_t parent; /* the scope around it, or SCOPE_NONE */
	bool inlined;    /* into its parent */
	/* For dwarf_index.c, which reads them when they are asked for: */
	bool read, mangled;
	uint32_t call_line;
	const char *name, *call_file;
};
#define SCOPE_NONE UINT32_MAX

/* Address ranges that a unit may have however small it is: they lie in a section of their own. */
#define DWARF_RANGES_MIN 65536

/*
 * Walks a unit, at most `budget` entries of it, so that damaged links among them cannot make it
 * endless. *scopes is NULL if there is nothing in it. Returns 0 or -ENOMEM.
 */
int dwarf_scopes_read(struct dwarf_scopes **scopes, Dwarf_Die *unit, uint64_t budget);
void dwarf_scopes_free(struct dwarf_scopes *scopes);

/* The innermost scope at an address, or NULL. `scopes` may be NULL. */
struct dwarf_scope *dwarf_scopes_find(struct dwarf_scopes *scopes, uint64_t address);
/* NULL: none. */
struct dwarf_scope *dwarf_scope_parent(struct dwarf_scopes *scopes,
				       const struct dwarf_scope *scope);
/* Where the range of the scope begins that the address lies in; the address if it is in none. */
uint64_t dwarf_scope_start(struct dwarf_scope *scope, uint64_t address);

#endif
