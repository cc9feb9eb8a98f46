// SPDX-License-Identifier: Apache-2.0
#include "probe/args/fields.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#include "probe/spec/parse.h"
#include "target/dwarf/dwarf_text.h"

#define NESTED_MAX 16
#define STRUCTS_MAX 1024

/* The steps that replace a value's fields, and the current position. */
struct field_path {
	struct call_value *value;
	struct structs_code *code;
	const struct source *source;
	struct error *err;
	struct value_step steps[SPEC_STEPS_MAX];
	unsigned count;
	Dwarf_Die type; /* type of the data at that address, without typedefs and qualifiers */
	struct call_type made;
};

static bool member_offset(Dwarf_Die *member, int32_t *offset)
{
	Dwarf_Attribute attribute;
	Dwarf_Word word;

	*offset = 0; /* members of a union have no offset */
	if (!dwarf_attr_integrate(member, DW_AT_data_member_location, &attribute))
		return true;
	if (dwarf_formudata(&attribute, &word) || word > INT32_MAX)
		return false;
	*offset = (int32_t)word;
	return true;
}

/* A search for a member. It includes unnamed structs and base classes. */
struct member_search {
	const char *name;
	struct suggestions similar;
	Dwarf_Die member;
	unsigned left; /* limit of structs to search: damaged ones may contain themselves */
};

