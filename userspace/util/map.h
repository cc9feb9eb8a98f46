/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from 64-bit keys to 32-bit values, with open addressing. A zero-initialised map is
 * empty. Any key is allowed, including 0; the value MAP_NONE is reserved for "no such key". A
 * traced program may choose the keys and try to make them collide, so the hash differs between
 * processes.
 */
#ifndef WAFFLE_UTIL_MAP_H
#define WAFFLE_UTIL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map_slot {
	uint64_t key;
	uint32_t value; /* MAP_NONE: a free slot */
};

struct map {
	struct map_slot *slots;
	size_t cap; /* number of slots: a power of two, or 0 */
	size_t len;
	uint64_t seed;
};

/* The value of a key, or MAP_NONE. */
uint32_t map_get(const struct map *map, uint64_t key);

/* Inserts or replaces a value. False: out of memory; the map is unchanged. */
bool map_set(struct map *map, uint64_t key, uint32_t value);

/* Removes a key. Returns its value, or MAP_NONE if it had none. */
uint32_t map_remove(struct map *map, uint64_t key);

void map_free(struct map *map);

#endif
