/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes unwinding tables of files in a thread of its own. A library of a million functions takes
 * seconds; if the draining thread did that, the kernel's buffers would overflow meanwhile.
 */
#ifndef WAFFLE_CAPTURE_TABLES_H
#define WAFFLE_CAPTURE_TABLES_H

#include "target/cfi.h"
#include "util/error.h"

struct table_maker;

struct table_made {
	uint32_t file; /* as it was asked for */
	bool no_memory;
	struct elf_segments segments;
	struct cfi_table table; /* its rows are the caller's to free */
	char *path;             /* as well */
};

int table_maker_open(struct table_maker **maker, struct error *err);
/* Waits until the file that the thread works on is finished. */
void table_maker_close(struct table_maker *maker);

/* Queues an open file, whose descriptor it takes over. False: out of memory. */
bool table_maker_ask(struct table_maker *maker, uint32_t file, int fd, const char *path);
/* Takes the next finished table; false: there is none now. */
bool table_maker_take(struct table_maker *maker, struct table_made *made);
/* Waits until all queued tables are finished, up to a time limit. */
void table_maker_wait(struct table_maker *maker, uint64_t ns);

#endif
