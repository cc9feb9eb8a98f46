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
#ifndef WAFFLE_USDT_RING_RING_WRITE_H
#define WAFFLE_USDT_RING_RING_WRITE_H

#include "usdt/ring/ring.h"
#include "usdt/ring/ticks.h"

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

/* The longest record for which the fast path of sites (hit.h) compares with `near`. */
#define RING_SHORT 72

struct ring_writer {
	struct ring_shared *shared; /* NULL: no ring, also in the child of a fork() */
	struct ring_rseq *rseq;     /* of the thread; NULL: signals are blocked instead */
	uint64_t mask;              /* size of the data - 1 */
	uint64_t limit;             /* records may end here, as far as the thread knows */
	uint64_t near;              /* and short ones (RING_SHORT) may begin here */
	uint32_t clock;             /* enum ticks_kind */
};

/* A record that is to be written: a header, a word, and more words. */
struct ring_entry {
	uint32_t header; /* the first word of struct ring_record: bytes | kind << 16 */
	uint64_t first;
	const uint64_t *words;
	uint64_t count; /* of `words`, at least 1 */
	uint64_t ns;    /* the time, for TICKS_NS */
};

/* A writer for the ring in `memory` (ring_make()). `rseq` may be NULL. */
struct ring_writer ring_writer_open(void *memory, uint64_t data_bytes, uint32_t clock,
				    struct ring_rseq *rseq);

/*
 * The struct rseq of this thread: that of the libc, or `own`, which is then registered. The kernel
 * writes to `own` until the thread ends or calls ring_rseq_leave(). NULL: there is none. Both may
 * change errno.
 */
struct ring_rseq *ring_rseq_find(struct ring_rseq *own);
/* Distance from the thread pointer to the libc's struct rseq. 0: it has none. */
ptrdiff_t ring_rseq_offset(void);
void ring_rseq_leave(struct ring_rseq *own);

/* The same as ring_write() when there was no room, or without a struct rseq. */
bool ring_write_slow(struct ring_writer *writer, const struct ring_entry *entry);

#if RING_HAS_RSEQ

#define RING_AHEAD 1024 /* bytes from the record to the two cache lines that are prefetched */

/*
 * The parts of a sequence. `clock` leaves the time in rbx, `length` the length of the record in
 * rdx. Between both parts are the instructions that write the record at r9, but its cpu and time.
 * They may use rax and rdx. The sequences have no outputs and few operands, so that a function with
 * one has few registers to save.
 *
 * The clock is read first, since a processor hardly does anything else while it reads it.
 *
 * The abort handler is the beginning of the sequence. The kernel wants to see the signature before
 * it, which is part of an instruction that does nothing. A handler elsewhere would have to tell
 * unwinders about the stack.
 */
#define RING_PUT_BEGIN_(clock, length)                                                             \
	".pushsection __rseq_cs, \"aw\"\n\t.balign 32\n"                                           \
	"73:\t.long 0, 0\n\t.quad 71f, 72f - 71f, 70f\n\t.popsection\n\t"                          \
	"nopl %c[signature](%%rax)\n"                                                              \
	"70:\tleaq 73b(%%rip), %%rdx\n\t"                                                          \
	"movq %c[rseq](%[writer]), %%rax\n\t"                                                      \
	"movq %%rdx, %c[rseq_cs](%%rax)\n"                                                         \
	"71:\t" clock "movq %c[shared](%[writer]), %%rax\n\t" length                               \
	"movq %c[head](%%rax), %%r9\n\t"                                                           \
	"addq %%r9, %%rdx\n\t"                                                                     \
	"cmpq %c[limit](%[writer]), %%rdx\n\t"                                                     \
	"ja %l[full]\n\t"                                                                          \
	"andq %c[mask](%[writer]), %%r9\n\t"                                                       \
	"leaq %c[data](%%rax, %%r9), %%r9\n\t"                                                     \
	"prefetchw %c[ahead](%%r9)\n\t"                                                            \
	"prefetchw %c[ahead]+64(%%r9)\n\t"                                                         \
	"movq %%rbx, %c[ticks](%%r9)\n\t"
