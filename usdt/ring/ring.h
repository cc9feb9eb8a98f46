/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of records between one thread, which writes, and one reader: the contract between
 * libwaffle and whoever drains its rings. No side waits, locks or makes a system call.
 *
 *	shared memory: struct ring_shared | pad to data_at | data_bytes of records | RING_RECORD_MAX
 *
 * `head` and `tail` count bytes and never go back. A record at position P begins at data[P modulo
 * data_bytes] and does not wrap: it may use the room behind the data instead, and the next record
 * then begins where it would have begun in a wrapped ring.
 *
 *	oldest ≤ tail ≤ head:   [tail, head) are whole records that the reader has not taken
 *
 * The thread writes a record behind `head`, and then advances `head` over it. Between the two a
 * signal handler may write records of its own. Then the thread begins again (ring_write.h). So a
 * handler that leaves with siglongjmp(), or a kill at any instruction, leaves nothing half-written.
 *
 * When there is no room, the thread counts the record as lost. If `overwrite` is set, it frees the
 * oldest records instead, by advancing `oldest` over them before it writes there. So a reader that
 * finds `oldest` unchanged after it has copied a record has copied a whole one.
 *
 * The records that follow a RING_THREAD are those of its thread. A ring whose thread has ended is
 * given to another one without being drained.
 *
 * A reader in another process must trust nothing in the memory: it uses each word only after it has
 * copied and checked it, and the sizes are those of its own struct ring.
 */
#ifndef WAFFLE_USDT_RING_RING_H
#define WAFFLE_USDT_RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC 0x676e6972u /* "ring" */
#define RING_VERSION 3
#define RING_RECORD_MAX (16u << 10) /* bytes of a record with its header */
#define RING_BYTES_MIN (16u << 10)
#define RING_BYTES_MAX (1u << 30)
#define RING_BYTES_DEFAULT (4u << 20)

struct ring_shared {
	uint32_t magic, version;
	uint32_t data_at;    /* offset of the data from the start of this struct */
	uint32_t clock;      /* enum ticks_kind (ticks.h) */
	uint64_t data_bytes; /* a power of two */
	uint32_t pid, tid;   /* as the process sees them; `tid` is that of the last RING_THREAD */
	/* Written by the thread. */
	_Alignas(64) uint64_t head;
	uint64_t oldest;      /* only if records are overwritten */
	uint64_t overwritten; /* number of records that were, read ones included */
	uint64_t lost;        /* records for which there was no room */
	uint32_t oldest_tid;  /* of the record at `oldest`, if its RING_THREAD was overwritten */
	/* Written by the reader. */
	_Alignas(64) uint64_t tail;
	/* 1: overwrite the oldest records. A tracer sets it before `reader`. Both members
	 * are written rarely, so they are not in the cache line of `tail`. */
	_Alignas(64) uint32_t overwrite;
	/* Number of the tracer's session, from when on it takes the records. 0: not yet. Only in
	 * rings for a tracer. */
	uint32_t reader;
};

enum ring_kind {
	RING_HIT = 2,  /* u64 address of the probe, then the frame (include/waffle/abi.h) */
	RING_SPAN_END, /* u64 id of the span, u64 address of its begin's probe */
	RING_THREAD,   /* struct ring_thread: the next records are this thread's */
	/* u64 address of the name, u64 number of the track, u64 start and u64 end in
	 * CLOCK_MONOTONIC ns, then the frame */
	RING_TRACK_HIT,
};

struct ring_record {
	uint16_t bytes; /* with this header: a multiple of 8, at most RING_RECORD_MAX */
	uint16_t kind;  /* enum ring_kind */
	uint32_t cpu;
	uint64_t ticks; /* ring_shared.clock */
};

#define RING_COMM_BYTES 16

struct ring_thread {
	uint64_t tid; /* as the process sees it */
	char comm[RING_COMM_BYTES];
};

#define RING_DATA_AT 4096u /* data_at of all rings of this version */

static inline unsigned char *ring_data(struct ring_shared *shared)
{
	return (unsigned char *)shared + RING_DATA_AT;
}

/* Bytes to map for a ring with this much data. */
size_t ring_map_bytes(uint64_t data_bytes);
/* Writes the header of a ring into cleared memory of ring_map_bytes(). Async-signal-safe. */
void ring_make(void *memory, uint64_t data_bytes, uint32_t clock, uint32_t pid);

/* The reader's view of a ring. The sizes are private, since the memory is shared. */
struct ring {
	struct ring_shared *shared;
	const unsigned char *data;
	uint64_t bytes; /* size of the data */
	uint64_t tail;  /* position of the next record */
	uint64_t head;  /* as it was when the reader last ran out of records */
	uint32_t clock; /* enum ticks_kind */
	bool overwrite;
	bool overtaken; /* the thread has overwritten records that were not read */
};

/* Opens a ring in mapped memory, which anyone may have written, at its `tail`. False: it is none.
 */
bool ring_open(struct ring *ring, void *memory, size_t mapped_bytes);

enum ring_result {
	RING_EMPTY,
	RING_RECORD, /* *record and its contents were copied; their length is that of no kind yet */
	RING_BROKEN, /* the memory contains nonsense; ring_drop() */
};

/* Takes the next record into `to`, which has RING_RECORD_MAX bytes and begins with the header. */
enum ring_result ring_read(struct ring *ring, struct ring_record *to);
/*
 * Whether the thread has overwritten records since the last call, before they could be read. Then
 * *tid is that of the thread whose records follow, or 0 if it is the same as before.
 */
bool ring_overtaken(struct ring *ring, uint32_t *tid);
/* Skips everything that was written so far. */
void ring_drop(struct ring *ring);
/* Number of records for which there was no room since the ring was made. */
uint64_t ring_lost(const struct ring *ring);

#endif
