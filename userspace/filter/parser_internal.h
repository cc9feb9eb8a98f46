/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the parser. parser.c joins operands (&& || ! and parentheses, sample,
 * rate), predicate.c parses one comparison, and syntax_error.c words the error messages.
 */
#ifndef WAFFLE_FILTER_PARSER_INTERNAL_H
#define WAFFLE_FILTER_PARSER_INTERNAL_H

#include "filter/filter.h"
#include "filter/lexer_internal.h"

struct parser {
	struct source source;
	struct filter_expr *expr; /* owns all results of the parser from the start */
	struct token token;       /* current token, not consumed yet */
	struct token last;        /* the consumed token before it */
	unsigned depth, operands, listed;
	uint32_t rate_from, rate_to;
	struct error *err;
};

static inline void parser_advance(struct parser *parser)
{
	parser->last = parser->token;
	parser->token = token_next(&parser->source, parser->token.to);
}

static inline int parser_no_memory(struct parser *parser)
{
	return error_set(parser->err, ENOMEM, "%s: out of memory", parser->source.origin);
}

/* Parses a comparison and adds a predicate to parser->expr, but no node. */
int parse_predicate(struct parser *parser);

/* Sets a message that points at a token. All these functions return a negative errno. */
int syntax_error(struct parser *parser, const struct token *token, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* "expected WHAT, found …" */
int syntax_error_expected(struct parser *parser, const struct token *token, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A word that is no field, where a field is expected. */
int syntax_error_field(struct parser *parser, const struct token *token);
/* A field is not followed by an operator of comparison. */
int syntax_error_operator(struct parser *parser, const struct filter_predicate *predicate);
/* An operator that the type of the field does not have. */
int syntax_error_comparison(struct parser *parser, const struct token *token,
			    const struct filter_predicate *predicate);
/* A literal of a type that the field can't be compared with. */
int syntax_error_literal(struct parser *parser, const struct token *token,
			 const struct filter_predicate *predicate);
int syntax_error_kind(struct parser *parser, const struct token *token);
int syntax_error_pattern(struct parser *parser, const struct token *token, uint32_t byte);
/* An operand is not followed by && or ||. */
int syntax_error_joiner(struct parser *parser);

struct source_shown token_show(const struct parser *parser, const struct token *token);
/* Operators that a type has, a bit each. */
unsigned ops_of_type(enum filter_type type);
enum filter_field field_of_word(const struct parser *parser, const struct token *token);

#endif
