// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cmd/command_internal.h"
#include "cmd/help_internal.h"

struct sample_options {
	uint64_t duration_ns;
	const char *output;
	bool json, quiet, fast, follow;
	const char *label;
	unsigned colour;
	uint64_t pid, buffer, limit;
	option_list words;
	option_numbers ranks;
};

static const char *colour(size_t index, const char **help)
{
	static const struct {
		const char *name, *help;
	} colours[] = {{"red", "As roses."}, {"green", "As grass."}, {"blue", "As the sky."}};

	if (index >= sizeof(colours) / sizeof(colours[0]))
		return NULL;
	*help = colours[index].help;
	return colours[index].name;
}

static const struct option_row rows[] = {
	{"duration", 'd', "TIME", "Stop after this time.", .type = OPTION_TIME, .min = 1,
	 .at = offsetof(struct sample_options, duration_ns)},
	{"output", 'o', "FILE", "Write there.", .type = OPTION_PATH,
	 .at = offsetof(struct sample_options, output)},
	{"json", 'j', NULL, "Print JSON.", .at = offsetof(struct sample_options, json)},
	{"quiet", 'q', NULL, "Print less.", .at = offsetof(struct sample_options, quiet)},
	{"fast", 'f', NULL, "Hurry.", .at = offsetof(struct sample_options, fast)},
	{"label", 0, "TEXT", "Say it.", .at = offsetof(struct sample_options, label)},
	{"no-follow", 0, NULL, "Stay.", .type = OPTION_UNSET,
	 .at = offsetof(struct sample_options, follow)},
	{"colour", 0, "COLOUR", "Paint it.", .type = OPTION_CHOICE, .choice = colour,
	 .at = offsetof(struct sample_options, colour)},
	{"pid", 0, "PID", "Look there.", .type = OPTION_NUMBER, .min = 1, .max = 4194304,
	 .at = offsetof(struct sample_options, pid)},
	{"buffer", 0, "SIZE", "Take that much.", .type = OPTION_SIZE, .min = 4096, .max = 1 << 30,
	 .at = offsetof(struct sample_options, buffer)},
	{"limit", 0, "SIZE", "End there.", .type = OPTION_SIZE, .min = 4 << 20,
	 .at = offsetof(struct sample_options, limit)},
	{"word", 0, "WORD", "Read it.", .type = OPTION_LIST,
	 .at = offsetof(struct sample_options, words)},
	{"words", 0, "FILE", "Read them.", .type = OPTION_LIST,
	 .at = offsetof(struct sample_options, words)},
	{"rank", 'r', "N", "Count it.", .type = OPTION_NUMBERS, .min = 1, .max = 9,
	 .at = offsetof(struct sample_options, ranks)},
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
	struct outcome got = PARSE(false, "--label", "a", "--label=");

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_string_equal(got.options.label, "");
	assert_refused(PARSE(false, "--output="), "--output: the name is empty");
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

static void test_values_are_checked_against_their_range(void **state)
{
	struct outcome got = PARSE(false, "--pid", "4711", "--buffer=1MiB", "--limit", "4MiB");

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_int_equal(got.options.pid, 4711);
	assert_int_equal(got.options.buffer, 1048576);
	assert_int_equal(got.options.limit, 4194304);
	assert_refused(PARSE(false, "--pid", "0"), "--pid: '0' is not a number from 1 to 4194304");
	assert_refused(PARSE(false, "--pid", "4194305"),
		       "--pid: '4194305' is not a number from 1 to 4194304");
	assert_refused(PARSE(false, "--buffer", "64 MiB"),
		       "--buffer: '64 MiB' is not a size, write 64MiB, 512k, 4096");
	assert_refused(PARSE(false, "--buffer", "4095"),
		       "--buffer: '4095' is not between 4KiB and 1GiB");
	assert_refused(PARSE(false, "--buffer", "2G"),
		       "--buffer: '2G' is not between 4KiB and 1GiB");
	assert_refused(PARSE(false, "--limit", "4095k"), "--limit: must be at least 4MiB");
	assert_refused(PARSE(false, "--duration", "0"), "--duration: must be longer than 0");
	got = PARSE(false, "--pid", "7", "--pid", "0");
	assert_int_equal(got.options.pid, 7); /* a refused value changes nothing */
}

static void test_a_flag_may_switch_something_off(void **state)
{
	struct outcome got = {.options.follow = true};

	(void)state;
	got.argv[got.argc++] = (char *)(uintptr_t) "--no-follow";
	assert_int_equal(options_parse(&sample, got.argc, got.argv, false, &got.options, &got.first,
				       &got.err),
			 0);
	assert_false(got.options.follow);
}

static void test_values_of_a_choice_are_in_the_message(void **state)
{
	struct outcome got = PARSE(false, "--colour", "green");

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_int_equal(got.options.colour, 1);
	assert_refused(PARSE(false, "--colour=grey"),
		       "--colour: unknown colour 'grey'; write red, green or blue");
}

static void test_options_of_one_list_keep_their_order(void **state)
{
	struct outcome got =
		PARSE(false, "--word", "a", "--words=b", "-r1", "--word=", "--rank", "9");
	option_list words = got.options.words;
	option_numbers ranks = got.options.ranks;

	(void)state;
	assert_int_equal(got.ret, 0);
	assert_int_equal(words.len, 3);
	assert_string_equal(words.data[0].text, "a");
	assert_string_equal(words.data[1].text, "b");
	assert_string_equal(words.data[1].row->name, "words");
	assert_string_equal(words.data[2].text, "");
	assert_string_equal(words.data[2].row->name, "word");
	assert_int_equal(ranks.len, 2);
	assert_int_equal(ranks.data[0], 1);
	assert_int_equal(ranks.data[1], 9);
	vec_free(&words);
	vec_free(&ranks);
	assert_refused(PARSE(false, "--rank", "10"), "--rank: '10' is not a number from 1 to 9");
}

/* Returns what a help function prints. The caller frees it. */
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
	assert_non_null(strstr(markdown, "| Paint it. red: As roses. green: As grass. blue: As the "
					 "sky. |\n"));
	assert_non_null(strstr(man, "Paint it. red: As roses. green: As grass."));
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
		cmocka_unit_test(test_values_are_checked_against_their_range),
		cmocka_unit_test(test_a_flag_may_switch_something_off),
		cmocka_unit_test(test_values_of_a_choice_are_in_the_message),
		cmocka_unit_test(test_options_of_one_list_keep_their_order),
		cmocka_unit_test(test_every_format_of_help_has_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
