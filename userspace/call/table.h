/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that ship with waffle: descriptions and tables of names ("enum …"), a text each. */
#ifndef WAFFLE_CALL_TABLE_H
#define WAFFLE_CALL_TABLE_H

#include <stddef.h>

struct call_rows {
	const char *name; /* for messages */
	const char *const *rows;
	size_t count;
};

/* By enum call_table. */
extern const struct call_rows call_tables[];

#endif
