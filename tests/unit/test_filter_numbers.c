// SPDX-License-Identifier: Apache-2.0
/* Filters compare numbers by their values, of whatever type each is. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "filter_subject.h"

static void test_a_counter_has_the_type_that_its_value_has(void **state)
{
	struct sample_frame frame = {0};
	struct filter_subject subject;

	(void)state;
	frame_word(&frame, WAFFLE_NUMBER_I64);
	frame_word(&frame, (uint64_t)-1);
	subject = counter_subject(&frame);
	assert_yes(&subject, "kind == counter && kv.value == -1");
	frame.words[0] = WAFFLE_NUMBER_U64;
	assert_yes(&subject, "kv.value == 18446744073709551615");
	assert_no(&subject, "kv.value < 0");
	frame.words[0] = WAFFLE_NUMBER_F64;
	frame.count = 1;
	frame_float(&frame, -0.5);
	assert_yes(&subject, "kv.value == -0.5 && kv.value < 0");
	frame.words[0] = 3;
	assert_no(&subject, "kv.value < 0 || kv.value >= 0 || kv.value != 1");
}

static const char *const relations[] = {"<", "<=", "==", "!=", ">=", ">"};

/* Compares `value`, of a key of this type, with a literal: -1, 0, 1; 2: unordered. */
static void check_order(char type, uint64_t word, const char *literal, int order)
{
	struct site_info site = counter_site;
	struct sample_frame frame = {0};
	struct filter_subject subject = counter_subject(&frame);
	const bool expected[] = {order == -1, order == -1 || order == 0, order == 0,
				 order != 0,  order == 0 || order == 1,  order == 1};

	site.kind = WAFFLE_SITE_EVENT;
	site.keys[0].type = type;
	frame_word(&frame, word);
	subject.site = &site;
	subject.frame_bytes = frame_size(&frame);
	for (unsigned i = 0; i < 6; i++) {
		char expression[128];

		snprintf(expression, sizeof(expression), "kv.value %s %s", relations[i], literal);
		if ((ask(&subject, expression) == FILTER_YES) != expected[i])
			fail_msg("%c %llx: %s", type, (unsigned long long)word, expression);
	}
}

static void check_float(double value, const char *literal, int order)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	check_order(WAFFLE_KEY_F64, word, literal, order);
}

static void test_integers_and_floats_compare_without_rounding(void **state)
{
	(void)state;
	/* 2^53 + 1 is no double: rounding would make these equal. */
	check_float(0x1p53, "9007199254740993", -1);
	check_float(0x1p53, "9007199254740992", 0);
	check_float(-0x1p53, "-9007199254740993", 1);
	check_order(WAFFLE_KEY_U64, 9007199254740993, "9007199254740992.5", 1);
	check_float(0x1p64, "18446744073709551615", 1);
	check_float(0x1p63, "9223372036854775808", 0);
	check_float(0x1p63, "9223372036854775807", 1);
	check_float(-0x1p63, "-9223372036854775808", 0);
	check_float(1e300, "18446744073709551615", 1);
	check_float(-1e300, "-9223372036854775808", -1);
	check_float(0.5, "0", 1);
	check_float(0.5, "1", -1);
	check_float(-0.5, "0", -1);
	check_float(-0.5, "-1", 1);
	check_float(-0.0, "0", 0);
	check_float(-0.0, "0.0", 0);
	check_float(5e-324, "0", 1);
	check_float(-5e-324, "0", -1);
	check_float(INFINITY, "18446744073709551615", 1);
	check_float(-INFINITY, "-9223372036854775808", -1);
	check_float(2.5, "2.5", 0);
	check_float(2.25, "2.5", -1);
}

static void test_signed_and_unsigned_compare_by_value(void **state)
{
	(void)state;
	check_order(WAFFLE_KEY_I64, (uint64_t)INT64_MIN, "-9223372036854775808", 0);
	check_order(WAFFLE_KEY_I64, (uint64_t)INT64_MIN, "-9223372036854775807", -1);
	check_order(WAFFLE_KEY_I64, (uint64_t)INT64_MIN, "9223372036854775808", -1);
	check_order(WAFFLE_KEY_I64, (uint64_t)-1, "18446744073709551615", -1);
	check_order(WAFFLE_KEY_U64, UINT64_MAX, "18446744073709551615", 0);
	check_order(WAFFLE_KEY_U64, UINT64_MAX, "-1", 1);
	check_order(WAFFLE_KEY_U64, 0, "-1", 1);
	check_order(WAFFLE_KEY_U64, 0, "0", 0);
	check_order(WAFFLE_KEY_I64, (uint64_t)-2, "-1.5", -1);
	check_order(WAFFLE_KEY_I64, (uint64_t)-1, "-1.5", 1);
	check_order(WAFFLE_KEY_PTR, 1ull << 63, "9223372036854775808", 0);
	check_order(WAFFLE_KEY_BOOL, 7, "1", 0);
	check_order(WAFFLE_KEY_BOOL, 0, "1", -1);
}

static void test_nothing_is_ordered_with_a_nan_and_it_differs_from_everything(void **state)
{
	(void)state;
	check_float(NAN, "0", 2);
	check_float(-NAN, "1.5", 2);
	check_float(NAN, "-3", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_counter_has_the_type_that_its_value_has),
		cmocka_unit_test(test_integers_and_floats_compare_without_rounding),
		cmocka_unit_test(test_signed_and_unsigned_compare_by_value),
		cmocka_unit_test(test_nothing_is_ordered_with_a_nan_and_it_differs_from_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
