// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/dwarf_scopes_internal.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "util/search.h"
#include "util/vec.h"

struct scope_range {
	uint64_t low, high;
	uint32_t scope; /* a nested scope has a higher number than its parent */
};

/* `scope` (or SCOPE_NONE) is the innermost scope from here to the next boundary. */
struct boundary {
	uint64_t start;
	uint32_t scope;
};

struct dwarf_scopes {
	VEC(struct dwarf_scope) list;
	VEC(struct boundary) boundaries; /* sorted by `start` */
};

/* One nesting depth of the walk: a list of sibling entries. */
struct scope_level {
	Dwarf_Die die; /* the next entry to visit */
	uint32_t scope;
};

#define LEVELS_MAX 256 /* nesting depth of entries */

struct scope_walk {
	struct dwarf_scopes *scopes;
	VEC(struct scope_range) ranges;
	uint64_t entries_left, ranges_left;
	struct scope_level levels[LEVELS_MAX];
	unsigned depth;
};

enum entry_use {
	ENTRY_SKIP,
	ENTRY_ENTER, /* may contain functions */
	ENTRY_FUNCTION,
	ENTRY_INLINED,
};

static enum entry_use entry_use(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
	case DW_TAG_entry_point:
		return ENTRY_FUNCTION;
	case DW_TAG_inlined_subroutine:
		return ENTRY_INLINED;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type: /* Rust enumerations have methods */
	case DW_TAG_variant_part:
		return ENTRY_ENTER;
	default:
		return ENTRY_SKIP;
	}
}

