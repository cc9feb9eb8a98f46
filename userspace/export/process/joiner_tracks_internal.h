/* SPDX-License-Identifier: Apache-2.0 */
/* The tracks of a stream of records: time lines of a process that are no threads. */
#ifndef WAFFLE_EXPORT_PROCESS_JOINER_TRACKS_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_JOINER_TRACKS_INTERNAL_H

#include <stdint.h>

#include "bpf/record.h"

struct joiner_track {
	char name[WAFFLE_TRACK_NAME + 1], group[WAFFLE_TRACK_NAME + 1];
};

struct joiner_tracks;

struct joiner_tracks *joiner_tracks_new(void);
void joiner_tracks_free(struct joiner_tracks *tracks);
/* Takes the definition of a track. Definitions beyond a limit are ignored. */
void joiner_tracks_define(struct joiner_tracks *tracks, const struct waffle_rec_track *track);
/* The next hit, if it has this id, is on a track. */
void joiner_tracks_announce(struct joiner_tracks *tracks, const struct waffle_rec_on_track *on);
/* The track of a hit; NULL: it is of its thread. Valid as long as the tracks. */
const struct joiner_track *joiner_tracks_take(struct joiner_tracks *tracks, uint64_t id);

#endif
