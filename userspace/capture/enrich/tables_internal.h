/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the unwind tables of files in a separate thread, or takes them from the cache
 * (target/worker/file_cache.h) in the folder that the variable WAFFLE_CACHE names. A library with a
 * million functions takes tenths of a second; in the draining thread this would let the kernel's
 * buffers overflow.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_TABLES_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_TABLES_INTERNAL_H

#include "target/dwarf/cfi.h"
#include "util/error.h"

struct table_maker;

struct table_made {
	uint32_t file; /* the caller's number */
	bool no_memory;
	struct elf_segments segments;
	struct cfi_table table; /* the caller frees its rows */
	char *path;             /* the caller frees it */
};

int table_maker_open(struct table_maker **maker, struct error *err);
/* Waits until the thread has finished its current file. */
void table_maker_close(struct table_maker *maker);

/* Whether another file may be queued. If not, more fit once queued tables are finished. */
bool table_maker_has_room(struct table_maker *maker);
/* Queues an open file and takes ownership of the descriptor. False: out of memory. */
bool table_maker_ask(struct table_maker *maker, uint32_t file, int fd, const char *path);
/* Takes the next finished table. False: there is none now. */
bool table_maker_take(struct table_maker *maker, struct table_made *made);
/* Waits until queued tables are finished, up to a time limit: all of them, or only those of small
 * files and those in the cache. */
void table_maker_wait(struct table_maker *maker, bool all, uint64_t ns);

#endif
