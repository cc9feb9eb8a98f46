/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the elements of an array by their ids. An element begins with its id, a uint64_t, so an
 * entry of this hash table is only an index, and a byte of the id's hash. A quarter to five eighths
 * of the entries are free. A zero-initialised table is empty. A program may choose the ids and try
 * to make them collide, so the hash differs between processes. Without memory the process ends
 * (util/memory.h).
 */
#ifndef WAFFLE_UTIL_ID_INDEX_H
#define WAFFLE_UTIL_ID_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define ID_INDEX_NONE UINT32_MAX

struct id_index {
	uint32_t *slots; /* indexes of elements */
	uint8_t *tags;   /* by slot: bits of the id's hash; 0: the slot is free */
	size_t cap;      /* number of slots: a power of two, or 0 */
	size_t len;
	uint64_t seed;
};

/* The array that all indexes in a table refer to. */
struct id_array {
	const void *data;
	size_t size; /* of an element */
};

/* The index of the element with an id, or ID_INDEX_NONE. */
uint32_t id_index_get(const struct id_index *index, struct id_array array, uint64_t id);
/* Adds an element. Of two elements with one id, the one that was added last is found. */
void id_index_put(struct id_index *index, struct id_array array, uint32_t element);
/* Follows a change of the array: `rank` maps old indexes to new ones, or to ID_INDEX_NONE if the
 * element was removed. `array` is that after the change. */
void id_index_renumber(struct id_index *index, struct id_array array, const uint32_t *rank);
void id_index_free(struct id_index *index);

#endif
