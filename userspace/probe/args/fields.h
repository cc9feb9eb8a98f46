/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the fields of structs by DWARF. */
#ifndef WAFFLE_PROBE_ARGS_FIELDS_H
#define WAFFLE_PROBE_ARGS_FIELDS_H

#include "probe/args/structs_internal.h"
#include "probe/spec/spec.h"

/*
 * Replaces the fields among a value's steps, from step `first` on, by additions and loads. Sets the
 * type to that of the last field. `name` is the struct that the value points to, as the source file
 * of `code` knows it. `file` and `source`, the description, are for messages. -EINVAL with a
 * message.
 */
int fields_resolve(struct dwarf_file *dwarf, struct structs_code *code, const char *name,
		   struct call_value *value, unsigned first, const struct source *source,
		   const char *file, struct error *err);

#endif
