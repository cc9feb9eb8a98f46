/* SPDX-License-Identifier: Apache-2.0 */
/* A worker process reads what unwinding needs of a file: its code segments and its unwind table. */
#ifndef WAFFLE_TARGET_DWARF_CFI_REMOTE_H
#define WAFFLE_TARGET_DWARF_CFI_REMOTE_H

#include "target/dwarf/cfi.h"
#include "target/worker/file_cache.h"
#include "util/wire.h"

/*
 * Reads both in this process or in a worker. Takes ownership of the descriptor. -ENOEXEC: not a
 * program or library, or the file changed meanwhile; -EPROTO: the worker exited; -ENOMEM. What a
 * worker reads is kept in `cache` (NULL: none).
 */
int cfi_file_read(struct cfi_table *table, struct elf_segments *segments, int fd, const char *path,
		  const struct file_cache *cache);
/* Takes both from the cache (NULL: none), without a worker. `fd` stays the caller's. -ENOENT: the
 * cache lacks them; -EPROTO: what it has is malformed; -ENOMEM. */
int cfi_file_recall(struct cfi_table *table, struct elf_segments *segments, int fd,
		    const struct file_cache *cache);

/* The worker's side, a worker_handler. */
int cfi_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
/* Parses the worker's reply. `owner`: the message that is read, whose memory the table takes over,
 * since it is large; NULL: the rows are copied. 0; -EPROTO: it is malformed; -ENOMEM. */
int cfi_decode(struct cfi_table *table, struct elf_segments *segments, struct wire_in *in,
	       struct wire_out *owner);

#endif
