/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a filter expression. Blanks and line breaks stand between them, '#' begins a comment
 * that ends with its line. The bytes of a source are not trusted: what is shown of them has passed
 * source_show(), so that none reaches a terminal as a control.
 */
#ifndef WAFFLE_FILTER_LEXER_H
#define WAFFLE_FILTER_LEXER_H

#include "filter/expr.h"
#include "util/error.h"
#include "util/source.h"

enum token_type {
	TOKEN_END,
	TOKEN_WORD,   /* letters, digits, _ and . */
	TOKEN_TEXT,   /* in quotes, closed on its line */
	TOKEN_NUMBER, /* a digit or '-' and a digit, and what is stuck to it */
	TOKEN_OP,     /* a comparison that is no word */
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
	TOKEN_UNCLOSED, /* a quote without its second, to the line's end */
	TOKEN_STRANGE   /* anything else: one character, or a wrong operator */
};

struct token {
	enum token_type type;
	enum filter_op op; /* TOKEN_OP */
	uint32_t from, to; /* bytes of the source: [from, to) */
};

/* The token at or behind a byte of the source. */
struct token token_next(const struct source *source, uint32_t at);
bool token_is(const struct source *source, const struct token *token, const char *word);
/* What people write for an operator of this language: "&&" for "and"; NULL: nothing known. */
const char *token_meant(const struct source *source, const struct token *token);

/*
 * The bytes that a text in quotes stands for. `bytes` has room for as many as stand between the
 * quotes; it gets no NUL. False: a fault at *fault of the source.
 */
bool text_decode(const struct source *source, const struct token *token, char *bytes, uint32_t *len,
		 uint32_t *fault);
/* Where in the source a byte of the decoded text is written. */
uint32_t text_position(const struct source *source, const struct token *token, uint32_t byte);

enum unit_type { UNIT_NONE, UNIT_TIME, UNIT_BYTES, UNIT_COUNT };

/* A number as it is written: digits / 10^fraction · scale. */
struct number {
	__uint128_t digits;
	unsigned fraction;
	bool negative;
	enum unit_type unit;
	uint64_t scale;
};

/* -EINVAL with a message. */
int number_read(const struct source *source, const struct token *token, struct number *number,
		struct error *err);
/* Its value, an INTEGER or a FLOAT. -EINVAL with a message: it does not fit in 64 bits. */
int number_value(const struct source *source, const struct token *token,
		 const struct number *number, struct filter_literal *literal, struct error *err);
/* Whether a word is a unit, which stands directly behind its number. */
bool unit_known(const char *word, size_t len);

#endif
