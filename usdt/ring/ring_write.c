// SPDX-License-Identifier: Apache-2.0
#include "usdt/ring/ring_write.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RSEQ_BYTES 32 /* the oldest kernel wants this length */
#define RSEQ_UNREGISTER 1

/* A ring that overwrites frees a part of its data at once, so that it does so rarely. */
#define FREED_PART 16

/* Changes a word that only this thread writes. It fails if a signal handler has changed it since it
 * was read. So it has to be one instruction, but need not lock the bus. */
static bool word_change(uint64_t *word, uint64_t from, uint64_t to)
{
#ifdef __x86_64__
	bool done;

	__asm__ __volatile__("cmpxchgq %[to], %[word]"
			     : "=@ccz"(done), [word] "+m"(*word), "+a"(from)
			     : [to] "r"(to)
			     : "memory");
	return done;
#else
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
#endif
}

/* A signal handler may set a newer limit between the two stores. Then one of them is only lower
 * than it could be. */
static void limit_set(struct ring_writer *writer, uint64_t limit)
{
	writer->limit = limit;
	writer->near = limit - RING_SHORT;
}

struct ring_writer ring_writer_open(void *memory, uint64_t data_bytes, uint32_t clock,
				    struct ring_rseq *rseq)
{
	struct ring_shared *shared = memory;
	struct ring_writer writer = {
		.shared = shared,
		.rseq = rseq,
		.mask = data_bytes - 1,
		.clock = clock,
	};

	limit_set(&writer, __atomic_load_n(&shared->oldest, __ATOMIC_RELAXED) + data_bytes);
	return writer;
}

/* What the oldest records are freed up to. */
struct oldest {
	uint64_t position;
	uint64_t records; /* that are freed */
	uint32_t tid;     /* of those that follow, if it has changed */
};

/* Walks from the oldest record until `room` bytes behind `head` are free. False: it has found
 * nonsense, such as a record that a signal handler has written meanwhile. */
static bool oldest_walk(const struct ring_writer *writer, uint64_t head, uint64_t room,
			struct oldest *oldest)
{
	while (head + room - oldest->position > writer->mask + 1 && oldest->position != head) {
		const unsigned char *at =
			ring_data(writer->shared) + (oldest->position & writer->mask);
		struct ring_record record;

		memcpy(&record, at, sizeof(record));
		if (record.bytes < sizeof(record) || record.bytes % 8 ||
		    record.bytes > head - oldest->position)
			return false;
		if (record.kind == RING_THREAD)
			memcpy(&oldest->tid, at + sizeof(record), sizeof(oldest->tid));
		oldest->position += record.bytes;
		oldest->records++;
	}
	return true;
}

/* Frees the oldest records until there is room for `bytes`. */
static void oldest_free(struct ring_writer *writer, uint64_t bytes)
{
	struct ring_shared *shared = writer->shared;
	uint64_t room = bytes + (writer->mask + 1) / FREED_PART;

	for (;;) {
		uint64_t before = __atomic_load_n(&shared->oldest, __ATOMIC_RELAXED),
			 head = __atomic_load_n(&shared->head, __ATOMIC_RELAXED),
			 tail = __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE);
		struct oldest oldest = {.position = before};
		bool valid;

		/* What the reader has taken is free. */
		if (tail % 8 == 0 && tail - before <= head - before)
			oldest.position = tail;
		valid = oldest_walk(writer, head, room, &oldest);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (!valid && __atomic_load_n(&shared->oldest, __ATOMIC_RELAXED) != before)
			continue;
		if (!valid) /* the program has overwritten its own ring */
			oldest.position = head;
		if (oldest.tid)
			__atomic_store_n(&shared->oldest_tid, oldest.tid, __ATOMIC_RELAXED);
		if (!word_change(&shared->oldest, before, oldest.position))
			continue;
		shared->overwritten += oldest.records;
		/* The reader sees this before it sees anything that is written there. */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		limit_set(writer, oldest.position + writer->mask + 1);
		return;
	}
}

/* Looks for room, and counts a record for which there is none. A signal handler may do the same at
 * any time. What it knows then is newer than ours, but ours is not wrong. */
