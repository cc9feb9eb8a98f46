/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of a ring (ring.h), inline in the hot path of sites. Only the ring's thread may
 * call these functions, also in its signal handlers.
 *
 * A record is written in one restartable sequence, of which the kernel knows through the thread's
 * struct rseq (rseq(2)): when a signal is delivered or the thread is preempted, it continues at the
 * beginning of the sequence. The last instruction advances `head`. So a signal handler that writes
 * records runs either before or after the sequence, and needs no protection from it.
 *
 *	    ┌───────────── a signal or preemption ─────────────┐
 *	    ▼                                                  │
 *	load head ─→ is there room ─→ copy, read the clock ─→ store head
 *	                  └─ no ─→ ring_write_slow()
 *
 * A thread without a struct rseq blocks its signals instead, which costs two system calls.
 */
#ifndef WAFFLE_USDT_RING_WRITE_H
#define WAFFLE_USDT_RING_WRITE_H

#include "usdt/ring.h"
#include "usdt/ticks.h"

/* The beginning of the kernel's struct rseq, which older headers do not have. */
struct ring_rseq {
	uint32_t cpu_id_start;
	uint32_t cpu_id; /* the CPU that the thread runs on; negative: not registered */
	uint64_t rseq_cs;
	uint32_t flags;
	uint32_t unused[11];
} __attribute__((aligned(32)));

/* Bytes before the abort handler that the kernel wants to see (RSEQ_SIG of glibc and librseq). */
#define RING_RSEQ_SIGNATURE 0x53053053

#if defined(__x86_64__) && defined(__LP64__)
#define RING_HAS_RSEQ 1
#else
#define RING_HAS_RSEQ 0
#endif

struct ring_writer {
	struct ring_shared *shared; /* NULL: no ring, also in the child of a fork() */
	unsigned char *data;
	uint64_t mask;  /* size of the data - 1 */
	uint64_t limit; /* records may end here, as far as the thread knows */
	uint32_t clock; /* enum ticks_kind */
};

/* A record that is to be written: a header, a word, and more words. */
struct ring_entry {
	uint64_t header; /* of struct ring_record: bytes and kind */
	uint64_t first;
	const uint64_t *words;
	uint64_t count; /* of `words`, at least 1 */
	uint64_t ns;    /* the time, for TICKS_NS */
};

/* A writer for the ring in `memory` (ring_make()). */
struct ring_writer ring_writer_open(void *memory, uint64_t data_bytes, uint32_t clock);

/*
 * The struct rseq of this thread: that of the libc, or `own`, which is then registered. The kernel
 * writes to `own` until the thread ends or calls ring_rseq_leave(). NULL: there is none. Both may
 * change errno.
 */
struct ring_rseq *ring_rseq_find(struct ring_rseq *own);
void ring_rseq_leave(struct ring_rseq *own);

/* The same as ring_write() when there was no room, or without a struct rseq. */
bool ring_write_slow(struct ring_writer *writer, struct ring_rseq *rseq,
		     const struct ring_entry *entry);

#if RING_HAS_RSEQ

#define RING_AHEAD 1024 /* bytes between the record and what is prefetched */

/*
 * Returns false if there is no room. A no-operation instruction contains the signature. So the
 * abort handler, which is the beginning of the sequence, needs no place of its own, where unwinders
 * would not know the stack.
 */
