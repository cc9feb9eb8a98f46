// SPDX-License-Identifier: Apache-2.0
/*
 * The functions of a Go program, as its runtime has them for stack traces (.gopclntab). They are
 * still there if the symbol table was removed (-ldflags=-s). Layout since Go 1.18, see
 * debug/gosym/pclntab.go and runtime/symtab.go of Go: a header of 8 bytes, then words:
 *
 *   functions, files, address of the code or 0, and offsets of: names, …, …, …, functions
 *
 * For each function there are two numbers of 4 bytes: its offset in the code, and that of its
 * description in the table of functions. That has the offset of its name as its second number.
 */
#include "target/elf/symtab.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "target/elf/elffile.h"
#include "target/elf/elflimits.h"

#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u
#define HEADER_BYTES 8u
#define POINTER_SIZE_AT 7u
#define ROW_BYTES 8u

enum go_word { GO_FUNCTIONS, GO_FILES, GO_TEXT, GO_NAMES, GO_UNITS, GO_PATHS, GO_LINES, GO_TABLE };

struct go_table {
	const char *bytes;
	uint64_t size;
	uint64_t functions, text, names, table; /* of these words */
	uint64_t names_end; /* behind the last NUL, from `names` on; names before it have an end */
};

/* Reads a number of 4 or 8 bytes. False: it is not in the section. */
static bool number_at(const struct go_table *go, uint64_t at, size_t bytes, uint64_t *number)
{
	*number = 0;
	if (at > go->size || go->size - at < bytes)
		return false;
	memcpy(number, go->bytes + at, bytes);
	return true;
}

static bool word_read(const struct go_table *go, enum go_word word, uint64_t *number)
{
	return number_at(go, HEADER_BYTES + 8 * (uint64_t)word, 8, number);
}

static bool header_read(struct go_table *go)
{
	const char *names, *last;
	uint64_t magic;

	if (!number_at(go, 0, 4, &magic) || (magic != MAGIC_1_18 && magic != MAGIC_1_20) ||
	    go->size <= HEADER_BYTES || go->bytes[POINTER_SIZE_AT] != 8 ||
	    !word_read(go, GO_FUNCTIONS, &go->functions) || !word_read(go, GO_TEXT, &go->text) ||
	    !word_read(go, GO_NAMES, &go->names) || !word_read(go, GO_TABLE, &go->table) ||
	    go->names >= go->size || go->table >= go->size ||
	    go->functions >= (go->size - go->table) / ROW_BYTES)
		return false;
	names = go->bytes + go->names;
	last = memrchr(names, '\0', go->size - go->names);
	go->names_end = last ? (uint64_t)(last - names) + 1 : 0;
	return true;
}

/* False: the table is damaged. */
static bool function_read(const struct go_table *go, uint64_t index, struct symtab_entry *entry)
{
	uint64_t at = go->table + ROW_BYTES * index, start, end, described, name;

	if (!number_at(go, at, 4, &start) || !number_at(go, at + 4, 4, &described) ||
	    !number_at(go, at + ROW_BYTES, 4, &end) ||
	    !number_at(go, go->table + described + 4, 4, &name) || start >= end ||
	    go->text > UINT64_MAX - end || name >= go->names_end)
		return false;
	*entry = (struct symtab_entry){
		.start = go->text + start, .end = go->text + end, .name = (uint32_t)name};
	return true;
}

/* Whether code of the file lies at an address. */
static bool is_code(Elf *elf, uint64_t address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_flags & SHF_EXECINSTR &&
		    address >= header.sh_addr && address - header.sh_addr < header.sh_size)
			return true;
	return false;
}

/* The contents of a section. NULL: there is none, or it is too large. */
static const Elf_Data *section_read(Elf *elf, const char *name, GElf_Shdr *header)
{
	Elf_Scn *section = elf_section_named(elf, name, header);
	const Elf_Data *data;

	if (!section || header->sh_size > ELF_TABLES_MAX)
		return NULL;
	data = elf_rawdata(section, NULL);
	return data && data->d_buf ? data : NULL;
}

/* The words of the section .go.module: the addresses of the table and of the code are among those
 * of struct moduledata of runtime/symtab.go. */
#define MODULE_TABLE 0
#define MODULE_TEXT 22

/* From Go 1.26 on, the address of the code is not in the table, which is at `table`. */
static uint64_t module_text(Elf *elf, uint64_t table)
{
	GElf_Shdr header;
	const Elf_Data *data = section_read(elf, ".go.module", &header);
	uint64_t words[MODULE_TEXT + 1];

	if (!data || data->d_size < sizeof(words))
		return 0;
	memcpy(words, data->d_buf, sizeof(words));
	return words[MODULE_TABLE] == table ? words[MODULE_TEXT] : 0;
}

int symtab_read_go(struct symtab *symtab, Elf *elf)
{
	GElf_Shdr header;
	const Elf_Data *data = section_read(elf, ".gopclntab", &header);
	struct go_table go = {0};
	uint64_t before = 0;

	*symtab = (struct symtab){.elf = elf};
	if (!data)
		return -ENOENT;
	go.bytes = data->d_buf;
	go.size = data->d_size;
	if (!header_read(&go))
		return -ENOENT;
	if (!go.text)
		go.text = module_text(elf, header.sh_addr);
	/* Of a program that may be loaded anywhere, the loader may set the address. */
	if (!is_code(elf, go.text))
		return -ENOENT;
	symtab->names = go.bytes + go.names;
	for (uint64_t i = 0; i < go.functions; i++) {
		struct symtab_entry entry;
		bool good = function_read(&go, i, &entry) && entry.start >= before;

		if (!good || !vec_push(&symtab->list, entry)) {
			symtab_free(symtab);
			return good ? -ENOMEM : -ENOENT;
		}
		before = entry.end;
	}
	return symtab->list.len ? 0 : -ENOENT;
}
