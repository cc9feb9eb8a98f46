/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for a struct by its name in a file's DWARF, wherever that lies: in the units of source
 * files, in those that dwz and -fdebug-types-section take out of them, and in split ones.
 */
#ifndef WAFFLE_CALL_STRUCTS_H
#define WAFFLE_CALL_STRUCTS_H

#include "call/parse.h"
#include "target/dwarf_file.h"
#include "util/map.h"

struct structs {
	struct dwarf_file *file;
	const char *name; /* whole, with namespaces */
	struct near_list near;
	const char *split_away; /* the .dwo file of a unit, which is not there; or NULL */
	bool broken;            /* the source file has a part that can't be read */
	Dwarf_Die found;
	bool done;
	/* The walk: units that were looked through, and how far the one of now is. */
	struct map seen;
	const void *last;
};

/* Code, and the unit of its source file and its function once these were asked for. `away`: the
 * unit is in a .dwo file that is not there. */
struct structs_code {
	uint64_t address; /* link-time */
	bool looked, has_unit, has_function, away;
	Dwarf_Die unit, function;
};

bool die_is_struct(Dwarf_Die *type);
/* What is in it is told elsewhere. */
bool die_is_declaration(Dwarf_Die *die);
/* The type that an entry has, behind typedefs, const and their like; false: none (void). */
bool die_type(Dwarf_Die *die, Dwarf_Die *type);

/* Looks for that which the source file of `code` knows. If not, and `broken`, it is not to be taken
 * from another file, which may have one that differs. */
bool structs_own(struct structs *structs, struct structs_code *code);
/* Calls `visit` for all of that name, at most one of a source file, until it returns other than 0,
 * which is returned then. */
int structs_others(struct structs *structs, int (*visit)(Dwarf_Die *found, void *arg), void *arg);
void structs_free(struct structs *structs);

#endif
