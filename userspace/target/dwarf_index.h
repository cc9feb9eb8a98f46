/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF as a map from addresses to functions, inlined ones too, and source lines. libdw's own
 * dwarf_getscopes() walks a whole compilation unit for each address; here a unit is walked once,
 * when the first address falls into it, into a sorted array.
 *
 * Uses libdw's dwarf_* calls only, not libdwfl, so that it links statically without dlopen.
 */
#ifndef WAFFLE_TARGET_DWARF_INDEX_H
#define WAFFLE_TARGET_DWARF_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elffile.h"
#include "util/strtab.h"

struct dwarf_index;

/* What was called at an address. Strings belong to the strtab. */
struct dwarf_frame {
	const char *function; /* demangled; NULL: not known */
	const char *file;     /* NULL: not known */
	uint32_t line;        /* 0: not known */
	bool inlined;
	bool mangled; /* `function` was a mangled name */
};

#define DWARF_FRAMES_MAX 64 /* deeper inlining is cut at its outer end */

struct dwarf_place {
	uint32_t count;
	struct dwarf_frame frames[DWARF_FRAMES_MAX]; /* innermost first */
	/* Where the piece of code of the outermost function begins that the address lies in; not
	 * set if `count` is 0. */
	uint64_t start;
	/* The line at the address, also if no function is known there; as in frames[0]. */
	const char *file;
	uint32_t line;
};

/*
 * -ENODATA: no DWARF in it; -ENOMEM. The file and the strtab stay the caller's and have to
 * outlive the index.
 */
int dwarf_index_open(struct dwarf_index **index, const struct elf_file *file, const char *debug_dir,
		     struct strtab *strings);
void dwarf_index_close(struct dwarf_index *index);

/* Finds what lies at a link-time address. Damaged or unknown parts just have less to tell.
 * Returns 0 or -ENOMEM. */
int dwarf_index_find(struct dwarf_index *index, uint64_t address, struct dwarf_place *place);

#endif
