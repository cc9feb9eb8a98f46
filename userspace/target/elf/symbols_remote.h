/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symbolizer whose files are read by a worker process. Every request names its module in full, so
 * that a restarted worker can answer it. Answers are cached. If a worker dies on a module, no
 * further requests are sent for that module.
 */
#ifndef WAFFLE_TARGET_ELF_SYMBOLS_REMOTE_H
#define WAFFLE_TARGET_ELF_SYMBOLS_REMOTE_H

#include "target/dwarf/callsite.h"
#include "target/elf/symbol_module.h"
#include "util/wire.h"

struct symbols_remote;

/* These mirror the functions of target/elf/symbols.h. */
int symbols_remote_open(struct symbols_remote **remote, const char *debug_dir, bool fetch);
void symbols_remote_close(struct symbols_remote *remote);
int symbols_remote_add(struct symbols_remote *remote, const struct symbol_module *module,
		       uint32_t *number);
/* `is_offset`: the place is a file offset rather than an address. */
int symbols_remote_frames(struct symbols_remote *remote, uint32_t module, uint64_t place,
			  bool is_offset, struct symbol_frames *frames);
enum callsite symbols_remote_before(struct symbols_remote *remote, uint32_t module,
				    uint64_t offset);
/* The variable with a name or, without a name, at an address. */
const char *symbols_remote_variable(struct symbols_remote *remote, uint32_t module,
				    uint64_t address, uint64_t *offset);
bool symbols_remote_has_variable(struct symbols_remote *remote, uint32_t module, const char *name);
bool symbols_remote_is_go(struct symbols_remote *remote, uint32_t module);
int symbols_remote_module(struct symbols_remote *remote, uint32_t module,
			  struct symbol_module_state *state);

/* The worker's side (symbols_serve.c): worker_handlers, whose `arg` is a struct symbols_service. */
struct symbols_service {
	struct symbolizer *symbolizer; /* NULL: not created yet */
};
int symbols_serve_frames(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
int symbols_serve_before(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
int symbols_serve_variable(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
int symbols_serve_go(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
int symbols_serve_module(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

/* Parses a reply of symbols_serve_frames(); exported for fuzzing. */
bool symbols_remote_decode(struct symbols_remote *remote, struct wire_in *in);

#endif
