/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that grows while the program runs, written by a thread of its own. A file system may stop
 * responding for ever, in a state that no signal ends. Then only that thread waits: the program
 * goes on, and its exit waits for a bounded time.
 *
 *	collector: bytes ──→ queue (at most SINK_FILE_QUEUE) ──→ thread "waffle-file" ──→ file
 *
 * A full queue makes the collector wait, so that rings become full and count what they lose.
 */
#ifndef WAFFLE_USDT_SINK_SINK_FILE_H
#define WAFFLE_USDT_SINK_SINK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#define SINK_FILE_QUEUE ((size_t)32 << 20)
/* The file system counts as stuck when it has done nothing for so long. */
#define SINK_FILE_STUCK_NS 2000000000ull
/* The longest wait for a slow one, when the file is closed. */
#define SINK_FILE_CLOSE_NS 30000000000ull

struct sink_file;

/* Creates it under a temporary name (util/output.h). It waits for the file system, -ETIMEDOUT. */
int sink_file_open(struct sink_file **file, const char *path, struct error *err);
const char *sink_file_path(const struct sink_file *file);
/* Queues bytes, which the thread appends as a whole. If that fails the file ends where it did
 * before, and this and later calls return the error. */
int sink_file_write(struct sink_file *file, const void *data, size_t bytes, struct error *err);
/* Gives the file its name: from now on it is left, however the program ends. Waits for it. */
int sink_file_publish(struct sink_file *file, struct error *err);
/* Waits until all queued bytes are in the file, or the file system is stuck. */
int sink_file_settle(struct sink_file *file, struct error *err);
/* While the recording ends: nobody waits for a stuck file system. Any thread may call it. */
void sink_file_hurry(bool hurry);
/* Writes what is queued, closes the file, and frees in any case. */
int sink_file_close(struct sink_file *file, struct error *err);
/* The same without an error. If the file has no name yet it is removed. NULL is allowed. */
void sink_file_discard(struct sink_file *file);

#endif
