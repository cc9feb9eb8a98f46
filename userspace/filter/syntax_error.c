// SPDX-License-Identifier: Apache-2.0
/* Error messages for expressions: what was found, what was expected, what to write. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "filter/parser_internal.h"
#include "util/suggest.h"

#define WORDS_BYTES 160 /* enough for the names of all fields */
#define WORD_BYTES 64

/* A list of names, cut at the end of the buffer. */
struct words {
	char text[WORDS_BYTES];
	size_t len;
};

static void words_add(struct words *words, const char *separator, const char *word)
{
	int len = snprintf(words->text + words->len, sizeof(words->text) - words->len, "%s%s",
			   words->len ? separator : "", word);

	if (len > 0 && words->len + (size_t)len < sizeof(words->text))
		words->len += (size_t)len;
	else
		words->text[words->len] = '\0';
}

struct source_shown token_show(const struct parser *parser, const struct token *token)
{
	return source_show(parser->source.text + token->from, token->to - token->from);
}

int syntax_error(struct parser *parser, const struct token *token, const char *format, ...)
{
	uint32_t from = token->from, to = token->to;
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* The end of the expression is after the last token, not after blanks and comments that
	 * follow it. */
	if (token->type == TOKEN_END)
		from = to = parser->last.to;
	return source_fault(&parser->source, from, to, parser->err, "%s", text);
}

/* Typographic quotes, which word processors substitute. */
static bool is_fancy_quote(const struct parser *parser, const struct token *token)
{
	const char *text = parser->source.text + token->from;

	return token->to - token->from == 3 && !memcmp(text, "\xe2\x80", 2) &&
	       (unsigned char)text[2] >= 0x98 && (unsigned char)text[2] <= 0x9f;
}

int syntax_error_expected(struct parser *parser, const struct token *token, const char *format, ...)
{
	const char *meant = token_meant(&parser->source, token);
	struct source_shown shown = token_show(parser, token);
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (token->type == TOKEN_UNCLOSED)
		return syntax_error(parser, token,
				    "a text that is not closed: expected %c before the "
				    "line ends",
				    parser->source.text[token->from]);
	if (is_fancy_quote(parser, token))
		return syntax_error(parser, token, "expected plain quotes, \"…\", found %s",
				    shown.text);
	if (meant)
		return syntax_error(parser, token, "'%s' is no operator: write %s", shown.text,
				    meant);
	if (token->type == TOKEN_END)
		return syntax_error(parser, token, "expected %s, found the end", what);
	if (token->type == TOKEN_TEXT)
		return syntax_error(parser, token, "expected %s, found %s", what, shown.text);
	return syntax_error(parser, token, "expected %s, found '%s'", what, shown.text);
}

/* Copies a word of the source to a string, and truncates it if it is long. */
static void copy_word(const struct parser *parser, const struct token *token, char word[WORD_BYTES])
{
	size_t len = token->to - token->from;

	if (len >= WORD_BYTES)
		len = WORD_BYTES - 1;
	memcpy(word, parser->source.text + token->from, len);
	word[len] = '\0';
}

/* Also accepts a longer form of the name: "duration" for dur. At most half of the letters of a word
 * may differ, unless it is the beginning of the name. */
static bool is_meant(const char *word, const char *name)
{
	if (strlen(name) > 2 && !strncmp(word, name, strlen(name)))
		return true;
	return suggest_similar(word, name) && (!strncmp(word, name, strlen(word)) ||
					       2 * suggest_distance(word, name) <= strlen(word));
}

enum filter_field field_of_word(const struct parser *parser, const struct token *token)
{
	enum filter_field field = 0;

	if (token->to - token->from > 2 && !memcmp(parser->source.text + token->from, "kv.", 3))
		return FILTER_KV;
	while (field < FILTER_KV && !token_is(&parser->source, token, filter_fields[field].name))
		field++;
	return field < FILTER_KV ? field : FILTER_FIELD_COUNT;
}

static int syntax_error_function(struct parser *parser, const struct token *token)
{
	return syntax_error(parser, token,
			    "unknown function '%s': expected sample(1/100) or rate(1000/s)",
			    token_show(parser, token).text);
}

