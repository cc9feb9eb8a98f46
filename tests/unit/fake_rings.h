/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings of a process that is not there, for capture/transport/ring_set.c: a ring's address is its
 * number here. The link needs FAKE_RINGS of the Makefile. A program that includes this may read the
 * rings, but nothing of /proc.
 */
#ifndef WAFFLE_TESTS_FAKE_RINGS_H
#define WAFFLE_TESTS_FAKE_RINGS_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "capture/transport/ring_memory_internal.h"
#include "usdt/ring/ring.h"
#include "usdt/ring/ticks.h"

#define FAKE_RINGS_MAX 4
#define FAKE_RING_BYTES RING_BYTES_MIN

static struct ring_shared *fake_rings[FAKE_RINGS_MAX];
static unsigned fake_rings_mapped;

int __wrap_ring_mount_open(struct ring_mount *mount);

int __wrap_ring_memory_open(struct ring_memory *memory, const struct ring_mount *mount, pid_t pid,
			    uint64_t address, uint64_t bytes, size_t head);
bool __wrap_ring_memory_read(const struct ring_memory *memory, uint64_t offset, void *to,
			     size_t bytes);
void __wrap_ring_memory_unmap(struct ring_memory *memory);
bool __wrap_process_has_tid(pid_t pid, uint32_t tid);
void __wrap_process_tids_each(pid_t pid, void (*each)(uint32_t seen, uint32_t tid, void *arg),
			      void *arg);
bool __wrap_process_has_other_time(pid_t pid);

int __wrap_ring_mount_open(struct ring_mount *mount)
{
	mount->fd = -1;
	return 0;
}

int __wrap_ring_memory_open(struct ring_memory *memory, const struct ring_mount *mount, pid_t pid,
			    uint64_t address, uint64_t bytes, size_t head)
{
	(void)mount;
	(void)pid;
	if (address >= FAKE_RINGS_MAX || !fake_rings[address] ||
	    bytes != ring_map_bytes(FAKE_RING_BYTES))
		return -EACCES;
	*memory = (struct ring_memory){
		.at = fake_rings[address], .mapped = head, .fd = -1, .ino = address + 1};
	fake_rings_mapped++;
	return 0;
}

bool __wrap_ring_memory_read(const struct ring_memory *memory, uint64_t offset, void *to,
			     size_t bytes)
{
	memcpy(to, (const unsigned char *)memory->at + offset, bytes);
	return true;
}

void __wrap_ring_memory_unmap(struct ring_memory *memory)
{
	(void)memory;
	fake_rings_mapped--;
}

/* All threads are those of the kernel's messages, and thread 77. */
static unsigned fake_searches;

bool __wrap_process_has_tid(pid_t pid, uint32_t tid)
{
	(void)pid;
	(void)tid;
	fake_searches++;
	return false;
}

void __wrap_process_tids_each(pid_t pid, void (*each)(uint32_t seen, uint32_t tid, void *arg),
			      void *arg)
{
	(void)pid;
	fake_searches++;
	each(77, 1077, arg);
}

bool __wrap_process_has_other_time(pid_t pid)
{
	(void)pid;
	return false;
}

static inline struct ring_shared *fake_ring_make(unsigned number)
{
	size_t bytes = ring_map_bytes(FAKE_RING_BYTES);

	/* A block of exactly this size, so that any access outside is detected. */
	fake_rings[number] = aligned_alloc(64, bytes);
	if (!fake_rings[number])
		abort();
	memset(fake_rings[number], 0, bytes);
	ring_make(fake_rings[number], FAKE_RING_BYTES, TICKS_NS, 1);
	return fake_rings[number];
}

static inline void fake_rings_free(void)
{
	for (unsigned i = 0; i < FAKE_RINGS_MAX; i++) {
		free(fake_rings[i]);
		fake_rings[i] = NULL;
	}
}

/* Writes a record of these words as a thread would. */
static inline void fake_ring_write(struct ring_shared *shared, unsigned kind, uint64_t ns,
				   const uint64_t *words, unsigned count)
{
	unsigned char *data = (unsigned char *)shared + shared->data_at;
	struct ring_record *record = (struct ring_record *)(data + shared->head % FAKE_RING_BYTES);

	*record = (struct ring_record){.bytes = (uint16_t)(sizeof(*record) + count * 8),
				       .kind = (uint16_t)kind,
				       .cpu = 1,
				       .ticks = ns};
	memcpy(record + 1, words, count * 8);
	__atomic_store_n(&shared->head, shared->head + record->bytes, __ATOMIC_RELEASE);
}

#endif
