// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/cfi.h"

#include <errno.h>
#include <stdlib.h>

#include "target/dwarf/cfi_entries_internal.h"
#include "util/search.h"
#include "util/vec.h"

/* A row while the table is built. Its `row.pc` is its position in the file. */
struct long_row {
	uint64_t pc;
	struct waffle_unwind_row row;
};

/* The rows of a function, in the order of their addresses. */
struct function_rows {
	uint64_t from;
	uint32_t first, count; /* index in `rows` */
};

struct reading {
	VEC(struct long_row) rows;
	VEC(struct function_rows) functions;
	struct cfi_table *table;
	bool no_memory;
};

static bool put_row(uint64_t pc, const struct waffle_unwind_row *row, void *arg)
{
	struct reading *reading = arg;
	struct long_row added = {pc, *row};

	added.row.pc = (uint32_t)reading->rows.len;
	if (reading->rows.len >= CFI_ROWS_MAX)
		reading->table->cut = true;
	else if (!vec_push(&reading->rows, added))
		reading->no_memory = true;
	return !reading->no_memory && !reading->table->cut;
}

static bool read_function(struct cfi_section *section, const struct cfi_entry *entry, void *arg)
{
	static const struct waffle_unwind_row behind = {.rule = WAFFLE_UNWIND_UNKNOWN};
	const struct cfi_common *common = &section->commons.data[entry->common].common;
	struct reading *reading = arg;
	struct function_rows function = {.from = entry->from, .first = (uint32_t)reading->rows.len};
	bool good;

	reading->table->functions++;
	good = cfi_run(common, entry->program, entry->from, entry->to, put_row, reading);
	put_row(entry->to, &behind, reading);
	function.count = (uint32_t)reading->rows.len - function.first;
	if (function.count && !vec_push(&reading->functions, function))
		reading->no_memory = true;
	section->no_memory = reading->no_memory;
	section->cut = reading->table->cut;
	return good || section->cut;
}

static bool is_behind(const struct long_row *row)
{
	return row->row.rule == WAFFLE_UNWIND_UNKNOWN;
}

/* At equal addresses, the row that marks the end of a function sorts before the first row of the
 * next function. */
static int row_compare(const void *a, const void *b)
{
	const struct long_row *x = a, *y = b;

	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	if (is_behind(x) != is_behind(y))
		return is_behind(x) ? -1 : 1;
	return x->row.pc < y->row.pc ? -1 : x->row.pc > y->row.pc;
}

static int function_compare(const void *a, const void *b)
{
	const struct function_rows *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Whether a function of the sorted list begins before the function in front of it ends. */
static bool functions_overlap(const struct reading *reading)
{
	const struct function_rows *list = reading->functions.data;
	const struct long_row *rows = reading->rows.data;

	for (size_t i = 1; i < reading->functions.len; i++)
		if (row_compare(&rows[list[i - 1].first + list[i - 1].count - 1],
				&rows[list[i].first]) > 0)
			return true;
	return false;
}

/* Sorts the functions rather than the rows, of which a large library has ten times as many. Only
 * if functions overlap, their rows are mixed, and all rows are sorted as those of one function. */
static void sort_rows(struct reading *reading)
{
	struct function_rows *list = reading->functions.data;

	if (!reading->functions.len)
		return;
	qsort(list, reading->functions.len, sizeof(*list), function_compare);
	if (!functions_overlap(reading))
		return;
	qsort(reading->rows.data, reading->rows.len, sizeof(*reading->rows.data), row_compare);
	list[0] = (struct function_rows){.count = (uint32_t)reading->rows.len};
	reading->functions.len = 1;
}

static bool same_rules(const struct waffle_unwind_row *a, const struct waffle_unwind_row *b)
{
	return a->cfa == b->cfa && a->fp == b->fp && a->rule == b->rule;
}

/* Adds a row to the table. Of several rows at one address the last one wins. A row that repeats
 * the rules of the row before it is omitted. */
static void table_add(struct cfi_table *table, const struct long_row *row)
{
	struct waffle_unwind_row added = row->row;
	struct waffle_unwind_row *last = table->rows + table->count - 1;

	added.pc = (uint32_t)(row->pc - table->base);
	if (table->count && last->pc == added.pc)
		table->count--, last--;
	if (!table->count || !same_rules(last, &added))
		table->rows[table->count++] = added;
}

static int make_table(struct reading *reading)
{
	struct cfi_table *table = reading->table;

	sort_rows(reading);
	if (!reading->rows.len)
		return 0;
	table->base = reading->rows.data[reading->functions.data[0].first].pc;
	table->rows = calloc(reading->rows.len, sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	for (size_t i = 0; i < reading->functions.len; i++) {
		const struct function_rows *function = &reading->functions.data[i];

		for (uint32_t k = 0; k < function->count; k++) {
			const struct long_row *row = &reading->rows.data[function->first + k];

			if (row->pc - table->base > UINT32_MAX)
				return 0;
			table_add(table, row);
		}
	}
	return 0;
}

int cfi_table_read(struct cfi_table *table, const struct elf_file *file)
{
	struct reading reading = {.table = table};
	int result;

	*table = (struct cfi_table){0};
	/* One file may hold both sections, since the static libraries linked into it may use
	 * different ones. */
	for (unsigned kind = 0; kind < CFI_SECTIONS; kind++) {
		struct cfi_section section;

		if (cfi_section_open(&section, file, kind))
			cfi_section_each(&section, read_function, &reading);
		reading.no_memory |= section.no_memory;
		table->bad += section.bad;
		table->cut |= section.cut;
		cfi_section_close(&section);
	}
	result = reading.no_memory ? -ENOMEM : make_table(&reading);
	vec_free(&reading.rows);
	vec_free(&reading.functions);
	if (result)
		cfi_table_free(table);
	return result;
}

void cfi_table_free_rows(struct cfi_table *table)
{
	free(table->memory ?: table->rows);
	table->memory = NULL;
	table->rows = NULL;
}

void cfi_table_free(struct cfi_table *table)
{
	cfi_table_free_rows(table);
	*table = (struct cfi_table){0};
}

const struct waffle_unwind_row *cfi_table_find(const struct cfi_table *table, uint64_t address)
{
	uint64_t pc = address - table->base;
	const struct waffle_unwind_row *row;
	size_t after;

	if (!table->count || address < table->base)
		return NULL;
	after = lower_bound(table->count, i, table->rows[i].pc <= pc);
	row = &table->rows[after ? after - 1 : 0];
	return row->rule == WAFFLE_UNWIND_UNKNOWN ? NULL : row;
}
