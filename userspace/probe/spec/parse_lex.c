// SPDX-License-Identifier: Apache-2.0
/* The basics of parsing a description: words, signs, numbers, quotes and messages. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/spec/parse.h"
#include "util/suggest.h"

static const struct flag_word {
	const char *word;
	uint32_t flag;
} flag_words[] = {
	{"outer", WAFFLE_CALL_OUTER}, {"inner", WAFFLE_CALL_INNER},
	{"stack", WAFFLE_CALL_STACK}, {"nounwind", WAFFLE_CALL_NOUNWIND},
	{"frame", WAFFLE_CALL_FRAME},
};
#define FLAG_WORDS (sizeof(flag_words) / sizeof(flag_words[0]))

void parse_blanks(struct parse *parse)
{
	const char *text = parse->source.text;

	while (parse->at < parse->source.len && isspace((unsigned char)text[parse->at]))
		parse->at++;
}

bool parse_ended(struct parse *parse)
{
	parse_blanks(parse);
	return parse->at >= parse->source.len;
}

bool parse_sees(struct parse *parse, const char *sign)
{
	size_t len = strlen(sign);

	parse_blanks(parse);
	return parse->source.len - parse->at >= len &&
	       !memcmp(parse->source.text + parse->at, sign, len);
}

bool parse_accept(struct parse *parse, const char *sign)
{
	bool seen = parse_sees(parse, sign);

	if (seen)
		parse->at += (uint32_t)strlen(sign);
	return seen;
}

uint32_t parse_word(struct parse *parse)
{
	uint32_t len = 0;

	parse_blanks(parse);
	while (parse->at + len < parse->source.len) {
		unsigned char byte = (unsigned char)parse->source.text[parse->at + len];

		if (!isalnum(byte) && byte != '_')
			break;
		len++;
	}
	return len;
}

bool parse_word_is(struct parse *parse, const char *word)
{
	uint32_t len = parse_word(parse);

	return len == strlen(word) && !memcmp(parse->source.text + parse->at, word, len);
}

bool parse_accept_word(struct parse *parse, const char *word)
{
	bool seen = parse_word_is(parse, word);

	if (seen)
		parse->at += (uint32_t)strlen(word);
	return seen;
}

struct source_shown parse_show(struct parse *parse)
{
	struct source_shown shown = {"the end"}, text;
	uint32_t len = parse_word(parse);

	if (parse_ended(parse))
		return shown;
	text = source_show(parse->source.text + parse->at, len ? len : 1);
	snprintf(shown.text, sizeof(shown.text), "'%.*s'", (int)sizeof(shown.text) - 3, text.text);
	return shown;
}

int parse_wrong(struct parse *parse, const char *format, ...)
{
	uint32_t len = parse_word(parse);
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return source_fault(&parse->source, parse->at, parse->at + (len ? len : 1), parse->err,
			    "%s", text);
}

int parse_memory(struct parse *parse)
{
	return error_set(parse->err, ENOMEM, "%s: out of memory", parse->source.origin);
}

int parse_expect(struct parse *parse, const char *sign, const char *behind)
{
	if (parse_accept(parse, sign))
		return 0;
	return parse_wrong(parse, "expected '%s' %s, found %s", sign, behind,
			   parse_show(parse).text);
}

const char *parse_keep(struct parse *parse, uint32_t from, uint32_t to)
{
	uint32_t index = strtab_add(parse->tables->strings, parse->source.text + from, to - from);

	return index == STRTAB_NONE ? NULL : strtab_get(parse->tables->strings, index);
}

int parse_quoted(struct parse *parse, uint32_t *from, uint32_t *to)
{
	const char *quote = NULL;

	*from = parse->at + 1;
	if (*from < parse->source.len)
		quote = memchr(parse->source.text + *from, '"', parse->source.len - *from);
	if (!quote)
		return parse_wrong(parse, "a '\"' without its second one");
	*to = (uint32_t)(quote - parse->source.text);
	parse->at = *to + 1;
	return 0;
}

int parse_number(struct parse *parse, int64_t *number, int64_t low, int64_t high)
{
	char text[32];
	uint32_t sign, len;
	char *end;

	parse_blanks(parse);
	sign = low < 0 && parse_sees(parse, "-");
	parse->at += sign;
	len = parse_word(parse);
	if (!len || len >= sizeof(text) || !isdigit((unsigned char)parse->source.text[parse->at]))
		return parse_wrong(parse, "expected a number, found %s", parse_show(parse).text);
	memcpy(text, parse->source.text + parse->at, len);
	text[len] = '\0';
	errno = 0;
	*number = strtoll(text, &end, 0);
	if (sign)
		*number = -*number;
	if (*end || errno || *number < low || *number > high)
		return parse_wrong(parse, "expected a number from %lld to %lld", (long long)low,
				   (long long)high);
	parse->at += len;
	return 0;
}

static bool suggestions_has(const struct suggestions *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list->text; list->len && (at = strstr(at, name)); at++)
		if (at[-1] == ' ' && (!at[len] || at[len] == ','))
			return true;
	return false;
}

void suggestions_add(struct suggestions *list, const char *word, const char *name)
{
	int len;

	if (!*name || !suggest_similar(word, name) || suggestions_has(list, name))
		return;
	len = snprintf(list->text + list->len, sizeof(list->text) - list->len, "%s%s",
		       list->len ? ", " : "; did you mean ", name);
	if (len > 0 && list->len + (size_t)len < sizeof(list->text))
		list->len += (size_t)len;
	else
		list->text[list->len] = '\0';
}

uint32_t parse_flag(struct parse *parse)
{
	for (unsigned i = 0; i < FLAG_WORDS; i++)
		if (parse_word_is(parse, flag_words[i].word))
			return flag_words[i].flag;
	return 0;
}

bool parse_is_option(struct parse *parse)
{
	static const char *const words[] = {"as", "category", "role", "key"};
	bool found = parse_flag(parse);

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		found = found || parse_word_is(parse, words[i]);
	return found;
}
