// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses of code become names. The word of such a value becomes the address of a text, and the
 * key's type SITE_KEY_TEXT; the walk through the values is the same as before.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/build.h"

#define CACHE_SLOTS 1024 /* a power of two */

struct known {
	uint64_t value;
	uint32_t pid;
	uint32_t number; /* of the reader's name; of several for a value the last one counts */
};

struct cached {
	uint64_t value;
	const char *name; /* NULL: the slot is free */
	uint32_t pid;
};

struct naming {
	struct model *model;
	struct known *known;
	size_t count;
	struct cached *cache;
};

static int known_compare(const void *left, const void *right)
{
	const struct known *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* The last one of the value, or NULL. */
static const struct known *known_find(const struct naming *naming, uint32_t pid, uint64_t value)
{
	const struct known wanted = {.value = value, .pid = pid, .number = UINT32_MAX};
	size_t low = 0, high = naming->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (known_compare(&naming->known[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || naming->known[low - 1].pid != pid || naming->known[low - 1].value != value)
		return NULL;
	return &naming->known[low - 1];
}

/* NULL: out of memory. */
static const char *name_make(const struct naming *naming, uint32_t pid, uint64_t value)
{
	const struct known *known = known_find(naming, pid, value);
	struct strtab *strings = naming->model->strings;
	char hex[24];
	const char *text = hex;
	uint32_t index;

	if (known)
		text = store_reader_name(naming->model->reader, known->number)->name;
	else
		snprintf(hex, sizeof(hex), "0x%" PRIx64, value);
	index = strtab_add(strings, text, strlen(text));
	return index == STRTAB_NONE ? NULL : strtab_get(strings, index);
}

static const char *name_of(const struct naming *naming, uint32_t pid, uint64_t value)
{
	uint64_t hash = (value ^ (uint64_t)pid << 32) * 0x9e3779b97f4a7c15ull;
	struct cached *slot = &naming->cache[hash >> 32 & (CACHE_SLOTS - 1)];

	if (!slot->name || slot->value != value || slot->pid != pid)
		*slot = (struct cached){value, name_make(naming, pid, value), pid};
	return slot->name;
}

static int name_values(const struct naming *naming, uint32_t site, uint32_t thread, uint32_t frame)
{
	struct model *model = naming->model;
	struct value_walk walk = model_values(model, site, frame);
	struct value value;

	while (value_walk_next(&walk, &value)) {
		const unsigned char *word = walk.at - sizeof(uint64_t);
		uintptr_t text;

		if (value.type != WAFFLE_KEY_CODE)
			continue;
		text = (uintptr_t)name_of(naming, model->threads.data[thread].pid, value.u64);
		if (!text)
			return -ENOMEM;
		/* Values are whole words from the begin of model.frames on. */
		model->frames.data[(const uint64_t *)(const void *)word - model->frames.data] =
			text;
	}
	return 0;
}

static bool has_code(const struct site_info *site)
{
	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		if (site->keys[i].type == WAFFLE_KEY_CODE)
			return true;
	return false;
}

static int name_all(const struct naming *naming, const bool *wanted)
{
	const struct model *model = naming->model;

	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		if (span->site < model->sites.len && wanted[span->site] &&
		    name_values(naming, span->site, span->thread, span->frame))
			return -ENOMEM;
	}
	for (size_t i = 0; i < model->events.len; i++) {
		const struct model_event *event = &model->events.data[i];

		if (event->site < model->sites.len && wanted[event->site] &&
		    name_values(naming, event->site, event->thread, event->frame))
			return -ENOMEM;
	}
	return 0;
}

static int naming_prepare(struct naming *naming)
{
	const struct store_reader *reader = naming->model->reader;

	naming->count = store_reader_name_count(reader);
	naming->known = calloc(naming->count + 1, sizeof(*naming->known));
	naming->cache = calloc(CACHE_SLOTS, sizeof(*naming->cache));
	if (!naming->known || !naming->cache)
		return -ENOMEM;
	for (size_t i = 0; i < naming->count; i++) {
		const struct store_name *name = store_reader_name(reader, (uint32_t)i);

		naming->known[i] = (struct known){name->value, name->pid, (uint32_t)i};
	}
	qsort(naming->known, naming->count, sizeof(*naming->known), known_compare);
	return 0;
}

int names_resolve(struct model *model)
{
	struct naming naming = {.model = model};
	bool *wanted = calloc(model->sites.len + 1, sizeof(*wanted)), any = false;
	int result = wanted ? 0 : -ENOMEM;

	for (size_t i = 0; !result && i < model->sites.len; i++)
		any |= wanted[i] = has_code(&model->sites.data[i]);
	if (any)
		result = naming_prepare(&naming);
	if (any && !result)
		result = name_all(&naming, wanted);
	for (size_t i = 0; any && !result && i < model->sites.len; i++)
		for (unsigned k = 0; wanted[i] && k < model->sites.data[i].key_count; k++)
			if (model->sites.data[i].keys[k].type == WAFFLE_KEY_CODE)
				model->sites.data[i].keys[k].type = SITE_KEY_TEXT;
	free(wanted);
	free(naming.known);
	free(naming.cache);
	return result;
}
