// SPDX-License-Identifier: Apache-2.0
/*
 * Rings of a process that writes anything into them, and changes them while the tracer reads. What
 * comes out are valid records of known threads, in the order of time. The input: for each of two
 * rings two bytes of length and the data; then changes of five bytes, one after each record.
 */
#include <stdint.h>

#include "capture/transport/ring_set.h"
#include "../unit/fake_rings.h"
#include "require.h"
#include "store/record.h"
#include "util/clock.h"

#define PID 500
#define RINGS 2
#define ROUNDS 4
#define CHANGE_BYTES 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t site_find(uint64_t ts, pid_t pid, uint64_t probe, void *arg)
{
	(void)ts;
	(void)pid;
	(void)arg;
	return probe & 1 ? WAFFLE_SITE_UNKNOWN : (uint32_t)(probe & 0xff);
}

/* Changes a word of a ring's header or of its data. */
static void change(const uint8_t *how)
{
	struct ring_shared *shared = fake_rings[how[0] % RINGS];
	unsigned char *data = (unsigned char *)shared + shared->data_at;
	uint64_t *words[] = {&shared->head, &shared->oldest, &shared->lost, &shared->tail};
	uint64_t value = (uint64_t)how[3] << 8 | how[4];

	if (how[0] & 0x80)
		*words[how[1] % 4] += how[0] & 0x40 ? value << 40 : value * 8;
	else if (how[0] & 0x40)
		shared->overwrite = how[1] & 1;
	else
		memcpy(data + ((how[1] << 8 | how[2]) % FAKE_RING_BYTES & ~7u), &how[3], 2);
}

static void round_take(struct ring_set *set, uint64_t last[RINGS], const uint8_t **changes,
		       size_t *left)
{
	/* No round is longer than what the rings can contain. */
	unsigned most = RINGS * (FAKE_RING_BYTES / sizeof(struct ring_record) + 1);

	ring_set_begin_round(set);
	require(ring_set_count(set) <= RINGS);
	for (uint32_t i = 0; i < ring_set_count(set); i++) {
		for (uint64_t ts; (ts = ring_set_ts(set, i)) != UINT64_MAX;) {
			const struct waffle_rec *rec = ring_set_take(set, i);

			require(most--);
			require(ts >= last[i] && ts <= clock_monotonic_ns());
			last[i] = ts;
			if (rec)
				require(rec->ts == ts && rec->cpu < 2 &&
					(rec->tid == 603 || rec->tid == 1077) &&
					record_size(rec, RECORD_BYTES_MAX));
			if (*left >= CHANGE_BYTES) {
				change(*changes);
				*changes += CHANGE_BYTES;
				*left -= CHANGE_BYTES;
			}
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_set_options options = {.cpu_count = 2, .site = site_find};
	struct error err = ERROR_INIT;
	uint64_t last[RINGS] = {0};
	struct ring_set *set;

	require(!ring_set_open(&set, &options, &err));
	ring_set_thread(set, PID, 3, 603);
	for (unsigned i = 0; i < RINGS; i++) {
		struct ring_shared *shared = fake_ring_make(i);
		size_t len = size >= 2 ? (size_t)(data[0] << 8 | data[1]) : 0;

		data += size >= 2 ? 2 : size;
		size -= size >= 2 ? 2 : size;
		len = len < size ? len : size;
		len = len < FAKE_RING_BYTES ? len : FAKE_RING_BYTES;
		memcpy((unsigned char *)shared + shared->data_at, data, len);
		data += len;
		size -= len;
		shared->tid = 3;
		ring_set_add(set, PID, i, ring_map_bytes(FAKE_RING_BYTES), false);
		shared->head = len / 8 * 8;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct ring_set_counts before = ring_set_counts(set);

		round_take(set, last, &data, &size);
		require(ring_set_counts(set).taken >= before.taken);
		require(ring_set_counts(set).lost >= before.lost);
		if (round == ROUNDS - 2)
			ring_set_ended(set, PID);
	}
	ring_set_close(set);
	require(!fake_rings_mapped);
	fake_rings_free();
	return 0;
}
