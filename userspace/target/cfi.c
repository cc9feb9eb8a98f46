// SPDX-License-Identifier: Apache-2.0
#include "target/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "target/cfi_program.h"
#include "util/map.h"
#include "util/vec.h"

/* How an address is written: LSB, "DWARF Exception Header Encoding". */
#define ENCODING_FORMAT 0x0f
#define ENCODING_RELATIVE 0x70
#define ENCODING_OMIT 0xff

/* A row while the table is made. */
struct long_row {
	uint64_t pc;
	uint32_t number; /* in the order of the file */
	struct waffle_unwind_row row;
};

struct common_entry {
	struct cfi_common common;
	uint8_t encoding;
	bool sized; /* its FDEs have a size of what they say beside the address */
	bool bad;
};

struct reading {
	const struct cfi_machine *machine;
	const unsigned char *data;
	size_t size;
	uint64_t address; /* of the section */
	bool debug;       /* .debug_frame */
	struct map at;    /* offset of a CIE → index in `commons` */
	VEC(struct common_entry) commons;
	VEC(struct long_row) rows;
	struct cfi_table *table;
	bool no_memory;
};

static const struct cfi_machine x86_64 = {.fp = 6, .sp = 7, .ra = 16};
static const struct cfi_machine aarch64 = {.fp = 29, .sp = 31, .ra = 30, .ra_in_register = true};

static const struct cfi_machine *machine_of(const struct elf_file *file)
{
	GElf_Ehdr header;

	if (!gelf_getehdr(file->elf, &header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB)
		return NULL;
	if (header.e_machine == EM_X86_64)
		return &x86_64;
	return header.e_machine == EM_AARCH64 ? &aarch64 : NULL;
}

static bool section_find(struct reading *reading, const struct elf_file *file, const char *name)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section(file, name, &header);
	Elf_Data *data;

	if (!section || header.sh_type == SHT_NOBITS ||
	    (header.sh_flags & SHF_COMPRESSED && elf_compress(section, 0, 0) < 0))
		return false;
	data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf || !data->d_size)
		return false;
	reading->data = data->d_buf;
	reading->size = data->d_size;
	reading->address = header.sh_addr;
	return true;
}

/* ---- entries ---- */

static uint64_t read_encoded(const struct reading *reading, struct cfi_bytes *bytes,
			     uint8_t encoding)
{
	uint64_t here = reading->address + (uint64_t)(bytes->at - reading->data), value;

	switch (encoding & ENCODING_FORMAT) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = cfi_fixed(bytes, 8);
		break;
	case DW_EH_PE_udata4:
		value = cfi_fixed(bytes, 4);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int32_t)cfi_fixed(bytes, 4);
		break;
	case DW_EH_PE_udata2:
		value = cfi_fixed(bytes, 2);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)(int16_t)cfi_fixed(bytes, 2);
		break;
	case DW_EH_PE_uleb128:
		value = cfi_uleb(bytes);
		break;
	case DW_EH_PE_sleb128:
		value = (uint64_t)cfi_sleb(bytes);
		break;
	default:
		bytes->bad = true;
		return 0;
	}
	if ((encoding & ENCODING_RELATIVE) == DW_EH_PE_pcrel)
		return value + here;
	if (encoding & ENCODING_RELATIVE || encoding & DW_EH_PE_indirect)
		bytes->bad = true;
	return value;
}

/* What the letters of a CIE's augmentation say: "zPLR", "zRS". */
static void read_augmentation(const struct reading *reading, struct common_entry *entry,
			      const char *letters, struct cfi_bytes *bytes)
{
	uint64_t size = cfi_uleb(bytes);
	struct cfi_bytes data = *bytes;

	cfi_skip(bytes, size);
	entry->sized = true;
	for (; *letters && !data.bad; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			entry->encoding = (uint8_t)cfi_fixed(&data, 1);
			break;
		case 'L':
			cfi_fixed(&data, 1);
			break;
		case 'P':
			encoding = (uint8_t)cfi_fixed(&data, 1);
			if (encoding != ENCODING_OMIT) /* the value is of no use here */
				read_encoded(reading, &data, encoding & ENCODING_FORMAT);
			break;
		case 'S':
			entry->common.signal = true;
			break;
		default: /* 'B', 'G' of aarch64 have no data */
			break;
		}
	}
	bytes->bad = bytes->bad || data.bad;
}

/* `bytes`: behind the entry's number. */
static void read_common(const struct reading *reading, struct common_entry *entry,
			struct cfi_bytes bytes)
{
	uint64_t version = cfi_fixed(&bytes, 1);
	const char *letters = (const char *)bytes.at;
	size_t len = strnlen(letters, (size_t)(bytes.end - bytes.at));

	*entry = (struct common_entry){.common.machine = reading->machine, .bad = true};
	cfi_skip(&bytes, len + 1);
	if (bytes.bad || (version != 1 && version != 3 && version != 4))
		return;
	if (version == 4 && (cfi_fixed(&bytes, 1) != 8 || cfi_fixed(&bytes, 1)))
		return; /* addresses of other sizes, or segments */
	entry->common.code_align = cfi_uleb(&bytes);
	entry->common.data_align = cfi_sleb(&bytes);
	if ((version == 1 ? cfi_fixed(&bytes, 1) : cfi_uleb(&bytes)) != reading->machine->ra)
		return;
	if (*letters == 'z')
		read_augmentation(reading, entry, letters + 1, &bytes);
	else if (*letters)
		return;
	entry->bad = bytes.bad || !cfi_run_common(&entry->common, bytes);
}

