// SPDX-License-Identifier: Apache-2.0
#include "capture/transport/name_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/transport/ring_memory_internal.h"
#include "usdt/name/name_chunk.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/vec.h"

/* Limits of all processes, each of which may define what it likes. A process may have as many as
 * are left for all others. */
#define CHUNKS_MAX 4096
#define CHUNKS_OF_PROCESS_MAX 256 /* 64 MiB, for which we may have to pay */
/* A quarter of the sites that a file may have, so that those of programs have room, too. */
#define SITES_MAX 65536
#define SITES_BYTES_MAX (64u << 20) /* their texts */
#define TRACKS_MAX 65536
#define ROUND_MAX 16384 /* definitions that are read in a round */
#define SEARCHES_MAX 64 /* for tracks that are not defined, of a process in a round */

struct name_memory {
	uint32_t process; /* index in `processes` */
	uint64_t address; /* in the process */
	struct ring_memory memory;
	uint32_t at; /* of the next entry */
	bool broken;
	struct map numbers; /* offset of an entry → number of its site */
};

/* A definition as a key, with its texts behind it. All processes that run the same program define
 * the same names, which are one site. */
struct name_key {
	uint32_t line;
	uint16_t kind, key_count;
	char types[WAFFLE_KEYS_MAX];
};

struct site_kept {
	struct site_info *site; /* with strings in the key */
	uint32_t number;
};

struct set_track {
	char name[WAFFLE_TRACK_NAME];
	char group[WAFFLE_TRACK_NAME];
};

/* A process, also after its end, since its last hits are delivered later. */
struct name_process {
	pid_t pid;
	uint32_t chunks, sites;
	uint32_t searches; /* in this round */
	size_t site_bytes;
	VEC(struct set_track) tracks;
	struct map track_at; /* number of a track → index in `tracks` */
};

struct name_set {
	struct name_set_options options;
	struct ring_mount mount;
	VEC(struct name_memory) chunks;
	bool off;            /* nothing is armed any more */
	bool full;           /* that was told */
	struct keymap sites; /* definition → index in `kept` */
	VEC(struct site_kept) kept;
	size_t site_bytes, track_count;
	VEC(struct name_process) processes;
	struct map process_at; /* pid → index in `processes` */
	struct name_definition scratch;
	char key[sizeof(struct name_key) + NAME_TEXTS_MAX];
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

static void process_clear(struct name_set *set, struct name_process *process)
{
	set->track_count -= process->tracks.len;
	vec_free(&process->tracks);
	map_free(&process->track_at);
}

/* NULL: it has no names. */
static struct name_process *process_find(struct name_set *set, pid_t pid)
{
	uint32_t at = map_get(&set->process_at, (uint32_t)pid);

	return at == MAP_NONE ? NULL : &set->processes.data[at];
}

/* NULL: out of memory. */
static struct name_process *process_get(struct name_set *set, pid_t pid)
{
	struct name_process *process = process_find(set, pid);
	uint32_t at = (uint32_t)set->processes.len;

