// SPDX-License-Identifier: Apache-2.0
/* Rings of libwaffle: what a thread writes, also in signal handlers, is what a collector reads. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "usdt/ring/ring_write.h"
#include "usdt/ring/ticks.h"

/* A writer's and a reader's view of one ring. */
struct pair {
	struct ring_writer writer;
	struct ring reader;
	void *memory;
	union {
		struct ring_record record;
		uint64_t words[RING_RECORD_MAX / 8];
	};
};

/* NULL: signals are blocked instead. Each test runs with both. */
static struct ring_rseq *rseq;

static struct pair *pair_make(uint64_t bytes)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	pair->memory = calloc(1, ring_map_bytes(bytes));
	assert_non_null(pair->memory);
	ring_make(pair->memory, bytes, TICKS_NS, 1);
	pair->writer = ring_writer_open(pair->memory, bytes, TICKS_NS, rseq);
	assert_true(ring_open(&pair->reader, pair->memory, ring_map_bytes(bytes)));
	return pair;
}

static void pair_free(struct pair *pair)
{
	free(pair->memory);
	free(pair);
}

/* Writes a record with `words` words, each of which is `value`. */
static bool fill(struct ring_writer *writer, uint64_t value, size_t words)
{
	uint64_t all[RING_RECORD_MAX / 8];

	for (size_t i = 1; i < words; i++)
		all[i] = value;
	return ring_write(writer, RING_HIT, value, all + 1, words - 1);
}

static void assert_filled(const struct pair *pair, uint64_t value, size_t words)
{
	assert_int_equal(pair->record.kind, RING_HIT);
	assert_int_equal(pair->record.bytes, sizeof(pair->record) + words * 8);
	for (size_t i = 0; i < words; i++)
		assert_int_equal(pair->words[2 + i], value);
}

static void test_records_are_read_in_their_order_with_their_contents(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);
	uint64_t before = 0;

	(void)state;
	assert_int_equal(ring_read(&pair->reader, &pair->record), RING_EMPTY);
	for (uint64_t i = 0; i < 20; i++)
		assert_true(fill(&pair->writer, i, 2 + i));
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_filled(pair, i, 2 + i);
		assert_true(pair->record.ticks >= before);
		before = pair->record.ticks;
	}
	assert_int_equal(ring_read(&pair->reader, &pair->record), RING_EMPTY);
	assert_int_equal(ring_lost(&pair->reader), 0);
	pair_free(pair);
}

static void test_records_of_all_lengths_pass_the_end_of_the_data(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);

	(void)state;
	srandom(16);
	for (uint64_t i = 0; i < 200000; i++) {
		size_t first = 2 + (size_t)random() % 200, second = 2 + (size_t)random() % 200;

		assert_true(fill(&pair->writer, i, first));
		assert_true(fill(&pair->writer, ~i, second));
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_filled(pair, i, first);
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_filled(pair, ~i, second);
	}
	pair_free(pair);
}

static void test_full_ring_counts_what_has_no_room_and_keeps_the_rest(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);
	uint64_t kept = 0;

	(void)state;
	while (fill(&pair->writer, kept, 2))
		kept++;
	assert_int_equal(kept, RING_BYTES_MIN / 32);
	assert_false(fill(&pair->writer, 0, 2));
	assert_int_equal(ring_lost(&pair->reader), 2);
	for (uint64_t i = 0; i < kept; i++) {
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_filled(pair, i, 2);
		/* There is room for one more after each that was taken. */
		assert_true(fill(&pair->writer, kept + i, 2));
	}
	pair_free(pair);
}

/* ---- signal handlers ---- */

static struct pair *shared;
static volatile uint64_t handled;

static void write_in_handler(int signo)
{
	(void)signo;
	if (fill(&shared->writer, 1ull << 63 | handled, 3))
		handled++;
}

#define NESTED 300000

static bool is_filled(uint64_t value, size_t words)
{
	bool same = shared->record.bytes == sizeof(shared->record) + words * 8;

	for (size_t i = 0; same && i < words; i++)
		same = shared->words[2 + i] == value;
	return same;
}

/* The state of a collector that reads the ring in another thread. */
struct reading {
	bool ended; /* nothing is written any more */
	bool stuck; /* a record was never committed */
	uint64_t outer, inner, wrong;
};

static void *read_all(void *arg)
{
	struct reading *reading = arg;
	uint64_t waited = 0;

	for (;;) {
		bool end = __atomic_load_n(&reading->ended, __ATOMIC_ACQUIRE);
		enum ring_result result = ring_read(&shared->reader, &shared->record);

		if ((result != RING_RECORD && end) || waited > 1000000000)
			break;
		waited = result == RING_RECORD ? 0 : waited + 1;
		if (result != RING_RECORD)
			continue;
		if (shared->words[2] >> 63)
			reading->wrong += !is_filled(1ull << 63 | reading->inner++, 3);
		else
			reading->wrong += !is_filled(reading->outer++, 5);
	}
	__atomic_store_n(&reading->stuck, waited > 1000000000, __ATOMIC_RELAXED);
	return NULL;
}

