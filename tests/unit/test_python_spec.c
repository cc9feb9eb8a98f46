// SPDX-License-Identifier: Apache-2.0
/* Descriptions of functions of Python, and which functions they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probe/spec/python_spec.h"

static void test_a_description_has_a_file_and_a_function(void **state)
{
	struct error err = ERROR_INIT;
	struct python_spec spec;

	(void)state;
	assert_true(python_spec_is("python:a.py:f"));
	assert_true(python_spec_is("  python:a.py:f"));
	assert_false(python_spec_is("uprobe:python:f"));
	assert_int_equal(python_spec_parse(&spec, " python: app/a b.py : T.step ", &err), 0);
	assert_string_equal(spec.file, "app/a b.py");
	assert_string_equal(spec.function, "T.step");
	assert_string_equal(python_spec_name(&spec), "step");
	assert_int_equal(python_spec_parse(&spec, "python:C:/a.py:f", &err), 0);
	assert_string_equal(spec.file, "C:/a.py");
}

static void test_a_malformed_description_is_rejected(void **state)
{
	static const char *const samples[] = {
		"python:",        "python:a.py",     "python::f",
		"python:a.py:",   "python: : ",      "python:a.py:f()",
		"python:a.py:f*", "python:a.py:f g", "python:::"};
	char longest[PYTHON_FILE_MAX + PYTHON_NAME_MAX];
	struct python_spec spec;

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct error err = ERROR_INIT;

		assert_int_equal(python_spec_parse(&spec, samples[i], &err), -EINVAL);
		assert_non_null(strstr(err.message, samples[i]));
	}
	snprintf(longest, sizeof(longest), "python:%0*d:f", PYTHON_FILE_MAX, 0);
	struct error err = ERROR_INIT;

	assert_int_equal(python_spec_parse(&spec, longest, &err), -EINVAL);
}

static bool matches(const char *text, const char *file, const char *function, bool qualified)
{
	struct error err = ERROR_INIT;
	struct python_frame frame = {0};
	struct python_spec spec;

	assert_int_equal(python_spec_parse(&spec, text, &err), 0);
	snprintf(frame.file, sizeof(frame.file), "%s", file);
	snprintf(frame.function, sizeof(frame.function), "%s", function);
	return python_spec_matches(&spec, &frame, qualified);
}

static void test_a_description_means_whole_names(void **state)
{
	(void)state;
	assert_true(matches("python:a.py:f", "/x/a.py", "f", true));
	assert_true(matches("python:a.py:f", "a.py", "f", false));
	assert_true(matches("python:./a.py:f", "/x/a.py", "f", true));
	assert_true(matches("python:/x/a.py:f", "/x/a.py", "f", true));
	assert_true(matches("python:x/a.py:f", "/x/a.py", "T.f", true));
	assert_true(matches("python:a.py:T.f", "a.py", "outer.<locals>.T.f", true));
	assert_false(matches("python:a.py:f", "/x/ba.py", "f", true));
	assert_false(matches("python:x/a.py:f", "/yx/a.py", "f", true));
	assert_false(matches("python:a.py:f", "a.py", "g.if", true));
	assert_false(matches("python:a.py:f", "a.py", "f.<locals>.g", true));
	assert_false(matches("python:a.py:T.f", "a.py", "ST.f", true));
	/* A code object without a qualified name does not say to which class its "f" belongs. */
	assert_false(matches("python:a.py:T.f", "a.py", "f", false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_description_has_a_file_and_a_function),
		cmocka_unit_test(test_a_malformed_description_is_rejected),
		cmocka_unit_test(test_a_description_means_whole_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
