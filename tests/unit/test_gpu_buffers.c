// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "usdt/gpu/buffers.h"

static void test_a_buffer_comes_back_with_its_records(void **state)
{
	struct gpu_buffer *taken;
	size_t size, most;
	uint8_t *at;

	(void)state;
	buffers_request(&at, &size, &most);
	assert_int_equal(size, BUFFER_BYTES);
	buffers_complete(at, 100);
	taken = buffers_take();
	assert_non_null(taken);
	assert_ptr_equal(taken->at, at);
	assert_int_equal(taken->valid, 100);
	assert_null(buffers_take());
	buffers_give(taken);
	buffers_trim();
}

/* Another tool had given it to CUPTI. */
static void test_a_buffer_of_another_tool_is_left_alone(void **state)
{
	static uint8_t others[4096];
	uint8_t before[sizeof(others)];

	(void)state;
	memset(others, 0x5a, sizeof(others));
	memcpy(before, others, sizeof(others));
	buffers_complete(others + 1024, 100);
	buffers_complete(others + 1024, 0);
	assert_memory_equal(others, before, sizeof(others));
	assert_null(buffers_take());
	buffers_complete(NULL, 0);
}

static void test_a_buffer_that_comes_back_twice_is_read_once(void **state)
{
	struct gpu_buffer *taken;
	size_t size, most;
	uint8_t *at;

	(void)state;
	buffers_request(&at, &size, &most);
	buffers_complete(at, 100);
	buffers_complete(at, 100);
	taken = buffers_take();
	assert_non_null(taken);
	assert_null(buffers_take());
	buffers_give(taken);
	buffers_trim();
}

static void test_without_room_records_are_thrown_away(void **state)
{
	uint8_t *at[BUFFERS_BYTES_MAX / BUFFER_BYTES];
	size_t count = 0, size, most;

	(void)state;
	for (;; count++) {
		buffers_request(&at[count], &size, &most);
		if (size != BUFFER_BYTES)
			break;
	}
	assert_true(count > 0);
	assert_int_equal(most, 1);
	buffers_complete(at[count], 8);
	assert_int_equal(buffers_discarded(), 1);
	while (count--)
		buffers_complete(at[count], 0);
	buffers_trim();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_buffer_comes_back_with_its_records),
		cmocka_unit_test(test_a_buffer_of_another_tool_is_left_alone),
		cmocka_unit_test(test_a_buffer_that_comes_back_twice_is_read_once),
		cmocka_unit_test(test_without_room_records_are_thrown_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
