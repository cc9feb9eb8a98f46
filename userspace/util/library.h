/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a library that is opened only when it is needed. */
#ifndef WAFFLE_UTIL_LIBRARY_H
#define WAFFLE_UTIL_LIBRARY_H

#include <stddef.h>

struct library_function {
	const char *name;
	size_t at; /* offset of the pointer to it in the table */
};

/* Fills `table` in with the functions of a library that dlopen() has opened. Returns the name of
 * one that it lacks, or NULL. */
const char *library_find(void *handle, const struct library_function *functions, size_t count,
			 void *table);

#endif
