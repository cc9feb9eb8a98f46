/* SPDX-License-Identifier: Apache-2.0 */
/* Where the fields of structs are, by DWARF. */
#ifndef WAFFLE_CALL_FIELDS_H
#define WAFFLE_CALL_FIELDS_H

#include <elfutils/libdw.h>

#include "call/spec.h"

/* Code whose values are looked for, and the unit of its source file once that was asked for. */
struct fields_code {
	uint64_t address; /* link-time */
	bool looked, found;
	Dwarf_Die unit;
};

/*
 * Replaces the fields among a value's steps, from step `first` on, by additions and loads, and sets
 * the type that the last one has. `name` is the struct that the value points to, as the source file
 * of `code` knows it; `file` is said in messages, and `source` is the description that the steps
 * stand in. -EINVAL with a message.
 */
int fields_resolve(Dwarf *dwarf, struct fields_code *code, const char *name,
		   struct call_value *value, unsigned first, const struct source *source,
		   const char *file, struct error *err);

#endif
