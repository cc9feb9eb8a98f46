/* SPDX-License-Identifier: Apache-2.0 */
/* Where the fields of structs are, by DWARF. */
#ifndef WAFFLE_CALL_FIELDS_H
#define WAFFLE_CALL_FIELDS_H

#include "call/spec.h"
#include "call/structs.h"

/*
 * Replaces the fields among a value's steps, from step `first` on, by additions and loads, and sets
 * the type that the last one has. `name` is the struct that the value points to, as the source file
 * of `code` knows it; `file` is said in messages, and `source` is the description that the steps
 * stand in. -EINVAL with a message.
 */
int fields_resolve(struct dwarf_file *dwarf, struct structs_code *code, const char *name,
		   struct call_value *value, unsigned first, const struct source *source,
		   const char *file, struct error *err);

#endif
