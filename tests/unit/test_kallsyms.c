// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/kallsyms.h"

static const char table[] = "ffffffff81000100 t do_work\n"
			    "ffffffff81000000 T _stext\n"
			    "ffffffff81000000 T startup\n"
			    "ffffffff81000000 t __startup\n"
			    "ffffffff81000180 D some_data\n"
			    "ffffffff81000200 W weak_function\n"
			    "0000000000000000 T percpu_thing\n"
			    "a line that is none\n"
			    "ffffffffc0200000 t ext4_sync_file\t[ext4]\n"
			    "ffffffffc0300000 t bpf_prog_1234_why\t[bpf]";

static struct kallsyms *parse(const char *text)
{
	struct error err = ERROR_INIT;
	struct kallsyms *kallsyms;

	assert_int_equal(kallsyms_parse(&kallsyms, text, strlen(text), &err), 0);
	return kallsyms;
}

static void test_address_gets_the_function_before_it_and_the_offset(void **state)
{
	static const struct {
		uint64_t address;
		const char *name, *module;
		uint64_t offset;
	} cases[] = {
		{0xffffffff81000000, "startup", "", 0},
		{0xffffffff810000ff, "startup", "", 0xff},
		{0xffffffff81000100, "do_work", "", 0},
		{0xffffffff81000190, "do_work", "", 0x90}, /* data does not count */
		{0xffffffff81000210, "weak_function", "", 0x10},
		{0xffffffffc0200007, "ext4_sync_file", "ext4", 7},
		{0xffffffffc0300001, "bpf_prog_1234_why", "bpf", 1},
	};
	struct kallsyms *kallsyms = parse(table);
	struct kernel_symbol symbol;

	(void)state;
	assert_int_equal(kallsyms_count(kallsyms), 5);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(kallsyms_find(kallsyms, cases[i].address, &symbol));
		assert_string_equal(symbol.name, cases[i].name);
		assert_string_equal(symbol.module, cases[i].module);
		assert_int_equal(symbol.offset, cases[i].offset);
	}
	kallsyms_free(kallsyms);
}

static void test_address_outside_of_all_functions_has_no_name(void **state)
{
	static const uint64_t outside[] = {0, 1, 0xffffffff80ffffff, 0xffffffffb0000000,
					   UINT64_MAX};
	struct kallsyms *kallsyms = parse(table);
	struct kernel_symbol symbol;

	(void)state;
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		assert_false(kallsyms_find(kallsyms, outside[i], &symbol));
	kallsyms_free(kallsyms);
	assert_false(kallsyms_find(NULL, 1, &symbol));
	assert_int_equal(kallsyms_count(NULL), 0);
}

static void test_table_of_zeros_is_refused_with_what_to_do(void **state)
{
	static const char zeros[] = "0000000000000000 T _stext\n0000000000000000 t do_work\n";
	struct error err = ERROR_INIT;
	struct kallsyms *kallsyms;

	(void)state;
	assert_int_equal(kallsyms_parse(&kallsyms, zeros, strlen(zeros), &err), -EPERM);
	assert_null(kallsyms);
	assert_non_null(strstr(err.message, "kptr_restrict"));
}

static void test_text_that_is_no_table_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"\n\n",
		"ffffffff81000000",
		"ffffffff81000000 T ",
		"xyz T name\n",
		"ffffffff810000001 T too_long\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = ERROR_INIT;
		struct kallsyms *kallsyms;

		assert_int_equal(kallsyms_parse(&kallsyms, bad[i], strlen(bad[i]), &err), -ENODATA);
		assert_null(kallsyms);
		assert_string_not_equal(err.message, "");
	}
}

static void test_table_cut_anywhere_is_read_as_far_as_it_goes(void **state)
{
	(void)state;
	for (size_t size = 0; size < sizeof(table); size++) {
		struct error err = ERROR_INIT;
		struct kallsyms *kallsyms;
		struct kernel_symbol symbol;

		if (kallsyms_parse(&kallsyms, table, size, &err)) {
			assert_in_range(size, 0, strlen("ffffffff81000100 t "));
			continue;
		}
		assert_true(kallsyms_find(kallsyms, 0xffffffff81000101, &symbol));
		assert_memory_equal(symbol.name, "do_work", strlen(symbol.name));
		kallsyms_free(kallsyms);
	}
}

static void test_file_that_is_missing_is_named_in_the_error(void **state)
{
	struct error err = ERROR_INIT;
	struct kallsyms *kallsyms;

	(void)state;
	assert_int_equal(kallsyms_read(&kallsyms, "/nonexistent/kallsyms", &err), -ENOENT);
	assert_null(kallsyms);
	assert_non_null(strstr(err.message, "/nonexistent/kallsyms"));
}

static void test_running_kernel_has_its_functions_for_root(void **state)
{
	struct error err = ERROR_INIT;
	struct kallsyms *kallsyms;
	int result = kallsyms_read(&kallsyms, NULL, &err);

	(void)state;
	if (result) {
		assert_null(kallsyms);
		assert_string_not_equal(err.message, "");
		skip();
	}
	assert_true(kallsyms_count(kallsyms) > 10000);
	kallsyms_free(kallsyms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address_gets_the_function_before_it_and_the_offset),
		cmocka_unit_test(test_address_outside_of_all_functions_has_no_name),
		cmocka_unit_test(test_table_of_zeros_is_refused_with_what_to_do),
		cmocka_unit_test(test_text_that_is_no_table_is_refused),
		cmocka_unit_test(test_table_cut_anywhere_is_read_as_far_as_it_goes),
		cmocka_unit_test(test_file_that_is_missing_is_named_in_the_error),
		cmocka_unit_test(test_running_kernel_has_its_functions_for_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
