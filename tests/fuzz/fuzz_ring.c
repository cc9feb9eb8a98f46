// SPDX-License-Identifier: Apache-2.0
/*
 * A ring as any process could fill it and change it while it is read: the reader stays inside,
 * ends, and returns records of valid lengths. The input: a byte of flags, eight bytes each for the
 * tail, the head and the oldest record, a byte with the length of a list of changes, which are made
 * one after each step, then the data.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"
#include "usdt/ring/ring.h"
#include "usdt/ring/ticks.h"

#define OVERWRITE 1
#define ANY_HEAD 2
#define HEAD_BYTES 26
#define CHANGE_BYTES 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t word_at(const uint8_t *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return word;
}

/* Changes a word of the header's counters or of the data. */
static void change(struct ring_shared *shared, unsigned char *data, const uint8_t *how)
{
	uint64_t *words[] = {&shared->head, &shared->oldest, &shared->lost, &shared->tail};
	uint64_t value = (uint64_t)how[3] << 8 | how[4];

	if (how[0] < 8)
		*words[how[0] % 4] += value;
	else if (how[0] < 12)
		*words[how[0] % 4] ^= 1ull << value % 64;
	else if (how[0] < 16)
		shared->overwrite = (uint32_t)value;
	else
		memcpy(data + (how[1] << 8 | how[2]) % RING_BYTES_MIN, &how[3], 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A block of exactly this size, so that any access outside is detected. */
	size_t map_bytes = ring_map_bytes(RING_BYTES_MIN), changes;
	struct ring_shared *shared = aligned_alloc(64, map_bytes);
	struct ring_record *record = malloc(RING_RECORD_MAX);
	unsigned char *contents;
	enum ring_result result;
	struct ring ring;

	if (size < HEAD_BYTES || !shared || !record)
		goto out;
	memset(shared, 0, map_bytes);
	ring_make(shared, RING_BYTES_MIN, TICKS_NS, 1);
	shared->tail = word_at(data + 1);
	/* Most heads are plausible. */
	shared->head =
		data[0] & ANY_HEAD
			? word_at(data + 9)
			: (shared->tail & ~7ull) + word_at(data + 9) % (2 * RING_BYTES_MIN) / 8 * 8;
	shared->oldest = word_at(data + 17);
	shared->overwrite = data[0] & OVERWRITE;
	changes = data[25] * CHANGE_BYTES;
	data += HEAD_BYTES;
	size -= HEAD_BYTES;
	changes = changes < size ? changes / CHANGE_BYTES : size / CHANGE_BYTES;
	contents = (unsigned char *)shared + shared->data_at;
	for (size_t i = changes * CHANGE_BYTES; i < size && i < RING_BYTES_MIN; i++)
		contents[(shared->tail + i) % RING_BYTES_MIN] = data[i];
	require(ring_open(&ring, shared, map_bytes));
	for (unsigned steps = 0; steps <= 2 * RING_BYTES_MIN / sizeof(*record) + 600; steps++) {
		result = ring_read(&ring, record);
		if (result == RING_RECORD)
			require(record->bytes >= sizeof(*record) &&
				record->bytes <= RING_RECORD_MAX && record->bytes % 8 == 0);
		if (result == RING_BROKEN)
			ring_drop(&ring);
		require(ring.tail % 8 == 0 || result == RING_BROKEN);
		if (changes) {
			change(shared, contents, data);
			data += CHANGE_BYTES;
			changes--;
		} else if (result != RING_RECORD) {
			break;
		}
		/* Without changes each record takes at least the smallest length. */
		require(steps < 2 * RING_BYTES_MIN / sizeof(*record) + 600);
	}
out:
	free(record);
	free(shared);
	return 0;
}
