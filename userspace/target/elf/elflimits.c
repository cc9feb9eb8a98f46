// SPDX-License-Identifier: Apache-2.0
#include "target/elf/elflimits.h"

#include <elf.h>
#include <gelf.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* libelf allocates all section headers at once, so their number is checked first. */
static bool sections_limited(int fd)
{
	Elf64_Ehdr header;
	Elf64_Shdr first;

	/* For other classes and byte orders we check e_shnum only. */
	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shnum || !header.e_shoff)
		return true;
	return header.e_shoff <= INT64_MAX &&
	       pread(fd, &first, sizeof(first), (off_t)header.e_shoff) == sizeof(first) &&
	       first.sh_size <= ELF_SECTIONS_MAX;
}

static bool is_table(const GElf_Shdr *header)
{
	switch (header->sh_type) {
	case SHT_SYMTAB:
	case SHT_DYNSYM:
	case SHT_STRTAB:
	case SHT_DYNAMIC:
	case SHT_NOTE:
		return true;
	default:
		return false;
	}
}

static bool tables_limited(Elf *elf)
{
	uint64_t left = ELF_TABLES_MAX;
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || !is_table(&header))
			continue;
		if (header.sh_size > left)
			return false;
		left -= header.sh_size;
	}
	return true;
}

Elf *elf_limited_begin(int fd)
{
	Elf *elf;

	if (elf_version(EV_CURRENT) == EV_NONE || !sections_limited(fd))
		return NULL;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && tables_limited(elf))
		return elf;
	elf_end(elf);
	return NULL;
}

/* GNU's older compression format: "ZLIB", then the size as eight bytes, big endian. */
static uint64_t old_size(int fd, const GElf_Shdr *header)
{
	unsigned char start[12];
	uint64_t size = 0;

	if (header->sh_offset > INT64_MAX ||
	    pread(fd, start, sizeof(start), (off_t)header->sh_offset) != sizeof(start) ||
	    memcmp(start, "ZLIB", 4) != 0)
		return header->sh_size;
	for (unsigned i = 4; i < sizeof(start); i++)
		size = size << 8 | start[i];
	return size;
}

bool elf_debug_limited(Elf *elf, int fd)
{
	uint64_t left = ELF_DEBUG_MAX;
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		GElf_Chdr compressed;
		const char *name;
		uint64_t size;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || !strstr(name, "debug_"))
			continue;
		size = header.sh_size;
		if (size > left) /* check before libelf reads it */
			return false;
		if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &compressed))
			size = compressed.ch_size;
		else if (!strncmp(name, ".z", 2))
			size = old_size(fd, &header);
		if (size > left || size / ELF_DEBUG_RATIO > header.sh_size)
			return false;
		left -= size;
	}
	return true;
}
