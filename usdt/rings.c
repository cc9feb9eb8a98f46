// SPDX-License-Identifier: Apache-2.0
#include "usdt/rings.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usdt/ring_write.h"
#include "usdt/ticks.h"
#include "waffle/abi.h"

/* In front of the ring: this process's own data about it, which a tracer does not need. */
#define SLOT_BYTES 4096
_Static_assert(sizeof(struct rings_slot) <= SLOT_BYTES, "a slot has a page");

struct rings_thread {
	struct rings_slot *slot;
	const volatile uint32_t *cpu;
	bool opening; /* a signal handler has interrupted slot_open() */
};

static struct {
	uint64_t data_bytes;
	uint32_t clock;
	uint64_t without;
	struct rings_slot *first;
} rings = {.data_bytes = RING_BYTES_DEFAULT, .clock = 1};

/* In the part of a thread's storage that exists from its start, so that access allocates nothing.
 */
static __thread struct rings_thread thread __attribute__((tls_model("initial-exec")));

void rings_configure(uint64_t data_bytes, uint32_t clock)
{
	rings.data_bytes = data_bytes;
	rings.clock = clock;
}

struct rings_slot *rings_first(void)
{
	return __atomic_load_n(&rings.first, __ATOMIC_ACQUIRE);
}

uint64_t rings_without(void)
{
	return __atomic_load_n(&rings.without, __ATOMIC_RELAXED);
}

void rings_free(struct rings_slot *slot, uint64_t owner)
{
	__atomic_compare_exchange_n(&slot->owner, &owner, owner & ~(uint64_t)UINT32_MAX, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void rings_forget(void)
{
	thread = (struct rings_thread){0};
	rings.first = NULL;
	rings.without = 0;
}

/* Maps the memory of a ring. A sandbox may forbid memfd_create(): anonymous memory is as good for
 * this process. */
static void *memory_map(size_t bytes)
{
	long fd = syscall(SYS_memfd_create, "waffle-ring", MFD_CLOEXEC);
	void *memory = MAP_FAILED;

	if (fd >= 0) {
		if (!syscall(SYS_ftruncate, fd, bytes))
			memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
		syscall(SYS_close, fd);
	}
	if (memory == MAP_FAILED)
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			      0);
	return memory == MAP_FAILED ? NULL : memory;
}

static void slot_name(struct rings_slot *slot)
{
	memset(slot->comm, 0, sizeof(slot->comm));
	prctl(PR_GET_NAME, slot->comm);
}

/* Takes a slot that is free, or that of an earlier thread with this tid, which must be gone. */
static struct rings_slot *slot_reuse(uint32_t tid)
{
	for (struct rings_slot *slot = rings_first(); slot; slot = slot->next) {
		uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_RELAXED);
		uint64_t next = ((owner >> 32) + 1) << 32 | tid;

		if (slot->writer.bytes != rings.data_bytes || slot->writer.clock != rings.clock ||
		    ((uint32_t)owner && (uint32_t)owner != tid) ||
		    !__atomic_compare_exchange_n(&slot->owner, &owner, next, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		slot->writer.shared->tid = tid;
		return slot;
	}
	return NULL;
}

static struct rings_slot *slot_make(uint32_t tid)
{
	struct rings_slot *slot =
		mmap(NULL, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *memory = memory_map(ring_map_bytes(rings.data_bytes));

	if (slot == MAP_FAILED)
		slot = NULL;
	if (!slot || !memory) {
		if (slot)
			munmap(slot, SLOT_BYTES);
		if (memory)
			munmap(memory, ring_map_bytes(rings.data_bytes));
		return NULL;
	}
	ring_init(&slot->writer, memory, rings.data_bytes, rings.clock, (uint32_t)getpid(), tid);
	slot->reader = slot->writer;
	slot->owner = 1ull << 32 | tid;
	slot->next = rings_first();
	while (!__atomic_compare_exchange_n(&rings.first, &slot->next, slot, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return slot;
}

/* The CPU that the thread runs on, which the kernel keeps in the thread's struct rseq. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

static const volatile uint32_t *cpu_place(void)
{
	static const uint32_t unknown;

	/* The libc may not have registered one. */
	if (!&__rseq_offset || !&__rseq_size || !__rseq_size)
		return &unknown;
	return (const uint32_t *)((const char *)__builtin_thread_pointer() + __rseq_offset) + 1;
}

/* Restores errno, since a site must not change it. */
static __attribute__((noinline)) struct rings_slot *slot_open(void)
{
	int code = errno;
	struct rings_slot *slot;
	uint32_t tid;

	if (thread.opening)
		return NULL;
	thread.opening = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	tid = (uint32_t)syscall(SYS_gettid);
	slot = slot_reuse(tid);
	if (!slot)
		slot = slot_make(tid);
	if (slot) {
		slot_name(slot);
		thread.cpu = cpu_place();
		thread.slot = slot;
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread.opening = false;
	errno = code;
	return slot;
}

/* A thread's first hit, or one without a ring. */
static __attribute__((noinline, cold)) struct rings_slot *slot_first(void)
{
	struct rings_slot *slot = slot_open();

	if (!slot)
		__atomic_fetch_add(&rings.without, 1, __ATOMIC_RELAXED);
	return slot;
}

/* Nothing in rings_hit() has an array, so a canary would only cost time. */
#if __has_attribute(no_stack_protector)
__attribute__((no_stack_protector))
#endif
void rings_hit(const void *probe, unsigned long long id, const void *name, const void *frame,
	       unsigned long long size)
{
	struct rings_slot *slot = thread.slot;
	const uint64_t *words = frame;
	struct ring_record *record;
	uint64_t *to;

	if (__builtin_expect(!slot, 0)) {
		slot = slot_first();
		if (!slot)
			return;
	}
	if (__builtin_expect(size > WAFFLE_FRAME_MAX, 0))
		size = WAFFLE_FRAME_MAX;
	size &= ~7ull;
	record = ring_reserve(&slot->writer, (uint32_t)(sizeof(*record) + (frame ? 8 + size : 16)));
	if (__builtin_expect(!record, 0))
		return;
	record->cpu = (uint16_t)*thread.cpu;
	record->ticks = ticks_now(slot->writer.clock);
	to = (uint64_t *)(record + 1);
	if (frame) {
		*to++ = (uintptr_t)probe;
		for (const uint64_t *end = words + size / 8; words < end;)
			*to++ = *words++;
		ring_commit(record, RING_HIT);
	} else {
		/* A span's end has its begin's probe where others have their name (abi.h). */
		to[0] = id;
		to[1] = (uintptr_t)name;
		ring_commit(record, RING_SPAN_END);
	}
}
