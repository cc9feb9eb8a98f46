/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the records of a ring in another process (usdt/ring/ring.h). Only the ring's header is
 * mapped. Records are copied in blocks, so whatever is checked is private, and pages that the
 * process has not written stay as they are.
 */
#ifndef WAFFLE_CAPTURE_TRANSPORT_RING_READER_INTERNAL_H
#define WAFFLE_CAPTURE_TRANSPORT_RING_READER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/transport/ring_memory_internal.h"
#include "usdt/ring/ring.h"

struct ring_reader {
	struct ring_memory memory;
	struct ring_shared *shared; /* the header, which the process may write at any time */
	uint64_t bytes;             /* size of the data */
	uint64_t tail;              /* position of the next record */
	uint64_t freed;             /* the thread knows that the reader has come so far */
	uint32_t clock;             /* enum ticks_kind */
	unsigned char *copy; /* of the data from `tail` on, without what was taken; or NULL */
	uint32_t copied, at; /* bytes in the copy, and those that were taken */
};

/* Opens a ring at an address of a process, at its `tail`. Negative errno; -EACCES: it is none. */
int ring_reader_open(struct ring_reader *reader, const struct ring_mount *mount, pid_t pid,
		     uint64_t address, uint64_t bytes);
void ring_reader_close(struct ring_reader *reader);

/* How far the thread has written. */
uint64_t ring_reader_head(const struct ring_reader *reader);
/* Number of records for which there was no room since the ring was made. */
uint64_t ring_reader_lost(const struct ring_reader *reader);
/* Skips everything that was written so far. */
void ring_reader_drop(struct ring_reader *reader);

/*
 * Takes the next record in front of position `limit`, which is at most the ring's size behind
 * `tail`. It is valid until the next call. Its length is that of no kind yet. RING_EMPTY: there is
 * none. RING_BROKEN: the memory contains nonsense, or there is no memory for the copy.
 */
enum ring_result ring_reader_next(struct ring_reader *reader, uint64_t limit,
				  const struct ring_record **record);

#endif