static void test_handler_that_interrupts_a_write_loses_and_overwrites_nothing(void **state)
{
	struct sigaction action = {.sa_handler = write_in_handler};
	struct itimerval often = {{0, 50}, {0, 50}}, off = {{0, 0}, {0, 0}};
	struct reading reading = {0};
	sigset_t alarms;
	pthread_t reader;

	(void)state;
	handled = 0;
	shared = pair_make(1u << 20);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	assert_int_equal(pthread_create(&reader, NULL, read_all, &reading), 0);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uint64_t i = 0; i < NESTED && !__atomic_load_n(&reading.stuck, __ATOMIC_RELAXED);)
		i += fill(&shared->writer, i, 5);
	setitimer(ITIMER_REAL, &off, NULL);
	signal(SIGALRM, SIG_IGN);
	__atomic_store_n(&reading.ended, true, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	assert_int_equal(reading.wrong, 0);
	assert_int_equal(reading.outer, NESTED);
	assert_int_equal(reading.inner, handled);
	pair_free(shared);
}

static void test_record_of_the_greatest_length_fits_everywhere(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);

	(void)state;
	for (size_t at = 2; at < 100; at++) {
		assert_true(fill(&pair->writer, at, at));
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_true(fill(&pair->writer, at, RING_RECORD_MAX / 8 - 2));
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_filled(pair, at, RING_RECORD_MAX / 8 - 2);
	}
	pair_free(pair);
}

/* ---- overwriting ---- */

static void test_overwriting_ring_keeps_the_latest_records(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);
	uint64_t count = 0, next;

	(void)state;
	pair->writer.shared->overwrite = 1;
	for (; count < 3000; count++)
		assert_true(fill(&pair->writer, count, 2 + count % 40));
	assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
	next = pair->words[2];
	assert_int_equal(next, pair->writer.shared->overwritten);
	for (; next + 1 < count; next++) {
		assert_filled(pair, next, 2 + next % 40);
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
	}
	assert_filled(pair, next, 2 + next % 40);
	assert_int_equal(ring_read(&pair->reader, &pair->record), RING_EMPTY);
	assert_int_equal(ring_lost(&pair->reader), 0);
	/* At least 15 of 16 parts are kept. */
	assert_true(count - pair->writer.shared->overwritten >=
		    RING_BYTES_MIN * 15 / 16 / ((2 + 20 + 2) * 8) - 10);
	pair_free(pair);
}

static void test_overwriting_ring_does_not_count_what_was_read(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);

	(void)state;
	pair->writer.shared->overwrite = 1;
	for (uint64_t i = 0; i < 20000; i++) {
		assert_true(fill(&pair->writer, i, 5));
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_filled(pair, i, 5);
	}
	assert_int_equal(pair->writer.shared->overwritten, 0);
	pair_free(pair);
}

static void test_owner_of_the_oldest_records_is_known_when_its_record_was_overwritten(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);
	uint64_t comm[2] = {0};

	(void)state;
	pair->writer.shared->overwrite = 1;
	assert_true(ring_write(&pair->writer, RING_THREAD, 77, comm, 2));
	for (uint64_t i = 0; i < 3000; i++)
		assert_true(fill(&pair->writer, i, 5));
	assert_int_equal(pair->writer.shared->oldest_tid, 77);
	pair_free(pair);
}

static void *overwrite_all(void *arg)
{
	struct ring_rseq own = {0}, *before = rseq;
	bool *ended = arg;

	shared->writer.rseq = before ? ring_rseq_find(&own) : NULL;
	for (uint64_t i = 0; i < NESTED; i++) {
		uint64_t words[6] = {i, i, i, i, i, i};

		ring_write(&shared->writer, RING_HIT, i, words, i % 7 ?: 1);
	}
	__atomic_store_n(ended, true, __ATOMIC_RELEASE);
	return NULL;
}

