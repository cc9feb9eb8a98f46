// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/json.h"
#include "util/source.h"
#include "util/terminal.h"

#define FFFD "\xef\xbf\xbd"

static char *put(const char *text, size_t len, int *columns)
{
	char *shown = NULL;
	size_t bytes;
	FILE *out = open_memstream(&shown, &bytes);

	*columns = terminal_put(out, text, len);
	fclose(out);
	return shown;
}

static void test_text_of_a_program_can_not_move_the_cursor(void **state)
{
	static const char hostile[] = "a\033[2Jb\nc\x7f\xc2\x9b"
				      "d\xff\te";
	int columns;
	char *text = put(hostile, sizeof(hostile) - 1, &columns);

	(void)state;
	assert_string_equal(text, "a" FFFD "[2Jb" FFFD "c" FFFD FFFD "d" FFFD " e");
	assert_int_equal(columns, 14);
	free(text);
}

static size_t utf8_put(char *to, uint32_t code)
{
	size_t bytes = 0;

	if (code < 0x80) {
		to[bytes++] = (char)code;
	} else if (code < 0x800) {
		to[bytes++] = (char)(0xc0 | code >> 6);
	} else if (code < 0x10000) {
		to[bytes++] = (char)(0xe0 | code >> 12);
		to[bytes++] = (char)(0x80 | (code >> 6 & 0x3f));
	} else {
		to[bytes++] = (char)(0xf0 | code >> 18);
		to[bytes++] = (char)(0x80 | (code >> 12 & 0x3f));
		to[bytes++] = (char)(0x80 | (code >> 6 & 0x3f));
	}
	if (code >= 0x80)
		to[bytes++] = (char)(0x80 | (code & 0x3f));
	return bytes;
}

/* Bidi_Control of PropList.txt in Unicode 15, and what else waffle leaves out. */
static bool is_bad(uint32_t code)
{
	static const uint32_t marks[] = {0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d,
					 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0x2028, 0x2029};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (marks[i] == code)
			return true;
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x206a && code <= 0x206f);
}

static void test_every_character_is_shown_but_controls(void **state)
{
	(void)state;
	for (uint32_t code = 0; code < 0x110000; code++) {
		char text[5] = "";
		size_t len = utf8_put(text, code);
		struct terminal_char c = terminal_char(text, len);

		if (code >= 0xd800 && code < 0xe000)
			continue;
		assert_int_equal(c.bytes, len);
		if (code == '\t')
			assert_memory_equal(c.shown, " ", 1);
		else if (is_bad(code))
			assert_string_equal(c.shown, FFFD);
		else
			assert_ptr_equal(c.shown, text);
	}
}

static char *message(const char *text, bool fault)
{
	char *shown = NULL;
	size_t bytes;
	FILE *out = open_memstream(&shown, &bytes);

	(fault ? terminal_fault : terminal_message)(out, "waffle-bpf: %s", text);
	fclose(out);
	return shown;
}

static void test_a_message_is_no_line_of_its_own(void **state)
{
	char *text = message("/tmp/x\nwaffle-bpf: all is well\r\033]0;t\a", false);

	(void)state;
	assert_string_equal(text, "waffle-bpf: /tmp/x" FFFD "waffle-bpf: all is well" FFFD FFFD
				  "]0;t" FFFD "\n");
	free(text);
	text = message("/tmp/x\n  all is well\n  ^", false);
	assert_string_equal(text, "waffle-bpf: /tmp/x" FFFD "  all is well" FFFD "  ^\n");
	free(text);
	text = message("--filter: wrong\n  a b\n    ^", true);
	assert_string_equal(text, "waffle-bpf: --filter: wrong\n  a b\n    ^\n");
	free(text);
}

/* The only line breaks in an error are those of
 * source_fault(), whatever names and paths it contains. */
static void test_an_error_has_no_line_breaks_from_outside(void **state)
{
	const struct source source = {.origin = "--probe", .text = "a b", .len = 3};
	struct error err = ERROR_INIT, copy = ERROR_INIT;

	(void)state;
	error_set(&err, 2, "%s: %s", "/tmp/x\n  forged\n  ^", "no\n  such");
	assert_string_equal(err.message, "/tmp/x?  forged?  ^: no?  such");
	error_prefix(&err, "%s", "y\n  z");
	assert_string_equal(err.message, "y?  z: /tmp/x?  forged?  ^: no?  such");
	err = (struct error)ERROR_INIT;
	source_fault(&source, 2, 3, &err, "no %s", "b\n  forged\n  ^");
	assert_string_equal(err.message, "--probe: no b?  forged?  ^\n  a b\n    ^");
	error_set(&copy, 2, "%s", err.message);
	assert_string_equal(copy.message, err.message);
}

static void test_json_escapes_what_a_terminal_obeys_and_loses_nothing(void **state)
{
	static const char hostile[] = "a\"\\\x1b\x7f\xc2\x9b\xe2\x80\xae\xd8\x9c"
				      "\xc3\xa4\xe2\x82\xac";
	const char *volatile key = "k\xc2\x9b"; /* a constant one would be waffle's own */
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct json *json = json_new(out, false);

	(void)state;
	json_object_begin(json);
	json_key(json, key);
	json_string(json, hostile);
	json_object_end(json);
	assert_int_equal(json_close(json), 0);
	fclose(out);
	assert_string_equal(text, "{\"k" FFFD "\":\"a\\\"\\\\\\u001b\\u007f\\u009b\\u202e\\u061c"
				  "\xc3\xa4\xe2\x82\xac\"}\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_of_a_program_can_not_move_the_cursor),
		cmocka_unit_test(test_every_character_is_shown_but_controls),
		cmocka_unit_test(test_a_message_is_no_line_of_its_own),
		cmocka_unit_test(test_an_error_has_no_line_breaks_from_outside),
		cmocka_unit_test(test_json_escapes_what_a_terminal_obeys_and_loses_nothing),
	};

	return cmocka_run_group_tests_name("terminal", tests, NULL, NULL);
}
