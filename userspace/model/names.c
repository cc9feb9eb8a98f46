// SPDX-License-Identifier: Apache-2.0
/* Replaces addresses of code by names. The value's word becomes a pointer to the name, and the
 * key's type becomes SITE_KEY_TEXT. The layout of the values stays the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/search.h"

#define CACHE_SLOTS 1024 /* a power of two */

struct known_name {
	uint64_t value, since;
	uint32_t pid;
	uint32_t number; /* of the reader's name; at equal times the last one counts */
};

/* Cached name of a value from `since` until just before `until`. */
struct cached {
	uint64_t value, since, until;
	const char *name; /* NULL: free slot */
	uint32_t pid;
	bool known;
};

/* A value, with the process and time that it occurred in. */
struct naming_use {
	uint64_t value, ts;
	uint32_t pid;
};

struct names_naming {
	struct model *model;
	struct known_name *known;
	size_t count;
	struct cached *cache;
};

static int known_compare(const void *left, const void *right)
{
	const struct known_name *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	if (a->since != b->since)
		return a->since < b->since ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static bool is_of(const struct known_name *known, const struct naming_use *use)
{
	return known->pid == use->pid && known->value == use->value;
}

/* The number of entries up to and including the last one that is valid at that time. */
static size_t known_before(const struct names_naming *naming, const struct naming_use *use)
{
	const struct known_name wanted = {use->value, use->ts, use->pid, UINT32_MAX};

	return lower_bound(naming->count, i, known_compare(&naming->known[i], &wanted) <= 0);
}

/* Copies a text into the model. */
static const char *text_keep(const struct names_naming *naming, const char *text)
{
	struct strtab *strings = naming->model->strings;

	return strtab_get(strings, strtab_put(strings, text, strlen(text)));
}

static const char *number_text(const struct names_naming *naming, uint64_t value)
{
	char hex[24];

	snprintf(hex, sizeof(hex), "0x%" PRIx64, value);
	return text_keep(naming, hex);
}

static void slot_fill(const struct names_naming *naming, struct cached *slot,
		      const struct naming_use *use)
{
	size_t before = known_before(naming, use);
	const struct known_name *at = before ? &naming->known[before - 1] : NULL;
	const char *name = "";

	*slot = (struct cached){.value = use->value, .until = UINT64_MAX, .pid = use->pid};
	if (before < naming->count && is_of(&naming->known[before], use))
		slot->until = naming->known[before].since;
	if (at && is_of(at, use)) {
		slot->since = at->since;
		name = store_reader_name(naming->model->reader, at->number)->name;
	}
	slot->known = *name;
	slot->name = slot->known ? text_keep(naming, name) : number_text(naming, use->value);
}

static const struct cached *name_at(const struct names_naming *naming, const struct naming_use *use)
{
	uint64_t hash = hash_number(use->value ^ (uint64_t)use->pid << 32);
	struct cached *slot = &naming->cache[hash >> 32 & (CACHE_SLOTS - 1)];

	if (!slot->name || slot->value != use->value || slot->pid != use->pid ||
	    use->ts < slot->since || use->ts >= slot->until)
		slot_fill(naming, slot, use);
	return slot;
}

/*
 * The value was read at the begin or at the end of the call, so we use a name that holds at both.
 * If it changed in between, the value stays a number. If it was unknown at the begin, the name at
 * the end counts.
 */
static const char *name_of(const struct names_naming *naming, struct naming_use use,
			   uint64_t end_ts)
{
	struct cached begin = *name_at(naming, &use);

	if (end_ts < begin.until)
		return begin.name;
	use.ts = end_ts;
	if (!begin.known)
		return name_at(naming, &use)->name;
	return name_at(naming, &use)->name == begin.name ? begin.name
							 : number_text(naming, use.value);
}

/* A span or event with values. */
struct holder {
	uint32_t site, thread, frame;
	uint64_t ts, end_ts;
};

static void name_values(const struct names_naming *naming, const struct holder *holder)
{
	struct model *model = naming->model;
	struct value_walk walk = model_values(model, holder->site, holder->frame);
	struct naming_use use = {.ts = holder->ts, .pid = model->threads.data[holder->thread].pid};
	struct value value;

	while (value_walk_next(&walk, &value)) {
		const unsigned char *word = walk.at - sizeof(uint64_t);

		if (value.type != WAFFLE_KEY_CODE)
			continue;
		use.value = value.u64;
		/* All values are whole words, counted from the begin of model.frames. */
		model->frames.data[(const uint64_t *)(const void *)word - model->frames.data] =
			(uintptr_t)name_of(naming, use, holder->end_ts);
	}
}

/* A call that creates a handle has it only at its end. */
static uint64_t begin_ts(const struct model *model, const struct model_span *span)
{
	enum site_role role = model->sites.data[span->site].role;

	return role == SITE_ROLE_NAME || role == SITE_ROLE_HANDLE ? span->end_ts : span->start_ts;
}

static bool has_code(const struct site_info *site)
{
	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		if (site->keys[i].type == WAFFLE_KEY_CODE)
			return true;
	return false;
}

static void name_all(const struct names_naming *naming, const bool *wanted)
{
	const struct model *model = naming->model;

	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		if (span->site < model->sites.len && wanted[span->site])
			name_values(naming, &(struct holder){span->site, span->thread, span->frame,
							     begin_ts(model, span), span->end_ts});
	}
	for (size_t i = 0; i < model->events.len; i++) {
		const struct model_event *event = &model->events.data[i];

		if (event->site < model->sites.len && wanted[event->site])
			name_values(naming, &(struct holder){event->site, event->thread,
							     event->frame, event->ts, event->ts});
	}
}

static void naming_prepare(struct names_naming *naming)
{
	const struct store_reader *reader = naming->model->reader;

	naming->count = store_reader_name_count(reader);
	naming->known = memory_zeroed(naming->count, sizeof(*naming->known));
	naming->cache = memory_zeroed(CACHE_SLOTS, sizeof(*naming->cache));
	for (size_t i = 0; i < naming->count; i++) {
		const struct store_name *name = store_reader_name(reader, (uint32_t)i);

		naming->known[i] =
			(struct known_name){name->value, name->since, name->pid, (uint32_t)i};
	}
	qsort(naming->known, naming->count, sizeof(*naming->known), known_compare);
}

void names_resolve(struct model *model)
{
	struct names_naming naming = {.model = model};
	bool *wanted = memory_zeroed(model->sites.len, sizeof(*wanted)), any = false;

	for (size_t i = 0; i < model->sites.len; i++)
		any |= wanted[i] = has_code(&model->sites.data[i]);
	if (any) {
		naming_prepare(&naming);
		name_all(&naming, wanted);
	}
	for (size_t i = 0; any && i < model->sites.len; i++)
		for (unsigned k = 0; wanted[i] && k < model->sites.data[i].key_count; k++)
			if (model->sites.data[i].keys[k].type == WAFFLE_KEY_CODE)
				model->sites.data[i].keys[k].type = SITE_KEY_TEXT;
	free(wanted);
	free(naming.known);
	free(naming.cache);
}
