// SPDX-License-Identifier: Apache-2.0
#include "target/elf/elffile.h"

#include <errno.h>
#include <fcntl.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "target/elf/elflimits.h"
#include "target/worker/filecopy.h"
#include "util/input.h"

static int elf_file_check(struct elf_file *file, bool common)
{
	GElf_Ehdr header;

	file->elf = elf_limited_begin(file->fd);
	if (!file->elf || !gelf_getehdr(file->elf, &header) ||
	    (header.e_type != ET_EXEC && header.e_type != ET_DYN &&
	     !(common && header.e_type == ET_REL)))
		return -ENOEXEC;
	build_id_of_elf(&file->build_id, file->elf);
	return 0;
}

static int open_fd(struct elf_file *file, int fd, const char *path, bool common)
{
	int result;

	*file = (struct elf_file){.fd = fd, .path = strdup(path)};
	if (!file->path)
		result = -ENOMEM;
	else if (fstat(fd, &file->at_first) || !S_ISREG(file->at_first.st_mode))
		result = -ENOEXEC;
	else
		result = elf_file_check(file, common);
	if (result)
		elf_file_close(file);
	return result;
}

int elf_file_open_fd(struct elf_file *file, int fd, const char *path)
{
	return open_fd(file, fd, path, false);
}

static int open_path(struct elf_file *file, const char *path, bool common)
{
	/* Paths are untrusted: they may come from a capture. */
	int fd = input_open(path);

	*file = (struct elf_file)ELF_FILE_INIT;
	if (fd == -EISDIR || fd == -EINVAL)
		return -ENOEXEC;
	return fd < 0 ? fd : open_fd(file, fd, path, common);
}

int elf_file_open(struct elf_file *file, const char *path)
{
	return open_path(file, path, false);
}

int elf_file_open_common(struct elf_file *file, const char *path)
{
	return open_path(file, path, true);
}

void elf_file_close(struct elf_file *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	*file = (struct elf_file)ELF_FILE_INIT;
}

bool elf_file_changed(const struct elf_file *file)
{
	return file->fd >= 0 && !file_unchanged(file->fd, &file->at_first);
}

Elf_Scn *elf_section_named(Elf *elf, const char *name, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *text;

		if (!gelf_getshdr(section, header))
			continue;
		text = elf_strptr(elf, names, header->sh_name);
		if (text && !strcmp(text, name))
			return section;
	}
	return NULL;
}

bool elf_file_has_section(const struct elf_file *file, const char *name)
{
	GElf_Shdr header;

	return elf_section_named(file->elf, name, &header) && header.sh_type != SHT_NOBITS &&
	       header.sh_size;
}

/* Begins the information on a program's build, in its writable data:
 * https://cs.opensource.google/go/go/+/master:src/debug/buildinfo/buildinfo.go */
static const char go_magic[] = "\xff Go buildinf:";
#define GO_ALIGN 16
/* Limit of the bytes to search in a file. Go's linker puts them near the start of its data. */
#define GO_SEARCH_MAX (4u << 20)

/* Searches a segment for the magic, and subtracts what was read from *left. */
static bool has_go_magic(const struct elf_file *file, const GElf_Phdr *segment, uint64_t *left)
{
	char buffer[1 << 12];
	uint64_t size = segment->p_filesz < *left ? segment->p_filesz : *left;
	/* It is aligned in memory, where the segment need not begin so. */
	uint64_t at = -segment->p_vaddr % GO_ALIGN;
	ssize_t got;

	if (segment->p_offset > INT64_MAX - GO_SEARCH_MAX)
		return false;
	for (; at < size; at += sizeof(buffer)) {
		got = pread(file->fd, buffer, sizeof(buffer), (off_t)(segment->p_offset + at));
		for (ssize_t i = 0; i + (ssize_t)sizeof(go_magic) - 1 <= got; i += GO_ALIGN)
			if (!memcmp(buffer + i, go_magic, sizeof(go_magic) - 1))
				return true;
		if (got < (ssize_t)sizeof(buffer))
			break;
	}
	*left -= size;
	return false;
}

bool elf_file_is_go(const struct elf_file *file)
{
	uint64_t left = GO_SEARCH_MAX;
	size_t sections, segments;
	GElf_Phdr segment;

	if (elf_file_has_section(file, ".gopclntab") || elf_file_has_section(file, ".go.buildinfo"))
		return true;
	if (elf_getshdrnum(file->elf, &sections) || sections ||
	    elf_getphdrnum(file->elf, &segments))
		return false;
	for (size_t i = 0; i < segments && left && gelf_getphdr(file->elf, (int)i, &segment); i++)
		if (segment.p_type == PT_LOAD && segment.p_flags & PF_W &&
		    has_go_magic(file, &segment, &left))
			return true;
	return false;
}

