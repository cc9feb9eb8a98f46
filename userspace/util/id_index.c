// SPDX-License-Identifier: Apache-2.0
#include "util/id_index.h"

#include <stdlib.h>
#include <string.h>

#include "util/hash.h"
#include "util/memory.h"

/* Consecutive ids, as a thread makes them, share a cache line. */
#define NEIGHBOURS 16u

static uint64_t id_of(struct id_array array, uint32_t element)
{
	uint64_t id;

	memcpy(&id, (const char *)array.data + element * array.size, sizeof(id));
	return id;
}

/* The slots in which an id is looked up, one after the other. If the slot in one cache line is
 * taken, the next one is in another line, at a distance that the hash of the ids' block decides. In
 * the same line, a block would wait behind all ids of another block. */
struct probe {
	size_t block, step, offset, count;
	uint8_t tag;
};

static struct probe probe_begin(const struct id_index *index, uint64_t id)
{
	/* Multiplication spreads bits upwards, and the shifts bring them down again. */
	uint64_t block = hash_number(id / NEIGHBOURS ^ index->seed);

	block = (block ^ block >> 32) * (index->seed | 1);
	return (struct probe){.block = (size_t)(block >> 32 ^ block >> 20),
			      .step = (size_t)(block >> 24) | 1, /* odd: it leads to all blocks */
			      .offset = id % NEIGHBOURS,
			      .tag = (uint8_t)(block >> 56) | 0x80};
}

static size_t probe_slot(const struct id_index *index, const struct probe *probe)
{
	size_t blocks = index->cap / NEIGHBOURS;

	return (probe->block & (blocks - 1)) * NEIGHBOURS + probe->offset % NEIGHBOURS;
}

/* The offset changes as well: if all ids are multiples of a number, few offsets would be used.
 * After all blocks it changes by one more, so that in the end each slot has been looked at. */
static void probe_next(const struct id_index *index, struct probe *probe)
{
	probe->block += probe->step;
	probe->count++;
	probe->offset += probe->count % (index->cap / NEIGHBOURS) ? 1 : 2;
}

/* Finds the slot of an id, or the free one where it belongs. */
static size_t slot_find(const struct id_index *index, struct id_array array, uint64_t id,
			struct probe *probe)
{
	size_t at;

	*probe = probe_begin(index, id);
	for (;; probe_next(index, probe)) {
		at = probe_slot(index, probe);
		if (!index->tags[at] ||
		    (index->tags[at] == probe->tag && id_of(array, index->slots[at]) == id))
			return at;
	}
}

uint32_t id_index_get(const struct id_index *index, struct id_array array, uint64_t id)
{
	struct probe probe;
	size_t at;

	if (!index->cap)
		return ID_INDEX_NONE;
	at = slot_find(index, array, id, &probe);
	return index->tags[at] ? index->slots[at] : ID_INDEX_NONE;
}

/* Puts an element where there is room. */
static void element_put(struct id_index *index, struct id_array array, uint32_t element)
{
	struct probe probe;
	size_t at = slot_find(index, array, id_of(array, element), &probe);

	index->len += !index->tags[at];
	index->tags[at] = probe.tag;
	index->slots[at] = element;
}

/* Slots between the element that is read and the one that is fetched meanwhile. */
#define AHEAD 16

static void index_grow(struct id_index *index, struct id_array array)
{
	struct id_index old = *index;
	struct id_index bigger = {
		.cap = old.cap ? old.cap * 2 : 64,
		.seed = old.cap ? old.seed : hash_secret().factor,
	};

	bigger.slots = memory_get(bigger.cap * sizeof(*bigger.slots));
	bigger.tags = memory_zeroed(bigger.cap, sizeof(*bigger.tags));
	for (size_t i = 0; i < old.cap; i++) {
		if (i + AHEAD < old.cap && old.tags[i + AHEAD])
			__builtin_prefetch((const char *)array.data +
					   old.slots[i + AHEAD] * array.size);
		if (old.tags[i])
			element_put(&bigger, array, old.slots[i]);
	}
	*index = bigger;
	id_index_free(&old);
}

void id_index_put(struct id_index *index, struct id_array array, uint32_t element)
{
	if (index->len * 4 >= index->cap * 3)
		index_grow(index, array);
	element_put(index, array, element);
}

void id_index_renumber(struct id_index *index, struct id_array array, const uint32_t *rank)
{
	struct id_index old = *index;

	*index = (struct id_index){0};
	for (size_t i = 0; i < old.cap; i++)
		if (old.tags[i] && rank[old.slots[i]] != ID_INDEX_NONE)
			id_index_put(index, array, rank[old.slots[i]]);
	id_index_free(&old);
}

void id_index_free(struct id_index *index)
{
	free(index->slots);
	free(index->tags);
	*index = (struct id_index){0};
}
