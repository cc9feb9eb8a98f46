/* SPDX-License-Identifier: Apache-2.0 */
/* A program in Go with only the sections that symtab_read_go() reads. */
#ifndef WAFFLE_TESTS_UNIT_GO_FILE_H
#define WAFFLE_TESTS_UNIT_GO_FILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GO_FILE_TEXT 0x401000ull
#define GO_FILE_TEXT_BYTES 0x1000u
#define GO_FILE_TABLE 0x500000ull

#define GO_FILE_MODULE_WORDS 23

struct go_file_head {
	Elf64_Ehdr header;
	Elf64_Shdr sections[5];
	uint64_t module[GO_FILE_MODULE_WORDS];
	char names[40];
};

static inline void go_file_write(int fd, const void *bytes, size_t size)
{
	if (write(fd, bytes, size) != (ssize_t)size)
		abort();
}

/* A file whose .gopclntab has these bytes, and whose code is GO_FILE_TEXT_BYTES at GO_FILE_TEXT.
 * Returns a descriptor. */
static inline int go_file(const void *table, size_t size)
{
	const struct go_file_head head = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_EXEC,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_shoff = offsetof(struct go_file_head, sections),
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 5,
			   .e_shstrndx = 4},
		.sections = {[1] = {.sh_name = 1,
				    .sh_type = SHT_NOBITS,
				    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				    .sh_addr = GO_FILE_TEXT,
				    .sh_size = GO_FILE_TEXT_BYTES},
			     [2] = {.sh_name = 7,
				    .sh_type = SHT_PROGBITS,
				    .sh_addr = GO_FILE_TABLE,
				    .sh_offset = sizeof(struct go_file_head),
				    .sh_size = size},
			     [3] = {.sh_name = 18,
				    .sh_type = SHT_PROGBITS,
				    .sh_offset = offsetof(struct go_file_head, module),
				    .sh_size = 8 * GO_FILE_MODULE_WORDS},
			     [4] = {.sh_name = 29,
				    .sh_type = SHT_STRTAB,
				    .sh_offset = offsetof(struct go_file_head, names),
				    .sh_size = 40}},
		.module = {[0] = GO_FILE_TABLE, [GO_FILE_MODULE_WORDS - 1] = GO_FILE_TEXT},
		.names = "\0.text\0.gopclntab\0.go.module\0.shstrtab",
	};
	int fd = memfd_create("go", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	go_file_write(fd, &head, sizeof(head));
	go_file_write(fd, table, size);
	return fd;
}

#endif
