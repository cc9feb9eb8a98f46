// SPDX-License-Identifier: Apache-2.0
#include "capture/transport/name_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/transport/ring_memory_internal.h"
#include "usdt/name/name_chunk.h"
#include "util/map.h"
#include "util/vec.h"

/* Limits, since a process may define what it likes. */
#define CHUNKS_MAX 4096 /* of all processes */
/* Of all processes: a quarter of the sites that a file may have, so that those of programs have
 * room, too. */
#define SITES_MAX 65536
#define SITES_BYTES_MAX (64u << 20) /* their texts */
#define TRACKS_MAX 65536            /* of all processes */
#define ROUND_MAX 16384             /* definitions that are read in a round */

struct name_memory {
	pid_t pid;
	uint64_t address; /* in the process */
	struct ring_memory memory;
	uint32_t at; /* of the next entry */
	bool broken;
	struct map numbers; /* offset of an entry → number of its site */
};

struct set_track {
	char name[WAFFLE_TRACK_NAME];
	char group[WAFFLE_TRACK_NAME];
};

struct name_set {
	struct name_set_options options;
	struct ring_mount mount;
	VEC(struct name_memory) chunks;
	bool off;                      /* nothing is armed any more */
	VEC(struct site_info *) sites; /* each with its strings in one block */
	size_t site_bytes;
	VEC(struct set_track) tracks;
	struct map track_at; /* process << 32 | number of a track → index in `tracks` */
	struct name_definition scratch;
};

int name_set_open(struct name_set **set, const struct name_set_options *options, struct error *err)
{
	struct name_set *made = calloc(1, sizeof(*made));
	int result;

	*set = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->options = *options;
	result = ring_mount_open(&made->mount);
	if (result) {
		free(made);
		return error_set(err, -result, "reading names: %s", strerror(-result));
	}
	*set = made;
	return 0;
}

static void memory_disarm(struct name_memory *one)
{
	for (size_t i = 0; i < one->numbers.cap; i++)
		if (one->numbers.slots[i].value != MAP_NONE)
			name_chunk_arm(one->memory.at, (uint32_t)one->numbers.slots[i].key, false);
}

/* The process may go on. */
static void memory_free(struct name_memory *one)
{
	memory_disarm(one);
	ring_memory_unmap(&one->memory);
	map_free(&one->numbers);
}

void name_set_close(struct name_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->chunks.len; i++)
		memory_free(&set->chunks.data[i]);
	for (size_t i = 0; i < set->sites.len; i++)
		free(set->sites.data[i]);
	vec_free(&set->chunks);
	vec_free(&set->sites);
	vec_free(&set->tracks);
	map_free(&set->track_at);
	ring_mount_close(&set->mount);
	free(set);
}

static bool is_known(const struct name_set *set, uint64_t ino)
{
	for (size_t i = 0; i < set->chunks.len; i++)
		if (set->chunks.data[i].memory.ino == ino)
			return true;
	return false;
}

int name_set_add(struct name_set *set, pid_t pid, uint64_t address, uint64_t bytes)
{
	struct name_memory one = {.pid = pid, .address = address, .at = NAME_CHUNK_FIRST};
	int result;

	if (bytes != NAME_CHUNK_BYTES)
		return -EACCES;
	if (set->chunks.len >= CHUNKS_MAX)
		return -ENOSPC;
	result = ring_memory_map(&one.memory, &set->mount, pid, address, bytes);
	if (result)
		return result;
	if (!is_known(set, one.memory.ino) && name_chunk_is_valid(one.memory.at)) {
		if (vec_push(&set->chunks, one))
			return 0;
		result = -ENOMEM;
	} else {
		result = is_known(set, one.memory.ino) ? 0 : -EACCES;
	}
	ring_memory_unmap(&one.memory);
	return result;
}

/* A copy that lives as long as the set. NULL: there are too many, or out of memory. */
static struct site_info *site_keep(struct name_set *set, const struct site_info *site)
{
	const struct name_definition *from = &set->scratch;
	const char *last = site->key_count ? site->keys[site->key_count - 1].name : site->func;
	size_t texts = (size_t)(last - from->texts) + strlen(last) + 1;
	struct site_info *kept;
	char *copies;

