// SPDX-License-Identifier: Apache-2.0
/* Parses the head of a description and its options. */
#include "probe/spec/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const role_names[SITE_ROLE_COUNT] = {
#define NAME(id, name, ...) [SITE_ROLE_##id] = (name),
	SITE_ROLES(NAME, NAME, NAME)
#undef NAME
};

#define NAME_BYTES 512
#define OPTIONS_SHOWN "as category role key outer inner stack nounwind frame"

/* A name in quotes, or up to the next space. */
static int parse_name(struct parse *parse, const char **name, const char *what)
{
	uint32_t from, to;

	if (parse_ended(parse) || parse_sees(parse, "->"))
		return parse_wrong(parse, "expected the %s", what);
	from = to = parse->at;
	if (parse->source.text[from] == '"') {
		if (parse_quoted(parse, &from, &to))
			return -EINVAL;
	} else {
		while (to < parse->source.len && !isspace((unsigned char)parse->source.text[to]))
			to++;
		parse->at = to;
	}
	if (from == to)
		return source_fault(&parse->source, from - 1, to + 1, parse->err, "the %s is empty",
				    what);
	*name = parse_keep(parse, from, to);
	return *name ? 0 : parse_memory(parse);
}

static int event_returns(struct parse *parse)
{
	return parse_wrong(parse,
			   "an event is over at the entry: leave out '-> …', or write 'as span'");
}

static int parse_as(struct parse *parse)
{
	struct call_spec *spec = parse->spec;
	bool span = parse_word_is(parse, "span");

	if (!span && !parse_word_is(parse, "event"))
		return parse_wrong(parse, "expected 'span' or 'event' behind 'as', found %s",
				   parse_show(parse).text);
	if (span && !spec->pair && spec->type != SPEC_UPROBE)
		return parse_wrong(parse, "%s has no end: write 'as event'%s",
				   spec->type == SPEC_USDT ? "a USDT probe" : "a tracepoint",
				   spec->type == SPEC_USDT ? ", or two of them: A..B" : "");
	if (!span && spec->pair)
		return parse_wrong(parse, "a pair A..B is a span");
	if (!span && spec->returned_name)
		return event_returns(parse);
	spec->event = !span;
	parse->at += span ? 4 : 5;
	if (parse_ended(parse) || parse_is_option(parse) || parse_sees(parse, "->"))
		return 0;
	if (parse_name(parse, &spec->name, "name behind 'as'"))
		return -EINVAL;
	spec->name_from = parse->at - (parse->source.text[parse->at - 1] == '"') -
			  (uint32_t)strlen(spec->name);
	return 0;
}

static int parse_role(struct parse *parse)
{
	uint32_t len = parse_word(parse);
	struct suggestions similar = {.len = 0};
	char word[32];

	for (unsigned i = 0; i < SITE_ROLE_COUNT; i++) {
		if (parse_accept_word(parse, role_names[i])) {
			parse->spec->role = (uint16_t)i;
			return 0;
		}
	}
	snprintf(word, sizeof(word), "%.*s", (int)len, parse->source.text + parse->at);
	for (unsigned i = 0; i < SITE_ROLE_COUNT; i++)
		suggestions_add(&similar, word, role_names[i]);
	return parse_wrong(parse, "unknown role %s%s", parse_show(parse).text, similar.text);
}

static int parse_pair_key(struct parse *parse)
{
	struct call_spec *spec = parse->spec;
	uint32_t at;
	int result;

	if (!spec->pair)
		return parse_wrong(parse, "a key joins the two ends of a pair A..B; this is none");
	parse->at += 3;
	result = parse_expect(parse, "=", "behind 'key'");
	at = parse->at;
	result = result ?: parse_key(parse, &spec->sides[0]);
	if (!result && !parse_accept(parse, ".."))
		parse->at = at;
	return result ?: parse_key(parse, &spec->sides[1]);
}

/* A "->" after an option. If it is wrong in other ways, too, report those instead of its
 * position. */
static int returned_late(struct parse *parse)
{
	const struct call_spec *spec = parse->spec;

	if (spec->type != SPEC_UPROBE || spec->pair)
		return parse_returned(parse);
	if (spec->event)
		return event_returns(parse);
	if (spec->returned.kind)
		return parse_wrong(parse, "a second '->'");
	return parse_wrong(parse, "what a function returns stands before the options, behind its "
				  "parameters");
}

