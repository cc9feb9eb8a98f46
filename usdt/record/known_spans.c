// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/known_spans.h"

#include <string.h>

#define ROWS 256
#define ROW_SPANS 8
#define SPAN_WORDS (sizeof(struct known_span) / 8)
#define INSIDE_WORDS (1 + sizeof(struct known_frames) / 8) /* with the id in front */

static struct known_slot {
	uint64_t age; /* number of the span; 0: free */
	uint64_t span[SPAN_WORDS + 1];
	uint64_t inside[INSIDE_WORDS + 1];
} table[ROWS][ROW_SPANS];

static uint64_t spans_added;

/* ---- words with a check behind them ---- */

static uint64_t check_next(uint64_t check, uint64_t word)
{
	return (check ^ word) * 0x9e3779b97f4a7c15ull;
}

static void words_put(uint64_t *to, const void *from, size_t count)
{
	uint64_t word, check = count;

	for (size_t i = 0; i < count; i++) {
		memcpy(&word, (const char *)from + 8 * i, 8);
		check = check_next(check, word);
		__atomic_store_n(&to[i], word, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&to[count], check, __ATOMIC_RELEASE);
}

static bool words_get(const uint64_t *from, void *to, size_t count)
{
	uint64_t word, check = count;

	for (size_t i = 0; i < count; i++) {
		word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
		check = check_next(check, word);
		memcpy((char *)to + 8 * i, &word, 8);
	}
	return check == __atomic_load_n(&from[count], __ATOMIC_ACQUIRE);
}

/* ---- the table ---- */

static struct known_slot *row_of(uint64_t id)
{
	return table[(id * 0x9e3779b97f4a7c15ull) >> 56];
}

static struct known_slot *slot_find(uint64_t id)
{
	struct known_slot *row = row_of(id);

	for (unsigned i = 0; i < ROW_SPANS; i++)
		if (__atomic_load_n(&row[i].span[0], __ATOMIC_RELAXED) == id &&
		    __atomic_load_n(&row[i].age, __ATOMIC_RELAXED))
			return &row[i];
	return NULL;
}

void known_spans_add(const struct known_span *span)
{
	struct known_slot *row = row_of(span->id), *oldest = row;
	uint64_t oldest_age = UINT64_MAX;

	for (unsigned i = 0; i < ROW_SPANS; i++) {
		uint64_t age = __atomic_load_n(&row[i].age, __ATOMIC_RELAXED);

		if (age >= oldest_age)
			continue;
		oldest = &row[i];
		oldest_age = age;
	}
	__atomic_store_n(&oldest->age, __atomic_add_fetch(&spans_added, 1, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	words_put(oldest->span, span, SPAN_WORDS);
}

void known_spans_remove(uint64_t id)
{
	struct known_slot *slot = slot_find(id);

	if (slot)
		__atomic_store_n(&slot->age, 0, __ATOMIC_RELAXED);
}

bool known_spans_get(uint64_t id, struct known_span *span)
{
	struct known_slot *slot = id ? slot_find(id) : NULL;

	return slot && words_get(slot->span, span, SPAN_WORDS) && span->id == id;
}

void known_spans_set_inside(uint64_t id, const struct known_frames *frames)
{
	struct known_slot *slot = slot_find(id);
	uint64_t words[INSIDE_WORDS] = {id};

	memcpy(words + 1, frames, sizeof(*frames));
	if (slot)
		words_put(slot->inside, words, INSIDE_WORDS);
}

bool known_spans_get_inside(uint64_t id, struct known_frames *frames)
{
	struct known_slot *slot = slot_find(id);
	uint64_t words[INSIDE_WORDS];

	if (!slot || !words_get(slot->inside, words, INSIDE_WORDS) || words[0] != id)
		return false;
	memcpy(frames, words + 1, sizeof(*frames));
	return true;
}
