/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of .eh_frame and .debug_frame, for cfi.c and cfi_index.c. */
#ifndef WAFFLE_TARGET_DWARF_CFI_ENTRIES_INTERNAL_H
#define WAFFLE_TARGET_DWARF_CFI_ENTRIES_INTERNAL_H

#include <stddef.h>

#include "target/dwarf/cfi_program_internal.h"
#include "target/elf/elffile.h"
#include "util/map.h"
#include "util/vec.h"

/* A CIE: what several functions share. */
struct cfi_common_entry {
	struct cfi_common common;
	uint8_t encoding;
	bool sized; /* each FDE states the size of its augmentation data */
	bool bad;
};

/* A section, zero-initialised before use. Its file has to stay open. */
struct cfi_section {
	const struct cfi_machine *machine;
	const unsigned char *data;
	size_t size;
	uint64_t address;
	bool debug;    /* the section is .debug_frame */
	struct map at; /* offset of a CIE → index in `commons` */
	VEC(struct cfi_common_entry) commons;
	size_t bad; /* number of entries that were skipped */
	bool no_memory;
	bool cut; /* the section exceeds the limit: the rest is not read */
};

/* Bytes of a section. The largest browsers and tensor libraries have 40 MB. */
#define CFI_SECTION_MAX (256u << 20)

/* An FDE: one function. */
struct cfi_entry {
	uint64_t from, to; /* link-time addresses */
	uint32_t common;   /* index in the section's `commons` */
	struct cfi_bytes program;
};

/* A file may have either section or both: code built without .eh_frame may have .debug_frame. */
enum cfi_section_kind { CFI_EH_FRAME, CFI_DEBUG_FRAME, CFI_SECTIONS };

/* False: the file has no such section, or its machine is not supported. */
bool cfi_section_open(struct cfi_section *section, const struct elf_file *file,
		      enum cfi_section_kind kind);
void cfi_section_close(struct cfi_section *section);

/* Receives an entry. Returns false if the entry is malformed. */
typedef bool (*cfi_entry_fn)(struct cfi_section *section, const struct cfi_entry *entry, void *arg);
/* Visits all functions that the linker kept, in file order. */
void cfi_section_each(struct cfi_section *section, cfi_entry_fn take, void *arg);

#endif
