// SPDX-License-Identifier: Apache-2.0
#include "export/process/chain_text_internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/secret.h"
#include "util/source.h"
#include "util/suggest.h"
#include "util/units.h"

#define WORD_BYTES 64

struct chain_parser {
	const char *text;
	struct source source; /* for messages: secrets are masked, at the same places */
	uint32_t at;
	struct error *err;
	/* The processor that is being parsed, and which of its options were given. */
	const struct processor_type *type;
	void *config;
	uint32_t given;
};

/* A part of the text. */
struct text_part {
	uint32_t from, to;
};

static int fault(struct chain_parser *parser, struct text_part part, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fault(struct chain_parser *parser, struct text_part part, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return source_fault(&parser->source, part.from, part.to, parser->err, "%s", text);
}

static int out_of_memory(struct chain_parser *parser)
{
	return error_set(parser->err, ENOMEM, "%s: out of memory", parser->source.origin);
}

static struct source_shown show(const struct chain_parser *parser, struct text_part part)
{
	return source_show(parser->source.text + part.from, part.to - part.from);
}

static char peek(const struct chain_parser *parser)
{
	return parser->at < parser->source.len ? parser->text[parser->at] : '\0';
}

static void blanks_skip(struct chain_parser *parser)
{
	while (peek(parser) && strchr(" \t\r\n", peek(parser)))
		parser->at++;
}

static bool take(struct chain_parser *parser, char c)
{
	blanks_skip(parser);
	if (!peek(parser) || peek(parser) != c)
		return false;
	parser->at++;
	return true;
}

static struct text_part word_take(struct chain_parser *parser)
{
	struct text_part part;

	blanks_skip(parser);
	part.from = parser->at;
	while (isalnum((unsigned char)peek(parser)) || (peek(parser) && strchr("_-", peek(parser))))
		parser->at++;
	part.to = parser->at;
	return part;
}

/* The place where something is missing: one character, or the end. */
static struct text_part here(const struct chain_parser *parser)
{
	return (struct text_part){parser->at, parser->at + (parser->at < parser->source.len)};
}

static bool part_is(const struct chain_parser *parser, struct text_part part, const char *word)
{
	return strlen(word) == part.to - part.from &&
	       !memcmp(parser->text + part.from, word, part.to - part.from);
}

static void part_copy(const struct chain_parser *parser, struct text_part part,
		      char word[WORD_BYTES])
{
	size_t len = part.to - part.from < WORD_BYTES ? part.to - part.from : WORD_BYTES - 1;

	memcpy(word, parser->text + part.from, len);
	word[len] = '\0';
}

/* ---- messages with what was probably meant ---- */

struct word_list {
	char text[256], near[64];
};

static void names_add(struct word_list *names, const char *word, const char *name)
{
	size_t len = strlen(names->text);

	snprintf(names->text + len, sizeof(names->text) - len, "%s%s", len ? " " : "", name);
	if (!*names->near && suggest_similar(word, name))
		snprintf(names->near, sizeof(names->near), "%s", name);
}

static int unknown(struct chain_parser *parser, struct text_part part, const char *what,
		   const struct word_list *names)
{
	if (*names->near)
		return fault(parser, part, "unknown %s '%s'; did you mean %s", what,
			     show(parser, part).text, names->near);
	return fault(parser, part, "unknown %s '%s': expected one of: %s", what,
		     show(parser, part).text, names->text);
}

static int unknown_processor(struct chain_parser *parser, struct text_part part)
{
	struct word_list names = {0};
	char word[WORD_BYTES];

	part_copy(parser, part, word);
	for (size_t i = 0; i < processor_type_count; i++)
		names_add(&names, word, processor_types[i]->name);
	if (part.from == part.to)
		return fault(parser, here(parser), "expected a processor, one of: %s", names.text);
	return unknown(parser, part, "processor", &names);
}

static int unknown_option(struct chain_parser *parser, struct text_part part)
{
	struct word_list names = {0};
	char word[WORD_BYTES], what[WORD_BYTES];

	if (!parser->type->option_count)
		return fault(parser, part, "%s() takes nothing", parser->type->name);
	part_copy(parser, part, word);
	for (size_t i = 0; i < parser->type->option_count; i++)
		if (parser->type->options[i].type != PROCESSOR_REST)
			names_add(&names, word, parser->type->options[i].name);
	snprintf(what, sizeof(what), "option of %s()", parser->type->name);
	return unknown(parser, part, what, &names);
}

/* ---- values ---- */

/* Reads up to the next comma or parenthesis that is not inside of a pair or quotes. */
static int bare_take(struct chain_parser *parser, struct text_part *part, bool commas)
{
	uint32_t depth = 0;
	char quote = '\0';

	part->from = parser->at;
	for (; peek(parser); parser->at++) {
		char c = peek(parser);

		if (quote)
			quote = c == quote ? '\0' : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '(')
			depth++;
		else if ((c == ')' && !depth--) || (c == ',' && !depth && !commas))
			break;
	}
	part->to = parser->at;
	if (quote)
		return fault(parser, *part, "a quote %c is not closed", quote);
	while (part->to > part->from && isspace((unsigned char)parser->text[part->to - 1]))
		part->to--;
	return 0;
}

