// SPDX-License-Identifier: Apache-2.0
#include "model/comm/comm_ids_internal.h"

#include "util/memory.h"

uint64_t comm_id_of(struct comm_ids *ids, const uint64_t *key, size_t bytes, uint64_t hash)
{
	uint32_t index = keymap_get(&ids->at, key, bytes);

	if (index != MAP_NONE)
		return ids->list.data[index];
	while (map_get(&ids->used, hash) != MAP_NONE)
		hash++;
	memory_require(ids->list.len < MAP_NONE);
	keymap_put(&ids->at, key, bytes, (uint32_t)ids->list.len);
	map_put(&ids->used, hash, 0);
	vec_add(&ids->list, hash);
	return hash;
}

void comm_ids_free(struct comm_ids *ids)
{
	vec_free(&ids->list);
	keymap_free(&ids->at);
	map_free(&ids->used);
}