#define RING_PUT_END_(length)                                                                      \
	"movq %c[rseq](%[writer]), %%rax\n\t"                                                      \
	"movl %c[cpu_id](%%rax), %%eax\n\t"                                                        \
	"movl %%eax, %c[cpu](%%r9)\n\t"                                                            \
	"movq %c[shared](%[writer]), %%rax\n\t" length "addq %%rdx, %c[head](%%rax)\n"             \
	"72:"
#define RING_PUT_OPERANDS_                                                                         \
	[signature] "i"(RING_RSEQ_SIGNATURE), [rseq_cs] "i"(offsetof(struct ring_rseq, rseq_cs)),  \
		[cpu_id] "i"(offsetof(struct ring_rseq, cpu_id)),                                  \
		[rseq] "i"(offsetof(struct ring_writer, rseq)),                                    \
		[shared] "i"(offsetof(struct ring_writer, shared)),                                \
		[mask] "i"(offsetof(struct ring_writer, mask)),                                    \
		[limit] "i"(offsetof(struct ring_writer, limit)),                                  \
		[head] "i"(offsetof(struct ring_shared, head)),                                    \
		[cpu] "i"(offsetof(struct ring_record, cpu)),                                      \
		[ticks] "i"(offsetof(struct ring_record, ticks)), [data] "i"(RING_DATA_AT),        \
		[first_at] "i"(sizeof(struct ring_record)),                                        \
		[words_at] "i"(sizeof(struct ring_record) + 8), [ahead] "i"(RING_AHEAD)
#define RING_PUT_CLOBBERS_ "rax", "rbx", "rdx", "r9", "memory", "cc"
#define RING_COUNTER_ "rdtsc\n\tshlq $32, %%rdx\n\tleaq (%%rax, %%rdx), %%rbx\n\t"

/*
 * Writes a hit of `bytes` from `frame`, at least the 32 of struct waffle_frame, with the counter as
 * its time. The thread must have a struct rseq. False: there is no room.
 */
static inline __attribute__((always_inline)) bool
ring_put_hit(struct ring_writer *writer, const void *probe, const void *frame, uint64_t bytes)
{
	/* clang-format off */
	__asm__ goto(RING_PUT_BEGIN_(RING_COUNTER_, "leaq %c[words_at](%[bytes]), %%rdx\n\t")
		     "leal %c[words_at]+%c[hit](%k[bytes]), %%eax\n\t"
		     "movl %%eax, (%%r9)\n\t"
		     "movq %[probe], %c[first_at](%%r9)\n\t"
		     "movq (%[frame]), %%rax\n\t"
		     "movq %%rax, %c[words_at](%%r9)\n\t"
		     "movq 8(%[frame]), %%rax\n\t"
		     "movq %%rax, %c[words_at]+8(%%r9)\n\t"
		     "movq 16(%[frame]), %%rax\n\t"
		     "movq %%rax, %c[words_at]+16(%%r9)\n\t"
		     "movq 24(%[frame]), %%rax\n\t"
		     "movq %%rax, %c[words_at]+24(%%r9)\n\t"
		     "leaq -32(%[bytes]), %%rdx\n\t"
		     "testq %%rdx, %%rdx\n\t"
		     "jz 2f\n"
		     "1:\tmovq 24(%[frame], %%rdx), %%rax\n\t"
		     "movq %%rax, %c[words_at]+24(%%r9, %%rdx)\n\t"
		     "subq $8, %%rdx\n\t"
		     "jnz 1b\n"
		     "2:\t" RING_PUT_END_("leaq %c[words_at](%[bytes]), %%rdx\n\t")
		     :
		     : [writer] "r"(writer), [probe] "r"(probe), [frame] "r"(frame),
		       [bytes] "r"(bytes), [hit] "i"(RING_HIT << 16), RING_PUT_OPERANDS_
		     : RING_PUT_CLOBBERS_
		     : full);
	/* clang-format on */
	return true;
full:
	return false;
}

