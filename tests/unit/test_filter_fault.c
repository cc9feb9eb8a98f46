// SPDX-License-Identifier: Apache-2.0
/* Every message for a wrong expression, and the columns that it points at. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "filter/filter.h"
#include "util/utf8.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct sample {
	const char *text, *message, *caret;
} samples[] = {
	{"nmae ~ \"nccl*\" && dur > 10ms", "unknown field 'nmae'; did you mean name", "^~~~"},
	{"duration > 5", "unknown field 'duration'; did you mean dur", "^~~~~~~~"},
	{"xyzzyq == 1",
	 "unknown field 'xyzzyq': expected kind name category file line func lib pid tid comm cpu "
	 "dur depth parent.name kv.KEY",
	 "^~~~~~"},
	{"a.b == 1",
	 "unknown field 'a.b': expected kind name category file line func lib pid tid comm cpu dur "
	 "depth parent.name kv.KEY",
	 "^~~"},
	{"kv", "expected a key behind 'kv': kv.bytes or kv.\"any text\"", "^~"},
	{"kv. == 1", "expected a key behind 'kv.': kv.bytes or kv.\"any text\"", "^~~"},
	{"kv..x == 1", "expected a key behind 'kv.': kv.bytes or kv.\"any text\"", "^~~~~"},
	{"kv.\"\" == 1", "an empty key: expected its name between the quotes", "   ^~"},
	{"kv.a-b == 1",
	 "expected a letter, digit, _ or . in a key; put others in quotes: kv.\"any text\"",
	 "    ^"},
	{"span", "'span' is a kind, not a field: expected kind == span", "^~~~"},
	{"foo(1)", "unknown function 'foo': expected sample(1/100) or rate(1000/s)", "^~~"},
	{"sample", "expected '(' behind 'sample': sample(1/100), rate(1000/s)", "^~~~~~"},
	{"rate > 5", "expected '(' behind 'rate': sample(1/100), rate(1000/s)", "^~~~"},
	{"comm == python", "expected a text in quotes, found 'python': write \"python\"",
	 "        ^~~~~~"},
	{"comm ~ nccl* && dur > 1", "expected a text in quotes, found 'nccl*': write \"nccl*\"",
	 "       ^~~~~"},
	{"kv.x == worker-0",
	 "expected a number, a text in quotes, true or false, found 'worker-0': write \"worker-0\"",
	 "        ^~~~~~~~"},
	{"cpu == all", "expected a whole number, such as 42, to compare with cpu, found 'all'",
	 "       ^~~"},
	{"name == comm",
	 "a field is compared with a literal, not with a field: expected a text in quotes",
	 "        ^~~~"},
	{"name == 5", "expected a text in quotes, to compare with name, found '5'", "        ^"},
	{"name == true", "expected a text in quotes, to compare with name, found 'true'",
	 "        ^~~~"},
	{"name > \"a\"", "'>' can't compare name, which is a text: expected == != ~ !~ in",
	 "     ^"},
	{"kind ~ \"s*\"", "'~' can't compare kind, which is one of a few words: expected == != in",
	 "     ^"},
	{"kind < span", "'<' can't compare kind, which is one of a few words: expected == != in",
	 "     ^"},
	{"kind == spn", "unknown kind 'spn'; did you mean span", "        ^~~"},
	{"kind == log_info", "unknown kind 'log_info'; did you mean log", "        ^~~~~~~~"},
	{"kind == \"zzz\"", "unknown kind 'zzz': expected span event counter log sched cuda nccl",
	 "        ^~~~~"},
	{"kind == 5", "expected a kind (span event counter log sched cuda nccl), found '5'",
	 "        ^"},
	{"kv.x > \"a\"", "expected a number behind '>', such as 10 or 1MiB, found \"a\"",
	 "       ^~~"},
	{"kv.x > true", "expected a number behind '>', such as 10 or 1MiB, found 'true'",
	 "       ^~~~"},
	{"kv.x ~ 5", "expected a pattern in quotes, such as \"nccl*\", behind '~', found '5'",
	 "       ^"},
	{"dur ~ \"1*\"", "'~' can't compare dur, which is a time: expected == != < <= > >= in",
	 "    ^"},
	{"name = \"x\"", "'=' is no operator: write ==", "     ^"},
	{"name === \"x\"", "'===' is no operator: write ==", "     ^~~"},
	{"name =~ \"x\"", "'=~' is no operator: write ~", "     ^~"},
	{"dur => 5", "'=>' is no operator: write >=", "    ^~"},
	{"dur =< 5", "'=<' is no operator: write <=", "    ^~"},
	{"name <> \"x\"", "'<>' is no operator: write !=", "     ^~"},
	{"true & true", "'&' is no operator: write &&", "     ^"},
	{"true | true", "'|' is no operator: write ||", "     ^"},
	{"true and true", "'and' is no operator: write &&", "     ^~~"},
	{"true OR true", "'OR' is no operator: write ||", "     ^~"},
	{"not true", "'not' is no operator: write !", "^~~"},
	{"cpu IN {1}", "'IN' is no operator: write in", "    ^~"},
	{"cpu not in {1}", "no operator is called 'not in': write !(cpu in {…})", "    ^~~"},
	{"cpu !in {1}", "no operator is called 'not in': write !(cpu in {…})", "    ^"},
	{"name", "expected an operator (== != ~ !~ in) behind 'name', found the end", "    ^"},
	{"kv.flag", "expected an operator behind 'kv.flag', as in kv.flag == true, found the end",
	 "       ^"},
	{"kv.flag && dur > 1",
	 "expected an operator behind 'kv.flag', as in kv.flag == true, found '&&'", "        ^~"},
	{"(kv.flag)", "expected an operator behind 'kv.flag', as in kv.flag == true, found ')'",
	 "        ^"},
	{"dur >", "expected a time, such as 10ms, to compare with dur, found the end", "     ^"},
	{"\"a\" ~ name", "'~' has its pattern on the right: expected a field on the left", "    ^"},
	{"\"abc\"",
	 "expected an operator (== != < <= > >=) and a field behind \"abc\", found the end",
	 "     ^"},
	{"5", "expected an operator (== != < <= > >=) and a field behind 5, found the end", " ^"},
	{"1ms < dur < 2ms",
	 "a comparison has two sides: expected && or ||, as in dur > 1ms && dur < 5ms",
	 "          ^"},
	{"true cpu == 1", "expected && or ||, found 'cpu'", "     ^~~"},
	{"dur > 10 ms", "expected a unit directly behind its number: 10ms", "         ^~"},
	{"line == 10ms", "expected a whole number, such as 42, to compare with line, found '10ms'",
	 "        ^~~~"},
	{"line == 1MiB", "expected a whole number, such as 42, to compare with line, found '1MiB'",
	 "        ^~~~"},
	{"line == -1", "expected a whole number, such as 42, to compare with line, found '-1'",
	 "        ^~"},
	{"line == 1.5", "expected a whole number, such as 42, to compare with line, found '1.5'",
	 "        ^~~"},
	{"dur > 1MiB", "expected a time, such as 10ms, to compare with dur, found '1MiB'",
	 "      ^~~~"},
	{"dur > -1ms", "expected a time, such as 10ms, to compare with dur, found '-1ms'",
	 "      ^~~~"},
	{"dur > 1.5ns", "expected a time, such as 10ms, to compare with dur, found '1.5ns'",
	 "      ^~~~~"},
	{"dur > 10mss",
	 "unknown unit 'mss': expected ns us ms s min h, B KiB MiB GiB TiB, or k M G (thousands)",
	 "        ^~~"},
	{"dur > 1m30s",
	 "unknown unit 'm30s': expected ns us ms s min h, B KiB MiB GiB TiB, or k M G (thousands)",
	 "       ^~~~"},
	{"kv.x == 10MB",
	 "unknown unit 'MB': expected ns us ms s min h, B KiB MiB GiB TiB, or k M G (thousands)",
	 "          ^~"},
	{"kv.x == 1_000",
	 "unknown unit '_000': expected ns us ms s min h, B KiB MiB GiB TiB, or k M G (thousands)",
	 "         ^~~~"},
	{"kv.x == 1e6",
	 "unknown unit 'e6': expected ns us ms s min h, B KiB MiB GiB TiB, or k M G (thousands)",
	 "         ^~"},
	{"kv.x == 5.", "expected digits behind the '.' of a number", "        ^~"},
	{"kv.x == .5",
	 "expected a number, a text in quotes, true or false, to compare with kv.x, found '.'",
	 "        ^"},
	{"kv.x == 0x", "expected hexadecimal digits behind 0x, and no unit", "          ^"},
	{"kv.x == 0xfg", "expected hexadecimal digits behind 0x, and no unit", "           ^"},
	{"kv.x == 18446744073709551616",
	 "'18446744073709551616' is too large: expected a number from -9223372036854775808 to "
	 "18446744073709551615",
	 "        ^~~~~~~~~~~~~~~~~~~~"},
	{"kv.x == -9223372036854775809",
	 "'-9223372036854775809' is too large: expected a number from -9223372036854775808 to "
	 "18446744073709551615",
	 "        ^~~~~~~~~~~~~~~~~~~~"},
	{"kv.x == 16777216TiB",
	 "'16777216TiB' is too large: expected a number from -9223372036854775808 to "
	 "18446744073709551615",
	 "        ^~~~~~~~~~~"},
	{"kv.x == 0.123456789012345678901234567890123",
	 "too many digits behind the '.' of a number: expected at most 18",
	 "        ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"},
	{"kv.x == 340282366920938463463374607431768211456",
	 "'340282366920938463463374607431768211456' is too large: expected a number from "
	 "-9223372036854775808 to 18446744073709551615",
	 "        ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"},
	{"(dur > 1", "'(' without its ')': expected ')' before the end", "^"},
	{"dur > 1)", "')' without its '(': expected && or ||", "       ^"},
	{"()", "expected a comparison, such as dur > 10ms, or '(', found ')'", " ^"},
	{"(true true)", "expected &&, || or ')', found 'true'", "      ^~~~"},
	{"true &&", "expected a comparison, such as dur > 10ms, or '(', found the end", "       ^"},
	{"&& true", "expected a comparison, such as dur > 10ms, or '(', found '&&'", "^~"},
	{"!", "expected a comparison, such as dur > 10ms, or '(', found the end", " ^"},
	{"cpu in 5", "expected a list behind 'in', such as {1, 2}, found '5'", "       ^"},
	{"cpu in {}", "expected a whole number, such as 42, to compare with cpu, found '}'",
	 "        ^"},
	{"cpu in {1, }", "expected a whole number, such as 42, to compare with cpu, found '}'",
	 "           ^"},
	{"cpu in {1 2}", "expected ',' or '}' in the list, found '2'", "          ^"},
	{"cpu in {1, 2", "expected ',' or '}' in the list, found the end", "            ^"},
	{"cpu in {1, \"a\"}",
	 "expected a whole number, such as 42, to compare with cpu, found \"a\"", "           ^~~"},
	{"name == \"abc", "a text that is not closed: expected \" before the line ends",
	 "        ^~~~"},
	{"name == 'abc\" && true", "a text that is not closed: expected ' before the line ends",
	 "        ^~~~~~~~~~~~~"},
	{"name == \"a\\q\"",
	 "unknown escape: expected \\\" \\' \\\\ \\n \\t or \\x01 to \\xff; a backslash is written "
	 "\\\\",
	 "          ^~"},
	{"name == \"a\\x00\"",
	 "unknown escape: expected \\\" \\' \\\\ \\n \\t or \\x01 to \\xff; a backslash is written "
	 "\\\\",
	 "          ^~"},
	{"name == \"a\\x4\"",
	 "unknown escape: expected \\\" \\' \\\\ \\n \\t or \\x01 to \\xff; a backslash is written "
	 "\\\\",
	 "          ^~"},
	{"name ~ \"\\*\"",
	 "unknown escape: expected \\\" \\' \\\\ \\n \\t or \\x01 to \\xff; a backslash is written "
	 "\\\\",
	 "        ^~"},
	{"name ~ \"ab[cd\"",
	 "'[' without its ']': expected ']'; a '[' that stands for itself is written \\\\[",
	 "          ^"},
	{"name ~ \"a\\\\[b[c\"",
	 "'[' without its ']': expected ']'; a '[' that stands for itself is written \\\\[",
	 "             ^"},
	{"name ~ \"ab\\\\\"",
	 "a pattern ends with '\\': expected what it makes literal; a backslash is written "
	 "\\\\\\\\",
	 "          ^~"},
	{"name ~ \"[z-a]\"",
	 "a range that runs backwards: expected the lower byte first, as in [a-z]", "          ^"},
	{"name == “x”", "expected plain quotes, \"…\", found “", "        ^"},
	{"größe == 1",
	 "unknown field 'größe': expected kind name category file line func lib pid tid comm cpu "
	 "dur depth parent.name kv.KEY",
	 "^~~~~"},
	{"cpu == 1 ; true", "expected && or ||, found ';'", "         ^"},
	{"sample(0/100)",
	 "expected a whole number from 1 to 4294967295, as in sample(1/100), found '0'",
	 "       ^"},
	{"sample(2/1)",
	 "sample(2/1) is more than all: expected a part of the traces, such as 1/100", "       ^"},
	{"sample(1)", "expected '/', as in sample(1/100), found ')'", "        ^"},
	{"sample(1/100", "expected ')' behind sample(1/100, found the end", "            ^"},
	{"sample(1.5/100)",
	 "expected a whole number from 1 to 4294967295, as in sample(1/100), found '1.5'",
	 "       ^~~"},
	{"sample(0%)", "expected a share from 0.0000001% to 100%, as in sample(0.5%), found '0'",
	 "       ^"},
	{"sample(101%)",
	 "expected a share from 0.0000001% to 100%, as in sample(0.5%), found '101'", "       ^~~"},
	{"sample(0.00000001%)",
	 "expected a share from 0.0000001% to 100%, as in sample(0.5%), found '0.00000001'",
	 "       ^~~~~~~~~~"},
	{"sample(1ms/2ms)",
	 "expected a whole number from 1 to 4294967295, as in sample(1/100), found '1ms'",
	 "       ^~~"},
	{"sample(a)", "expected a number, as in sample(1/100), found 'a'", "       ^"},
	{"rate(0/s)", "expected a whole number from 1 to 16777215, as in rate(1000/s), found '0'",
	 "     ^"},
	{"rate(16777216/s)",
	 "expected a whole number from 1 to 16777215, as in rate(1000/s), found '16777216'",
	 "     ^~~~~~~~"},
	{"rate(5)", "expected '/', as in rate(1000/s), found ')'", "      ^"},
	{"rate(5/h)", "expected s, ms or min, as in rate(1000/s), found 'h'", "       ^"},
	{"rate(1/s) || true",
	 "rate() limits what passes all the rest: expected it as an operand of the outermost &&, "
	 "not in parentheses, behind ! or beside ||",
	 "^~~~~~~~~"},
	{"true || rate(1/s)",
	 "rate() limits what passes all the rest: expected it as an operand of the outermost &&, "
	 "not in parentheses, behind ! or beside ||",
	 "        ^~~~~~~~~"},
	{"!rate(1/s)",
	 "rate() limits what passes all the rest: expected it as an operand of the outermost &&, "
	 "not in parentheses, behind ! or beside ||",
	 " ^~~~~~~~~"},
	{"(rate(1/s) && true)",
	 "rate() limits what passes all the rest: expected it as an operand of the outermost &&, "
	 "not in parentheses, behind ! or beside ||",
	 " ^~~~~~~~~"},
	{"rate(1/s) && rate(2/s)", "a second rate(): expected one in the whole expression",
	 "             ^~~~~~~~~"},
};

static void fault(const char *origin, const char *text, struct error *err)
{
	struct filter_expr *filter = (void *)1;

	*err = (struct error)ERROR_INIT;
	if (filter_parse(&filter, origin, text, err) != -EINVAL)
		fail_msg("'%s' is no fault", text);
	assert_null(filter);
}

static void test_every_fault_says_what_was_expected_and_points_at_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		struct error err;
		char expected[sizeof(err.message)];

		fault("--filter", samples[i].text, &err);
		snprintf(expected, sizeof(expected), "--filter: %s\n  %s\n  %s", samples[i].message,
			 samples[i].text, samples[i].caret);
		assert_string_equal(err.message, expected);
	}
}

static void check(const char *text, const char *expected)
{
	struct error err;

	fault("f", text, &err);
	assert_string_equal(err.message, expected);
}

static void test_empty_expression_is_a_fault_of_one_line(void **state)
{
	static const char message[] =
		"f: the expression is empty: expected a comparison, such as dur > 10ms";

	(void)state;
	check("", message);
	check(" \t\n", message);
	check("# nothing\n#", message);
}

static void test_line_of_the_fault_is_shown_with_its_number(void **state)
{
	(void)state;
	check("cpu == 1 &&\n\tnmae == 'x'\n&& true",
	      "f: line 2: unknown field 'nmae'; did you mean name\n   nmae == 'x'\n   ^~~~");
	check("cpu == 1 &&\r\n\r\n",
	      "f: line 1: expected a comparison, such as dur > 10ms, or '(', "
	      "found the end\n  cpu == 1 &&\n             ^");
	check("cpu == 1 # && true\n|| # why\n",
	      "f: line 2: expected a comparison, such as dur > 10ms, or '(', found the end\n"
	      "  || # why\n    ^");
}

static void test_column_is_counted_in_characters(void **state)
{
	(void)state;
	check("name == \"größe→\" && x.y == 1",
	      "f: unknown field 'x.y': expected kind name category file line func lib pid tid comm "
	      "cpu dur depth parent.name kv.KEY\n"
	      "  name == \"größe→\" && x.y == 1\n"
	      "                      ^~~");
	check("\tcpu\t==\t'x'",
	      "f: expected a whole number, such as 42, to compare with cpu, found "
	      "'x'\n   cpu == 'x'\n          ^~~");
}

static void test_nothing_reaches_the_terminal_raw(void **state)
{
	/* An escape sequence, C1's CSI, bytes that are no UTF-8, a mark that turns the text. */
	static const char *const bad[] = {"\x1b[31m",
					  "\xc2\x9b"
					  "31m",
					  "\xff\xfe",
					  "\x07",
					  "\xe2\x80\xae"
					  "abc",
					  "\x7f",
					  "\xed\xa0\x80"};
	struct error err;
	char text[256];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		static const char *const forms[] = {"%s",          "name == \"%s\" x",
						    "cpu == %s",   "kind == '%s'",
						    "kv.\"%s\" >", "5%s == cpu"};

		for (size_t form = 0; form < COUNT_OF(forms); form++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(text, sizeof(text), forms[form], bad[i]);
#pragma GCC diagnostic pop
			fault(bad[i], text, &err);
			assert_int_equal(utf8_valid(err.message, strlen(err.message)),
					 strlen(err.message));
			assert_null(strstr(err.message, bad[i]));
			assert_non_null(strstr(err.message, "\xef\xbf\xbd"));
		}
	}
	check("name == \"\x1b[0m\" x", "f: expected && or ||, found 'x'\n"
				       "  name == \"\xef\xbf\xbd[0m\" x\n"
				       "                 ^");
}

