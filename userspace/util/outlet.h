/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream for messages to a terminal, pipe or socket, which never waits: the reader may be a pager
 * that was stopped or a full pipe that nobody reads, and the writer has more important things to
 * do. What can't be written is kept, up to 16 KiB, and written when there is room.
 */
#ifndef WAFFLE_UTIL_OUTLET_H
#define WAFFLE_UTIL_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define OUTLET_BYTES 16384

struct outlet {
	FILE *stream; /* flush it behind each message */
	int fd;       /* the caller's */
	int own_fd;   /* the same file, opened again without waiting; -1: it can't be */
	bool is_socket;
	size_t kept_bytes;
	unsigned dropped; /* messages */
	char kept[OUTLET_BYTES];
};

/* False: out of memory; the stream is stderr then. */
bool outlet_open(struct outlet *outlet, int fd);
/* Whether the reader has yet to read what was written before. */
bool outlet_is_full(struct outlet *outlet);
/* Writes what is kept, and waits for the reader. */
void outlet_close(struct outlet *outlet);

#endif
