/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symbolizer whose files are read by a worker. Every request names its module in full, so that a
 * new worker can answer it. Answers are cached. After a worker died of a module, there are no
 * further requests for it.
 */
#ifndef WAFFLE_TARGET_SYMBOLS_REMOTE_H
#define WAFFLE_TARGET_SYMBOLS_REMOTE_H

#include "target/symbols.h"
#include "util/wire.h"

struct symbols_remote;

/* The functions of target/symbols.h. */
int symbols_remote_open(struct symbols_remote **remote, const char *debug_dir, bool fetch);
void symbols_remote_close(struct symbols_remote *remote);
int symbols_remote_add(struct symbols_remote *remote, const struct symbol_module *module,
		       uint32_t *number);
/* `is_offset`: the place is an offset, not an address. */
int symbols_remote_frames(struct symbols_remote *remote, uint32_t module, uint64_t place,
			  bool is_offset, struct symbol_frames *frames);
bool symbols_remote_is_return(struct symbols_remote *remote, uint32_t module, uint64_t offset);
/* Of a name, or, without one, of an address. */
const char *symbols_remote_variable(struct symbols_remote *remote, uint32_t module,
				    uint64_t address, uint64_t *offset);
bool symbols_remote_has_variable(struct symbols_remote *remote, uint32_t module, const char *name);
int symbols_remote_module(struct symbols_remote *remote, uint32_t module,
			  struct symbol_module_state *state);

/* The worker's side: worker_handlers, whose `arg` is a struct symbols_service. */
struct symbols_service {
	struct symbolizer *symbolizer; /* NULL: none yet */
};
int symbols_serve_frames(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
int symbols_serve_return(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
int symbols_serve_variable(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
int symbols_serve_module(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

/* The reply of symbols_serve_frames(), for fuzzing. */
bool symbols_remote_decode(struct symbols_remote *remote, struct wire_in *in);

#endif
