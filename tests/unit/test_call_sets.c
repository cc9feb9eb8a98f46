// SPDX-License-Identifier: Apache-2.0
/* Sets of descriptions: those that ship with waffle, and files. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "probe/spec/call_set.h"
#include "probe/spec/builtin_specs_internal.h"
#include "target/elf/object_read.h"

static struct call_set *set_of(const char *file)
{
	struct error err = ERROR_INIT;
	struct call_set *set;

	assert_int_equal(call_set_open(&set, &err), 0);
	if (call_set_add_file(set, file, &err))
		fail_msg("%s", err.message);
	return set;
}

static void write_file(char path[32], const char *text)
{
	int fd;

	strcpy(path, "/tmp/waffle-probes-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void test_every_set_and_table_that_ships_is_understood(void **state)
{
	struct error err = ERROR_INIT;
	struct call_set *set;

	assert_int_equal(call_set_open(&set, &err), 0);
	for (unsigned i = 0; i < CALL_READY_SETS; i++) {
		size_t before = set->entries.len;

		if (call_set_add_file(set, call_ready_sets[i].name, &err))
			fail_msg("%s", err.message);
		assert_true(set->entries.len > before);
	}
	for (unsigned i = 0; i < CALL_TABLE_COUNT; i++)
		if (call_set_add_table(set, (enum call_table)i, &err))
			fail_msg("%s", err.message);
	call_set_free(set);
	(void)state;
}

static void test_unknown_set_is_said_with_those_that_there_are(void **state)
{
	struct error err = ERROR_INIT;
	struct call_set *set;

	assert_int_equal(call_set_open(&set, &err), 0);
	assert_int_equal(call_set_add_file(set, "pthreads", &err), -ENOENT);
	assert_string_equal(
		err.message,
		"pthreads: no such set of probes: expected one of malloc mpi openssl "
		"postgresql pthread python roctx, or the path of a file, such as ./pthreads");
	call_set_free(set);
	(void)state;
}

static void test_file_has_a_description_a_line_that_indented_lines_go_on_with(void **state)
{
	char path[32];
	struct call_set *set;

	write_file(path, "# mine\n"
			 "\n"
			 "enum color red green # of lamps\n"
			 "uprobe:exe:switch_on(int lamp,  # which one\n"
			 "\tenum:color color)\n"
			 "\tcategory lamps\n"
			 "uprobe:exe:switch_off as event \"off # now\"\r\n");
	set = set_of(path);
	assert_int_equal(set->entries.len, 2);
	assert_int_equal(set->entries.data[0]->spec.sides[0].value_count, 2);
	assert_string_equal(set->entries.data[0]->spec.category, "lamps");
	assert_string_equal(set->entries.data[1]->spec.name, "off # now");
	call_set_free(set);
	unlink(path);
	(void)state;
}

static void test_fault_in_a_file_is_said_with_its_line(void **state)
{
	struct error err = ERROR_INIT;
	char path[32], expected[300];
	struct call_set *set;

	write_file(path, "uprobe:exe:a\n\n# b\nuprobe:exe:b(sizet x)\n");
	assert_int_equal(call_set_open(&set, &err), 0);
	assert_int_equal(call_set_add_file(set, path, &err), -EINVAL);
	snprintf(expected, sizeof(expected),
		 "%s:4: unknown type; did you mean size_t, ssize_t; a pointer to anything is "
		 "'ptr', a "
		 "struct by "
		 "value "
		 "'blob:SIZE'\n  uprobe:exe:b(sizet x)\n               ^~~~~",
		 path);
	assert_string_equal(err.message, expected);
	call_set_free(set);
	unlink(path);
	(void)state;
}

static void test_only_files_that_are_described_are_wanted(void **state)
{
	struct error err = ERROR_INIT;
	struct call_set *set;

	assert_int_equal(call_set_open(&set, &err), 0);
	assert_int_equal(call_set_add(set, "uprobe:libcudart:cudaMalloc(out ptr p, size_t n)",
				      "--probe", &err),
			 0);
	assert_true(call_set_wants(set, "/usr/lib/libcudart.so"));
	assert_true(call_set_wants(set, "/x/libcudart.so.12"));
	assert_true(call_set_wants(set, "/x/libcudart-80664282.so.10.2"));
	assert_true(call_set_wants(set, "libcudart.so.12"));
	assert_false(call_set_wants(set, "libcudart_static.so"));
	assert_false(call_set_wants(set, "/x/libcudart_static.so"));
	assert_false(call_set_wants(set, "/libcudart/libc.so.6"));
	assert_false(call_set_wants(set, "/usr/bin/python3"));
	assert_int_equal(call_set_add(set, "uprobe:/opt/lib*/libx.so:f", "--probe", &err), 0);
	assert_true(call_set_wants(set, "/opt/lib64/libx.so"));
	assert_false(call_set_wants(set, "/usr/lib/libx.so"));
	assert_int_equal(call_set_add(set, "uprobe:exe:main", "--probe", &err), 0);
	assert_true(call_set_wants(set, "/usr/bin/python3"));
	call_set_free(set);
	(void)state;
}

