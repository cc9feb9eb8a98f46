// SPDX-License-Identifier: Apache-2.0
/* Parses a comparison: FIELD OP LITERAL, LITERAL OP FIELD, FIELD in {LITERAL, …}. */
#include <stdlib.h>
#include <string.h>

#include "filter/parser_internal.h"

#define LISTED_MAX 256 /* literals of all lists together */
#define KEY_PREFIX "kv."

static bool is_word(const struct parser *parser, const struct token *token, const char *word)
{
	return token->type == TOKEN_WORD && token_is(&parser->source, token, word);
}

/* Decodes a text in quotes into allocated memory, with a NUL. */
static int read_text(struct parser *parser, const struct token *token, char **text, uint32_t *len)
{
	uint32_t fault;
	char *bytes = malloc(token->to - token->from);
	int result = 0;

	if (!bytes)
		return parser_no_memory(parser);
	if (!text_decode(&parser->source, token, bytes, len, &fault)) {
		result = source_fault(&parser->source, fault, fault + 2, parser->err,
				      "unknown escape: expected \\\" \\' \\\\ \\n \\t or \\x01 to "
				      "\\xff; a backslash is written \\\\");
	} else if (*len > FILTER_TEXT_MAX) {
		result = syntax_error(parser, token, "a text of %u bytes: expected at most %d",
				      *len, FILTER_TEXT_MAX);
	}
	if (result) {
		free(bytes);
		return result;
	}
	bytes[*len] = '\0';
	*text = bytes;
	return 0;
}

/* Reads kv.KEY as one word, or kv."KEY". */
static int read_key(struct parser *parser, const struct token *token, char **key)
{
	const char *word = parser->source.text + token->from + strlen(KEY_PREFIX);
	uint32_t len = token->to - token->from - (uint32_t)strlen(KEY_PREFIX);

	if (!len && parser->token.type == TOKEN_TEXT && parser->token.from == token->to) {
		int result = read_text(parser, &parser->token, key, &len);

		if (!result && !len) {
			free(*key);
			*key = NULL;
			result = syntax_error(parser, &parser->token,
					      "an empty key: expected its name between the quotes");
		}
		if (!result)
			parser_advance(parser);
		return result;
	}
	if (!len || word[0] == '.' || word[len - 1] == '.')
		return syntax_error(parser, token,
				    "expected a key behind 'kv.': kv.bytes or kv.\"any text\"");
	if (len > FILTER_TEXT_MAX)
		return syntax_error(parser, token, "a key of %u bytes: expected at most %d", len,
				    FILTER_TEXT_MAX);
	*key = strndup(word, len);
	return *key ? 0 : parser_no_memory(parser);
}

static int parse_field(struct parser *parser, struct filter_predicate *predicate)
{
	struct token token = parser->token;

	if (token.type != TOKEN_WORD)
		return syntax_error_expected(parser, &token, "a field");
	predicate->field = field_of_word(parser, &token);
	if (predicate->field == FILTER_FIELD_COUNT)
		return syntax_error_field(parser, &token);
	parser_advance(parser);
	return predicate->field == FILTER_KV ? read_key(parser, &token, &predicate->key) : 0;
}

static int read_kind(struct parser *parser, const struct token *token,
		     struct filter_literal *literal)
{
	struct token word = *token;

	if (token->type == TOKEN_TEXT) {
		word.from++;
		word.to--;
	} else if (token->type != TOKEN_WORD) {
		return syntax_error_kind(parser, token);
	}
	for (unsigned kind = 0; kind < FILTER_KIND_COUNT; kind++) {
		if (token_is(&parser->source, &word, filter_kinds[kind])) {
			*literal = (struct filter_literal){.type = FILTER_LITERAL_KIND,
							   .magnitude = kind};
			return 0;
		}
	}
	return syntax_error_kind(parser, token);
}