static size_t columns(const char *text, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += (text[i] & 0xc0) != 0x80;
	return count;
}

/* A fault at each place of a long line, of one-byte and of four-byte characters. */
static void test_long_line_is_cut_around_the_place(void **state)
{
	static const char wide[] = "\xf0\x9f\x90\xa2";

	(void)state;
	for (size_t before = 0; before < 300; before++) {
		char text[2048] = "name in {\"";
		struct error err;
		char *line, *caret;

		for (size_t i = 1; i <= before; i++)
			strcat(text, i % 50 == 0 ? "\",\"" : before % 2 ? wide : "-");
		strcat(text, "\"} && FAULT == 1 &&");
		for (size_t i = before; i < 200; i++)
			strcat(text, " ");
		strcat(text, " cpu == 1");
		fault(before % 2 ? wide : "f", text, &err);
		line = strchr(err.message, '\n') + 1;
		caret = strchr(line, '\n') + 1;
		assert_true(columns(line, (size_t)(caret - 1 - line)) <= 100);
		assert_true(strlen(caret) <= 100);
		assert_string_equal(strchr(caret, '^'), "^~~~~");
		/* It stands right below the word. */
		line[caret - 1 - line] = '\0';
		assert_non_null(strstr(line, "FAULT"));
		assert_int_equal(columns(line, (size_t)(strstr(line, "FAULT") - line)),
				 strchr(caret, '^') - caret);
	}
}

