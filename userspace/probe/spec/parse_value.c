// SPDX-License-Identifier: Apache-2.0
/* Parses expressions over the arguments and keys of pairs, and orders the keys of a call. */
#include <ctype.h>
#include <strings.h>
#include <string.h>

#include "probe/spec/parse.h"

#define OFFSET_MAX 0x7fffffff
#define NESTED_MAX 4

static int add_step(struct parse *parse, struct call_value *value, struct value_step step)
{
	if (value->step_count == SPEC_STEPS_MAX)
		return source_fault(&parse->source, step.from, step.to, parse->err,
				    "more than %d steps in an expression", SPEC_STEPS_MAX);
	value->steps[value->step_count++] = step;
	return 0;
}

/* "arg3", "ARG3": 2. -1: another word. */
static int raw_index(struct parse *parse, uint32_t len)
{
	const char *text = parse->source.text + parse->at;

	if (len == 4 && !strncasecmp(text, "arg", 3) && text[3] >= '1' && text[3] <= '9')
		return text[3] - '1';
	if (len == 5 && !strncasecmp(text, "arg1", 4) && isdigit((unsigned char)text[4]))
		return 9 + text[4] - '0';
	return -1;
}

static struct call_param *find_param(struct parse *parse, struct spec_side *side, uint32_t len)
{
	for (unsigned i = 0; i < side->param_count; i++) {
		struct call_param *param = &side->params[i];

		if (param->name && strlen(param->name) == len &&
		    !memcmp(param->name, parse->source.text + parse->at, len))
			return param;
	}
	return NULL;
}

static int unknown_base(struct parse *parse, const struct spec_side *side)
{
	uint32_t len = parse_word(parse);
	const char *word = parse_keep(parse, parse->at, parse->at + len);
	struct suggestions similar = {.len = 0};

	for (unsigned i = 0; word && i < side->param_count; i++)
		if (side->params[i].name)
			suggestions_add(&similar, word, side->params[i].name);
	return parse_wrong(parse,
			   "expected a parameter's name, arg1, ret, duration or tid, "
			   "found %s%s",
			   parse_show(parse).text, similar.text);
}

/* Checks that argument `index` can be read, as far as this is known now: a USDT probe's note knows
 * more. */
static int check_raw(struct parse *parse, const struct spec_side *side, int index)
{
	const struct call_param *param = &side->params[index];

	if (parse->spec->type != SPEC_UPROBE)
		return 0;
	if (index < side->param_count && param->type.kind == TYPE_FLOAT && !param->out)
		return parse_wrong(parse, "a floating-point value, which the kernel can't read");
	if (index < side->param_count && param->type.kind == TYPE_SRET)
		return parse_wrong(parse, "the place of the returned struct is not an argument");
	if (index >= side->param_count && index >= SPEC_RAW_ARGS)
		return parse_wrong(
			parse,
			"the place of an argument behind the sixth one depends on the types before "
			"it: list the parameters");
	return 0;
}

/* Parses the base of an expression. */
static int parse_base(struct parse *parse, struct spec_side *side, struct call_value *value)
{
	struct call_spec *spec = parse->spec;
	uint32_t len = parse_word(parse);
	struct call_param *param = len ? find_param(parse, side, len) : NULL;
	int raw = raw_index(parse, len);

	value->type = (struct call_type){.kind = TYPE_POINTER, .bytes = 8};
	if (param) {
		value->base = VALUE_PARAM;
		value->index = (uint8_t)(param - side->params);
		value->type = param->type;
		value->name = param->name;
		param->used = true;
		if (param->out) {
			value->at_return = true;
			value->in_memory = true;
		}
	} else if (raw >= 0) {
		if (check_raw(parse, side, raw))
			return -EINVAL;
		value->base = VALUE_RAW;
		value->index = (uint8_t)raw;
		value->name = parse_keep(parse, parse->at, parse->at + len);
	} else if (parse_word_is(parse, "ret") ||
		   (spec->returned_name && parse_word_is(parse, spec->returned_name))) {
		value->base = VALUE_RETURNED;
		value->at_return = true;
		value->type = spec->returned.kind ? spec->returned : value->type;
		value->name = spec->returned_name ? spec->returned_name : "ret";
	} else if (parse_word_is(parse, "duration")) {
		value->base = VALUE_DURATION;
		value->at_return = true;
		value->type = (struct call_type){.kind = TYPE_WORD, .bytes = 8};
		value->name = "duration";
	} else if (parse_word_is(parse, "tid")) {
		value->base = VALUE_THREAD;
		value->name = "tid";
	} else {
		return unknown_base(parse, side);
	}
	parse->at += len;
	return 0;
}

