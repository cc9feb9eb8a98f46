// SPDX-License-Identifier: Apache-2.0
/* The side of a tracer. The program may write anything at any time. */
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usdt/name/name_chunk.h"

bool name_chunk_is_valid(const struct name_chunk *chunk)
{
	return __atomic_load_n(&chunk->magic, __ATOMIC_ACQUIRE) == NAME_CHUNK_MAGIC &&
	       __atomic_load_n(&chunk->version, __ATOMIC_RELAXED) == NAME_CHUNK_VERSION;
}

static bool kind_makes_sense(const struct name_entry *entry)
{
	if (entry->kind == NAME_KIND_TRACK)
		return entry->line && !entry->key_count;
	return entry->kind && entry->kind < WAFFLE_SITE_KIND_COUNT &&
	       entry->kind != WAFFLE_SITE_SPAN_END && entry->key_count <= WAFFLE_KEYS_MAX;
}

static bool head_makes_sense(const struct name_entry *entry, uint32_t texts_at, uint32_t left)
{
	return entry->bytes <= left && entry->bytes % 8 == 0 && entry->bytes > texts_at &&
	       entry->bytes - texts_at <= NAME_TEXTS_MAX + 7 && kind_makes_sense(entry);
}

/* Types that a name can have. */
static bool type_makes_sense(char type, unsigned kind)
{
	return kind == WAFFLE_SITE_COUNTER ? type == WAFFLE_KEY_NUMBER
					   : type && strchr("iudbpnsSE", type) != NULL;
}

/* Takes the next text of `*left` bytes. NULL: there is none, or it is too long. */
static const char *text_next(const char **at, size_t *left, size_t max)
{
	const char *text = *at;
	size_t len = strnlen(text, *left);

	if (len == *left || len >= max)
		return NULL;
	*at += len + 1;
	*left -= len + 1;
	return text;
}

static bool texts_take(struct site_info *site, const struct name_entry *entry, const char *texts,
		       size_t left)
{
	const char **const first[] = {&site->name, &site->file, &site->category, &site->func};

	for (unsigned i = 0; i < 4; i++) {
		*first[i] = text_next(&texts, &left, i == 1 ? 4097 : NAME_TEXT_MAX);
		if (!*first[i])
			return false;
	}
	for (unsigned i = 0; i < entry->key_count; i++) {
		site->keys[i].type = entry->types[i];
		site->keys[i].name = text_next(&texts, &left, NAME_TEXT_MAX);
		if (!site->keys[i].name || !type_makes_sense(entry->types[i], entry->kind))
			return false;
	}
	return true;
}

enum name_chunk_result name_chunk_next(const struct name_chunk *chunk, uint32_t *at,
				       struct name_definition *definition)
{
	uint32_t used = __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE);
	uint32_t texts_at = __atomic_load_n(&chunk->texts_at, __ATOMIC_RELAXED);
	const char *from = (const char *)chunk + *at;
	struct name_entry entry;
	size_t texts;

	if (used == *at)
		return NAME_CHUNK_END;
	if (used > NAME_CHUNK_BYTES || used < *at || used - *at < sizeof(entry) ||
	    texts_at < sizeof(entry) || texts_at > NAME_CHUNK_BYTES)
		return NAME_CHUNK_BROKEN;
	memcpy(&entry, from, sizeof(entry));
	if (!head_makes_sense(&entry, texts_at, used - *at))
		return NAME_CHUNK_BROKEN;
	texts = entry.bytes - texts_at;
	texts = texts < NAME_TEXTS_MAX ? texts : NAME_TEXTS_MAX;
	memcpy(definition->texts, from + texts_at, texts);
	definition->at = *at;
	definition->track = entry.kind == NAME_KIND_TRACK ? entry.line : 0;
	definition->site = (struct site_info){
		.object = "", .line = entry.line, .kind = entry.kind, .key_count = entry.key_count};
	if (!texts_take(&definition->site, &entry, definition->texts, texts))
		return NAME_CHUNK_BROKEN;
	*at += entry.bytes;
	return NAME_CHUNK_DEFINITION;
}

void name_chunk_arm(struct name_chunk *chunk, uint32_t at, bool armed)
{
	struct name_entry *entry = (struct name_entry *)((char *)chunk + at);

	if (!armed) {
		__atomic_and_fetch(&entry->armed, ~NAME_ARMED_TRACER, __ATOMIC_RELAXED);
		return;
	}
	/* A thread of the program may sleep until then (names_wake()), also if a tracer that was
	 * killed has left the name armed. */
	__atomic_or_fetch(&entry->armed, NAME_ARMED_TRACER, __ATOMIC_RELAXED);
	syscall(SYS_futex, &entry->armed, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
