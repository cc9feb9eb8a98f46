/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_UTIL_TEXT_H
#define WAFFLE_UTIL_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool text_begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

#endif
