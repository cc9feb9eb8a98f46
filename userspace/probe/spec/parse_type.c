// SPDX-License-Identifier: Apache-2.0
/* Parses types. */
#include <ctype.h>
#include <string.h>

#include "probe/spec/parse.h"

#define BLOB_MAX 4096

static const struct type_name {
	const char *word;
	struct call_type type;
} type_names[] = {
	{"void", {.kind = TYPE_VOID}},
	{"char", {.kind = TYPE_WORD, .bytes = 1, .is_signed = true}},
	{"short", {.kind = TYPE_WORD, .bytes = 2, .is_signed = true}},
	{"int", {.kind = TYPE_WORD, .bytes = 4, .is_signed = true}},
	{"long", {.kind = TYPE_WORD, .bytes = 8, .is_signed = true}},
	{"unsigned", {.kind = TYPE_WORD, .bytes = 4}},
	{"size_t", {.kind = TYPE_WORD, .bytes = 8}},
	{"ssize_t", {.kind = TYPE_WORD, .bytes = 8, .is_signed = true}},
	{"off_t", {.kind = TYPE_WORD, .bytes = 8, .is_signed = true}},
	{"time_t", {.kind = TYPE_WORD, .bytes = 8, .is_signed = true}},
	{"pid_t", {.kind = TYPE_WORD, .bytes = 4, .is_signed = true}},
	{"uid_t", {.kind = TYPE_WORD, .bytes = 4}},
	{"int8_t", {.kind = TYPE_WORD, .bytes = 1, .is_signed = true}},
	{"int16_t", {.kind = TYPE_WORD, .bytes = 2, .is_signed = true}},
	{"int32_t", {.kind = TYPE_WORD, .bytes = 4, .is_signed = true}},
	{"int64_t", {.kind = TYPE_WORD, .bytes = 8, .is_signed = true}},
	{"intptr_t", {.kind = TYPE_WORD, .bytes = 8, .is_signed = true}},
	{"uint8_t", {.kind = TYPE_WORD, .bytes = 1}},
	{"uint16_t", {.kind = TYPE_WORD, .bytes = 2}},
	{"uint32_t", {.kind = TYPE_WORD, .bytes = 4}},
	{"uint64_t", {.kind = TYPE_WORD, .bytes = 8}},
	{"uintptr_t", {.kind = TYPE_WORD, .bytes = 8}},
	{"i8", {.kind = TYPE_WORD, .bytes = 1, .is_signed = true}},
	{"i16", {.kind = TYPE_WORD, .bytes = 2, .is_signed = true}},
	{"i32", {.kind = TYPE_WORD, .bytes = 4, .is_signed = true}},
	{"i64", {.kind = TYPE_WORD, .bytes = 8, .is_signed = true}},
	{"u8", {.kind = TYPE_WORD, .bytes = 1}},
	{"u16", {.kind = TYPE_WORD, .bytes = 2}},
	{"u32", {.kind = TYPE_WORD, .bytes = 4}},
	{"u64", {.kind = TYPE_WORD, .bytes = 8}},
	{"bool", {.kind = TYPE_BOOL, .bytes = 1}},
	{"_Bool", {.kind = TYPE_BOOL, .bytes = 1}},
	{"ptr", {.kind = TYPE_POINTER, .bytes = 8}},
	{"str", {.kind = TYPE_STR, .bytes = 8}},
	{"float", {.kind = TYPE_FLOAT, .bytes = 4}},
	{"double", {.kind = TYPE_FLOAT, .bytes = 8}},
	{"dim3", {.kind = TYPE_DIM3, .bytes = 8, .size = 12}},
	{"xyz", {.kind = TYPE_XYZ, .bytes = 4}},
	{"code", {.kind = TYPE_CODE, .bytes = 8}},
	{"struct_return", {.kind = TYPE_SRET}},
};
#define TYPE_NAMES (sizeof(type_names) / sizeof(type_names[0]))

char type_letter(const struct call_type *type)
{
	switch (type->kind) {
	case TYPE_WORD:
		return type->is_signed ? WAFFLE_KEY_I64 : WAFFLE_KEY_U64;
	case TYPE_BOOL:
		return WAFFLE_KEY_BOOL;
	case TYPE_POINTER:
		return WAFFLE_KEY_PTR;
	case TYPE_STR:
	case TYPE_BYTES:
	case TYPE_ENUM:
		return WAFFLE_KEY_STR;
	case TYPE_FLOAT:
		return WAFFLE_KEY_F64;
	case TYPE_DIM3:
	case TYPE_XYZ:
		return WAFFLE_KEY_DIM3;
	case TYPE_CODE:
		return WAFFLE_KEY_CODE;
	case TYPE_VOID:
	case TYPE_BLOB:
	case TYPE_SRET:
		break;
	}
	return 0;
}

