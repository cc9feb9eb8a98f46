// SPDX-License-Identifier: Apache-2.0
#include "target/elf/site.h"

#include <stddef.h>
#include <string.h>

static const char *const kind_names[] = {
	[WAFFLE_SITE_SPAN] = "span",           [WAFFLE_SITE_SPAN_END] = "span_end",
	[WAFFLE_SITE_EVENT] = "event",         [WAFFLE_SITE_COUNTER] = "counter",
	[WAFFLE_SITE_LOG_INFO] = "log_info",   [WAFFLE_SITE_LOG_WARN] = "log_warn",
	[WAFFLE_SITE_LOG_ERROR] = "log_error",
};
_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == WAFFLE_SITE_KIND_COUNT,
	       "a name for every kind of site");

const char *site_kind_name(unsigned kind)
{
	return kind && kind < WAFFLE_SITE_KIND_COUNT ? kind_names[kind] : "?";
}

bool site_is_simulated(const struct site_info *site)
{
	/* An event `session` always has the key: its value says whether it is. */
	if (site->simulated || strcmp(site->category, "gpu") != 0 ||
	    (site->kind != WAFFLE_SITE_SPAN &&
	     (site->kind != WAFFLE_SITE_EVENT || !strcmp(site->name, "session"))))
		return site->simulated;
	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		if (site->keys[i].type == WAFFLE_KEY_BOOL &&
		    !strcmp(site->keys[i].name, "simulated"))
			return true;
	return false;
}

const char *site_severity(unsigned kind)
{
	switch (kind) {
	case WAFFLE_SITE_LOG_INFO:
		return "info";
	case WAFFLE_SITE_LOG_WARN:
		return "warn";
	case WAFFLE_SITE_LOG_ERROR:
		return "error";
	default:
		return NULL;
	}
}

struct value_walk value_walk_begin(const struct site_info *site, const void *frame,
				   uint32_t frame_bytes)
{
	struct value_walk walk = {.site = site};

	if (!frame || frame_bytes < sizeof(struct waffle_frame))
		return walk;
	walk.at = (const unsigned char *)frame + sizeof(struct waffle_frame);
	walk.end = (const unsigned char *)frame + frame_bytes;
	return walk;
}

struct value_walk value_walk_from(const struct site_info *site, unsigned first, const void *values,
				  uint32_t bytes)
{
	struct value_walk walk = {.site = site, .key = first};

	if (!values)
		return walk;
	walk.at = values;
	walk.end = walk.at + bytes;
	return walk;
}

/* The frame may be unaligned. */
static bool take_word(struct value_walk *walk, uint64_t *word)
{
	if (walk->end - walk->at < (ptrdiff_t)sizeof(*word))
		return false;
	memcpy(word, walk->at, sizeof(*word));
	walk->at += sizeof(*word);
	return true;
}

static bool take_text(struct value_walk *walk, struct value *value)
{
	uint64_t head;
	uint32_t len, padded;

	if (!take_word(walk, &head))
		return false;
	len = WAFFLE_STR_LEN(head);
	padded = (len + 7u) & ~7u;
	if (len > WAFFLE_STR_MAX || walk->end - walk->at < (ptrdiff_t)padded)
		return false;
	value->null = head & WAFFLE_STR_NULL;
	value->lost = value->null && head & WAFFLE_STR_CUT;
	value->cut = !value->null && head & WAFFLE_STR_CUT;
	value->text = (const char *)walk->at;
	value->text_len = len;
	walk->at += padded;
	return true;
}

static bool take_number(struct value_walk *walk, struct value *value)
{
	static const char types[] = {
		[WAFFLE_NUMBER_I64] = WAFFLE_KEY_I64,
		[WAFFLE_NUMBER_U64] = WAFFLE_KEY_U64,
		[WAFFLE_NUMBER_F64] = WAFFLE_KEY_F64,
		[WAFFLE_NUMBER_NONE] = WAFFLE_KEY_U64,
	};
	uint64_t number;

	if (!take_word(walk, &number) || number > WAFFLE_NUMBER_NONE)
		return false;
	value->missing = number == WAFFLE_NUMBER_NONE;
	value->type = types[number];
	return take_word(walk, &value->u64);
}

static bool take_dim3(struct value_walk *walk, struct value *value)
{
	uint64_t low, high;

	if (!take_word(walk, &low) || !take_word(walk, &high))
		return false;
	value->dim[0] = (uint32_t)low;
	value->dim[1] = (uint32_t)(low >> 32);
	value->dim[2] = (uint32_t)high;
	return true;
}

/* Only the model's own frames have this type: the word is an address in this process. */
static bool take_model_text(struct value_walk *walk, struct value *value)
{
	uint64_t word;

	if (!take_word(walk, &word))
		return false;
	value->type = WAFFLE_KEY_STR;
	value->text = (const char *)(uintptr_t)word;
	value->null = !value->text;
	value->text_len = value->text ? (uint32_t)strlen(value->text) : 0;
	return true;
}

static bool take_value(struct value_walk *walk, struct value *value)
{
	switch (value->type) {
	case WAFFLE_KEY_I64:
	case WAFFLE_KEY_U64:
	case WAFFLE_KEY_F64:
	case WAFFLE_KEY_PTR:
	case WAFFLE_KEY_CODE:
	case WAFFLE_KEY_CAUSE_SPAN:
	case WAFFLE_KEY_CAUSE_EVENT:
		return take_word(walk, &value->u64);
	case WAFFLE_KEY_BOOL:
		if (!take_word(walk, &value->u64))
			return false;
		value->u64 = !!value->u64;
		return true;
	case WAFFLE_KEY_STR:
		return take_text(walk, value);
	case WAFFLE_KEY_NUMBER:
		return take_number(walk, value);
	case WAFFLE_KEY_DIM3:
		return take_dim3(walk, value);
	case SITE_KEY_TEXT:
		return take_model_text(walk, value);
	default:
		return false;
	}
}

bool value_walk_any(struct value_walk *walk, struct value *value)
{
	const struct site_key *key;

	if (!walk->at || walk->key >= walk->site->key_count || walk->key >= WAFFLE_KEYS_MAX)
		return false;
	key = &walk->site->keys[walk->key++];
	*value = (struct value){.key = key, .type = key->type};
	if (take_value(walk, value))
		return true;
	walk->at = NULL; /* the position of later values is unknown */
	return false;
}

bool value_walk_next(struct value_walk *walk, struct value *value)
{
	while (value_walk_any(walk, value))
		if (!value->missing)
			return true;
	return false;
}
