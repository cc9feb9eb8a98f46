// SPDX-License-Identifier: Apache-2.0
#include "usdt/frame/code.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "usdt/ring/ticks.h"

/* ---- what was found before ---- */

#define KNOWN 256
#define KEEP_S 1

/* The check covers all words. Threads and signal handlers may write one entry at once, which then
 * is as good as none. */
static struct code_known {
	uint64_t words[(sizeof(struct code_name) + 16) / 8]; /* address, time, name */
	uint64_t check;
} known[KNOWN];
#define WORDS (sizeof(known[0].words) / 8)

static uint64_t check_of(const uint64_t *words)
{
	uint64_t check = 1;

	for (size_t i = 0; i < WORDS; i++)
		check = (check ^ words[i]) * 0x9e3779b97f4a7c15ull;
	return check;
}

static struct code_known *known_at(uintptr_t pc)
{
	return &known[(pc * 0x9e3779b97f4a7c15ull) >> 56];
}

static uint64_t now_s(void)
{
	return ticks_ns() / 1000000000u;
}

static bool known_get(uintptr_t pc, struct code_name *name)
{
	struct code_known *at = known_at(pc);
	uint64_t words[WORDS];

	for (size_t i = 0; i < WORDS; i++)
		words[i] = __atomic_load_n(&at->words[i], __ATOMIC_RELAXED);
	if (words[0] != pc || check_of(words) != __atomic_load_n(&at->check, __ATOMIC_RELAXED) ||
	    now_s() - words[1] > KEEP_S)
		return false;
	memcpy(name, words + 2, sizeof(*name));
	return true;
}

static void known_put(uintptr_t pc, const struct code_name *name)
{
	struct code_known *at = known_at(pc);
	uint64_t words[WORDS] = {pc, now_s()};

	memcpy(words + 2, name, sizeof(*name));
	for (size_t i = 0; i < WORDS; i++)
		__atomic_store_n(&at->words[i], words[i], __ATOMIC_RELAXED);
	__atomic_store_n(&at->check, check_of(words), __ATOMIC_RELAXED);
}

/* ---- the mapping of an address ---- */

struct code_mapping {
	uint64_t start, end, offset, inode;
	char path[512];
};

static uint64_t number_take(const char **at, unsigned base)
{
	uint64_t value = 0;

	for (;; (*at)++) {
		char c = **at;
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
							: 16;

		if (digit >= base)
			return value;
		value = value * base + digit;
	}
}

static void word_skip(const char **at)
{
	while (**at && **at != ' ')
		(*at)++;
	while (**at == ' ')
		(*at)++;
}

/* A line of /proc/PID/maps: "start-end perms offset device inode path". */
static void mapping_parse(struct code_mapping *mapping, const char *line)
{
	size_t len;

	mapping->start = number_take(&line, 16);
	line += *line == '-';
	mapping->end = number_take(&line, 16);
	word_skip(&line);
	word_skip(&line);
	mapping->offset = number_take(&line, 16);
	word_skip(&line);
	word_skip(&line);
	mapping->inode = number_take(&line, 10);
	word_skip(&line);
	len = strnlen(line, sizeof(mapping->path) - 1);
	memcpy(mapping->path, line, len);
	mapping->path[len] = '\0';
}

struct lines {
	int fd;
	size_t at, len;
	char buffer[1024];
};

/* Reads a line without its end. Longer ones are cut. */
static bool line_read(struct lines *lines, char *line, size_t size)
{
	size_t len = 0;

	for (;;) {
		if (lines->at == lines->len) {
			ssize_t got = read(lines->fd, lines->buffer, sizeof(lines->buffer));

			if (got <= 0)
				return false;
			lines->at = 0;
			lines->len = (size_t)got;
		}
		if (lines->buffer[lines->at] == '\n')
			break;
		if (len < size - 1)
			line[len++] = lines->buffer[lines->at];
		lines->at++;
	}
	lines->at++;
	line[len] = '\0';
	return true;
}

static bool mapping_find(struct code_mapping *mapping, uintptr_t pc)
{
	struct lines lines = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	char line[640];
	bool found = false;

	if (lines.fd < 0)
		return false;
	while (!found && line_read(&lines, line, sizeof(line))) {
		mapping_parse(mapping, line);
		found = pc >= mapping->start && pc < mapping->end;
	}
	close(lines.fd);
	return found;
}