static int parse_option(struct parse *parse)
{
	uint32_t flag;

	if (parse_accept_word(parse, "as"))
		return parse_as(parse);
	if (parse_accept_word(parse, "category"))
		return parse_name(parse, &parse->spec->category, "category");
	if (parse_accept_word(parse, "role"))
		return parse_role(parse);
	if (parse_word_is(parse, "key"))
		return parse_pair_key(parse);
	flag = parse_flag(parse);
	if (flag) {
		parse->spec->flags |= flag;
		parse->at += parse_word(parse);
		return 0;
	}
	if (parse_sees(parse, "->"))
		return returned_late(parse);
	return parse_wrong(parse, "unknown option %s: expected " OPTIONS_SHOWN,
			   parse_show(parse).text);
}

/* Parses "uprobe:", "usdt:" or "tracepoint:", and the parts up to the function. */
static int parse_head(struct parse *parse)
{
	static const char *const kinds[] = {"uprobe", "usdt", "tracepoint"};
	struct call_spec *spec = parse->spec;
	struct suggestions similar = {.len = 0};
	char word[16];

	for (unsigned i = 0; i < 3; i++) {
		if (!parse_word_is(parse, kinds[i]))
			continue;
		spec->type = (enum spec_type)i;
		parse->at += (uint32_t)strlen(kinds[i]);
		if (parse_expect(parse, ":", "behind the kind"))
			return -EINVAL;
		if (i == SPEC_TRACEPOINT)
			return parse_part(parse, &spec->provider, "category of a tracepoint");
		if (parse_part(parse, &spec->libs, "library"))
			return -EINVAL;
		return i == SPEC_USDT ? parse_part(parse, &spec->provider, "provider") : 0;
	}
	snprintf(word, sizeof(word), "%.*s", (int)parse_word(parse),
		 parse->source.text + parse->at);
	for (unsigned i = 0; i < 3; i++)
		suggestions_add(&similar, word, kinds[i]);
	return parse_wrong(parse,
			   "expected uprobe:LIB:FUNC, usdt:LIB:PROVIDER:PROBE or "
			   "tracepoint:CATEGORY:NAME, found %s%s",
			   parse_show(parse).text, similar.text);
}

/* Checks that need the complete description. */
static int parse_whole(struct parse *parse)
{
	struct call_spec *spec = parse->spec;

	if (spec->type != SPEC_UPROBE && !spec->pair)
		spec->event = true;
	if (spec->pair && spec->type == SPEC_UPROBE && !spec->sides[0].key.to)
		return source_fault(&parse->source, spec->sides[0].names.from,
				    spec->sides[1].names.to, parse->err,
				    "a pair needs a key that both ends know: key=arg1, or key=tid "
				    "if they are of one thread");
	if (spec->pair && !spec->sides[0].key.to)
		spec->sides[0].key = spec->sides[1].key =
			(struct call_value){.base = VALUE_THREAD, .to = 1};
	if (spec->flags & WAFFLE_CALL_OUTER && spec->flags & WAFFLE_CALL_INNER)
		return source_fault(&parse->source, 0, (uint32_t)parse->source.len, parse->err,
				    "a call is 'outer' or 'inner', not both");
	if (spec->flags & WAFFLE_CALL_FRAME &&
	    (spec->type != SPEC_USDT || !spec->pair || spec->sides[0].key.base != VALUE_THREAD))
		return source_fault(&parse->source, 0, (uint32_t)parse->source.len, parse->err,
				    "'frame' is for pairs of USDT probes that are in one function: "
				    "usdt:LIB:PROVIDER:A..B key=tid frame");
	for (unsigned i = 0; spec->event && i < spec->sides[0].value_count; i++)
		if (spec->sides[0].values[i].at_return)
			return source_fault(&parse->source, spec->sides[0].values[i].from,
					    spec->sides[0].values[i].to, parse->err,
					    "known at the return only, and an event is over at the "
					    "entry; write 'as span'");
	return 0;
}

static int parse_all(struct parse *parse)
{
	struct call_spec *spec = parse->spec;
	int result = parse_head(parse) ?: parse_side(parse, &spec->sides[0]);

	if (!result && parse_accept(parse, "..")) {
		if (spec->type == SPEC_TRACEPOINT)
			return parse_wrong(parse, "pairs of tracepoints are not supported");
		spec->pair = true;
		result = parse_side(parse, &spec->sides[1]);
	}
	if (!result && parse_sees(parse, "->"))
		result = parse_returned(parse);
	while (!result && !parse_ended(parse))
		result = parse_option(parse);
	result = result ?: parse_order(parse, &spec->sides[0]);
	if (!result && spec->pair)
		result = parse_order(parse, &spec->sides[1]) ?: parse_pair_values(parse);
	return result ?: parse_template(parse) ?: parse_whole(parse);
}

