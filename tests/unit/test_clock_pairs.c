// SPDX-License-Identifier: Apache-2.0
/* Clocks that a program declares by pairs of times. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "usdt/record/clock_pairs.h"

static struct clock_pairs pairs_of(const struct clock_pair *pairs, unsigned count)
{
	struct clock_pairs made = {0};

	for (unsigned i = 0; i < count; i++)
		clock_pairs_add(&made, pairs[i]);
	return made;
}

static void test_without_pairs_and_with_one_it_runs_like_the_monotonic_clock(void **state)
{
	static const struct clock_pair one[] = {{1000, 5000}};
	struct clock_pairs none = {0}, pairs = pairs_of(one, 1);

	(void)state;
	assert_int_equal(clock_pairs_ns(&none, 77), 77);
	assert_int_equal(clock_pairs_ns(&none, UINT64_MAX), INT64_MAX);
	assert_int_equal(clock_pairs_ns(&pairs, 1000), 5000);
	assert_int_equal(clock_pairs_ns(&pairs, 1300), 5300);
	assert_int_equal(clock_pairs_ns(&pairs, 0), 4000);
}

static void test_times_lie_on_the_lines_through_the_pairs_in_any_order(void **state)
{
	/* Added out of order; the line from 2000 to 3000 goes back, as after a reset. */
	static const struct clock_pair all[] = {
		{3000, 20000}, {1000, 10000}, {2000, 30000}, {3000, 25000}};
	struct clock_pairs pairs = pairs_of(all, 4);

	(void)state;
	assert_int_equal(pairs.count, 3); /* the last one replaces the first */
	assert_int_equal(clock_pairs_ns(&pairs, 1000), 10000);
	assert_int_equal(clock_pairs_ns(&pairs, 1500), 20000);
	assert_int_equal(clock_pairs_ns(&pairs, 2500), 27500);
	assert_int_equal(clock_pairs_ns(&pairs, 500), 0);
	assert_int_equal(clock_pairs_ns(&pairs, 900), 8000);
	assert_int_equal(clock_pairs_ns(&pairs, 4000), 20000);
	assert_int_equal(clock_pairs_ns(&pairs, 9000), 0); /* not negative */
}

static void test_extreme_pairs_give_times_within_bounds(void **state)
{
	static const uint64_t edges[] = {0, 1, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
	struct clock_pairs pairs = {0};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned j = 0; j < 5; j++)
			clock_pairs_add(&pairs, (struct clock_pair){edges[i], edges[j]});
		for (unsigned k = 0; k < 5; k++)
			assert_true(clock_pairs_ns(&pairs, edges[k]) <= INT64_MAX);
	}
}

static void test_oldest_pairs_make_room(void **state)
{
	struct clock_pairs pairs = {0};

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		clock_pairs_add(&pairs, (struct clock_pair){i * 10, i * 20});
	assert_int_equal(pairs.count, CLOCK_PAIRS);
	assert_int_equal(pairs.pairs[0].own, (1000 - CLOCK_PAIRS) * 10);
	clock_pairs_add(&pairs, (struct clock_pair){5, 99999}); /* older than all */
	assert_int_equal(pairs.pairs[0].own, (1000 - CLOCK_PAIRS) * 10);
	/* One in between, of which the oldest goes. */
	clock_pairs_add(&pairs, (struct clock_pair){9985, 19970});
	assert_int_equal(pairs.count, CLOCK_PAIRS);
	assert_int_equal(pairs.pairs[0].own, (1001 - CLOCK_PAIRS) * 10);
	for (unsigned i = 1; i < pairs.count; i++)
		assert_true(pairs.pairs[i - 1].own < pairs.pairs[i].own);
	assert_int_equal(clock_pairs_ns(&pairs, 9987), 19974);
}

static struct clock_latch latch;

static void *add_pairs(void *arg)
{
	/* All on one line, so that no reader may see another. */
	for (uint64_t i = 1; i <= 100000; i++)
		clock_latch_add(&latch, (struct clock_pair){i * 7, i * 21});
	return arg;
}

static void test_readers_never_see_half_of_a_change(void **state)
{
	pthread_t writer;
	uint64_t random = 1;

	(void)state;
	clock_latch_add(&latch, (struct clock_pair){0, 0});
	clock_latch_add(&latch, (struct clock_pair){7, 21});
	assert_int_equal(pthread_create(&writer, NULL, add_pairs, NULL), 0);
	for (unsigned i = 0; i < 200000; i++) {
		random = random * 6364136223846793005ull + 1;
		assert_int_equal(clock_latch_ns(&latch, random >> 40), (random >> 40) * 3);
	}
	pthread_join(writer, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_pairs_and_with_one_it_runs_like_the_monotonic_clock),
		cmocka_unit_test(test_times_lie_on_the_lines_through_the_pairs_in_any_order),
		cmocka_unit_test(test_extreme_pairs_give_times_within_bounds),
		cmocka_unit_test(test_oldest_pairs_make_room),
		cmocka_unit_test(test_readers_never_see_half_of_a_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
