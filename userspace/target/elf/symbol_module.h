/* SPDX-License-Identifier: Apache-2.0 */
/* What a symbolizer (symbols.h) is asked about, and what it answers. */
#ifndef WAFFLE_TARGET_ELF_SYMBOL_MODULE_H
#define WAFFLE_TARGET_ELF_SYMBOL_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/buildid.h"
#include "target/elf/elffile.h"

/* An ELF file that was mapped. */
struct symbol_module {
	const char *path;         /* current path of the file; NULL: unknown */
	struct build_id build_id; /* as recorded; if empty, any file at `path` is accepted */
	/* As recorded, to convert offsets without the file. If empty, they are read from the
	 * file. */
	struct elf_segments segments;
};

/* Hash of path and build-id, which identify a module. */
uint64_t symbol_module_hash(const struct symbol_module *module);
/* Whether this is the module of that path, which may be NULL, and build-id. */
bool symbol_module_is(const struct symbol_module *module, const char *path,
		      const struct build_id *build_id);
/* Where names come from. */
enum symbol_source {
	SYMBOL_NONE,
	/* Exported functions only: an address in a local function gets the name of a neighbour. */
	SYMBOL_DYNSYM,
	SYMBOL_SYMTAB,
	SYMBOL_DWARF,
};

struct symbol_frame {
	const char *function; /* demangled; NULL: unknown */
	const char *file;     /* source file; NULL: unknown */
	uint32_t line;        /* 0: unknown */
	bool inlined;         /* into the next frame of the list */
	/* Bytes from the start of the outermost function, or of its part that the compiler moved
	 * elsewhere. All frames of a list have the same offset. */
	uint64_t offset;
};

struct symbol_frames {
	const struct symbol_frame *list; /* innermost first; owned by the symbolizer */
	uint32_t count;                  /* 0: nothing is known, so show module+0xaddress */
	enum symbol_source source;
	bool located;     /* `address` is valid: the offset lies in a segment */
	uint64_t address; /* link-time address; without `located`, the requested offset */
};

/* State of a module's file. */
enum symbol_file {
	SYMBOL_FILE_USED,      /* its build-id matches the recorded one */
	SYMBOL_FILE_UNCHECKED, /* used; no build-id was recorded */
	SYMBOL_FILE_OTHER,     /* not used: the file at the path has another build-id, or none */
	SYMBOL_FILE_MISSING,   /* cannot be opened */
	/* Not used: it is not an ELF program or library, or it changed meanwhile. */
	SYMBOL_FILE_BAD,
};

struct symbol_module_state {
	enum symbol_file file;
	enum symbol_source source; /* the best available source for functions */
	const char *debug_path;    /* of the detached debug file in use; NULL: none */
	struct build_id build_id;  /* as recorded, else the file's */
};

#endif
