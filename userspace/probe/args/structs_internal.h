/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a struct by its name in a file's DWARF. It may be in the unit of a source file, in a unit
 * that dwz or -fdebug-types-section split off, or in split DWARF.
 */
#ifndef WAFFLE_PROBE_ARGS_STRUCTS_INTERNAL_H
#define WAFFLE_PROBE_ARGS_STRUCTS_INTERNAL_H

#include "probe/spec/parse.h"
#include "target/dwarf/dwarf_file.h"
#include "util/map.h"

struct structs {
	struct dwarf_file *file;
	const char *name; /* qualified with namespaces */
	struct suggestions similar;
	const char *split_away; /* the missing .dwo file of a unit; or NULL */
	bool broken;            /* a part of the source file's DWARF cannot be read */
	Dwarf_Die found;
	bool done;
	/* State of the walk: units already searched, and the position in the current one. */
	struct map seen;
	const void *last;
};

/* Code, with the unit of its source file and its function, filled in on first use. `away`: the unit
 * is in a missing .dwo file. */
struct structs_code {
	uint64_t address; /* link-time */
	bool looked, has_unit, has_function, away;
	Dwarf_Die unit, function;
};

bool die_is_struct(Dwarf_Die *type);
/* Whether the entry is only a declaration, whose definition is elsewhere. */
bool die_is_declaration(Dwarf_Die *die);
/* The type of an entry, without typedefs, const and the like. False: none (void). */
bool die_type(Dwarf_Die *die, Dwarf_Die *type);

/* Finds the struct as the source file of `code` knows it. If this fails and `broken` is set, do not
 * use that of another source file, which may differ. */
bool structs_own(struct structs *structs, struct structs_code *code);
/* Calls `visit` for all structs of that name, at most one per source file. Stops at and returns the
 * first result other than 0. */
int structs_others(struct structs *structs, int (*visit)(Dwarf_Die *found, void *arg), void *arg);
void structs_free(struct structs *structs);

#endif
