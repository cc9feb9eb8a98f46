// SPDX-License-Identifier: Apache-2.0
/* The trees that expressions become. test_filter_fault.c has the messages for wrong ones. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "filter/filter.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct filter_expr *parse(const char *text)
{
	struct error err = ERROR_INIT;
	struct filter_expr *filter = NULL;

	if (filter_parse(&filter, "test", text, &err))
		fail_msg("%s", err.message);
	assert_string_equal(filter_source(filter), text);
	return filter;
}

static void print_literal(FILE *out, const struct filter_literal *literal)
{
	switch (literal->type) {
	case FILTER_LITERAL_INTEGER:
		fprintf(out, "%s%llu", literal->negative ? "-" : "",
			(unsigned long long)literal->magnitude);
		break;
	case FILTER_LITERAL_FLOAT:
		fprintf(out, "f%.17g", literal->f64);
		break;
	case FILTER_LITERAL_TEXT:
		assert_int_equal(strlen(literal->text), literal->text_len);
		fprintf(out, "'%s'", literal->text);
		break;
	case FILTER_LITERAL_BOOL:
		fprintf(out, "%s", literal->magnitude ? "true" : "false");
		break;
	case FILTER_LITERAL_KIND:
		fprintf(out, "%s", filter_kinds[literal->magnitude]);
		break;
	}
}

static void print_predicate(FILE *out, const struct filter_expr *filter,
			    const struct filter_predicate *predicate)
{
	const struct filter_literal *literals = &filter->literals.data[predicate->literal];
	bool list = predicate->op == FILTER_IN;

	fprintf(out, "%s", filter_fields[predicate->field].name);
	if (predicate->key)
		fprintf(out, "[%s]", predicate->key);
	fprintf(out, " %s ", filter_ops[predicate->op]);
	for (uint32_t i = 0; i < predicate->count; i++) {
		fputs(!list ? "" : i ? ", " : "{", out);
		print_literal(out, &literals[i]);
	}
	fputs(list ? "}" : "", out);
}

/* Everything in parentheses. */
static void print_node(FILE *out, const struct filter_expr *filter, uint32_t index)
{
	const struct filter_node *node = &filter->nodes.data[index];

	switch (node->type) {
	case FILTER_TRUE:
	case FILTER_FALSE:
		fputs(node->type == FILTER_TRUE ? "T" : "F", out);
		break;
	case FILTER_AND:
	case FILTER_OR:
		assert_true(node->left < index && node->right < index);
		fputc('(', out);
		print_node(out, filter, node->left);
		fputs(node->type == FILTER_AND ? " && " : " || ", out);
		print_node(out, filter, node->right);
		fputc(')', out);
		break;
	case FILTER_NOT:
		assert_true(node->left < index);
		fputc('!', out);
		print_node(out, filter, node->left);
		break;
	case FILTER_TEST:
		print_predicate(out, filter, &filter->predicates.data[node->predicate]);
		break;
	case FILTER_SAMPLE:
		fprintf(out, "sample %u/%u", node->keep, node->of);
		break;
	}
}

static void check_tree(const char *text, const char *expected)
{
	struct filter_expr *filter = parse(text);
	char *printed = NULL;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	assert_non_null(out);
	print_node(out, filter, filter->root);
	fclose(out);
	assert_string_equal(printed, expected);
	free(printed);
	filter_free(filter);
}

struct sample {
	const char *text, *expected;
};

static void check_trees(const struct sample *samples, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_tree(samples[i].text, samples[i].expected);
}

