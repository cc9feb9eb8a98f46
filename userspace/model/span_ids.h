/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds spans by their ids. The spans hold the ids, so an entry of this hash table is only an
 * index: 4 bytes, of which a half to a quarter are free. A zero-initialised table is empty. A
 * program may choose the ids and try to make them collide, so the hash differs between processes.
 */
#ifndef WAFFLE_MODEL_SPAN_IDS_H
#define WAFFLE_MODEL_SPAN_IDS_H

#include <stddef.h>
#include <stdint.h>

struct model_span;

struct span_ids {
	uint32_t *slots; /* indexes of spans; MODEL_NONE: free */
	size_t cap;      /* number of slots: a power of two, or 0 */
	size_t len;
	uint64_t seed;
};

/* The index of the span with an id, or MODEL_NONE. `spans` is the array that all indexes in the
 * table refer to. */
uint32_t span_ids_get(const struct span_ids *ids, const struct model_span *spans, uint64_t id);
/* Adds a span. Of two spans with one id, the later one is found. */
void span_ids_put(struct span_ids *ids, const struct model_span *spans, uint32_t index);
/* Follows a change of the array: `rank` maps old indexes to new ones, or to MODEL_NONE if the span
 * was removed. `spans` is the array after the change. */
void span_ids_renumber(struct span_ids *ids, const struct model_span *spans, const uint32_t *rank);
void span_ids_free(struct span_ids *ids);

#endif