static bool room_make(struct ring_writer *writer, uint64_t bytes)
{
	struct ring_shared *shared = writer->shared;

	if (__atomic_load_n(&shared->overwrite, __ATOMIC_RELAXED)) {
		oldest_free(writer, bytes);
		return true;
	}
	limit_set(writer, __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE) + writer->mask + 1);
	if (__atomic_load_n(&shared->head, __ATOMIC_RELAXED) + bytes <= writer->limit)
		return true;
	__atomic_fetch_add(&shared->lost, 1, __ATOMIC_RELAXED);
	return false;
}

/* As ring_put(), for a thread that no signal handler interrupts. */
static bool put_undisturbed(struct ring_writer *writer, const struct ring_entry *entry)
{
	uint64_t head = __atomic_load_n(&writer->shared->head, __ATOMIC_RELAXED);
	struct ring_record record = {
		.bytes = (uint16_t)entry->header,
		.kind = (uint16_t)(entry->header >> 16),
		.ticks = writer->clock == TICKS_COUNTER ? ticks_counter() : entry->ns,
	};
	unsigned char *to = ring_data(writer->shared) + (head & writer->mask);
	int cpu = sched_getcpu();

	if (head + record.bytes > writer->limit)
		return false;
	record.cpu = (uint32_t)(cpu < 0 ? 0 : cpu);
	memcpy(to, &record, sizeof(record));
	to += sizeof(record);
	memcpy(to, &entry->first, 8);
	memcpy(to + 8, entry->words, entry->count * 8);
	__atomic_store_n(&writer->shared->head, head + record.bytes, __ATOMIC_RELEASE);
	return true;
}

/* The system call instead of the libc's function, which leaves out the libc's own signals: that for
 * pthread_cancel() must not interrupt a record either. */
static void signals_set(int how, const uint64_t *set, uint64_t *before)
{
	syscall(SYS_rt_sigprocmask, how, set, before, sizeof(*set));
}

static bool write_blocked(struct ring_writer *writer, const struct ring_entry *entry)
{
	uint64_t all = UINT64_MAX, before = 0;
	int code = errno;
	bool done;

	signals_set(SIG_BLOCK, &all, &before);
	while (!(done = put_undisturbed(writer, entry)))
		if (!room_make(writer, (uint16_t)entry->header))
			break;
	signals_set(SIG_SETMASK, &before, NULL);
	errno = code;
	return done;
}

static bool put(struct ring_writer *writer, const struct ring_entry *entry)
{
#if RING_HAS_RSEQ
	return ring_put(writer, entry);
#else
	(void)writer;
	(void)entry;
	return false;
#endif
}

bool ring_write_slow(struct ring_writer *writer, const struct ring_entry *entry)
{
	if (!RING_HAS_RSEQ || !writer->rseq)
		return write_blocked(writer, entry);
	while (!put(writer, entry))
		if (!room_make(writer, (uint16_t)entry->header))
			return false;
	return true;
}

bool ring_write(struct ring_writer *writer, enum ring_kind kind, uint64_t first,
		const uint64_t *words, uint64_t count)
{
	struct ring_entry entry = ring_entry(kind, first, words, count);

	if (writer->clock == TICKS_NONE) /* the recording has ended meanwhile */
		return false;
	if (writer->clock != TICKS_COUNTER)
		entry.ns = ticks_ns();
	return ring_write_slow(writer, &entry);
}

/* ---- the struct rseq of a thread ---- */

/* glibc 2.35 and later registers one for each thread. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

ptrdiff_t ring_rseq_offset(void)
{
	return RING_HAS_RSEQ && &__rseq_offset && &__rseq_size && __rseq_size ? __rseq_offset : 0;
}

struct ring_rseq *ring_rseq_find(struct ring_rseq *own)
{
	struct ring_rseq *theirs;

	if (!RING_HAS_RSEQ)
		return NULL;
	if (ring_rseq_offset()) {
		theirs = (struct ring_rseq *)((char *)__builtin_thread_pointer() +
					      ring_rseq_offset());
		return (int32_t)theirs->cpu_id < 0 ? NULL : theirs;
	}
	/* Another library may have registered one. The kernel allows only one for each thread. */
	return syscall(SYS_rseq, own, RSEQ_BYTES, 0, RING_RSEQ_SIGNATURE) ? NULL : own;
}

void ring_rseq_leave(struct ring_rseq *own)
{
	syscall(SYS_rseq, own, RSEQ_BYTES, RSEQ_UNREGISTER, RING_RSEQ_SIGNATURE);
}
