/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks and clocks that the program declares (waffle_track.h). They are never freed, so that a
 * record may refer to a track by its number at any time.
 */
#ifndef WAFFLE_USDT_NAME_TRACKS_H
#define WAFFLE_USDT_NAME_TRACKS_H

#include <stdint.h>

#include "bpf/record.h"
#include "usdt/record/clock_pairs.h"
#include "waffle_track.h"

struct waffle_clock_ {
	struct waffle_clock_ *next;
	struct clock_latch latch;
	char name[WAFFLE_TRACK_NAME];
};

struct waffle_track_ {
	struct waffle_track_ *next;
	struct waffle_clock_ *clock; /* NULL: CLOCK_MONOTONIC */
	uint32_t number;             /* from 1; 0: nothing is recorded on it */
	char name[WAFFLE_TRACK_NAME];
	char group[WAFFLE_TRACK_NAME];
};

/* The track with that number; NULL: there is none. Lock-free. */
const struct waffle_track_ *tracks_find(uint32_t number);
/* A time of the track's clock in CLOCK_MONOTONIC ns. Async-signal-safe. */
uint64_t tracks_time(const struct waffle_track_ *track, uint64_t own_ns);

/* Around fork(), as of names (usdt/name/names.h). */
void tracks_fork_before(void);
void tracks_fork_parent(void);
void tracks_fork_child(void);

#endif
