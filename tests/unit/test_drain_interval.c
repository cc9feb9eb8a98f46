// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/drain_interval_internal.h"

#define MS 1000000ull

static void test_drains_are_rare_only_while_nothing_comes(void **state)
{
	struct drain_interval interval = drain_interval_begin(1ull << 30, 1, 1ull << 30, 2);

	(void)state;
	assert_int_equal(interval.ns, 20 * MS);
	drain_interval_update(&interval, 10, 0);
	assert_int_equal(interval.ns, 100 * MS);
	drain_interval_update(&interval, 1010, 0);
	assert_int_equal(interval.ns, 20 * MS);
	drain_interval_update(&interval, 1010, 0);
	assert_int_equal(interval.ns, 100 * MS);
}

static void test_a_quiet_pause_is_no_longer_than_the_smallest_buffer_lasts(void **state)
{
	(void)state;
	/* 65,536 switches at a million a second */
	assert_int_equal(drain_interval_begin(1ull << 30, 1, 4ull << 20, 2).quiet_ns, 65536000);
	/* 32 MiB that eight CPUs fill at 1.2 GB a second, two rings for sixteen */
	assert_int_equal(drain_interval_begin(32ull << 20, 2, 0, 16).quiet_ns, 27962026);
	/* never less often than when it is busy */
	assert_int_equal(drain_interval_begin(4096, 1, 4096, 64).quiet_ns, 20 * MS);
}

static void test_rings_that_fill_are_drained_more_often(void **state)
{
	struct drain_interval interval = drain_interval_begin(1ull << 30, 1, 0, 2);

	(void)state;
	/* Half of a ring in 20 ms: a quarter in 10 ms. */
	drain_interval_update(&interval, 1000, 128);
	assert_int_equal(interval.ns, 10 * MS);
	drain_interval_update(&interval, 2000, 64);
	assert_int_equal(interval.ns, 10 * MS);
	drain_interval_update(&interval, 3000, 256);
	assert_int_equal(interval.ns, 2500000);
	drain_interval_update(&interval, 4000, 256);
	assert_int_equal(interval.ns, 1 * MS);
	/* The thread may go on at any time. */
	drain_interval_update(&interval, 4000, 1);
	assert_int_equal(interval.ns, 1250000);
	for (unsigned i = 0; i < 100; i++)
		drain_interval_update(&interval, 4000, 1);
	assert_int_equal(interval.ns, 40 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drains_are_rare_only_while_nothing_comes),
		cmocka_unit_test(test_rings_that_fill_are_drained_more_often),
		cmocka_unit_test(test_a_quiet_pause_is_no_longer_than_the_smallest_buffer_lasts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
