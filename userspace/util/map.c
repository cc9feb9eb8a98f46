// SPDX-License-Identifier: Apache-2.0
#include "util/map.h"

#include <stdlib.h>

#include "util/hash.h"

/* Consecutive ids, as a thread makes them, share cache lines: eight of them take two misses instead
 * of eight. */
#define NEIGHBOURS 8u

static size_t map_home(const struct map *map, uint64_t key)
{
	/* Multiplication spreads bits upwards, and the shifts bring them down again. */
	uint64_t block = hash_number(key / NEIGHBOURS ^ map->seed);

	block = (block ^ block >> 32) * (map->seed | 1);
	return ((size_t)(block >> 32 ^ block >> 20) * NEIGHBOURS + key % NEIGHBOURS) &
	       (map->cap - 1);
}

static size_t map_find(const struct map *map, uint64_t key)
{
	size_t at = map_home(map, key);

	while (map->slots[at].value != MAP_NONE && map->slots[at].key != key)
		at = (at + 1) & (map->cap - 1);
	return at;
}

uint32_t map_get(const struct map *map, uint64_t key)
{
	return map->cap ? map->slots[map_find(map, key)].value : MAP_NONE;
}

static bool map_grow(struct map *map)
{
	struct map bigger = {.cap = map->cap ? map->cap * 2 : 64,
			     .len = map->len,
			     .seed = map->cap ? map->seed : hash_secret().factor};

	bigger.slots = malloc(bigger.cap * sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < bigger.cap; i++)
		bigger.slots[i].value = MAP_NONE;
	for (size_t i = 0; i < map->cap; i++)
		if (map->slots[i].value != MAP_NONE)
			bigger.slots[map_find(&bigger, map->slots[i].key)] = map->slots[i];
	free(map->slots);
	*map = bigger;
	return true;
}

bool map_set(struct map *map, uint64_t key, uint32_t value)
{
	size_t at;

	if (map->len * 2 >= map->cap && !map_grow(map))
		return false;
	at = map_find(map, key);
	if (map->slots[at].value == MAP_NONE)
		map->len++;
	map->slots[at] = (struct map_slot){.key = key, .value = value};
	return true;
}

uint32_t map_remove(struct map *map, uint64_t key)
{
	size_t hole, at;
	uint32_t value;

	if (!map->cap)
		return MAP_NONE;
	hole = map_find(map, key);
	value = map->slots[hole].value;
	if (value == MAP_NONE)
		return MAP_NONE;
	/* Close the gap: move back each later element of the run that may be at the hole. */
	for (at = (hole + 1) & (map->cap - 1); map->slots[at].value != MAP_NONE;
	     at = (at + 1) & (map->cap - 1)) {
		size_t home = map_home(map, map->slots[at].key);

		if (((at - home) & (map->cap - 1)) >= ((at - hole) & (map->cap - 1))) {
			map->slots[hole] = map->slots[at];
			hole = at;
		}
	}
	map->slots[hole].value = MAP_NONE;
	map->len--;
	return value;
}

void map_free(struct map *map)
{
	free(map->slots);
	*map = (struct map){0};
}
