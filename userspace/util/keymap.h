/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from keys of any bytes to 32-bit values. It keeps a copy of each key and compares it,
 * so two keys with the same hash have values of their own. A zero-initialised map is empty. The
 * value MAP_NONE is reserved for "no such key". A key made of numbers is best an array of
 * uint64_t: a struct has padding, which would be compared too.
 */
#ifndef WAFFLE_UTIL_KEYMAP_H
#define WAFFLE_UTIL_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/hash.h"
#include "util/map.h"
#include "util/vec.h"

struct keymap_entry {
	char *key; /* with a NUL after it; the pointer stays valid until the key is removed. NULL:
		    * the entry is free */
	uint32_t len, value;
	uint32_t next; /* next entry of the same hash, or next free one; MAP_NONE: none */
};

struct keymap {
	VEC(struct keymap_entry) entries; /* without removals: in the order of their insertion */
	struct map heads;                 /* hash → first entry */
	size_t len;                       /* keys */
	uint32_t free;                    /* first free entry */
	struct hash_secret secret;        /* a factor of 0: not chosen yet */
};

/* The value of a key, or MAP_NONE. */
uint32_t keymap_get(const struct keymap *map, const void *key, size_t len);

/* Inserts or replaces a value. False: out of memory; the map is unchanged. */
bool keymap_set(struct keymap *map, const void *key, size_t len, uint32_t value);

/* Removes a key. Returns its value, or MAP_NONE if it had none. */
uint32_t keymap_remove(struct keymap *map, const void *key, size_t len);

void keymap_free(struct keymap *map);

#endif
