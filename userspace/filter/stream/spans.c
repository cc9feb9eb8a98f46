// SPDX-License-Identifier: Apache-2.0
#include "filter/stream/spans_internal.h"

#include <stdlib.h>
#include <string.h>

#include "waffle/abi.h"

/* Limits of all processes together. */
#define SPANS_MAX (1u << 20)
#define BEGIN_BYTES_MAX (256u << 20)

static const uint32_t frame_room[WAFFLE_DEFERRED_SIZE_COUNT] = {
	[WAFFLE_DEFERRED_SMALL] = WAFFLE_DEFERRED_SMALL_BYTES,
	[WAFFLE_DEFERRED_MEDIUM] = WAFFLE_DEFERRED_MEDIUM_BYTES,
	[WAFFLE_DEFERRED_LARGE] = WAFFLE_FRAME_MAX,
};

/* ---- begins ---- */

struct stream_begin *stream_begin_make(struct stream_spans *spans, unsigned size,
				       const struct waffle_rec_hit *hit)
{
	struct stream_begin *begin = spans->begins[size];
	size_t bytes = sizeof(*begin) + frame_room[size];

	if (begin) {
		spans->begins[size] = begin->next;
	} else {
		if (spans->begin_bytes + bytes > BEGIN_BYTES_MAX)
			return NULL;
		begin = malloc(bytes);
		if (!begin)
			return NULL;
		spans->begin_bytes += bytes;
	}
	begin->hit = *hit;
	if (hit->frame_bytes > frame_room[size])
		begin->hit.frame_bytes = sizeof(struct waffle_frame);
	memcpy(begin + 1, hit + 1, begin->hit.frame_bytes);
	return begin;
}

void stream_begin_free(struct stream_spans *spans, unsigned size, struct stream_begin *begin)
{
	if (!begin)
		return;
	begin->next = spans->begins[size];
	spans->begins[size] = begin;
}

/* ---- spans ---- */

struct stream_span *stream_span_get(struct stream_spans *spans, uint64_t id)
{
	uint32_t index = map_get(&spans->by_id, id);

	return index == MAP_NONE ? NULL : &spans->list.data[index];
}

/* The index of an entry that is not in use. */
static uint32_t entry_take(struct stream_spans *spans)
{
	uint32_t index = spans->free;

	if (spans->has_free) {
		spans->free = spans->list.data[index].older;
		spans->has_free = spans->free != STREAM_NONE;
		return index;
	}
	if (spans->list.len >= SPANS_MAX || !vec_push(&spans->list, (struct stream_span){0}))
		return STREAM_NONE;
	return (uint32_t)spans->list.len - 1;
}

static void entry_give(struct stream_spans *spans, uint32_t index)
{
	spans->list.data[index].older = spans->has_free ? spans->free : STREAM_NONE;
	spans->free = index;
	spans->has_free = true;
}

bool stream_span_add(struct stream_spans *spans, struct stream_process *process,
		     const struct stream_span *span)
{
	struct stream_span *added;
	uint32_t index;

	if (!span->id || map_get(&spans->by_id, span->id) != MAP_NONE)
		return false;
	index = entry_take(spans);
	if (index == STREAM_NONE)
		return false;
	if (!map_set(&spans->by_id, span->id, index)) {
		entry_give(spans, index);
		return false;
	}
	added = &spans->list.data[index];
	*added = *span;
	added->older = process->youngest;
	added->younger = STREAM_NONE;
	if (process->youngest == STREAM_NONE)
		process->oldest = index;
	else
		spans->list.data[process->youngest].younger = index;
	process->youngest = index;
	process->open++;
	stream_process_earn(process);
	if (added->state == WAFFLE_OPEN_DEFERRED)
		process->deferred[added->size]++;
	return true;
}

void stream_span_remove(struct stream_spans *spans, struct stream_process *process,
			struct stream_span *span)
{
	if (span->older == STREAM_NONE)
		process->oldest = span->younger;
	else
		spans->list.data[span->older].younger = span->younger;
	if (span->younger == STREAM_NONE)
		process->youngest = span->older;
	else
		spans->list.data[span->younger].older = span->older;
	process->open--;
	if (span->state == WAFFLE_OPEN_DEFERRED)
		process->deferred[span->size]--;
	stream_begin_free(spans, span->size, span->begin);
	span->begin = NULL;
	entry_give(spans, map_remove(&spans->by_id, span->id));
}

void stream_spans_free(struct stream_spans *spans)
{
	/* Freed entries have no begin. */
	for (size_t i = 0; i < spans->list.len; i++)
		free(spans->list.data[i].begin);
	for (unsigned size = 0; size < WAFFLE_DEFERRED_SIZE_COUNT; size++) {
		struct stream_begin *begin = spans->begins[size], *next;

		for (; begin; begin = next) {
			next = begin->next;
			free(begin);
		}
	}
	vec_free(&spans->list);
	map_free(&spans->by_id);
}
