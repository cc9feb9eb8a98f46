// SPDX-License-Identifier: Apache-2.0
/* Files of lld, which must not be armed in a process that is about to execute them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/arming/arming_internal.h"

#define PID 10

static void row(struct arming *arming, uint32_t file, pid_t pid, uint64_t begin_ns)
{
	const struct loading loading = {
		.pid = pid, .file = file, .reason = LOADING_AHEAD, .begin_ns = begin_ns};

	assert_true(vec_push(&arming->loading, loading));
}

/* The tracer handles the record of an exec when the next program of the process is held already,
 * and prepared. That program has not begun. */
static void test_an_exec_does_not_begin_the_program_after_it(void **state)
{
	struct arming arming = {0};

	(void)state;
	row(&arming, 1, PID, 15);
	row(&arming, 1, PID + 1, 15);
	row(&arming, 2, PID, 45);
	arming_began(&arming, PID, 40);
	assert_false(file_is_ahead(&arming, 1, PID));
	assert_true(file_is_ahead(&arming, 1, PID + 1));
	assert_true(file_is_ahead(&arming, 2, PID));
	arming_began(&arming, PID, UINT64_MAX);
	assert_false(file_is_ahead(&arming, 2, PID));
	vec_free(&arming.loading);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_exec_does_not_begin_the_program_after_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
