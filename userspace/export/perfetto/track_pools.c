// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/track_pools.h"

#include "util/memory.h"

static void sift_down(struct track_pool *pool, size_t at)
{
	struct pool_track *tracks = pool->tracks.data;

	for (;;) {
		size_t child = 2 * at + 1;
		struct pool_track moved = tracks[at];

		if (child >= pool->tracks.len)
			return;
		if (child + 1 < pool->tracks.len &&
		    tracks[child + 1].free_ts < tracks[child].free_ts)
			child++;
		if (tracks[child].free_ts >= moved.free_ts)
			return;
		tracks[at] = tracks[child];
		tracks[child] = moved;
		at = child;
	}
}

static void sift_up(struct track_pool *pool, size_t at)
{
	struct pool_track *tracks = pool->tracks.data;

	while (at > 0) {
		size_t parent = (at - 1) / 2;
		struct pool_track moved = tracks[at];

		if (tracks[parent].free_ts <= moved.free_ts)
			return;
		tracks[at] = tracks[parent];
		tracks[parent] = moved;
		at = parent;
	}
}

static struct track_pool *pool_find(struct track_pools *pools, uint64_t process_uuid, uint32_t name)
{
	uint64_t key = process_uuid << 32 | name;
	uint32_t index = map_get(&pools->by_key, key);

	if (index == MAP_NONE) {
		index = (uint32_t)pools->list.len;
		vec_add(&pools->list, (struct track_pool){0});
		map_put(&pools->by_key, key, index);
	}
	return &pools->list.data[index];
}

uint64_t track_pools_take(struct track_pools *pools, struct pf_encoder *p, uint64_t process_uuid,
			  uint32_t name, uint64_t start_ts, uint64_t end_ts)
{
	struct track_pool *pool = pool_find(pools, process_uuid, name);
	uint64_t uuid;

	if (pool->tracks.len && pool->tracks.data[0].free_ts <= start_ts) {
		uuid = pool->tracks.data[0].uuid;
		pool->tracks.data[0].free_ts = end_ts;
		sift_down(pool, 0);
		return uuid;
	}
	uuid = ++p->next_uuid;
	vec_add(&pool->tracks, (struct pool_track){end_ts, uuid});
	sift_up(pool, pool->tracks.len - 1);
	track_describe(p, uuid, process_uuid, strtab_get(p->names.text, name), false, start_ts);
	return uuid;
}

void track_pools_release(struct track_pools *pools, uint64_t process_uuid, uint32_t name,
			 uint64_t uuid, uint64_t end_ts)
{
	struct track_pool *pool = pool_find(pools, process_uuid, name);

	for (size_t i = 0; i < pool->tracks.len; i++) {
		if (pool->tracks.data[i].uuid != uuid)
			continue;
		pool->tracks.data[i].free_ts = end_ts;
		sift_up(pool, i);
		return;
	}
}

void track_pools_free(struct track_pools *pools)
{
	for (size_t i = 0; i < pools->list.len; i++)
		vec_free(&pools->list.data[i].tracks);
	vec_free(&pools->list);
	map_free(&pools->by_key);
}
