// SPDX-License-Identifier: Apache-2.0
/* --stacks LIST: whose stacks are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "capture/enrich/stack_choice.h"

static const struct site_info sites[] = {
	{.name = "forward", .category = "", .kind = WAFFLE_SITE_SPAN},
	{.name = "forward_layer", .category = "cuda", .kind = WAFFLE_SITE_SPAN},
	{.name = "cudaLaunchKernel", .category = "cuda", .kind = WAFFLE_SITE_EVENT, .call = true},
	{.name = "ncclAllReduce", .category = "nccl", .kind = WAFFLE_SITE_SPAN, .call = true},
	{.name = "malloc", .category = "libc", .kind = WAFFLE_SITE_SPAN, .call = true},
	{.name = "forward_count", .category = "", .kind = WAFFLE_SITE_COUNTER},
};

/* A letter a site of the list: whether it is chosen. */
static void expect(const char *list, const char *chosen)
{
	struct stack_choice *choice = NULL;
	struct error err = ERROR_INIT;

	assert_int_equal(stack_choice_add(&choice, list, &err), 0);
	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
		assert_int_equal(stack_choice_has(choice, &sites[i]), chosen[i] == 'y');
	stack_choice_free(choice);
}

static void test_words_choose_by_where_a_site_is_from(void **state)
{
	(void)state;
	expect("spans", "yynnnn");
	expect("cuda", "nnynnn");
	expect("nccl", "nnnynn");
	expect("probes", "nnnnyn");
	expect("sched", "nnnnnn");
	expect("cuda,nccl,probes,spans", "yyyyyn");
}

static void test_names_choose_by_pattern_and_whatever_the_site_is(void **state)
{
	(void)state;
	expect("span:forward", "ynnnnn");
	expect("span:forward*", "yynnnn");
	expect("span:[cm]*", "nnynyn");
	expect("span:forward,nccl", "ynnynn");
}

static void test_lists_add_up(void **state)
{
	struct stack_choice *choice = NULL;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(stack_choice_add(&choice, "cuda", &err), 0);
	assert_false(stack_choice_has_waits(choice));
	assert_true(stack_choice_has_nodes(choice));
	assert_int_equal(stack_choice_add(&choice, "sched,span:malloc", &err), 0);
	assert_true(stack_choice_has_waits(choice));
	assert_true(stack_choice_has(choice, &sites[2]));
	assert_true(stack_choice_has(choice, &sites[4]));
	stack_choice_free(choice);
	assert_false(stack_choice_has(NULL, &sites[0]));
	assert_false(stack_choice_has_waits(NULL));
	assert_false(stack_choice_has_nodes(NULL));
	choice = NULL;
	assert_int_equal(stack_choice_add(&choice, "sched", &err), 0);
	assert_true(stack_choice_has_waits(choice));
	assert_false(stack_choice_has_nodes(choice));
	stack_choice_free(choice);
}

static void refused(const char *list, const char *says)
{
	struct stack_choice *choice = NULL;
	struct error err = ERROR_INIT;

	assert_int_equal(stack_choice_add(&choice, list, &err), -EINVAL);
	assert_non_null(strstr(err.message, says));
	stack_choice_free(choice);
}

static void test_what_is_not_understood_is_shown(void **state)
{
	(void)state;
	refused("cudaa", "did you mean cuda?");
	refused("gpu",
		"there is no 'gpu'; there are cuda, nccl, probes, spans, span:NAME and sched");
	refused("", "there is no ''");
	refused("cuda,,nccl", "there is no ''");
	refused("span:", "there is no 'span:'");
	refused("span:a[", "the pattern is wrong at '['");
}

static void note(const char *word, const char *name, void *arg)
{
	char *said = arg;

	sprintf(said + strlen(said), "%s(%s) ", word, name ? name : "");
}

static void test_words_that_no_site_has_are_told(void **state)
{
	struct stack_choice *choice = NULL;
	struct error err = ERROR_INIT;
	char said[200] = "";

	(void)state;
	assert_int_equal(stack_choice_add(&choice, "nccl,span:fore*,sched,cuda,span:for*", &err),
			 0);
	stack_choice_unfound(choice, note, said);
	assert_string_equal(said, "nccl() span:fore*(fore*) cuda() span:for*(for*) ");
	/* A site that one word selects is also found by all other words that select it. */
	for (size_t i = 0; i < 3; i++)
		stack_choice_has(choice, &sites[i]);
	said[0] = '\0';
	stack_choice_unfound(choice, note, said);
	assert_string_equal(said, "nccl() span:fore*(fore*) ");
	stack_choice_free(choice);
	stack_choice_unfound(NULL, note, said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_choose_by_where_a_site_is_from),
		cmocka_unit_test(test_names_choose_by_pattern_and_whatever_the_site_is),
		cmocka_unit_test(test_lists_add_up),
		cmocka_unit_test(test_words_that_no_site_has_are_told),
		cmocka_unit_test(test_what_is_not_understood_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
