// SPDX-License-Identifier: Apache-2.0
#include "capture/redact.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(WAFFLE_KEYS_MAX <= 32, "a bit for each key");

int redaction_add(struct redaction *redaction, const char *list, struct error *err)
{
	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ",");
		struct redacted_key key = {.name = strndup(at, len)};

		if (!len) {
			free(key.name);
			return error_set(err, EINVAL, "--redact: '%s': a name is empty", list);
		}
		if (!key.name || !vec_push(&redaction->keys, key)) {
			free(key.name);
			return error_set(err, ENOMEM, "out of memory");
		}
		at += len + (at[len] == ',');
	}
	return *list ? 0 : error_set(err, EINVAL, "--redact: it names no key");
}

void redaction_free(struct redaction *redaction)
{
	for (size_t i = 0; i < redaction->keys.len; i++)
		free(redaction->keys.data[i].name);
	vec_free(&redaction->keys);
}

static bool is_argument(const struct site_key *key)
{
	return key->type != WAFFLE_KEY_CAUSE_SPAN && key->type != WAFFLE_KEY_CAUSE_EVENT &&
	       key->type != WAFFLE_KEY_NUMBER;
}

static bool is_named(struct redaction *redaction, const char *name)
{
	for (size_t i = 0; i < redaction->keys.len; i++)
		if (!strcmp(redaction->keys.data[i].name, name))
			return redaction->keys.data[i].found = true;
	return false;
}

uint32_t redact_keys(struct redaction *redaction, const struct site_info *site)
{
	uint32_t keys = 0;

	for (unsigned i = 0; i < site->key_count; i++)
		if (is_named(redaction, site->keys[i].name) ||
		    (redaction->args && is_argument(&site->keys[i])))
			keys |= 1u << i;
	return keys;
}

void redact_site(struct site_info *to, const struct site_info *site, uint32_t keys)
{
	*to = *site;
	to->key_count = to->begin_keys = 0;
	for (unsigned i = 0; i < site->key_count; i++) {
		if (keys >> i & 1)
			continue;
		to->keys[to->key_count++] = site->keys[i];
		to->begin_keys += i < site->begin_keys;
	}
}

/* Removes gaps between the remaining values, from key `first` on. A malformed value ends the list,
 * since later values cannot be located. */
static uint32_t values_close_up(const struct site_info *site, unsigned first, uint32_t keys,
				unsigned char *values, uint32_t bytes)
{
	struct value_walk walk = value_walk_from(site, first, values, bytes);
	const unsigned char *from = walk.at;
	unsigned char *to = values;
	struct value value;

	for (unsigned key = first; value_walk_any(&walk, &value); key++) {
		size_t size = (size_t)(walk.at - from);

		if (!(keys >> key & 1)) {
			memmove(to, from, size);
			to += size;
		}
		from = walk.at;
	}
	return (uint32_t)(to - values);
}

void redact_record(struct waffle_rec *rec, const struct site_info *site, uint32_t keys)
{
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)rec;
	struct waffle_rec_return *end = (struct waffle_rec_return *)rec;
	uint32_t head = sizeof(struct waffle_frame);

	if (site && !keys)
		return;
	if (rec->kind == WAFFLE_REC_HIT && hit->frame_bytes > head)
		hit->frame_bytes = head + (site ? values_close_up(site, 0, keys,
								  (unsigned char *)(hit + 1) + head,
								  hit->frame_bytes - head)
						: 0);
	else if (rec->kind == WAFFLE_REC_RETURN && end->frame_bytes)
		end->frame_bytes =
			site ? values_close_up(site, site->begin_keys, keys,
					       (unsigned char *)(end + 1), end->frame_bytes)
			     : 0;
}