static void test_not_binds_before_and_before_or(void **state)
{
	static const struct sample samples[] = {
		{"cpu == 1 || cpu == 2 && cpu == 3", "(cpu == 1 || (cpu == 2 && cpu == 3))"},
		{"cpu == 1 && cpu == 2 || cpu == 3", "((cpu == 1 && cpu == 2) || cpu == 3)"},
		{"(cpu == 1 || cpu == 2) && cpu == 3", "((cpu == 1 || cpu == 2) && cpu == 3)"},
		{"!cpu == 1 && cpu == 2", "(!cpu == 1 && cpu == 2)"},
		{"!(cpu == 1 && cpu == 2)", "!(cpu == 1 && cpu == 2)"},
		{"!!true || false", "(!!T || F)"},
		{"cpu == 1 && cpu == 2 && cpu == 3", "((cpu == 1 && cpu == 2) && cpu == 3)"},
		{"cpu == 1 || cpu == 2 || cpu == 3", "((cpu == 1 || cpu == 2) || cpu == 3)"},
		{"((cpu==1))", "cpu == 1"},
		{"name ~ \"nccl*\" && kv.bytes > 1MiB && dur > 10ms && "
		 "!(comm == \"python\" || cpu in {0, 1})",
		 "(((name ~ 'nccl*' && kv[bytes] > 1048576) && dur > 10000000) && "
		 "!(comm == 'python' || cpu in {0, 1}))"},
	};

	(void)state;
	check_trees(samples, COUNT_OF(samples));
}

static void test_every_field_takes_its_literals(void **state)
{
	static const struct sample samples[] = {
		{"kind == span", "kind == span"},
		{"kind != \"counter\"", "kind != counter"},
		{"kind in {event, 'log', sched, cuda, nccl}",
		 "kind in {event, log, sched, cuda, nccl}"},
		{"name == \"a\"", "name == 'a'"},
		{"category != 'b'", "category != 'b'"},
		{"file ~ \"*.c\"", "file ~ '*.c'"},
		{"line >= 10", "line >= 10"},
		{"func !~ \"main\"", "func !~ 'main'"},
		{"lib in {\"a.so\", \"b.so\"}", "lib in {'a.so', 'b.so'}"},
		{"pid == 0x10", "pid == 16"},
		{"tid < 10k", "tid < 10000"},
		{"comm == \"\"", "comm == ''"},
		{"cpu <= 3", "cpu <= 3"},
		{"dur > 1.5ms", "dur > 1500000"},
		{"dur in {1us, 5}", "dur in {1000, 5}"},
		{"depth == 0", "depth == 0"},
		{"parent.name == \"p\"", "parent.name == 'p'"},
		{"kv.flag == true", "kv[flag] == true"},
		{"kv.x in {1, -2, 0.5, \"t\", false}", "kv[x] in {1, -2, f0.5, 't', false}"},
		{"kv.http.status == 500", "kv[http.status] == 500"},
		{"kv.\"any key\\\" text\" ~ 'x'", "kv[any key\" text] ~ 'x'"},
		{"kv.in == 1", "kv[in] == 1"},
		{"kv.5xx > 0", "kv[5xx] > 0"},
	};

	(void)state;
	check_trees(samples, COUNT_OF(samples));
}

static void test_literal_on_the_left_is_turned_round(void **state)
{
	static const struct sample samples[] = {
		{"5 == cpu", "cpu == 5"},
		{"5 != cpu", "cpu != 5"},
		{"5 < cpu", "cpu > 5"},
		{"5 <= cpu", "cpu >= 5"},
		{"5 > cpu", "cpu < 5"},
		{"5 >= cpu", "cpu <= 5"},
		{"\"x\" == name", "name == 'x'"},
		{"true == kv.a", "kv[a] == true"},
		{"'span' == kind", "kind == span"},
		{"1ms<dur&&dur<2ms", "(dur > 1000000 && dur < 2000000)"},
	};

	(void)state;
	check_trees(samples, COUNT_OF(samples));
}

