// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "export/process/joiner_tracks_internal.h"
#include "util/map.h"
#include "util/vec.h"

#define TRACKS_MAX 65536u

struct joiner_tracks {
	struct map index; /* process and number → index */
	VEC(struct joiner_track *) tracks;
	const struct joiner_track *announced;
	uint64_t announced_id;
	struct joiner_track unknown; /* of hits whose definition is not here: without a name */
};

struct joiner_tracks *joiner_tracks_new(void)
{
	return calloc(1, sizeof(struct joiner_tracks));
}

void joiner_tracks_free(struct joiner_tracks *tracks)
{
	if (!tracks)
		return;
	for (size_t i = 0; i < tracks->tracks.len; i++)
		free(tracks->tracks.data[i]);
	vec_free(&tracks->tracks);
	map_free(&tracks->index);
	free(tracks);
}

static uint64_t key_of(uint32_t tgid, uint32_t number)
{
	return (uint64_t)tgid << 32 | number;
}

void joiner_tracks_define(struct joiner_tracks *tracks, const struct waffle_rec_track *rec)
{
	uint64_t key = key_of(rec->tgid, rec->track);
	struct joiner_track *track;

	if (tracks->tracks.len >= TRACKS_MAX || map_get(&tracks->index, key) != MAP_NONE)
		return;
	track = calloc(1, sizeof(*track));
	if (!track || !vec_push(&tracks->tracks, track)) {
		free(track);
		return;
	}
	memcpy(track->name, rec->name, sizeof(rec->name));
	memcpy(track->group, rec->group, sizeof(rec->group));
	if (map_set(&tracks->index, key, (uint32_t)tracks->tracks.len - 1))
		return;
	tracks->tracks.len--;
	free(track);
}

void joiner_tracks_announce(struct joiner_tracks *tracks, const struct waffle_rec_on_track *on)
{
	uint32_t at = map_get(&tracks->index, key_of(on->tgid, on->track));

	tracks->announced = at == MAP_NONE ? &tracks->unknown : tracks->tracks.data[at];
	tracks->announced_id = on->id;
}

const struct joiner_track *joiner_tracks_take(struct joiner_tracks *tracks, uint64_t id)
{
	const struct joiner_track *track = tracks->announced;

	tracks->announced = NULL;
	return track && tracks->announced_id == id ? track : NULL;
}
