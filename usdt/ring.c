// SPDX-License-Identifier: Apache-2.0
#include "usdt/ring.h"

#include <string.h>

#define DATA_AT 4096u
/* A pad has only this much of a record's header. */
#define PAD_BYTES offsetof(struct ring_record, ticks)

_Static_assert(sizeof(struct ring_shared) <= DATA_AT, "the data begins behind the head");
_Static_assert(sizeof(struct ring_record) == 16 && PAD_BYTES == 8, "the layout is a contract");

size_t ring_map_bytes(uint64_t data_bytes)
{
	return DATA_AT + (size_t)data_bytes;
}

void ring_init(struct ring *ring, void *memory, uint64_t data_bytes, uint32_t clock, uint32_t pid,
	       uint32_t tid)
{
	struct ring_shared *shared = memory;

	shared->version = RING_VERSION;
	shared->data_at = DATA_AT;
	shared->clock = clock;
	shared->data_bytes = data_bytes;
	shared->pid = pid;
	shared->tid = tid;
	__atomic_store_n(&shared->magic, RING_MAGIC, __ATOMIC_RELEASE);
	*ring = (struct ring){.shared = shared,
			      .data = (unsigned char *)memory + DATA_AT,
			      .bytes = data_bytes,
			      .clock = clock,
			      .shift = (uint32_t)__builtin_ctzll(data_bytes)};
}

/* ---- the collector ---- */

/* Writes the marks of positions at which the thread will write next. */
static void mark_free(struct ring *ring, uint64_t from, uint64_t bytes)
{
	while (bytes) {
		uint64_t at = from & (ring->bytes - 1), left = ring->bytes - at;
		uint64_t part = bytes < left ? bytes : left, mark = ring_mark(ring, from);
		uint64_t *words = (uint64_t *)(ring->data + at);

		for (uint64_t i = 0; i < part / 8; i++)
			words[i] = mark;
		from += part;
		bytes -= part;
	}
}

/* Frees the next bytes, which do not wrap. */
static void advance(struct ring *ring, uint64_t bytes)
{
	mark_free(ring, ring->tail + ring->bytes, bytes);
	ring->tail += bytes;
	__atomic_store_n(&ring->shared->tail, ring->tail, __ATOMIC_RELEASE);
}

static struct ring_record *next_record(const struct ring *ring)
{
	return (struct ring_record *)(ring->data + (ring->tail & (ring->bytes - 1)));
}

/* Bytes that the thread has reserved and the collector has not taken. False: nonsense. */
static bool filled(const struct ring *ring, uint64_t *bytes)
{
	*bytes = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE) - ring->tail;
	return *bytes <= ring->bytes && *bytes % 8 == 0;
}

/* The next record must lie in what the thread has reserved, and must not wrap. */
static bool length_is_valid(const struct ring *ring, uint32_t bytes, uint64_t available)
{
	uint64_t left = ring->bytes - (ring->tail & (ring->bytes - 1));

	return bytes >= PAD_BYTES && bytes % 8 == 0 && bytes <= available && bytes <= left;
}

enum ring_result ring_read(struct ring *ring, struct ring_record *to)
{
	for (;;) {
		struct ring_record *record = next_record(ring);
		uint64_t available;
		uint32_t bytes;
		uint16_t kind;

		if (!filled(ring, &available))
			return RING_BROKEN;
		if (!available)
			return RING_EMPTY;
		kind = __atomic_load_n(&record->kind, __ATOMIC_ACQUIRE);
		bytes = __atomic_load_n(&record->bytes, __ATOMIC_RELAXED);
		if (!(kind & RING_COMMITTED))
			return bytes != ring_mark(ring, ring->tail) &&
					       !length_is_valid(ring, bytes, available)
				       ? RING_BROKEN
				       : RING_BUSY;
		kind &= (uint16_t)~RING_COMMITTED;
		if (!length_is_valid(ring, bytes, available))
			return RING_BROKEN;
		if (kind != RING_PAD && (bytes < sizeof(*record) || bytes > RING_BYTES_MIN))
			return RING_BROKEN;
		if (kind != RING_PAD) {
			memcpy(to, record, bytes);
			to->bytes = bytes;
			to->kind = kind;
		}
		advance(ring, bytes);
		if (kind != RING_PAD)
			return RING_RECORD;
	}
}

void ring_drop(struct ring *ring)
{
	uint64_t available;

	if (filled(ring, &available)) {
		mark_free(ring, ring->tail + ring->bytes, available);
		ring->tail += available;
	} else {
		/* Nonsense: there may be some everywhere. */
		ring->tail = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE) & ~7ull;
		mark_free(ring, ring->tail, ring->bytes);
	}
	__atomic_store_n(&ring->shared->tail, ring->tail, __ATOMIC_RELEASE);
}

uint64_t ring_skip(struct ring *ring)
{
	struct ring_record *record = next_record(ring);
	uint32_t bytes = __atomic_load_n(&record->bytes, __ATOMIC_RELAXED);
	uint64_t available;

	if (!filled(ring, &available) || !length_is_valid(ring, bytes, available)) {
		ring_drop(ring);
		return 1;
	}
	advance(ring, bytes);
	return 1;
}

uint64_t ring_lost(const struct ring *ring)
{
	return __atomic_load_n(&ring->shared->lost, __ATOMIC_RELAXED);
}

uint64_t ring_head(const struct ring *ring)
{
	return __atomic_load_n(&ring->shared->head, __ATOMIC_RELAXED);
}