/* ---- its symbol ---- */

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* The link-time address of an offset in the file. */
static bool address_of(int fd, const Elf64_Ehdr *header, uint64_t offset, uint64_t *address)
{
	for (unsigned i = 0; i < header->e_phnum && i < 64; i++) {
		Elf64_Phdr segment;

		if (!read_at(fd, &segment, sizeof(segment), header->e_phoff + i * sizeof(segment)))
			return false;
		if (segment.p_type != PT_LOAD || offset < segment.p_offset ||
		    offset - segment.p_offset >= segment.p_filesz)
			continue;
		*address = offset - segment.p_offset + segment.p_vaddr;
		return true;
	}
	return false;
}

/* The function that contains the address. */
static bool symbol_find(int fd, const Elf64_Shdr *table, uint64_t address, Elf64_Sym *found)
{
	uint64_t count = table->sh_size / sizeof(Elf64_Sym), at = 0;
	Elf64_Sym symbols[32];

	while (at < count) {
		uint64_t some = count - at < 32 ? count - at : 32;

		if (!read_at(fd, symbols, some * sizeof(*symbols),
			     table->sh_offset + at * sizeof(*symbols)))
			return false;
		for (uint64_t i = 0; i < some; i++) {
			*found = symbols[i];
			if (ELF64_ST_TYPE(found->st_info) == STT_FUNC && found->st_shndx &&
			    address >= found->st_value &&
			    address - found->st_value < found->st_size)
				return true;
		}
		at += some;
	}
	return false;
}

/* Looks into the symbol table, or else into that of the dynamic linker. */
static bool function_find(int fd, const Elf64_Ehdr *header, uint64_t address,
			  struct code_name *name)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};

	for (unsigned i = 0; i < 2 * header->e_shnum; i++) {
		unsigned number = i % header->e_shnum;
		Elf64_Shdr table, strings;
		Elf64_Sym symbol;
		ssize_t len;

		if (!read_at(fd, &table, sizeof(table), header->e_shoff + number * sizeof(table)))
			return false;
		if (table.sh_type != types[i / header->e_shnum] ||
		    !read_at(fd, &strings, sizeof(strings),
			     header->e_shoff + table.sh_link * sizeof(strings)) ||
		    !symbol_find(fd, &table, address, &symbol))
			continue;
		len = pread(fd, name->function, sizeof(name->function) - 1,
			    (off_t)(strings.sh_offset + symbol.st_name));
		name->function[len > 0 ? len : 0] = '\0';
		name->offset = address - symbol.st_value;
		return len > 0;
	}
	return false;
}

/* Opens the file only if it is still the one that is mapped. */
static int file_open(const struct code_mapping *mapping)
{
	int fd =
		*mapping->path == '/' ? open(mapping->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	struct stat status;

	if (fd >= 0 &&
	    (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_ino != mapping->inode)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void function_read(const struct code_mapping *mapping, struct code_name *name)
{
	int fd = file_open(mapping);
	uint64_t address = 0;
	Elf64_Ehdr header;

	if (fd < 0)
		return;
	if (read_at(fd, &header, sizeof(header), 0) && !memcmp(header.e_ident, ELFMAG, SELFMAG) &&
	    header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_phentsize == sizeof(Elf64_Phdr) &&
	    header.e_shentsize == sizeof(Elf64_Shdr) &&
	    address_of(fd, &header, name->offset, &address))
		function_find(fd, &header, address, name);
	close(fd);
}

void code_find(uintptr_t pc, struct code_name *name)
{
	struct code_mapping mapping;
	int code = errno;

	if (known_get(pc, name))
		return;
	memset(name, 0, sizeof(*name));
	name->offset = pc;
	if (mapping_find(&mapping, pc)) {
		size_t len = strlen(mapping.path);
		size_t skip = len >= sizeof(name->file) ? len - sizeof(name->file) + 1 : 0;

		memcpy(name->file, mapping.path + skip, len - skip);
		name->offset = pc - mapping.start + mapping.offset;
		function_read(&mapping, name);
	}
	known_put(pc, name);
	errno = code;
}