static void test_quoted_names_of_files_may_have_anything_in_them_and_are_no_patterns(void **state)
{
	struct error err = ERROR_INIT;
	const struct call_spec *spec;
	struct call_set *set;

	assert_int_equal(call_set_open(&set, &err), 0);
	assert_int_equal(call_set_add(set,
				      "uprobe:libq|\"/opt/my app, v1:2/(a|b)#*.so\":\"f(int, "
				      "x)\"|g*(int n) as event",
				      "--probe", &err),
			 0);
	assert_true(call_set_wants(set, "/opt/my app, v1:2/(a|b)#*.so"));
	assert_true(call_set_wants(set, "/x/libq.so.1"));
	assert_false(call_set_wants(set, "/opt/my app, v1:2/(a|b)#c.so"));
	assert_false(call_set_wants(set, "/opt/my.so"));
	spec = &set->entries.data[0]->spec;
	assert_int_equal(spec->libs.count, 2);
	assert_int_equal(spec->sides[0].names.count, 2);
	assert_string_equal(spec->sides[0].names.list[0].text, "f(int, x)");
	assert_null(spec->sides[0].names.list[0].glob);
	assert_non_null(spec->sides[0].names.list[1].glob);
	assert_int_equal(spec->sides[0].param_count, 1);
	assert_int_equal(call_set_add(set, "usdt:\"a b\":\"p:q\":x", "--probe", &err), 0);
	assert_string_equal(set->entries.data[1]->spec.provider.list[0].text, "p:q");
	assert_true(call_set_wants(set, "/lib/a b.so"));
	call_set_free(set);
	(void)state;
}

static void test_options_behind_what_is_returned_are_no_name_of_it(void **state)
{
	static const struct {
		const char *text;
		uint32_t flag;
	} options[] = {{"nounwind", WAFFLE_CALL_NOUNWIND},
		       {"outer", WAFFLE_CALL_OUTER},
		       {"stack", WAFFLE_CALL_STACK}};
	struct error err = ERROR_INIT;
	struct call_set *set;
	char text[64];

	assert_int_equal(call_set_open(&set, &err), 0);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "uprobe:libc:f -> int %s", options[i].text);
		assert_int_equal(call_set_add(set, text, "--probe", &err), 0);
		assert_null(set->entries.data[i]->spec.returned_name);
		assert_int_equal(set->entries.data[i]->spec.flags, options[i].flag);
	}
	call_set_free(set);
	(void)state;
}

static void test_descriptions_of_a_file_are_each_for_itself(void **state)
{
	char path[32];
	struct call_set *set;

	write_file(path, "uprobe:exe:switch_on(int lamp) as event\nuprobe:exe:switch_on\n");
	set = set_of(path);
	assert_int_equal(set->entries.len, 2);
	assert_int_not_equal(set->entries.data[0]->spec.group, set->entries.data[1]->spec.group);
	call_set_free(set);
	set = set_of("malloc");
	assert_int_equal(set->entries.data[0]->spec.group, set->entries.data[1]->spec.group);
	call_set_free(set);
	unlink(path);
	(void)state;
}

static void keep_line(const char *line, bool missing, void *arg)
{
	assert_false(missing);
	snprintf(arg, 300, "%s", line);
}

static void test_interpreter_that_was_built_without_probes_is_said_to_be(void **state)
{
	struct call_set *set = set_of("python");
	struct error err = ERROR_INIT;
	struct object *object;
	char said[300] = "";
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	call_set_unfound(set, CALL_SCOPE_TRACED, keep_line, said);
	assert_string_equal(said, "python: nothing that this set describes is in a traced process");
	assert_int_equal(object_read(&object, fd, "/opt/bin/python3.12", &err), 0);
	assert_int_equal(call_set_find(set, object, fd, &err), 0);
	call_set_unfound(set, CALL_SCOPE_TRACED, keep_line, said);
	assert_string_equal(said,
			    "python: /opt/bin/python3.12 has no USDT probes of 'python': it was "
			    "built without them");
	object_free(object);
	call_set_free(set);
	close(fd);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_set_and_table_that_ships_is_understood),
		cmocka_unit_test(test_unknown_set_is_said_with_those_that_there_are),
		cmocka_unit_test(test_file_has_a_description_a_line_that_indented_lines_go_on_with),
		cmocka_unit_test(test_fault_in_a_file_is_said_with_its_line),
		cmocka_unit_test(test_only_files_that_are_described_are_wanted),
		cmocka_unit_test(
			test_quoted_names_of_files_may_have_anything_in_them_and_are_no_patterns),
		cmocka_unit_test(test_options_behind_what_is_returned_are_no_name_of_it),
		cmocka_unit_test(test_descriptions_of_a_file_are_each_for_itself),
		cmocka_unit_test(test_interpreter_that_was_built_without_probes_is_said_to_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
