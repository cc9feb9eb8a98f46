// SPDX-License-Identifier: Apache-2.0
/* The side of the program. */
#include "usdt/name/name_chunk.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usdt/ring/shared_memory.h"

struct name_chunk *name_chunk_new(uint32_t texts_at, bool *shared)
{
	struct name_chunk *chunk = shared_memory_map(NULL, NAME_CHUNK_BYTES, NULL, 0);

	*shared = chunk != NULL;
	if (!chunk) {
		void *memory = mmap(NULL, NAME_CHUNK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			return NULL;
		chunk = memory;
	}
	chunk->version = NAME_CHUNK_VERSION;
	chunk->texts_at = texts_at;
	chunk->used = NAME_CHUNK_FIRST;
	__atomic_store_n(&chunk->magic, NAME_CHUNK_MAGIC, __ATOMIC_RELEASE);
	return chunk;
}

struct name_entry *name_chunk_take(struct name_chunk *chunk, uint32_t bytes)
{
	uint32_t size = (bytes + 7) & ~7u;
	struct name_entry *entry = (struct name_entry *)((char *)chunk + chunk->used);

	if (size > NAME_CHUNK_BYTES - chunk->used)
		return NULL;
	entry->bytes = size;
	return entry;
}

void name_chunk_publish(struct name_chunk *chunk, const struct name_entry *entry)
{
	__atomic_store_n(&chunk->used, chunk->used + entry->bytes, __ATOMIC_RELEASE);
}

bool name_chunk_own(struct name_chunk *chunk)
{
	void *copy;

	if (shared_memory_map(chunk, NAME_CHUNK_BYTES, chunk, chunk->used))
		return true;
	copy = mmap(NULL, NAME_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, chunk, chunk->used);
	if (mremap(copy, NAME_CHUNK_BYTES, NAME_CHUNK_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
		   chunk) != MAP_FAILED)
		return true;
	munmap(copy, NAME_CHUNK_BYTES);
	return false;
}
