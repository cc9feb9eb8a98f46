/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_UTIL_TEXT_H
#define WAFFLE_UTIL_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool text_begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Compares texts without the digits in them, as strcmp() does: the threads of a pool are "loader-1"
 * and "loader-2". */
static inline int text_compare_without_numbers(const char *a, const char *b)
{
	const char *digits = "0123456789";

	for (;; a++, b++) {
		a += strspn(a, digits);
		b += strspn(b, digits);
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	}
}

/* Writes a name with N in place of each number, as far as it fits: "loader-N". `to` may be the name
 * itself. Returns its length. */
static inline size_t text_without_numbers(char *to, size_t size, const char *name)
{
	size_t len = 0;

	while (*name && len < size - 1) {
		size_t digits = strspn(name, "0123456789");

		to[len++] = digits ? 'N' : *name;
		name += digits ? digits : 1;
	}
	to[len] = '\0';
	return len;
}

#endif
