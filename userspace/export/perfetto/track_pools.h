/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks for spans that fit on no thread's track. Those of one process and name share tracks: a
 * track is used again for a span that begins after it is free, and Perfetto merges tracks of one
 * name.
 */
#ifndef WAFFLE_EXPORT_PERFETTO_TRACK_POOLS_H
#define WAFFLE_EXPORT_PERFETTO_TRACK_POOLS_H

#include "export/perfetto/encoder.h"
#include "util/map.h"

struct pool_track {
	uint64_t free_ts, uuid;
};

/* Tracks for a process and a name: a heap, with the track that is free first on top. */
struct track_pool {
	VEC(struct pool_track) tracks;
};

struct track_pools {
	struct map by_key; /* process uuid << 32 | name → index */
	VEC(struct track_pool) list;
};

/* A track below a process, for a span with that interned name. A new track is described. end_ts
 * UINT64_MAX: the end is not known yet, and track_pools_release() tells it. Spans come in the order
 * of their begins. */
uint64_t track_pools_take(struct track_pools *pools, struct pf_encoder *p, uint64_t process_uuid,
			  uint32_t name, uint64_t start_ts, uint64_t end_ts);
void track_pools_release(struct track_pools *pools, uint64_t process_uuid, uint32_t name,
			 uint64_t uuid, uint64_t end_ts);
void track_pools_free(struct track_pools *pools);

#endif
