// SPDX-License-Identifier: Apache-2.0
/*
 * Fills in name templates: a call named "read {fd}" has spans "read 3", "read 4". Each name becomes
 * a site of the model. Past TEMPLATE_NAMES_MAX names, further spans keep the template as their
 * name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "util/memory.h"

#define TEMPLATE_NAMES_MAX 1000
#define NAME_BYTES_MAX 512

struct template_text {
	char bytes[NAME_BYTES_MAX];
	size_t len;
};

static void text_put(struct template_text *text, const char *bytes, size_t len)
{
	size_t room = sizeof(text->bytes) - text->len;

	len = len < room ? len : room;
	memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
}

static void text_put_value(struct template_text *text, const struct value *value)
{
	char number[64];

	switch (value->type) {
	case WAFFLE_KEY_STR:
		if (value->null)
			text_put(text, value->lost ? "?" : "null", value->lost ? 1 : 4);
		else
			text_put(text, value->text, value->text_len);
		if (value->cut)
			text_put(text, "…", strlen("…"));
		return;
	case WAFFLE_KEY_I64:
		snprintf(number, sizeof(number), "%" PRId64, value->i64);
		break;
	case WAFFLE_KEY_F64:
		snprintf(number, sizeof(number), "%.17g", value->f64);
		break;
	case WAFFLE_KEY_BOOL:
		snprintf(number, sizeof(number), "%s", value->u64 ? "true" : "false");
		break;
	case WAFFLE_KEY_PTR:
		snprintf(number, sizeof(number), "0x%" PRIx64, value->u64);
		break;
	case WAFFLE_KEY_DIM3:
		snprintf(number, sizeof(number), "[%u,%u,%u]", value->dim[0], value->dim[1],
			 value->dim[2]);
		break;
	default:
		snprintf(number, sizeof(number), "%" PRIu64, value->u64);
		break;
	}
	text_put(text, number, strlen(number));
}

static bool text_put_key(struct template_text *text, struct value_walk walk, const char *key,
			 size_t len)
{
	struct value value;

	while (value_walk_next(&walk, &value)) {
		if (strncmp(value.key->name, key, len) || value.key->name[len])
			continue;
		text_put_value(text, &value);
		return true;
	}
	return false;
}

/* Replaces "{key}" by the value of that key; all else stays unchanged. The length of the text
 * bounds the loop, because a file may have a long name full of braces. */
static void text_fill(struct template_text *text, const char *name, struct value_walk walk)
{
	const char *end = strchr(name, '}');

	while (*name && text->len < sizeof(text->bytes)) {
		if (end && end < name)
			end = strchr(name, '}');
		if (*name == '{' && end &&
		    text_put_key(text, walk, name + 1, (size_t)(end - name - 1))) {
			name = end + 1;
			continue;
		}
		text_put(text, name++, 1);
	}
}

struct template_maker {
	struct model *model;
	uint32_t *counts; /* names made of each site so far */
	struct map made;  /* template site and name → made site */
};

/* Sets the site of a span or event, and makes it if its name is new. */
static void site_set(struct template_maker *maker, uint32_t *site, uint32_t frame)
{
	struct model *model = maker->model;
	struct template_text text = {.len = 0};
	struct site_info made;
	uint32_t name, index;
	uint64_t key;

	text_fill(&text, model->sites.data[*site].name, model_values(model, *site, frame));
	if (maker->counts[*site] >= TEMPLATE_NAMES_MAX) {
		/* Adds no more strings, but finds names made before. */
		name = strtab_find(model->strings, text.bytes, text.len);
		if (name == STRTAB_NONE)
			return;
	} else {
		name = strtab_put(model->strings, text.bytes, text.len);
	}
	key = (uint64_t)*site << 32 | name;
	index = map_get(&maker->made, key);
	if (index == MAP_NONE) {
		if (maker->counts[*site] >= TEMPLATE_NAMES_MAX)
			return;
		index = (uint32_t)model->sites.len;
		made = model->sites.data[*site];
		made.name = strtab_get(model->strings, name);
		vec_add(&model->sites, made);
		map_put(&maker->made, key, index);
		maker->counts[*site]++;
	}
	*site = index;
}

static void sites_set(struct template_maker *maker, uint32_t count, const bool *wanted)
{
	struct model *model = maker->model;

	for (size_t i = 0; i < model->spans.len; i++) {
		struct model_span *span = &model->spans.data[i];

		if (span->site < count && wanted[span->site] && span->frame != MODEL_NONE)
			site_set(maker, &span->site, span->frame);
	}
	for (size_t i = 0; i < model->events.len; i++) {
		struct model_event *event = &model->events.data[i];

		if (event->site < count && wanted[event->site] && event->frame != MODEL_NONE)
			site_set(maker, &event->site, event->frame);
	}
}

static bool is_template(const struct site_info *site)
{
	const char *open = site->call ? strchr(site->name, '{') : NULL;

	return open && strchr(open, '}') && site->key_count;
}

void templates_fill(struct model *model)
{
	uint32_t count = (uint32_t)model->sites.len;
	struct template_maker maker = {.model = model,
				       .counts = memory_zeroed(count, sizeof(uint32_t))};
	bool *wanted = memory_zeroed(count, sizeof(*wanted)), any = false;

	for (uint32_t i = 0; i < count; i++)
		any |= wanted[i] = is_template(&model->sites.data[i]);
	if (any)
		sites_set(&maker, count, wanted);
	map_free(&maker.made);
	free(maker.counts);
	free(wanted);
}
