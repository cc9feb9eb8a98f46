// SPDX-License-Identifier: Apache-2.0
#include "util/keymap.h"

#include <stdlib.h>
#include <string.h>

static uint64_t key_hash(const struct keymap *map, const void *key, size_t len)
{
	return hash_keyed(map->secret.begin, key, len, &map->secret);
}

static bool is_key(const struct keymap_entry *entry, const void *key, size_t len)
{
	return entry->len == len && !memcmp(entry->key, key, len);
}

/* The entry of a key, or MAP_NONE. */
static uint32_t find(const struct keymap *map, uint64_t hash, const void *key, size_t len)
{
	uint32_t at = map_get(&map->heads, hash);

	while (at != MAP_NONE && !is_key(&map->entries.data[at], key, len))
		at = map->entries.data[at].next;
	return at;
}

uint32_t keymap_get(const struct keymap *map, const void *key, size_t len)
{
	uint32_t at = map->len ? find(map, key_hash(map, key, len), key, len) : MAP_NONE;

	return at == MAP_NONE ? MAP_NONE : map->entries.data[at].value;
}

static void entry_give(struct keymap *map, uint32_t at)
{
	free(map->entries.data[at].key);
	map->entries.data[at] = (struct keymap_entry){.next = map->free};
	map->free = at;
}

static bool insert(struct keymap *map, uint64_t hash, const void *key, size_t len, uint32_t value)
{
	bool appends = map->free == MAP_NONE;
	uint32_t at = appends ? (uint32_t)map->entries.len : map->free;
	struct keymap_entry entry = {
		.len = (uint32_t)len, .value = value, .next = map_get(&map->heads, hash)};

	if (len >= UINT32_MAX || at == MAP_NONE || (appends && !vec_reserve(&map->entries, 1)))
		return false;
	entry.key = malloc(len + 1);
	if (!entry.key || !map_set(&map->heads, hash, at)) {
		free(entry.key);
		return false;
	}
	memcpy(entry.key, key, len);
	entry.key[len] = '\0';
	if (appends)
		map->entries.len++;
	else
		map->free = map->entries.data[at].next;
	map->entries.data[at] = entry;
	map->len++;
	return true;
}

bool keymap_set(struct keymap *map, const void *key, size_t len, uint32_t value)
{
	uint64_t hash;
	uint32_t at;

	if (!map->entries.len)
		map->free = MAP_NONE;
	if (!map->secret.factor)
		map->secret = hash_secret();
	hash = key_hash(map, key, len);
	at = find(map, hash, key, len);
	if (at == MAP_NONE)
		return insert(map, hash, key, len, value);
	map->entries.data[at].value = value;
	return true;
}

uint32_t keymap_remove(struct keymap *map, const void *key, size_t len)
{
	uint64_t hash = key_hash(map, key, len);
	uint32_t at = find(map, hash, key, len), before = map_get(&map->heads, hash), value;

	if (at == MAP_NONE)
		return MAP_NONE;
	value = map->entries.data[at].value;
	if (before != at) {
		while (map->entries.data[before].next != at)
			before = map->entries.data[before].next;
		map->entries.data[before].next = map->entries.data[at].next;
	} else if (map->entries.data[at].next == MAP_NONE) {
		map_remove(&map->heads, hash);
	} else { /* the hash is there, so this needs no memory */
		(void)map_set(&map->heads, hash, map->entries.data[at].next);
	}
	entry_give(map, at);
	map->len--;
	return value;
}

void keymap_free(struct keymap *map)
{
	for (size_t i = 0; i < map->entries.len; i++)
		free(map->entries.data[i].key);
	vec_free(&map->entries);
	map_free(&map->heads);
	*map = (struct keymap){0};
}
