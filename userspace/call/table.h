/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that ship with waffle, as texts. */
#ifndef WAFFLE_CALL_TABLE_H
#define WAFFLE_CALL_TABLE_H

#include "call/call.h"

struct call_rows {
	const char *name; /* for messages */
	const char *text; /* as of a file of descriptions, NUL-terminated */
};

extern const struct call_rows call_tables[CALL_TABLE_COUNT];

/* Those of probes/, by their plain names; a copy of each is installed, to be read and changed. */
#define CALL_READY_SETS 6
extern const struct call_rows call_ready_sets[CALL_READY_SETS];

#endif
