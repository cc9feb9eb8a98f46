// SPDX-License-Identifier: Apache-2.0
#include "util/template_fold.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/terminal.h"

#define DEEPEST 4 /* first level that is folded */
#define ANONYMOUS "(anonymous namespace)::"
#define OPERATOR "operator"

/* Whether the bracket at `at` belongs to an operator: "operator<", "operator>>", "->". */
static bool is_operator(const char *text, const char *at)
{
	const char *name = at;

	if (at > text && *at == '>' && at[-1] == '-')
		return true;
	while (name > text && strchr("<>=-", name[-1]))
		name--;
	return name - text >= (int)sizeof(OPERATOR) - 1 &&
	       !memcmp(name - (sizeof(OPERATOR) - 1), OPERATOR, sizeof(OPERATOR) - 1);
}

/* Writes the text without what is inside of more than `levels` brackets; false: the brackets do not
 * match. */
static bool fold(FILE *out, const char *text, unsigned levels)
{
	unsigned depth = 0;

	for (const char *at = text; *at; at++) {
		if (!strncmp(at, ANONYMOUS, sizeof(ANONYMOUS) - 1)) {
			at += sizeof(ANONYMOUS) - 2;
			continue;
		}
		if (*at == '<' && !is_operator(text, at) && ++depth == levels + 1)
			fputs("<…", out);
		if (*at == '>' && !is_operator(text, at) && !depth--)
			return false;
		if (depth <= levels)
			fputc(*at, out);
	}
	return !depth;
}

/* Such a folded text; NULL: the brackets do not match. */
static char *folded(const char *text, unsigned levels)
{
	char *result = NULL;
	size_t len;
	FILE *out = memory_stream(&result, &len);
	bool good = fold(out, text, levels);

	memory_require(!fclose(out));
	if (good)
		return result;
	free(result);
	return NULL;
}

char *template_fold(const char *text, uint32_t columns)
{
	char *result = memory_text(text);

	for (unsigned levels = DEEPEST; levels-- > 0 && terminal_columns(result) > columns;) {
		char *shorter = folded(text, levels);

		if (!shorter)
			break;
		free(result);
		result = shorter;
	}
	return result;
}
