/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of a filter expression. Blanks and line breaks separate them; '#' begins a comment that
 * ends with its line. The source is not trusted: any part of it in a message passes through
 * source_show(), so that no control character reaches a terminal.
 */
#ifndef WAFFLE_FILTER_LEXER_INTERNAL_H
#define WAFFLE_FILTER_LEXER_INTERNAL_H

#include "filter/expr_internal.h"
#include "util/error.h"
#include "util/source.h"

enum token_type {
	TOKEN_END,
	TOKEN_WORD,   /* letters, digits, _ and . */
	TOKEN_TEXT,   /* in quotes, closed on the same line */
	TOKEN_NUMBER, /* a digit or '-' and a digit, and the characters right after it */
	TOKEN_OP,     /* an operator of comparison, except the word "in" */
	TOKEN_AND,
	TOKEN_OR,
	TOKEN_NOT,
	TOKEN_OPEN,
	TOKEN_CLOSE,
	TOKEN_LIST_OPEN,
	TOKEN_LIST_CLOSE,
	TOKEN_COMMA,
	TOKEN_SLASH,
	TOKEN_PERCENT,
	TOKEN_UNCLOSED, /* a quote without its second one, up to the end of the line */
	TOKEN_STRANGE   /* anything else: one character, or an unknown operator */
};

struct token {
	enum token_type type;
	enum filter_op op; /* TOKEN_OP */
	uint32_t from, to; /* position in the source: [from, to) */
};

/* The first token at or after a byte of the source. */
struct token token_next(const struct source *source, uint32_t at);
bool token_is(const struct source *source, const struct token *token, const char *word);
/* The operator of this language that the token probably stands for: "&&" for "and". NULL:
 * unknown. */
const char *token_meant(const struct source *source, const struct token *token);

/*
 * Decodes a text in quotes. `bytes` must have room for all bytes between the quotes, and gets no
 * NUL. False: there is an error at *fault in the source.
 */
bool text_decode(const struct source *source, const struct token *token, char *bytes, uint32_t *len,
		 uint32_t *fault);
/* Position in the source of a byte of the decoded text. */
uint32_t text_position(const struct source *source, const struct token *token, uint32_t byte);

enum unit_type { UNIT_NONE, UNIT_TIME, UNIT_BYTES, UNIT_COUNT };

/* A number as written: digits / 10^fraction · scale. */
struct number {
	__uint128_t digits;
	unsigned fraction;
	bool negative;
	enum unit_type unit;
	uint64_t scale;
};

/* Reads a number. Returns -EINVAL with a message on an error. */
int number_read(const struct source *source, const struct token *token, struct number *number,
		struct error *err);
/* Computes the value, an INTEGER or a FLOAT. Returns -EINVAL with a message if it does not fit in
 * 64 bits. */
int number_value(const struct source *source, const struct token *token,
		 const struct number *number, struct filter_literal *literal, struct error *err);
/* Whether a word is a unit, to be written directly after its number. */
bool unit_known(const char *word, size_t len);

#endif
