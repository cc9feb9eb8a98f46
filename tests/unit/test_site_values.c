// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "target/elf/site.h"

static const struct site_info all_types = {
	.name = "all",
	.kind = WAFFLE_SITE_SPAN,
	.key_count = 9,
	.keys = {{WAFFLE_KEY_I64, "i"},
		 {WAFFLE_KEY_U64, "u"},
		 {WAFFLE_KEY_F64, "d"},
		 {WAFFLE_KEY_BOOL, "b"},
		 {WAFFLE_KEY_PTR, "p"},
		 {WAFFLE_KEY_STR, "s"},
		 {WAFFLE_KEY_NUMBER, "n"},
		 {WAFFLE_KEY_CAUSE_SPAN, "S"},
		 {WAFFLE_KEY_CAUSE_EVENT, "E"}},
};

/* The frame of all_types, 5 bytes of text: 32 + 5 * 8 + 16 + 16 + 16. */
#define ALL_BYTES 120

static void all_types_frame(unsigned char frame[ALL_BYTES])
{
	double half = 0.5;
	uint64_t words[ALL_BYTES / 8] = {1,      0, 0, 0, (uint64_t)-3, 4,  0, 2,
					 0xdead, 5, 0, 1, 77,           88, 99};

	memcpy(&words[6], &half, sizeof(half));
	memcpy(&words[10], "hello", 5);
	memcpy(frame, words, ALL_BYTES);
}

static void test_every_type_reads_back_its_value(void **state)
{
	unsigned char frame[ALL_BYTES];
	struct value_walk walk;
	struct value value;

	(void)state;
	all_types_frame(frame);
	walk = value_walk_begin(&all_types, frame, sizeof(frame));
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.i64, -3);
	assert_string_equal(value.key->name, "i");
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.u64, 4);
	assert_true(value_walk_next(&walk, &value));
	assert_true(value.f64 == 0.5);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.u64, 1);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.u64, 0xdead);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.text_len, 5);
	assert_memory_equal(value.text, "hello", 5);
	assert_false(value.cut);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.type, WAFFLE_KEY_U64);
	assert_int_equal(value.u64, 77);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.type, WAFFLE_KEY_CAUSE_SPAN);
	assert_int_equal(value.u64, 88);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.u64, 99);
	assert_false(value_walk_next(&walk, &value));
	assert_false(value_walk_next(&walk, &value));
}

static unsigned count_values(const struct site_info *site, const void *frame, uint32_t bytes)
{
	struct value_walk walk = value_walk_begin(site, frame, bytes);
	struct value value;
	unsigned count = 0;

	while (value_walk_next(&walk, &value))
		count++;
	return count;
}

static void test_frame_cut_at_any_byte_ends_before_the_value_that_does_not_fit(void **state)
{
	static const unsigned char ends[] = {40, 48, 56, 64, 72, 88, 104, 112, 120};
	unsigned char frame[ALL_BYTES];

	(void)state;
	all_types_frame(frame);
	for (uint32_t bytes = 0; bytes <= ALL_BYTES; bytes++) {
		unsigned char *exact = malloc(bytes + 1); /* its end is watched by ASan */
		unsigned expected = 0;

		memcpy(exact + 1, frame, bytes); /* and it is not aligned */
		for (unsigned i = 0; i < sizeof(ends); i++)
			expected += ends[i] <= bytes;
		assert_int_equal(count_values(&all_types, exact + 1, bytes), expected);
		free(exact);
	}
}

static void test_absurd_lengths_and_types_end_the_walk(void **state)
{
	static const uint64_t lengths[] = {257, 0xffffffff, 0xfffffff9, 0x80000000, 256};
	struct site_info site = {.key_count = 2,
				 .keys = {{WAFFLE_KEY_STR, "s"}, {WAFFLE_KEY_U64, "u"}}};
	uint64_t frame[8] = {1};

	(void)state;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		frame[4] = lengths[i];
		assert_int_equal(count_values(&site, frame, sizeof(frame)), 0);
	}
	frame[4] = 16; /* fits, and one word is left */
	assert_int_equal(count_values(&site, frame, sizeof(frame)), 2);
	frame[4] = 17; /* padded to 24, nothing is left */
	assert_int_equal(count_values(&site, frame, sizeof(frame)), 1);
	site.keys[0].type = WAFFLE_KEY_NUMBER;
	frame[4] = WAFFLE_NUMBER_NONE; /* skipped */
	assert_int_equal(count_values(&site, frame, sizeof(frame)), 1);
	frame[4] = WAFFLE_NUMBER_NONE + 1;
	assert_int_equal(count_values(&site, frame, sizeof(frame)), 0);
	site.keys[0].type = 'x';
	assert_int_equal(count_values(&site, frame, sizeof(frame)), 0);
	site.keys[0].type = WAFFLE_KEY_U64;
	site.key_count = 65535; /* more than a site can have */
	assert_int_equal(count_values(&site, frame, sizeof(frame)), 2);
	assert_int_equal(count_values(&site, NULL, 0), 0);
}