static void test_caret_of_a_long_word_ends_with_its_line(void **state)
{
	char text[1000];
	struct error err;
	char *caret;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	fault("f", text, &err);
	caret = strrchr(err.message, '\n') + 1;
	assert_int_equal(strlen(caret), 100);
	assert_int_equal(strspn(caret, " "), 2);
	assert_non_null(strstr(err.message, "unknown field 'xxxxx"));
}

static char *repeat(const char *operand, const char *joiner, unsigned count)
{
	char *text = calloc(count, strlen(operand) + strlen(joiner) + 1), *end = text;

	assert_non_null(text);
	while (count--)
		end += sprintf(end, "%s%s", operand, count ? joiner : "");
	return text;
}

static void check_limit(char *text, const char *message)
{
	struct error err;

	fault("f", text, &err);
	if (strncmp(err.message, message, strlen(message)) != 0)
		fail_msg("'%s' begins otherwise than '%s'", err.message, message);
	free(text);
}

static void test_limits_are_said(void **state)
{
	char *list = repeat("1", ",", FILTER_LITERALS_MAX), *text = calloc(1, 4096);

	(void)state;
	check_limit(repeat("cpu == 1", " || ", FILTER_PREDICATES_MAX + 1),
		    "f: too many comparisons: expected at most 64\n  ...");
	check_limit(repeat("true", "&&", FILTER_OPERANDS_MAX + 1),
		    "f: too long: expected at most 128 operands of && and ||\n  ...");
	check_limit(repeat("(", "", FILTER_DEPTH_MAX + 1),
		    "f: nested too deep: expected at most 64 parentheses and negations in each");
	check_limit(repeat("!", "(", FILTER_DEPTH_MAX / 2 + 1), "f: nested too deep: ");
	check_limit(repeat(" ", "", FILTER_SOURCE_MAX + 1),
		    "f: the expression has 16385 bytes: expected at most 16384");
	sprintf(text, "cpu in {%s,1}", list);
	check_limit(text, "f: the list is too long: expected at most 64\n  ");
	text = calloc(1, 4096);
	sprintf(text, "cpu in {%s} || pid in {%s} || tid in {%s} || line in {%s} || depth in {1}",
		list, list, list, list);
	check_limit(text, "f: the lists are too long: expected at most 256 in all of them\n  ");
	text = calloc(1, 4096);
	sprintf(text, "name == \"%0*d\"", FILTER_TEXT_MAX + 1, 0);
	check_limit(text, "f: a text of 257 bytes: expected at most 256\n  name == \"0");
	text = calloc(1, 4096);
	sprintf(text, "kv.%0*d == 1", FILTER_TEXT_MAX + 1, 0);
	check_limit(text, "f: a key of 257 bytes: expected at most 256\n  kv.0");
	free(list);
}