/* Whether a number, with its unit, can be compared with the field. */
static bool number_fits(const struct filter_predicate *predicate, const struct number *number,
			const struct filter_literal *literal)
{
	enum filter_type type = filter_fields[predicate->field].type;

	if (type == FILTER_TYPE_ANY)
		return predicate->op != FILTER_MATCH && predicate->op != FILTER_NOT_MATCH;
	if (type != FILTER_TYPE_NUMBER && type != FILTER_TYPE_TIME)
		return false;
	if (literal->type != FILTER_LITERAL_INTEGER || literal->negative)
		return false;
	return number->unit == UNIT_NONE || number->unit == UNIT_COUNT ||
	       (number->unit == UNIT_TIME && type == FILTER_TYPE_TIME);
}

static int read_number(struct parser *parser, const struct token *token,
		       const struct filter_predicate *predicate, struct filter_literal *literal)
{
	struct number number;
	int result = number_read(&parser->source, token, &number, parser->err);

	if (!result)
		result = number_value(&parser->source, token, &number, literal, parser->err);
	if (!result && !number_fits(predicate, &number, literal))
		result = syntax_error_literal(parser, token, predicate);
	return result;
}

static int read_pattern(struct parser *parser, const struct token *token,
			struct filter_literal *literal)
{
	size_t at;

	literal->glob = glob_new(literal->text, literal->text_len, &at);
	if (literal->glob)
		return 0;
	if (at == literal->text_len)
		return parser_no_memory(parser);
	return syntax_error_pattern(parser, token, (uint32_t)at);
}

static int read_literal_text(struct parser *parser, const struct token *token,
			     const struct filter_predicate *predicate,
			     struct filter_literal *literal)
{
	enum filter_type type = filter_fields[predicate->field].type;
	bool orders = predicate->op >= FILTER_LT && predicate->op <= FILTER_GE;
	int result;

	if (type != FILTER_TYPE_TEXT && (type != FILTER_TYPE_ANY || orders))
		return syntax_error_literal(parser, token, predicate);
	*literal = (struct filter_literal){.type = FILTER_LITERAL_TEXT};
	result = read_text(parser, token, &literal->text, &literal->text_len);
	if (!result && (predicate->op == FILTER_MATCH || predicate->op == FILTER_NOT_MATCH))
		result = read_pattern(parser, token, literal);
	if (result) {
		free(literal->text);
		literal->text = NULL;
	}
	return result;
}

static int read_bool(struct parser *parser, const struct token *token,
		     const struct filter_predicate *predicate, struct filter_literal *literal)
{
	bool equals = predicate->op == FILTER_EQ || predicate->op == FILTER_NE ||
		      predicate->op == FILTER_IN;

	if (filter_fields[predicate->field].type != FILTER_TYPE_ANY || !equals)
		return syntax_error_literal(parser, token, predicate);
	*literal = (struct filter_literal){.type = FILTER_LITERAL_BOOL,
					   .magnitude = is_word(parser, token, "true")};
	return 0;
}

/* Reads the literal of a token and adds it to the expression. */
static int add_literal(struct parser *parser, const struct token *token,
		       struct filter_predicate *predicate)
{
	struct filter_literal literal = {0};
	int result;

	if (filter_fields[predicate->field].type == FILTER_TYPE_KIND)
		result = read_kind(parser, token, &literal);
	else if (token->type == TOKEN_NUMBER)
		result = read_number(parser, token, predicate, &literal);
	else if (token->type == TOKEN_TEXT)
		result = read_literal_text(parser, token, predicate, &literal);
	else if (is_word(parser, token, "true") || is_word(parser, token, "false"))
		result = read_bool(parser, token, predicate, &literal);
	else
		result = syntax_error_literal(parser, token, predicate);
	if (result)
		return result;
	predicate->count++;
	if (vec_push(&parser->expr->literals, literal))
		return 0;
	free(literal.text);
	glob_free(literal.glob);
	return parser_no_memory(parser);
}

