// SPDX-License-Identifier: Apache-2.0
#include "filter/stream/children_internal.h"

#include <stdlib.h>
#include <string.h>

/* Limit of the buffers of all processes together. */
#define BUFFERS_MAX 4096

_Static_assert(WAFFLE_CHILD_SLOTS == 64, "a bit of a word for each");
_Static_assert(sizeof(struct waffle_rec_span_end) <= WAFFLE_CHILD_BYTES, "an end fits");

/* ---- buffers ---- */

struct stream_buffer *stream_buffer_get(const struct stream_buffers *buffers, uint64_t thread)
{
	uint32_t index = map_get(&buffers->by_thread, thread);

	return index == MAP_NONE ? NULL : buffers->list.data[index];
}

static uint32_t entry_find(struct stream_buffers *buffers)
{
	for (size_t i = 0; buffers->count < buffers->list.len && i < buffers->list.len; i++)
		if (!buffers->list.data[i])
			return (uint32_t)i;
	return vec_push(&buffers->list, NULL) ? (uint32_t)buffers->list.len - 1 : STREAM_NONE;
}

struct stream_buffer *stream_buffer_make(struct stream_buffers *buffers,
					 struct stream_process *process, uint64_t thread)
{
	struct stream_buffer *buffer = stream_buffer_get(buffers, thread);
	uint32_t index;

	if (buffer || process->buffer_count >= WAFFLE_CHILD_BUFFERS_MAX ||
	    buffers->count >= BUFFERS_MAX)
		return buffer;
	index = entry_find(buffers);
	buffer = index == STREAM_NONE ? NULL : calloc(1, sizeof(*buffer));
	if (!buffer || !map_set(&buffers->by_thread, thread, index)) {
		free(buffer);
		return NULL;
	}
	buffer->thread = thread;
	buffer->next = process->buffers;
	process->buffers = buffer;
	process->buffer_count++;
	buffers->list.data[index] = buffer;
	buffers->count++;
	return buffer;
}

void stream_buffer_remove(struct stream_buffers *buffers, struct stream_process *process,
			  struct stream_buffer *buffer)
{
	struct stream_buffer **link = &process->buffers;

	while (*link != buffer)
		link = &(*link)->next;
	*link = buffer->next;
	process->buffer_count--;
	buffers->list.data[map_remove(&buffers->by_thread, buffer->thread)] = NULL;
	buffers->count--;
	free(buffer);
}

void stream_buffers_free(struct stream_buffers *buffers)
{
	for (size_t i = 0; i < buffers->list.len; i++)
		free(buffers->list.data[i]);
	vec_free(&buffers->list);
	map_free(&buffers->by_thread);
}

/* ---- slots ---- */

/* Whether one number of the buffer's clock is at or after another. The clock wraps. */
static bool is_since(uint32_t later, uint32_t earlier)
{
	return (int32_t)(later - earlier) >= 0;
}

struct stream_verdict stream_verdict(const struct stream_buffer *buffer, uint64_t inside,
				     uint32_t born)
{
	struct stream_verdict verdict = {0};
	uint32_t youngest = 0;

	for (; inside; inside &= inside - 1) {
		uint32_t index = (uint32_t)__builtin_ctzll(inside);
		const struct stream_slot *slot = &buffer->slots[index];

		if (buffer->deferred >> index & 1 && is_since(born, slot->begin)) {
			if (!verdict.pending || !is_since(youngest, slot->begin)) {
				youngest = slot->begin;
				verdict.innermost = index;
			}
			verdict.pending |= 1ull << index;
		} else if (is_since(born, slot->kept_from) && !is_since(born, slot->kept_to)) {
			verdict.kept = true;
		}
	}
	return verdict;
}

void stream_slot_take(struct stream_buffer *buffer, struct stream_span *span)
{
	span->born = buffer->clock++;
	if (!~buffer->deferred)
		return;
	span->slot = (uint8_t)__builtin_ctzll(~buffer->deferred);
	buffer->slots[span->slot].begin = span->born;
	buffer->slots[span->slot].first = buffer->head;
	buffer->slots[span->slot].lost = 0;
	buffer->deferred |= 1ull << span->slot;
}

void stream_slot_lose(struct stream_buffer *buffer, uint32_t slot, uint32_t count)
{
	buffer->slots[slot].lost += count;
}

/* ---- records ---- */

static struct stream_child *child_add(struct stream_buffer *buffer,
				      const struct stream_verdict *verdict)
{
	struct stream_child *child = &buffer->children[buffer->head % WAFFLE_CHILD_COUNT];
	struct stream_verdict old = stream_verdict(buffer, child->inside, child->born);

	if (old.pending)
		stream_slot_lose(buffer, old.innermost, 1);
	buffer->head++;
	child->inside = verdict->pending;
	child->born = buffer->clock++;
	child->span = 0;
	child->ends = false;
	return child;
}

bool stream_child_add_hit(struct stream_buffer *buffer, const struct stream_verdict *verdict,
			  const struct waffle_rec_hit *hit, uint64_t span)
{
	struct stream_child *child;

	if (hit->frame_bytes > WAFFLE_CHILD_BYTES - sizeof(*hit)) {
		stream_slot_lose(buffer, verdict->innermost, 1);
		return false;
	}
	child = child_add(buffer, verdict);
	memcpy(child->record, hit, sizeof(*hit) + hit->frame_bytes);
	child->span = span;
	return true;
}

void stream_child_add_end(struct stream_buffer *buffer, const struct stream_verdict *verdict,
			  const struct waffle_rec_span_end *end, uint32_t position)
{
	struct stream_child *child = child_add(buffer, verdict);

	memcpy(child->record, end, sizeof(*end));
	child->ends = true;
	child->position = position;
}

static uint64_t child_ts(const struct stream_child *child)
{
	return ((const struct waffle_rec *)child->record)->ts;
}

/* They are nearly in order: a discarded span was added when it ended, behind what is inside it. */
static void children_sort(struct stream_child **list, uint32_t len)
{
	for (uint32_t i = 1; i < len; i++) {
		struct stream_child *one = list[i];
		uint32_t hole = i;

		for (; hole && child_ts(list[hole - 1]) > child_ts(one); hole--)
			list[hole] = list[hole - 1];
		list[hole] = one;
	}
}

uint32_t stream_children_take(struct stream_buffer *buffer, uint32_t slot_index, bool other,
			      struct stream_child *taken[WAFFLE_CHILD_COUNT], uint64_t *lost)
{
	struct stream_slot *slot = &buffer->slots[slot_index];
	uint64_t bit = 1ull << slot_index;
	uint32_t from = slot->first, len = 0;

	*lost = slot->lost;
	if (buffer->head - from > WAFFLE_CHILD_COUNT)
		from = buffer->head - WAFFLE_CHILD_COUNT;
	for (uint32_t position = from; position != buffer->head; position++) {
		struct stream_child *child = &buffer->children[position % WAFFLE_CHILD_COUNT];

		if (!(child->inside & bit))
			continue;
		/* Of another thread's span, and the end of a span whose begin was overwritten. */
		if (other || (child->ends && !is_since(child->position, from))) {
			*lost += 1;
			child->inside = other ? child->inside : 0;
			continue;
		}
		child->inside = 0;
		taken[len++] = child;
	}
	children_sort(taken, len);
	slot->kept_from = slot->begin;
	slot->kept_to = buffer->clock;
	buffer->deferred &= ~bit;
	return len;
}
