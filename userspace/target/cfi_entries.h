/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of .eh_frame and .debug_frame; between cfi.c and cfi_index.c. */
#ifndef WAFFLE_TARGET_CFI_ENTRIES_H
#define WAFFLE_TARGET_CFI_ENTRIES_H

#include <stddef.h>

#include "target/cfi_program.h"
#include "target/elffile.h"
#include "util/map.h"
#include "util/vec.h"

/* A CIE: what functions have in common. */
struct cfi_common_entry {
	struct cfi_common common;
	uint8_t encoding;
	bool sized; /* its FDEs have a size of what they say beside the address */
	bool bad;
};

/* A section, whose file has to stay open. Zero-initialised. */
struct cfi_section {
	const struct cfi_machine *machine;
	const unsigned char *data;
	size_t size;
	uint64_t address;
	bool debug;    /* .debug_frame */
	struct map at; /* offset of a CIE → index in `commons` */
	VEC(struct cfi_common_entry) commons;
	size_t bad; /* entries that were left out */
	bool no_memory;
	bool cut; /* the section is too large: the rest is not read */
};

/* Bytes of a section. Those of the largest browsers and tensor libraries have 40 MB. */
#define CFI_SECTION_MAX (256u << 20)

/* An FDE: a function. */
struct cfi_entry {
	uint64_t from, to; /* link-time addresses */
	uint32_t common;   /* index in the section's */
	struct cfi_bytes program;
};

/* The two sections that there may be: code that was built without the first may have the second. */
enum cfi_section_kind { CFI_EH_FRAME, CFI_DEBUG_FRAME, CFI_SECTIONS };

/* False: the file has none, or is of a machine that is not known. */
bool cfi_section_open(struct cfi_section *section, const struct elf_file *file,
		      enum cfi_section_kind kind);
void cfi_section_close(struct cfi_section *section);

/* Takes an entry; false: it makes no sense. */
typedef bool (*cfi_entry_fn)(struct cfi_section *section, const struct cfi_entry *entry, void *arg);
/* All functions that the linker has kept, in the order of the file. */
void cfi_section_each(struct cfi_section *section, cfi_entry_fn take, void *arg);

#endif