static void test_number_has_its_exact_value(void **state)
{
	static const struct sample samples[] = {
		{"0", "0"},
		{"-0", "0"},
		{"007", "7"},
		{"0xfF", "255"},
		{"-0x10", "-16"},
		{"0xffffffffffffffff", "18446744073709551615"},
		{"18446744073709551615", "18446744073709551615"},
		{"-9223372036854775808", "-9223372036854775808"},
		{"1.0", "1"},
		{"2.50k", "2500"},
		{"0.1", "f0.10000000000000001"},
		{"-0.5", "f-0.5"},
		{"-1.5k", "-1500"},
		{"0.3", "f0.29999999999999999"},
		{"1.2345k", "f1234.5"},
		{"1ns", "1"},
		{"1us", "1000"},
		{"1\xc2\xb5s", "1000"},
		{"1\xce\xbcs", "1000"},
		{"1ms", "1000000"},
		{"1s", "1000000000"},
		{"2min", "120000000000"},
		{"1h", "3600000000000"},
		{"0.5h", "1800000000000"},
		{"1.5ns", "f1.5"},
		{"3B", "3"},
		{"1KiB", "1024"},
		{"1.5MiB", "1572864"},
		{"1GiB", "1073741824"},
		{"1TiB", "1099511627776"},
		{"0.1KiB", "f102.40000000000001"},
		{"1k", "1000"},
		{"1M", "1000000"},
		{"1G", "1000000000"},
		{"0.12345678901234567890123456789012", "f0.12345678901234568"},
		{"0.00000000000000000000000000000001", "f1.0000000000000001e-32"},
		{"18446744073709551614.5", "f1.8446744073709552e+19"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		char text[128], expected[128];

		snprintf(text, sizeof(text), "kv.x == %s", samples[i].text);
		snprintf(expected, sizeof(expected), "kv[x] == %s", samples[i].expected);
		check_tree(text, expected);
	}
}

static void test_text_has_the_bytes_of_its_escapes(void **state)
{
	static const struct sample samples[] = {
		{"name == \"a\\\"b\"", "name == 'a\"b'"},
		{"name == 'a\"b'", "name == 'a\"b'"},
		{"name == 'a\\'b'", "name == 'a'b'"},
		{"name == \"\\\\\\n\\t\\x41\\xff\"", "name == '\\\n\tA\xff'"},
		{"name == \"gr\xc3\xb6\xc3\x9f\x65\"", "name == 'gr\xc3\xb6\xc3\x9f\x65'"},
		{"name == \"a # b\"", "name == 'a # b'"},
		{"name ~ \"\\\\*\"", "name ~ '\\*'"},
	};
	struct filter_expr *filter = parse("name ~ \"\\\\*\" || name ~ '*'");

	(void)state;
	check_trees(samples, COUNT_OF(samples));
	/* A star that stands for itself, and one that does not. */
	assert_true(glob_matches(filter->literals.data[0].glob, "*", 1));
	assert_false(glob_matches(filter->literals.data[0].glob, "x", 1));
	assert_true(glob_matches(filter->literals.data[1].glob, "x", 1));
	filter_free(filter);
}

static void test_sample_is_a_part_of_a_whole(void **state)
{
	static const struct sample samples[] = {
		{"sample(1/100)", "sample 1/100"},
		{"sample( 3 / 4k )", "sample 3/4000"},
		{"sample(1%)", "sample 1/100"},
		{"sample(0.5%)", "sample 5/1000"},
		{"sample(33.330%)", "sample 3333/10000"},
		{"sample(1/1)", "sample 1/1"},
		{"!sample(1/4294967295)", "!sample 1/4294967295"},
		{"sample(1/2) || cpu == 0", "(sample 1/2 || cpu == 0)"},
	};

	(void)state;
	check_trees(samples, COUNT_OF(samples));
}

static void test_rate_is_beside_the_tree(void **state)
{
	static const struct {
		const char *text, *tree;
		uint32_t count;
		uint64_t unit_ns;
	} samples[] = {
		{"rate(1000/s)", "T", 1000, 1000000000},
		{"rate(5/ms)", "T", 5, 1000000},
		{"rate(1k/min)", "T", 1000, 60000000000},
		{"cpu == 1 && rate(16777215/s)", "(cpu == 1 && T)", 16777215, 1000000000},
		{"rate(1/s) && (cpu == 1 || cpu == 2)", "(T && (cpu == 1 || cpu == 2))", 1,
		 1000000000},
		{"cpu == 1", "cpu == 1", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		struct filter_expr *filter = parse(samples[i].text);

		check_tree(samples[i].text, samples[i].tree);
		assert_int_equal(filter->rate.count, samples[i].count);
		assert_int_equal(filter->rate.unit_ns, samples[i].unit_ns);
		filter_free(filter);
	}
}

static void test_predicate_knows_its_place_in_the_source(void **state)
{
	struct filter_expr *filter = parse("  ( cpu  in { 1 ,2 } ) && kv.\"a b\"==5 && 1 < dur ");
	static const char *const expected[] = {"cpu  in { 1 ,2 }", "kv.\"a b\"==5", "1 < dur"};

	(void)state;
	assert_int_equal(filter->predicates.len, COUNT_OF(expected));
	for (size_t i = 0; i < COUNT_OF(expected); i++) {
		const struct filter_predicate *predicate = &filter->predicates.data[i];

		assert_int_equal(predicate->to - predicate->from, strlen(expected[i]));
		assert_memory_equal(filter->source + predicate->from, expected[i],
				    strlen(expected[i]));
	}
	filter_free(filter);
}

static void test_blanks_line_breaks_and_comments_stand_anywhere(void **state)
{
	(void)state;
	check_tree("# all\r\n cpu # of it\n\t== # =\n 1\n\n&&dur>1#", "(cpu == 1 && dur > 1)");
}

/* "cpu == 1 && cpu == 1 …" */
static char *repeat(const char *operand, const char *joiner, unsigned count)
{
	char *text = calloc(count, strlen(operand) + strlen(joiner) + 1), *end = text;

	assert_non_null(text);
	while (count--)
		end += sprintf(end, "%s%s", operand, count ? joiner : "");
	return text;
}

static void test_expression_may_be_as_long_as_the_limits_say(void **state)
{
	char *many = repeat("cpu == 1", " && ", FILTER_PREDICATES_MAX);
	char *constants = repeat("true", "||", FILTER_OPERANDS_MAX);
	char *list = repeat("1", ",", FILTER_LITERALS_MAX), text[4096];
	char *deep = repeat("(", "", FILTER_DEPTH_MAX), *close = repeat(")", "", FILTER_DEPTH_MAX);
	struct filter_expr *filter = parse(many);

	(void)state;
	assert_int_equal(filter->predicates.len, FILTER_PREDICATES_MAX);
	assert_int_equal(filter->nodes.len, 2 * FILTER_PREDICATES_MAX - 1);
	filter_free(filter);
	filter_free(parse(constants));
	snprintf(text, sizeof(text), "cpu in {%s} || pid in {%s} || tid in {%s} || line in {%s}",
		 list, list, list, list);
	filter = parse(text);
	assert_int_equal(filter->literals.len, 4 * FILTER_LITERALS_MAX);
	filter_free(filter);
	snprintf(text, sizeof(text), "%scpu == 1%s && %scpu == 2%s", deep, close, deep, close);
	check_tree(text, "(cpu == 1 && cpu == 2)");
	memset(text, 'x', sizeof(text));
	memcpy(text, "name == \"", 9);
	memcpy(text + 9 + FILTER_TEXT_MAX, "\"", 2);
	filter = parse(text);
	assert_int_equal(filter->literals.data[0].text_len, FILTER_TEXT_MAX);
	filter_free(filter);
	free(many);
	free(constants);
	free(list);
	free(deep);
	free(close);
}

static void test_longest_source_is_taken(void **state)
{
	char *text = malloc(FILTER_SOURCE_MAX + 1);
	static const char tail[] = "cpu == 1";

	(void)state;
	assert_non_null(text);
	memset(text, ' ', FILTER_SOURCE_MAX);
	memcpy(text + FILTER_SOURCE_MAX - strlen(tail), tail, sizeof(tail));
	check_tree(text, "cpu == 1");
	free(text);
}

static void test_switches_are_wanted_unless_kind_rules_them_out(void **state)
{
	static const struct {
		const char *text;
		bool wanted;
	} samples[] = {
		{"kind == sched", true},
		{"kind == span", false},
		{"kind != sched", false},
		{"kind != span", true},
		{"kind in {span, sched}", true},
		{"kind in {span, event}", false},
		{"dur > 10ms", true},
		{"dur > 10ms && kind == span", false},
		{"dur > 10ms || kind == span", true},
		{"kind == sched && name == \"x\"", true},
		{"!(kind == span && dur > 1s)", true},
		{"!(kind == sched || dur > 1s)", false},
		{"!kind == sched", false},
		{"true", true},
		{"false", false},
		{"false && dur > 1", false},
		{"false || dur > 1", true},
		{"sample(1/1000)", true},
		{"rate(1/s)", true},
		{"rate(1/s) && kind == event", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		struct filter_expr *filter = parse(samples[i].text);

		if (filter_wants_sched(filter) != samples[i].wanted)
			fail_msg("%s", samples[i].text);
		filter_free(filter);
	}
}

static void test_fields_in_use_are_known(void **state)
{
	struct filter_expr *filter = parse("!(dur > 1 && kv.x == 1) || parent.name == \"dur\"");

	(void)state;
	for (unsigned field = 0; field < FILTER_FIELD_COUNT; field++)
		assert_int_equal(filter_uses(filter, field), field == FILTER_DUR ||
								     field == FILTER_KV ||
								     field == FILTER_PARENT_NAME);
	filter_free(filter);
}

static void test_expression_is_read_from_a_file(void **state)
{
	static const char text[] = "# slow ones\ndur > 10ms\n\t&& kind == span # only\n";
	char path[] = "/tmp/waffle-filter-XXXXXX", argument[128];
	struct error err = ERROR_INIT;
	struct filter_expr *filter;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(argument, sizeof(argument), "@%s", path);
	assert_int_equal(filter_open(&filter, "--filter", argument, &err), 0);
	assert_string_equal(filter_source(filter), text);
	assert_int_equal(filter->predicates.len, 2);
	filter_free(filter);
	/* The message of an error names the file and the line. */
	assert_int_equal(write(fd, "|", 1), 1);
	assert_true(filter_open(&filter, "--filter", argument, &err) < 0);
	assert_null(filter);
	snprintf(argument, sizeof(argument), "%s: line 4: '|' is no operator: write ||\n  |\n  ^",
		 path);
	assert_string_equal(err.message, argument);
	/* A NUL would hide what is behind it. */
	err = (struct error)ERROR_INIT;
	assert_int_equal(pwrite(fd, "", 1, 5), 1);
	snprintf(argument, sizeof(argument), "@%s", path);
	assert_true(filter_open(&filter, "--filter", argument, &err) < 0);
	assert_non_null(strstr(err.message, ": not a text file, it has a NUL byte"));
	close(fd);
	unlink(path);
}

/* "| `dur` | time | at the end | from …" */
static void test_page_of_the_language_has_the_table_of_fields(void **state)
{
	static const char *const types[] = {
		[FILTER_TYPE_KIND] = "kind",     [FILTER_TYPE_TEXT] = "text",
		[FILTER_TYPE_NUMBER] = "number", [FILTER_TYPE_TIME] = "time",
		[FILTER_TYPE_ANY] = "any",
	};
	FILE *file = fopen("docs/filter.md", "r");
	char page[32768], row[512];
	size_t len;

	(void)state;
	assert_non_null(file);
	len = fread(page, 1, sizeof(page) - 1, file);
	fclose(file);
	page[len] = '\0';
	assert_true(len < sizeof(page) - 1);
	for (unsigned i = 0; i < FILTER_FIELD_COUNT; i++) {
		const struct filter_field_info *field = &filter_fields[i];

		snprintf(row, sizeof(row), "\n| `%s%s` | %s | %s | %s |\n", field->name,
			 i == FILTER_KV ? ".KEY" : "", types[field->type],
			 field->at_site    ? "when armed"
			 : i == FILTER_DUR ? "at the end"
					   : "at the hit",
			 field->help);
		if (!strstr(page, row))
			fail_msg("docs/filter.md lacks%s", row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_binds_before_and_before_or),
		cmocka_unit_test(test_every_field_takes_its_literals),
		cmocka_unit_test(test_literal_on_the_left_is_turned_round),
		cmocka_unit_test(test_number_has_its_exact_value),
		cmocka_unit_test(test_text_has_the_bytes_of_its_escapes),
		cmocka_unit_test(test_sample_is_a_part_of_a_whole),
		cmocka_unit_test(test_rate_is_beside_the_tree),
		cmocka_unit_test(test_predicate_knows_its_place_in_the_source),
		cmocka_unit_test(test_blanks_line_breaks_and_comments_stand_anywhere),
		cmocka_unit_test(test_expression_may_be_as_long_as_the_limits_say),
		cmocka_unit_test(test_longest_source_is_taken),
		cmocka_unit_test(test_switches_are_wanted_unless_kind_rules_them_out),
		cmocka_unit_test(test_fields_in_use_are_known),
		cmocka_unit_test(test_expression_is_read_from_a_file),
		cmocka_unit_test(test_page_of_the_language_has_the_table_of_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