int syntax_error_field(struct parser *parser, const struct token *token)
{
	struct token behind = token_next(&parser->source, token->to), whole = *token;
	struct words near = {0}, all = {0};
	char word[WORD_BYTES];

	/* The user meant following letters as part of the word, even if no field has them. */
	while (whole.to < parser->source.len &&
	       (parser->source.text[whole.to] & 0x80 ||
		isalnum((unsigned char)parser->source.text[whole.to])))
		whole.to++;
	copy_word(parser, token, word);
	if (token_meant(&parser->source, token))
		return syntax_error_expected(parser, token, "a field");
	if (behind.type == TOKEN_OPEN)
		return syntax_error_function(parser, token);
	if (!strcmp(word, "kv"))
		return syntax_error(parser, token,
				    "expected a key behind 'kv': kv.bytes or kv.\"any text\"");
	if (!strcmp(word, "sample") || !strcmp(word, "rate"))
		return syntax_error(parser, token,
				    "expected '(' behind '%s': sample(1/100), rate(1000/s)", word);
	for (unsigned kind = 0; kind < FILTER_KIND_COUNT; kind++)
		if (!strcmp(word, filter_kinds[kind]))
			return syntax_error(parser, token,
					    "'%s' is a kind, not a field: expected kind == %s",
					    word, word);
	for (unsigned field = 0; field < FILTER_KV; field++) {
		words_add(&all, " ", filter_fields[field].name);
		if (is_meant(word, filter_fields[field].name))
			words_add(&near, ", ", filter_fields[field].name);
	}
	words_add(&all, " ", "kv.KEY");
	if (near.len)
		return syntax_error(parser, &whole, "unknown field '%s'; did you mean %s",
				    token_show(parser, &whole).text, near.text);
	return syntax_error(parser, &whole, "unknown field '%s': expected %s",
			    token_show(parser, &whole).text, all.text);
}

unsigned ops_of_type(enum filter_type type)
{
	enum {
		EQUAL = 1u << FILTER_EQ | 1u << FILTER_NE | 1u << FILTER_IN,
		ORDER = 1u << FILTER_LT | 1u << FILTER_LE | 1u << FILTER_GT | 1u << FILTER_GE,
		GLOB = 1u << FILTER_MATCH | 1u << FILTER_NOT_MATCH
	};
	static const unsigned ops[] = {
		[FILTER_TYPE_KIND] = EQUAL,
		[FILTER_TYPE_TEXT] = EQUAL | GLOB,
		[FILTER_TYPE_NUMBER] = EQUAL | ORDER,
		[FILTER_TYPE_TIME] = EQUAL | ORDER,
		[FILTER_TYPE_ANY] = EQUAL | ORDER | GLOB,
	};

	return ops[type];
}

static struct words ops_name(enum filter_type type)
{
	struct words words = {0};

	for (unsigned op = 0; op < FILTER_OP_COUNT; op++)
		if (ops_of_type(type) & 1u << op)
			words_add(&words, " ", filter_ops[op]);
	return words;
}

int syntax_error_operator(struct parser *parser, const struct filter_predicate *predicate)
{
	const struct token *token = &parser->token;
	struct token field = {.from = predicate->from, .to = parser->last.to};
	struct token behind = token_next(&parser->source, token->to);
	struct source_shown shown = token_show(parser, &field);
	bool is_not = token->type == TOKEN_NOT ||
		      (token->type == TOKEN_WORD && token_is(&parser->source, token, "not"));

	if (is_not && token_is(&parser->source, &behind, filter_ops[FILTER_IN]))
		return syntax_error(parser, token,
				    "no operator is called 'not in': write !(%s in {…})",
				    shown.text);
	if (predicate->field == FILTER_KV && token->from == field.to &&
	    token->type == TOKEN_STRANGE && !token_meant(&parser->source, token))
		return syntax_error(
			parser, token,
			"expected a letter, digit, _ or . in a key; put others in quotes: "
			"kv.\"any text\"");
	if (predicate->field == FILTER_KV &&
	    (token->type == TOKEN_END || token->type == TOKEN_CLOSE || token->type == TOKEN_AND ||
	     token->type == TOKEN_OR))
		return syntax_error_expected(parser, token,
					     "an operator behind '%s', as in %s == true",
					     shown.text, shown.text);
	return syntax_error_expected(parser, token, "an operator (%s) behind '%s'",
				     ops_name(filter_fields[predicate->field].type).text,
				     shown.text);
}

int syntax_error_comparison(struct parser *parser, const struct token *token,
			    const struct filter_predicate *predicate)
{
	static const char *const nouns[] = {
		[FILTER_TYPE_KIND] = "one of a few words",
		[FILTER_TYPE_TEXT] = "a text",
		[FILTER_TYPE_NUMBER] = "a number",
		[FILTER_TYPE_TIME] = "a time",
		[FILTER_TYPE_ANY] = "a value",
	};
	const struct filter_field_info *info = &filter_fields[predicate->field];

	return syntax_error(parser, token, "'%s' can't compare %s, which is %s: expected %s",
			    token_show(parser, token).text, info->name, nouns[info->type],
			    ops_name(info->type).text);
}

/* A text without quotes, up to where it may have been meant to end. */
static struct token bare_text(const struct parser *parser, const struct token *token)
{
	struct token text = *token;

	while (text.to < parser->source.len &&
	       !strchr(" \t\r\n\"'()&|,{}#", parser->source.text[text.to]))
		text.to++;
	return text;
}

