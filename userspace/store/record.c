// SPDX-License-Identifier: Apache-2.0
#include "store/record.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "waffle/abi.h"

struct kind_row {
	const char *name;
	size_t bytes;    /* of the fixed part; 0: no such kind */
	unsigned source; /* enum waffle_source; WAFFLE_SOURCE_COUNT: made by waffle-bpf itself */
};

static const struct kind_row kinds[] = {
	[WAFFLE_REC_HIT] = {"hit", sizeof(struct waffle_rec_hit), WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_SPAN_END] = {"span_end", sizeof(struct waffle_rec_span_end),
				 WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_SWITCH] = {"switch", sizeof(struct waffle_rec_switch), WAFFLE_SOURCE_SCHED},
	[WAFFLE_REC_TASK] = {"task", sizeof(struct waffle_rec_task), WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_STATE] = {"state", sizeof(struct waffle_rec_state), WAFFLE_SOURCE_COUNT},
	[WAFFLE_REC_FORK] = {"fork", sizeof(struct waffle_rec_fork), WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_EXEC] = {"exec", sizeof(struct waffle_rec_exit), WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_EXIT] = {"exit", sizeof(struct waffle_rec_exit), WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_LOSS] = {"loss", sizeof(struct waffle_rec_loss), WAFFLE_SOURCE_COUNT},
	[WAFFLE_REC_WAIT] = {"wait", sizeof(struct waffle_rec_wait), WAFFLE_SOURCE_WAITS},
	[WAFFLE_REC_WAKE] = {"wake", sizeof(struct waffle_rec_wake), WAFFLE_SOURCE_WAITS},
	[WAFFLE_REC_FAULT] = {"fault", sizeof(struct waffle_rec_fault), WAFFLE_SOURCE_WAITS},
	[WAFFLE_REC_IO] = {"io", sizeof(struct waffle_rec_io), WAFFLE_SOURCE_WAITS},
	[WAFFLE_REC_SIGNAL] = {"signal", sizeof(struct waffle_rec_signal), WAFFLE_SOURCE_WAITS},
	[WAFFLE_REC_QUOTA] = {"quota", sizeof(struct waffle_rec_quota), WAFFLE_SOURCE_WAITS},
	[WAFFLE_REC_STOLEN] = {"stolen", sizeof(struct waffle_rec_stolen), WAFFLE_SOURCE_WAITS},
	[WAFFLE_REC_FREQUENCY] = {"frequency", sizeof(struct waffle_rec_frequency),
				  WAFFLE_SOURCE_WAITS},
	[WAFFLE_REC_RETURN] = {"return", sizeof(struct waffle_rec_return), WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_STACK] = {"stack", sizeof(struct waffle_rec_stack), WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_FRAMES] = {"frames", sizeof(struct waffle_rec_frames), WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_CODE] = {"code", sizeof(struct waffle_rec_code), WAFFLE_SOURCE_SPANS},
	[WAFFLE_REC_TRACE] = {"trace", sizeof(struct waffle_rec_trace), WAFFLE_SOURCE_WAITS},
};
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == WAFFLE_REC_RING_COUNT, "a row a kind");
_Static_assert(sizeof(struct waffle_rec_hit) + WAFFLE_FRAME_MAX + 7 <= RECORD_BYTES_MAX &&
		       sizeof(struct waffle_rec_return) + WAFFLE_FRAME_MAX + 7 <= RECORD_BYTES_MAX,
	       "the longest hit and return fit");

/* Offset of the field with the length of the variable part of a record; 0: it has none. */
static const size_t lengths[WAFFLE_REC_RING_COUNT] = {
	[WAFFLE_REC_HIT] = offsetof(struct waffle_rec_hit, frame_bytes),
	[WAFFLE_REC_RETURN] = offsetof(struct waffle_rec_return, frame_bytes),
	[WAFFLE_REC_FRAMES] = offsetof(struct waffle_rec_frames, frame_bytes),
	[WAFFLE_REC_TRACE] = offsetof(struct waffle_rec_trace, frame_bytes),
};

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

	memcpy(&bytes, (const char *)rec + lengths[kind], sizeof(bytes));
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
	size = kinds[kind].bytes;
	if (!size || size > available)
		return 0;
	if (lengths[kind]) {
		uint32_t frame_bytes = frame_bytes_of(rec, kind);

		if (frame_bytes > WAFFLE_FRAME_MAX)
			return 0;
		size += (frame_bytes + 7u) & ~(size_t)7;
	}
	return size <= available ? size : 0;
}

unsigned record_source(unsigned kind)
{
	return kind < WAFFLE_REC_RING_COUNT ? kinds[kind].source : WAFFLE_SOURCE_COUNT;
}

const char *record_kind_name(unsigned kind)
{
	return kind < WAFFLE_REC_RING_COUNT && kinds[kind].name ? kinds[kind].name : "?";
}

const char *record_source_name(unsigned source)
{
	return source < WAFFLE_SOURCE_COUNT ? sources[source] : "?";
}