static int value_take(struct chain_parser *parser, struct text_part *part)
{
	char quote;

	blanks_skip(parser);
	quote = peek(parser);
	if (quote != '"' && quote != '\'')
		return bare_take(parser, part, false);
	part->from = ++parser->at;
	while (peek(parser) && peek(parser) != quote)
		parser->at++;
	part->to = parser->at;
	if (!peek(parser))
		return fault(parser, (struct text_part){part->from - 1, part->to},
			     "a quote %c is not closed", quote);
	parser->at++;
	return 0;
}

static int value_choice(struct chain_parser *parser, const struct processor_option *option,
			struct text_part part, unsigned *value)
{
	struct word_list names = {0};
	char word[WORD_BYTES];

	part_copy(parser, part, word);
	for (unsigned i = 0; option->choices[i]; i++) {
		if (part_is(parser, part, option->choices[i])) {
			*value = i;
			return 0;
		}
		names_add(&names, word, option->choices[i]);
	}
	return unknown(parser, part, option->name, &names);
}

static int value_number(struct chain_parser *parser, const struct processor_option *option,
			struct text_part part, uint64_t *value)
{
	static const char *const examples[] = {
		[PROCESSOR_TIME] = "a time such as 10s or 500ms",
		[PROCESSOR_SIZE] = "a size such as 64MiB",
		[PROCESSOR_NUMBER] = "a whole number",
	};
	char word[WORD_BYTES];
	bool valid;

	part_copy(parser, part, word);
	if (option->type == PROCESSOR_TIME)
		valid = units_parse_duration(word, value);
	else if (option->type == PROCESSOR_SIZE)
		valid = units_parse_bytes(word, value);
	else
		valid = units_parse_number(word, value);
	if (!valid || part.to - part.from >= WORD_BYTES)
		return fault(parser, part, "expected %s for %s, found '%s'", examples[option->type],
			     option->name, show(parser, part).text);
	if (*value >= option->min && *value <= option->max)
		return 0;
	return fault(parser, part, "%s is too %s: expected %s", option->name,
		     *value < option->min ? "small" : "large", option->argument);
}

static int value_fraction(struct chain_parser *parser, const struct processor_option *option,
			  struct text_part part, struct processor_fraction *value)
{
	char word[WORD_BYTES], *slash;
	uint64_t keep, of;

	part_copy(parser, part, word);
	slash = strchr(word, '/');
	if (slash)
		*slash = '\0';
	if (!slash || part.to - part.from >= WORD_BYTES || !units_parse_number(word, &keep) ||
	    !units_parse_number(slash + 1, &of) || !keep || keep > of || of > UINT32_MAX)
		return fault(parser, part, "expected a fraction such as 1/10 for %s, found '%s'",
			     option->name, show(parser, part).text);
	*value = (struct processor_fraction){(uint32_t)keep, (uint32_t)of};
	return 0;
}

static int value_store(struct chain_parser *parser, const struct processor_option *option,
		       struct text_part part)
{
	void *to = (char *)parser->config + option->at;
	uint32_t bit = 1u << (option - parser->type->options);

	if (parser->given & bit)
		return fault(parser, part, "%s was given already", option->name);
	parser->given |= bit;
	if (part.from == part.to)
		return fault(parser, here(parser), "expected %s for %s", option->argument,
			     option->name);
	switch (option->type) {
	case PROCESSOR_CHOICE:
		return value_choice(parser, option, part, to);
	case PROCESSOR_FRACTION:
		return value_fraction(parser, option, part, to);
	case PROCESSOR_TEXT:
	case PROCESSOR_REST:
		*(char **)to = strndup(parser->text + part.from, part.to - part.from);
		return *(char **)to ? 0 : out_of_memory(parser);
	default:
		return value_number(parser, option, part, to);
	}
}

/* ---- options and processors ---- */

/* The option whose name may be left out, unless it was given already. NULL: none. */
static const struct processor_option *option_first(const struct chain_parser *parser)
{
	for (size_t i = 0; i < parser->type->option_count; i++)
		if (parser->type->options[i].first && !(parser->given & 1u << i))
			return &parser->type->options[i];
	return NULL;
}

