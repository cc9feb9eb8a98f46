// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "util/suggest.h"
#include "util/units.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct sample {
	const char *text;
	uint64_t value;
};

static void test_duration_is_read_in_every_unit(void **state)
{
	static const struct sample samples[] = {
		{"10s", 10000000000},
		{"500ms", 500000000},
		{"7us", 7000},
		{"7µs", 7000},
		{"9ns", 9},
		{"2m", 120000000000},
		{"1m30s", 90000000000},
		{"1h1m1s1ms1us1ns", 3661001001001},
		{"1d", 86400000000000},
		{"1.5s", 1500000000},
		{"0.001s", 1000000},
		{"0", 0},
		{"0s", 0},
		{"18446744073709551615ns", UINT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		uint64_t ns = 1;

		assert_true(units_parse_duration(samples[i].text, &ns));
		assert_int_equal(ns, samples[i].value);
	}
}

static void test_duration_without_sense_is_refused_and_leaves_the_value(void **state)
{
	static const char *const bad[] = {
		"",
		"10",
		"10x",
		"s",
		"-1s",
		"1 s",
		"1s ",
		"30s1m",
		"1s1s",
		"1..5s",
		"1.s",
		".5s",
		"1e3s",
		"0x1s",
		"1sm",
		"999999d999999d",
		"1s2",
		"18446744073709551616ns",
		"18446744074s",
		"213504d",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		uint64_t ns = 77;

		assert_false(units_parse_duration(bad[i], &ns));
		assert_int_equal(ns, 77);
	}
}

static void test_bytes_are_powers_of_1024(void **state)
{
	static const struct sample samples[] = {
		{"4096", 4096},         {"4096B", 4096},       {"512k", 524288},
		{"512KiB", 524288},     {"64MiB", 67108864},   {"64M", 67108864},
		{"1.5GiB", 1610612736}, {"1T", 1099511627776},
	};
	static const char *const bad[] = {"",   "M",   "64Mi",      "64mib",
					  "-1", "1 M", "16777216T", "1MM"};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		assert_true(units_parse_bytes(samples[i].text, &bytes));
		assert_int_equal(bytes, samples[i].value);
	}
	bytes = 5;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_false(units_parse_bytes(bad[i], &bytes));
	assert_int_equal(bytes, 5);
}

static void test_number_is_digits_only(void **state)
{
	uint64_t number = 3;

	(void)state;
	assert_false(units_parse_number("", &number));
	assert_false(units_parse_number("+1", &number));
	assert_false(units_parse_number("-1", &number));
	assert_false(units_parse_number(" 1", &number));
	assert_false(units_parse_number("12a", &number));
	assert_false(units_parse_number("18446744073709551616", &number));
	assert_int_equal(number, 3);
	assert_true(units_parse_number("18446744073709551615", &number));
	assert_true(number == UINT64_MAX);
}

static void test_duration_is_shown_with_three_digits_that_count(void **state)
{
	static const struct sample samples[] = {
		{"0 ns", 0},
		{"999 ns", 999},
		{"1.00 us", 1000},
		{"12.3 us", 12345},
		{"123 us", 123456},
		{"999 us", 999400},
		{"1.00 ms", 999600},
		{"12.3 ms", 12345678},
		{"1.00 s", 999999999},
		{"1.50 s", 1500000000},
		{"99.0 s", 99000000000},
		{"2 min 05 s", 125000000000},
		{"1 h 01 min", 3661000000000},
		{"5124095 h 34 min", UINT64_MAX},
	};
	char text[UNITS_TEXT];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++)
		assert_string_equal(units_format_duration(text, samples[i].value), samples[i].text);
}

static void test_bytes_counts_and_shares_are_shown_for_people(void **state)
{
	char text[UNITS_TEXT];

	(void)state;
	assert_string_equal(units_format_bytes(text, 0), "0 B");
	assert_string_equal(units_format_bytes(text, 1023), "1023 B");
	assert_string_equal(units_format_bytes(text, 1024), "1.00 KiB");
	assert_string_equal(units_format_bytes(text, 12900000), "12.3 MiB");
	assert_string_equal(units_format_bytes(text, UINT64_MAX), "16777216 TiB");
	assert_string_equal(units_format_count(text, 0), "0");
	assert_string_equal(units_format_count(text, 999), "999");
	assert_string_equal(units_format_count(text, 1234567), "1,234,567");
	assert_string_equal(units_format_count(text, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(units_format_more(text, 0), "");
	assert_string_equal(units_format_more(text, 1), " and 1 more");
	assert_string_equal(units_format_more(text, UINT64_MAX), " and 18446744073709551615 more");
	assert_string_equal(units_format_share(text, 1, 8), "12.5 %");
	assert_string_equal(units_format_share(text, 8, 8), "100.0 %");
	assert_string_equal(units_format_share(text, 1, 0), "-");
}

static void test_slips_of_the_finger_are_near_and_other_words_are_not(void **state)
{
	char longest[200];

	(void)state;
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(suggest_distance("kitten", "sitting"), 3);
	assert_int_equal(suggest_distance("", "abc"), 3);
	assert_int_equal(suggest_distance("abc", "abc"), 0);
	assert_int_equal(suggest_distance(longest, longest), 0);
	assert_true(suggest_similar("atach", "attach"));
	assert_true(suggest_similar("rep", "report"));
	assert_false(suggest_similar("info", "attach"));
	assert_false(suggest_similar("", "attach"));
	assert_false(suggest_similar("xy", "run"));
	assert_false(suggest_similar(longest, "run"));
}

static void test_one_thing_is_no_plural(void **state)
{
	(void)state;
	assert_string_equal(units_plural(1, "stack was", "stacks were"), "stack was");
	assert_string_equal(units_plural(0, "stack was", "stacks were"), "stacks were");
	assert_string_equal(units_plural(UINT64_MAX, "", "s"), "s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_duration_is_read_in_every_unit),
		cmocka_unit_test(test_duration_without_sense_is_refused_and_leaves_the_value),
		cmocka_unit_test(test_bytes_are_powers_of_1024),
		cmocka_unit_test(test_number_is_digits_only),
		cmocka_unit_test(test_duration_is_shown_with_three_digits_that_count),
		cmocka_unit_test(test_bytes_counts_and_shares_are_shown_for_people),
		cmocka_unit_test(test_slips_of_the_finger_are_near_and_other_words_are_not),
		cmocka_unit_test(test_one_thing_is_no_plural),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
