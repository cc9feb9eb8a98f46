// SPDX-License-Identifier: Apache-2.0
#include "capture/transport/ring_reader_internal.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes that are copied at once: at least one record. There may be thousands of rings. */
#define COPY_BYTES RING_RECORD_MAX
/* The thread learns at least so often in a ring how far it was read. */
#define FREED_PART 8

int ring_reader_open(struct ring_reader *reader, const struct ring_mount *mount, pid_t pid,
		     uint64_t address, uint64_t bytes)
{
	struct ring ring;
	int result;

	*reader = (struct ring_reader){0};
	result = ring_memory_open(&reader->memory, mount, pid, address, bytes, RING_DATA_AT);
	if (result)
		return result;
	if (!ring_open(&ring, reader->memory.at, bytes)) {
		ring_memory_unmap(&reader->memory);
		return -EACCES;
	}
	reader->shared = ring.shared;
	reader->bytes = ring.bytes;
	reader->tail = reader->freed = ring.tail;
	reader->clock = ring.clock;
	return 0;
}

static void copy_free(struct ring_reader *reader)
{
	free(reader->copy);
	reader->copy = NULL;
	reader->copied = reader->at = 0;
}

void ring_reader_close(struct ring_reader *reader)
{
	copy_free(reader);
	ring_memory_unmap(&reader->memory);
}

uint64_t ring_reader_head(const struct ring_reader *reader)
{
	return __atomic_load_n(&reader->shared->head, __ATOMIC_ACQUIRE);
}

uint64_t ring_reader_lost(const struct ring_reader *reader)
{
	return __atomic_load_n(&reader->shared->lost, __ATOMIC_RELAXED);
}

/* Gives the thread the room of all records that were taken. */
static void taken_free(struct ring_reader *reader)
{
	reader->freed = reader->tail;
	__atomic_store_n(&reader->shared->tail, reader->tail, __ATOMIC_RELEASE);
}

void ring_reader_drop(struct ring_reader *reader)
{
	copy_free(reader);
	reader->tail = ring_reader_head(reader) & ~7ull;
	taken_free(reader);
}

/* Copies what follows. A record at the end of the data continues behind it. */
static bool copy_fill(struct ring_reader *reader, uint64_t limit)
{
	uint64_t from = reader->tail & (reader->bytes - 1), left = limit - reader->tail;
	uint64_t bytes = reader->bytes + RING_RECORD_MAX - from;

	if (reader->freed != reader->tail)
		taken_free(reader);
	bytes = bytes < left ? bytes : left;
	bytes = bytes < COPY_BYTES ? bytes : COPY_BYTES;
	reader->copy = reader->copy ?: malloc(COPY_BYTES);
	reader->at = 0;
	reader->copied = reader->copy ? (uint32_t)bytes : 0;
	return reader->copy &&
	       ring_memory_read(&reader->memory, RING_DATA_AT + from, reader->copy, bytes);
}

/* The next record in the copy. NULL: not all of it is there. */
static const struct ring_record *copy_record(const struct ring_reader *reader)
{
	const struct ring_record *record = (const struct ring_record *)(reader->copy + reader->at);
	uint32_t left = reader->copied - reader->at;

	return left >= sizeof(*record) && record->bytes <= left ? record : NULL;
}

enum ring_result ring_reader_next(struct ring_reader *reader, uint64_t limit,
				  const struct ring_record **record)
{
	*record = NULL;
	if ((int64_t)(limit - reader->tail) <= 0) {
		if (reader->freed != reader->tail)
			taken_free(reader);
		copy_free(reader);
		return RING_EMPTY;
	}
	if (reader->copy)
		*record = copy_record(reader);
	if (!*record) {
		if (!copy_fill(reader, limit))
			return RING_BROKEN;
		*record = copy_record(reader);
	}
	if (!*record || (*record)->bytes < sizeof(**record) || (*record)->bytes % 8)
		return RING_BROKEN;
	reader->at += (*record)->bytes;
	reader->tail += (*record)->bytes;
	if (reader->tail - reader->freed >= reader->bytes / FREED_PART)
		taken_free(reader);
	/* What follows a record at the end of the data is at its begin. */
	if ((reader->tail ^ (reader->tail - (*record)->bytes)) & ~(reader->bytes - 1))
		reader->copied = reader->at;
	return RING_RECORD;
}