static bool put_row(uint64_t pc, const struct waffle_unwind_row *row, void *arg)
{
	struct reading *reading = arg;
	uint32_t number = (uint32_t)reading->rows.len;

	if (reading->rows.len >= 2 * (size_t)CFI_ROWS_MAX ||
	    !vec_push(&reading->rows, (struct long_row){pc, number, *row}))
		reading->no_memory = true;
	return !reading->no_memory;
}

static bool read_function(struct reading *reading, const struct common_entry *entry,
			  struct cfi_bytes bytes)
{
	static const struct waffle_unwind_row behind = {.rule = WAFFLE_UNWIND_UNKNOWN};
	uint64_t from, size;
	bool good;

	if (entry->bad)
		return false;
	from = read_encoded(reading, &bytes, entry->encoding);
	size = read_encoded(reading, &bytes, entry->encoding & ENCODING_FORMAT);
	if (entry->sized)
		cfi_skip(&bytes, cfi_uleb(&bytes));
	if (bytes.bad || from + size < from)
		return false;
	if (!from || !size) /* the linker has thrown the function away */
		return true;
	reading->table->functions++;
	good = cfi_run(&entry->common, bytes, from, from + size, put_row, reading);
	return put_row(from + size, &behind, reading) && good;
}

/* The CIE at an offset, read once; NULL: there is none. */
static const struct common_entry *common_at(struct reading *reading, uint64_t offset)
{
	uint32_t known = map_get(&reading->at, offset);
	struct common_entry entry;
	struct cfi_bytes bytes;
	uint64_t size;

	if (known != MAP_NONE)
		return &reading->commons.data[known];
	if (offset >= reading->size)
		return NULL;
	bytes = (struct cfi_bytes){.at = reading->data + offset,
				   .end = reading->data + reading->size};
	size = cfi_fixed(&bytes, 4);
	if (bytes.bad || size > (size_t)(bytes.end - bytes.at))
		return NULL;
	bytes.end = bytes.at + size;
	if (cfi_fixed(&bytes, 4) != (reading->debug ? UINT32_MAX : 0))
		return NULL;
	read_common(reading, &entry, bytes);
	if (!vec_push(&reading->commons, entry) ||
	    !map_set(&reading->at, offset, (uint32_t)reading->commons.len - 1)) {
		reading->no_memory = true;
		return NULL;
	}
	return &reading->commons.data[reading->commons.len - 1];
}

static void read_entry(struct reading *reading, struct cfi_bytes bytes)
{
	uint64_t at = (uint64_t)(bytes.at - reading->data), number = cfi_fixed(&bytes, 4);
	const struct common_entry *common;

	if (bytes.bad || number == (reading->debug ? UINT32_MAX : 0))
		return; /* a CIE: read when it is referred to */
	common = reading->debug ? common_at(reading, number)
		 : number <= at ? common_at(reading, at - number)
				: NULL;
	if (!common || !read_function(reading, common, bytes))
		reading->table->bad++;
}

static void read_section(struct reading *reading)
{
	struct cfi_bytes bytes = {.at = reading->data, .end = reading->data + reading->size};

	while (bytes.at < bytes.end && !reading->no_memory) {
		uint64_t size = cfi_fixed(&bytes, 4);
		struct cfi_bytes entry;

		if (bytes.bad || (!size && !reading->debug))
			return;
		if (size == UINT32_MAX) { /* of 64-bit DWARF, which linkers do not write here */
			cfi_skip(&bytes, cfi_fixed(&bytes, 8));
			reading->table->bad++;
			continue;
		}
		entry = bytes;
		cfi_skip(&bytes, size);
		if (bytes.bad)
			return;
		entry.end = bytes.at;
		read_entry(reading, entry);
	}
}

/* ---- the table ---- */

static bool is_behind(const struct long_row *row)
{
	return row->row.rule == WAFFLE_UNWIND_UNKNOWN;
}

/* What is behind a function comes before what the next one says of the same address. */
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

/* Of rows at one address the last one counts; one that changes nothing is left out. */
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
	/* Code that was built without the first may have the second, and libraries in it both. */
	static const char *const sections[] = {".eh_frame", ".debug_frame"};
	struct reading reading = {.table = table};
	int result = 0;

	*table = (struct cfi_table){0};
	reading.machine = machine_of(file);
	if (!reading.machine)
		return 0;
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		reading.debug = i > 0;
		if (section_find(&reading, file, sections[i]))
			read_section(&reading);
		map_free(&reading.at);
	}
	result = reading.no_memory ? -ENOMEM : make_table(&reading);
	vec_free(&reading.commons);
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
	size_t low = 0, high = table->count;
	uint64_t pc = address - table->base;

	if (!table->count || address < table->base)
		return NULL;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (table->rows[middle].pc <= pc)
			low = middle;
		else
			high = middle;
	}
	return table->rows[low].rule == WAFFLE_UNWIND_UNKNOWN ? NULL : &table->rows[low];
}
