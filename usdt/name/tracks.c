// SPDX-License-Identifier: Apache-2.0
#include "usdt/name/tracks.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "usdt/name/names.h"
#include "usdt/name/text.h"
#include "usdt/ring/signals.h"
#include "usdt/say/say.h"

#define API __attribute__((visibility("default")))
#define TRACKS_MAX 65536u
#define BLOCK 256u /* tracks of a block of pointers */

static struct {
	pthread_mutex_t lock; /* of what follows, but tracks are found without it */
	struct waffle_clock_ *clocks;
	struct waffle_track_ *tracks; /* the newest first */
	uint32_t count;
	/* By number, in blocks that stay where they are. */
	struct waffle_track_ **blocks[TRACKS_MAX / BLOCK];
	bool told;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What is returned instead of a clock or track that can't be made. */
static struct waffle_clock_ broken_clock;
static struct waffle_track_ refused;

static void text_copy(char to[WAFFLE_TRACK_NAME], const char *text)
{
	struct text cut = text_of(text, WAFFLE_TRACK_NAME - 1);

	memset(to, 0, WAFFLE_TRACK_NAME);
	memcpy(to, cut.at, cut.len);
}

/* With the lock. */
static struct waffle_clock_ *clock_get(const char name[WAFFLE_TRACK_NAME])
{
	struct waffle_clock_ *clock = all.clocks;

	while (clock && strcmp(clock->name, name))
		clock = clock->next;
	if (clock)
		return clock;
	clock = calloc(1, sizeof(*clock));
	if (!clock)
		return NULL;
	memcpy(clock->name, name, WAFFLE_TRACK_NAME);
	clock->next = all.clocks;
	all.clocks = clock;
	return clock;
}

API waffle_clock_t *waffle_clock(const char *name)
{
	char text[WAFFLE_TRACK_NAME];
	struct waffle_clock_ *clock;
	uint64_t signals;
	int code = errno;

	text_copy(text, name);
	signals = signals_lock(&all.lock);
	clock = clock_get(text);
	signals_unlock(&all.lock, signals);
	errno = code;
	return clock ?: &broken_clock;
}

API void waffle_clock_pair(waffle_clock_t *clock, unsigned long long own_ns,
			   unsigned long long monotonic_ns)
{
	uint64_t signals = signals_lock(&all.lock);

	clock_latch_add(&clock->latch, (struct clock_pair){own_ns, monotonic_ns});
	signals_unlock(&all.lock, signals);
}

/* With the lock: makes a track. NULL: there are too many, or memory is short. */
static struct waffle_track_ *track_new(void)
{
	struct waffle_track_ ***block = &all.blocks[all.count / BLOCK];
	struct waffle_track_ *track;

	if (all.count >= TRACKS_MAX)
		return NULL;
	if (!*block) {
		struct waffle_track_ **made = calloc(BLOCK, sizeof(**block));

		if (!made)
			return NULL;
		__atomic_store_n(block, made, __ATOMIC_RELEASE);
	}
	track = calloc(1, sizeof(*track));
	if (!track)
		return NULL;
	track->next = all.tracks;
	track->number = all.count + 1;
	return track;
}

static void track_publish(struct waffle_track_ *track)
{
	uint32_t index = track->number - 1;

	all.tracks = track;
	all.count++;
	__atomic_store_n(&all.blocks[index / BLOCK][index % BLOCK], track, __ATOMIC_RELEASE);
}

API waffle_track_t *waffle_track(const char *name, const char *group, waffle_clock_t *clock)
{
	char texts[2][WAFFLE_TRACK_NAME];
	struct waffle_track_ *track, *made = NULL;
	bool tell = false;
	uint64_t signals;
	int code = errno;

	text_copy(texts[0], name);
	text_copy(texts[1], group);
	signals = signals_lock(&all.lock);
	for (track = all.tracks; track; track = track->next)
		if (track->clock == clock && !strcmp(track->name, texts[0]) &&
		    !strcmp(track->group, texts[1]))
			break;
	if (!track && (track = track_new())) {
		track->clock = clock;
		memcpy(track->name, texts[0], WAFFLE_TRACK_NAME);
		memcpy(track->group, texts[1], WAFFLE_TRACK_NAME);
		track_publish(track);
		made = track;
	} else if (!track) {
		tell = !all.told;
		all.told = true;
	}
	signals_unlock(&all.lock, signals);
	if (made)
		names_add_track(made->number, made->name, made->group);
	if (tell)
		say_line("nothing is recorded on the track '%s': there are %u tracks already, or "
			 "memory is short",
			 texts[0], all.count);
	errno = code;
	return track ?: &refused;
}

const struct waffle_track_ *tracks_find(uint32_t number)
{
	struct waffle_track_ **block;
	uint32_t index = number - 1;

	if (index >= TRACKS_MAX)
		return NULL;
	block = __atomic_load_n(&all.blocks[index / BLOCK], __ATOMIC_ACQUIRE);
	return block ? __atomic_load_n(&block[index % BLOCK], __ATOMIC_ACQUIRE) : NULL;
}

uint64_t tracks_time(const struct waffle_track_ *track, uint64_t own_ns)
{
	return track->clock         ? clock_latch_ns(&track->clock->latch, own_ns)
	       : own_ns < INT64_MAX ? own_ns
				    : INT64_MAX;
}

void tracks_fork_before(void)
{
	pthread_mutex_lock(&all.lock);
}

void tracks_fork_parent(void)
{
	pthread_mutex_unlock(&all.lock);
}

void tracks_fork_child(void)
{
	pthread_mutex_init(&all.lock, NULL);
}
