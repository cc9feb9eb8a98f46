// SPDX-License-Identifier: Apache-2.0
/* Conversion of the processor's counter to CLOCK_MONOTONIC, from pairs of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "usdt/ticks.h"
#include "util/clock.h"

static struct ticks_map map_of(const struct ticks_pair *pairs, unsigned count)
{
	struct ticks_map map = {0};

	for (unsigned i = 0; i < count; i++)
		ticks_map_add(&map, pairs[i]);
	return map;
}

static void test_times_lie_on_the_lines_between_the_pairs(void **state)
{
	/* 3 ticks a ns, then 2, then 4. */
	static const struct ticks_pair pairs[] = {
		{1000, 5000000}, {3001000, 6000000}, {5001000, 7000000}, {9001000, 8000000}};
	struct ticks_map map = map_of(pairs, 4);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ticks_map_ns(&map, pairs[i].ticks), pairs[i].ns);
	assert_int_equal(ticks_map_ns(&map, 1501000), 5500000);
	assert_int_equal(ticks_map_ns(&map, 4001000), 6500000);
	assert_int_equal(ticks_map_ns(&map, 6001000), 7250000);
	/* The first and the last line go on. */
	assert_int_equal(ticks_map_ns(&map, 700), 4999900);
	assert_int_equal(ticks_map_ns(&map, 9005000), 8001000);
}

static void test_large_counts_do_not_overflow(void **state)
{
	static const struct ticks_pair pairs[] = {
		{1ull << 62, 1ull << 60}, {(1ull << 62) + 30000000, (1ull << 60) + 10000000}};
	struct ticks_map map = map_of(pairs, 2);

	(void)state;
	assert_int_equal(ticks_map_ns(&map, (1ull << 62) + 3 * 86400000000000ull),
			 (1ull << 60) + 86400000000000ull);
	assert_int_equal(ticks_map_ns(&map, 0), 0); /* not negative */
}

static void test_time_never_goes_back_and_old_pairs_are_forgotten(void **state)
{
	struct ticks_map map = {0};
	struct ticks_pair pair = {1000000, 1000000};
	uint64_t before = 0, ticks = 1000000;

	(void)state;
	srandom(16);
	for (unsigned i = 0; i < 1000; i++) {
		/* A rate that is adjusted, and pairs that are some ns off. */
		pair.ticks += 3000000 + (uint64_t)random() % 3000;
		pair.ns += 1000000 + (uint64_t)random() % 1000;
		ticks_map_add(&map, pair);
		ticks_map_add(&map, (struct ticks_pair){pair.ticks, pair.ns + 5}); /* ignored */
		for (; map.count > 1 && ticks <= pair.ticks; ticks += 777) {
			uint64_t ns = ticks_map_ns(&map, ticks);

			assert_true(ns >= before);
			before = ns;
		}
	}
	assert_int_equal(map.count, TICKS_PAIRS);
}

static void test_counter_of_this_machine_is_converted_to_within_a_microsecond(void **state)
{
	uint32_t kind = (uint32_t)ticks_choose();
	struct ticks_map map = {0};
	struct sample {
		uint64_t before, ticks, after;
	} samples[100];

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		ticks_map_add(&map, ticks_pair_take(kind));
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		samples[i].before = clock_monotonic_ns();
		samples[i].ticks = ticks_now(kind);
		samples[i].after = clock_monotonic_ns();
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		if (i < 100 - TICKS_PAIRS / 2)
			continue;
		for (unsigned k = i - 20; k < i; k++) {
			uint64_t ns = ticks_map_ns(&map, samples[k].ticks);

			assert_true(ns + 1000 >= samples[k].before);
			assert_true(ns <= samples[k].after + 1000);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_lie_on_the_lines_between_the_pairs),
		cmocka_unit_test(test_large_counts_do_not_overflow),
		cmocka_unit_test(test_time_never_goes_back_and_old_pairs_are_forgotten),
		cmocka_unit_test(test_counter_of_this_machine_is_converted_to_within_a_microsecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
