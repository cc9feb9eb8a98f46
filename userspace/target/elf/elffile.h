/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files that symbols are read from: a program or library, or its detached debug file. Files are
 * untrusted, and paths may come from a capture of another machine. So only regular files are
 * opened.
 */
#ifndef WAFFLE_TARGET_ELF_ELFFILE_H
#define WAFFLE_TARGET_ELF_ELFFILE_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "target/elf/buildid.h"

struct elf_file {
	int fd;   /* -1: not open */
	Elf *elf; /* NULL: not open; reads sections into private memory (target/elf/elflimits.h) */
	struct stat at_first;
	char *path;
	struct build_id build_id;
};

#define ELF_FILE_INIT                                                                              \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * Opens a program or library (ET_EXEC, ET_DYN). Returns 0; -ENOENT or another negative errno of
 * open(2); -ENOEXEC: another type of file, or it exceeds the limits of target/elf/elflimits.h;
 * -ENOMEM.
 */
int elf_file_open(struct elf_file *file, const char *path);
/* The same for a descriptor. `file` takes ownership of it, even on failure. */
int elf_file_open_fd(struct elf_file *file, int fd, const char *path);
/* The same for the common file that dwz made, which is an ET_REL. */
int elf_file_open_common(struct elf_file *file, const char *path);
void elf_file_close(struct elf_file *file);

/* Whether the file changed since it was opened. If so, discard everything that was read from it. */
bool elf_file_changed(const struct elf_file *file);

/* The first section of that name. NULL: none. */
Elf_Scn *elf_section_named(Elf *elf, const char *name, GElf_Shdr *header);
/* Whether the section exists and has contents (a debug file keeps some sections without
 * contents). */
bool elf_file_has_section(const struct elf_file *file, const char *name);
/* Whether it is a program in Go: by the sections that Go's linker writes, or, without section
 * headers, by what it puts into the program's data. */
bool elf_file_is_go(const struct elf_file *file);
/* Finds the first dynamic symbol of that name. False: there is none. */
bool elf_file_dynamic_symbol(const struct elf_file *file, const char *name, GElf_Sym *symbol);
/* Whether it has DWARF. */
bool elf_file_has_debug(const struct elf_file *file);

/*
 * Finds the detached debug file of a program and opens it as `debug`. It searches by build-id under
 * `debug_dir`/.build-id
 * (https://sourceware.org/gdb/current/onlinedocs/gdb.html/Separate-Debug-Files.html). Then, if
 * `program` is open, it searches by .gnu_debuglink: beside the program, in .debug beside it, and
 * under `debug_dir`. A file with another build-id is rejected. Without build-ids the checksum must
 * match, and a file too large for one (ELF_CHECKSUM_MAX) is rejected. `id` may be empty. Returns 0
 * or -ENOENT.
 */
int elf_file_find_debug(struct elf_file *debug, const struct elf_file *program,
			const struct build_id *id, const char *debug_dir);

#define ELF_SEGMENTS_MAX 8

/* An executable PT_LOAD segment: how code of a file is mapped into memory. */
struct elf_segment {
	uint64_t offset;  /* in the file */
	uint64_t address; /* link-time */
	uint64_t size;    /* in the file */
};

struct elf_segments {
	uint32_t count;
	struct elf_segment list[ELF_SEGMENTS_MAX];
};

/* Keeps the first eight segments (linkers make one). */
void elf_file_segments(const struct elf_file *file, struct elf_segments *segments);
/* The link-time address of a file offset. False: it is in no segment. */
bool elf_segments_address(const struct elf_segments *segments, uint64_t offset, uint64_t *address);

#endif
