/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracepoints of the kernel: their fields, as tracefs describes them in a file "format"
 * (Documentation/trace/events.rst).
 */
#ifndef WAFFLE_CALL_TRACEPOINT_H
#define WAFFLE_CALL_TRACEPOINT_H

#include "call/recipe.h"

#define TRACEPOINT_FIELDS_MAX 64

struct tracepoint_field {
	const char *name, *type; /* into the text of the format */
	uint32_t offset, size;
	bool is_signed;
	bool located;          /* __data_loc: the word at `offset` says where it is */
	bool located_relative; /* __rel_loc: counted from behind that word */
	uint32_t elements;     /* of an array: how many, or 1 if that is not said; 0: none */
};

struct tracepoint_format {
	uint64_t id;
	unsigned count;
	struct tracepoint_field fields[TRACEPOINT_FIELDS_MAX]; /* without the common ones */
};

/* Parses a format in place: the text becomes the fields' names. False: it is none. */
bool tracepoint_parse(struct tracepoint_format *format, char *text);

/*
 * The recipe of a tracepoint for a description: its listed fields, or all that can be shown.
 * -EINVAL with a caret under a field that there is not.
 */
int tracepoint_recipe(struct recipe_made *made, const struct call_spec *spec,
		      const struct tracepoint_format *format, const char *name, struct error *err);

struct call_set;
/* Adds the tracepoints that a description names to the set. */
int tracepoints_add(struct call_set *set, const struct call_spec *spec, struct error *err);

#endif
