// SPDX-License-Identifier: Apache-2.0
#include "probe/args/structs_internal.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#include "target/dwarf/dwarf_text.h"

#define NAME_BYTES 512
#define NESTED_MAX 16

bool die_is_struct(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_name_of_type(int tag)
{
	return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
	       tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

/* Follows DW_AT_type by one step. */
static bool step_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Die target;

	if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) ||
	    !dwarf_formref_die(&attribute, &target))
		return false;
	*type = target;
	return true;
}

/* Whether the entry's type cannot be read. */
static bool leads_nowhere(Dwarf_Die *die)
{
	Dwarf_Die type;

	return dwarf_hasattr_integrate(die, DW_AT_type) && !step_type(die, &type);
}

/* Replaces a placeholder by the struct in its own type unit. */
static void follow_signature(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Die target;

	if (die_is_struct(type) && dwarf_attr(type, DW_AT_signature, &attribute) &&
	    dwarf_formref_die(&attribute, &target))
		*type = target;
}

/* The type without typedefs, const and the like. False: there is none (void), or the chain does not
 * end. */
static bool plain_type(Dwarf_Die *type)
{
	for (unsigned i = 0; i < NESTED_MAX; i++) {
		if (!is_name_of_type(dwarf_tag(type))) {
			follow_signature(type);
			return true;
		}
		if (!step_type(type, type))
			return false;
	}
	return false;
}

bool die_type(Dwarf_Die *die, Dwarf_Die *type)
{
	return step_type(die, type) && plain_type(type);
}

bool die_is_declaration(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	bool flag = false;

	return dwarf_attr(die, DW_AT_declaration, &attribute) &&
	       !dwarf_formflag(&attribute, &flag) && flag;
}

static void search_die(struct structs *structs, Dwarf_Die *die, const char *prefix, unsigned depth);

/* Moves forward only, so that damaged links between entries cannot make the walk endless. */
static void search_children(struct structs *structs, Dwarf_Die *die, const char *prefix,
			    unsigned depth)
{
	Dwarf_Die child;

	if (depth > NESTED_MAX || dwarf_child(die, &child))
		return;
	do {
		if (child.addr <= structs->last)
			return;
		structs->last = child.addr;
		search_die(structs, &child, prefix, depth);
	} while (!structs->done && !dwarf_siblingof(&child, &child));
}

/* Searches a unit, once. */
static void search_unit(struct structs *structs, Dwarf_Die *unit, const char *prefix,
			unsigned depth)
{
	uint64_t key = (uintptr_t)unit->addr;
	const void *last = structs->last;

	if (map_get(&structs->seen, key) != MAP_NONE || !map_set(&structs->seen, key, 0))
		return;
	structs->last = unit->addr;
	search_children(structs, unit, prefix, depth);
	structs->last = last;
}

/* Searches the units that this one imports, where dwz puts entries that several units share. */
static void search_imported(struct structs *structs, Dwarf_Die *die, const char *prefix,
			    unsigned depth)
{
	Dwarf_Attribute attribute;
	Dwarf_Die unit;

	if (!dwarf_formref_die(dwarf_attr(die, DW_AT_import, &attribute), &unit))
		structs->broken = true;
	else if (dwarf_tag(&unit) == DW_TAG_partial_unit)
		search_unit(structs, &unit, prefix, depth + 1);
}

static void search_die(struct structs *structs, Dwarf_Die *die, const char *prefix, unsigned depth)
{
	int tag = dwarf_tag(die);
	const char *own;
	char name[NAME_BYTES];
	Dwarf_Die type = *die;
	bool known;

	if (tag == DW_TAG_imported_unit)
		search_imported(structs, die, prefix, depth);
	if (!die_is_struct(die) && tag != DW_TAG_typedef && tag != DW_TAG_namespace)
		return;
	known = tag != DW_TAG_namespace && plain_type(&type) && die_is_struct(&type) &&
		!die_is_declaration(&type);
	own = dwarf_text(die, DW_AT_name);
	if (!own && known && type.addr != die->addr)
		own = dwarf_text(&type, DW_AT_name);
	snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] && own ? "::" : "",
		 own ? own : "");
	if (known && own && !strcmp(name, structs->name)) {
		structs->found = type;
		structs->done = true;
		return;
	}
	if (leads_nowhere(&type) || dwarf_hasattr(&type, DW_AT_signature))
		structs->broken |= !own || !strcmp(name, structs->name);
	if (own && tag != DW_TAG_namespace && (known || !die_is_declaration(die)))
		suggestions_add(&structs->similar, structs->name, name);
	/* Nested declarations are C++. They can only match if the name contains "::". */
	if (tag == DW_TAG_namespace || (tag != DW_TAG_typedef && strstr(structs->name, "::")))
		search_children(structs, die, name, depth + 1);
}

static int code_visit(Dwarf_Die *function, void *arg)
{
	struct structs_code *code = arg;

	if (dwarf_haspc(function, code->address) <= 0)
		return DWARF_CB_OK;
	code->function = *function;
	code->has_function = true;
	return DWARF_CB_ABORT;
}

/* With link-time optimisation the code is in an artificial unit, whose functions refer to their
 * original unit. dwz moves such origins to units that belong to no source file. */
