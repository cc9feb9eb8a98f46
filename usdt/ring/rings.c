// SPDX-License-Identifier: Apache-2.0
#include "usdt/ring/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usdt/ring/shared_memory.h"
#include "waffle/abi.h"
#include "waffle/context.h"

/* In front of the ring: this process's own data about it, which a tracer does not need. */
#define SLOT_BYTES 4096
_Static_assert(sizeof(struct rings_slot) <= SLOT_BYTES, "a slot has a page");
_Static_assert(24 + WAFFLE_FRAME_MAX <= RING_RECORD_MAX, "a hit fits into a record");
/* A thread that gets a ring looks at so many rings of threads that may have ended. */
#define RECLAIMS 16
/* glibc keeps the values of the first keys in the thread itself. To set others it allocates. */
#define KEYS_INSIDE 32

/* A tracer that does not know a ring is told of it after so many hits again. */
#define ANNOUNCE_HITS 256

struct rings_options {
	uint64_t data_bytes;
	uint32_t clock;
	bool overwrite;
};

static struct {
	struct rings_options options[RINGS_READERS];
	struct rings_slot *first[RINGS_READERS];
	uint64_t without;
	uint32_t reclaim_from;
	pid_t pid;
	pthread_key_t key; /* its destructor frees a thread's slots */
	bool has_key;
	void (*opened)(const void *memory, uint64_t map_bytes, uint32_t tid);
	void (*recorded)(void);
} rings = {
	.options = {{RING_BYTES_DEFAULT, TICKS_NS, false}, {RING_BYTES_DEFAULT, TICKS_NS, false}}};

/* The kernel writes semaphores only where a file is mapped, which excludes .bss. */
struct rings_gate rings_gate __attribute__((section(".probes"))) = {0};

__thread struct rings_thread rings_thread;
ptrdiff_t rings_rseq;

/* A tracer chooses itself whether its rings overwrite. */
static bool slot_has(const struct rings_slot *slot, enum rings_reader reader)
{
	const struct rings_options *options = &rings.options[reader];

	return slot->writer.mask + 1 == options->data_bytes &&
	       slot->writer.shared->clock == options->clock &&
	       (reader == RINGS_TRACER || slot->writer.shared->overwrite == options->overwrite);
}

void rings_configure(enum rings_reader reader, uint64_t data_bytes, uint32_t clock, bool overwrite)
{
	rings.options[reader] = (struct rings_options){data_bytes, clock, overwrite};
	/* Threads find that out when they next write. */
	for (struct rings_slot *slot = rings_first(reader); slot; slot = slot->next)
		if (slot->writer.shared)
			__atomic_store_n(&slot->writer.clock,
					 slot_has(slot, reader) ? clock : TICKS_NONE,
					 __ATOMIC_RELAXED);
}

void rings_on_open(void (*opened)(const void *memory, uint64_t map_bytes, uint32_t tid))
{
	rings.opened = opened;
}

void rings_on_record(void (*recorded)(void))
{
	rings.recorded = recorded;
}

void rings_collect(bool on)
{
	__atomic_store_n(&rings_gate.collector, on, __ATOMIC_RELEASE);
}

struct rings_slot *rings_first(enum rings_reader reader)
{
	return __atomic_load_n(&rings.first[reader], __ATOMIC_ACQUIRE);
}

