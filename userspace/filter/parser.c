// SPDX-License-Identifier: Apache-2.0
/*
 * Recursive-descent parser of operands joined by || and &&. docs/filter.md has the grammar. Its
 * limits bound the recursion here and in all functions that walk the tree.
 */
#include <stdlib.h>
#include <string.h>

#include "filter/parser_internal.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define PERCENT 100

static int add_node(struct parser *parser, struct filter_node made, uint32_t *node)
{
	*node = (uint32_t)parser->expr->nodes.len;
	return vec_push(&parser->expr->nodes, made) ? 0 : parser_no_memory(parser);
}

static int take(struct parser *parser, enum token_type type, const char *what)
{
	if (parser->token.type != type)
		return syntax_error_expected(parser, &parser->token, "%s", what);
	parser_advance(parser);
	return 0;
}

/* Reads an integer from 1 to `max`. */
static int take_count(struct parser *parser, uint32_t max, const char *example, uint32_t *count)
{
	struct token token = parser->token;
	struct filter_literal literal;
	struct number number;
	int result;

	if (token.type != TOKEN_NUMBER)
		return syntax_error_expected(parser, &token, "a number, as in %s", example);
	result = number_read(&parser->source, &token, &number, parser->err);
	if (!result)
		result = number_value(&parser->source, &token, &number, &literal, parser->err);
	if (result)
		return result;
	if (number.unit == UNIT_TIME || number.unit == UNIT_BYTES || literal.negative ||
	    literal.type != FILTER_LITERAL_INTEGER || !literal.magnitude || literal.magnitude > max)
		return syntax_error_expected(parser, &token,
					     "a whole number from 1 to %u, as in %s", max, example);
	*count = (uint32_t)literal.magnitude;
	parser_advance(parser);
	return 0;
}

/* Reads a percentage: sample(0.5%) is 5 of 1000. */
static int take_percent(struct parser *parser, struct filter_node *made)
{
	struct token token = parser->token;
	struct number number;
	uint64_t of = PERCENT;
	int result = number_read(&parser->source, &token, &number, parser->err);

	if (result)
		return result;
	for (unsigned i = 0; i < number.fraction && of <= UINT32_MAX; i++)
		of *= 10;
	if (number.unit != UNIT_NONE || number.negative || !number.digits || of > UINT32_MAX ||
	    number.digits > of)
		return syntax_error_expected(
			parser, &token, "a share from 0.0000001%% to 100%%, as in sample(0.5%%)");
	made->keep = (uint32_t)number.digits;
	made->of = (uint32_t)of;
	parser_advance(parser);
	parser_advance(parser);
	return 0;
}

static int parse_sample(struct parser *parser, uint32_t *node)
{
	struct filter_node made = {.type = FILTER_SAMPLE};
	struct token first, behind = token_next(&parser->source, parser->token.to);
	int result;

	first = parser->token;
	if (first.type == TOKEN_NUMBER && behind.type == TOKEN_PERCENT) {
		result = take_percent(parser, &made);
	} else {
		result = take_count(parser, UINT32_MAX, "sample(1/100)", &made.keep);
		if (!result)
			result = take(parser, TOKEN_SLASH, "'/', as in sample(1/100)");
		if (!result)
			result = take_count(parser, UINT32_MAX, "sample(1/100)", &made.of);
		if (!result && made.keep > made.of)
			result = syntax_error(
				parser, &first,
				"sample(%u/%u) is more than all: expected a part of the "
				"traces, such as 1/100",
				made.keep, made.of);
	}
	if (!result)
		result = take(parser, TOKEN_CLOSE, "')' behind sample(1/100");
	return result ? result : add_node(parser, made, node);
}

static int rate_misplaced(struct parser *parser)
{
	return source_fault(&parser->source, parser->rate_from, parser->rate_to, parser->err,
			    "rate() limits what passes all the rest: expected it as an operand of "
			    "the outermost &&, not in parentheses, behind ! or beside ||");
}

static int parse_rate(struct parser *parser, uint32_t *node)
{
	static const struct {
		const char *word;
		uint64_t ns;
	} units[] = {{"s", 1000000000}, {"ms", 1000000}, {"min", 60000000000}};
	struct filter_rate *rate = &parser->expr->rate;
	uint64_t unit_ns = 0;
	int result = take_count(parser, FILTER_RATE_COUNT_MAX, "rate(1000/s)", &rate->count);

	if (!result)
		result = take(parser, TOKEN_SLASH, "'/', as in rate(1000/s)");
	if (result)
		return result;
	for (size_t i = 0; i < COUNT_OF(units); i++)
		if (token_is(&parser->source, &parser->token, units[i].word))
			unit_ns = units[i].ns;
	if (!unit_ns)
		return syntax_error_expected(parser, &parser->token,
					     "s, ms or min, as in rate(1000/s)");
	parser_advance(parser);
	result = take(parser, TOKEN_CLOSE, "')' behind rate(1000/s");
	if (result)
		return result;
	parser->rate_to = parser->last.to;
	if (parser->depth)
		return rate_misplaced(parser);
	if (rate->unit_ns)
		return source_fault(&parser->source, parser->rate_from, parser->rate_to,
				    parser->err,
				    "a second rate(): expected one in the whole expression");
	rate->unit_ns = unit_ns;
	return add_node(parser, (struct filter_node){.type = FILTER_TRUE}, node);
}