static void test_file_that_cannot_be_read_is_said(void **state)
{
	struct error err = ERROR_INIT;
	struct filter_expr *filter;

	(void)state;
	assert_int_equal(filter_open(&filter, "--filter", "@", &err), -EINVAL);
	assert_string_equal(err.message, "--filter: '@' without a file: expected @FILE, or @- for "
					 "standard input");
	err = (struct error)ERROR_INIT;
	assert_int_equal(filter_open(&filter, "--filter", "@/nowhere/x", &err), -ENOENT);
	assert_string_equal(err.message, "--filter: /nowhere/x: No such file or directory");
	err = (struct error)ERROR_INIT;
	assert_int_equal(filter_open(&filter, "--filter", "@/", &err), -EISDIR);
	assert_string_equal(err.message, "--filter: /: is a directory");
	err = (struct error)ERROR_INIT;
	assert_int_equal(filter_open(&filter, "--filter", "@/dev/zero", &err), -EFBIG);
	assert_string_equal(err.message,
			    "--filter: /dev/zero: more than the 16384 bytes of an expression");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_fault_says_what_was_expected_and_points_at_it),
		cmocka_unit_test(test_empty_expression_is_a_fault_of_one_line),
		cmocka_unit_test(test_line_of_the_fault_is_shown_with_its_number),
		cmocka_unit_test(test_column_is_counted_in_characters),
		cmocka_unit_test(test_nothing_reaches_the_terminal_raw),
		cmocka_unit_test(test_long_line_is_cut_around_the_place),
		cmocka_unit_test(test_caret_of_a_long_word_ends_with_its_line),
		cmocka_unit_test(test_limits_are_said),
		cmocka_unit_test(test_file_that_cannot_be_read_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