	if (process || !vec_reserve(&set->processes, 1) ||
	    !map_set(&set->process_at, (uint32_t)pid, at))
		return process;
	set->processes.data[set->processes.len++] = (struct name_process){.pid = pid};
	return &set->processes.data[at];
}

/* Whether a process that has `own` of `all` may have `more`. */
static bool is_left(size_t own, size_t all, size_t more, size_t max)
{
	return all + more <= max && own + more <= max - all;
}

/* There is no room for a name or a track. */
static void full_tell(struct name_set *set)
{
	if (!set->full && set->options.full)
		set->options.full(set->options.arg);
	set->full = true;
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
	for (size_t i = 0; i < set->kept.len; i++)
		free(set->kept.data[i].site);
	for (size_t i = 0; i < set->processes.len; i++)
		process_clear(set, &set->processes.data[i]);
	vec_free(&set->chunks);
	vec_free(&set->kept);
	keymap_free(&set->sites);
	vec_free(&set->processes);
	map_free(&set->process_at);
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
	struct name_memory one = {.address = address, .at = NAME_CHUNK_FIRST};
	struct name_process *process;
	int result;

	if (bytes != NAME_CHUNK_BYTES)
		return -EACCES;
	process = process_get(set, pid);
	if (!process)
		return -ENOMEM;
	if (!process->chunks) /* it is another program than before */
		process_clear(set, process);
	if (process->chunks >= CHUNKS_OF_PROCESS_MAX ||
	    !is_left(process->chunks, set->chunks.len, 1, CHUNKS_MAX)) {
		full_tell(set);
		return -ENOSPC;
	}
	result = ring_memory_map(&one.memory, &set->mount, pid, address, bytes);
	if (result)
		return result;
	one.process = (uint32_t)(process - set->processes.data);
	if (!is_known(set, one.memory.ino) && name_chunk_is_valid(one.memory.at)) {
		process->chunks++;
		if (vec_push(&set->chunks, one))
			return 0;
		process->chunks--;
		result = -ENOMEM;
	} else {
		result = is_known(set, one.memory.ino) ? 0 : -EACCES;
	}
	ring_memory_unmap(&one.memory);
	return result;
}

/* Bytes of the texts of the current definition. */
static size_t texts_bytes(const struct name_definition *from)
{
	const struct site_info *site = &from->site;
	const char *last = site->key_count ? site->keys[site->key_count - 1].name : site->func;

	return (size_t)(last - from->texts) + strlen(last) + 1;
}

/* Makes the key of the current definition. Returns its length. */
static size_t key_make(struct name_set *set)
{
	const struct site_info *site = &set->scratch.site;
	struct name_key key = {
		.line = site->line, .kind = site->kind, .key_count = (uint16_t)site->key_count};
	size_t texts = texts_bytes(&set->scratch);

	for (unsigned i = 0; i < site->key_count; i++)
		key.types[i] = site->keys[i].type;
	memcpy(set->key, &key, sizeof(key));
	memcpy(set->key + sizeof(key), set->scratch.texts, texts);
	return sizeof(key) + texts;
}

/* A copy of the current definition that lives as long as the set. `texts` are those of its key. */
static struct site_info *site_copy(const struct name_set *set, const char *texts)
{
	const struct name_definition *from = &set->scratch;
	struct site_info *kept = malloc(sizeof(*kept));

