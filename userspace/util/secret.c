// SPDX-License-Identifier: Apache-2.0
#include "util/secret.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What may be behind a secret: it is in quotes, in parentheses or in a list. */
#define ENDS "\"'()\r\n"
#define VALUE_ENDS ENDS ","
#define WORD_ENDS VALUE_ENDS " \t"

struct secret_text {
	char *text;
	size_t len;
};

/* The place of the first character of `set` at or behind `at`, or the end. */
static size_t find(const struct secret_text *in, size_t at, const char *set)
{
	while (at < in->len && (!in->text[at] || !strchr(set, in->text[at])))
		at++;
	return at;
}

static void mask(const struct secret_text *in, size_t from, size_t to)
{
	memset(in->text + from, '*', to - from);
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* Whether the `len` bytes before `at` end with a word of a list, in any case. */
static bool ends_with(const struct secret_text *in, size_t at, const char *const *words)
{
	for (; *words; words++) {
		size_t len = strlen(*words);

		if (at >= len && !strncasecmp(in->text + at - len, *words, len))
			return true;
	}
	return false;
}

/* `at` is behind "://". */
static void mask_url(const struct secret_text *in, size_t at)
{
	size_t end = find(in, at, ENDS " \t"), query = find(in, at, WORD_ENDS "?");

	for (size_t i = end; i > at; i--)
		if (in->text[i - 1] == '@') {
			mask(in, at, i - 1);
			query = find(in, i, WORD_ENDS "?");
			break;
		}
	if (query < in->len && in->text[query] == '?')
		mask(in, query + 1, find(in, query + 1, WORD_ENDS));
}

/* `at` is that of a '=' or ':' behind a name. */
static void mask_value(const struct secret_text *in, size_t at)
{
	static const char *const secrets[] = {"authorization", "cookie", "key", "password",
					      "secret",        "token",  NULL};
	static const char *const headers[] = {"header", "headers", NULL};
	size_t value = at + 1, end, colon;

	if (value < in->len && (in->text[value] == '"' || in->text[value] == '\''))
		value++;
	end = find(in, value, VALUE_ENDS);
	if (in->text[at] == '=' && ends_with(in, at, headers)) {
		colon = find(in, value, VALUE_ENDS ":");
		if (colon < end)
			mask(in, colon + 1, end);
	} else if (value < end && in->text[value] != '=' && ends_with(in, at, secrets)) {
		mask(in, value, end); /* "==" compares */
	}
}

void secret_mask(char *text, size_t len)
{
	static const char *const schemes[] = {"bearer", "basic", NULL};
	struct secret_text in = {text, len};

	for (size_t at = 1; at < len; at++) {
		if (at + 2 < len && !memcmp(text + at, "://", 3))
			mask_url(&in, at + 3);
		else if ((text[at] == '=' || text[at] == ':') && is_name(text[at - 1]))
			mask_value(&in, at);
		else if (text[at] == ' ' && ends_with(&in, at, schemes))
			mask(&in, at + 1, find(&in, at + 1, WORD_ENDS));
	}
}

char *secret_masked(const char *text)
{
	char *copy = strdup(text);

	if (copy)
		secret_mask(copy, strlen(copy));
	return copy;
}
