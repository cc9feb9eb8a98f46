// SPDX-License-Identifier: Apache-2.0
#include "model/span_ids.h"

#include <stdlib.h>

#include "model/model.h"
#include "util/hash.h"
#include "util/memory.h"

/* Consecutive ids, as a thread makes them, share a cache line. */
#define NEIGHBOURS 16u

static size_t ids_home(const struct span_ids *ids, uint64_t id)
{
	/* Multiplication spreads bits upwards, and the shifts bring them down again. */
	uint64_t block = hash_number(id / NEIGHBOURS ^ ids->seed);

	block = (block ^ block >> 32) * (ids->seed | 1);
	return ((size_t)(block >> 32 ^ block >> 20) * NEIGHBOURS + id % NEIGHBOURS) &
	       (ids->cap - 1);
}

/* The slot of an id, or the free one where it belongs. */
static uint32_t *ids_slot(const struct span_ids *ids, const struct model_span *spans, uint64_t id)
{
	size_t at = ids_home(ids, id);

	while (ids->slots[at] != MODEL_NONE && spans[ids->slots[at]].id != id)
		at = (at + 1) & (ids->cap - 1);
	return &ids->slots[at];
}

uint32_t span_ids_get(const struct span_ids *ids, const struct model_span *spans, uint64_t id)
{
	return ids->cap ? *ids_slot(ids, spans, id) : MODEL_NONE;
}

static void ids_resize(struct span_ids *ids, const struct model_span *spans, size_t cap)
{
	struct span_ids bigger = {
		.slots = memory_get(cap * sizeof(*bigger.slots)),
		.cap = cap,
		.len = ids->len,
		.seed = ids->cap ? ids->seed : hash_secret().factor,
	};

	for (size_t i = 0; i < cap; i++)
		bigger.slots[i] = MODEL_NONE;
	for (size_t i = 0; i < ids->cap; i++)
		if (ids->slots[i] != MODEL_NONE)
			*ids_slot(&bigger, spans, spans[ids->slots[i]].id) = ids->slots[i];
	free(ids->slots);
	*ids = bigger;
}

void span_ids_put(struct span_ids *ids, const struct model_span *spans, uint32_t index)
{
	uint32_t *slot;

	if (ids->len * 4 >= ids->cap * 3)
		ids_resize(ids, spans, ids->cap ? ids->cap * 2 : 64);
	slot = ids_slot(ids, spans, spans[index].id);
	ids->len += *slot == MODEL_NONE;
	*slot = index;
}

void span_ids_renumber(struct span_ids *ids, const struct model_span *spans, const uint32_t *rank)
{
	struct span_ids old = *ids;

	*ids = (struct span_ids){0};
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i] != MODEL_NONE && rank[old.slots[i]] != MODEL_NONE)
			span_ids_put(ids, spans, rank[old.slots[i]]);
	free(old.slots);
}

void span_ids_free(struct span_ids *ids)
{
	free(ids->slots);
	*ids = (struct span_ids){0};
}
