// SPDX-License-Identifier: Apache-2.0
/* Records that refer to stacks which are not there. Real stacks: tests/integration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/record.h"
#include "capture/enrich/stack_numbers_internal.h"

#define TS 5000000000ull
#define LATER (1u << 18) /* as many stacks later, a number has the same place */

static struct store_writer *writer;

static struct stack_numbers *numbers_open(void)
{
	struct stack_numbers_uses uses = {0};
	struct stack_numbers *numbers;
	struct error err = ERROR_INIT;

	assert_int_equal(store_writer_open_memory(&writer, &err), 0);
	uses.writer = writer;
	assert_int_equal(stack_numbers_open(&numbers, &uses, &err), 0);
	return numbers;
}

static void numbers_close(struct stack_numbers *numbers)
{
	stack_numbers_close(numbers);
	store_writer_discard(writer);
}

static void trace_add(struct stack_numbers *numbers, uint32_t number)
{
	struct waffle_rec_trace trace = {.rec = {TS, 1, WAFFLE_REC_TRACE, 0}, .number = number};
	struct error err = ERROR_INIT;

	assert_int_equal(stack_numbers_trace(numbers, &trace.rec, &err), 0);
}

static void wait_add(struct stack_numbers *numbers, uint32_t kernel, uint32_t user)
{
	stack_numbers_replace(numbers, 1, TS, &kernel, &user);
	assert_int_equal(kernel, 0);
	assert_int_equal(user, 0);
}

static void test_a_stack_after_its_wait_is_late(void **state)
{
	struct stack_numbers *numbers = numbers_open();

	(void)state;
	wait_add(numbers, 7, 8);
	trace_add(numbers, 7);
	wait_add(numbers, 7 + LATER, 0); /* not there yet: the place has an older one */
	assert_int_equal(stack_numbers_late(numbers), 3);
	assert_int_equal(stack_numbers_left_out(numbers), 0);
	numbers_close(numbers);
}

static void test_a_stack_whose_place_another_has_is_left_out(void **state)
{
	struct stack_numbers *numbers = numbers_open();

	(void)state;
	trace_add(numbers, 7 + LATER);
	wait_add(numbers, 7, 0);
	wait_add(numbers, 0, 0);
	assert_int_equal(stack_numbers_late(numbers), 0);
	assert_int_equal(stack_numbers_left_out(numbers), 1);
	numbers_close(numbers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stack_after_its_wait_is_late),
		cmocka_unit_test(test_a_stack_whose_place_another_has_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
