/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF as a map from addresses to functions (with inlined ones) and source lines. libdw's
 * dwarf_getscopes() walks a whole compilation unit per address. Here each unit is walked once, into
 * a sorted array, when the first address falls into it.
 *
 * Uses only libdw's dwarf_* calls and not libdwfl, so that it links statically without dlopen.
 */
#ifndef WAFFLE_TARGET_DWARF_DWARF_INDEX_H
#define WAFFLE_TARGET_DWARF_DWARF_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/elffile.h"
#include "util/strtab.h"

struct dwarf_index;

/* One function active at an address. The strtab owns the strings. */
struct dwarf_frame {
	const char *function; /* demangled; NULL: unknown */
	const char *file;     /* NULL: unknown */
	uint32_t line;        /* 0: unknown */
	bool inlined;
	bool mangled; /* `function` was a mangled name */
};

#define DWARF_FRAMES_MAX 64 /* of deeper inlining the outermost frames are dropped */

struct dwarf_place {
	uint32_t count;
	struct dwarf_frame frames[DWARF_FRAMES_MAX]; /* innermost first */
	/* Start of the address range of the outermost function that contains the address. Not set
	 * if `count` is 0. */
	uint64_t start;
	/* The line of the address, as in frames[0]. Also set if no function is known. */
	const char *file;
	uint32_t line;
};

/*
 * -ENODATA: the file has no DWARF; -ENOMEM. The caller keeps the file and the strtab, which have to
 * outlive the index.
 */
int dwarf_index_open(struct dwarf_index **index, const struct elf_file *file, const char *debug_dir,
		     struct strtab *strings);
void dwarf_index_close(struct dwarf_index *index);

/* Looks up a link-time address. Damaged or unsupported DWARF only yields less. Returns 0 or
 * -ENOMEM. */
int dwarf_index_find(struct dwarf_index *index, uint64_t address, struct dwarf_place *place);

#endif
