// SPDX-License-Identifier: Apache-2.0
#include "target/loader/loader.h"

#include <ctype.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define DYNAMIC_MAX 1024 /* entries */
#define TEXT_MAX 4096
#define FOLDERS_MAX 256   /* of one list */
#define ENTRIES_MAX 32768 /* of one cache; a workstation's has 5,000 */

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

static char *text_read(int fd, uint64_t offset)
{
	char text[TEXT_MAX];
	ssize_t got = offset <= INT64_MAX ? pread(fd, text, sizeof(text), (off_t)offset) : -1;

	return got > 0 && *text && memchr(text, '\0', (size_t)got) ? strdup(text) : NULL;
}

static char *interpreter_read(int fd, const Elf64_Phdr *segments, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (segments[i].p_type == PT_INTERP)
			return text_read(fd, segments[i].p_offset);
	return NULL;
}

/* File offset of an address. UINT64_MAX: it is not in the file. */
static uint64_t offset_of(const Elf64_Phdr *segments, unsigned count, uint64_t address)
{
	for (unsigned i = 0; i < count; i++)
		if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr &&
		    address - segments[i].p_vaddr < segments[i].p_filesz)
			return segments[i].p_offset + (address - segments[i].p_vaddr);
	return UINT64_MAX;
}

struct dynamic {
	Elf64_Dyn entries[DYNAMIC_MAX];
	size_t count;
	uint64_t strings; /* file offset of the string table */
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

static void entry_take(struct loader_file *file, int64_t tag, char *text)
{
	char **const places[] = {&file->rpath, &file->runpath, &file->soname};
	static const int64_t tags[] = {DT_RPATH, DT_RUNPATH, DT_SONAME};

	for (unsigned i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (tag == tags[i] && !*places[i]) {
			*places[i] = text;
			return;
		}
	}
	/* The loader loads a filtee (DT_FILTER, DT_AUXILIARY) like a needed library. */
	if (tag == DT_RPATH || tag == DT_RUNPATH || tag == DT_SONAME ||
	    !vec_push(&file->needed, text))
		free(text);
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
	file->interpreter = interpreter_read(fd, segments, header.e_phnum);
	if (!dynamic_read(&dynamic, fd, segments, header.e_phnum))
		return true;
	for (size_t i = 0; i < dynamic.count; i++) {
		int64_t tag = dynamic.entries[i].d_tag;
		uint64_t at = dynamic.entries[i].d_un.d_val;
		char *text;

		if ((tag != DT_RPATH && tag != DT_RUNPATH && tag != DT_SONAME && tag != DT_NEEDED &&
		     tag != DT_FILTER && tag != DT_AUXILIARY) ||
		    at > UINT64_MAX - dynamic.strings)
			continue;
		text = text_read(fd, dynamic.strings + at);
		if (text)
			entry_take(file, tag, text);
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
	free(file->soname);
	free(file->interpreter);
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

/* Length of "$NAME" or "${NAME}" at a "$". 0: it is another name. */
static size_t token_len(const char *text, size_t len, const char *name)
{
	bool braces = len > 1 && text[1] == '{';
	size_t whole = 1 + braces + strlen(name);

	if (len < whole + braces || memcmp(text + 1 + braces, name, strlen(name)) != 0)
		return 0;
	if (braces)
		return text[whole] == '}' ? whole + 1 : 0;
	return len > whole && (isalnum((unsigned char)text[whole]) || text[whole] == '_') ? 0
											  : whole;
}

/* Sets the replacement for the text up to the next "$", or for the token at a "$". Returns how many
 * bytes it replaces. 0: the token is unknown. */
static size_t piece_value(const char *text, size_t len, const struct loader_base *base,
			  const char **value, int *value_len)
{
	const char *next = memchr(text, '$', len), *slash = strrchr(base->origin, '/');
	size_t used = next ? (size_t)(next - text) : len;

	if (used) {
		*value = text;
		*value_len = (int)used;
	} else if (slash && (used = token_len(text, len, "ORIGIN"))) {
		*value = base->origin;
		*value_len =
			(int)(slash - base->origin); /* 0 at the root: a "/" follows, if anything */
	} else if (base->lib && (used = token_len(text, len, "LIB"))) {
		*value = base->lib;
		*value_len = (int)strlen(base->lib);
	}
	return used;
}

bool loader_expand(char path[PATH_MAX], const char *text, size_t len,
		   const struct loader_base *base)
{
	size_t at = 0;

	if (!len || (text[0] != '/' && text[0] != '$'))
		at = (size_t)snprintf(path, PATH_MAX, "%s/", base->folder);
	while (len && at < PATH_MAX) {
		const char *value;
		int value_len;
		size_t used = piece_value(text, len, base, &value, &value_len);

		if (!used)
			return false;
		at += (size_t)snprintf(path + at, PATH_MAX - at, "%.*s", value_len, value);
		text += used;
		len -= used;
	}
	if (!at)
		at = (size_t)snprintf(path, PATH_MAX, "/");
	return at < PATH_MAX && path[0] == '/' && !strchr(path, '$');
}

bool loader_folders_each(const char *list, const struct loader_base *base, loader_folder_fn each,
			 void *arg)
{
	if (!*list)
		return false;
	for (unsigned i = 0; i < FOLDERS_MAX; i++) {
		size_t len = strcspn(list, ":;");
		char path[PATH_MAX];

		if (loader_expand(path, list, len, base) && each(path, arg))
			return true;
		if (!list[len])
			break;
		list += len + 1;
	}
	return false;
}

/* ---- processor variants ---- */

#ifdef __x86_64__
static bool has_bits(unsigned word, unsigned bits)
{
	return (word & bits) == bits;
}

/* The levels of the x86-64 psABI. The builtin also checks that the kernel saves the registers. */
static unsigned processor_level(void)
{
	unsigned a, b, c, d, more, features;

	__builtin_cpu_init();
	if (!__get_cpuid(1, &a, &b, &features, &d) || !__get_cpuid(0x80000001, &a, &b, &more, &d) ||
	    !has_bits(features, bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 |
					bit_POPCNT) ||
	    !has_bits(more, bit_LAHF_LM))
		return 1;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !__builtin_cpu_supports("avx2") ||
	    !has_bits(features, bit_FMA | bit_MOVBE | bit_F16C | bit_OSXSAVE) ||
	    !has_bits(b, bit_BMI | bit_BMI2) || !has_bits(more, bit_LZCNT))
		return 2;
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
			       __builtin_cpu_supports("avx512cd") &&
			       __builtin_cpu_supports("avx512dq") &&
			       __builtin_cpu_supports("avx512vl")
		       ? 4
		       : 3;
}

const char *const *loader_variants(void)
{
	static const char *const names[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", NULL};

	return names + 4 - processor_level();
}
#else
/* glibc defines no variants for the other processors that waffle supports. */
const char *const *loader_variants(void)
{
	static const char *const none[] = {NULL};

	return none;
}
#endif

/* ---- ld.so.cache ---- */

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
	uint32_t name, path; /* offsets from the header */
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
		/* The file is untrusted, and crafted offsets could make reading it take long. */
		if (entry.path < size && start[entry.path] == '/' &&
		    memchr(start + entry.path, '\0',
			   size - entry.path < PATH_MAX ? size - entry.path : PATH_MAX))
			each(start + entry.path, arg);
	}
}
