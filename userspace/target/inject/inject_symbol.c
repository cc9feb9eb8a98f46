// SPDX-License-Identifier: Apache-2.0
/*
 * Looks names up in the memory of the process, by the hash table that its loader uses (gABI, and
 * https://flapenguin.me/elf-dt-gnu-hash). The process may have changed that memory. Then it calls a
 * wrong function of its own, as it could by itself; what we read is bounded.
 */
#include <elf.h>
#include <string.h>

#include "target/inject/inject_internal.h"

#define HEADERS_MAX 64
#define DYNAMIC_MAX 256
#define CHAIN_MAX 4096
#define NAME_BYTES 64

struct tables {
	uint64_t bias;
	uint64_t symbols, strings, hash;
};

/* The loader has added the bias to the pointers of most objects. */
static uint64_t pointer_of(const struct tables *tables, uint64_t value)
{
	return value < tables->bias ? value + tables->bias : value;
}

static bool dynamic_read(struct tables *tables, const struct image *image, const Elf64_Phdr *part)
{
	uint64_t at = tables->bias + part->p_vaddr;
	Elf64_Dyn entry;

	for (unsigned i = 0; i < DYNAMIC_MAX; i++, at += sizeof(entry)) {
		if (!image_read(image, at, &entry, sizeof(entry)) || entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_SYMTAB)
			tables->symbols = pointer_of(tables, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_STRTAB)
			tables->strings = pointer_of(tables, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_GNU_HASH)
			tables->hash = pointer_of(tables, entry.d_un.d_ptr);
	}
	return tables->symbols && tables->strings && tables->hash;
}

static bool tables_find(struct tables *tables, const struct image *image, uint64_t base)
{
	Elf64_Ehdr header;
	Elf64_Phdr parts[HEADERS_MAX];
	const Elf64_Phdr *dynamic = NULL;
	bool loaded = false;

	if (!image_read(image, base, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(parts[0]) || !header.e_phnum ||
	    header.e_phnum > HEADERS_MAX ||
	    !image_read(image, base + header.e_phoff, parts, header.e_phnum * sizeof(parts[0])))
		return false;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		if (parts[i].p_type == PT_LOAD && !loaded) {
			tables->bias = base - parts[i].p_vaddr;
			loaded = true;
		}
		if (parts[i].p_type == PT_DYNAMIC)
			dynamic = &parts[i];
	}
	return loaded && dynamic && dynamic_read(tables, image, dynamic);
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

/* The address of a symbol if it is a function with this name; 0: it is not. */
static uint64_t symbol_match(const struct image *image, const struct tables *tables,
			     uint32_t number, const char *name)
{
	size_t length = strlen(name) + 1;
	char text[NAME_BYTES];
	Elf64_Sym symbol;

	if (length > sizeof(text) ||
	    !image_read(image, tables->symbols + (uint64_t)number * sizeof(symbol), &symbol,
			sizeof(symbol)) ||
	    ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
	    !image_read(image, tables->strings + symbol.st_name, text, length) ||
	    memcmp(text, name, length))
		return 0;
	return tables->bias + symbol.st_value;
}

uint64_t inject_symbol(const struct image *image, uint64_t base, const char *name)
{
	struct tables tables = {0};
	struct {
		uint32_t buckets, first, bloom, shift;
	} head;
	uint32_t hash = hash_of(name), number, link = 0;
	uint64_t buckets, found = 0;

	if (!tables_find(&tables, image, base) ||
	    !image_read(image, tables.hash, &head, sizeof(head)) || !head.buckets)
		return 0;
	buckets = tables.hash + sizeof(head) + (uint64_t)head.bloom * 8;
	if (!image_read(image, buckets + (uint64_t)(hash % head.buckets) * 4, &number,
			sizeof(number)) ||
	    number < head.first)
		return 0;
	for (unsigned i = 0; i < CHAIN_MAX && !(link & 1) && !found; i++, number++) {
		if (!image_read(image,
				buckets + (uint64_t)head.buckets * 4 +
					(uint64_t)(number - head.first) * 4,
				&link, sizeof(link)))
			return 0;
		if ((link | 1) == (hash | 1))
			found = symbol_match(image, &tables, number, name);
	}
	return found;
}