static void test_reader_of_a_ring_that_is_overwritten_gets_only_whole_records(void **state)
{
	uint64_t count = 0, before = 0;
	bool ended = false;
	pthread_t writer;

	(void)state;
	shared = pair_make(RING_BYTES_MIN);
	shared->writer.shared->overwrite = 1;
	assert_int_equal(pthread_create(&writer, NULL, overwrite_all, &ended), 0);
	for (;;) {
		bool end = __atomic_load_n(&ended, __ATOMIC_ACQUIRE);
		enum ring_result result = ring_read(&shared->reader, &shared->record);
		uint64_t value = shared->words[2];

		assert_int_not_equal(result, RING_BROKEN);
		if (result == RING_EMPTY && end)
			break;
		if (result == RING_EMPTY)
			continue;
		assert_true(!count || value > before);
		assert_filled(shared, value, 1 + (value % 7 ?: 1));
		before = value;
		count++;
	}
	pthread_join(writer, NULL);
	assert_int_equal(before, NESTED - 1);
	assert_true(count + shared->writer.shared->overwritten >= NESTED);
	pair_free(shared);
}

/* ---- nonsense ---- */

static void test_nonsense_is_broken_and_the_ring_usable_after_a_drop(void **state)
{
	static const struct {
		uint64_t head, oldest;
		uint32_t bytes, overwrite;
	} rows[] = {
		{64, 0, 60, 0},                 /* no multiple of 8 */
		{64, 0, 72, 0},                 /* longer than what was written */
		{64, 0, 8, 0},                  /* without a time */
		{64, 0, 0, 0},                  /* would be read for ever */
		{60, 0, 56, 0},                 /* a head that is no multiple of 8 */
		{RING_BYTES_MIN + 8, 0, 64, 0}, /* more than there is */
		{UINT64_MAX - 7, 0, 64, 0},     /* a head before the tail */
		{64, 0, 72, 1},                 /* the same of a ring that is overwritten */
		{64, 12, 32, 1},                /* an oldest record at no multiple of 8 */
		{64, 128, 32, 1},               /* behind the head */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pair *pair = pair_make(RING_BYTES_MIN);
		struct ring_shared *ring = pair->writer.shared;
		struct ring_record *record = (void *)ring_data(pair->writer.shared);

		record->bytes = rows[i].bytes;
		record->kind = RING_HIT;
		ring->overwrite = rows[i].overwrite;
		ring->head = rows[i].head;
		ring->oldest = rows[i].oldest;
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_BROKEN);
		ring_drop(&pair->reader);
		ring->head = ring->oldest = pair->reader.tail;
		assert_true(fill(&pair->writer, i, 2));
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_filled(pair, i, 2);
		pair_free(pair);
	}
}

static void test_memory_that_is_no_ring_is_not_opened(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);
	struct ring_shared *ring = pair->writer.shared, good = *ring;
	size_t bytes = ring_map_bytes(RING_BYTES_MIN);
	struct ring other;

	(void)state;
	assert_true(ring_open(&other, ring, bytes));
	assert_false(ring_open(&other, ring, bytes - 8));
	assert_false(ring_open(&other, ring, 16));
	ring->magic++;
	assert_false(ring_open(&other, ring, bytes));
	*ring = good;
	ring->version++;
	assert_false(ring_open(&other, ring, bytes));
	*ring = good;
	ring->data_at = 8192;
	assert_false(ring_open(&other, ring, bytes));
	*ring = good;
	for (unsigned bit = 0; bit < 64; bit++) {
		ring->data_bytes = 1ull << bit;
		assert_true(ring_open(&other, ring, bytes) == (1ull << bit == RING_BYTES_MIN));
	}
	ring->data_bytes = RING_BYTES_MIN - 8;
	assert_false(ring_open(&other, ring, bytes));
	pair_free(pair);
}

static int with_rseq(void **state)
{
	static struct ring_rseq own;

	(void)state;
	rseq = ring_rseq_find(&own);
	return 0;
}

static int without_rseq(void **state)
{
	(void)state;
	rseq = NULL;
	return 0;
}

#define BOTH_WAYS(test)                                                                            \
	cmocka_unit_test_setup(test, with_rseq), cmocka_unit_test_setup(test, without_rseq)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(test_records_are_read_in_their_order_with_their_contents),
		BOTH_WAYS(test_records_of_all_lengths_pass_the_end_of_the_data),
		BOTH_WAYS(test_full_ring_counts_what_has_no_room_and_keeps_the_rest),
		BOTH_WAYS(test_handler_that_interrupts_a_write_loses_and_overwrites_nothing),
		BOTH_WAYS(test_record_of_the_greatest_length_fits_everywhere),
		BOTH_WAYS(test_overwriting_ring_keeps_the_latest_records),
		BOTH_WAYS(test_overwriting_ring_does_not_count_what_was_read),
		BOTH_WAYS(
			test_owner_of_the_oldest_records_is_known_when_its_record_was_overwritten),
		BOTH_WAYS(test_reader_of_a_ring_that_is_overwritten_gets_only_whole_records),
		BOTH_WAYS(test_nonsense_is_broken_and_the_ring_usable_after_a_drop),
		cmocka_unit_test(test_memory_that_is_no_ring_is_not_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
