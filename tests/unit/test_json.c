// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <math.h>

#include <cmocka.h>

#include "util/json.h"
#include "util/syscall_names.h"
#include "util/utf8.h"

struct text {
	char *data;
	size_t len;
	FILE *file;
	struct json *json;
};

static void text_begin(struct text *text, bool pretty)
{
	text->file = open_memstream(&text->data, &text->len);
	assert_non_null(text->file);
	text->json = json_new(text->file, pretty);
	assert_non_null(text->json);
}

static void text_is(struct text *text, const char *expected)
{
	assert_int_equal(json_close(text->json), 0);
	fclose(text->file);
	assert_string_equal(text->data, expected);
	free(text->data);
}

static void test_integers_keep_all_their_digits(void **state)
{
	struct text text;

	(void)state;
	text_begin(&text, false);
	json_array_begin(text.json);
	json_u64(text.json, UINT64_MAX);
	json_i64(text.json, INT64_MIN);
	json_i64(text.json, INT64_MAX);
	json_u64(text.json, 0);
	json_i64(text.json, -1);
	json_hex64(text.json, 0xfedcba987654321);
	json_array_end(text.json);
	text_is(&text, "[18446744073709551615,-9223372036854775808,9223372036854775807,0,-1,"
		       "\"0fedcba987654321\"]\n");
}

static void test_doubles_read_back_as_the_same_doubles(void **state)
{
	struct text text;

	(void)state;
	text_begin(&text, false);
	json_array_begin(text.json);
	json_f64(text.json, 0.1);
	json_f64(text.json, 1.0 / 3);
	json_f64(text.json, 2);
	json_f64(text.json, -1e300);
	json_f64(text.json, NAN);
	json_f64(text.json, INFINITY);
	json_f64(text.json, -INFINITY);
	json_array_end(text.json);
	text_is(&text,
		"[0.1,0.33333333333333331,2.0,-1e+300,\"NaN\",\"Infinity\",\"-Infinity\"]\n");
}

static void test_strings_of_any_bytes_become_valid_json(void **state)
{
	/* A constant one would be waffle's own. */
	const char *volatile key = "a\"\\\n\x01";
	struct text text;

	(void)state;
	text_begin(&text, false);
	json_object_begin(text.json);
	json_field_string(text.json, key, "\xff|\xe2\x82|é|\xed\xa0\x80");
	json_key(text.json, "nul");
	json_string_len(text.json, "a\0b", 3);
	json_object_end(text.json);
	text_is(&text,
		"{\"a\\\"\\\\\\n\\u0001\":\"\xef\xbf\xbd|\xef\xbf\xbd|é|\xef\xbf\xbd\xef\xbf\xbd"
		"\xef\xbf\xbd\",\"nul\":\"a\\u0000b\"}\n");
}

static void test_text_is_taken_where_there_is_no_file(void **state)
{
	struct json *json = json_new(NULL, false);
	const char *text;
	size_t len;

	(void)state;
	json_outside(json, "[\n");
	json_hex64(json, 0x0123456789abcdef);
	json_next(json);
	text = json_take(json, &len);
	assert_memory_equal(text, "[\n\"0123456789abcdef\",\n", len);
	assert_int_equal(len, 22);
	json_i64(json, INT64_MIN);
	json_outside(json, "\n]\n");
	text = json_take(json, &len);
	assert_memory_equal(text, "-9223372036854775808\n]\n", len);
	assert_int_equal(len, 23);
	/* More than a writer with a file would keep. */
	json_next(json);
	for (unsigned i = 0; i < 100000; i++) {
		json_u64(json, i);
		json_next(json);
	}
	json_take(json, &len);
	assert_int_equal(len, 2 + 10 + 180 + 2700 + 36000 + 450000 + 200000);
	assert_int_equal(json_flush(json), 0);
	assert_int_equal(json_close(json), 0);
}

static void test_lines_hold_one_value_each(void **state)
{
	struct text text;

	(void)state;
	text_begin(&text, false);
	for (int i = 0; i < 2; i++) {
		json_object_begin(text.json);
		json_field_bool(text.json, "b", i);
		json_field_i64(text.json, "i", -i);
		json_object_end(text.json);
		json_line(text.json);
	}
	text_is(&text, "{\"b\":false,\"i\":0}\n{\"b\":true,\"i\":-1}\n");
}