static int parse_list(struct parser *parser, struct filter_predicate *predicate)
{
	int result = 0;

	if (parser->token.type != TOKEN_LIST_OPEN)
		return syntax_error_expected(parser, &parser->token,
					     "a list behind 'in', such as {1, 2}");
	do {
		parser_advance(parser);
		if (predicate->count == FILTER_LITERALS_MAX)
			return syntax_error(parser, &parser->token,
					    "the list is too long: expected at most %d",
					    FILTER_LITERALS_MAX);
		if (parser->listed++ == LISTED_MAX)
			return syntax_error(
				parser, &parser->token,
				"the lists are too long: expected at most %d in all of them",
				LISTED_MAX);
		result = add_literal(parser, &parser->token, predicate);
		if (result)
			return result;
		parser_advance(parser);
	} while (parser->token.type == TOKEN_COMMA);
	if (parser->token.type != TOKEN_LIST_CLOSE)
		return syntax_error_expected(parser, &parser->token, "',' or '}' in the list");
	parser_advance(parser);
	return 0;
}

static int parse_operator(struct parser *parser, struct filter_predicate *predicate)
{
	struct token token = parser->token;

	if (token.type == TOKEN_OP)
		predicate->op = token.op;
	else if (is_word(parser, &token, filter_ops[FILTER_IN]))
		predicate->op = FILTER_IN;
	else
		return syntax_error_operator(parser, predicate);
	if (!(ops_of_type(filter_fields[predicate->field].type) & 1u << predicate->op))
		return syntax_error_comparison(parser, &token, predicate);
	parser_advance(parser);
	return 0;
}

/* Parses FIELD OP LITERAL. */
static int parse_field_first(struct parser *parser, struct filter_predicate *predicate)
{
	int result = parse_field(parser, predicate);

	if (!result)
		result = parse_operator(parser, predicate);
	if (result)
		return result;
	if (predicate->op == FILTER_IN)
		return parse_list(parser, predicate);
	result = add_literal(parser, &parser->token, predicate);
	if (!result)
		parser_advance(parser);
	return result;
}

/* Parses LITERAL OP FIELD, and exchanges the sides. */
static int parse_literal_first(struct parser *parser, struct filter_predicate *predicate)
{
	static const enum filter_op turned[] = {
		[FILTER_EQ] = FILTER_EQ, [FILTER_NE] = FILTER_NE, [FILTER_LT] = FILTER_GT,
		[FILTER_LE] = FILTER_GE, [FILTER_GT] = FILTER_LT, [FILTER_GE] = FILTER_LE,
	};
	struct token literal = parser->token, op;
	int result;

	parser_advance(parser);
	op = parser->token;
	if (op.type != TOKEN_OP)
		return syntax_error_expected(parser, &op,
					     "an operator (== != < <= > >=) and a field behind %s",
					     token_show(parser, &literal).text);
	if (op.op > FILTER_GE)
		return syntax_error(
			parser, &op,
			"'%s' has its pattern on the right: expected a field on the left",
			filter_ops[op.op]);
	predicate->op = turned[op.op];
	parser_advance(parser);
	result = parse_field(parser, predicate);
	if (!result && !(ops_of_type(filter_fields[predicate->field].type) & 1u << predicate->op))
		result = syntax_error_comparison(parser, &op, predicate);
	return result ? result : add_literal(parser, &literal, predicate);
}

int parse_predicate(struct parser *parser)
{
	struct filter_predicate predicate = {.literal = (uint32_t)parser->expr->literals.len,
					     .from = parser->token.from};
	const struct token *token = &parser->token;
	bool literal = token->type == TOKEN_TEXT || token->type == TOKEN_NUMBER ||
		       is_word(parser, token, "true") || is_word(parser, token, "false");
	int result;

	if (!literal && token->type != TOKEN_WORD)
		return syntax_error_expected(parser, token,
					     "a comparison, such as dur > 10ms, or '('");
	if (parser->expr->predicates.len == FILTER_PREDICATES_MAX)
		return syntax_error(parser, token, "too many comparisons: expected at most %d",
				    FILTER_PREDICATES_MAX);
	result = literal ? parse_literal_first(parser, &predicate)
			 : parse_field_first(parser, &predicate);
	predicate.to = parser->last.to;
	if (!result && !vec_push(&parser->expr->predicates, predicate))
		result = parser_no_memory(parser);
	if (result)
		free(predicate.key);
	return result;
}