int syntax_error_literal(struct parser *parser, const struct token *token,
			 const struct filter_predicate *predicate)
{
	static const char *const takes[] = {
		[FILTER_TYPE_KIND] = "a kind",
		[FILTER_TYPE_TEXT] = "a text in quotes",
		[FILTER_TYPE_NUMBER] = "a whole number, such as 42",
		[FILTER_TYPE_TIME] = "a time, such as 10ms",
		[FILTER_TYPE_ANY] = "a number, a text in quotes, true or false",
	};
	const struct filter_field_info *info = &filter_fields[predicate->field];
	bool is_text = info->type == FILTER_TYPE_TEXT || info->type == FILTER_TYPE_ANY;
	enum filter_op op = predicate->op;
	struct token bare = bare_text(parser, token);

	if (token->type == TOKEN_WORD && !token_is(&parser->source, token, "true") &&
	    !token_is(&parser->source, token, "false")) {
		if (field_of_word(parser, token) != FILTER_FIELD_COUNT)
			return syntax_error(parser, token,
					    "a field is compared with a literal, not with a field: "
					    "expected %s",
					    takes[info->type]);
		if (is_text && (op < FILTER_LT || op > FILTER_GE))
			return syntax_error(parser, &bare, "expected %s, found '%s': write \"%s\"",
					    takes[info->type], token_show(parser, &bare).text,
					    token_show(parser, &bare).text);
	}
	if (op == FILTER_MATCH || op == FILTER_NOT_MATCH)
		return syntax_error_expected(parser, token,
					     "a pattern in quotes, such as \"nccl*\", behind "
					     "'%s'",
					     filter_ops[op]);
	if (info->type == FILTER_TYPE_ANY && op >= FILTER_LT && op <= FILTER_GE)
		return syntax_error_expected(
			parser, token, "a number behind '%s', such as 10 or 1MiB", filter_ops[op]);
	return syntax_error_expected(
		parser, token, "%s, to compare with %s%s%s", takes[info->type], info->name,
		predicate->key ? "." : "",
		predicate->key ? source_show(predicate->key, strlen(predicate->key)).text : "");
}

int syntax_error_kind(struct parser *parser, const struct token *token)
{
	struct words near = {0}, all = {0};
	struct token inner = *token;
	char word[WORD_BYTES];

	if (token->type == TOKEN_TEXT) {
		inner.from++;
		inner.to--;
	}
	copy_word(parser, &inner, word);
	for (unsigned kind = 0; kind < FILTER_KIND_COUNT; kind++) {
		words_add(&all, " ", filter_kinds[kind]);
		if (is_meant(word, filter_kinds[kind]))
			words_add(&near, ", ", filter_kinds[kind]);
	}
	if (token->type != TOKEN_TEXT && token->type != TOKEN_WORD)
		return syntax_error_expected(parser, token, "a kind (%s)", all.text);
	if (near.len)
		return syntax_error(parser, token, "unknown kind '%s'; did you mean %s",
				    token_show(parser, &inner).text, near.text);
	return syntax_error(parser, token, "unknown kind '%s': expected %s",
			    token_show(parser, &inner).text, all.text);
}

int syntax_error_pattern(struct parser *parser, const struct token *token, uint32_t byte)
{
	uint32_t from = text_position(&parser->source, token, byte);
	uint32_t to = text_position(&parser->source, token, byte + 1);

	switch (parser->source.text[from] == '\\' && to - from == 2 ? '\\'
								    : parser->source.text[from]) {
	case '[':
		return source_fault(&parser->source, from, to, parser->err,
				    "'[' without its ']': expected ']'; a '[' that stands for "
				    "itself is written \\\\[");
	case '\\':
		return source_fault(&parser->source, from, to, parser->err,
				    "a pattern ends with '\\': expected what it makes literal; a "
				    "backslash is written \\\\\\\\");
	default:
		return source_fault(&parser->source, from, to, parser->err,
				    "a range that runs backwards: expected the lower byte first, "
				    "as in [a-z]");
	}
}

int syntax_error_joiner(struct parser *parser)
{
	const struct token *token = &parser->token;
	const char *text = parser->source.text;

	if (token->type == TOKEN_CLOSE)
		return syntax_error(parser, token, "')' without its '(': expected && or ||");
	if (token->type == TOKEN_OP)
		return syntax_error(parser, token,
				    "a comparison has two sides: expected && or ||, as in "
				    "dur > 1ms && dur < 5ms");
	if (token->type == TOKEN_WORD && parser->last.type == TOKEN_NUMBER &&
	    unit_known(text + token->from, token->to - token->from))
		return syntax_error(
			parser, token, "expected a unit directly behind its number: %s%s",
			token_show(parser, &parser->last).text, token_show(parser, token).text);
	return syntax_error_expected(parser, token, parser->depth ? "&&, || or ')'" : "&& or ||");
}
