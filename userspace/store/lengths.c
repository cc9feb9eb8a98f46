// SPDX-License-Identifier: Apache-2.0
#include "store/lengths_internal.h"

#include <string.h>

#include "store/record_schema.h"

/* No kind has any words yet. */
static struct record_lengths lengths_empty(void)
{
	struct record_lengths lengths;

	memset(&lengths, 0xff, sizeof(lengths));
	return lengths;
}

struct record_lengths record_lengths_own(void)
{
	struct record_lengths lengths = lengths_empty();

	for (unsigned kind = 1; kind < WAFFLE_REC_KIND_COUNT; kind++)
		lengths.words[kind] = record_kinds[kind].words;
	return lengths;
}

struct record_lengths record_lengths_version_1(void)
{
	/* Never changes, whatever is added to a record: these files exist. */
	static const uint8_t words[] = {
		[WAFFLE_REC_WAIT] = 5,   [WAFFLE_REC_WAKE] = 2,      [WAFFLE_REC_FAULT] = 5,
		[WAFFLE_REC_IO] = 4,     [WAFFLE_REC_SIGNAL] = 2,    [WAFFLE_REC_QUOTA] = 4,
		[WAFFLE_REC_STOLEN] = 3, [WAFFLE_REC_FREQUENCY] = 2, [WAFFLE_REC_STACK] = 3,
	};
	struct record_lengths lengths = lengths_empty();

	for (unsigned kind = 1; kind < sizeof(words); kind++)
		lengths.words[kind] = words[kind];
	return lengths;
}

bool record_lengths_newer(const struct record_lengths *lengths)
{
	struct record_lengths own = record_lengths_own();

	for (unsigned kind = 0; kind < RECORD_LENGTHS_KINDS; kind++)
		if (lengths->words[kind] != RECORD_ABSENT &&
		    (own.words[kind] == RECORD_ABSENT || lengths->words[kind] > own.words[kind]))
			return true;
	return false;
}

unsigned char *record_lengths_put(unsigned char *to)
{
	to = put_varint(to, WAFFLE_REC_KIND_COUNT - 1);
	for (unsigned kind = 1; kind < WAFFLE_REC_KIND_COUNT; kind++)
		to = put_varint(put_varint(to, kind), record_kinds[kind].words);
	return to;
}

void record_lengths_get(struct record_lengths *lengths, struct cursor *cursor)
{
	uint64_t rows = get_varint_max(cursor, RECORD_LENGTHS_KINDS - 1);

	*lengths = lengths_empty();
	while (rows-- && !cursor->bad) {
		uint64_t kind = get_varint_max(cursor, RECORD_LENGTHS_KINDS - 1);
		uint64_t words = get_varint_max(cursor, RECORD_LENGTHS_WORDS_MAX);

		/* Kind 0 is none, and a kind has one row. */
		if (!kind || lengths->words[kind] != RECORD_ABSENT)
			cursor->bad = true;
		lengths->words[kind] = (uint16_t)words;
	}
}
