/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps addresses to functions (with inlined ones), source lines and variables. Only files are read.
 * So the process may be gone, and the capture may come from another machine. It only needs the same
 * files, their debug files or a debuginfod server. A file is opened and indexed when the first
 * address falls into it. Each address is resolved once.
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
 * A caller's address in a stack is a return address, which may belong to the next line or even the
 * next function. So pass one byte less for all frames but the innermost.
 *
 * A symbolizer is not thread-safe. Strings may hold any bytes and stay valid until
 * symbolizer_close(). Needs libdw, libelf, libz and libsupc++.
 */
#ifndef WAFFLE_TARGET_ELF_SYMBOLS_H
#define WAFFLE_TARGET_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "target/dwarf/callsite.h"
#include "target/elf/symbol_module.h"

struct symbolizer;

struct symbolizer_options {
	/* Directory of detached debug files. NULL: WAFFLE_DEBUG_DIR, or else /usr/lib/debug. */
	const char *debug_dir;
	bool fetch; /* downloads from debuginfod servers if DEBUGINFOD_URLS is set */
	/* It runs inside target/worker/worker.h: no network, and it requests files from the parent.
	 */
	bool in_worker;
};

/* Returns 0 or -ENOMEM. The options are copied. */
int symbolizer_open(struct symbolizer **symbolizer, const struct symbolizer_options *options);
void symbolizer_close(struct symbolizer *symbolizer);

/* Assigns a number to the module; the same path and build-id get the same number. Returns 0 or
 * -ENOMEM. */
int symbolizer_add(struct symbolizer *symbolizer, const struct symbol_module *module,
		   uint32_t *number);

/* Looks up an offset in the file, or a link-time address. 0, -EINVAL (no such module) or -ENOMEM.
 * An unknown address is not an error: the list is empty. */
int symbolizer_offset(struct symbolizer *symbolizer, uint32_t module, uint64_t offset,
		      struct symbol_frames *frames);
int symbolizer_address(struct symbolizer *symbolizer, uint32_t module, uint64_t address,
		       struct symbol_frames *frames);

/* What the instruction before an offset in the file is. CALLSITE_UNKNOWN: the file is not
 * available.
 */
enum callsite symbolizer_before(struct symbolizer *symbolizer, uint32_t module, uint64_t offset);

/* The demangled name of the variable at a link-time address (for example a lock), or NULL. *offset:
 * bytes from the start of the variable. */
const char *symbolizer_variable(struct symbolizer *symbolizer, uint32_t module, uint64_t address,
				uint64_t *offset);

/* Whether the module's symbol table has a variable of that name. */
bool symbolizer_has_variable(struct symbolizer *symbolizer, uint32_t module, const char *name);

/* Whether the module's file is a program in Go. Opens no debug file. */
bool symbolizer_is_go(struct symbolizer *symbolizer, uint32_t module);

/* Opens the module's files if they are not open yet. -EINVAL: no such module; -ENOMEM. */
int symbolizer_module(struct symbolizer *symbolizer, uint32_t module,
		      struct symbol_module_state *state);

#endif
