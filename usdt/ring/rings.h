/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of this process. A thread has up to two, one for the collector of this process and one
 * for a tracer. It gets them at its first armed hit, perhaps in a signal handler: so they are
 * mapped by system calls, and listed without a lock. The ring of a thread that has ended is given
 * to another thread, also if it has not been drained. Rings are never unmapped.
 *
 * The collector's rings are private memory, which sandboxes allow. A tracer's ring is a memfd that
 * can't change its size, so that the tracer can map it (/proc/PID/map_files). Its descriptor is
 * closed at once, since the program must not see it.
 *
 * After a fork() the child has no rings. Also a child whose handlers of pthread_atfork() did not
 * run never writes into those of its parent.
 */
#ifndef WAFFLE_USDT_RING_RINGS_H
#define WAFFLE_USDT_RING_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/ring/ring.h"
#include "usdt/ring/ring_write.h"

enum rings_reader { RINGS_COLLECTOR, RINGS_TRACER, RINGS_READERS };

struct rings_slot {
	struct ring_writer writer;
	struct rings_slot *next; /* list of all slots of this reader; never changed once listed */
	uint32_t owner;          /* tid of the thread that writes; 0: free */
	uint64_t map_bytes;
	uint32_t unseen;       /* hits while no tracer knew the ring */
	struct ring_rseq rseq; /* of threads whose libc has none */
	/* Only the collector uses what follows. */
	struct ring ring;
	uint64_t lost_before; /* ring_lost() when the recording began */
	uint32_t tid;         /* of the next records */
	bool named;           /* that thread's name was delivered in this recording */
	char comm[RING_COMM_BYTES];
};

/*
 * Who wants records. A thread that has a hit looks here first, at all of it at once. The kernel
 * counts tracers in the first two, which are semaphores of libwaffle's own sites (tracer.c).
 */
struct rings_gate {
	uint16_t collector;
	uint16_t ring; /* tracers that want rings */
	uint16_t usdt; /* tracers that want hits from the kernel instead; they come first */
	uint16_t unused;
};
extern struct rings_gate rings_gate __attribute__((visibility("hidden"), aligned(8)));

/* The gate with a single reader, as one word. */
#define RINGS_GATE_COLLECTOR 1
#define RINGS_GATE_TRACER 0x10000

/* What a thread has. */
struct rings_thread {
	struct rings_slot *slots[RINGS_READERS];
	/* The writers of these slots for the fast path (hit.h); NULL: there is none. */
	const struct ring_writer *fast[RINGS_READERS];
	struct ring_rseq *rseq;     /* NULL: none */
	struct waffle_thread_ *own; /* state of this thread; set before `fast` is */
};

/* Distance from the thread pointer to the libc's struct rseq. 0: there is none. */
extern ptrdiff_t rings_rseq __attribute__((visibility("hidden")));

/* In the part of a thread's storage that exists from its start, so that access allocates nothing.
 */
extern __thread struct rings_thread rings_thread
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Call it once, before any thread records. */
void rings_prepare(void);
/* Size and clock of rings, and whether they overwrite their oldest records. A thread whose ring has
 * others gets another ring at its next record. Nobody may be recording meanwhile. */
void rings_configure(enum rings_reader reader, uint64_t data_bytes, uint32_t clock, bool overwrite);
/* Calls a function in each thread that has got a tracer's ring, and again after some hits as long
 * as no tracer knows it. */
void rings_on_open(void (*opened)(const void *memory, uint64_t map_bytes, uint32_t tid));
/* Calls a function in each thread that has got a ring for the collector. Signals are blocked. */
void rings_on_record(void (*recorded)(void));
/* Whether the collector wants records. */
void rings_collect(bool on);

/*
 * Writes a hit of this thread: the function of struct waffle_process_ (abi.h describes the
 * arguments). Returns true if a tracer gets the hit from the ring, so that it must not come from
 * the kernel as well. False also if a tracer has not found the ring yet.
 */
bool rings_hit(const void *probe, unsigned long long id, const void *name, const void *frame,
	       unsigned long long size);
/*
 * Writes a record of at least two words to all readers, also to a tracer that has not found the
 * ring yet: what the kernel can't deliver. With its header a record has at most RING_RECORD_MAX
 * bytes. Returns true if one of them gets it.
 */
bool rings_write(enum ring_kind kind, const uint64_t *words, uint64_t count);

/* The first slot; all others follow. */
struct rings_slot *rings_first(enum rings_reader reader);
/* Whether a tracer has acknowledged each of its rings that has records. If this process ends, the
 * tracer gets the records of these only. */
bool rings_are_acknowledged(void);
/* Hits for the collector that had no ring, because none could be mapped. */
uint64_t rings_without(void);
/* Frees the slot if its thread has ended without telling. */
void rings_reclaim(struct rings_slot *slot);
/* In a new child: the rings are the parent's, so the child forgets them. */
void rings_forget(void);

#endif