/* Loads the value in memory, as the base of the next step. */
static int settle(struct parse *parse, struct call_value *value)
{
	if (!value->in_memory)
		return 0;
	value->in_memory = false;
	return add_step(
		parse, value,
		(struct value_step){.kind = STEP_LOAD, .from = value->from, .to = parse->at});
}

/* Parses "->field" or ".field". */
static int parse_fields(struct parse *parse, struct call_value *value)
{
	int result = 0;

	while (!result) {
		struct value_step step = {.kind = STEP_FIELD, .from = parse->at};
		uint32_t len;

		step.arrow = parse_sees(parse, "->");
		if (!step.arrow && (!parse_sees(parse, ".") || parse_sees(parse, "..")))
			break;
		parse->at += step.arrow ? 2 : 1;
		len = parse_word(parse);
		if (!len)
			return parse_wrong(parse, "expected a field's name, found %s",
					   parse_show(parse).text);
		if (!value->by_fields && (value->type.kind != TYPE_POINTER || !value->type.name))
			return source_fault(&parse->source, value->from, step.from, parse->err,
					    "its fields are not known: declare it as a pointer to "
					    "its struct, such as struct request *r");
		if (!value->by_fields && !step.arrow)
			return source_fault(&parse->source, step.from, parse->at, parse->err,
					    "a pointer's fields are behind '->'");
		step.name = parse_keep(parse, parse->at, parse->at + len);
		parse->at += len;
		step.to = parse->at;
		if (!step.name)
			return parse_memory(parse);
		result = value->by_fields ? 0 : settle(parse, value);
		value->by_fields = true;
		value->name = step.name;
		result = result ?: add_step(parse, value, step);
	}
	return result;
}

/* Parses "16" or "$rank". */
static int parse_offset(struct parse *parse, bool minus, struct value_step *step)
{
	int64_t number = 0;
	int result = 0;

	if (!minus && parse_accept(parse, "$")) {
		uint32_t len = parse_word(parse);

		step->name = parse_keep(parse, parse->at, parse->at + len);
		parse->at += len;
		if (!step->name || !len)
			return parse_wrong(parse, "expected a name behind '$'");
	} else {
		result = parse_number(parse, &number, 0, OFFSET_MAX);
	}
	step->offset = (int32_t)(minus ? -number : number);
	step->to = parse->at;
	return result;
}

/* Parses "+16", "-8" or "+$rank". */
static int parse_offsets(struct parse *parse, struct call_value *value)
{
	int result = 0;

	while (!result &&
	       (parse_sees(parse, "+") || (parse_sees(parse, "-") && !parse_sees(parse, "->")))) {
		struct value_step step = {.kind = STEP_ADD, .from = parse->at};
		bool minus = parse_accept(parse, "-");

		if (!minus)
			parse_accept(parse, "+");
		if (value->by_fields)
			return parse_wrong(parse, "an offset can't be added to a field: write "
						  "*(type)(…) around");
		result = settle(parse, value)
				 ?: parse_offset(parse, minus, &step)
				 ?: add_step(parse, value, step);
		value->name = NULL;
		value->type = (struct call_type){.kind = TYPE_POINTER, .bytes = 8};
	}
	return result;
}

