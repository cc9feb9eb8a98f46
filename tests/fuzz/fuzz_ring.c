// SPDX-License-Identifier: Apache-2.0
/*
 * A ring as any process could fill it: the reader stays inside, ends, and returns records of valid
 * lengths. The input: a byte for the ring's position, eight bytes for its head, then its data.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"
#include "usdt/ring.h"
#include "usdt/ticks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A block of exactly this size, so that any access outside is detected. */
	size_t map_bytes = ring_map_bytes(RING_BYTES_MIN);
	void *memory = calloc(1, map_bytes);
	struct ring_record *record = malloc(RING_BYTES_MIN);
	enum ring_result result;
	struct ring ring;
	uint64_t head;

	if (size < 9 || !memory || !record)
		goto out;
	ring_init(&ring, memory, RING_BYTES_MIN, TICKS_NS, 1, 1);
	ring.tail = (uint64_t)data[0] * 1000 * 8;
	memcpy(&head, data + 1, sizeof(head));
	/* Most heads are plausible. */
	ring.shared->head = data[0] % 4 ? ring.tail + head % (RING_BYTES_MIN + 64) : head;
	size -= 9;
	for (size_t i = 0; i < size && i < RING_BYTES_MIN; i++)
		ring.data[(ring.tail + i) % RING_BYTES_MIN] = data[9 + i];
	for (unsigned steps = 0; (result = ring_read(&ring, record)) != RING_EMPTY; steps++) {
		/* Each step takes at least the smallest record, or all. */
		require(steps <= RING_BYTES_MIN / 8 + 1);
		if (result == RING_RECORD)
			require(record->bytes >= sizeof(*record) &&
				record->bytes <= RING_BYTES_MIN && record->bytes % 8 == 0);
		else if (ring_skip(&ring) && ring.shared->head % 8)
			break; /* such a head stays broken */
	}
out:
	free(record);
	free(memory);
	return 0;
}
