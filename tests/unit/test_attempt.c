// SPDX-License-Identifier: Apache-2.0
/* Memory that runs out in libwaffle ends the attempt, not the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

#include "usdt/record/attempt.h"
#include "util/memory.h"

/* Otherwise AddressSanitizer ends the program when memory runs out. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void get_too_much(void)
{
	free(memory_zeroed(SIZE_MAX / 2, 2));
}

/* Returns whether memory ran out. */
static bool outer_runs(bool inner_fails, bool outer_fails, volatile bool *inner_failed)
{
	struct memory_attempt outer, inner;

	*inner_failed = false;
	if (attempt_fails(&outer))
		return true;
	if (attempt_fails(&inner)) {
		*inner_failed = true;
	} else {
		if (inner_fails)
			get_too_much();
		attempt_end(&inner);
	}
	if (outer_fails)
		get_too_much();
	attempt_end(&outer);
	return false;
}

static void test_failed_allocation_returns_to_the_innermost_attempt(void **state)
{
	bool inner_failed;

	(void)state;
	assert_false(outer_runs(false, false, &inner_failed));
	assert_false(inner_failed);
	assert_false(outer_runs(true, false, &inner_failed));
	assert_true(inner_failed);
	assert_true(outer_runs(false, true, &inner_failed));
	assert_false(inner_failed);
	assert_true(outer_runs(true, true, &inner_failed));
	assert_true(inner_failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failed_allocation_returns_to_the_innermost_attempt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
