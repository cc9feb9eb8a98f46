/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of records between one thread, which writes, and one collector, which reads: the contract
 * between libwaffle and whoever drains its rings. No side waits, locks or makes a system call.
 *
 *	shared memory: struct ring_shared | pad to ring_shared.data_at | data_bytes of records
 *
 * `head` and `tail` count bytes and never go back. The thread reserves a record by writing its
 * `bytes` at `head` and then advancing `head`. It writes `kind` with RING_COMMITTED last. A signal
 * handler may interrupt it anywhere and write records of its own behind the reserved one. If the
 * handler leaves with siglongjmp(), or the thread dies, the reserved record is never committed, and
 * the collector skips it.
 *
 * What is free contains the mark of the lap in which it is used next, in every eighth byte: 0 in
 * the first lap, then RING_MARK | lap. The collector writes it, and the thread checks it at `head`.
 *
 * A record does not wrap. RING_PAD fills the end of the data if the next one does not fit there.
 * When there is no room, the thread counts the record as lost.
 *
 * A tracer in another process must trust nothing in the memory: ring_read() copies each word that
 * it checks, and the sizes are those of its own struct ring.
 */
#ifndef WAFFLE_USDT_RING_H
#define WAFFLE_USDT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC 0x676e6972u /* "ring" */
#define RING_VERSION 1
#define RING_BYTES_MIN (16u << 10) /* the data has room for some of the longest records */
#define RING_BYTES_MAX (1u << 30)
#define RING_BYTES_DEFAULT (4u << 20)

struct ring_shared {
	uint32_t magic, version;
	uint32_t data_at;    /* offset of the data from the start of this struct */
	uint32_t clock;      /* enum ticks_kind (ticks.h) */
	uint64_t data_bytes; /* a power of two */
	uint32_t pid, tid;   /* as the process sees them */
	/* Written by the thread. */
	_Alignas(64) uint64_t head;
	uint64_t lost; /* records for which there was no room */
	/* Written by the collector. */
	_Alignas(64) uint64_t tail;
};

enum ring_kind {
	RING_PAD = 1,
	RING_HIT,      /* u64 address of the probe, then the frame (include/waffle/abi.h) */
	RING_SPAN_END, /* u64 id of the span, u64 address of its begin's probe */
};
#define RING_COMMITTED 0x8000u

#define RING_MARK 0x80000000u

struct ring_record {
	uint32_t bytes; /* with this header: a multiple of 8. RING_PAD may have the first 8 only */
	uint16_t kind;  /* enum ring_kind | RING_COMMITTED */
	uint16_t cpu;
	uint64_t ticks; /* ring_shared.clock */
};

/* One side's view of a ring. The sizes are private, since the memory is shared. */
struct ring {
	struct ring_shared *shared;
	unsigned char *data;
	uint64_t bytes; /* size of the data */
	uint64_t tail;  /* the writer's last known tail; the reader's position */
	uint32_t clock; /* enum ticks_kind */
	uint32_t shift; /* log2 of `bytes` */
};

/* The mark of free memory at a position. */
static inline uint32_t ring_mark(const struct ring *ring, uint64_t position)
{
	uint64_t lap = position >> ring->shift;

	return lap ? RING_MARK | (uint32_t)lap : 0;
}

/* Bytes to map for a ring with this much data. */
size_t ring_map_bytes(uint64_t data_bytes);
/* Makes a ring in cleared memory of ring_map_bytes(). It is async-signal-safe, as ring_write() is.
 */
void ring_init(struct ring *ring, void *memory, uint64_t data_bytes, uint32_t clock, uint32_t pid,
	       uint32_t tid);

enum ring_result {
	RING_EMPTY,
	RING_RECORD, /* *record and its contents were copied */
	RING_BUSY,   /* the next record is not committed yet */
	RING_BROKEN, /* the memory contains nonsense; ring_skip() */
};

/* Takes the next record into `to`, which has RING_BYTES_MIN bytes and begins with the header. */
enum ring_result ring_read(struct ring *ring, struct ring_record *to);

/* Skips the next record after RING_BUSY or RING_BROKEN. If its length is not known, all that
 * follows is skipped as well. Returns the number of records that this loses, as far as it is known.
 */
uint64_t ring_skip(struct ring *ring);
/* Records for which there was no room, and bytes that the thread has reserved since it began. */
uint64_t ring_lost(const struct ring *ring);
uint64_t ring_head(const struct ring *ring);
/* Skips everything, for a reader that begins. */
void ring_drop(struct ring *ring);

#endif