#define RING_END_BYTES (sizeof(struct ring_record) + 16)

/* Writes the end of a span in the same way. */
static inline __attribute__((always_inline)) bool ring_put_end(struct ring_writer *writer,
							       uint64_t id, const void *begin)
{
	/* clang-format off */
	__asm__ goto(RING_PUT_BEGIN_(RING_COUNTER_, "movl %[length], %%edx\n\t")
		     "movl %[header], (%%r9)\n\t"
		     "movq %[id], %c[first_at](%%r9)\n\t"
		     "movq %[begin], %c[words_at](%%r9)\n\t"
		     RING_PUT_END_("movl %[length], %%edx\n\t")
		     :
		     : [writer] "r"(writer), [id] "r"(id), [begin] "r"(begin),
		       [length] "i"(RING_END_BYTES),
		       [header] "i"(RING_END_BYTES | RING_SPAN_END << 16), RING_PUT_OPERANDS_
		     : RING_PUT_CLOBBERS_
		     : full);
	/* clang-format on */
	return true;
full:
	return false;
}

/* Writes any record, also where the time is entry->ns. */
static inline __attribute__((always_inline)) bool ring_put(struct ring_writer *writer,
							   const struct ring_entry *entry)
{
	/* clang-format off */
	__asm__ goto(RING_PUT_BEGIN_("movq %c[ns](%[entry]), %%rbx\n\t"
				     "cmpl %[counter], %c[clock](%[writer])\n\t"
				     "jne 2f\n\t" RING_COUNTER_ "2:\t",
				     "movzwl (%[entry]), %%edx\n\t")
		     "movl (%[entry]), %%eax\n\t"
		     "movl %%eax, (%%r9)\n\t"
		     "movq %c[first](%[entry]), %%rax\n\t"
		     "movq %%rax, %c[first_at](%%r9)\n\t"
		     "movq %[count], %%rdx\n"
		     "1:\tmovq -8(%[words], %%rdx, 8), %%rax\n\t"
		     "movq %%rax, %c[words_at]-8(%%r9, %%rdx, 8)\n\t"
		     "subq $1, %%rdx\n\t"
		     "jnz 1b\n\t"
		     RING_PUT_END_("movzwl (%[entry]), %%edx\n\t")
		     :
		     : [writer] "r"(writer), [entry] "r"(entry), [words] "r"(entry->words),
		       [count] "r"(entry->count), [counter] "i"(TICKS_COUNTER),
		       [first] "i"(offsetof(struct ring_entry, first)),
		       [ns] "i"(offsetof(struct ring_entry, ns)),
		       [clock] "i"(offsetof(struct ring_writer, clock)), RING_PUT_OPERANDS_
		     : RING_PUT_CLOBBERS_
		     : full);
	/* clang-format on */
	return true;
full:
	return false;
}

#endif

static inline struct ring_entry ring_entry(enum ring_kind kind, uint64_t first,
					   const uint64_t *words, uint64_t count)
{
	return (struct ring_entry){
		.header = (uint32_t)((sizeof(struct ring_record) + 8 + count * 8) | (uint32_t)kind
											    << 16),
		.first = first,
		.words = words,
		.count = count,
	};
}

/*
 * Writes a record: `first`, then `count` words, at least 1. With its header it has at most
 * RING_RECORD_MAX bytes. False: there was no room, and the record is counted as lost.
 * Async-signal-safe.
 */
bool ring_write(struct ring_writer *writer, enum ring_kind kind, uint64_t first,
		const uint64_t *words, uint64_t count);

#endif
