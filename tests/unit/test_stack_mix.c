// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "capture/enrich/stack_mix_internal.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The interpreter is at [1000, 2000), its loop at [1500, 1600). */
static const struct python_code_range interpreter = {1000, 2000, 1500, 1600};

#define P(number) (1ull << 63 | (number))
#define FRAMES_MAX 12

struct sample {
	uint64_t native[FRAMES_MAX], python[FRAMES_MAX];
	uint64_t ends;
	uint64_t mixed[FRAMES_MAX]; /* all lists end with 0 */
};

static uint32_t length(const uint64_t *list)
{
	uint32_t count = 0;

	while (list[count])
		count++;
	return count;
}

static void check(const struct sample *sample, const struct python_code_range *range)
{
	uint64_t mixed[2 * FRAMES_MAX];
	struct stack_mix mix = {.native = sample->native,
				.native_count = length(sample->native),
				.python = sample->python,
				.python_count = length(sample->python),
				.python_ends = sample->ends};
	uint32_t count = stack_mix(&mix, range, mixed);

	assert_int_equal(count, length(sample->mixed));
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(mixed[i], sample->mixed[i]);
}

static void test_functions_take_the_place_of_the_loop_that_runs_them(void **state)
{
	static const struct sample samples[] = {
		/* One call of the loop runs two functions, the outer one runs one. */
		{{70, 1100, 1550, 1200, 1590, 1300, 80},
		 {P(1), P(2), P(3)},
		 1 << 1 | 1 << 2,
		 {70, 1100, P(1), P(2), P(3), 80}},
		/* Native code of the program in between is kept. */
		{{70, 1550, 90, 1550, 80}, {P(1), P(2)}, 3, {70, P(1), 90, P(2), 80}},
		/* The thread is in the loop itself. */
		{{1500, 1700, 80}, {P(1)}, 1, {P(1), 80}},
		/* The return address of the loop's last call is the byte after it. */
		{{70, 1600}, {P(1)}, 1, {70, P(1)}},
		{{70, 1500}, {P(1)}, 1, {70, 1500, P(1)}},
		/* No frame of Python. */
		{{70, 1550, 80}, {0}, 0, {70, 1550, 80}},
		/* The native stack was cut before the loop, or between two calls of it. */
		{{70, 1100}, {P(1), P(2)}, 3, {70, 1100, P(1), P(2)}},
		{{70, 1550}, {P(1), P(2)}, 3, {70, P(1), P(2)}},
		/* Python's stack was cut: the loop is the interpreter's, and left out. */
		{{70, 1550, 1550, 80}, {P(1)}, 1, {70, P(1), 80}},
		/* The last function ends even if it is not marked. */
		{{70, 1550, 1200, 80}, {P(1), P(2)}, 0, {70, P(1), P(2), 80}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++)
		check(&samples[i], &interpreter);
}

static void test_functions_come_last_if_the_loop_is_not_known(void **state)
{
	static const struct python_code_range unknown;
	static const struct sample sample = {
		{70, 1550, 80}, {P(1), P(2)}, 3, {70, 1550, 80, P(1), P(2)}};

	(void)state;
	check(&sample, &unknown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_take_the_place_of_the_loop_that_runs_them),
		cmocka_unit_test(test_functions_come_last_if_the_loop_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
