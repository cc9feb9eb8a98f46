/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the parser share: parser.c joins operands (&& || ! and parentheses, sample,
 * rate), predicate.c reads one comparison, wrong.c finds the words for what is wrong.
 */
#ifndef WAFFLE_FILTER_PARSER_INTERNAL_H
#define WAFFLE_FILTER_PARSER_INTERNAL_H

#include "filter/filter.h"
#include "filter/lexer.h"

struct parser {
	struct source source;
	struct filter_expr *expr; /* what is made belongs to it at once */
	struct token token;       /* not taken yet */
	struct token last;        /* taken before it */
	unsigned depth, operands, listed;
	uint32_t rate_from, rate_to;
	struct error *err;
};

void parser_advance(struct parser *parser);
int parser_no_memory(struct parser *parser);

/* A comparison: becomes a predicate of parser->expr, without a node. */
int parse_predicate(struct parser *parser);

/* A message at a token. All return a negative errno. */
int wrong(struct parser *parser, const struct token *token, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* "expected WHAT, found …" */
int wrong_expected(struct parser *parser, const struct token *token, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A word where a field has to stand. */
int wrong_field(struct parser *parser, const struct token *token);
/* No operator of a comparison behind a field. */
int wrong_operator(struct parser *parser, const struct filter_predicate *predicate);
/* An operator that does not go with the type of the field. */
int wrong_comparison(struct parser *parser, const struct token *token,
		     const struct filter_predicate *predicate);
/* A literal that the field is never compared with. */
int wrong_literal(struct parser *parser, const struct token *token,
		  const struct filter_predicate *predicate);
int wrong_kind(struct parser *parser, const struct token *token);
int wrong_pattern(struct parser *parser, const struct token *token, uint32_t byte);
/* No && or || behind an operand. */
int wrong_joiner(struct parser *parser);

struct source_shown token_show(const struct parser *parser, const struct token *token);
/* Operators that go with a type, a bit each. */
unsigned ops_of_type(enum filter_type type);
enum filter_field field_of_word(const struct parser *parser, const struct token *token);

#endif
