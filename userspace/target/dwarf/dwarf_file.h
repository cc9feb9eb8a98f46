/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DWARF of an ELF file, with its parts in other files: entries that `dwz -m` moved to a common
 * file (.gnu_debugaltlink), and units that -gsplit-dwarf left in .dwo files or a .dwp.
 *
 * libdw finds these by itself. But it opens whatever is at the paths that a file names, including
 * devices and FIFOs, and does not compare build-ids. So this module searches for the common file,
 * and requests a split unit from libdw only if all candidate files are regular.
 */
#ifndef WAFFLE_TARGET_DWARF_DWARF_FILE_H
#define WAFFLE_TARGET_DWARF_DWARF_FILE_H

#include <elfutils/libdw.h>

#include "target/elf/elffile.h"

struct dwarf_file {
	Dwarf *dwarf; /* NULL: not open */
	char *path;   /* of the file, with symbolic links resolved; NULL: unknown */
	struct elf_file common_file;
	Dwarf *common; /* NULL: the file names no common file, or it was not found */
	Elf *empty_elf;
	Dwarf *empty;  /* stands in for a missing common file */
	char *lacking; /* name of a missing common file; NULL: none is missing */
};

#define DWARF_FILE_INIT                                                                            \
	{                                                                                          \
		.common_file = ELF_FILE_INIT                                                       \
	}

/* `elf` has to stay open. Searches for the common file by its build-id under `debug_dir`/.build-id,
 * and by its name. -ENODATA: there is no DWARF. -ENOMEM. */
int dwarf_file_open(struct dwarf_file *file, const struct elf_file *elf, const char *debug_dir);
void dwarf_file_close(struct dwarf_file *file);

/* Replaces a skeleton unit by its split unit and returns true. False: the split unit is missing or
 * its files are not safe to open; *unit is unchanged. Any other unit stays as it is, with true. */
bool dwarf_file_unit(struct dwarf_file *file, Dwarf_Die *unit);
/* The .dwo file that a skeleton names. NULL: none. */
const char *dwarf_file_split_name(Dwarf_Die *unit);

#endif
