/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens untrusted ELF files for libelf. Each section is copied into private memory at its first
 * use, so that the file's owner cannot change it under the parser. The sizes of tables are limited,
 * since a small sparse or compressed file can expand to more memory than the machine has.
 */
#ifndef WAFFLE_TARGET_ELF_ELFLIMITS_H
#define WAFFLE_TARGET_ELF_ELFLIMITS_H

#include <libelf.h>
#include <stdbool.h>

#define ELF_SECTIONS_MAX (1u << 20)
/* Total of symbols, their names, notes, and what the loader reads. */
#define ELF_TABLES_MAX (512ull << 20)
/* DWARF after decompression. */
#define ELF_DEBUG_MAX (2ull << 30)
/* Highest plausible compression ratio: compilers' DWARF shrinks to a third or a tenth. */
#define ELF_DEBUG_RATIO 64
/* Limit for a debug file that only a checksum identifies, since the checksum reads all of it. */
#define ELF_CHECKSUM_MAX (1ull << 30)

/* `fd` has to stay open until elf_end(). NULL: not an ELF file, or it exceeds the limits. */
Elf *elf_limited_begin(int fd);
/* Whether the file's DWARF is within the limits. */
bool elf_debug_limited(Elf *elf, int fd);

#endif
