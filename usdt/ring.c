// SPDX-License-Identifier: Apache-2.0
#include "usdt/ring.h"

#include <string.h>

#include "usdt/ticks.h"

#define DATA_AT 4096u
/* Words of a header that a pad has. */
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
			      .clock = clock};
}

/* ---- the thread ---- */

/* Changes a word that only this thread writes. It fails if a signal handler has changed it since it
 * was read. So it has to be one instruction, but need not lock the bus. */
#ifdef __x86_64__
#define WORD_CHANGE(word, from, to)                                                                \
	({                                                                                         \
		__typeof__(*(word)) old_ = (from);                                                 \
		bool done_;                                                                        \
		__asm__ __volatile__("cmpxchg %[to_], %[word_]"                                    \
				     : "=@ccz"(done_), [word_] "+m"(*(word)), "+a"(old_)           \
				     : [to_] "r"((__typeof__(*(word)))(to))                        \
				     : "memory");                                                  \
		done_;                                                                             \
	})
#else
#define WORD_CHANGE(word, from, to)                                                                \
	({                                                                                         \
		__typeof__(*(word)) old_ = (from);                                                 \
		__atomic_compare_exchange_n((word), &old_, (to), false, __ATOMIC_RELAXED,          \
					    __ATOMIC_RELAXED);                                     \
	})
#endif

/* The CPU that the thread runs on, which the kernel keeps in the thread's struct rseq. 0 if the
 * libc does not register one. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

static inline uint16_t cpu_now(void)
{
	uint32_t cpu;

	if (!&__rseq_offset || !&__rseq_size || !__rseq_size)
		return 0;
	cpu = *(volatile uint32_t *)((char *)__builtin_thread_pointer() + __rseq_offset);
	return (uint16_t)cpu;
}

static bool has_room(struct ring *ring, uint64_t end)
{
	if (end - ring->tail <= ring->bytes)
		return true;
	ring->tail = __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE);
	if (end - ring->tail <= ring->bytes)
		return true;
	__atomic_fetch_add(&ring->shared->lost, 1, __ATOMIC_RELAXED);
	return false;
}

static inline void record_commit(struct ring_record *record, enum ring_kind kind)
{
	__atomic_store_n(&record->kind, (uint16_t)(kind | RING_COMMITTED), __ATOMIC_RELEASE);
}

/*
 * Reserves a record and, if it would wrap, a pad before it. NULL: there is no room.
 *
 * A record is claimed by writing its length where `head` points, which contains 0 there, and then
 * `head` is advanced. A signal handler that comes between the two finds the claim and advances
 * `head` over it. So each reserved record has its length from the start, also if the thread never
 * returns from the handler.
 */
static inline struct ring_record *reserve(struct ring *ring, uint32_t bytes)
{
	for (;;) {
		uint64_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_RELAXED);
		uint64_t at = head & (ring->bytes - 1), left = ring->bytes - at;
		struct ring_record *record = (struct ring_record *)(ring->data + at);
		bool fits = __builtin_expect(bytes <= left, 1);
		uint32_t size = fits ? bytes : (uint32_t)left, claimed;

		if (__builtin_expect(!has_room(ring, head + size + (fits ? 0 : bytes)), 0))
			return NULL;
		claimed = __atomic_load_n(&record->bytes, __ATOMIC_RELAXED);
		if (__builtin_expect(claimed || !WORD_CHANGE(&record->bytes, 0, size), 0)) {
			claimed = __atomic_load_n(&record->bytes, __ATOMIC_RELAXED);
			WORD_CHANGE(&ring->shared->head, head, head + claimed);
			continue;
		}
		WORD_CHANGE(&ring->shared->head, head, head + size);
		if (fits)
			return record;
		record_commit(record, RING_PAD);
	}
}

static inline void words_copy(uint64_t *to, const void *from, size_t bytes)
{
	const uint64_t *words = from;

	for (size_t i = 0; i < bytes / 8; i++)
		to[i] = words[i];
}

bool ring_write(struct ring *ring, enum ring_kind kind, const void *first, size_t first_bytes,
		const void *rest, size_t rest_bytes)
{
	struct ring_record *record =
		reserve(ring, (uint32_t)(sizeof(*record) + first_bytes + rest_bytes));
	uint64_t *to = (uint64_t *)(record + 1);

	if (__builtin_expect(!record, 0))
		return false;
	record->cpu = cpu_now();
	record->ticks = ticks_now(ring->clock);
	words_copy(to, first, first_bytes);
	words_copy(to + first_bytes / 8, rest, rest_bytes);
	record_commit(record, kind);
	return true;
}

/* ---- the collector ---- */

static void advance(struct ring *ring, uint64_t bytes)
{
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

/* Whether a record of this length can be the next one. */
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
			return bytes && !length_is_valid(ring, bytes, available) ? RING_BROKEN
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
		memset(record, 0, bytes);
		advance(ring, bytes);
		if (kind != RING_PAD)
			return RING_RECORD;
	}
}

void ring_drop(struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);

	memset(ring->data, 0, ring->bytes);
	ring->tail = head & ~7ull;
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
	memset(record, 0, bytes);
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
