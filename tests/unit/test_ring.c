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

#include "usdt/ring_write.h"
#include "usdt/ticks.h"

/* A writer's and a reader's view of one ring. */
struct pair {
	struct ring writer, reader;
	void *memory;
	union {
		struct ring_record record;
		uint64_t words[RING_BYTES_MIN / 8];
	};
};

static struct pair *pair_make(uint64_t bytes)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	pair->memory = calloc(1, ring_map_bytes(bytes));
	assert_non_null(pair->memory);
	ring_init(&pair->writer, pair->memory, bytes, TICKS_NS, 1, 2);
	pair->reader = pair->writer;
	return pair;
}

static void pair_free(struct pair *pair)
{
	free(pair->memory);
	free(pair);
}

/* Writes a record with `words` words, each of which is `value`. */
static bool fill(struct ring *ring, uint64_t value, size_t words)
{
	struct ring_record *record = ring_reserve(ring, (uint32_t)(sizeof(*record) + words * 8));

	if (!record)
		return false;
	record->cpu = 0;
	record->ticks = ticks_now(ring->clock);
	for (size_t i = 0; i < words; i++)
		((uint64_t *)(record + 1))[i] = value;
	ring_commit(record, RING_HIT);
	return true;
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
		assert_true(fill(&pair->writer, i, 1 + i));
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_filled(pair, i, 1 + i);
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
		size_t first = 1 + (size_t)random() % 200, second = 1 + (size_t)random() % 200;

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

/* ---- records that are not finished, and nonsense ---- */

/* Reserves a record, as a thread does that is interrupted then. */
static struct ring_record *leave(struct pair *pair, uint64_t bytes, uint32_t written)
{
	struct ring_shared *ring = pair->writer.shared;
	struct ring_record *record =
		(void *)(pair->writer.data + (ring->head & (pair->writer.bytes - 1)));

	ring->head += bytes;
	record->bytes = written;
	return record;
}

static void test_reader_waits_for_a_reserved_record_or_skips_it(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);

	(void)state;
	leave(pair, 64, 64);
	assert_true(fill(&pair->writer, 7, 2));
	assert_int_equal(ring_read(&pair->reader, &pair->record), RING_BUSY);
	assert_int_equal(ring_skip(&pair->reader), 1);
	assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
	assert_filled(pair, 7, 2);
	pair_free(pair);
}

static void test_reserved_record_without_a_length_takes_what_follows_with_it(void **state)
{
	struct pair *pair = pair_make(RING_BYTES_MIN);

	(void)state;
	leave(pair, 64, 0);
	assert_true(fill(&pair->writer, 7, 2));
	assert_int_equal(ring_read(&pair->reader, &pair->record), RING_BUSY);
	ring_skip(&pair->reader);
	assert_int_equal(ring_read(&pair->reader, &pair->record), RING_EMPTY);
	assert_true(fill(&pair->writer, 8, 2));
	assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
	assert_filled(pair, 8, 2);
	pair_free(pair);
}

static void test_nonsense_is_broken_and_the_ring_usable_after_a_skip(void **state)
{
	static const struct {
		uint64_t head;
		uint32_t bytes;
		uint16_t kind;
	} rows[] = {
		{64, 60, RING_HIT | RING_COMMITTED}, /* no multiple of 8 */
		{64, 72, RING_HIT | RING_COMMITTED}, /* longer than what is reserved */
		{64, 8, RING_HIT | RING_COMMITTED},  /* without a time */
		{64, 0, RING_HIT | RING_COMMITTED},  /* would be read for ever */
		{64, 4096, 0},                       /* also if it is not committed yet */
		{60, 56, RING_HIT | RING_COMMITTED}, /* a head that is no multiple of 8 */
		{RING_BYTES_MIN + 8, 64, RING_HIT | RING_COMMITTED}, /* more than there is */
		{UINT64_MAX - 7, 64, RING_HIT | RING_COMMITTED},     /* a head before the tail */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pair *pair = pair_make(RING_BYTES_MIN);
		struct ring_record *record = (void *)pair->writer.data;

		record->bytes = rows[i].bytes;
		record->kind = rows[i].kind;
		pair->writer.shared->head = rows[i].head;
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_BROKEN);
		ring_skip(&pair->reader);
		while (ring_read(&pair->reader, &pair->record) == RING_BUSY)
			ring_skip(&pair->reader);
		pair->writer.shared->head = pair->reader.tail;
		assert_true(fill(&pair->writer, i, 2));
		assert_int_equal(ring_read(&pair->reader, &pair->record), RING_RECORD);
		assert_filled(pair, i, 2);
		pair_free(pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_are_read_in_their_order_with_their_contents),
		cmocka_unit_test(test_records_of_all_lengths_pass_the_end_of_the_data),
		cmocka_unit_test(test_full_ring_counts_what_has_no_room_and_keeps_the_rest),
		cmocka_unit_test(test_handler_that_interrupts_a_write_loses_and_overwrites_nothing),
		cmocka_unit_test(test_reader_waits_for_a_reserved_record_or_skips_it),
		cmocka_unit_test(test_reserved_record_without_a_length_takes_what_follows_with_it),
		cmocka_unit_test(test_nonsense_is_broken_and_the_ring_usable_after_a_skip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