static void find_origin(struct structs_code *code)
{
	static const unsigned origins[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Die origin = code->function, unit;
	Dwarf_Attribute attribute;

	for (unsigned i = 0; i < sizeof(origins) / sizeof(origins[0]); i++)
		if (dwarf_attr(&origin, origins[i], &attribute))
			dwarf_formref_die(&attribute, &origin);
	if (dwarf_diecu(&origin, &unit, NULL, NULL) && dwarf_tag(&unit) == DW_TAG_compile_unit)
		code->unit = unit;
}

static void note_split(struct structs *structs, Dwarf_Die *unit)
{
	const char *name = dwarf_file_split_name(unit);

	structs->split_away = name ? name : "a .dwo file";
}

/* Finds the unit of the code's source file. */
static void find_code(struct structs *structs, struct structs_code *code)
{
	Dwarf_CU *next = NULL;
	Dwarf_Die unit;
	uint8_t type;

	code->looked = true;
	while (!dwarf_get_units(structs->file->dwarf, next, &next, NULL, &type, &unit, NULL)) {
		if ((type != DW_UT_compile && type != DW_UT_skeleton) ||
		    dwarf_haspc(&unit, code->address) <= 0)
			continue;
		if (!dwarf_file_unit(structs->file, &unit)) {
			note_split(structs, &unit);
			code->away = true;
			return;
		}
		code->unit = unit;
		code->has_unit = true;
		dwarf_getfuncs(&unit, code_visit, code, 0);
		if (code->has_function)
			find_origin(code);
		return;
	}
}

/* Whether the struct, or a typedef of it, has the name. Scopes are ignored, since this is the type
 * of the function's own parameter. */
static bool is_named(const struct structs *structs, Dwarf_Die *type)
{
	const char *own = dwarf_text(type, DW_AT_name);
	size_t len = own ? strlen(own) : 0, want = strlen(structs->name);

	if (!own || len > want || strcmp(structs->name + want - len, own) != 0)
		return false;
	return len == want || (want >= len + 2 && structs->name[want - len - 1] == ':');
}

/* Whether an entry's type is a pointer to the struct. */
static bool points_to_it(struct structs *structs, Dwarf_Die *die)
{
	Dwarf_Die type, plain;
	bool named = false;

	structs->broken |= leads_nowhere(die);
	if (!die_type(die, &type))
		return false;
	structs->broken |= leads_nowhere(&type);
	if (!step_type(&type, &type))
		return false;
	plain = type;
	for (unsigned i = 0; i < NESTED_MAX && is_name_of_type(dwarf_tag(&type)); i++) {
		named |= is_named(structs, &type);
		structs->broken |= leads_nowhere(&type);
		if (!step_type(&type, &type))
			return false;
	}
	if (!plain_type(&plain) || !die_is_struct(&plain) || die_is_declaration(&plain) ||
	    !(named || is_named(structs, &plain)))
		return false;
	structs->found = plain;
	return structs->done = true;
}

/* Searches the types that the function returns or takes: type units have no list of the types that
 * a source file uses. */
static bool search_function(struct structs *structs, Dwarf_Die *function)
{
	Dwarf_Die child;

	if (points_to_it(structs, function))
		return true;
	if (dwarf_child(function, &child))
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter && points_to_it(structs, &child))
			return true;
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

static bool search_own(struct structs *structs, struct structs_code *code)
{
	if (!code->looked)
		find_code(structs, code);
	structs->broken = code->away;
	if (code->has_unit)
		search_unit(structs, &code->unit, "", 0);
	return structs->done || (code->has_function && search_function(structs, &code->function));
}

bool structs_own(struct structs *structs, struct structs_code *code)
{
	bool found = search_own(structs, code);

	map_free(&structs->seen);
	return found;
}

struct visit {
	struct structs *structs;
	int (*each)(Dwarf_Die *found, void *arg);
	void *arg;
};

static int visit_unit(const struct visit *visit, Dwarf_Die *unit)
{
	struct structs *structs = visit->structs;

	structs->done = false;
	search_unit(structs, unit, "", 0);
	return structs->done ? visit->each(&structs->found, visit->arg) : 0;
}

/* Searches the types in a file of split units, once per file. */
static int visit_split(const struct visit *visit, Dwarf *dwarf)
{
	uint64_t key = (uintptr_t)dwarf;
	Dwarf_CU *next = NULL;
	Dwarf_Die unit;
	int result = 0;

	if (map_get(&visit->structs->seen, key) != MAP_NONE ||
	    !map_set(&visit->structs->seen, key, 0))
		return 0;
	while (!result && !dwarf_get_units(dwarf, next, &next, NULL, NULL, &unit, NULL))
		result = visit_unit(visit, &unit);
	return result;
}

int structs_others(struct structs *structs, int (*each)(Dwarf_Die *found, void *arg), void *arg)
{
	struct visit visit = {structs, each, arg};
	Dwarf *dwarf = structs->file->dwarf;
	Dwarf_CU *next = NULL;
	Dwarf_Die unit;
	int result = 0;

	while (!result && !dwarf_get_units(dwarf, next, &next, NULL, NULL, &unit, NULL)) {
		if (!dwarf_file_unit(structs->file, &unit))
			note_split(structs, &unit);
		else if (dwarf_cu_getdwarf(unit.cu) == dwarf)
			result = visit_unit(&visit, &unit);
		else
			result = visit_split(&visit, dwarf_cu_getdwarf(unit.cu));
	}
	return result;
}

void structs_free(struct structs *structs)
{
	map_free(&structs->seen);
}
