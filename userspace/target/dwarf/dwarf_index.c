// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/dwarf_index.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/dwarf/dwarf_file.h"
#include "target/dwarf/dwarf_scopes_internal.h"
#include "target/dwarf/dwarf_text.h"
#include "target/elf/demangle.h"
#include "util/search.h"
#include "util/vec.h"

struct dwarf_unit {
	Dwarf_Die die;               /* has the ranges and the lines */
	uint64_t budget;             /* upper bound of the unit's entries */
	struct dwarf_scopes *scopes; /* NULL: not read yet, or empty */
	bool walked;
};

struct unit_range {
	uint64_t low, high;
	uint32_t unit;
};

struct dwarf_index {
	struct dwarf_file file;
	struct strtab *strings;
	VEC(struct dwarf_unit) units;
	VEC(struct unit_range) ranges; /* sorted by `low` */
};

/* Bound of entries for split units. Their length is unknown, since they lie in another file. */
#define SPLIT_BUDGET (16u << 20)

static uint64_t unit_budget(Dwarf *dwarf, Dwarf_Die *die)
{
	Dwarf_Off at = dwarf_dieoffset(die), header = dwarf_cuoffset(die), next;
	size_t header_size;

	/* An entry takes at least one byte. dwarf_cuoffset() returns the entry's offset in its
	 * unit. */
	if (header > at || dwarf_nextcu(dwarf, at - header, &next, &header_size, NULL, NULL, NULL))
		return 0;
	return next > at ? next - at : 0;
}

static int unit_add(struct dwarf_index *index, Dwarf_Die *die, uint8_t type)
{
	uint32_t number = (uint32_t)index->units.len;
	struct dwarf_unit unit = {.die = *die, .budget = unit_budget(index->file.dwarf, die)};
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	uint64_t count = 0;

	if (type == DW_UT_skeleton)
		unit.budget = SPLIT_BUDGET;
	while (count++ <= DWARF_RANGES_MIN + unit.budget &&
	       (at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		/* Discarded functions keep ranges at address 0. */
		if (!low || low >= high)
			continue;
		if (!vec_push(&index->ranges, (struct unit_range){low, high, number}))
			return -ENOMEM;
	}
	return vec_push(&index->units, unit) ? 0 : -ENOMEM;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct unit_range *left = a, *right = b;

	if (left->low != right->low)
		return left->low < right->low ? -1 : 1;
	return left->high > right->high ? -1 : left->high < right->high;
}

static int read_units(struct dwarf_index *index)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	int err = 0;

	/* The list ends at a damaged unit. The units before it remain usable. */
	while (!err && !dwarf_get_units(index->file.dwarf, cu, &cu, NULL, &type, &die, NULL))
		if ((type == DW_UT_compile || type == DW_UT_skeleton || type == DW_UT_partial) &&
		    dwarf_unit_texts_end(&die))
			err = unit_add(index, &die, type);
	if (!err && index->ranges.len)
		qsort(index->ranges.data, index->ranges.len, sizeof(*index->ranges.data),
		      compare_ranges);
	return err;
}

int dwarf_index_open(struct dwarf_index **result, const struct elf_file *file,
		     const char *debug_dir, struct strtab *strings)
{
	struct dwarf_index *index = calloc(1, sizeof(*index));
	int err;

	*result = NULL;
	if (!index)
		return -ENOMEM;
	index->strings = strings;
	err = dwarf_file_open(&index->file, file, debug_dir);
	if (!err)
		err = read_units(index);
	if (!err && !index->ranges.len)
		err = -ENODATA;
	if (err)
		dwarf_index_close(index);
	else
		*result = index;
	return err;
}

void dwarf_index_close(struct dwarf_index *index)
{
	if (!index)
		return;
	for (size_t i = 0; i < index->units.len; i++)
		dwarf_scopes_free(index->units.data[i].scopes);
	vec_free(&index->units);
	vec_free(&index->ranges);
	dwarf_file_close(&index->file);
	free(index);
}

/* A larger range may contain an address after smaller ranges have begun. The search looks back over
 * this many ranges. */
#define LOOK_BACK 16

