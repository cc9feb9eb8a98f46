// SPDX-License-Identifier: Apache-2.0
/* Spans that fit on no thread's track. They are on separate tracks, which spans of one process and
 * name share. */
#include <stdlib.h>

#include "export/perfetto/perfetto_internal.h"
#include "util/memory.h"

struct pool_track {
	uint64_t free_ts, uuid;
};

/* Tracks for a process and a name: a heap, with the track that is free first on top. */
struct pool {
	VEC(struct pool_track) tracks;
};

struct pools {
	struct map by_key; /* process uuid << 32 | name → index */
	VEC(struct pool) list;
};

static void sift_down(struct pool *pool)
{
	struct pool_track *tracks = pool->tracks.data;
	size_t at = 0;

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

static void sift_up(struct pool *pool)
{
	struct pool_track *tracks = pool->tracks.data;

	for (size_t at = pool->tracks.len - 1; at > 0;) {
		size_t parent = (at - 1) / 2;
		struct pool_track moved = tracks[at];

		if (tracks[parent].free_ts <= moved.free_ts)
			return;
		tracks[at] = tracks[parent];
		tracks[parent] = moved;
		at = parent;
	}
}

static struct pool *pool_find(struct perfetto *p, struct pools *pools,
			      const struct model_span *span)
{
	uint64_t key =
		tracks_process_uuid(p, span->thread) << 32 | names_of_site(p, span->site)->name;
	uint32_t index = map_get(&pools->by_key, key);

	if (index == MAP_NONE) {
		index = (uint32_t)pools->list.len;
		vec_add(&pools->list, (struct pool){0});
		map_put(&pools->by_key, key, index);
	}
	return &pools->list.data[index];
}

/* A track that is free when the span begins; a new one if there is none. */
static uint64_t pool_take(struct perfetto *p, struct pool *pool, const struct model_span *span)
{
	uint64_t uuid;

	if (pool->tracks.len && pool->tracks.data[0].free_ts <= span->start_ts) {
		uuid = pool->tracks.data[0].uuid;
		pool->tracks.data[0].free_ts = span->end_ts;
		sift_down(pool);
		return uuid;
	}
	uuid = ++p->next_uuid;
	vec_add(&pool->tracks, (struct pool_track){span->end_ts, uuid});
	sift_up(pool);
	track_describe(p, uuid, tracks_process_uuid(p, span->thread),
		       strtab_get(p->names.text, names_of_site(p, span->site)->name), false,
		       span->start_ts);
	return uuid;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void perfetto_strays(struct perfetto *p)
{
	struct pools pools = {0};
	struct sequence sequence;

	if (p->strays.len == 0)
		return;
	/* Spans are numbered by their start times, so this assigns tracks in the order of time. */
	qsort(p->strays.data, p->strays.len, sizeof(*p->strays.data), by_number);
	sequence = sequence_begin(p, 0, false);
	for (size_t i = 0; i < p->strays.len; i++) {
		const struct model_span *span = &p->model->spans.data[p->strays.data[i]];
		uint64_t uuid = pool_take(p, pool_find(p, &pools, span), span);

		span_begin_put(p, &sequence, p->strays.data[i], uuid);
		span_end_put(p, &sequence, span->end_ts, uuid);
	}
	for (size_t i = 0; i < pools.list.len; i++)
		vec_free(&pools.list.data[i].tracks);
	vec_free(&pools.list);
	map_free(&pools.by_key);
}
