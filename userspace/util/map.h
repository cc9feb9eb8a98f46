/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from 64-bit keys to 32-bit values, open addressing. Zero-initialised is empty. Any key
 * is allowed, 0 too; the value MAP_NONE is reserved for "not there". Keys may come from a program
 * that would have them collide: the hash differs from process to process.
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
	size_t cap; /* a power of two, or 0 */
	size_t len;
	uint64_t seed;
};

/* The value of a key, or MAP_NONE. */
uint32_t map_get(const struct map *map, uint64_t key);

/* Sets or replaces. False: out of memory, the map is unchanged. */
bool map_set(struct map *map, uint64_t key, uint32_t value);

/* Removes a key if it is there; returns its value or MAP_NONE. */
uint32_t map_remove(struct map *map, uint64_t key);

void map_free(struct map *map);

#endif
