// SPDX-License-Identifier: Apache-2.0
/* Reads the notes of USDT probes. */
#include <elf.h>
#include <gelf.h>
#include <string.h>

#include "probe/find/usdt_internal.h"

#define NOTE_SECTION ".note.stapsdt"
#define BASE_SECTION ".stapsdt.base"
#define NOTE_OWNER "stapsdt"
#define NOTE_TYPE 3
#define NOTE_ADDRESSES 3 /* of the nop, of the base when linked, of the semaphore */

struct notes {
	Elf *elf;
	Elf_Data *data;
	uint64_t base; /* current address of .stapsdt.base; 0: the section is missing */
	uint32_t *bad;
	int (*each)(const struct usdt_note *note, void *arg);
	void *arg;
};

static uint64_t read_word(const unsigned char *at, bool big)
{
	uint64_t word = 0;

	for (unsigned i = 0; i < 8; i++)
		word = word << 8 | at[big ? i : 7 - i];
	return word;
}

/* The next NUL-terminated text, or NULL. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at;
	const char *nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

	if (nul)
		*at = nul + 1;
	return nul ? text : NULL;
}

static int note_tell(const struct notes *notes, const char *desc, size_t size, bool big)
{
	const unsigned char *bytes = (const unsigned char *)desc;
	const char *at = desc + 8 * NOTE_ADDRESSES, *end = desc + size;
	struct usdt_note note;
	uint64_t base;

	if (size < 8 * NOTE_ADDRESSES)
		return (*notes->bad)++, 0;
	note.address = read_word(bytes, big);
	base = read_word(bytes + 8, big);
	note.semaphore = read_word(bytes + 16, big);
	note.provider = next_text(&at, end);
	note.name = note.provider ? next_text(&at, end) : NULL;
	note.arguments = note.name ? next_text(&at, end) : NULL;
	if (!note.arguments || !note.provider[0] || !note.name[0])
		return (*notes->bad)++, 0;
	/* prelink(8) moves code without updating these addresses. */
	if (base && notes->base) {
		note.address += notes->base - base;
		if (note.semaphore)
			note.semaphore += notes->base - base;
	}
	return notes->each(&note, notes->arg);
}

static int section_tell(const struct notes *notes, bool big)
{
	size_t at = 0, next, name, desc;
	GElf_Nhdr header;
	int result = 0;

	while (!result && at < notes->data->d_size &&
	       (next = gelf_getnote(notes->data, at, &header, &name, &desc)) > 0) {
		const char *bytes = notes->data->d_buf;

		if (header.n_type == NOTE_TYPE && header.n_namesz == sizeof(NOTE_OWNER) &&
		    !memcmp(bytes + name, NOTE_OWNER, sizeof(NOTE_OWNER)))
			result = note_tell(notes, bytes + desc, header.n_descsz, big);
		at = next;
	}
	if (!result && at < notes->data->d_size)
		(*notes->bad)++;
	return result;
}

int usdt_each(Elf *elf, int (*each)(const struct usdt_note *note, void *arg), void *arg,
	      uint32_t *bad)
{
	struct notes notes = {.elf = elf, .bad = bad, .each = each, .arg = arg};
	Elf_Scn *section = NULL;
	GElf_Ehdr ehdr;
	size_t names;
	int result = 0;

	if (!gelf_getehdr(elf, &ehdr) || elf_getshdrstrndx(elf, &names))
		return 0;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (gelf_getshdr(section, &header) &&
		    (name = elf_strptr(elf, names, header.sh_name)) && !strcmp(name, BASE_SECTION))
			notes.base = header.sh_addr;
	}
	while (!result && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, NOTE_SECTION) != 0)
			continue;
		notes.data = elf_getdata(section, NULL);
		if (notes.data && notes.data->d_buf)
			result = section_tell(&notes, ehdr.e_ident[EI_DATA] == ELFDATA2MSB);
	}
	return result;
}
