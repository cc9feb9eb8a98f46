/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DWARF of an ELF file, with what of it lies in other files: entries that `dwz -m` moved to a
 * common file (.gnu_debugaltlink), and units that -gsplit-dwarf left in .dwo files or a .dwp.
 *
 * libdw finds these by itself, but opens whatever is at the paths that a file names, also devices
 * and FIFOs, and does not compare build-ids. So the common file is looked for here, and libdw is
 * asked for a split unit only where it would open ordinary files.
 */
#ifndef WAFFLE_TARGET_DWARF_FILE_H
#define WAFFLE_TARGET_DWARF_FILE_H

#include <elfutils/libdw.h>

#include "target/elffile.h"

struct dwarf_file {
	Dwarf *dwarf; /* NULL: not open */
	char *path;   /* of the file, links followed; NULL: not known */
	struct elf_file common_file;
	Dwarf *common; /* NULL: it has none, or that is not there */
	Elf *empty_elf;
	Dwarf *empty;  /* in the place of what is not there */
	char *lacking; /* the name of the common file that is not there; NULL: nothing lacks */
};

#define DWARF_FILE_INIT                                                                            \
	{                                                                                          \
		.common_file = ELF_FILE_INIT                                                       \
	}

/* `elf` has to stay open. The common file is looked for by its build-id under
 * `debug_dir`/.build-id, and by its name. -ENODATA: there is no DWARF. -ENOMEM. */
int dwarf_file_open(struct dwarf_file *file, const struct elf_file *elf, const char *debug_dir);
void dwarf_file_close(struct dwarf_file *file);

/* Replaces a unit that is a skeleton by the split unit that it stands for; false: that is not there
 * (or can't be looked for), and *unit stays. Other units stay, which is true. */
bool dwarf_file_unit(struct dwarf_file *file, Dwarf_Die *unit);
/* The .dwo file that a skeleton names; NULL: none. */
const char *dwarf_file_split_name(Dwarf_Die *unit);

#endif
