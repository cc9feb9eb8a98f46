// SPDX-License-Identifier: Apache-2.0
/* Reading of a ring in another process, here in this one: what it returns, and that it makes no
 * memory of what nobody has written. Needs root, for /proc/PID/map_files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/transport/ring_reader_internal.h"
#include "usdt/ring/ring_write.h"
#include "usdt/ring/shared_memory.h"

struct pair {
	struct ring_mount mount;
	struct ring_writer writer;
	struct ring_shared *shared;
	struct ring_reader reader;
	uint64_t bytes;
};

static struct pair *pair_make(uint64_t bytes)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	assert_int_equal(ring_mount_open(&pair->mount), 0);
	pair->bytes = ring_map_bytes(bytes);
	pair->shared = shared_memory_map(NULL, pair->bytes, NULL, 0);
	assert_non_null(pair->shared);
	ring_make(pair->shared, bytes, TICKS_NS, 1);
	pair->writer = ring_writer_open(pair->shared, bytes, TICKS_NS, NULL);
	assert_int_equal(ring_reader_open(&pair->reader, &pair->mount, getpid(),
					  (uintptr_t)pair->shared, pair->bytes),
			 0);
	return pair;
}

static void pair_free(struct pair *pair)
{
	ring_reader_close(&pair->reader);
	ring_mount_close(&pair->mount);
	munmap(pair->shared, pair->bytes);
	free(pair);
}

/* Writes a record with `words` words, each of which is `value`. */
static bool fill(struct pair *pair, uint64_t value, size_t words)
{
	uint64_t all[RING_RECORD_MAX / 8];

	for (size_t i = 1; i < words; i++)
		all[i] = value;
	return ring_write(&pair->writer, RING_HIT, value, all + 1, words - 1);
}

static void assert_next(struct pair *pair, uint64_t value, size_t words)
{
	const struct ring_record *record;

	assert_int_equal(ring_reader_next(&pair->reader, ring_reader_head(&pair->reader), &record),
			 RING_RECORD);
	assert_int_equal(record->bytes, sizeof(*record) + words * 8);
	for (size_t i = 0; i < words; i++)
		assert_int_equal(((const uint64_t *)(record + 1))[i], value);
}

static void assert_empty(struct pair *pair)
{
	const struct ring_record *record;

	assert_int_equal(ring_reader_next(&pair->reader, ring_reader_head(&pair->reader), &record),
			 RING_EMPTY);
	/* The thread knows that there is room again. */
	assert_int_equal(pair->shared->tail, pair->shared->head);
}

static void test_records_of_all_lengths_pass_the_end_of_the_data(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);
	size_t lengths[64];
	uint64_t count = 0;

	(void)state;
	srandom(16);
	for (unsigned round = 0; round < 5000; round++) {
		size_t records = 1 + (size_t)random() % 64;

		for (size_t i = 0; i < records; i++) {
			lengths[i] = 2 + (size_t)random() % (random() % 8 ? 20 : 600);
			if (!fill(pair, count + i, lengths[i]))
				records = i;
		}
		for (size_t i = 0; i < records; i++)
			assert_next(pair, count + i, lengths[i]);
		assert_empty(pair);
		count += records;
	}
	assert_true(pair->shared->head > 1000 * RING_BYTES_MIN);
	pair_free(pair);
}

static void test_longest_records_are_read(void **state)
{
	size_t words = (RING_RECORD_MAX - sizeof(struct ring_record)) / 8;
	struct pair *pair = pair_make(RING_BYTES_MIN * 4);

	(void)state;
	assert_true(fill(pair, 0, 3)); /* so that the others begin anywhere */
	assert_next(pair, 0, 3);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(fill(pair, i, words));
		assert_true(fill(pair, ~i, 2));
		assert_next(pair, i, words);
		assert_next(pair, ~i, 2);
		assert_empty(pair);
	}
	pair_free(pair);
}

static blkcnt_t blocks_of(const struct ring_reader *reader)
{
	struct stat status;

	assert_int_equal(fstat(reader->memory.fd, &status), 0);
	return status.st_blocks;
}

/* Otherwise a program could make the tracer's cgroup pay for all that it has not written. */
static void test_reading_makes_no_pages_of_what_was_not_written(void **state)
{
	struct pair *pair = pair_make(16u << 20);
	unsigned char *data = ring_data(pair->shared);
	const struct ring_record *record;
	unsigned count = (16u << 20) / RING_RECORD_MAX;
	blkcnt_t before;

	(void)state;
	for (unsigned i = 0; i < count; i++)
		*(struct ring_record *)(data + i * RING_RECORD_MAX) =
			(struct ring_record){.bytes = RING_RECORD_MAX, .kind = RING_HIT};
	pair->shared->head = 16u << 20;
	before = blocks_of(&pair->reader);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(ring_reader_next(&pair->reader, pair->shared->head, &record),
				 RING_RECORD);
	assert_empty(pair);
	assert_int_equal(blocks_of(&pair->reader), before);
	pair_free(pair);
}

static void test_lengths_that_are_none_break_the_ring(void **state)
{
	static const uint32_t lengths[] = {0, 8, 15, 20, 4096, RING_RECORD_MAX + 8, UINT32_MAX};
	struct pair *pair = pair_make(RING_BYTES_MIN);
	const struct ring_record *record;

	(void)state;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		((struct ring_record *)ring_data(pair->shared))->bytes = lengths[i];
		assert_int_equal(ring_reader_next(&pair->reader, 1024, &record), RING_BROKEN);
		pair->reader.tail = 0;
		pair->reader.copied = 0;
	}
	pair_free(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_of_all_lengths_pass_the_end_of_the_data),
		cmocka_unit_test(test_longest_records_are_read),
		cmocka_unit_test(test_reading_makes_no_pages_of_what_was_not_written),
		cmocka_unit_test(test_lengths_that_are_none_break_the_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
