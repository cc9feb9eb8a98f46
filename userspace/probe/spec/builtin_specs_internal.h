/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptions that ship with waffle, as text. */
#ifndef WAFFLE_PROBE_SPEC_BUILTIN_SPECS_INTERNAL_H
#define WAFFLE_PROBE_SPEC_BUILTIN_SPECS_INTERNAL_H

#include "probe/spec/call.h"

struct call_rows {
	const char *name; /* for messages */
	const char *text; /* a file of descriptions, NUL-terminated */
};

extern const struct call_rows call_tables[CALL_TABLE_COUNT];

/* The sets of probes/, by their plain names. A copy of each is installed, for users to read and
 * change. */
#define CALL_READY_SETS 7
extern const struct call_rows call_ready_sets[CALL_READY_SETS];

#endif
