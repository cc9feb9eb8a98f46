/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a compilation unit and those inlined into them, by address. */
#ifndef WAFFLE_TARGET_DWARF_DWARF_SCOPES_INTERNAL_H
#define WAFFLE_TARGET_DWARF_DWARF_SCOPES_INTERNAL_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct dwarf_scopes;

struct dwarf_scope {
	Dwarf_Die die;
	uint32_t parent; /* the enclosing scope, or SCOPE_NONE */
	bool inlined;    /* inlined into its parent */
	/* For dwarf_index.c, which fills these in at the first lookup: */
	bool read, mangled;
	uint32_t call_line;
	const char *name, *call_file;
};
#define SCOPE_NONE UINT32_MAX

/* Ranges that are always allowed for a unit, however small: ranges lie in a section of their
 * own. */
#define DWARF_RANGES_MIN 65536

/*
 * Walks at most `budget` entries of a unit, so that damaged links cannot make the walk endless.
 * *scopes is NULL if the unit has no scopes. Returns 0 or -ENOMEM.
 */
int dwarf_scopes_read(struct dwarf_scopes **scopes, Dwarf_Die *unit, uint64_t budget);
void dwarf_scopes_free(struct dwarf_scopes *scopes);

/* The innermost scope at an address, or NULL. `scopes` may be NULL. */
struct dwarf_scope *dwarf_scopes_find(struct dwarf_scopes *scopes, uint64_t address);
/* The enclosing scope. NULL: none. */
struct dwarf_scope *dwarf_scope_parent(struct dwarf_scopes *scopes,
				       const struct dwarf_scope *scope);
/* Start of the scope's range that contains the address. Returns the address itself if none does. */
uint64_t dwarf_scope_start(struct dwarf_scope *scope, uint64_t address);

#endif