static bool find_member(struct member_search *search, Dwarf_Die *type, int32_t *offset,
			unsigned depth)
{
	Dwarf_Die child;

	if (depth > NESTED_MAX || !search->left || dwarf_child(type, &child))
		return false;
	search->left--;
	do {
		int tag = dwarf_tag(&child);
		const char *own = dwarf_text(&child, DW_AT_name);
		Dwarf_Die inner;
		int32_t at, inside;

		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
		    die_is_declaration(&child) || /* a static member is not in the struct */
		    !member_offset(&child, &at))
			continue;
		if (own && tag == DW_TAG_member) {
			if (!strcmp(own, search->name)) {
				search->member = child;
				*offset = at;
				return true;
			}
			suggestions_add(&search->similar, search->name, own);
		} else if (die_type(&child, &inner) && die_is_struct(&inner) &&
			   find_member(search, &inner, &inside, depth + 1) &&
			   !__builtin_add_overflow(at, inside, offset)) {
			return true;
		}
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

static int fault(struct field_path *path, const struct value_step *step, const char *text)
{
	return source_fault(path->source, step->from, step->to, path->err, "%s", text);
}

static int push(struct field_path *path, const struct value_step *step, struct value_step made)
{
	if (path->count == SPEC_STEPS_MAX)
		return fault(path, step, "too many fields");
	path->steps[path->count++] = made;
	return 0;
}

/* Follows one field. `first`: the value already is the pointer. */
static int take_field(struct field_path *path, const struct value_step *step, bool first)
{
	struct value_step add = {.kind = STEP_ADD, .from = step->from, .to = step->to};
	struct member_search search = {.name = step->name, .left = STRUCTS_MAX};
	char text[300];

	if (!first && step->arrow) {
		if (dwarf_tag(&path->type) != DW_TAG_pointer_type ||
		    !die_type(&path->type, &path->type))
			return fault(path, step,
				     "'->' after something that is no pointer: write '.'");
		if (push(path, step, (struct value_step){.kind = STEP_LOAD}))
			return -EINVAL;
	} else if (!first && dwarf_tag(&path->type) == DW_TAG_pointer_type) {
		return fault(path, step, "'.' behind a pointer: write '->'");
	}
	if (!die_is_struct(&path->type))
		return fault(path, step, "what stands before is no struct");
	if (!find_member(&search, &path->type, &add.offset, 0)) {
		const char *name = dwarf_text(&path->type, DW_AT_name);

		if (die_is_declaration(&path->type))
			return fault(path, step,
				     "the source file only declares the struct that stands before: "
				     "write *(type)(pointer+offset)");
		snprintf(text, sizeof(text), "no field '%s' in struct %s%s", step->name,
			 name ? name : "without a name", search.similar.text);
		return fault(path, step, text);
	}
	if (dwarf_hasattr(&search.member, DW_AT_bit_size))
		return fault(path, step, "a bit-field can't be read");
	if (!die_type(&search.member, &path->type))
		return fault(path, step, "its type is not known");
	return push(path, step, add);
}

static bool is_char(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word encoding;

	return dwarf_tag(type) == DW_TAG_base_type && dwarf_bytesize(type) == 1 &&
	       dwarf_attr(type, DW_AT_encoding, &attribute) &&
	       !dwarf_formudata(&attribute, &encoding) &&
	       (encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char ||
		encoding == DW_ATE_UTF);
}

static bool base_type(Dwarf_Die *type, struct call_type *made)
{
	Dwarf_Attribute attribute;
	Dwarf_Word encoding;
	int bytes = dwarf_bytesize(type);

	if (!dwarf_attr(type, DW_AT_encoding, &attribute) || dwarf_formudata(&attribute, &encoding))
		return false;
	if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
		return false;
	*made = (struct call_type){.kind = TYPE_WORD, .bytes = (uint8_t)bytes};
	made->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	if (encoding == DW_ATE_boolean)
		made->kind = TYPE_BOOL;
	if (encoding == DW_ATE_float)
		made->kind = TYPE_FLOAT;
	return encoding != DW_ATE_float || bytes == 8;
}

/* The type of an enumeration: DW_AT_type (present in C, too), or its encoding. Without either it is
 * int. */
static bool enumeration_type(Dwarf_Die *type, struct call_type *made)
{
	Dwarf_Die under;
	int bytes = dwarf_bytesize(type);

	if ((dwarf_hasattr(type, DW_AT_encoding) && base_type(type, made)) ||
	    (die_type(type, &under) && base_type(&under, made)))
		return true;
	*made = (struct call_type){.kind = TYPE_WORD, .bytes = (uint8_t)bytes, .is_signed = true};
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static bool pointer_type(Dwarf_Die *type, struct call_type *made)
{
	Dwarf_Die target;

	*made = (struct call_type){.kind = TYPE_POINTER, .bytes = 8};
	if (!die_type(type, &target))
		return true;
	if (is_char(&target))
		made->kind = TYPE_STR;
	else if (dwarf_tag(&target) == DW_TAG_subroutine_type)
		made->kind = TYPE_CODE;
	return true;
}

/* The default lower bound of arrays depends on the language of their unit. Units that dwz made for
 * several source files have no language, and dwarf_aggregate_size() fails for them. In those we use
 * the language of the code's own unit. */
static Dwarf_Sword first_index(Dwarf_Die *array, struct structs_code *code)
{
	Dwarf_Sword first = 0;
	Dwarf_Die unit;
	int language = dwarf_diecu(array, &unit, NULL, NULL) ? dwarf_srclang(&unit) : -1;

	if (language < 0 && code->has_unit)
		language = dwarf_srclang(&code->unit);
	if (language < 0 || dwarf_default_lower_bound(language, &first))
		return 0;
	return first;
}

/* Reads a bound as signed if its form is signed. */
static bool bound(Dwarf_Attribute *attribute, Dwarf_Sword *value)
{
	unsigned form = dwarf_whatform(attribute);
	Dwarf_Word word;

	if (form == DW_FORM_sdata || form == DW_FORM_implicit_const)
		return !dwarf_formsdata(attribute, value);
	if (dwarf_formudata(attribute, &word))
		return false;
	*value = (Dwarf_Sword)word;
	return true;
}

/* Number of elements of a dimension. 0: none, or unknown before run time. Some compilers write such
 * a bound as -1 in four bytes, which is not a valid number either. */
static uint32_t dimension_count(Dwarf_Die *dimension, Dwarf_Sword first)
{
	Dwarf_Attribute attribute;
	Dwarf_Sword last, count;
	Dwarf_Word word;

	if (dwarf_tag(dimension) != DW_TAG_subrange_type)
		return 0;
	if (dwarf_attr(dimension, DW_AT_count, &attribute))
		return !dwarf_formudata(&attribute, &word) && word <= INT32_MAX ? (uint32_t)word
										: 0;
	if (dwarf_attr(dimension, DW_AT_lower_bound, &attribute) && !bound(&attribute, &first))
		return 0;
	if (!dwarf_attr(dimension, DW_AT_upper_bound, &attribute) || !bound(&attribute, &last) ||
	    __builtin_sub_overflow(last, first, &count) || count < 0 || count >= INT32_MAX)
		return 0;
	return (uint32_t)count + 1;
}

/* Number of elements of all dimensions. 0: none, or unknown. */
static uint32_t array_count(Dwarf_Die *array, struct structs_code *code)
{
	Dwarf_Sword first = first_index(array, code);
	uint32_t count = 1;
	Dwarf_Die dimension;

	if (dwarf_child(array, &dimension))
		return 0;
	do {
		if (__builtin_mul_overflow(count, dimension_count(&dimension, first), &count))
			return 0;
	} while (count && !dwarf_siblingof(&dimension, &dimension));
	return count;
}

/* The elements may be arrays themselves, through a typedef. */
static bool array_type(Dwarf_Die *type, struct structs_code *code, struct call_type *made)
{
	Dwarf_Die element = *type;
	uint32_t count = 1;

	for (unsigned i = 0; i < NESTED_MAX && dwarf_tag(&element) == DW_TAG_array_type; i++)
		if (__builtin_mul_overflow(count, array_count(&element, code), &count) ||
		    !die_type(&element, &element))
			return false;
	if (!count || !is_char(&element))
		return false;
	*made = (struct call_type){.kind = TYPE_BYTES, .bytes = 8};
	made->size = count < WAFFLE_STR_MAX ? count : WAFFLE_STR_MAX - 1;
	return true;
}

/* Converts a DWARF type to waffle's type of a value. */
static bool value_type(Dwarf_Die *type, struct structs_code *code, struct call_type *made)
{
	switch (dwarf_tag(type)) {
	case DW_TAG_base_type:
		return base_type(type, made);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return pointer_type(type, made);
	case DW_TAG_array_type:
		return array_type(type, code, made);
	case DW_TAG_enumeration_type:
		return enumeration_type(type, made);
	default:
		return false;
	}
}

/* Follows the steps, starting at a struct. */
static int take_fields(struct field_path *path, Dwarf_Die *type, unsigned first)
{
	const struct call_value *value = path->value;
	int result = 0;

	path->type = *type;
	path->count = first;
	memcpy(path->steps, value->steps, first * sizeof(path->steps[0]));
	for (unsigned i = first; i < value->step_count && !result; i++)
		result = take_field(path, &value->steps[i], i == first);
	if (!result && !value_type(&path->type, path->code, &path->made))
		result = fault(path, &value->steps[value->step_count - 1],
			       die_is_struct(&path->type) ? "a struct: name one of its fields"
							  : "a value of its type can't be shown");
	return result;
}

static bool same_path(const struct field_path *a, const struct field_path *b)
{
	if (a->count != b->count || a->made.kind != b->made.kind ||
	    a->made.bytes != b->made.bytes || a->made.is_signed != b->made.is_signed ||
	    a->made.size != b->made.size)
		return false;
	for (unsigned i = 0; i < a->count; i++)
		if (a->steps[i].kind != b->steps[i].kind ||
		    a->steps[i].offset != b->steps[i].offset)
			return false;
	return true;
}

/* Resolves by structs of other source files than the code's: all of that name have to agree. */
struct others {
	struct field_path *path;
	unsigned first;
	bool found, differ;
};

static int others_visit(Dwarf_Die *die, void *arg)
{
	struct error ignored = ERROR_INIT;
	struct others *others = arg;
	struct field_path other = *others->path;

	other.err = &ignored;
	if (!others->found) {
		others->found = true;
		return take_fields(others->path, die, others->first);
	}
	others->differ =
		take_fields(&other, die, others->first) != 0 || !same_path(others->path, &other);
	return others->differ;
}

/* The missing file with a part of the DWARF. */
static const char *lacking_file(const struct structs *structs)
{
	return structs->file->lacking ? structs->file->lacking : structs->split_away;
}

static int not_found(const struct field_path *path, const struct structs *structs, const char *file)
{
	const char *lacking = lacking_file(structs);

	return source_fault(path->source, path->value->from, path->value->to, path->err,
			    "no struct '%s' in %s%s%s%s", structs->name, file,
			    lacking ? "; a part of its DWARF is missing: " : "",
			    lacking ? lacking : "", structs->similar.text);
}

static int is_broken(const struct field_path *path, const struct structs *structs, const char *file)
{
	const char *lacking = lacking_file(structs);

	return source_fault(path->source, path->value->from, path->value->to, path->err,
			    "struct '%s' of %s can't be read: a part of its DWARF is missing%s%s",
			    structs->name, file, lacking ? ": " : "", lacking ? lacking : "");
}

static int take_others(struct field_path *path, struct structs *structs, unsigned first,
		       const char *file)
{
	struct others others = {.path = path, .first = first};
	int result = structs_others(structs, others_visit, &others);

	if (others.differ)
		return source_fault(path->source, path->value->from, path->value->to, path->err,
				    "several structs '%s' in %s have it in different places, "
				    "and this code's source file has none: write "
				    "*(type)(pointer+offset)",
				    structs->name, file);
	return others.found ? result : not_found(path, structs, file);
}

int fields_resolve(struct dwarf_file *dwarf, struct structs_code *code, const char *name,
		   struct call_value *value, unsigned first, const struct source *source,
		   const char *file, struct error *err)
{
	struct field_path path = {.value = value, .code = code, .source = source, .err = err};
	struct structs structs = {.file = dwarf, .name = name};
	int result;

	if (!dwarf->dwarf)
		return source_fault(source, value->from, value->to, err,
				    "%s has no DWARF: install its debug symbols, or write "
				    "*(type)(pointer+offset)",
				    file);
	if (structs_own(&structs, code))
		result = take_fields(&path, &structs.found, first);
	else if (structs.broken)
		result = is_broken(&path, &structs, file);
	else
		result = take_others(&path, &structs, first, file);
	structs_free(&structs);
	if (result)
		return result;
	memcpy(value->steps, path.steps, path.count * sizeof(path.steps[0]));
	value->step_count = (uint8_t)path.count;
	value->type = path.made;
	value->in_memory = true;
	return 0;
}
