// SPDX-License-Identifier: Apache-2.0
#include "target/elf/buildid.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>

#include "target/elf/elflimits.h"

bool build_id_set(struct build_id *id, const void *bytes, size_t size)
{
	*id = (struct build_id){0};
	if (!size || size > BUILD_ID_MAX)
		return false;
	memcpy(id->bytes, bytes, size);
	id->size = (uint8_t)size;
	return true;
}

#define NOTES_MAX (1u << 20) /* limit of a section; it holds few notes besides the build-id */

/* Notes are read in this machine's byte order, regardless of the file's. */
static bool id_in_chunk(struct build_id *id, Elf *elf, uint64_t offset, uint64_t size)
{
	Elf_Data *data;

	if (offset > INT64_MAX || size > NOTES_MAX)
		return false;
	data = elf_getdata_rawchunk(elf, (int64_t)offset, (size_t)size, ELF_T_NHDR);
	return data && data->d_buf && build_id_from_notes(id, data->d_buf, data->d_size);
}

static bool id_in_segments(struct build_id *id, Elf *elf)
{
	GElf_Phdr segment;
	size_t count;

	if (elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &segment); i++)
		if (segment.p_type == PT_NOTE &&
		    id_in_chunk(id, elf, segment.p_offset, segment.p_filesz))
			return true;
	return false;
}

/* Searches sections, since a debug file has the program's segments, which need not match its
 * contents. */
static bool id_in_sections(struct build_id *id, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE &&
		    id_in_chunk(id, elf, header.sh_offset, header.sh_size))
			return true;
	return false;
}

bool build_id_of_elf(struct build_id *id, Elf *elf)
{
	*id = (struct build_id){0};
	return id_in_sections(id, elf) || id_in_segments(id, elf);
}

int build_id_read(int fd, struct build_id *id)
{
	int result = -ENOEXEC;
	Elf *elf;

	*id = (struct build_id){0};
	elf = elf_limited_begin(fd);
	if (elf)
		result = build_id_of_elf(id, elf) ? 0 : -ENOENT;
	elf_end(elf);
	return result;
}

/* Names and descriptors of notes are padded to words. */
static size_t note_padded(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

bool build_id_from_notes(struct build_id *id, const void *notes, size_t size)
{
	const unsigned char *at = notes;
	Elf64_Nhdr note; /* same layout as Elf32_Nhdr */

	*id = (struct build_id){0};
	while (size >= sizeof(note)) {
		size_t name, desc;

		memcpy(&note, at, sizeof(note));
		at += sizeof(note);
		size -= sizeof(note);
		name = note_padded(note.n_namesz);
		desc = note_padded(note.n_descsz);
		/* The last descriptor may lack its padding. */
		if (name > size || note.n_descsz > size - name)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			return build_id_set(id, at + name, note.n_descsz);
		if (desc > size - name)
			return false;
		at += name + desc;
		size -= name + desc;
	}
	return false;
}

char *build_id_text(char text[BUILD_ID_TEXT], const struct build_id *id)
{
	static const char digits[] = "0123456789abcdef";
	char *at = text;

	for (unsigned i = 0; i < id->size && i < BUILD_ID_MAX; i++) {
		*at++ = digits[id->bytes[i] >> 4];
		*at++ = digits[id->bytes[i] & 15];
	}
	*at = '\0';
	return text;
}

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

bool build_id_parse(struct build_id *id, const char *text)
{
	uint8_t bytes[BUILD_ID_MAX];
	size_t digits = strlen(text);

	*id = (struct build_id){0};
	if (digits % 2 || digits / 2 > BUILD_ID_MAX)
		return false;
	for (size_t i = 0; i < digits / 2; i++) {
		int high = digit_value(text[2 * i]), low = digit_value(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return build_id_set(id, bytes, digits / 2);
}
