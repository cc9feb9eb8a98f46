// SPDX-License-Identifier: Apache-2.0
/* The text of a chain of processors: what is accepted, and the one message of each error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "docs_page.h"
#include "export/process/chain.h"
#include "export/process/chain_text_internal.h"

static void accepts(const char *text, const char *const *names)
{
	struct chain_stages stages = {0};
	struct error err = ERROR_INIT;

	assert_int_equal(chain_text_parse(&stages, "--process", text, &err), 0);
	assert_string_equal(err.message, "");
	for (size_t i = 0; i < stages.stages.len; i++)
		assert_string_equal(stages.stages.data[i].type->name, names[i]);
	assert_null(names[stages.stages.len]);
	chain_stages_free(&stages);
}

static void rejects(const char *text, const char *message)
{
	struct chain_stages stages = {0};
	struct error err = ERROR_INIT;

	assert_int_equal(chain_text_parse(&stages, "--process", text, &err), -EINVAL);
	assert_string_equal(err.message, message);
	chain_stages_free(&stages);
}

static void test_chains_are_parsed(void **state)
{
	(void)state;
	accepts("log", (const char *[]){"log", NULL});
	accepts("log()", (const char *[]){"log", NULL});
	accepts(" sample( 1/10 ) , log ( json , file = \"a, b.log\" ) ",
		(const char *[]){"sample", "log", NULL});
	accepts("filter(name == \"a)\" && (dur > 1ms || kv.x in {1, 2})),log",
		(const char *[]){"filter", "log", NULL});
	accepts("batch(size=10,time=2s),call(a.b)", (const char *[]){"batch", "call", NULL});
}

static void test_values_reach_the_configuration(void **state)
{
	struct chain_stages stages = {0};
	const struct processor_fraction *fraction;

	(void)state;
	assert_int_equal(chain_text_parse(&stages, "", "sample(3/7),batch(9),batch", NULL), 0);
	fraction = stages.stages.data[0].config;
	assert_int_equal(fraction->keep, 3);
	assert_int_equal(fraction->of, 7);
	assert_int_equal(((const uint64_t *)stages.stages.data[1].config)[0], 9);
	assert_int_equal(((const uint64_t *)stages.stages.data[2].config)[0], 512);
	chain_stages_free(&stages);
}

static void test_errors_name_the_place(void **state)
{
	(void)state;
	rejects("sampel(1/10)", "--process: unknown processor 'sampel'; did you mean sample\n"
				"  sampel(1/10)\n"
				"  ^~~~~~");
	rejects("log,,log",
		"--process: expected a processor, one of: sample filter call metrics log "
		"batch export\n"
		"  log,,log\n"
		"      ^");
	rejects("log(fiel=x)", "--process: unknown option of log() 'fiel'; did you mean file\n"
			       "  log(fiel=x)\n"
			       "      ^~~~");
	rejects("sample(2/1)", "--process: expected a fraction such as 1/10 for keep, found '2/1'\n"
			       "  sample(2/1)\n"
			       "         ^~~");
	rejects("batch(size=0)", "--process: size is too small: expected 1 to 65536\n"
				 "  batch(size=0)\n"
				 "             ^");
	rejects("batch(time=5)",
		"--process: expected a time such as 10s or 500ms for time, found '5'\n"
		"  batch(time=5)\n"
		"             ^");
	rejects("log(json", "--process: expected , or ) behind an option of log()\n"
			    "  log(json\n"
			    "          ^");
	rejects("log(file='x", "--process: a quote ' is not closed\n"
			       "  log(file='x\n"
			       "           ^~");
	rejects("log)", "--process: expected , or the end behind a processor\n"
			"  log)\n"
			"     ^");
	rejects("sample", "--process: sample() needs N/M, as in sample(1/10)\n"
			  "  sample\n"
			  "  ^~~~~~");
	rejects("sample(1/2,1/2)",
		"--process: unknown option of sample() '1/2': expected one of: keep\n"
		"  sample(1/2,1/2)\n"
		"             ^~~");
	rejects("log(json,json)",
		"--process: unknown option of log() 'json': expected one of: format "
		"file\n"
		"  log(json,json)\n"
		"           ^~~~");
}

static void test_control_characters_do_not_reach_a_terminal(void **state)
{
	struct chain_stages stages = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(chain_text_parse(&stages, "--process", "\033[31mlog\r", &err), -EINVAL);
	assert_null(strchr(err.message, '\033'));
	assert_null(strchr(err.message, '\r'));
	chain_stages_free(&stages);
}

static void test_shareable_chains_replace_no_file(void **state)
{
	(void)state;
	assert_true(chain_is_shareable("log(json,file=x.log)"));
	assert_true(chain_is_shareable("metrics(file=x-%p.prom)"));
	assert_false(chain_is_shareable("metrics(file=x.prom)"));
	assert_false(chain_is_shareable("nonsense"));
}

static void print_page(FILE *out)
{
	fputs("# Options of processors\n\nThis page is generated from the code by `make docs`. "
	      "[processors.md](processors.md) is the guide.\n\n",
	      out);
	chain_help_markdown(out);
}

static void test_documented_options_are_those_of_the_code(void **state)
{
	(void)state;
	assert_page("docs/processor-options.md", print_page);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains_are_parsed),
		cmocka_unit_test(test_values_reach_the_configuration),
		cmocka_unit_test(test_errors_name_the_place),
		cmocka_unit_test(test_control_characters_do_not_reach_a_terminal),
		cmocka_unit_test(test_shareable_chains_replace_no_file),
		cmocka_unit_test(test_documented_options_are_those_of_the_code),
	};

	if (argc > 1 && !strcmp(argv[1], "print")) {
		print_page(stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
