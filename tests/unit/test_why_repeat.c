// SPDX-License-Identifier: Apache-2.0
/* Which function is suggested as a step, by stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "analyze/why/why_repeat.h"

#define PATHS 40

static char texts[PATHS][128];

/* A stack of functions, outermost first, such as "main serve handle". */
static struct why_repeat_path path(unsigned number, const char *functions, uint64_t ns)
{
	struct why_repeat_path made = {.ns = ns};
	char *state = NULL;

	snprintf(texts[number], sizeof(texts[number]), "%s", functions);
	for (char *word = strtok_r(texts[number], " ", &state); word;
	     word = strtok_r(NULL, " ", &state))
		made.frames[made.depth++] =
			(struct stack_frame){.function = word, .module = "/opt/server"};
	return made;
}

static bool choose(const char *const *stacks, unsigned kinds,
		   struct why_repeat_candidate *candidate)
{
	struct why_repeat_path paths[PATHS];

	for (unsigned i = 0; i < PATHS; i++)
		paths[i] = path(i, stacks[i % kinds], 1000000);
	return why_repeat_choose(paths, PATHS, candidate);
}

static void test_the_function_below_those_that_do_not_return(void **state)
{
	const char *const stacks[] = {"main serve handle read_disk", "main serve handle compute",
				      "main serve wait_request", "main serve handle answer"};
	struct why_repeat_candidate candidate;
	char probe[128];

	(void)state;
	assert_true(choose(stacks, 4, &candidate));
	assert_string_equal(candidate.frame.function, "handle");
	assert_int_equal(candidate.stacks, 30);
	assert_int_equal(candidate.of, PATHS);
	assert_true(why_repeat_probe(probe, sizeof(probe), &candidate.frame));
	assert_string_equal(probe, "uprobe:/opt/server:handle as span step");
}

static void test_nothing_is_suggested_without_a_pattern(void **state)
{
	const char *const same[] = {"main serve"};
	const char *const unrelated[] = {"a", "b", "c"};
	const char *const templates[] = {"main run<int> f", "main g(int)", "main g(int) h"};
	const char *const go[] = {"runtime.mstart runtime.schedule runtime.stopm runtime.notesleep",
				  "runtime.mstart runtime.schedule runtime.stopm runtime.futex",
				  "runtime.mstart runtime.schedule runtime.execute"};
	struct why_repeat_candidate candidate;

	(void)state;
	assert_false(choose(same, 1, &candidate));
	/* A function of Go's runtime is no step of the program. */
	assert_false(choose(go, 3, &candidate));
	/* The outermost function of a thread is never a step. */
	assert_false(choose(unrelated, 3, &candidate));
	/* The name of a template is no name of a probe spec. */
	assert_false(choose(templates, 3, &candidate));
	assert_false(why_repeat_choose(NULL, 0, &candidate));
}

/* Below select() is always the same, and the thread never runs there. */
static void test_a_function_that_only_waits_in_one_place_is_no_step(void **state)
{
	const char *const stacks[] = {"main loop select wait", "main loop select wait",
				      "main loop handle"};
	struct why_repeat_path paths[PATHS];
	struct why_repeat_candidate candidate;

	(void)state;
	for (unsigned i = 0; i < PATHS; i++) {
		paths[i] = path(i, stacks[i % 3], 1000000);
		paths[i].waits = true;
	}
	assert_false(why_repeat_choose(paths, PATHS, &candidate));
	paths[0].waits = false;
	assert_true(why_repeat_choose(paths, PATHS, &candidate));
	assert_string_equal(candidate.frame.function, "select");
	paths[0] = path(0, "main loop select handle", 1000000);
	paths[0].waits = true;
	assert_true(why_repeat_choose(paths, PATHS, &candidate));
}

static void test_functions_of_python_have_their_own_probes(void **state)
{
	const struct stack_frame step = {
		.function = "Model.step", .module = "[python]", .file = "/srv/app/train.py"};
	const struct stack_frame module = {
		.function = "<module>", .module = "[python]", .file = "/srv/app/train.py"};
	char probe[128];

	(void)state;
	assert_true(why_repeat_probe(probe, sizeof(probe), &step));
	assert_string_equal(probe, "python:train.py:Model.step");
	assert_false(why_repeat_probe(probe, sizeof(probe), &module));
	assert_false(why_repeat_probe(probe, 8, &step));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_function_below_those_that_do_not_return),
		cmocka_unit_test(test_nothing_is_suggested_without_a_pattern),
		cmocka_unit_test(test_a_function_that_only_waits_in_one_place_is_no_step),
		cmocka_unit_test(test_functions_of_python_have_their_own_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
