// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/cfi.h"

#include <errno.h>
#include <stdlib.h>

#include "target/dwarf/cfi_entries_internal.h"
#include "util/search.h"
#include "util/vec.h"

/* A row while the table is built. */
struct long_row {
	uint64_t pc;
	uint32_t number; /* position in the file */
	struct waffle_unwind_row row;
};

struct reading {
	VEC(struct long_row) rows;
	struct cfi_table *table;
	bool no_memory;
};

static bool put_row(uint64_t pc, const struct waffle_unwind_row *row, void *arg)
{
	struct reading *reading = arg;
	uint32_t number = (uint32_t)reading->rows.len;

	if (reading->rows.len >= CFI_ROWS_MAX)
		reading->table->cut = true;
	else if (!vec_push(&reading->rows, (struct long_row){pc, number, *row}))
		reading->no_memory = true;
	return !reading->no_memory && !reading->table->cut;
}

static bool read_function(struct cfi_section *section, const struct cfi_entry *entry, void *arg)
{
	static const struct waffle_unwind_row behind = {.rule = WAFFLE_UNWIND_UNKNOWN};
	const struct cfi_common *common = &section->commons.data[entry->common].common;
	struct reading *reading = arg;
	bool good;

	reading->table->functions++;
	good = cfi_run(common, entry->program, entry->from, entry->to, put_row, reading);
	put_row(entry->to, &behind, reading);
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
	return x->number < y->number ? -1 : x->number > y->number;
}

static void sort_rows(struct reading *reading)
{
	struct long_row *rows = reading->rows.data;

	for (size_t i = 1; i < reading->rows.len; i++)
		if (row_compare(&rows[i - 1], &rows[i]) > 0) {
			qsort(rows, reading->rows.len, sizeof(*rows), row_compare);
			return;
		}
}

static bool same_rules(const struct waffle_unwind_row *a, const struct waffle_unwind_row *b)
{
	return a->cfa == b->cfa && a->fp == b->fp && a->rule == b->rule;
}

/* Of several rows at one address the last one wins. A row that repeats the rules of the row before
 * it is omitted. */
static int make_table(struct reading *reading)
{
	const struct long_row *rows = reading->rows.data;
	struct cfi_table *table = reading->table;
	size_t len = reading->rows.len;

	sort_rows(reading);
	if (!len)
		return 0;
	table->base = rows[0].pc;
	table->rows = calloc(len, sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	for (size_t i = 0; i < len && table->count < CFI_ROWS_MAX; i++) {
		struct waffle_unwind_row row = rows[i].row;

		if (rows[i].pc - table->base > UINT32_MAX)
			break;
		if (i + 1 < len && rows[i + 1].pc == rows[i].pc)
			continue;
		if (table->count && same_rules(&table->rows[table->count - 1], &row))
			continue;
		row.pc = (uint32_t)(rows[i].pc - table->base);
		table->rows[table->count++] = row;
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
	if (result)
		cfi_table_free(table);
	return result;
}

void cfi_table_free(struct cfi_table *table)
{
	free(table->rows);
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
