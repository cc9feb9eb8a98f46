/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From addresses to functions, inlined ones too, source lines and variables. Only files are read:
 * the process may be gone, and the capture may come from elsewhere, as long as the same files,
 * their debug files or a debuginfod server are at hand. Files are opened and indexed when the first
 * address falls into them, and each address is worked out once.
 *
 *	struct symbolizer *symbolizer;
 *	struct symbol_frames frames;
 *	uint32_t module;
 *
 *	symbolizer_open(&symbolizer, &(struct symbolizer_options){.fetch = true});
 *	symbolizer_add(symbolizer, &(struct symbol_module){.path = path, .build_id = id}, &module);
 *	symbolizer_offset(symbolizer, module, ip - mapping.start + mapping.offset, &frames);
 *	for (uint32_t i = 0; i < frames.count; i++) … frames.list[i].function …
 *
 * The address of a caller in a stack is that of the instruction after the call, which may be
 * another line or even another function: pass one less for all but the innermost.
 *
 * Not for use from two threads at once. Strings may hold any bytes and stay valid until
 * symbolizer_close(). Needs libdw, libelf, libz and libsupc++.
 */
#ifndef WAFFLE_TARGET_SYMBOLS_H
#define WAFFLE_TARGET_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "target/buildid.h"
#include "target/elffile.h"

struct symbolizer;

struct symbolizer_options {
	/* Of detached debug files; NULL: what WAFFLE_DEBUG_DIR says, or else /usr/lib/debug. */
	const char *debug_dir;
	bool fetch;     /* from debuginfod servers, if DEBUGINFOD_URLS is set */
	bool in_worker; /* of target/worker.h: it has no network and requests its files */
};

/* -ENOMEM. The options are copied. */
int symbolizer_open(struct symbolizer **symbolizer, const struct symbolizer_options *options);
void symbolizer_close(struct symbolizer *symbolizer);

/* An ELF file that was mapped. */
struct symbol_module {
	const char *path;         /* where it may be found now; NULL: nowhere */
	struct build_id build_id; /* as recorded; without one any file at `path` is believed */
	/* As recorded, for offsets of a file that is not at hand; none: read from the file. */
	struct elf_segments segments;
};

/* Of what makes two modules one: path and build-id. */
uint64_t symbol_module_hash(const struct symbol_module *module);
/* Gives the module a number; one of the same path and build-id has it already. -ENOMEM. */
int symbolizer_add(struct symbolizer *symbolizer, const struct symbol_module *module,
		   uint32_t *number);

/* Where the names come from. */
enum symbol_source {
	SYMBOL_NONE,
	SYMBOL_DYNSYM, /* names of exported functions only: a local one has its neighbour's */
	SYMBOL_SYMTAB,
	SYMBOL_DWARF,
};

struct symbol_frame {
	const char *function; /* demangled; NULL: not known */
	const char *file;     /* source file; NULL: not known */
	uint32_t line;        /* 0: not known */
	bool inlined;         /* into the next frame of the list */
	/* Bytes from the beginning of the outermost function, or of the part of it that the
	 * compiler has moved elsewhere; the same in all frames of a list. */
	uint64_t offset;
};

struct symbol_frames {
	const struct symbol_frame *list; /* innermost first; belongs to the symbolizer */
	uint32_t count;                  /* 0: nothing known, show module+0xaddress */
	enum symbol_source source;
	bool located;     /* `address` is known: the offset lies in a segment */
	uint64_t address; /* link-time; without `located` the offset asked for */
};

/* What lies at an offset in the file, or at a link-time address. 0, -EINVAL (no such module) or
 * -ENOMEM; that nothing is known is not an error. */
int symbolizer_offset(struct symbolizer *symbolizer, uint32_t module, uint64_t offset,
		      struct symbol_frames *frames);
int symbolizer_address(struct symbolizer *symbolizer, uint32_t module, uint64_t address,
		       struct symbol_frames *frames);

/* Whether the code before an offset in the file is a call, as it is before every return address.
 * False only if the file is at hand and says so. */
bool symbolizer_is_return(struct symbolizer *symbolizer, uint32_t module, uint64_t offset);

/* The variable at a link-time address (a lock's name), demangled, or NULL. *offset: bytes from its
 * beginning. */
const char *symbolizer_variable(struct symbolizer *symbolizer, uint32_t module, uint64_t address,
				uint64_t *offset);

/* Whether a module has a variable of that name, as its symbol table has it. */
bool symbolizer_has_variable(struct symbolizer *symbolizer, uint32_t module, const char *name);

/* What became of a module's file. */
enum symbol_file {
	SYMBOL_FILE_USED,      /* its build-id is the recorded one */
	SYMBOL_FILE_UNCHECKED, /* used; no build-id was recorded */
	SYMBOL_FILE_OTHER,     /* not used: the file there now has another build-id, or none */
	SYMBOL_FILE_MISSING,   /* cannot be opened */
	SYMBOL_FILE_BAD,       /* not used: no ELF program or library, or it changed meanwhile */
};

struct symbol_module_state {
	enum symbol_file file;
	enum symbol_source source; /* the best there is for functions */
	const char *debug_path;    /* of the detached debug file in use; NULL: none */
	struct build_id build_id;  /* recorded, or else the file's */
};

/* Opens the module's files unless they are. -EINVAL: no such module; -ENOMEM. */
int symbolizer_module(struct symbolizer *symbolizer, uint32_t module,
		      struct symbol_module_state *state);

#endif