int spec_parse(struct call_spec *spec, struct spec_tables *tables, const char *text,
	       const char *where, struct error *err)
{
	struct parse parse = {.tables = tables, .spec = spec, .err = err};

	spec->role = SITE_ROLE_NONE;
	parse.source = (struct source){where, text, strlen(text)};
	if (parse.source.len > SPEC_BYTES_MAX)
		return error_set(err, EINVAL, "%s: a description of more than %d bytes", where,
				 SPEC_BYTES_MAX);
	spec->source.text = parse_keep(&parse, 0, (uint32_t)parse.source.len);
	spec->source.origin =
		strtab_get(tables->strings, strtab_add(tables->strings, where, strlen(where)));
	if (!spec->source.text)
		return parse_memory(&parse);
	spec->source.len = parse.source.len;
	parse.source = spec->source;
	return parse_all(&parse);
}

static void names_free(struct spec_names *names)
{
	for (unsigned i = 0; i < names->count; i++)
		glob_free(names->list[i].glob);
	names->count = 0;
}

void spec_free(struct call_spec *spec)
{
	names_free(&spec->libs);
	names_free(&spec->provider);
	names_free(&spec->sides[0].names);
	names_free(&spec->sides[1].names);
}

const char *spec_name(const struct call_spec *spec, const char *func, struct strtab *strings)
{
	static const char mark[] = "{func}";
	char text[NAME_BYTES];
	const char *at = spec->name, *found;
	int len = 0;

	if (!spec->name)
		return strtab_get(strings, strtab_add(strings, func, strlen(func)));
	for (; (found = strstr(at, mark)); at = found + strlen(mark)) {
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%.*s%s", (int)(found - at),
				at, func);
		if (len >= (int)sizeof(text))
			len = sizeof(text) - 1;
	}
	snprintf(text + len, sizeof(text) - (size_t)len, "%s", at);
	return strtab_get(strings, strtab_add(strings, text, strlen(text)));
}

bool spec_pattern_matches(const struct spec_pattern *pattern, const char *text)
{
	return pattern->glob ? glob_matches(pattern->glob, text, strlen(text))
			     : !strcmp(pattern->text, text);
}

bool spec_names_match(const struct spec_names *names, const char *text)
{
	for (unsigned i = 0; i < names->count; i++)
		if (spec_pattern_matches(&names->list[i], text))
			return true;
	return false;
}

bool spec_laps(const struct call_spec *spec)
{
	const struct spec_names *begin = &spec->sides[0].names, *end = &spec->sides[1].names;

	if (!spec->pair || begin->count != end->count)
		return false;
	for (unsigned i = 0; i < begin->count; i++)
		if (strcmp(begin->list[i].text, end->list[i].text))
			return false;
	return true;
}

bool spec_is_enum(const char *text)
{
	text += strspn(text, " \t");
	return !strncmp(text, "enum", 4) && (text[4] == ' ' || text[4] == '\t');
}

/* "enum NAME A B - D": '-' marks a number without a name. */
int spec_parse_enum(struct spec_tables *tables, const char *text, const char *where,
		    struct error *err)
{
	struct parse parse = {.tables = tables, .source = {where, text, strlen(text)}, .err = err};
	struct waffle_enum names = {0};
	uint32_t len, count = 0;
	const char *name;

	parse_accept_word(&parse, "enum");
	len = parse_word(&parse);
	if (!len)
		return parse_wrong(&parse, "expected the name of the table");
	name = parse_keep(&parse, parse.at, parse.at + len);
	parse.at += len;
	if (!name)
		return parse_memory(&parse);
	for (; !parse_ended(&parse); count++) {
		uint32_t from = parse.at, to = from;

		while (to < parse.source.len && !isspace((unsigned char)text[to]))
			to++;
		if (count == WAFFLE_ENUM_NAMES_MAX || to - from > sizeof(names.names[0]))
			return source_fault(&parse.source, from, to, err,
					    count == WAFFLE_ENUM_NAMES_MAX
						    ? "a table has at most 64 names"
						    : "a name has at most 8 bytes");
		if (to - from != 1 || text[from] != '-')
			memcpy(names.names[count], text + from, to - from);
		parse.at = to;
	}
	for (size_t i = 0; i < tables->enum_names.len; i++)
		if (tables->enum_names.data[i] == name) {
			if (!memcmp(&tables->enums.data[i], &names, sizeof(names)))
				return 0;
			return error_set(err, EINVAL, "%s: table '%s' has other names already",
					 where, name);
		}
	if (tables->enums.len == WAFFLE_ENUMS_MAX)
		return error_set(err, E2BIG, "%s: more than %d tables of names", where,
				 WAFFLE_ENUMS_MAX);
	return vec_push(&tables->enums, names) && vec_push(&tables->enum_names, name)
		       ? 0
		       : parse_memory(&parse);
}