bool elf_file_dynamic_symbol(const struct elf_file *file, const char *name, GElf_Sym *symbol)
{
	size_t size = gelf_fsize(file->elf, ELF_T_SYM, 1, EV_CURRENT);
	Elf_Scn *section = NULL;

	while (size && (section = elf_nextscn(file->elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(section, NULL);
		for (size_t i = 0; data && i < data->d_size / size && i <= INT_MAX; i++) {
			const char *text;

			if (!gelf_getsym(data, (int)i, symbol))
				continue;
			text = elf_strptr(file->elf, header.sh_link, symbol->st_name);
			if (text && !strcmp(text, name))
				return true;
		}
	}
	return false;
}

bool elf_file_has_debug(const struct elf_file *file)
{
	/* GNU's older compression format renamed the section. */
	return elf_file_has_section(file, ".debug_info") ||
	       elf_file_has_section(file, ".zdebug_info");
}

void elf_file_segments(const struct elf_file *file, struct elf_segments *segments)
{
	size_t count;

	segments->count = 0;
	if (elf_getphdrnum(file->elf, &count))
		return;
	for (size_t i = 0; i < count && segments->count < ELF_SEGMENTS_MAX; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(file->elf, (int)i, &segment))
			return;
		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || !segment.p_filesz)
			continue;
		segments->list[segments->count++] = (struct elf_segment){
			.offset = segment.p_offset,
			.address = segment.p_vaddr,
			.size = segment.p_filesz,
		};
	}
}

bool elf_segments_address(const struct elf_segments *segments, uint64_t offset, uint64_t *address)
{
	for (uint32_t i = 0; i < segments->count && i < ELF_SEGMENTS_MAX; i++) {
		const struct elf_segment *segment = &segments->list[i];

		if (offset < segment->offset || offset - segment->offset >= segment->size)
			continue;
		*address = segment->address + (offset - segment->offset);
		return true;
	}
	return false;
}

/* Verifies the checksum of a .gnu_debuglink: CRC-32 of the whole debug file. */
static bool checksum_is(const struct elf_file *file, uint32_t want)
{
	unsigned char buffer[1 << 16];
	uLong sum = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t got;

	/* A sparse file may be huge without taking space on disk, so bound the time to read it. */
	if ((uint64_t)file->at_first.st_size > ELF_CHECKSUM_MAX)
		return false;
	while (at < file->at_first.st_size &&
	       (got = pread(file->fd, buffer, sizeof(buffer), at)) > 0) {
		sum = crc32(sum, buffer, (uInt)got);
		at += got;
	}
	return at == file->at_first.st_size && sum == want;
}

struct debug_search {
	struct elf_file *debug;
	const struct build_id *id;
	bool linked; /* found by name; `crc` verifies it if there is no build-id */
	GElf_Word crc;
};

static bool try_debug(const struct debug_search *search, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool try_debug(const struct debug_search *search, const char *format, ...)
{
	struct elf_file *file = search->debug;
	char path[PATH_MAX];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(path) || elf_file_open(file, path))
		return false;
	if (search->id->size && file->build_id.size
		    ? build_id_equal(&file->build_id, search->id)
		    : search->linked && checksum_is(file, search->crc))
		return true;
	elf_file_close(file);
	return false;
}

static bool find_by_id(const struct debug_search *search, const char *debug_dir)
{
	char text[BUILD_ID_TEXT];

	if (search->id->size < 2)
		return false;
	build_id_text(text, search->id);
	return try_debug(search, "%s/.build-id/%.2s/%s.debug", debug_dir, text, text + 2);
}

static bool find_by_link(struct debug_search *search, const struct elf_file *program,
			 const char *debug_dir)
{
	const char *name = dwelf_elf_gnu_debuglink(program->elf, &search->crc);
	const char *slash = strrchr(program->path, '/');
	int dir_len = slash ? (int)(slash - program->path) : 1;
	const char *dir = slash ? program->path : ".";

	/* Only a plain file name is accepted, so that the file cannot redirect us to another
	 * directory. */
	if (!name || !name[0] || strchr(name, '/'))
		return false;
	search->linked = true;
	return try_debug(search, "%.*s/%s", dir_len, dir, name) ||
	       try_debug(search, "%.*s/.debug/%s", dir_len, dir, name) ||
	       (dir[0] == '/' && try_debug(search, "%s%.*s/%s", debug_dir, dir_len, dir, name));
}

int elf_file_find_debug(struct elf_file *debug, const struct elf_file *program,
			const struct build_id *id, const char *debug_dir)
{
	struct debug_search search = {.debug = debug, .id = id};

	*debug = (struct elf_file)ELF_FILE_INIT;
	if (find_by_id(&search, debug_dir) ||
	    (program->elf && find_by_link(&search, program, debug_dir)))
		return 0;
	return -ENOENT;
}