	if (set->sites.len >= SITES_MAX || set->site_bytes + texts > SITES_BYTES_MAX ||
	    !vec_reserve(&set->sites, 1))
		return NULL;
	kept = malloc(sizeof(*kept) + texts);
	if (!kept)
		return NULL;
	copies = (char *)(kept + 1);
	memcpy(copies, from->texts, texts);
	*kept = *site;
	kept->name = copies + (site->name - from->texts);
	kept->file = copies + (site->file - from->texts);
	kept->category = copies + (site->category - from->texts);
	kept->func = copies + (site->func - from->texts);
	for (unsigned i = 0; i < site->key_count; i++)
		kept->keys[i].name = copies + (site->keys[i].name - from->texts);
	set->sites.data[set->sites.len++] = kept;
	set->site_bytes += texts;
	return kept;
}

static uint64_t track_key(pid_t pid, uint32_t number)
{
	return (uint64_t)(uint32_t)pid << 32 | number;
}

static void text_copy(char to[WAFFLE_TRACK_NAME], const char *text)
{
	memset(to, 0, WAFFLE_TRACK_NAME);
	memcpy(to, text, strnlen(text, WAFFLE_TRACK_NAME - 1));
}

static void track_take(struct name_set *set, pid_t pid, const struct name_definition *definition)
{
	struct set_track track;

	text_copy(track.name, definition->site.name);
	text_copy(track.group, definition->site.category);
	if (set->tracks.len < TRACKS_MAX && vec_push(&set->tracks, track))
		map_set(&set->track_at, track_key(pid, definition->track),
			(uint32_t)set->tracks.len - 1);
}

static void site_take(struct name_set *set, struct name_memory *one)
{
	const struct name_definition *definition = &set->scratch;
	struct site_info *site = site_keep(set, &definition->site);
	uint32_t number = site ? set->options.found(site, set->options.arg) : WAFFLE_SITE_UNKNOWN;
	bool wanted =
		number != WAFFLE_SITE_UNKNOWN && map_set(&one->numbers, definition->at, number);

	if (wanted)
		ring_set_site(set->options.rings, one->pid, one->address + definition->at, number);
	name_chunk_arm(one->memory.at, definition->at, wanted && !set->off);
}

/* Reads what is new, up to a number of definitions. Returns what is left of it. */
static unsigned memory_poll(struct name_set *set, struct name_memory *one, unsigned left)
{
	while (!one->broken && left) {
		enum name_chunk_result result =
			name_chunk_next(one->memory.at, &one->at, &set->scratch);

		if (result == NAME_CHUNK_END)
			break;
		one->broken = result == NAME_CHUNK_BROKEN;
		if (one->broken)
			break;
		if (set->scratch.track)
			track_take(set, one->pid, &set->scratch);
		else
			site_take(set, one);
		left--;
	}
	return left;
}

void name_set_poll(struct name_set *set)
{
	unsigned left = ROUND_MAX;

	for (size_t i = 0; i < set->chunks.len && left; i++)
		left = memory_poll(set, &set->chunks.data[i], left);
}

void name_set_disarm(struct name_set *set)
{
	set->off = true;
	for (size_t i = 0; i < set->chunks.len; i++)
		memory_disarm(&set->chunks.data[i]);
}

uint32_t name_set_site(struct name_set *set, pid_t pid, uint64_t probe)
{
	for (size_t i = 0; i < set->chunks.len; i++) {
		struct name_memory *one = &set->chunks.data[i];
		uint64_t at = probe - one->address;
		uint32_t number;

		if (one->pid != pid || at >= NAME_CHUNK_BYTES)
			continue;
		memory_poll(set, one, ROUND_MAX);
		number = map_get(&one->numbers, at);
		/* It may be no name at all, but then only this process is concerned. */
		return number == MAP_NONE ? RING_SITE_UNWANTED : number;
	}
	return WAFFLE_SITE_UNKNOWN;
}

bool name_set_track(struct name_set *set, pid_t pid, uint32_t number, struct name_set_track *track)
{
	uint32_t at = map_get(&set->track_at, track_key(pid, number));

	/* It may be new. */
	for (size_t i = 0; at == MAP_NONE && i < set->chunks.len; i++)
		if (set->chunks.data[i].pid == pid)
			memory_poll(set, &set->chunks.data[i], ROUND_MAX);
	at = at == MAP_NONE ? map_get(&set->track_at, track_key(pid, number)) : at;
	if (at == MAP_NONE)
		return false;
	*track = (struct name_set_track){set->tracks.data[at].name, set->tracks.data[at].group};
	return true;
}

void name_set_ended(struct name_set *set, pid_t pid)
{
	for (size_t i = set->chunks.len; i > 0; i--) {
		struct name_memory *one = &set->chunks.data[i - 1];

		if (one->pid != pid)
			continue;
		/* Its last hits are still in its rings. */
		memory_poll(set, one, ROUND_MAX);
		memory_free(one);
		*one = set->chunks.data[--set->chunks.len];
	}
}