bool rings_are_acknowledged(void)
{
	for (struct rings_slot *slot = rings_first(RINGS_TRACER); slot; slot = slot->next) {
		struct ring_shared *shared = slot->writer.shared;

		if (shared && __atomic_load_n(&shared->head, __ATOMIC_RELAXED) &&
		    !__atomic_load_n(&shared->reader, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

uint64_t rings_without(void)
{
	return __atomic_load_n(&rings.without, __ATOMIC_RELAXED);
}

void rings_reclaim(struct rings_slot *slot)
{
	uint32_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);

	if (owner && syscall(SYS_tgkill, getpid(), owner, 0) && errno == ESRCH)
		__atomic_compare_exchange_n(&slot->owner, &owner, 0, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
}

/* The struct rseq of this thread stays: its memory is still mapped, and the kernel uses it. */
void rings_forget(void)
{
	for (int i = 0; i < RINGS_READERS; i++)
		rings_thread.fast[i] = NULL;
	memset(rings_thread.slots, 0, sizeof(rings_thread.slots));
	memset(rings.first, 0, sizeof(rings.first));
	rings.without = 0;
	rings.pid = getpid();
}

/* ---- slots ---- */

static void *memory_own(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static struct rings_slot *slot_make(enum rings_reader reader)
{
	struct rings_options options = rings.options[reader];
	size_t bytes = ring_map_bytes(options.data_bytes);
	/* A tracer gets the hits of such a thread from the kernel. */
	bool forbidden =
		reader == RINGS_TRACER && options.clock == TICKS_COUNTER && ticks_is_forbidden();
	struct rings_slot *slot = forbidden ? NULL : memory_own(SLOT_BYTES);
	void *memory = !slot                    ? NULL
		       : reader == RINGS_TRACER ? shared_memory_map(NULL, bytes, NULL, 0)
						: memory_own(bytes);

	if (!memory) {
		if (slot)
			munmap(slot, SLOT_BYTES);
		return NULL;
	}
	/* In a child the slot has no ring, and the ring is not mapped. */
	if (!madvise(slot, SLOT_BYTES, MADV_WIPEONFORK))
		madvise(memory, bytes, MADV_DONTFORK);
	ring_make(memory, options.data_bytes, options.clock, (uint32_t)getpid());
	((struct ring_shared *)memory)->overwrite = options.overwrite;
	slot->writer = ring_writer_open(memory, options.data_bytes, options.clock, NULL);
	slot->map_bytes = bytes;
	ring_open(&slot->ring, memory, bytes);
	return slot;
}

static void slot_list(struct rings_slot *slot, enum rings_reader reader)
{
	slot->next = rings_first(reader);
	while (!__atomic_compare_exchange_n(&rings.first[reader], &slot->next, slot, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static void slot_release(struct rings_slot *slot)
{
	if (rings_thread.rseq == &slot->rseq) {
		rings_thread.rseq = NULL;
		ring_rseq_leave(&slot->rseq);
	}
	if (slot->writer.shared)
		__atomic_store_n(&slot->owner, 0, __ATOMIC_RELEASE);
}

/* Frees a slot of an earlier recording, unless the kernel has its struct rseq, on which the
 * thread's other slots rely. That one is free when the thread has ended. */
static void slot_abandon(struct rings_slot *slot)
{
	if (slot->writer.shared && rings_thread.rseq != &slot->rseq)
		__atomic_store_n(&slot->owner, 0, __ATOMIC_RELEASE);
}

/* Makes a slot the thread's own. False: another thread owns it, or its ring has no room to say
 * whose records follow. */
static bool slot_take(struct rings_slot *slot, uint32_t tid)
{
	struct ring_thread self = {.tid = tid};
	uint64_t words[sizeof(self) / 8];
	uint32_t owner = __atomic_load_n(&slot->owner, __ATOMIC_RELAXED);

	/* An owner with the tid of this thread is one that has ended. */
	if ((owner && owner != tid) ||
	    !__atomic_compare_exchange_n(&slot->owner, &owner, tid, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	if (!rings_thread.rseq)
		rings_thread.rseq = ring_rseq_find(&slot->rseq);
	slot->writer.rseq = rings_thread.rseq;
	prctl(PR_GET_NAME, self.comm);
	memcpy(words, &self, sizeof(self));
	if (ring_write(&slot->writer, RING_THREAD, words[0], words + 1, 2)) {
		slot->writer.shared->tid = tid;
		return true;
	}
	slot_release(slot);
	return false;
}

static struct rings_slot *slot_reuse(enum rings_reader reader, uint32_t tid)
{
	uint32_t from = __atomic_fetch_add(&rings.reclaim_from, RECLAIMS, __ATOMIC_RELAXED), at = 0;
	/* The collector looks after its rings itself, and a sandbox may forbid the system call. */
	unsigned passes = reader == RINGS_TRACER ? 2 : 1;

	for (unsigned pass = 0; pass < passes; pass++) {
		for (struct rings_slot *slot = rings_first(reader); slot; slot = slot->next) {
			if (!slot->writer.shared || !slot_has(slot, reader))
				continue;
			if (pass && at++ - from % 64 < RECLAIMS)
				rings_reclaim(slot);
			if (slot_take(slot, tid))
				return slot;
		}
	}
	return NULL;
}

/* Runs when a thread ends. Other destructors may still record, in a ring that they open anew. */
static void thread_leave(void *unused)
{
	uint64_t all = UINT64_MAX, before = 0;

	(void)unused;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
	for (int i = 0; i < RINGS_READERS; i++) {
		struct rings_slot *slot = rings_thread.slots[i];

		rings_thread.fast[i] = NULL;
		rings_thread.slots[i] = NULL;
		if (slot)
			slot_release(slot);
	}
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

void rings_prepare(void)
{
	rings.pid = getpid();
	rings.has_key = !pthread_key_create(&rings.key, thread_leave) && rings.key < KEYS_INSIDE;
	rings.options[RINGS_TRACER].clock = (uint32_t)ticks_choose();
	rings_rseq = ring_rseq_offset();
}

/* Whether the thread may write into a slot. In the child of a fork() all of the slot is 0. */
static bool slot_is_good(const struct rings_slot *slot)
{
	return slot && __atomic_load_n(&slot->writer.clock, __ATOMIC_RELAXED) != TICKS_NONE;
}

static struct rings_slot *slot_open_blocked(enum rings_reader reader)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct rings_slot *slot = rings_thread.slots[reader];

	if (slot_is_good(slot)) /* a signal handler was here first */
		return slot;
	if (slot)
		slot_abandon(slot);
	rings_thread.fast[reader] = NULL;
	rings_thread.slots[reader] = NULL;
	if (getpid() != rings.pid) /* the child of a fork() without handlers, which nobody reads */
		return NULL;
	slot = slot_reuse(reader, tid);
	if (!slot) {
		slot = slot_make(reader);
		if (!slot)
			return NULL;
		slot_take(slot, tid);
		slot_list(slot, reader);
	}
	if (rings.has_key)
		pthread_setspecific(rings.key, slot);
	rings_thread.slots[reader] = slot;
	if (slot->writer.clock == TICKS_COUNTER && slot->writer.rseq && rings_rseq) {
		rings_thread.own = waffle_thread_ready_();
		rings_thread.fast[reader] = &slot->writer;
	}
	if (reader == RINGS_COLLECTOR && rings.recorded)
		rings.recorded();
	if (reader == RINGS_TRACER && rings.opened)
		rings.opened(slot->writer.shared, slot->map_bytes, tid);
	return slot;
}

/* Opens a thread's ring. Signals are blocked, so that no handler does so too, and that no
 * cancellation leaves it half done. Restores errno, since a site must not change it. */
static __attribute__((noinline, cold)) struct rings_slot *slot_open(enum rings_reader reader)
{
	uint64_t all = UINT64_MAX, before = 0;
	struct rings_slot *slot;
	int code = errno;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
	slot = slot_open_blocked(reader);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	errno = code;
	if (!slot && reader == RINGS_COLLECTOR)
		__atomic_fetch_add(&rings.without, 1, __ATOMIC_RELAXED);
	return slot;
}

/* The thread's slot, which is opened if need be. NULL: there is none. */
static struct rings_slot *slot_get(enum rings_reader reader)
{
	struct rings_slot *slot = rings_thread.slots[reader];

	return slot_is_good(slot) ? slot : slot_open(reader);
}

/* ---- records ---- */

static struct rings_gate gate_read(void)
{
	struct rings_gate gate;
	uint64_t word = __atomic_load_n((uint64_t *)&rings_gate, __ATOMIC_RELAXED);

	memcpy(&gate, &word, sizeof(gate));
	return gate;
}

static bool hit_write(struct rings_slot *slot, const void *probe, unsigned long long id,
		      const void *name, const void *frame, unsigned long long size)
{
	uint64_t begin = (uintptr_t)name;

	if (frame)
		return ring_write(&slot->writer, RING_HIT, (uintptr_t)probe, frame,
				  (size > WAFFLE_FRAME_MAX ? WAFFLE_FRAME_MAX : size) / 8);
	/* A span's end has its begin's probe where others have their name (abi.h). */
	return ring_write(&slot->writer, RING_SPAN_END, id, &begin, 1);
}

/* Tells a tracer of the ring once in a while, in case it was not there when the ring was opened, or
 * has missed it. */
static void slot_announce(struct rings_slot *slot)
{
	if (++slot->unseen % ANNOUNCE_HITS == 0 && rings.opened)
		rings.opened(slot->writer.shared, slot->map_bytes, slot->owner);
}

/* Everything that rings_hit() leaves to it: it knows all cases. */
static __attribute__((noinline)) bool hit_slow(const void *probe, unsigned long long id,
					       const void *name, const void *frame,
					       unsigned long long size)
{
	struct rings_gate gate = gate_read();
	struct rings_slot *slot = gate.collector ? slot_get(RINGS_COLLECTOR) : NULL;

	if (slot)
		hit_write(slot, probe, id, name, frame, size);
	slot = gate.ring && !gate.usdt ? slot_get(RINGS_TRACER) : NULL;
	if (!slot)
		return false;
	if (!__atomic_load_n(&slot->writer.shared->reader, __ATOMIC_ACQUIRE)) {
		slot_announce(slot);
		return false;
	}
	hit_write(slot, probe, id, name, frame, size); /* or it is counted as lost */
	return true;
}

#if RING_HAS_RSEQ

/* Nothing here has an array whose bounds could be missed, so a canary would only cost time. The
 * same is true of the functions that follow. */
#if __has_attribute(no_stack_protector)
#define NO_CANARY __attribute__((no_stack_protector))
#else
#define NO_CANARY
#endif

/* Writes a hit in the fast way. False: it can't be. */
static inline __attribute__((always_inline)) bool hit_fast(struct rings_slot *slot,
							   const void *probe, unsigned long long id,
							   const void *name, const void *frame,
							   unsigned long long size)
{
	/* In the child of a fork() all of the slot is 0. */
	if (__builtin_expect(!slot || slot->writer.clock != TICKS_COUNTER || !slot->writer.rseq, 0))
		return false;
	if (size - sizeof(struct waffle_frame) <= WAFFLE_FRAME_MAX - sizeof(struct waffle_frame))
		return ring_put_hit(&slot->writer, probe, frame, size);
	return !size && ring_put_end(&slot->writer, id, name);
}

/* The fast path for a tracer alone. hit_slow() looks after a ring that none has found. */
NO_CANARY static __attribute__((noinline)) bool hit_tracer(const void *probe, unsigned long long id,
							   const void *name, const void *frame,
							   unsigned long long size)
{
	struct rings_slot *slot = rings_thread.slots[RINGS_TRACER];

	if (!slot || !slot->writer.shared ||
	    !__atomic_load_n(&slot->writer.shared->reader, __ATOMIC_ACQUIRE))
		return hit_slow(probe, id, name, frame, size);
	return hit_fast(slot, probe, id, name, frame, size) ||
	       hit_slow(probe, id, name, frame, size);
}

/*
 * The fast path, for a thread with a ring that has room. Anything else is left to functions that
 * are not called but jumped to, so that no register has to be saved.
 */
NO_CANARY bool rings_hit(const void *probe, unsigned long long id, const void *name,
			 const void *frame, unsigned long long size)
{
	uint64_t gate = __atomic_load_n((uint64_t *)&rings_gate, __ATOMIC_RELAXED);

	if (__builtin_expect(gate == RINGS_GATE_COLLECTOR, 1)) {
		if (hit_fast(rings_thread.slots[RINGS_COLLECTOR], probe, id, name, frame, size))
			return false;
		return hit_slow(probe, id, name, frame, size);
	}
	if (gate == RINGS_GATE_TRACER)
		return hit_tracer(probe, id, name, frame, size);
	return gate && hit_slow(probe, id, name, frame, size);
}

#else

bool rings_hit(const void *probe, unsigned long long id, const void *name, const void *frame,
	       unsigned long long size)
{
	return hit_slow(probe, id, name, frame, size);
}

#endif

bool rings_write(enum ring_kind kind, const uint64_t *words, uint64_t count)
{
	struct rings_gate gate = gate_read();
	const bool wanted[RINGS_READERS] = {gate.collector, gate.ring && !gate.usdt};
	bool written = false;

	for (enum rings_reader reader = 0; reader < RINGS_READERS; reader++) {
		struct rings_slot *slot = wanted[reader] ? slot_get(reader) : NULL;

		if (slot && ring_write(&slot->writer, kind, words[0], words + 1, count - 1))
			written = true;
	}
	return written;
}
