// SPDX-License-Identifier: Apache-2.0
/* Parses lists of parameters, and what a function returns. */
#include <ctype.h>

#include "probe/spec/parse.h"

/* "float x": a parameter that the kernel cannot read must not have a name. */
static int check_named(struct parse *parse, const struct call_type *type, uint32_t from,
		       bool in_memory)
{
	/* For a USDT probe, the note decides where the value is. */
	in_memory |= parse->spec->type == SPEC_USDT;
	if (type->kind == TYPE_FLOAT && type->bytes == LONG_DOUBLE_BYTES)
		return source_fault(&parse->source, from, parse->at, parse->err,
				    "a long double can't be read by the kernel; leave out its "
				    "name");
	if (type->kind == TYPE_FLOAT && (!in_memory || type->bytes != 8))
		return source_fault(&parse->source, from, parse->at, parse->err,
				    in_memory ? "a float can't be widened by the kernel; only "
						"double can be read"
					      : "a floating-point value is in a vector "
						"register, which the kernel can't read; leave out "
						"its name");
	if (!type_letter(type))
		return source_fault(
			&parse->source, from, parse->at, parse->err,
			type->kind == TYPE_VOID
				? "void has no value"
				: "a struct has no value of its own; leave out its name");
	return 0;
}

/* Parses the name after a type. `*name` stays NULL if there is none. */
static int parse_value_name(struct parse *parse, const char **name)
{
	/* Words that are only a part of a type here and therefore not a name: "unsigned
	 * __int128". */
	static const char *const keywords[] = {
		"bool",  "char",     "const",      "double",   "enum",     "float",    "int",
		"long",  "short",    "signed",     "struct",   "union",    "unsigned", "void",
		"_Bool", "_Complex", "_Imaginary", "__int128", "volatile", "restrict",
	};
	uint32_t len = parse_word(parse);

	if (!len)
		return 0;
	if (isdigit((unsigned char)parse->source.text[parse->at]))
		return parse_wrong(parse, "a name begins with a letter");
	for (unsigned i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (parse_word_is(parse, keywords[i]))
			return parse_wrong(parse,
					   "'%s' is no name, and no type with what stands "
					   "before it",
					   keywords[i]);
	*name = parse_keep(parse, parse->at, parse->at + len);
	parse->at += len;
	return *name ? 0 : parse_memory(parse);
}

/* A struct that is passed in memory has an address, so that values can be read from it. Smaller
 * ones may be in registers. */
static bool in_memory(const struct parse *parse, const struct call_param *param)
{
	return parse->spec->type == SPEC_UPROBE && param->type.kind == TYPE_BLOB &&
	       param->type.size > BLOB_IN_REGISTERS_MAX && !param->out;
}

static int parse_param(struct parse *parse, struct spec_side *side)
{
	struct call_param *param = &side->params[side->param_count];
	int result;

	if (side->param_count == SPEC_PARAMS_MAX)
		return parse_wrong(parse, "more than %d parameters", SPEC_PARAMS_MAX);
	parse_blanks(parse);
	*param = (struct call_param){.from = parse->at};
	if (parse_sees(parse, ",") || parse_sees(parse, ")")) { /* a skipped parameter */
		param->type = (struct call_type){.kind = TYPE_WORD, .bytes = 8};
		param->to = parse->at;
		side->param_count++;
		return 0;
	}
	param->out = parse_accept_word(parse, "out");
	result = parse_type(parse, &param->type);
	if (!result)
		result = parse_value_name(parse, &param->name);
	if (!result && param->name)
		result = parse_bytes(parse, &param->type);
	if (!result && !parse_sees(parse, ",") && !parse_sees(parse, ")"))
		return parse_wrong(parse, "expected ',' or ')' behind a parameter, found %s",
				   parse_show(parse).text);
	param->used = in_memory(parse, param);
	if (!result && !param->used && (param->name || param->type.kind == TYPE_VOID))
		result = check_named(parse, &param->type, param->from, param->out);
	if (!result && param->out && param->type.kind == TYPE_XYZ)
		return source_fault(&parse->source, param->from, parse->at, parse->err,
				    "'xyz' is three parameters; in memory they are a dim3");
	param->to = parse->at;
	side->param_count++;
	return result;
}

/* Parses "filename, pid as who": fields of a tracepoint. */
static int parse_listed_field(struct parse *parse, struct spec_side *side)
{
	struct call_param *param = &side->params[side->param_count];
	uint32_t len = parse_word(parse);

	if (!len)
		return parse_wrong(parse, "expected the name of a field, found %s",
				   parse_show(parse).text);
	if (side->param_count == SPEC_PARAMS_MAX)
		return parse_wrong(parse, "more than %d fields", SPEC_PARAMS_MAX);
	*param = (struct call_param){.from = parse->at, .to = parse->at + len, .used = true};
	param->type.name = parse_keep(parse, param->from, param->to);
	param->name = param->type.name;
	parse->at += len;
	if (parse_accept_word(parse, "as")) {
		len = parse_word(parse);
		if (!len)
			return parse_wrong(parse, "expected a name behind 'as'");
		param->name = parse_keep(parse, parse->at, parse->at + len);
		parse->at += len;
	} else if (parse_word(parse)) {
		return source_fault(&parse->source, param->from, param->to, parse->err,
				    "fields of a tracepoint have no types: only their names are "
				    "listed");
	}
	side->param_count++;
	return param->name ? 0 : parse_memory(parse);
}

int parse_params(struct parse *parse, struct spec_side *side)
{
	bool fields = parse->spec->type == SPEC_TRACEPOINT;
	uint32_t at;
	int result = 0;

	parse_accept(parse, "(");
	side->listed = true;
	if (parse_accept(parse, ")"))
		return 0;
	at = parse->at;
	if (parse_accept_word(parse, "void") && parse_accept(parse, ")"))
		return 0;
	parse->at = at;
	if (parse_accept(parse, "...")) {
		side->raw = true;
		return parse_expect(parse, ")", "behind '...'");
	}
	do {
		result = fields ? parse_listed_field(parse, side) : parse_param(parse, side);
	} while (!result && parse_accept(parse, ","));
	return result ?: parse_expect(parse, ")", "behind the parameters");
}

int parse_returned(struct parse *parse)
{
	struct call_spec *spec = parse->spec;
	uint32_t from, len;
	int result;

	if (spec->type != SPEC_UPROBE)
		return parse_wrong(parse, "only a function returns a value");
	if (spec->pair)
		return parse_wrong(parse, "what is known at the end of a pair are the arguments of "
					  "its second side");
	parse_accept(parse, "->");
	parse_blanks(parse);
	from = parse->at;
	result = parse_type(parse, &spec->returned);
	len = parse_word(parse);
	if (!result && len && !parse_is_option(parse)) {
		result = parse_value_name(parse, &spec->returned_name)
				 ?: check_named(parse, &spec->returned, from, false);
	}
	if (!result && parse_sees(parse, "{"))
		result = parse_values(parse, &spec->sides[0], true);
	return result;
}
