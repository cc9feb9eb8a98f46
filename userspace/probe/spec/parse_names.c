// SPDX-License-Identifier: Apache-2.0
/* Parses names of libraries and functions, and the values in a name for spans. */
#include "probe/spec/parse.h"

#include <stdio.h>
#include <string.h>

/* Adds one alternative, [from, to) of the source. */
static int add_pattern(struct parse *parse, struct spec_names *names, uint32_t from, uint32_t to,
		       bool literal)
{
	struct spec_pattern *pattern = &names->list[names->count];
	size_t fault;

	if (from == to)
		return source_fault(&parse->source, from, from + 1, parse->err,
				    "expected a name here");
	if (names->count == SPEC_NAMES_MAX)
		return source_fault(&parse->source, from, to, parse->err,
				    "more than %d alternatives; give them a description each",
				    SPEC_NAMES_MAX);
	pattern->text = parse_keep(parse, from, to);
	pattern->glob = NULL;
	if (!pattern->text)
		return parse_memory(parse);
	if (!literal && strpbrk(pattern->text, "*?[")) {
		if (to - from > 256)
			return source_fault(&parse->source, from, to, parse->err,
					    "a pattern of more than 256 bytes");
		pattern->glob = glob_new(pattern->text, to - from, &fault);
		if (!pattern->glob && fault == to - from)
			return parse_memory(parse);
		if (!pattern->glob)
			return source_fault(&parse->source, from + (uint32_t)fault, to, parse->err,
					    "'%c' is wrong here in a pattern",
					    pattern->text[fault]);
	}
	names->count++;
	return 0;
}

/* The end of a part of the head: its ':'. */
static uint32_t part_end(const struct parse *parse)
{
	uint32_t at = parse->at;

	while (at < parse->source.len && !strchr(" \t\n():", parse->source.text[at]))
		at++;
	return at;
}

/* Position after the "<…>" of a template; `at` if it has no end, as in "operator<". */
static uint32_t template_end(const struct parse *parse, uint32_t at)
{
	uint32_t depth = 0;

	for (uint32_t end = at; end < parse->source.len; end++) {
		depth += parse->source.text[end] == '<';
		depth -= parse->source.text[end] == '>';
		if (!depth)
			return end + 1;
	}
	return at;
}

/* The end of a function's name: a space, '(', '{' or the ".." of a pair. */
static uint32_t name_end(const struct parse *parse)
{
	const char *text = parse->source.text;
	uint32_t at = parse->at, end;

	while (at < parse->source.len && !strchr(" \t\n({,", text[at]) &&
	       !(text[at] == '.' && at + 1 < parse->source.len && text[at + 1] == '.')) {
		end = text[at] == '<' ? template_end(parse, at) : at;
		at = end > at ? end : at + 1;
	}
	return at;
}

/* Parses "a|b*|"c d"": a name in quotes is not a pattern. */
static int parse_names(struct parse *parse, struct spec_names *names,
		       uint32_t (*names_end)(const struct parse *parse))
{
	uint32_t from, to;
	bool more = true;

	names->from = parse->at;
	while (more) {
		bool quoted = parse->at < parse->source.len && parse->source.text[parse->at] == '"';

		if (quoted) {
			if (parse_quoted(parse, &from, &to))
				return -EINVAL;
		} else {
			const char *bar;

			from = parse->at;
			to = names_end(parse);
			bar = memchr(parse->source.text + from, '|', to - from);
			to = bar ? (uint32_t)(bar - parse->source.text) : to;
			parse->at = to;
		}
		if (add_pattern(parse, names, from, to, quoted))
			return -EINVAL;
		more = parse->at < parse->source.len && parse->source.text[parse->at] == '|';
		parse->at += more;
	}
	names->to = parse->at;
	/* Messages show a single name without its quotes. */
	if (names->count == 1) {
		names->from = from;
		names->to = to;
	}
	return 0;
}

/* Parses a part of the head that ends with a ':'. */
int parse_part(struct parse *parse, struct spec_names *names, const char *what)
{
	if (parse_names(parse, names, part_end))
		return -EINVAL;
	if (parse->at >= parse->source.len || parse->source.text[parse->at] != ':')
		return parse_wrong(parse, "expected ':' behind the %s", what);
	parse->at++;
	return 0;
}

int parse_side(struct parse *parse, struct spec_side *side)
{
	int result;

	parse_blanks(parse);
	result = parse_names(parse, &side->names, name_end);
	if (!result && parse_sees(parse, "("))
		result = parse_params(parse, side);
	if (!result && parse_sees(parse, "{"))
		result = parse_values(parse, side, false);
	return result;
}

/* Whether a word means the N-th argument of a USDT probe, of which only the note knows whether it
 * exists. */
static bool is_noted(const struct call_spec *spec, const char *key, size_t len)
{
	const struct spec_side *side = &spec->sides[0];

	return spec->type == SPEC_USDT && !side->listed && !side->value_count && len > 3 &&
	       !memcmp(key, "arg", 3) && strspn(key + 3, "0123456789") == len - 3;
}

bool template_key_is(const char *name, const char *key, size_t len, struct suggestions *similar)
{
	char word[64] = "";

	memcpy(word, key, len < sizeof(word) ? len : sizeof(word) - 1);
	suggestions_add(similar, word, name);
	return strlen(name) == len && !memcmp(name, key, len);
}

static bool has_key(const void *arg, const char *key, size_t len, struct suggestions *similar)
{
	const struct call_spec *spec = arg;

	if (is_noted(spec, key, len))
		return true;
	for (unsigned side = 0; side < 1u + spec->pair; side++)
		for (unsigned i = 0; i < spec->sides[side].value_count; i++)
			if (template_key_is(spec->sides[side].values[i].name, key, len, similar))
				return true;
	return false;
}

int template_check(const struct call_spec *spec, template_has has, const void *arg,
		   struct error *err)
{
	for (const char *at = spec->name; at && (at = strchr(at, '{'));) {
		const char *end = strchr(at, '}');
		uint32_t from = spec->name_from + (uint32_t)(at - spec->name);
		struct suggestions similar = {.len = 0};
		uint32_t len;

		if (!end)
			return source_fault(&spec->source, from, from + 1, err,
					    "a '{' without its '}': {key} in a name becomes the "
					    "value of that key");
		len = (uint32_t)(end - at) - 1;
		if ((len != 4 || memcmp(at + 1, "func", 4) != 0) &&
		    !has(arg, at + 1, len, &similar))
			return source_fault(&spec->source, from + 1, from + 1 + (len ? len : 1),
					    err, "no value '%s' of this call%s",
					    source_show(at + 1, len).text, similar.text);
		at = end;
	}
	return 0;
}

int parse_template(struct parse *parse)
{
	/* For a tracepoint only the kernel has the list. */
	return parse->spec->type == SPEC_TRACEPOINT
		       ? 0
		       : template_check(parse->spec, has_key, parse->spec, parse->err);
}
