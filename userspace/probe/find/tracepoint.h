/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracepoints of the kernel and their fields. tracefs describes the fields in a file "format"
 * (Documentation/trace/events.rst).
 */
#ifndef WAFFLE_PROBE_FIND_TRACEPOINT_H
#define WAFFLE_PROBE_FIND_TRACEPOINT_H

#include "probe/args/fetch_program.h"
#include "probe/spec/call.h"

#define TRACEPOINT_FIELDS_MAX 64

struct tracepoint_field {
	const char *name, *type; /* inside the text of the format */
	uint32_t offset, size;
	bool is_signed;
	bool located;          /* __data_loc: the word at `offset` holds the location of the data */
	bool located_relative; /* __rel_loc: the same, relative to the end of that word */
	uint32_t elements;     /* length of an array, or 1 if it is not stated; 0: not an array */
};

struct tracepoint_format {
	uint64_t id;
	unsigned count;
	struct tracepoint_field fields[TRACEPOINT_FIELDS_MAX]; /* without the common fields */
};

/* Parses a format in place: the field names point into the text. False: it is malformed. */
bool tracepoint_parse(struct tracepoint_format *format, char *text);

/*
 * Makes the fetch program of a tracepoint for a description: its listed fields, or all that can be
 * shown. -EINVAL with a caret under a field that does not exist.
 */
int tracepoint_fetch_program(struct fetch_program_made *made, const struct call_spec *spec,
			     const struct tracepoint_format *format, const char *name,
			     struct error *err);

/* Adds the tracepoints that a description names to a list, which has at most `most` then. `strings`
 * keep their names. */
int tracepoints_add(tracepoint_list *list, size_t most, struct strtab *strings,
		    const struct call_spec *spec, struct error *err);

#endif