	if (!kept)
		return NULL;
	*kept = from->site;
	kept->name = texts + (from->site.name - from->texts);
	kept->file = texts + (from->site.file - from->texts);
	kept->category = texts + (from->site.category - from->texts);
	kept->func = texts + (from->site.func - from->texts);
	for (unsigned i = 0; i < kept->key_count; i++)
		kept->keys[i].name = texts + (from->site.keys[i].name - from->texts);
	return kept;
}

/* Keeps the current definition, which is new. Returns the number of its site. */
static uint32_t site_keep(struct name_set *set, struct name_process *process, size_t len)
{
	struct site_kept kept;

	if (!is_left(process->sites, set->kept.len, 1, SITES_MAX) ||
	    !is_left(process->site_bytes, set->site_bytes, len, SITES_BYTES_MAX)) {
		full_tell(set);
		return WAFFLE_SITE_UNKNOWN;
	}
	if (!vec_reserve(&set->kept, 1) ||
	    !keymap_set(&set->sites, set->key, len, (uint32_t)set->kept.len))
		return WAFFLE_SITE_UNKNOWN;
	/* Keys stay where they are until they are removed. */
	kept.site = site_copy(set,
			      set->sites.entries.data[set->kept.len].key + sizeof(struct name_key));
	if (!kept.site) {
		keymap_remove(&set->sites, set->key, len);
		return WAFFLE_SITE_UNKNOWN;
	}
	process->sites++;
	process->site_bytes += len;
	set->site_bytes += len;
	kept.number = set->options.found(kept.site, set->options.arg);
	set->kept.data[set->kept.len++] = kept;
	return kept.number;
}

/* The number of the current definition's site. */
static uint32_t site_number(struct name_set *set, struct name_process *process)
{
	size_t len = key_make(set);
	uint32_t at = keymap_get(&set->sites, set->key, len);

	return at == MAP_NONE ? site_keep(set, process, len) : set->kept.data[at].number;
}

static void text_copy(char to[WAFFLE_TRACK_NAME], const char *text)
{
	memset(to, 0, WAFFLE_TRACK_NAME);
	memcpy(to, text, strnlen(text, WAFFLE_TRACK_NAME - 1));
}

/* Makes room for a track among those of processes that have ended. */
static bool tracks_make_room(struct name_set *set, const struct name_process *process)
{
	for (size_t i = 0; set->track_count >= TRACKS_MAX && i < set->processes.len; i++)
		if (!set->processes.data[i].chunks)
			process_clear(set, &set->processes.data[i]);
	return is_left(process->tracks.len, set->track_count, 1, TRACKS_MAX);
}

static void track_take(struct name_set *set, struct name_process *process,
		       const struct name_definition *definition)
{
	struct set_track track;

	if (map_get(&process->track_at, definition->track) != MAP_NONE)
		return;
	if (!tracks_make_room(set, process)) {
		full_tell(set);
		return;
	}
	text_copy(track.name, definition->site.name);
	text_copy(track.group, definition->site.category);
	if (!vec_push(&process->tracks, track))
		return;
	set->track_count++;
	map_set(&process->track_at, definition->track, (uint32_t)process->tracks.len - 1);
}

static void site_take(struct name_set *set, struct name_memory *one)
{
	const struct name_definition *definition = &set->scratch;
	struct name_process *process = &set->processes.data[one->process];
	uint32_t number = site_number(set, process);
	bool wanted =
		number != WAFFLE_SITE_UNKNOWN && map_set(&one->numbers, definition->at, number);

	if (wanted)
		ring_set_site(set->options.rings, process->pid, one->address + definition->at,
			      number);
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
			track_take(set, &set->processes.data[one->process], &set->scratch);
		else
			site_take(set, one);
		left--;
	}
	return left;
}

void name_set_poll(struct name_set *set)
{
	unsigned left = ROUND_MAX;

	for (size_t i = 0; i < set->processes.len; i++)
		set->processes.data[i].searches = 0;
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

		if (at >= NAME_CHUNK_BYTES || set->processes.data[one->process].pid != pid)
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
	struct name_process *process = process_find(set, pid);
	uint32_t at = process ? map_get(&process->track_at, number) : MAP_NONE;

	/* It may be new. */
	if (process && at == MAP_NONE && process->searches++ >= SEARCHES_MAX)
		return false;
	for (size_t i = 0; process && at == MAP_NONE && i < set->chunks.len; i++)
		if (set->processes.data[set->chunks.data[i].process].pid == pid)
			memory_poll(set, &set->chunks.data[i], ROUND_MAX);
	at = process && at == MAP_NONE ? map_get(&process->track_at, number) : at;
	if (at == MAP_NONE)
		return false;
	*track = (struct name_set_track){process->tracks.data[at].name,
					 process->tracks.data[at].group};
	return true;
}

void name_set_ended(struct name_set *set, pid_t pid)
{
	struct name_process *process = process_find(set, pid);

	for (size_t i = set->chunks.len; process && i > 0; i--) {
		struct name_memory *one = &set->chunks.data[i - 1];

		if (set->processes.data[one->process].pid != pid)
			continue;
		/* Its last hits are still in its rings. */
		memory_poll(set, one, ROUND_MAX);
		memory_free(one);
		*one = set->chunks.data[--set->chunks.len];
	}
	if (process) {
		process->chunks = process->sites = 0;
		process->site_bytes = 0;
	}
}
