// SPDX-License-Identifier: Apache-2.0
/* Exponential histograms: where values fall, against bounds that are computed with long doubles,
 * and that nothing is lost when buckets are merged. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "export/process/exp_histogram_internal.h"

/* The lower bound of a bucket: base^index. */
static long double lower(int32_t index, int32_t scale)
{
	return exp2l(ldexpl(index, -scale));
}

/* A value is in its bucket, but for a relative error of 1e-12 at the bounds of fine scales. */
static void check(double value, int32_t scale)
{
	int32_t index = exp_histogram_index(value, scale);
	long double slack = scale > 0 ? 1e-12L : 0;

	if (!(value > lower(index, scale) * (1 - slack)) ||
	    !(value <= lower(index + 1, scale) * (1 + slack)))
		fail_msg("%.17g at scale %d is in bucket %d: (%.17Lg, %.17Lg]", value, scale, index,
			 lower(index, scale), lower(index + 1, scale));
}

static void test_values_are_in_their_buckets(void **state)
{
	(void)state;
	srand(1);
	for (int32_t scale = EXP_HISTOGRAM_SCALE_MIN; scale <= EXP_HISTOGRAM_SCALE_MAX; scale++)
		for (int i = 0; i < 20000; i++)
			check(ldexp(0.5 + rand() / (2.0 * RAND_MAX), rand() % 160 - 80), scale);
}

static void test_powers_of_two_are_exact_upper_bounds(void **state)
{
	(void)state;
	for (int32_t scale = 0; scale <= EXP_HISTOGRAM_SCALE_MAX; scale++)
		for (int exponent = -100; exponent <= 100; exponent++) {
			double power = ldexp(1, exponent);
			int32_t index = exp_histogram_index(power, scale);

			assert_int_equal(index, exponent * (1 << scale) - 1);
			assert_int_equal(exp_histogram_index(nextafter(power, INFINITY), scale),
					 index + 1);
			assert_true(exp_histogram_bound(index, scale) == power);
		}
	/* At coarse scales the bounds are powers of 2^(2^-scale). */
	assert_int_equal(exp_histogram_index(4, -1), 0);
	assert_int_equal(exp_histogram_index(4.001, -1), 1);
	assert_int_equal(exp_histogram_index(1, -1), -1);
	assert_int_equal(exp_histogram_index(0.25, -1), -2);
}

static uint64_t total(const struct exp_histogram *histogram)
{
	uint64_t sum = histogram->zeros;

	for (uint32_t i = 0; i < histogram->used; i++)
		sum += histogram->buckets[i];
	return sum;
}

static void test_merging_keeps_every_value_in_its_bucket(void **state)
{
	static double values[5000];
	struct exp_histogram histogram;
	double sum = 0;

	(void)state;
	srand(2);
	exp_histogram_init(&histogram);
	for (int i = 0; i < 5000; i++) {
		uint64_t counts[EXP_HISTOGRAM_BUCKETS] = {0};

		values[i] = ldexp(1 + rand() / (double)RAND_MAX, rand() % (1 + i / 200) - i / 400);
		sum += values[i];
		assert_true(exp_histogram_add(&histogram, values[i]));
		assert_true(histogram.used <= EXP_HISTOGRAM_BUCKETS);
		if (i % 500 != 499)
			continue;
		for (int j = 0; j <= i; j++) {
			int32_t at =
				exp_histogram_index(values[j], histogram.scale) - histogram.offset;

			assert_in_range(at, 0, histogram.used - 1);
			counts[at]++;
		}
		assert_memory_equal(counts, histogram.buckets, sizeof(counts));
	}
	assert_int_equal(histogram.count, 5000);
	assert_true(fabs(histogram.sum - sum) < 1e-6 * sum);
}

static void test_extreme_values_fit(void **state)
{
	static const double values[] = {0, 5e-324, 1e-300, 1, 1e300, 1.7976931348623157e308};
	struct exp_histogram histogram;

	(void)state;
	exp_histogram_init(&histogram);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		assert_true(exp_histogram_add(&histogram, values[i]));
	assert_false(exp_histogram_add(&histogram, -1));
	assert_false(exp_histogram_add(&histogram, NAN));
	assert_false(exp_histogram_add(&histogram, INFINITY));
	assert_int_equal(histogram.count, 6);
	assert_int_equal(histogram.zeros, 1);
	assert_int_equal(total(&histogram), 6);
	assert_true(histogram.max == values[5] && histogram.min == 0);
}

static void test_coarser_histograms_have_the_same_counts(void **state)
{
	struct exp_histogram histogram, coarse;

	(void)state;
	srand(3);
	exp_histogram_init(&histogram);
	for (int i = 0; i < 1000; i++)
		exp_histogram_add(&histogram, 1 + rand() / (double)RAND_MAX);
	coarse = histogram;
	exp_histogram_coarsen(&coarse, 2, 3);
	assert_true(coarse.used <= 3 && coarse.scale <= 2);
	assert_int_equal(total(&coarse), total(&histogram));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_in_their_buckets),
		cmocka_unit_test(test_powers_of_two_are_exact_upper_bounds),
		cmocka_unit_test(test_merging_keeps_every_value_in_its_bucket),
		cmocka_unit_test(test_extreme_values_fit),
		cmocka_unit_test(test_coarser_histograms_have_the_same_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
