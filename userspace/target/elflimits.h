/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens untrusted ELF files for libelf. Each section is read into private memory once, when it is
 * first needed, so the file's owner can't change it under the parser. The tables that we read are
 * limited, since a small sparse or compressed file can expand to more memory than there is.
 */
#ifndef WAFFLE_TARGET_ELFLIMITS_H
#define WAFFLE_TARGET_ELFLIMITS_H

#include <libelf.h>
#include <stdbool.h>

#define ELF_SECTIONS_MAX (1u << 20)
/* Symbols, their names, notes and what the loader reads, together. */
#define ELF_TABLES_MAX (512ull << 20)
/* DWARF, after it was decompressed. */
#define ELF_DEBUG_MAX (2ull << 30)
/* Compilers' DWARF becomes three to ten times smaller. */
#define ELF_DEBUG_RATIO 64
/* A detached debug file that only its checksum identifies: computing that reads all of it. */
#define ELF_CHECKSUM_MAX (1ull << 30)

/* `fd` has to stay open until elf_end(). NULL: not an ELF file, or beyond the limits. */
Elf *elf_limited_begin(int fd);
/* Whether the file's DWARF is within the limits. */
bool elf_debug_limited(Elf *elf, int fd);

#endif
