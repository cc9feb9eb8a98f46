/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of a ring (ring.h), inline in the hot path of sites.
 *
 *	struct ring_record *record = ring_reserve(ring, bytes);
 *	if (record) {
 *		record->cpu = …; record->ticks = …; and the contents behind it
 *		ring_commit(record, kind);
 *	}
 *
 * `bytes` is the length of the record with its header, a multiple of 8 and at most RING_BYTES_MIN.
 * Only the ring's thread may call these functions, also in its signal handlers.
 */
#ifndef WAFFLE_USDT_RING_WRITE_H
#define WAFFLE_USDT_RING_WRITE_H

#include "usdt/ring.h"

#define RING_AHEAD 512 /* bytes between the record and what is prefetched */

/* Changes a word that only this thread writes. It fails if a signal handler has changed it since it
 * was read. So it has to be one instruction, but need not lock the bus. */
#ifdef __x86_64__
#define RING_WORD_CHANGE(word, from, to)                                                           \
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
#define RING_WORD_CHANGE(word, from, to)                                                           \
	({                                                                                         \
		__typeof__(*(word)) old_ = (from);                                                 \
		__atomic_compare_exchange_n((word), &old_, (to), false, __ATOMIC_RELAXED,          \
					    __ATOMIC_RELAXED);                                     \
	})
#endif

/* Begins to fetch a cache line, to write to it. */
static inline void ring_fetch(const void *line)
{
#ifdef __x86_64__
	/* On old processors this instruction is a nop. So the compiler uses it only where it is
	 * told that none of them has to run the program. */
	__asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Returns true if the ring has room up to this position. Otherwise it counts the record as lost. */
static inline bool ring_has_room(struct ring *ring, uint64_t end)
{
	if (__builtin_expect(end - ring->tail <= ring->bytes, 1))
		return true;
	ring->tail = __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE);
	if (end - ring->tail <= ring->bytes)
		return true;
	__atomic_fetch_add(&ring->shared->lost, 1, __ATOMIC_RELAXED);
	return false;
}

/* Makes a record readable. Its cpu and ticks are set, and its contents are written. */
static inline void ring_commit(struct ring_record *record, enum ring_kind kind)
{
	__atomic_store_n(&record->kind, (uint16_t)(kind | RING_COMMITTED), __ATOMIC_RELEASE);
}

/*
 * Reserves a record and, if it would wrap, a pad before it. NULL: there is no room.
 *
 * A record is claimed by replacing the mark at `head` by its length, and then `head` is advanced. A
 * signal handler that comes between the two finds the claim and advances `head` over it. So each
 * reserved record has its length from the start, also if the thread never returns from the handler.
 * If handlers have used the place and the collector has cleared it before it is claimed, it has the
 * mark of the next lap, and the claim fails.
 */
static inline struct ring_record *ring_reserve(struct ring *ring, uint32_t bytes)
{
	for (;;) {
		uint64_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_RELAXED);
		uint64_t at = head & (ring->bytes - 1), left = ring->bytes - at;
		struct ring_record *record = (struct ring_record *)(ring->data + at);
		bool fits = __builtin_expect(bytes <= left, 1);
		uint32_t size = fits ? bytes : (uint32_t)left, mark = ring_mark(ring, head), found;

		if (!ring_has_room(ring, head + size + (fits ? 0 : bytes)))
			return NULL;
		found = __atomic_load_n(&record->bytes, __ATOMIC_RELAXED);
		if (__builtin_expect(found != mark, 0)) {
			if (found && !(found & RING_MARK))
				RING_WORD_CHANGE(&ring->shared->head, head, head + found);
			continue;
		}
		if (__builtin_expect(!RING_WORD_CHANGE(&record->bytes, mark, size), 0))
			continue;
		RING_WORD_CHANGE(&ring->shared->head, head, head + size);
		if (__builtin_expect(fits, 1)) {
			/* The collector has cleared what comes next, so it is in the cache of
			 * another CPU. */
			ring_fetch(ring->data + ((at + RING_AHEAD) & (ring->bytes - 1)));
			return record;
		}
		ring_commit(record, RING_PAD);
	}
}

#endif