static int parse_sum(struct parse *parse, struct spec_side *side, struct call_value *value,
		     unsigned depth);

/* Parses "*(type)(sum)". */
static int parse_dereference(struct parse *parse, struct spec_side *side, struct call_value *value,
			     unsigned depth)
{
	struct call_type type;
	uint32_t from;
	int result = parse_expect(parse, "(", "and a type behind '*', as in *(int)(p+8)");

	parse_blanks(parse);
	from = parse->at;
	result = result ?: parse_type(parse, &type) ?: parse_expect(parse, ")", "behind the type");
	if (result)
		return result;
	if (!type_letter(&type) || type.kind == TYPE_XYZ ||
	    (type.kind == TYPE_FLOAT && type.bytes != 8))
		return source_fault(&parse->source, from, parse->at - 1, parse->err,
				    "no such value can be read from memory");
	if (parse_accept(parse, "("))
		result = parse_sum(parse, side, value, depth + 1)
				 ?: parse_expect(parse, ")", "behind the address");
	else
		result = parse_base(parse, side, value);
	result = result ?: settle(parse, value);
	value->in_memory = true;
	value->by_fields = false;
	value->type = type;
	value->name = NULL;
	return result;
}

static int parse_sum(struct parse *parse, struct spec_side *side, struct call_value *value,
		     unsigned depth)
{
	int result;

	if (depth > NESTED_MAX)
		return parse_wrong(parse, "nested too deep");
	if (parse_accept(parse, "*"))
		result = parse_dereference(parse, side, value, depth);
	else if (parse_accept(parse, "("))
		result = parse_sum(parse, side, value, depth + 1)
				 ?: parse_expect(parse, ")", "behind an expression");
	else
		result = parse_base(parse, side, value);
	return result ?: parse_fields(parse, value) ?: parse_offsets(parse, value);
}

/* Parses "seq(comm)", "seq:coll(comm)" or "seq:coll(comm, $hash)". */
static int parse_sequence(struct parse *parse, struct spec_side *side, struct call_value *value)
{
	const char *group = "seq";
	uint32_t len;
	int result;

	if (parse_accept(parse, ":")) {
		len = parse_word(parse);
		group = parse_keep(parse, parse->at, parse->at + len);
		parse->at += len;
	} else {
		group = strtab_get(parse->tables->strings,
				   strtab_add(parse->tables->strings, group, strlen(group)));
	}
	if (!group)
		return parse_memory(parse);
	result = parse_expect(parse, "(", "behind 'seq'") ?: parse_sum(parse, side, value, 0);
	value->tagged = !result && parse_accept(parse, ",");
	if (value->tagged) {
		parse_blanks(parse);
		result = parse_offset(parse, false, &value->tag);
	}
	result = result ?: parse_expect(parse, ")", "behind the value");
	if (result)
		return result;
	value->sequence = true;
	value->name = "seq";
	for (size_t i = 0; i < parse->tables->sequences.len; i++)
		if (parse->tables->sequences.data[i] == group)
			value->sequence_group = (uint32_t)i + 1;
	if (!value->sequence_group) {
		if (!vec_push(&parse->tables->sequences, group))
			return parse_memory(parse);
		value->sequence_group = (uint32_t)parse->tables->sequences.len;
	}
	return 0;
}

static int parse_expression(struct parse *parse, struct spec_side *side, struct call_value *value)
{
	int result;

	parse_blanks(parse);
	value->from = parse->at;
	if (parse_word_is(parse, "seq") && !find_param(parse, side, 3)) {
		parse->at += 3;
		result = parse_sequence(parse, side, value);
	} else {
		result = parse_sum(parse, side, value, 0);
	}
	value->to = parse->at;
	while (value->to > value->from && isspace((unsigned char)parse->source.text[value->to - 1]))
		value->to--;
	return result;
}