static int enum_table_parse(struct parse *parse, uint32_t *table)
{
	uint32_t len = parse_word(parse);
	struct suggestions similar = {.len = 0};
	const char *name = parse_keep(parse, parse->at, parse->at + len);

	if (!name)
		return parse_memory(parse);
	for (size_t i = 0; i < parse->tables->enum_names.len; i++) {
		if (parse->tables->enum_names.data[i] == name) {
			*table = (uint32_t)i;
			parse->at += len;
			return 0;
		}
		suggestions_add(&similar, name, parse->tables->enum_names.data[i]);
	}
	return parse_wrong(parse, "unknown table of names %s%s", parse_show(parse).text,
			   similar.text);
}

/* Words that C combines to types in any order: "long unsigned int". A second "long" has its own
 * bit. */
enum {
	IS_CHAR = 1,
	IS_SHORT = 2,
	IS_INT = 4,
	IS_LONG = 8,
	IS_LONG_LONG = 16,
	IS_FLOAT = 32,
	IS_DOUBLE = 64,
	IS_SIGNED = 128,
	IS_UNSIGNED = 256
};

static const struct {
	const char *word;
	unsigned bit;
} type_words[] = {
	{"char", IS_CHAR},     {"short", IS_SHORT},       {"int", IS_INT},
	{"long", IS_LONG},     {"float", IS_FLOAT},       {"double", IS_DOUBLE},
	{"signed", IS_SIGNED}, {"unsigned", IS_UNSIGNED},
};

/* Combinations without a sign, and their types. */
static const struct {
	unsigned words;
	enum type_kind kind;
	uint8_t bytes;
} made_of_words[] = {
	{0, TYPE_WORD, 4},
	{IS_CHAR, TYPE_WORD, 1},
	{IS_SHORT, TYPE_WORD, 2},
	{IS_SHORT | IS_INT, TYPE_WORD, 2},
	{IS_INT, TYPE_WORD, 4},
	{IS_LONG, TYPE_WORD, 8},
	{IS_LONG | IS_INT, TYPE_WORD, 8},
	{IS_LONG | IS_LONG_LONG, TYPE_WORD, 8},
	{IS_LONG | IS_LONG_LONG | IS_INT, TYPE_WORD, 8},
	{IS_FLOAT, TYPE_FLOAT, 4},
	{IS_DOUBLE, TYPE_FLOAT, 8},
	{IS_LONG | IS_DOUBLE, TYPE_FLOAT, LONG_DOUBLE_BYTES},
};

static unsigned type_word(struct parse *parse)
{
	for (unsigned i = 0; i < sizeof(type_words) / sizeof(type_words[0]); i++)
		if (parse_accept_word(parse, type_words[i].word))
			return type_words[i].bit;
	return 0;
}

/* False: a type of another kind stands here. */
static bool parse_words(struct parse *parse, struct call_type *type, int *result)
{
	unsigned words = 0, sign, bit;
	bool senseless = false;
	uint32_t from;

	parse_blanks(parse);
	from = parse->at;
	*result = 0;
	while ((bit = type_word(parse))) {
		if (bit == IS_LONG && words & IS_LONG)
			bit = IS_LONG_LONG;
		senseless = senseless || words & bit;
		words |= bit;
	}
	if (!words)
		return false;
	sign = words & (IS_SIGNED | IS_UNSIGNED);
	senseless = senseless || sign == (IS_SIGNED | IS_UNSIGNED);
	for (unsigned i = 0; i < sizeof(made_of_words) / sizeof(made_of_words[0]) && !senseless;
	     i++) {
		if (made_of_words[i].words != (words & ~sign) ||
		    (sign && made_of_words[i].kind == TYPE_FLOAT))
			continue;
		*type = (struct call_type){.kind = made_of_words[i].kind,
					   .bytes = made_of_words[i].bytes,
					   .is_signed = made_of_words[i].kind == TYPE_WORD &&
							sign != IS_UNSIGNED};
		return true;
	}
	*result = source_fault(&parse->source, from, parse->at, parse->err,
			       "these words make no type of C");
	return true;
}

