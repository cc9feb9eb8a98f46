// SPDX-License-Identifier: Apache-2.0
#include "store/record.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "store/record_schema.h"
#include "waffle/abi.h"

_Static_assert(sizeof(struct waffle_rec_hit) + WAFFLE_FRAME_MAX + 7 <= RECORD_BYTES_MAX &&
		       sizeof(struct waffle_rec_return) + WAFFLE_FRAME_MAX + 7 <= RECORD_BYTES_MAX,
	       "the longest hit and return fit");

static const char *const sources[] = {
	[WAFFLE_SOURCE_SPANS] = "spans",
	[WAFFLE_SOURCE_SCHED] = "sched",
	[WAFFLE_SOURCE_WAITS] = "waits",
};
_Static_assert(sizeof(sources) / sizeof(sources[0]) == WAFFLE_SOURCE_COUNT, "a row a source");

/* A record in a ring buffer may be unaligned, so its fields are copied. */
static uint32_t frame_bytes_of(const void *rec, uint16_t kind)
{
	uint32_t bytes;

	memcpy(&bytes, (const char *)rec + record_kinds[kind].length_at, sizeof(bytes));
	return bytes;
}

size_t record_size(const void *rec, size_t available)
{
	uint16_t kind;
	size_t size;

	if (available < sizeof(struct waffle_rec))
		return 0;
	memcpy(&kind, (const char *)rec + offsetof(struct waffle_rec, kind), sizeof(kind));
	if (kind >= WAFFLE_REC_RING_COUNT)
		return 0;
	size = record_kinds[kind].bytes;
	if (!size || size > available)
		return 0;
	if (record_kinds[kind].length_at) {
		uint32_t frame_bytes = frame_bytes_of(rec, kind);

		if (frame_bytes > WAFFLE_FRAME_MAX)
			return 0;
		size += (frame_bytes + 7u) & ~(size_t)7;
	}
	return size <= available ? size : 0;
}

unsigned record_source(unsigned kind)
{
	return kind < WAFFLE_REC_RING_COUNT ? record_kinds[kind].source : WAFFLE_SOURCE_COUNT;
}

const char *record_source_name(unsigned source)
{
	return source < WAFFLE_SOURCE_COUNT ? sources[source] : "?";
}