static int option_parse(struct chain_parser *parser)
{
	uint32_t begin = parser->at;
	struct text_part name = word_take(parser), value;
	const struct processor_option *option = NULL;
	int result;

	if (name.to > name.from && take(parser, '=')) {
		for (size_t i = 0; !option && i < parser->type->option_count; i++)
			if (part_is(parser, name, parser->type->options[i].name))
				option = &parser->type->options[i];
		if (!option)
			return unknown_option(parser, name);
	} else {
		parser->at = begin;
		option = option_first(parser);
	}
	result = value_take(parser, &value);
	if (result)
		return result;
	return option ? value_store(parser, option, value) : unknown_option(parser, value);
}

static int rest_parse(struct chain_parser *parser, const struct processor_option *option)
{
	struct text_part part;
	int result;

	blanks_skip(parser);
	result = bare_take(parser, &part, true);
	return result ?: value_store(parser, option, part);
}

static int options_parse(struct chain_parser *parser)
{
	const struct processor_option *first = option_first(parser);
	int result = 0;

	blanks_skip(parser);
	if (first && first->type == PROCESSOR_REST)
		result = rest_parse(parser, first);
	else if (peek(parser) != ')')
		do
			result = option_parse(parser);
		while (!result && take(parser, ','));
	if (result || take(parser, ')'))
		return result;
	return fault(parser, here(parser), "expected , or ) behind an option of %s()",
		     parser->type->name);
}

static int required_check(struct chain_parser *parser, struct text_part name)
{
	for (size_t i = 0; i < parser->type->option_count; i++) {
		const struct processor_option *option = &parser->type->options[i];

		if (option->required && !(parser->given & 1u << i))
			return fault(parser, name, "%s() needs %s%s%s, as in %s",
				     parser->type->name, option->first ? "" : option->name,
				     option->first ? "" : "=", option->argument,
				     parser->type->example);
	}
	return 0;
}

static int processor_parse(struct chain_parser *parser, struct chain_stages *stages)
{
	struct text_part name = word_take(parser);
	struct chain_stage *stage;
	int result = 0;

	parser->type = processor_type_find(parser->text + name.from, name.to - name.from);
	if (!parser->type)
		return unknown_processor(parser, name);
	if (stages->stages.len >= CHAIN_PROCESSORS_MAX)
		return fault(parser, name, "a chain has at most %d processors",
			     CHAIN_PROCESSORS_MAX);
	stage = chain_stages_insert(stages, stages->stages.len, parser->type);
	if (!stage)
		return out_of_memory(parser);
	parser->config = stage->config;
	parser->given = 0;
	if (take(parser, '('))
		result = options_parse(parser);
	return result ?: required_check(parser, name);
}

int chain_text_parse(struct chain_stages *stages, const char *origin, const char *text,
		     struct error *err)
{
	struct chain_parser parser = {.text = text, .err = err};
	char *masked = secret_masked(text);
	int result;

	parser.source = (struct source){origin, masked, strlen(text)};
	if (!masked)
		return out_of_memory(&parser);
	if (parser.source.len > CHAIN_TEXT_MAX)
		result = error_set(err, EINVAL, "%s: the text is longer than %u bytes", origin,
				   CHAIN_TEXT_MAX);
	else
		do
			result = processor_parse(&parser, stages);
		while (!result && take(&parser, ','));
	if (!result && parser.at < parser.source.len)
		result = fault(&parser, here(&parser), "expected , or the end behind a processor");
	free(masked);
	return result;
}

/* ---- stages ---- */

struct chain_stage *chain_stages_insert(struct chain_stages *stages, size_t at,
					const struct processor_type *type)
{
	struct chain_stage *list, stage = {type, calloc(1, type->config_bytes + 1)};

	if (!stage.config || !vec_push(&stages->stages, stage)) {
		free(stage.config);
		return NULL;
	}
	list = stages->stages.data;
	memmove(list + at + 1, list + at, (stages->stages.len - 1 - at) * sizeof(*list));
	list[at] = stage;
	for (size_t i = 0; i < type->option_count; i++) {
		const struct processor_option *option = &type->options[i];
		char *to = (char *)stage.config + option->at;

		if (option->type == PROCESSOR_TIME || option->type == PROCESSOR_SIZE ||
		    option->type == PROCESSOR_NUMBER)
			*(uint64_t *)to = option->value;
		else if (option->type == PROCESSOR_CHOICE)
			*(unsigned *)to = (unsigned)option->value;
	}
	return &list[at];
}

void chain_stages_free(struct chain_stages *stages)
{
	for (size_t i = 0; i < stages->stages.len; i++) {
		struct chain_stage *stage = &stages->stages.data[i];

		for (size_t j = 0; j < stage->type->option_count; j++) {
			const struct processor_option *option = &stage->type->options[j];

			if (option->type == PROCESSOR_TEXT || option->type == PROCESSOR_REST)
				free(*(char **)((char *)stage->config + option->at));
		}
		free(stage->config);
	}
	vec_free(&stages->stages);
}
