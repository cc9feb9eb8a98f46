// SPDX-License-Identifier: Apache-2.0
#include "usdt/ring/ring.h"

#include <string.h>

/* A thread that overwrites a record while it is copied makes the reader begin again, which happens
 * once in a while. So many times in a row are nonsense. */
#define ATTEMPTS 64

_Static_assert(sizeof(struct ring_shared) <= RING_DATA_AT, "the data begins behind the head");
_Static_assert(sizeof(struct ring_record) == 16, "the layout is a contract");

size_t ring_map_bytes(uint64_t data_bytes)
{
	return RING_DATA_AT + (size_t)data_bytes + RING_RECORD_MAX;
}

void ring_make(void *memory, uint64_t data_bytes, uint32_t clock, uint32_t pid)
{
	struct ring_shared *shared = memory;

	shared->version = RING_VERSION;
	shared->data_at = RING_DATA_AT;
	shared->clock = clock;
	shared->data_bytes = data_bytes;
	shared->pid = pid;
	__atomic_store_n(&shared->magic, RING_MAGIC, __ATOMIC_RELEASE);
}

bool ring_open(struct ring *ring, void *memory, size_t mapped_bytes)
{
	struct ring_shared *shared = memory;
	uint64_t bytes;

	if (mapped_bytes < sizeof(*shared) ||
	    __atomic_load_n(&shared->magic, __ATOMIC_ACQUIRE) != RING_MAGIC ||
	    __atomic_load_n(&shared->version, __ATOMIC_RELAXED) != RING_VERSION ||
	    __atomic_load_n(&shared->data_at, __ATOMIC_RELAXED) != RING_DATA_AT)
		return false;
	bytes = __atomic_load_n(&shared->data_bytes, __ATOMIC_RELAXED);
	if (bytes < RING_BYTES_MIN || bytes > RING_BYTES_MAX || bytes & (bytes - 1) ||
	    mapped_bytes < ring_map_bytes(bytes))
		return false;
	*ring = (struct ring){.shared = shared,
			      .data = ring_data(shared),
			      .bytes = bytes,
			      .clock = __atomic_load_n(&shared->clock, __ATOMIC_RELAXED)};
	/* A multiple of 8, so that all records are aligned. */
	ring->tail = ring->head = __atomic_load_n(&shared->tail, __ATOMIC_RELAXED) & ~7ull;
	return true;
}

/* Whether position `a` is behind `b`. */
static bool is_behind(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) > 0;
}

/* Finds out how far the thread has written. False: nonsense. */
static bool head_update(struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);

	ring->overwrite = __atomic_load_n(&ring->shared->overwrite, __ATOMIC_RELAXED);
	if (head % 8 || is_behind(ring->tail, head) ||
	    (!ring->overwrite && head - ring->tail > ring->bytes))
		return false;
	ring->head = head;
	return true;
}

/* Skips what the thread has overwritten. False: nonsense. */
static bool oldest_pass(struct ring *ring)
{
	uint64_t oldest = __atomic_load_n(&ring->shared->oldest, __ATOMIC_ACQUIRE);

	if (!is_behind(oldest, ring->tail))
		return true;
	if (oldest % 8)
		return false;
	ring->tail = oldest;
	ring->overtaken = true;
	return !is_behind(oldest, ring->head) || head_update(ring);
}

/* Copies the next record, of which at most `available` bytes are there. */
static bool record_copy(const struct ring *ring, struct ring_record *to, uint64_t available)
{
	const unsigned char *from = ring->data + (ring->tail & (ring->bytes - 1));
	struct ring_record head;
	uint64_t first = __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED);

	memcpy(&head, &first, sizeof(first));
	if (head.bytes < sizeof(head) || head.bytes % 8 || head.bytes > RING_RECORD_MAX ||
	    head.bytes > available)
		return false;
	memcpy(to, &first, sizeof(first));
	memcpy((char *)to + sizeof(first), from + sizeof(first), head.bytes - sizeof(first));
	return true;
}

enum ring_result ring_read(struct ring *ring, struct ring_record *to)
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		uint64_t before;
		bool valid;

		if (ring->tail == ring->head && !head_update(ring))
			return RING_BROKEN;
		if (ring->overwrite && !oldest_pass(ring))
			return RING_BROKEN;
		if (ring->tail == ring->head)
			return RING_EMPTY;
		if (ring->head - ring->tail > ring->bytes)
			continue; /* `oldest` was read before `head`, and is about to follow */
		before = ring->tail;
		valid = record_copy(ring, to, ring->head - ring->tail);
		if (ring->overwrite) {
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			if (!oldest_pass(ring))
				return RING_BROKEN;
			if (ring->tail != before)
				continue;
		}
		if (!valid)
			break;
		ring->tail += to->bytes;
		__atomic_store_n(&ring->shared->tail, ring->tail, __ATOMIC_RELEASE);
		return RING_RECORD;
	}
	return RING_BROKEN;
}

bool ring_overtaken(struct ring *ring, uint32_t *tid)
{
	bool overtaken = ring->overtaken;

	*tid = overtaken ? __atomic_load_n(&ring->shared->oldest_tid, __ATOMIC_RELAXED) : 0;
	ring->overtaken = false;
	return overtaken;
}

void ring_drop(struct ring *ring)
{
	ring->head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE) & ~7ull;
	ring->tail = ring->head;
	__atomic_store_n(&ring->shared->tail, ring->tail, __ATOMIC_RELEASE);
}

uint64_t ring_lost(const struct ring *ring)
{
	return __atomic_load_n(&ring->shared->lost, __ATOMIC_RELAXED);
}