static void test_string_marks_are_told(void **state)
{
	struct site_info site = {.key_count = 1, .keys = {{WAFFLE_KEY_STR, "s"}}};
	uint64_t frame[5] = {1, 0, 0, 0, WAFFLE_STR_NULL};
	struct value_walk walk = value_walk_begin(&site, frame, sizeof(frame));
	struct value value;

	(void)state;
	assert_true(value_walk_next(&walk, &value));
	assert_true(value.null);
	assert_false(value.lost);
	assert_int_equal(value.text_len, 0);
	frame[4] = WAFFLE_STR_NULL | WAFFLE_STR_CUT;
	walk = value_walk_begin(&site, frame, sizeof(frame));
	assert_true(value_walk_next(&walk, &value));
	assert_true(value.null && value.lost);
	assert_false(value.cut);
	frame[4] = WAFFLE_STR_CUT;
	walk = value_walk_begin(&site, frame, sizeof(frame));
	assert_true(value_walk_next(&walk, &value));
	assert_true(value.cut);
	assert_false(value.null);
}

static void test_functions_dimensions_and_texts_of_the_model_read_back(void **state)
{
	static const char name[] = "saxpy(float*, int)";
	struct site_info site = {.key_count = 4,
				 .keys = {{WAFFLE_KEY_CODE, "kernel"},
					  {WAFFLE_KEY_DIM3, "grid"},
					  {SITE_KEY_TEXT, "name"},
					  {SITE_KEY_TEXT, "none"}}};
	uint64_t frame[9] = {1, 0, 0, 0, 0x401000, 64 | 32ull << 32, 7 | 9ull << 32};
	struct value_walk walk;
	struct value value;

	(void)state;
	frame[7] = (uintptr_t)name;
	walk = value_walk_begin(&site, frame, sizeof(frame));
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.type, WAFFLE_KEY_CODE);
	assert_int_equal(value.u64, 0x401000);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.dim[0], 64);
	assert_int_equal(value.dim[1], 32);
	assert_int_equal(value.dim[2], 7);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.type, WAFFLE_KEY_STR);
	assert_ptr_equal(value.text, name);
	assert_int_equal(value.text_len, strlen(name));
	assert_true(value_walk_next(&walk, &value));
	assert_true(value.null);
	assert_int_equal(value.text_len, 0);
	assert_false(value_walk_next(&walk, &value));
	/* A dimension of which only the first word is there. */
	assert_int_equal(count_values(&site, frame, 6 * 8), 1);
	assert_false(site_key_from_file(SITE_KEY_TEXT));
	assert_true(site_key_from_file(WAFFLE_KEY_DIM3));
}

static void test_values_of_a_return_are_those_of_the_last_keys(void **state)
{
	struct site_info site = {.key_count = 3,
				 .keys = {{WAFFLE_KEY_U64, "bytes"},
					  {WAFFLE_KEY_PTR, "address"},
					  {WAFFLE_KEY_I64, "ret"}}};
	const uint64_t words[2] = {0xdead, (uint64_t)-1};
	struct value_walk walk = value_walk_from(&site, 1, words, sizeof(words));
	struct value value;

	(void)state;
	assert_true(value_walk_next(&walk, &value));
	assert_string_equal(value.key->name, "address");
	assert_int_equal(value.u64, 0xdead);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.i64, -1);
	assert_false(value_walk_next(&walk, &value));
	walk = value_walk_from(&site, 3, words, sizeof(words));
	assert_false(value_walk_next(&walk, &value));
	walk = value_walk_from(&site, 1, NULL, 8);
	assert_false(value_walk_next(&walk, &value));
}

static void test_kinds_have_names(void **state)
{
	(void)state;
	assert_string_equal(site_kind_name(WAFFLE_SITE_SPAN), "span");
	assert_string_equal(site_kind_name(WAFFLE_SITE_LOG_ERROR), "log_error");
	assert_string_equal(site_kind_name(0), "?");
	assert_string_equal(site_kind_name(WAFFLE_SITE_KIND_COUNT), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_type_reads_back_its_value),
		cmocka_unit_test(
			test_frame_cut_at_any_byte_ends_before_the_value_that_does_not_fit),
		cmocka_unit_test(test_absurd_lengths_and_types_end_the_walk),
		cmocka_unit_test(test_string_marks_are_told),
		cmocka_unit_test(test_functions_dimensions_and_texts_of_the_model_read_back),
		cmocka_unit_test(test_values_of_a_return_are_those_of_the_last_keys),
		cmocka_unit_test(test_kinds_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