static int parse_counted(struct parse *parse, struct call_type *type, enum type_kind kind,
			 int64_t most)
{
	int64_t size;
	int result = parse_number(parse, &size, 1, most);

	if (!result)
		*type = (struct call_type){.kind = kind, .bytes = 8, .size = (uint32_t)size};
	return result;
}

/* The name of a type of the program: "struct req", "ns::conn". Only pointers to such a type are
 * supported. */
static int parse_own_name(struct parse *parse, struct call_type *type, bool tagged)
{
	uint32_t from, to, len = parse_word(parse);

	from = parse->at;
	if (!len || isdigit((unsigned char)parse->source.text[from]))
		return parse_wrong(parse, "expected a type, found %s", parse_show(parse).text);
	parse->at += len;
	while (parse->at + 2 < parse->source.len &&
	       !memcmp(parse->source.text + parse->at, "::", 2)) {
		parse->at += 2;
		parse->at += parse_word(parse);
	}
	to = parse->at;
	*type = (struct call_type){.kind = TYPE_BLOB, .name = parse_keep(parse, from, to)};
	if (!type->name)
		return parse_memory(parse);
	if (!parse_sees(parse, "*") && !parse_word_is(parse, "const")) {
		struct suggestions similar = {.len = 0};

		for (unsigned i = 0; i < TYPE_NAMES && !tagged; i++)
			suggestions_add(&similar, type->name, type_names[i].word);
		return source_fault(&parse->source, from, to, parse->err,
				    tagged ? "a struct by value is written with its size: blob:16%s"
					   : "unknown type%s; a pointer to anything is 'ptr', a "
					     "struct by value 'blob:SIZE'",
				    similar.text);
	}
	return 0;
}

static int parse_base_type(struct parse *parse, struct call_type *type)
{
	int result;

	if (parse_accept_word(parse, "struct") || parse_accept_word(parse, "class") ||
	    parse_accept_word(parse, "union"))
		return parse_own_name(parse, type, true);
	if (parse_accept_word(parse, "enum")) {
		if (parse_accept(parse, ":")) {
			*type = (struct call_type){
				.kind = TYPE_ENUM, .bytes = 4, .is_signed = true};
			return enum_table_parse(parse, &type->table);
		}
		*type = (struct call_type){.kind = TYPE_WORD, .bytes = 4, .is_signed = true};
		parse->at += parse_word(parse);
		return 0;
	}
	if (parse_accept_word(parse, "blob"))
		return parse_expect(parse, ":", "and a size behind 'blob'")
			       ?: parse_counted(parse, type, TYPE_BLOB, BLOB_MAX);
	if (parse_words(parse, type, &result))
		return result;
	for (unsigned i = 0; i < TYPE_NAMES; i++) {
		if (!parse_accept_word(parse, type_names[i].word))
			continue;
		*type = type_names[i].type;
		return 0;
	}
	return parse_own_name(parse, type, false);
}

/* Adds the '*' after a type. */
static struct call_type pointer_to(const struct call_type *type)
{
	bool text = type->kind == TYPE_WORD && type->bytes == 1 && type->is_signed;
	struct call_type pointer = {.kind = text ? TYPE_STR : TYPE_POINTER, .bytes = 8};

	if (type->kind == TYPE_BLOB)
		pointer.name = type->name;
	return pointer;
}

int parse_bytes(struct parse *parse, struct call_type *type)
{
	if (!parse_accept(parse, "["))
		return 0;
	if (type->kind != TYPE_WORD || type->bytes != 1)
		return parse_wrong(parse, "only of char there are arrays: char[16]");
	return parse_counted(parse, type, TYPE_BYTES, WAFFLE_STR_MAX - 1)
		       ?: parse_expect(parse, "]", "behind the size");
}

int parse_type(struct parse *parse, struct call_type *type)
{
	int result;

	while (parse_accept_word(parse, "const") || parse_accept_word(parse, "volatile"))
		;
	result = parse_base_type(parse, type);
	while (!result) {
		if (parse_accept_word(parse, "const") || parse_accept_word(parse, "restrict"))
			continue;
		if (!parse_accept(parse, "*"))
			break;
		*type = pointer_to(type);
	}
	return result ?: parse_bytes(parse, type);
}