/* Parses sample(…) or rate(…), up to its closing parenthesis. */
static int parse_call(struct parser *parser, uint32_t *node)
{
	struct token name = parser->token;

	if (!token_is(&parser->source, &name, "sample") &&
	    !token_is(&parser->source, &name, "rate"))
		return syntax_error_field(parser, &name);
	parser_advance(parser);
	parser_advance(parser);
	if (token_is(&parser->source, &name, "sample"))
		return parse_sample(parser, node);
	parser->rate_from = name.from;
	return parse_rate(parser, node);
}

static int parse_or(struct parser *parser, uint32_t *node);

/* Called after '!' or '(', which may be nested FILTER_DEPTH_MAX times. */
static int enter(struct parser *parser)
{
	if (parser->depth == FILTER_DEPTH_MAX)
		return syntax_error(
			parser, &parser->token,
			"nested too deep: expected at most %d parentheses and negations in "
			"each other",
			FILTER_DEPTH_MAX);
	parser->depth++;
	parser_advance(parser);
	return 0;
}

static int parse_parentheses(struct parser *parser, uint32_t *node)
{
	struct token open = parser->token;
	int result = enter(parser);

	if (!result)
		result = parse_or(parser, node);
	if (result)
		return result;
	if (parser->token.type == TOKEN_END)
		return syntax_error(parser, &open,
				    "'(' without its ')': expected ')' before the end");
	if (parser->token.type != TOKEN_CLOSE)
		return syntax_error_joiner(parser);
	parser_advance(parser);
	parser->depth--;
	return 0;
}

static int parse_operand(struct parser *parser, uint32_t *node)
{
	struct token token = parser->token;
	struct token behind = token_next(&parser->source, token.to);
	bool is_true = token_is(&parser->source, &token, "true");
	struct filter_node made = {.type = is_true ? FILTER_TRUE : FILTER_FALSE};
	int result;

	if (token.type == TOKEN_OPEN)
		return parse_parentheses(parser, node);
	if (++parser->operands > FILTER_OPERANDS_MAX)
		return syntax_error(parser, &token,
				    "too long: expected at most %d operands of && and ||",
				    FILTER_OPERANDS_MAX);
	if (token.type == TOKEN_WORD && behind.type == TOKEN_OPEN &&
	    !token_meant(&parser->source, &token))
		return parse_call(parser, node);
	/* "true == kv.key" is a comparison. */
	if ((is_true || token_is(&parser->source, &token, "false")) && behind.type != TOKEN_OP) {
		parser_advance(parser);
		return add_node(parser, made, node);
	}
	made = (struct filter_node){.type = FILTER_TEST,
				    .predicate = (uint32_t)parser->expr->predicates.len};
	result = parse_predicate(parser);
	return result ? result : add_node(parser, made, node);
}

static int parse_not(struct parser *parser, uint32_t *node)
{
	struct filter_node made = {.type = FILTER_NOT};
	int result;

	if (parser->token.type != TOKEN_NOT)
		return parse_operand(parser, node);
	result = enter(parser);
	if (!result)
		result = parse_not(parser, &made.left);
	if (result)
		return result;
	parser->depth--;
	return add_node(parser, made, node);
}

static int parse_and(struct parser *parser, uint32_t *node)
{
	struct filter_node made = {.type = FILTER_AND};
	int result = parse_not(parser, node);

	while (!result && parser->token.type == TOKEN_AND) {
		parser_advance(parser);
		made.left = *node;
		result = parse_not(parser, &made.right);
		if (!result)
			result = add_node(parser, made, node);
	}
	return result;
}

static int parse_or(struct parser *parser, uint32_t *node)
{
	struct filter_node made = {.type = FILTER_OR};
	int result = parse_and(parser, node);

	while (!result && parser->token.type == TOKEN_OR) {
		parser_advance(parser);
		made.left = *node;
		result = parse_and(parser, &made.right);
		/* In parentheses rate() has been rejected already. */
		if (!result && parser->expr->rate.unit_ns && !parser->depth)
			result = rate_misplaced(parser);
		if (!result)
			result = add_node(parser, made, node);
	}
	return result;
}

static int parse_all(struct parser *parser)
{
	int result;

	if (parser->source.len > FILTER_SOURCE_MAX)
		return error_set(parser->err, EINVAL,
				 "%s: the expression has %zu bytes: expected at most %d",
				 parser->source.origin, parser->source.len, FILTER_SOURCE_MAX);
	parser->token = token_next(&parser->source, 0);
	if (parser->token.type == TOKEN_END)
		return error_set(parser->err, EINVAL,
				 "%s: the expression is empty: expected a comparison, such as "
				 "dur > 10ms",
				 parser->source.origin);
	result = parse_or(parser, &parser->expr->root);
	if (!result && parser->token.type != TOKEN_END)
		result = syntax_error_joiner(parser);
	return result;
}

int filter_parse(struct filter_expr **filter, const char *origin, const char *text,
		 struct error *err)
{
	struct parser parser = {.source = {origin, text, strlen(text)}, .err = err};
	int result;

	*filter = NULL;
	parser.expr = calloc(1, sizeof(*parser.expr));
	if (!parser.expr)
		return parser_no_memory(&parser);
	result = parse_all(&parser);
	if (!result) {
		parser.expr->source = strdup(text);
		if (!parser.expr->source)
			result = parser_no_memory(&parser);
	}
	if (result) {
		filter_free(parser.expr);
		return result;
	}
	*filter = parser.expr;
	return 0;
}
