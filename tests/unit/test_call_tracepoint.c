// SPDX-License-Identifier: Apache-2.0
/* Tracepoints: the formats of tracefs, and the values that are read by them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "probe/spec/call.h"
#include "probe/find/tracepoint.h"

static const char format_text[] =
	"name: sched_process_exec\n"
	"ID: 365\n"
	"format:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
	"\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n"
	"\tfield:const void * skbaddr;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long args[6];\toffset:40;\tsize:48;\tsigned:0;\n"
	"\tfield:bool up;\toffset:88;\tsize:1;\tsigned:0;\n"
	"\tfield:__rel_loc char[] label;\toffset:92;\tsize:4;\tsigned:0;\n"
	"\n"
	"print fmt: \"filename=%s\", __get_str(filename)\n";

struct made {
	struct spec_tables tables;
	struct call_spec spec;
	struct fetch_program_made fetch_program;
	struct tracepoint_format format;
	struct error err;
	char text[sizeof(format_text)];
	int result;
};

static void make(struct made *made, const char *description)
{
	*made = (struct made){.tables = {.strings = strtab_new()}, .err = ERROR_INIT};
	memcpy(made->text, format_text, sizeof(format_text));
	if (spec_parse(&made->spec, &made->tables, description, "--probe", &made->err))
		fail_msg("%s", made->err.message);
	assert_true(tracepoint_parse(&made->format, made->text));
	made->result = tracepoint_fetch_program(&made->fetch_program, &made->spec, &made->format,
						"sched:sched_process_exec", &made->err);
}

static void unmake(struct made *made)
{
	spec_free(&made->spec);
	strtab_free(made->tables.strings);
}

static void test_all_fields_that_can_be_shown_are_the_keys(void **state)
{
	static const struct {
		const char *name;
		char type;
		uint8_t from, format, bytes;
		int32_t offset;
		uint64_t constant;
	} expected[] = {
		{"filename", 's', WAFFLE_FETCH_DATA_LOC, WAFFLE_FORMAT_STR, 8, 0, 8},
		{"pid", 'i', WAFFLE_FETCH_CONTEXT, WAFFLE_FORMAT_WORD, 4, 12, 0},
		{"comm", 's', WAFFLE_FETCH_CONTEXT, WAFFLE_FORMAT_BYTES, 16, 16, 0},
		{"skbaddr", 'p', WAFFLE_FETCH_CONTEXT, WAFFLE_FORMAT_WORD, 8, 32, 0},
		{"up", 'b', WAFFLE_FETCH_CONTEXT, WAFFLE_FORMAT_WORD, 1, 88, 0},
		{"label", 's', WAFFLE_FETCH_DATA_LOC, WAFFLE_FORMAT_STR, 8, 96, 92},
	};
	struct made made;

	make(&made, "tracepoint:sched:sched_process_exec");
	assert_int_equal(made.result, 0);
	assert_int_equal(made.format.id, 365);
	assert_int_equal(made.fetch_program.key_count, sizeof(expected) / sizeof(expected[0]));
	assert_int_equal(made.fetch_program.fetch_program.begins, made.fetch_program.key_count);
	for (unsigned i = 0; i < made.fetch_program.key_count; i++) {
		const struct waffle_fetch *fetch = &made.fetch_program.fetch_program.fetches[i];

		assert_string_equal(made.fetch_program.keys[i].name, expected[i].name);
		assert_int_equal(made.fetch_program.keys[i].type, expected[i].type);
		assert_int_equal(fetch->from, expected[i].from);
		assert_int_equal(fetch->format, expected[i].format);
		assert_int_equal(fetch->bytes, expected[i].bytes);
		assert_int_equal(fetch->offset[0], expected[i].offset);
		assert_int_equal(fetch->constant, expected[i].constant);
		assert_int_equal(fetch->loads, expected[i].format == WAFFLE_FORMAT_WORD);
		assert_true(fetch->flags & WAFFLE_FETCH_KERNEL);
	}
	unmake(&made);
	(void)state;
}

static void test_listed_fields_only_and_under_their_own_names(void **state)
{
	struct made made;

	make(&made, "tracepoint:sched:sched_process_exec(pid as who, filename) as event exec");
	assert_int_equal(made.result, 0);
	assert_int_equal(made.fetch_program.key_count, 2);
	assert_string_equal(made.fetch_program.keys[0].name, "who");
	assert_string_equal(made.fetch_program.keys[1].name, "filename");
	unmake(&made);
	(void)state;
}

static void test_missing_field_is_said_with_near_names(void **state)
{
	struct made made;

	make(&made, "tracepoint:sched:sched_process_exec(pid, filenam)");
	assert_int_equal(made.result, -EINVAL);
	assert_string_equal(
		made.err.message,
		"--probe: no field 'filenam' in sched:sched_process_exec; did you mean filename\n"
		"  tracepoint:sched:sched_process_exec(pid, filenam)\n"
		"                                           ^~~~~~~");
	unmake(&made);
	make(&made, "tracepoint:sched:sched_process_exec(args)");
	assert_int_equal(made.result, -EINVAL);
	assert_non_null(strstr(made.err.message, "a field of type 'unsigned long' can't be shown"));
	unmake(&made);
	make(&made, "tracepoint:sched:sched_process_exec(pid as x, filename as x)");
	assert_int_equal(made.result, -EINVAL);
	assert_string_equal(made.err.message,
			    "--probe: two values are named 'x'\n"
			    "  tracepoint:sched:sched_process_exec(pid as x, filename as x)\n"
			    "                                                ^~~~~~~~");
	unmake(&made);
	(void)state;
}

static void test_tracepoints_of_this_kernel_are_found(void **state)
{
	const struct call_tracepoint *points;
	struct error err = ERROR_INIT;
	struct call_set *set;
	size_t count;
	int result;

	assert_int_equal(call_set_open(&set, &err), 0);
	result = call_set_add(set, "tracepoint:sched:sched_process_*", "--probe", &err);
	if (result)
		fail_msg("%s", err.message);
	count = call_set_tracepoints(set, &points);
	assert_true(count >= 3);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(strstr(points[i].name, "sched:sched_process_"));
		assert_string_equal(points[i].site.category, "sched");
		assert_int_not_equal(points[i].id, 0);
	}
	assert_int_equal(call_set_add(set, "tracepoint:sched:sched_swich", "--probe", &err),
			 -EINVAL);
	assert_string_equal(err.message,
			    "--probe: no tracepoint 'sched_swich'; did you mean sched_switch\n"
			    "  tracepoint:sched:sched_swich\n"
			    "                   ^~~~~~~~~~~");
	call_set_free(set);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fields_that_can_be_shown_are_the_keys),
		cmocka_unit_test(test_listed_fields_only_and_under_their_own_names),
		cmocka_unit_test(test_missing_field_is_said_with_near_names),
		cmocka_unit_test(test_tracepoints_of_this_kernel_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
