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

static size_t index_home(const struct id_index *index, uint64_t id)
{
	/* Multiplication spreads bits upwards, and the shifts bring them down again. */
	uint64_t block = hash_number(id / NEIGHBOURS ^ index->seed);

	block = (block ^ block >> 32) * (index->seed | 1);
	return ((size_t)(block >> 32 ^ block >> 20) * NEIGHBOURS + id % NEIGHBOURS) &
	       (index->cap - 1);
}

/* The slot of an id, or the free one where it belongs. */
static uint32_t *index_slot(const struct id_index *index, struct id_array array, uint64_t id)
{
	size_t at = index_home(index, id);

	while (index->slots[at] != ID_INDEX_NONE && id_of(array, index->slots[at]) != id)
		at = (at + 1) & (index->cap - 1);
	return &index->slots[at];
}

uint32_t id_index_get(const struct id_index *index, struct id_array array, uint64_t id)
{
	return index->cap ? *index_slot(index, array, id) : ID_INDEX_NONE;
}

static void index_grow(struct id_index *index, struct id_array array)
{
	struct id_index bigger = {
		.cap = index->cap ? index->cap * 2 : 64,
		.len = index->len,
		.seed = index->cap ? index->seed : hash_secret().factor,
	};

	bigger.slots = memory_get(bigger.cap * sizeof(*bigger.slots));
	for (size_t i = 0; i < bigger.cap; i++)
		bigger.slots[i] = ID_INDEX_NONE;
	for (size_t i = 0; i < index->cap; i++)
		if (index->slots[i] != ID_INDEX_NONE)
			*index_slot(&bigger, array, id_of(array, index->slots[i])) =
				index->slots[i];
	free(index->slots);
	*index = bigger;
}

void id_index_put(struct id_index *index, struct id_array array, uint32_t element)
{
	uint32_t *slot;

	if (index->len * 4 >= index->cap * 3)
		index_grow(index, array);
	slot = index_slot(index, array, id_of(array, element));
	index->len += *slot == ID_INDEX_NONE;
	*slot = element;
}

void id_index_renumber(struct id_index *index, struct id_array array, const uint32_t *rank)
{
	struct id_index old = *index;

	*index = (struct id_index){0};
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i] != ID_INDEX_NONE && rank[old.slots[i]] != ID_INDEX_NONE)
			id_index_put(index, array, rank[old.slots[i]]);
	free(old.slots);
}

void id_index_free(struct id_index *index)
{
	free(index->slots);
	*index = (struct id_index){0};
}