/* Parses "if count > 3", the condition of a value. */
static int parse_condition(struct parse *parse, struct spec_side *side, struct call_value *value)
{
	uint32_t len = parse_word(parse);
	const struct call_param *param = find_param(parse, side, len);
	int64_t number = 0;

	if (!param || param->out || param->type.kind != TYPE_WORD)
		return parse_wrong(parse,
				   "expected a parameter that is a number behind 'if', found %s",
				   parse_show(parse).text);
	parse->at += len;
	if (parse_expect(parse, ">", "behind the parameter") ||
	    parse_number(parse, &number, INT32_MIN, INT32_MAX))
		return -EINVAL;
	value->conditional = true;
	value->count_index = (uint8_t)(param - side->params);
	value->at_least = (int32_t)number;
	return 0;
}

/* Parses "unless $rank": the value is read only where that offset is unknown. */
static int parse_unless(struct parse *parse, struct call_value *value)
{
	struct value_step step = {0};

	parse_blanks(parse);
	if (!parse_sees(parse, "$"))
		return parse_wrong(parse, "expected an offset such as $rank behind 'unless'");
	if (parse_offset(parse, false, &step))
		return -EINVAL;
	value->unless_offset = step.name;
	return 0;
}

static int parse_value(struct parse *parse, struct spec_side *side, bool returned)
{
	struct call_value *value = &side->values[side->value_count];
	bool out;
	int result;

	if (side->value_count == SPEC_VALUES_MAX)
		return parse_wrong(parse, "more than %d values", SPEC_VALUES_MAX);
	*value = (struct call_value){0};
	out = parse_accept_word(parse, "out");
	result = parse_expression(parse, side, value);
	value->at_return |= out || returned;
	if (!result && value->base == VALUE_THREAD)
		return source_fault(&parse->source, value->from, value->to, parse->err,
				    "the thread is known of every span; 'tid' is for the key of a "
				    "pair");
	if (!result && !value->by_fields && !type_letter(&value->type))
		return source_fault(&parse->source, value->from, value->to, parse->err,
				    "a struct has no value of its own");
	if (!result && value->sequence && value->at_return)
		return source_fault(&parse->source, value->from, value->to, parse->err,
				    "calls are numbered at their entry");
	if (!result && parse_accept_word(parse, "as")) {
		uint32_t len = parse_word(parse);

		if (!len)
			return parse_wrong(parse, "expected a name behind 'as'");
		value->name = parse_keep(parse, parse->at, parse->at + len);
		parse->at += len;
	}
	if (!result && !value->name)
		return source_fault(&parse->source, value->from, value->to, parse->err,
				    "a name is needed: … as NAME");
	if (!result && parse_accept_word(parse, "if"))
		result = parse_condition(parse, side, value);
	if (!result && parse_accept_word(parse, "unless"))
		result = parse_unless(parse, value);
	side->value_count++;
	return result;
}

int parse_values(struct parse *parse, struct spec_side *side, bool returned)
{
	int result;

	parse_accept(parse, "{");
	if (parse->spec->type == SPEC_TRACEPOINT)
		return parse_wrong(parse, "the fields of a tracepoint are listed in (…)");
	do {
		result = parse_value(parse, side, returned);
	} while (!result && parse_accept(parse, ","));
	return result ?: parse_expect(parse, "}", "behind the values");
}

int parse_key(struct parse *parse, struct spec_side *side)
{
	uint8_t count = side->param_count;
	bool before[SPEC_PARAMS_MAX];
	int result;

	for (unsigned i = 0; i < count; i++)
		before[i] = side->params[i].used;
	side->key = (struct call_value){0};
	result = parse_expression(parse, side, &side->key);
	/* A value that is a pair's key may also be recorded. */
	for (unsigned i = 0; i < count; i++)
		side->params[i].used = before[i];
	if (!result && (side->key.at_return || side->key.sequence))
		return source_fault(&parse->source, side->key.from, side->key.to, parse->err,
				    "the key must be known when the function is entered");
	return result;
}

