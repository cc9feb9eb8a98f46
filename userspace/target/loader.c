// SPDX-License-Identifier: Apache-2.0
#include "target/loader.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define DYNAMIC_MAX 1024 /* entries */
#define TEXT_MAX 4096
#define FOLDERS_MAX 256   /* of a list */
#define ENTRIES_MAX 32768 /* of a cache; a workstation's has 5,000 */

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool is_ours(const Elf64_Ehdr *header)
{
	const union {
		uint16_t word;
		uint8_t first;
	} order = {1};

	return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == (order.first ? ELFDATA2LSB : ELFDATA2MSB) &&
	       header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum <= SEGMENTS_MAX;
}

/* Where an address lies in the file; UINT64_MAX: nowhere. */
static uint64_t offset_of(const Elf64_Phdr *segments, unsigned count, uint64_t address)
{
	for (unsigned i = 0; i < count; i++)
		if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr &&
		    address - segments[i].p_vaddr < segments[i].p_filesz)
			return segments[i].p_offset + (address - segments[i].p_vaddr);
	return UINT64_MAX;
}

static char *text_read(int fd, uint64_t offset)
{
	char text[TEXT_MAX];
	ssize_t got = offset <= INT64_MAX ? pread(fd, text, sizeof(text), (off_t)offset) : -1;

	return got > 0 && *text && memchr(text, '\0', (size_t)got) ? strdup(text) : NULL;
}

struct dynamic {
	Elf64_Dyn entries[DYNAMIC_MAX];
	size_t count;
	uint64_t strings; /* where they are in the file */
};

static bool dynamic_read(struct dynamic *dynamic, int fd, const Elf64_Phdr *segments,
			 unsigned count)
{
	const Elf64_Phdr *segment = NULL;
	size_t len;

	for (unsigned i = 0; !segment && i < count; i++)
		if (segments[i].p_type == PT_DYNAMIC)
			segment = &segments[i];
	if (!segment)
		return false;
	len = segment->p_filesz / sizeof(dynamic->entries[0]);
	if (len > DYNAMIC_MAX ||
	    !read_at(fd, dynamic->entries, len * sizeof(dynamic->entries[0]), segment->p_offset))
		return false;
	dynamic->strings = UINT64_MAX;
	for (dynamic->count = 0; dynamic->count < len; dynamic->count++) {
		const Elf64_Dyn *entry = &dynamic->entries[dynamic->count];

		if (entry->d_tag == DT_NULL)
			break;
		if (entry->d_tag == DT_STRTAB)
			dynamic->strings = offset_of(segments, count, entry->d_un.d_ptr);
	}
	return dynamic->strings != UINT64_MAX;
}

bool loader_file_read(struct loader_file *file, int fd)
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	struct dynamic dynamic;
	Elf64_Ehdr header;

	*file = (struct loader_file){0};
	if (!read_at(fd, &header, sizeof(header), 0) || !is_ours(&header) ||
	    !read_at(fd, segments, header.e_phnum * sizeof(segments[0]), header.e_phoff))
		return false;
	file->machine = header.e_machine;
	if (!dynamic_read(&dynamic, fd, segments, header.e_phnum))
		return true;
	for (size_t i = 0; i < dynamic.count; i++) {
		int64_t tag = dynamic.entries[i].d_tag;
		uint64_t at = dynamic.entries[i].d_un.d_val;
		char *text;

		if ((tag != DT_RPATH && tag != DT_RUNPATH && tag != DT_NEEDED) ||
		    at > UINT64_MAX - dynamic.strings)
			continue;
		text = text_read(fd, dynamic.strings + at);
		if (text && tag == DT_RPATH && !file->rpath)
			file->rpath = text;
		else if (text && tag == DT_RUNPATH && !file->runpath)
			file->runpath = text;
		else if (!text || tag != DT_NEEDED || !vec_push(&file->needed, text))
			free(text);
	}
	return true;
}

void loader_file_free(struct loader_file *file)
{
	for (size_t i = 0; i < file->needed.len; i++)
		free(file->needed.data[i]);
	vec_free(&file->needed);
	free(file->rpath);
	free(file->runpath);
}

char *loader_runpath(int fd)
{
	struct loader_file file;
	char **path, *taken;

	if (!loader_file_read(&file, fd))
		return NULL;
	path = file.runpath ? &file.runpath : &file.rpath;
	taken = *path;
	*path = NULL;
	loader_file_free(&file);
	return taken;
}

const char loader_usual[] = "/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib"
#ifdef __x86_64__
			    ":/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu";
#else
			    ":/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu";
#endif

/* One of a list's folders; false: it is nowhere. An empty one is where the process works. */
static bool folder_make(char path[PATH_MAX], const char *text, size_t len,
			const struct loader_base *base)
{
	static const char *const tokens[] = {"$ORIGIN", "${ORIGIN}"};
	const char *slash = strrchr(base->origin, '/'), *before = base->folder, *between = "/";
	int before_len = (int)strlen(before), written;

	if (len && text[0] == '/') {
		before_len = 0;
		between = "";
	}
	for (unsigned i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		size_t token = strlen(tokens[i]);

		if (!slash || len < token || memcmp(text, tokens[i], token) != 0)
			continue;
		before = base->origin;
		before_len = (int)(slash - before);
		text += token;
		len -= token;
		between = before_len || len ? "" : "/";
		break;
	}
	written =
		snprintf(path, PATH_MAX, "%.*s%s%.*s", before_len, before, between, (int)len, text);
	return written > 0 && written < PATH_MAX && path[0] == '/' && !strchr(path, '$');
}

bool loader_folders_each(const char *list, const struct loader_base *base, loader_folder_fn each,
			 void *arg)
{
	for (unsigned i = 0; *list && i < FOLDERS_MAX; i++) {
		size_t len = strcspn(list, ":;");
		char path[PATH_MAX];

		if (folder_make(path, list, len, base) && each(path, arg))
			return true;
		list += len + (list[len] != '\0');
	}
	return false;
}

#define CACHE_MAGIC "glibc-ld.so.cache1.1"

struct cache_header {
	char magic[sizeof(CACHE_MAGIC) - 1];
	uint32_t count;
	uint32_t string_bytes;
	uint8_t flags, padding[3];
	uint32_t extension, unused[3];
};

struct cache_entry {
	int32_t flags;
	uint32_t name, path; /* offsets from the header on */
	uint32_t os;
	uint64_t hardware;
};

void loader_cache_each(const char *cache, size_t bytes, void (*each)(const char *path, void *arg),
		       void *arg)
{
	const char *start = memmem(cache, bytes, CACHE_MAGIC, sizeof(CACHE_MAGIC) - 1);
	size_t size = start ? bytes - (size_t)(start - cache) : 0;
	struct cache_header header;

	if (size < sizeof(header))
		return;
	memcpy(&header, start, sizeof(header));
	for (uint32_t i = 0; i < header.count && i < ENTRIES_MAX; i++) {
		size_t at = sizeof(header) + i * sizeof(struct cache_entry);
		struct cache_entry entry;

		if (at + sizeof(entry) > size)
			return;
		memcpy(&entry, start + at, sizeof(entry));
		/* Anyone may have written it, also so that it would take long to read. */
		if (entry.path < size && start[entry.path] == '/' &&
		    memchr(start + entry.path, '\0',
			   size - entry.path < PATH_MAX ? size - entry.path : PATH_MAX))
			each(start + entry.path, arg);
	}
}
