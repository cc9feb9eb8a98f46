// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cmd/command.h"
#include "cmd/help.h"

struct sample_options {
	uint64_t duration_ns;
	const char *output;
	unsigned json, quiet;
	bool fast;
	const char *label;
};

static int set_duration(void *options, const char *value, struct error *err)
{
	return option_duration("duration", value, &((struct sample_options *)options)->duration_ns,
			       err);
}

static int set_output(void *options, const char *value, struct error *err)
{
	(void)err;
	((struct sample_options *)options)->output = value;
	return 0;
}

static int set_json(void *options, const char *value, struct error *err)
{
	(void)value, (void)err;
	((struct sample_options *)options)->json++;
	return 0;
}

static int set_quiet(void *options, const char *value, struct error *err)
{
	(void)value, (void)err;
	((struct sample_options *)options)->quiet++;
	return 0;
}

static const struct option_row rows[] = {
	{"duration", 'd', "TIME", "Stop after this time.", .set = set_duration},
	{"output", 'o', "FILE", "Write there.", .set = set_output},
	{"json", 'j', NULL, "Print JSON.", .set = set_json},
	{"quiet", 'q', NULL, "Print less.", .set = set_quiet},
	{"fast", 'f', NULL, "Hurry.", .at = offsetof(struct sample_options, fast)},
	{"label", 0, "TEXT", "Say it.", .at = offsetof(struct sample_options, label)},
};

static const struct command sample = {
	.name = "sample",
	.arguments = "FILE…",
	.summary = "Does a thing",
	.details = "A paragraph with a back\\slash.\n\n.A paragraph that begins with a dot.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
};

#define ARGS_MAX 12

/* A parse of the words up to NULL, and what came out. */
struct outcome {
	struct sample_options options;
	struct error err;
	char *argv[ARGS_MAX];
	int argc, first, ret;
};

static struct outcome parse_words(bool stop_at_first, const char *const *words)
{
	struct outcome outcome = {0};

	for (; words[outcome.argc]; outcome.argc++)
		outcome.argv[outcome.argc] = (char *)(uintptr_t)words[outcome.argc];
	outcome.ret = options_parse(&sample, outcome.argc, outcome.argv, stop_at_first,
				    &outcome.options, &outcome.first, &outcome.err);
	return outcome;
}

#define PARSE(stop, ...) parse_words(stop, (const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(struct outcome got, const char *message)
{
	assert_int_equal(got.ret, -EINVAL);
	assert_string_equal(got.err.message, message);
}

static void test_options_are_taken_wherever_they_stand(void **state)
{
	struct outcome got =
		PARSE(false, "one", "--duration=2s", "two", "-o", "f", "--json", "three");

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_int_equal(got.options.duration_ns, 2000000000);
	assert_string_equal(got.options.output, "f");
	assert_int_equal(got.options.json, 1);
	assert_int_equal(got.argc - got.first, 3);
	assert_string_equal(got.argv[got.first], "one");
	assert_string_equal(got.argv[got.first + 1], "two");
	assert_string_equal(got.argv[got.first + 2], "three");
}

static void test_letters_join_and_take_glued_values(void **state)
{
	struct outcome got = PARSE(false, "-jqofile", "-d1s");

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_int_equal(got.options.json, 1);
	assert_int_equal(got.options.quiet, 1);
	assert_string_equal(got.options.output, "file");
	assert_int_equal(got.options.duration_ns, 1000000000);
	assert_int_equal(got.first, got.argc);
}

static void test_flags_and_texts_are_stored_where_their_rows_say(void **state)
{
	struct outcome got = PARSE(false, "--label", "a b", "x");

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_false(got.options.fast);
	assert_string_equal(got.options.label, "a b");
	got = PARSE(false, "-jf", "--label=");
	assert_true(got.options.fast);
	assert_int_equal(got.options.json, 1);
	assert_string_equal(got.options.label, "");
	assert_refused(PARSE(false, "--fast=1"), "--fast takes no value, got '1'");
	assert_refused(PARSE(false, "--label"), "--label needs a value: --label TEXT");
}

static void test_two_dashes_end_the_options(void **state)
{
	struct outcome got = PARSE(false, "-j", "--", "--json", "-o", "--", "-");

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_int_equal(got.options.json, 1);
	assert_int_equal(got.argc - got.first, 4);
	assert_string_equal(got.argv[got.first], "--json");
	assert_string_equal(got.argv[got.first + 2], "--");
	assert_string_equal(got.argv[got.first + 3], "-");
}