static void test_pretty_output_is_indented_and_ends_with_one_newline(void **state)
{
	struct text text;

	(void)state;
	text_begin(&text, true);
	json_object_begin(text.json);
	json_key(text.json, "list");
	json_array_begin(text.json);
	json_null(text.json);
	json_array_end(text.json);
	json_object_end(text.json);
	text_is(&text, "{\n  \"list\": [\n    null\n  ]\n}\n");
}

static void test_unfinished_value_and_full_disk_are_errors(void **state)
{
	struct text text;
	FILE *full = fopen("/dev/full", "w");
	struct json *json;

	(void)state;
	text_begin(&text, false);
	json_object_begin(text.json);
	assert_int_equal(json_close(text.json), -EINVAL);
	fclose(text.file);
	free(text.data);

	assert_non_null(full);
	json = json_new(full, false);
	json_array_begin(json);
	for (int i = 0; i < 100000; i++)
		json_string(json, "0123456789");
	json_array_end(json);
	assert_int_equal(json_close(json), -ENOSPC);
	fclose(full);
	assert_int_equal(json_close(NULL), -ENOMEM);
}

static void test_utf8_accepts_what_the_standard_does_and_nothing_else(void **state)
{
	static const struct {
		const char *text;
		size_t valid;
	} rows[] = {
		{"plain ascii text", 16}, {"é€😀", 9},   {"\xc0\x80", 0}, /* overlong */
		{"a\xe0\x80\x80", 1},                                    /* overlong */
		{"\xed\x9f\xbf", 3},                                     /* U+D7FF */
		{"\xed\xa0\x80", 0},                                     /* a surrogate */
		{"\xf4\x8f\xbf\xbf", 4},                                 /* U+10FFFF */
		{"\xf4\x90\x80\x80", 0},                                 /* above */
		{"12345678\x80", 8},      {"é\xc3", 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(utf8_valid(rows[i].text, strlen(rows[i].text)), rows[i].valid);
}

static void test_utf8_clean_replaces_each_bad_part_once(void **state)
{
	char out[64];
	size_t len = utf8_clean("a\xf0\x9f\x98z\x80\x80", 7, out);

	(void)state;
	assert_int_equal(len, 11);
	assert_memory_equal(out, "a\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd", 11);
}

static void test_system_calls_are_named_as_the_captured_machine_numbers_them(void **state)
{
	(void)state;
	assert_string_equal(syscall_name("x86_64", 0), "read");
	assert_string_equal(syscall_name("x86_64", 202), "futex");
	assert_string_equal(syscall_name("x86_64", 232), "epoll_wait");
	assert_string_equal(syscall_name("aarch64", 63), "read");
	assert_string_equal(syscall_name("aarch64", 98), "futex");
	assert_string_equal(syscall_name("aarch64", 222), "mmap");
	assert_string_equal(syscall_name("x86_64", 462), "mseal");
	assert_null(syscall_name("x86_64", -1));
	assert_null(syscall_name("x86_64", 400)); /* never assigned */
	assert_null(syscall_name("x86_64", 100000));
	assert_null(syscall_name("riscv64", 63));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers_keep_all_their_digits),
		cmocka_unit_test(test_doubles_read_back_as_the_same_doubles),
		cmocka_unit_test(test_strings_of_any_bytes_become_valid_json),
		cmocka_unit_test(test_text_is_taken_where_there_is_no_file),
		cmocka_unit_test(test_lines_hold_one_value_each),
		cmocka_unit_test(test_pretty_output_is_indented_and_ends_with_one_newline),
		cmocka_unit_test(test_unfinished_value_and_full_disk_are_errors),
		cmocka_unit_test(test_utf8_accepts_what_the_standard_does_and_nothing_else),
		cmocka_unit_test(test_utf8_clean_replaces_each_bad_part_once),
		cmocka_unit_test(test_system_calls_are_named_as_the_captured_machine_numbers_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