static struct dwarf_unit *find_unit(struct dwarf_index *index, uint64_t address)
{
	const struct unit_range *list = index->ranges.data;
	size_t after = lower_bound(index->ranges.len, i, list[i].low <= address);

	for (size_t back = 0; back < LOOK_BACK && after > back; back++)
		if (address < list[after - 1 - back].high)
			return &index->units.data[list[after - 1 - back].unit];
	return NULL;
}

static const char *keep(struct dwarf_index *index, const char *text)
{
	uint32_t number =
		text && text[0] ? strtab_add(index->strings, text, strlen(text)) : STRTAB_NONE;

	return number == STRTAB_NONE ? NULL : strtab_get(index->strings, number);
}

static void read_name(struct dwarf_index *index, struct dwarf_scope *scope)
{
	static const unsigned linkage[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
	char text[DEMANGLE_MAX];

	for (unsigned i = 0; i < 2 && !scope->name; i++) {
		const char *symbol = dwarf_text(&scope->die, linkage[i]);
		const char *name = symbol ? demangle(symbol, text) : NULL;

		scope->mangled = name != NULL;
		scope->name = keep(index, name ? name : symbol);
	}
	if (!scope->name)
		scope->name = keep(index, dwarf_text(&scope->die, DW_AT_name));
}

/* Reads the call site of an inlined function. */
static void read_call(struct dwarf_index *index, struct dwarf_scope *scope)
{
	Dwarf_Die unit;
	Dwarf_Files *files;
	Dwarf_Attribute attr;
	Dwarf_Word number;
	size_t count;

	if (!dwarf_formudata(dwarf_attr(&scope->die, DW_AT_call_line, &attr), &number) &&
	    number <= UINT32_MAX)
		scope->call_line = (uint32_t)number;
	if (!dwarf_formudata(dwarf_attr(&scope->die, DW_AT_call_file, &attr), &number) &&
	    dwarf_diecu(&scope->die, &unit, NULL, NULL) &&
	    !dwarf_getsrcfiles(&unit, &files, &count) && number < count)
		scope->call_file = keep(index, dwarf_filesrc(files, number, NULL, NULL));
}

static void read_scope(struct dwarf_index *index, struct dwarf_scope *scope)
{
	if (scope->read)
		return;
	scope->read = true;
	read_name(index, scope);
	if (scope->inlined)
		read_call(index, scope);
}

static void read_line(struct dwarf_index *index, struct dwarf_unit *unit, uint64_t address,
		      struct dwarf_place *place)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
	int number;

	if (!line)
		return;
	place->file = keep(index, dwarf_linesrc(line, NULL, NULL));
	if (place->file && !dwarf_lineno(line, &number) && number > 0)
		place->line = (uint32_t)number;
}

static int walk_unit(struct dwarf_index *index, struct dwarf_unit *unit)
{
	/* The functions of a skeleton lie in another file. */
	Dwarf_Die die = unit->die;

	if (unit->walked)
		return 0;
	unit->walked = true;
	dwarf_file_unit(&index->file, &die);
	return dwarf_scopes_read(&unit->scopes, &die, unit->budget);
}

int dwarf_index_find(struct dwarf_index *index, uint64_t address, struct dwarf_place *place)
{
	struct dwarf_unit *unit = find_unit(index, address);
	struct dwarf_scope *scope;
	const char *file;
	uint32_t line;
	int err;

	place->count = 0;
	place->file = NULL;
	place->line = 0;
	if (!unit)
		return 0;
	err = walk_unit(index, unit);
	if (err)
		return err;
	read_line(index, unit, address, place);
	file = place->file;
	line = place->line;
	scope = dwarf_scopes_find(unit->scopes, address);
	while (scope && place->count < DWARF_FRAMES_MAX) {
		read_scope(index, scope);
		place->frames[place->count++] = (struct dwarf_frame){
			.function = scope->name,
			.file = file,
			.line = line,
			.inlined = scope->inlined,
			.mangled = scope->mangled,
		};
		place->start = dwarf_scope_start(scope, address);
		if (!scope->inlined)
			break;
		file = scope->call_file;
		line = scope->call_line;
		scope = dwarf_scope_parent(unit->scopes, scope);
	}
	return 0;
}
