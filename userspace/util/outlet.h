/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream for messages to a terminal, pipe or socket that never blocks: a stopped pager or a full
 * pipe must not stop the tracer. Text that can't be written is queued, up to 16 KiB, and written
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
	int fd;       /* the caller's descriptor */
	int own_fd;   /* the same file, opened again with O_NONBLOCK; -1: not possible */
	bool is_socket;
	size_t kept_bytes;
	unsigned dropped; /* messages dropped because the queue was full */
	char kept[OUTLET_BYTES];
};

/* False: out of memory; the stream is stderr then. */
bool outlet_open(struct outlet *outlet, int fd);
/* Whether queued text is still waiting for the reader. */
bool outlet_is_full(struct outlet *outlet);
/* Writes the queued text, and may wait for the reader to do so. */
void outlet_close(struct outlet *outlet);

#endif
