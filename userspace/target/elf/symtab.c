// SPDX-License-Identifier: Apache-2.0
#include "target/elf/symtab.h"

#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/search.h"

/* Weights for choosing a name among several symbols of one address. */
enum {
	RANK_FUNCTION = 1,
	RANK_GLOBAL = 2,
	RANK_PLAIN = 4, /* times (7 - number of leading underscores) */
	RANK_PLAIN_MAX = 7,
	RANK_SHARED = 32, /* visible beyond its source file */
	RANK_SIZED = 64,
};

unsigned symbol_underscores(const char *name)
{
	return (unsigned)strspn(name, "_");
}

static bool symbol_is(const GElf_Sym *symbol, const char *name, enum symtab_kind kind)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || !symbol->st_value ||
	    !name[0])
		return false;
	if (kind == SYMTAB_DATA)
		return type == STT_OBJECT && symbol->st_size;
	/* Functions in assembly may have no type. Names with "$x" and "$d" are ARM's mapping
	 * symbols for code and data. */
	return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && name[0] != '$');
}

static uint8_t symbol_rank(const GElf_Sym *symbol, const char *name)
{
	unsigned binding = GELF_ST_BIND(symbol->st_info), underscores = symbol_underscores(name);
	unsigned rank = 0;

	if (symbol->st_size)
		rank += RANK_SIZED;
	if (binding != STB_LOCAL)
		rank += RANK_SHARED;
	if (binding == STB_GLOBAL)
		rank += RANK_GLOBAL;
	if (GELF_ST_TYPE(symbol->st_info) != STT_NOTYPE)
		rank += RANK_FUNCTION;
	rank += RANK_PLAIN *
		(RANK_PLAIN_MAX - (underscores < RANK_PLAIN_MAX ? underscores : RANK_PLAIN_MAX));
	return (uint8_t)rank;
}

/* Sets *end to the end of the symbol's section. False: the symbol is not known to lie in code. */
static bool section_end(Elf *elf, const GElf_Sym *symbol, enum symtab_kind kind, uint64_t *end)
{
	GElf_Shdr header;

	*end = UINT64_MAX;
	if (symbol->st_shndx >= SHN_LORESERVE)
		return true;
	if (!gelf_getshdr(elf_getscn(elf, symbol->st_shndx), &header))
		return false;
	if (kind == SYMTAB_CODE && !(header.sh_flags & SHF_EXECINSTR))
		return false;
	if (header.sh_addr <= UINT64_MAX - header.sh_size)
		*end = header.sh_addr + header.sh_size;
	return symbol->st_value < *end;
}

static int symtab_add(struct symtab *symtab, const GElf_Sym *symbol, enum symtab_kind kind)
{
	const char *name = elf_strptr(symtab->elf, symtab->strings, symbol->st_name);
	struct symtab_entry entry = {.start = symbol->st_value, .name = symbol->st_name};

	if (!name || !symbol_is(symbol, name, kind) ||
	    !section_end(symtab->elf, symbol, kind, &entry.end))
		return 0;
	if (symbol->st_size && symbol->st_size < entry.end - entry.start)
		entry.end = entry.start + symbol->st_size;
	entry.rank = symbol_rank(symbol, name);
	return vec_push(&symtab->list, entry) ? 0 : -ENOMEM;
}

static int compare_entries(const void *a, const void *b)
{
	const struct symtab_entry *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank > right->rank ? -1 : 1;
	return left->name < right->name ? -1 : left->name > right->name;
}

/* Keeps one symbol per address. A symbol without a size ends where the next one begins. */
static void symtab_sort(struct symtab *symtab)
{
	struct symtab_entry *list = symtab->list.data;
	size_t kept = 0;

	qsort(list, symtab->list.len, sizeof(*list), compare_entries);
	for (size_t i = 0; i < symtab->list.len; i++) {
		if (kept && list[kept - 1].start == list[i].start)
			continue;
		if (kept && list[kept - 1].rank < RANK_SIZED && list[kept - 1].end > list[i].start)
			list[kept - 1].end = list[i].start;
		list[kept++] = list[i];
	}
	symtab->list.len = kept;
}

static int symtab_read_section(struct symtab *symtab, Elf_Scn *section, const GElf_Shdr *header,
			       enum symtab_kind kind)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t size = gelf_fsize(symtab->elf, ELF_T_SYM, 1, EV_CURRENT);
	int err = 0;

	if (!data || !size)
		return -ENOENT;
	symtab->strings = header->sh_link;
	for (size_t i = 0; i < data->d_size / size && i < INT_MAX && !err; i++) {
		GElf_Sym symbol;

		if (gelf_getsym(data, (int)i, &symbol))
			err = symtab_add(symtab, &symbol, kind);
	}
	return err;
}

int symtab_read(struct symtab *symtab, Elf *elf, uint32_t type, enum symtab_kind kind)
{
	Elf_Scn *section = NULL;
	int err = -ENOENT;

	*symtab = (struct symtab){.elf = elf};
	while (err == -ENOENT && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == type)
			err = symtab_read_section(symtab, section, &header, kind);
	}
	if (!err && !symtab->list.len)
		err = -ENOENT;
	if (err) {
		symtab_free(symtab);
		return err;
	}
	symtab_sort(symtab);
	return 0;
}

void symtab_free(struct symtab *symtab)
{
	vec_free(&symtab->list);
}

/* A larger symbol may contain an address after smaller symbols have begun. The search looks back
 * over this many symbols. */
#define LOOK_BACK 16

static const char *name_of(const struct symtab *symtab, const struct symtab_entry *entry)
{
	return symtab->names ? symtab->names + entry->name
			     : elf_strptr(symtab->elf, symtab->strings, entry->name);
}

const char *symtab_find(const struct symtab *symtab, uint64_t address, uint64_t *start)
{
	const struct symtab_entry *list = symtab->list.data;
	size_t after = lower_bound(symtab->list.len, i, list[i].start <= address);

	for (size_t back = 0; back < LOOK_BACK && after > back; back++) {
		const struct symtab_entry *entry = &list[after - 1 - back];

		if (address >= entry->end)
			continue;
		if (start)
			*start = entry->start;
		return name_of(symtab, entry);
	}
	return NULL;
}

bool symtab_has(const struct symtab *symtab, const char *name)
{
	for (size_t i = 0; i < symtab->list.len; i++) {
		const char *found = name_of(symtab, &symtab->list.data[i]);

		if (found && !strcmp(found, name))
			return true;
	}
	return false;
}