static inline __attribute__((always_inline)) bool
ring_put(struct ring_writer *writer, struct ring_rseq *rseq, struct ring_entry entry)
{
	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n\t.balign 32\n"
		     "73:\t.long 0, 0\n\t.quad 71f, 72f - 71f, 70f\n\t.popsection\n\t"
		     "nopl %c[signature](%%rax)\n"
		     "70:\tleaq 73b(%%rip), %%rax\n\t"
		     "movq %%rax, %c[rseq_cs](%[rseq])\n"
		     "71:\tmovq %c[shared](%[writer]), %%r11\n\t"
		     "movl %k[header], %%edx\n\t"
		     "movq %c[head](%%r11), %%r8\n\t"
		     "movq %c[mask](%[writer]), %%r9\n\t"
		     "andq %%r8, %%r9\n\t"
		     "addq %%rdx, %%r8\n\t"
		     "cmpq %c[limit](%[writer]), %%r8\n\t"
		     "ja %l[full]\n\t"
		     "addq %c[data](%[writer]), %%r9\n\t"
		     "addq %%r9, %%rdx\n\t"
		     "movl %c[cpu_id](%[rseq]), %%eax\n\t"
		     "movq %[header], (%%r9)\n\t"
		     "movw %%ax, %c[cpu](%%r9)\n\t"
		     "movq %[first], %c[contents](%%r9)\n\t"
		     "prefetchw %c[ahead](%%r9)\n\t"
		     "movq %[offset], %%r10\n"
		     "1:\tmovq (%[end], %%r10), %%rax\n\t"
		     "movq %%rax, (%%rdx, %%r10)\n\t"
		     "addq $8, %%r10\n\t"
		     "jnz 1b\n\t"
		     "movq %[ns], %%rax\n\t"
		     "cmpl %[counter], %c[clock](%[writer])\n\t"
		     "jne 2f\n\t"
		     "rdtsc\n\t"
		     "shlq $32, %%rdx\n\t"
		     "orq %%rdx, %%rax\n"
		     "2:\tmovq %%rax, %c[ticks](%%r9)\n\t"
		     "movq %%r8, %c[head](%%r11)\n"
		     "72:"
		     :
		     : [writer] "r"(writer), [rseq] "r"(rseq), [header] "r"(entry.header),
		       [first] "r"(entry.first), [end] "r"(entry.words + entry.count),
		       [offset] "r"(-(entry.count * 8)), [ns] "r"(entry.ns),
		       [signature] "i"(RING_RSEQ_SIGNATURE), [counter] "i"(TICKS_COUNTER),
		       [rseq_cs] "i"(offsetof(struct ring_rseq, rseq_cs)),
		       [cpu_id] "i"(offsetof(struct ring_rseq, cpu_id)),
		       [shared] "i"(offsetof(struct ring_writer, shared)),
		       [data] "i"(offsetof(struct ring_writer, data)),
		       [mask] "i"(offsetof(struct ring_writer, mask)),
		       [limit] "i"(offsetof(struct ring_writer, limit)),
		       [clock] "i"(offsetof(struct ring_writer, clock)),
		       [head] "i"(offsetof(struct ring_shared, head)),
		       [cpu] "i"(offsetof(struct ring_record, cpu)),
		       [ticks] "i"(offsetof(struct ring_record, ticks)),
		       [contents] "i"(sizeof(struct ring_record)), [ahead] "i"(RING_AHEAD)
		     : "rax", "rdx", "r8", "r9", "r10", "r11", "memory", "cc"
		     : full);
	return true;
full:
	return false;
}

#endif

/*
 * Writes a record: `first`, then `count` words, at least 1. With its header it has at most
 * RING_RECORD_MAX bytes. `rseq` is the thread's own, or NULL. False: there was no room, and the
 * record is counted as lost. Async-signal-safe.
 */
static inline __attribute__((always_inline)) bool ring_write(struct ring_writer *writer,
							     struct ring_rseq *rseq,
							     enum ring_kind kind, uint64_t first,
							     const uint64_t *words, uint64_t count)
{
	struct ring_entry entry = {
		.header = (sizeof(struct ring_record) + 8 + count * 8) | (uint64_t)kind << 32,
		.first = first,
		.words = words,
		.count = count,
		.ns = writer->clock == TICKS_COUNTER ? 0 : clock_monotonic_ns(),
	};

#if RING_HAS_RSEQ
	if (__builtin_expect(rseq && ring_put(writer, rseq, entry), 1))
		return true;
#endif
	return ring_write_slow(
		writer, rseq,
		&(struct ring_entry){entry.header, entry.first, words, count, entry.ns});
}

#endif