static int push(struct parse *parse, struct spec_side *side, struct call_value value)
{
	if (side->value_count == SPEC_VALUES_MAX)
		return source_fault(&parse->source, value.from, value.to, parse->err,
				    "more than %d values", SPEC_VALUES_MAX);
	side->values[side->value_count++] = value;
	return 0;
}

static int push_params(struct parse *parse, struct spec_side *side)
{
	static const char *const raw_names[SPEC_RAW_ARGS] = {"arg1", "arg2", "arg3",
							     "arg4", "arg5", "arg6"};
	int result = 0;

	for (uint8_t i = 0; i < side->param_count && !result; i++) {
		const struct call_param *param = &side->params[i];

		if (param->name && !param->used)
			result = push(parse, side,
				      (struct call_value){.name = param->name,
							  .base = VALUE_PARAM,
							  .index = i,
							  .at_return = param->out,
							  .in_memory = param->out,
							  .type = param->type,
							  .from = param->from,
							  .to = param->to});
	}
	for (uint8_t i = 0; side->raw && i < SPEC_RAW_ARGS && !result; i++)
		result = push(parse, side,
			      (struct call_value){
				      .name = raw_names[i],
				      .base = VALUE_RAW,
				      .index = i,
				      .type = {.kind = TYPE_POINTER, .bytes = 8},
				      .from = side->names.from,
				      .to = side->names.to,
			      });
	return result;
}

static int push_returned(struct parse *parse, struct spec_side *side, bool used)
{
	const struct call_spec *spec = parse->spec;

	if (!spec->returned_name || used || side != &spec->sides[0])
		return 0;
	return push(parse, side,
		    (struct call_value){.name = spec->returned_name,
					.base = VALUE_RETURNED,
					.at_return = true,
					.type = spec->returned,
					.from = side->names.from,
					.to = side->names.to});
}

int parse_order(struct parse *parse, struct spec_side *side)
{
	struct call_value listed[SPEC_VALUES_MAX];
	uint8_t count = side->value_count;
	bool returned_used = false;
	int result;

	memcpy(listed, side->values, count * sizeof(listed[0]));
	for (unsigned i = 0; i < count; i++)
		returned_used |= listed[i].base == VALUE_RETURNED;
	side->value_count = 0;
	result = push_params(parse, side);
	for (unsigned i = 0; i < count && !result; i++)
		result = push(parse, side, listed[i]);
	result = result ?: push_returned(parse, side, returned_used);
	if (result)
		return result;
	count = side->value_count;
	memcpy(listed, side->values, count * sizeof(listed[0]));
	side->value_count = 0;
	for (unsigned late = 0; late < 2; late++)
		for (unsigned i = 0; i < count; i++)
			if (listed[i].at_return == !!late)
				side->values[side->value_count++] = listed[i];
	for (unsigned i = 0; i < side->value_count; i++)
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(side->values[i].name, side->values[k].name))
				return source_fault(&parse->source, side->values[i].from,
						    side->values[i].to, parse->err,
						    "two values are named '%s'",
						    side->values[i].name);
	return 0;
}

static bool side_has(const struct spec_side *side, const char *name)
{
	for (unsigned i = 0; i < side->value_count; i++)
		if (!strcmp(side->values[i].name, name))
			return true;
	return false;
}

int parse_pair_values(struct parse *parse)
{
	const struct spec_side *begin = &parse->spec->sides[0], *end = &parse->spec->sides[1];
	unsigned count = begin->value_count;

	for (unsigned i = 0; i < end->value_count; i++) {
		count += !side_has(begin, end->values[i].name);
		if (count > WAFFLE_KEYS_MAX)
			return source_fault(&parse->source, end->values[i].from, end->values[i].to,
					    parse->err, "a span has at most %d values",
					    WAFFLE_KEYS_MAX);
	}
	return 0;
}
