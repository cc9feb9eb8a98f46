// SPDX-License-Identifier: Apache-2.0
#include "target/loader.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define DYNAMIC_MAX 512 /* entries */
#define RUNPATH_MAX 4096

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
	char text[RUNPATH_MAX];
	ssize_t got = offset <= INT64_MAX ? pread(fd, text, sizeof(text), (off_t)offset) : -1;

	return got > 0 && *text && memchr(text, '\0', (size_t)got) ? strdup(text) : NULL;
}

static char *runpath_read(int fd, const Elf64_Phdr *segments, unsigned count,
			  const Elf64_Phdr *dynamic)
{
	Elf64_Dyn entries[DYNAMIC_MAX];
	uint64_t strings = UINT64_MAX, runpath = UINT64_MAX;
	size_t len = dynamic->p_filesz / sizeof(entries[0]);

	if (len > DYNAMIC_MAX || !read_at(fd, entries, len * sizeof(entries[0]), dynamic->p_offset))
		return NULL;
	for (size_t i = 0; i < len && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_STRTAB)
			strings = offset_of(segments, count, entries[i].d_un.d_ptr);
		else if (entries[i].d_tag == DT_RUNPATH ||
			 (entries[i].d_tag == DT_RPATH && runpath == UINT64_MAX))
			runpath = entries[i].d_un.d_val;
	}
	if (strings == UINT64_MAX || runpath == UINT64_MAX || runpath > UINT64_MAX - strings)
		return NULL;
	return text_read(fd, strings + runpath);
}

char *loader_runpath(int fd)
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	Elf64_Ehdr header;

	if (!read_at(fd, &header, sizeof(header), 0) || !is_ours(&header) ||
	    !read_at(fd, segments, header.e_phnum * sizeof(segments[0]), header.e_phoff))
		return NULL;
	for (unsigned i = 0; i < header.e_phnum; i++)
		if (segments[i].p_type == PT_DYNAMIC)
			return runpath_read(fd, segments, header.e_phnum, &segments[i]);
	return NULL;
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
	for (uint32_t i = 0; i < header.count; i++) {
		size_t at = sizeof(header) + i * sizeof(struct cache_entry);
		struct cache_entry entry;

		if (at + sizeof(entry) > size)
			return;
		memcpy(&entry, start + at, sizeof(entry));
		if (entry.path < size && start[entry.path] == '/' &&
		    memchr(start + entry.path, '\0', size - entry.path))
			each(start + entry.path, arg);
	}
}