/* Adds the ranges of a function that has code. Without code, *scope stays the parent scope. */
static int add_scope(struct scope_walk *walk, Dwarf_Die *die, bool inlined, uint32_t *scope)
{
	struct dwarf_scope added = {.die = *die, .parent = *scope, .inlined = inlined};
	uint32_t number = (uint32_t)walk->scopes->list.len;
	size_t before = walk->ranges.len;
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while (walk->ranges_left && (at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		walk->ranges_left--;
		if (!low || low >= high)
			continue;
		if (!vec_push(&walk->ranges, (struct scope_range){low, high, number}))
			return -ENOMEM;
	}
	if (walk->ranges.len == before || number == SCOPE_NONE)
		return 0;
	*scope = number;
	return vec_push(&walk->scopes->list, added) ? 0 : -ENOMEM;
}

/* Moves to the next entry at the deepest level, forward only, or up one level. */
static void walk_next(struct scope_walk *walk, Dwarf_Die *die)
{
	struct scope_level *level = &walk->levels[walk->depth - 1];

	if (dwarf_siblingof(die, &level->die) ||
	    dwarf_dieoffset(&level->die) <= dwarf_dieoffset(die))
		walk->depth--;
}

static int walk_visit(struct scope_walk *walk)
{
	struct scope_level level = walk->levels[walk->depth - 1];
	enum entry_use use = entry_use(&level.die);
	Dwarf_Die child;
	int err = 0;

	walk_next(walk, &level.die);
	if (use == ENTRY_SKIP)
		return 0;
	if (use != ENTRY_ENTER)
		err = add_scope(walk, &level.die, use == ENTRY_INLINED, &level.scope);
	if (!err && walk->depth < LEVELS_MAX && !dwarf_child(&level.die, &child) &&
	    dwarf_dieoffset(&child) > dwarf_dieoffset(&level.die))
		walk->levels[walk->depth++] = (struct scope_level){child, level.scope};
	return err;
}

static int walk_unit(struct scope_walk *walk, Dwarf_Die *unit)
{
	int err = 0;

	walk->levels[0].scope = SCOPE_NONE;
	walk->depth = dwarf_child(unit, &walk->levels[0].die) ? 0 : 1;
	while (walk->depth && walk->entries_left && !err) {
		walk->entries_left--;
		err = walk_visit(walk);
	}
	return err;
}

/* An enclosing range sorts before the ranges inside it. */
static int compare_ranges(const void *a, const void *b)
{
	const struct scope_range *left = a, *right = b;

	if (left->low != right->low)
		return left->low < right->low ? -1 : 1;
	if (left->high != right->high)
		return left->high > right->high ? -1 : 1;
	return left->scope < right->scope ? -1 : left->scope > right->scope;
}

static bool add_boundary(struct dwarf_scopes *scopes, uint64_t start, uint32_t scope)
{
	size_t count = scopes->boundaries.len;

	if (count && scopes->boundaries.data[count - 1].start == start) {
		scopes->boundaries.data[count - 1].scope = scope;
		return true;
	}
	return vec_push(&scopes->boundaries, (struct boundary){start, scope});
}

/* Sweeps over the nested ranges. A range that exceeds its enclosing range is cut. */
static int flatten(struct dwarf_scopes *scopes, struct scope_range *ranges, size_t count)
{
	VEC(struct scope_range) open = {0};
	bool ok = true;

	for (size_t i = 0; i <= count && ok; i++) {
		uint64_t low = i < count ? ranges[i].low : UINT64_MAX;

		while (ok && open.len && open.data[open.len - 1].high <= low) {
			uint64_t end = open.data[--open.len].high;

			ok = add_boundary(scopes, end,
					  open.len ? open.data[open.len - 1].scope : SCOPE_NONE);
		}
		if (!ok || i == count)
			break;
		if (open.len && ranges[i].high > open.data[open.len - 1].high)
			ranges[i].high = open.data[open.len - 1].high;
		ok = add_boundary(scopes, low, ranges[i].scope) && vec_push(&open, ranges[i]);
	}
	vec_free(&open);
	return ok ? 0 : -ENOMEM;
}

int dwarf_scopes_read(struct dwarf_scopes **result, Dwarf_Die *unit, uint64_t budget)
{
	struct dwarf_scopes *scopes = calloc(1, sizeof(*scopes));
	struct scope_walk *walk = calloc(1, sizeof(*walk));
	int err = -ENOMEM;

	*result = NULL;
	if (scopes && walk) {
		walk->scopes = scopes;
		walk->entries_left = budget;
		walk->ranges_left = DWARF_RANGES_MIN + budget;
		err = walk_unit(walk, unit);
	}
	if (!err && walk->ranges.len) {
		qsort(walk->ranges.data, walk->ranges.len, sizeof(*walk->ranges.data),
		      compare_ranges);
		err = flatten(scopes, walk->ranges.data, walk->ranges.len);
	}
	if (walk)
		vec_free(&walk->ranges);
	free(walk);
	if (err || !scopes->boundaries.len)
		dwarf_scopes_free(scopes);
	else
		*result = scopes;
	return err;
}

void dwarf_scopes_free(struct dwarf_scopes *scopes)
{
	if (!scopes)
		return;
	vec_free(&scopes->list);
	vec_free(&scopes->boundaries);
	free(scopes);
}

struct dwarf_scope *dwarf_scopes_find(struct dwarf_scopes *scopes, uint64_t address)
{
	size_t after = lower_bound(scopes ? scopes->boundaries.len : 0, i,
				   scopes->boundaries.data[i].start <= address);
	uint32_t scope = after ? scopes->boundaries.data[after - 1].scope : SCOPE_NONE;

	return scope == SCOPE_NONE ? NULL : &scopes->list.data[scope];
}

struct dwarf_scope *dwarf_scope_parent(struct dwarf_scopes *scopes, const struct dwarf_scope *scope)
{
	return scope->parent == SCOPE_NONE ? NULL : &scopes->list.data[scope->parent];
}

uint64_t dwarf_scope_start(struct dwarf_scope *scope, uint64_t address)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(&scope->die, at, &base, &low, &high)) > 0)
		if (address >= low && address < high)
			return low;
	return address;
}