static void test_a_traced_command_keeps_its_own_options(void **state)
{
	struct outcome got = PARSE(true, "-j", "./train", "-o", "model", "--", "--json");

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_int_equal(got.options.json, 1);
	assert_null(got.options.output);
	assert_int_equal(got.argc - got.first, 5);
	assert_string_equal(got.argv[got.first], "./train");
	assert_string_equal(got.argv[got.first + 3], "--");
	got = PARSE(true, "--", "./train", "--", "-j");
	assert_int_equal(got.argc - got.first, 3);
	assert_int_equal(got.options.json, 0);
}

static void test_an_empty_value_is_a_value_and_the_last_one_counts(void **state)
{
	struct outcome got = PARSE(false, "--output", "a", "--output=");

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_string_equal(got.options.output, "");
}

static void test_wrong_use_is_refused_with_one_line(void **state)
{
	(void)state;
	assert_refused(PARSE(false, "--duration", "10x"),
		       "--duration: '10x' is not a time, write 10s, 500ms, 1m30s");
	assert_refused(PARSE(false, "--duration"), "--duration needs a value: --duration TIME");
	assert_refused(PARSE(false, "-o"), "--output needs a value: --output FILE");
	assert_refused(PARSE(false, "--json=yes"), "--json takes no value, got 'yes'");
	assert_refused(PARSE(false, "--durations=1s"),
		       "--durations: no such option; did you mean --duration?");
	assert_refused(PARSE(false, "--frequency", "9"),
		       "--frequency: no such option; see waffle-bpf help sample");
	assert_refused(PARSE(false, "-jx"), "-x: no such option; see waffle-bpf help sample");
}

static void test_numbers_and_sizes_are_checked_against_their_range(void **state)
{
	struct error err = ERROR_INIT;
	uint64_t value = 9;

	(void)state;
	assert_int_equal(option_number("pid", "4711", 1, 4194304, &value, &err), 0);
	assert_int_equal(value, 4711);
	assert_int_equal(option_number("pid", "0", 1, 4194304, &value, &err), -EINVAL);
	assert_string_equal(err.message, "--pid: '0' is not a number from 1 to 4194304");
	err = (struct error)ERROR_INIT;
	assert_int_equal(option_bytes("buffer", "64 MiB", &value, &err), -EINVAL);
	assert_string_equal(err.message,
			    "--buffer: '64 MiB' is not a size, write 64MiB, 512k, 4096");
	assert_int_equal(value, 4711);
	assert_int_equal(option_bytes("buffer", "1MiB", &value, &err), 0);
	assert_int_equal(value, 1048576);
}

/* What a help function prints, to be freed. */
static char *printed(void (*print)(FILE *out, const struct command_table *table))
{
	static const struct command *const commands[] = {&sample};
	const struct command_table table = {commands, 1};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	print(out, &table);
	fclose(out);
	return text;
}

static void test_every_format_of_help_has_every_option(void **state)
{
	char *man = printed(help_man), *markdown = printed(help_markdown);
	char *overview = printed(help_overview);

	(void)state;
	assert_non_null(strstr(man, ".TP\n.B \\-d, \\-\\-duration TIME\nStop after this time.\n"));
	assert_non_null(strstr(man, ".TP\n.B \\-j, \\-\\-json\nPrint JSON.\n"));
	assert_non_null(strstr(man, "back\\eslash.\n.P\n\\&.A paragraph"));
	assert_null(strstr(man, "\n\n"));
	assert_non_null(strstr(markdown, "## sample\n"));
	assert_non_null(strstr(markdown, "| `-d, --duration TIME` | Stop after this time. |\n"));
	assert_non_null(strstr(markdown, "| `-q, --quiet` | Print less. |\n"));
	assert_non_null(strstr(overview, "  sample   Does a thing\n"));
	free(man);
	free(markdown);
	free(overview);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_are_taken_wherever_they_stand),
		cmocka_unit_test(test_letters_join_and_take_glued_values),
		cmocka_unit_test(test_flags_and_texts_are_stored_where_their_rows_say),
		cmocka_unit_test(test_two_dashes_end_the_options),
		cmocka_unit_test(test_a_traced_command_keeps_its_own_options),
		cmocka_unit_test(test_an_empty_value_is_a_value_and_the_last_one_counts),
		cmocka_unit_test(test_wrong_use_is_refused_with_one_line),
		cmocka_unit_test(test_numbers_and_sizes_are_checked_against_their_range),
		cmocka_unit_test(test_every_format_of_help_has_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
