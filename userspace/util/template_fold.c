// SPDX-License-Identifier: Apache-2.0
#include "util/template_fold.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/terminal.h"

#define DEEPEST 4 /* first level that is folded */
#define ANONYMOUS "(anonymous namespace)::"
#define OPERATOR "operator"

/* Signs of an operator with brackets before the last one: "<=>", "<<=". */
#define OPERATOR_BEFORE 2

/* Whether the bracket at `at` belongs to an operator: "operator<", "operator>>", "->". */
static bool is_operator(const char *text, const char *at)
{
	const char *name = at;

	if (at > text && *at == '>' && at[-1] == '-')
		return true;
	while (name > text && at - name < OPERATOR_BEFORE && strchr("<>=-", name[-1]))
		name--;
	return name - text >= (int)sizeof(OPERATOR) - 1 &&
	       !memcmp(name - (sizeof(OPERATOR) - 1), OPERATOR, sizeof(OPERATOR) - 1);
}

/* A text that is being made. A name in brackets begins at `name`. */
struct folding {
	char *text; /* as large as the original and an ellipsis for each bracket */
	size_t len, name;
	unsigned depth;
};

static void put(struct folding *folding, const char *bytes, size_t len)
{
	memcpy(folding->text + folding->len, bytes, len);
	folding->len += len;
}

/* Where the parameters end that begin at `at`, or the end of a text that was cut within them. */
static const char *after_parameters(const char *at)
{
	unsigned depth = 0;

	for (; *at; at++) {
		depth += *at == '(';
		depth -= *at == ')';
		if (!depth)
			return at + 1;
	}
	return at;
}

/* Puts a byte, or drops the namespace that ends at it. Returns how many bytes it took. */
static size_t put_byte(struct folding *folding, const char *at)
{
	if (folding->depth && at[0] == ':' && at[1] == ':' && folding->len > folding->name) {
		folding->len = folding->name;
		return 2;
	}
	put(folding, at, 1);
	if (!isalnum((unsigned char)*at) && *at != '_' && *at != '$')
		folding->name = folding->len;
	return 1;
}

/* Makes the text without what is inside of more than `levels` brackets; false: the brackets do not
 * match. */
static bool fold(struct folding *folding, const char *text, unsigned levels)
{
	for (const char *at = text; *at;) {
		bool bracket = (*at == '<' || *at == '>') && !is_operator(text, at);

		if (!strncmp(at, ANONYMOUS, sizeof(ANONYMOUS) - 1)) {
			at += sizeof(ANONYMOUS) - 1;
			continue;
		}
		if (*at == '(' && at > text && at[-1] == '>' && !folding->depth) {
			at = after_parameters(at);
			continue;
		}
		if (bracket && *at == '<' && ++folding->depth == levels + 1)
			put(folding, "<…", strlen("<…"));
		if (bracket && *at == '>' && !folding->depth--)
			return false;
		at += folding->depth <= levels ? put_byte(folding, at) : 1;
	}
	folding->text[folding->len] = '\0';
	return !folding->depth;
}

/* Such a folded text; NULL: the brackets do not match. */
static char *folded(const char *text, unsigned levels)
{
	struct folding folding = {.text = memory_get(strlen(text) * strlen("<…") + 1)};

	if (fold(&folding, text, levels))
		return folding.text;
	free(folding.text);
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

/* ---- functions ---- */

/* Whether it is a function of Python: "step (train.py)", "run (<frozen runpy>), user". In names of
 * C++ more follows the bracket: "decltype (x) f(int)", "f<decltype (x), a::b>(int)". */
static bool is_python(const char *text)
{
	const char *file = strchr(text, '('), *end = file ? strchr(file, ')') : NULL;

	return end && file > text && file[-1] == ' ' && (!end[1] || end[1] == ',') &&
	       !strstr(text, "::");
}

/* Whether the parameters of a function begin at `at`. Those of "operator()(int)" come later, and
 * "main.(*Server).Serve" has none. */
static bool begins_parameters(const char *text, const char *at)
{
	if (*at != '(' || at == text || (at[1] == ')' && is_operator(text, at)))
		return false;
	return !strchr(" :.(", at[-1]);
}

/* By how much a byte changes the depth of brackets. */
static int depth_change(const char *text, const char *at)
{
	if ((*at == '<' || *at == '>') && is_operator(text, at))
		return 0;
	return strchr("<({", *at) ? 1 : strchr(">)}", *at) ? -1 : 0;
}

/* Where the last parameters begin, or the end of a text without any: a lambda has a name behind
 * those of the function around it. */
static const char *parameters_of(const char *text)
{
	const char *at = text, *found = NULL;

	for (int depth = 0; *at; at++) {
		if (!depth && begins_parameters(text, at))
			found = at;
		depth += depth_change(text, at);
	}
	return found ?: at;
}

/* The first "::" from which on the text has less than `columns` characters, or else the last one in
 * front of the function's own name; the begin of a text without any. */
static const char *own_name_of(const char *text, uint32_t columns)
{
	const char *parameters = parameters_of(text), *found = text;
	uint32_t left = terminal_columns(text);
	int depth = 0;

	for (const char *at = text; at < parameters; at = terminal_skip(at, 1), left--) {
		depth += depth_change(text, at);
		if (depth || at[0] != ':' || at[1] != ':')
			continue;
		found = at;
		if (left < columns)
			break;
	}
	return found;
}

/* Puts an ellipsis in place of [from, to) of a text, which it frees. */
static char *replaced(char *text, const char *from, const char *to)
{
	size_t size = strlen(text) + strlen("…") + 1;
	char *made = memory_get(size);

	snprintf(made, size, "%.*s…%s", (int)(from - text), text, to);
	free(text);
	return made;
}

char *function_fold(const char *text, uint32_t columns)
{
	char *result = is_python(text) ? memory_text(text) : template_fold(text, columns);
	const char *parameters = parameters_of(result), *name;

	if (terminal_columns(result) > columns && parameters[0] && parameters[1] != ')') {
		const char *end = after_parameters(parameters);

		result = replaced(result, parameters + 1, end[-1] == ')' ? end - 1 : end);
	}
	name = terminal_columns(result) > columns ? own_name_of(result, columns) : result;
	return name > result ? replaced(result, result, name) : result;
}
