// SPDX-License-Identifier: Apache-2.0
#include "filter/lexer_internal.h"

#include <string.h>
#include <strings.h>

#include "util/utf8.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define UTF8_BYTES_MAX 4

/* A symbol comes before all symbols that are its prefixes. */
static const struct {
	const char *text;
	enum token_type type;
	enum filter_op op;
} symbols[] = {
	{"&&", TOKEN_AND, 0},        {"||", TOKEN_OR, 0},
	{"===", TOKEN_STRANGE, 0},   {"!==", TOKEN_STRANGE, 0},
	{"==", TOKEN_OP, FILTER_EQ}, {"!=", TOKEN_OP, FILTER_NE},
	{"<>", TOKEN_STRANGE, 0},    {"<=", TOKEN_OP, FILTER_LE},
	{">=", TOKEN_OP, FILTER_GE}, {"!~", TOKEN_OP, FILTER_NOT_MATCH},
	{"=~", TOKEN_STRANGE, 0},    {"=<", TOKEN_STRANGE, 0},
	{"=>", TOKEN_STRANGE, 0},    {"<", TOKEN_OP, FILTER_LT},
	{">", TOKEN_OP, FILTER_GT},  {"~", TOKEN_OP, FILTER_MATCH},
	{"!", TOKEN_NOT, 0},         {"(", TOKEN_OPEN, 0},
	{")", TOKEN_CLOSE, 0},       {"{", TOKEN_LIST_OPEN, 0},
	{"}", TOKEN_LIST_CLOSE, 0},  {",", TOKEN_COMMA, 0},
	{"/", TOKEN_SLASH, 0},       {"%", TOKEN_PERCENT, 0},
};

/* Operators of other languages and their equivalents. */
static const struct {
	const char *other, *own;
} meant[] = {
	{"=", "=="},  {"===", "=="}, {"!==", "!="}, {"<>", "!="}, {"=~", "~"},
	{"=<", "<="}, {"=>", ">="},  {"&", "&&"},   {"|", "||"},  {"and", "&&"},
	{"or", "||"}, {"not", "!"},  {"in", "in"},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
	       c == '.';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static uint32_t skip_blanks(const struct source *source, uint32_t at)
{
	while (at < source->len) {
		if (source->text[at] == '#')
			while (at < source->len && source->text[at] != '\n')
				at++;
		else if (is_blank(source->text[at]))
			at++;
		else
			break;
	}
	return at;
}

static void scan_text(const struct source *source, struct token *token)
{
	char quote = source->text[token->from];
	uint32_t at = token->from + 1;

	while (at < source->len && source->text[at] != quote && source->text[at] != '\n')
		at += 1 + (source->text[at] == '\\' && at + 1 < source->len &&
			   source->text[at + 1] != '\n');
	token->type = TOKEN_UNCLOSED;
	token->to = at;
	if (at < source->len && source->text[at] == quote) {
		token->type = TOKEN_TEXT;
		token->to++;
	}
}

static void scan_symbol(const struct source *source, struct token *token)
{
	const char *text = source->text + token->from;
	size_t left = source->len - token->from, length = 1;

	for (size_t i = 0; i < COUNT_OF(symbols); i++) {
		size_t len = strlen(symbols[i].text);

		if (len > left || memcmp(text, symbols[i].text, len) != 0)
			continue;
		token->type = symbols[i].type;
		token->op = symbols[i].op;
		token->to = token->from + (uint32_t)len;
		return;
	}
	/* Take a whole character if it is valid UTF-8. */
	while (length < left && length < UTF8_BYTES_MAX && utf8_valid(text, length) != length)
		length++;
	if (utf8_valid(text, length) != length)
		length = 1;
	token->type = TOKEN_STRANGE;
	token->to = token->from + (uint32_t)length;
}

struct token token_next(const struct source *source, uint32_t at)
{
	struct token token = {.from = skip_blanks(source, at)};
	const char *text = source->text;

	at = token.from;
	token.to = at;
	if (at >= source->len)
		return token;
	if (text[at] == '"' || text[at] == '\'') {
		scan_text(source, &token);
	} else if (is_digit(text[at]) ||
		   (text[at] == '-' && at + 1 < source->len && is_digit(text[at + 1]))) {
		token.type = TOKEN_NUMBER;
		/* µ, and other characters that may be meant as a part of the number */
		for (at++; at < source->len && (is_word(text[at]) || text[at] & 0x80); at++)
			;
		token.to = at;
	} else if (is_word(text[at]) && text[at] != '.') {
		token.type = TOKEN_WORD;
		for (at++; at < source->len && is_word(text[at]); at++)
			;
		token.to = at;
	} else {
		scan_symbol(source, &token);
	}
	return token;
}

bool token_is(const struct source *source, const struct token *token, const char *word)
{
	return token->to - token->from == strlen(word) &&
	       !memcmp(source->text + token->from, word, token->to - token->from);
}

const char *token_meant(const struct source *source, const struct token *token)
{
	uint32_t len = token->to - token->from;

	if ((token->type != TOKEN_WORD && token->type != TOKEN_STRANGE) ||
	    token_is(source, token, filter_ops[FILTER_IN]))
		return NULL;
	for (size_t i = 0; i < COUNT_OF(meant); i++) {
		if (len == strlen(meant[i].other) &&
		    !strncasecmp(source->text + token->from, meant[i].other, len))
			return meant[i].own;
	}
	return NULL;
}
