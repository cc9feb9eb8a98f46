/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the program that have a limit. */
#ifndef WAFFLE_USDT_NAME_TEXT_H
#define WAFFLE_USDT_NAME_TEXT_H

#include <stddef.h>
#include <string.h>

struct text {
	const char *at;
	size_t len;
};

/* The first `max` bytes of a text, but without a part of a character of UTF-8 at the end. NULL is
 * the empty text. */
static inline struct text text_of(const char *text, size_t max)
{
	struct text found = {text ?: "", 0};

	found.len = strnlen(found.at, max + 1);
	if (found.len <= max)
		return found;
	/* At most three bytes of a character are before the limit. */
	for (found.len = max; max - found.len <= 3 && found.len; found.len--)
		if ((found.at[found.len] & 0xc0) != 0x80)
			return found;
	found.len = max;
	return found;
}

#endif
