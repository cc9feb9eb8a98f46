/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream for messages to a terminal, pipe or socket that never blocks: a stopped pager or a full
 * pipe must not hold up the writer. Text that can't be written is queued, up to 16 KiB, and written
 * when there is room.
 */
#ifndef WAFFLE_UTIL_OUTLET_H
#define WAFFLE_UTIL_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define OUTLET_BYTES 16384

struct outlet {
	FILE *stream; /* flush it after each message */
	int fd;       /* the caller's */
	int own_fd;   /* the same file, opened again with O_NONBLOCK; -1: it can't be */
	bool is_socket;
	size_t kept_bytes;
	unsigned dropped; /* messages */
	char kept[OUTLET_BYTES];
};

/* False: out of memory; the stream is stderr then. */
bool outlet_open(struct outlet *outlet, int fd);
/* Whether queued text still waits for the reader. */
bool outlet_is_full(struct outlet *outlet);
/* Writes the queued text, which may wait for the reader. */
void outlet_close(struct outlet *outlet);

#endif
