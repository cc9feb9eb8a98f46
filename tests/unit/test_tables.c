// SPDX-License-Identifier: Apache-2.0
/* Unwinding tables that a thread makes: whoever asks does not wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "capture/enrich/tables_internal.h"

#define SECOND_NS 1000000000ull

static struct table_maker *maker_begin(void)
{
	struct error err = ERROR_INIT;
	struct table_maker *maker;

	if (table_maker_open(&maker, &err))
		fail_msg("%s", err.message);
	return maker;
}

/* A row between two functions says that nothing is known there. */
static void assert_finds_its_rows(const struct cfi_table *table)
{
	size_t known = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct waffle_unwind_row *row = &table->rows[i];
		bool is_known = row->rule != WAFFLE_UNWIND_UNKNOWN;

		assert_ptr_equal(cfi_table_find(table, table->base + row->pc),
				 is_known ? row : NULL);
		known += is_known;
	}
	assert_true(known > 0);
}

static void test_each_table_that_was_asked_for_comes_once(void **state)
{
	struct table_maker *maker = maker_begin();
	bool came[8] = {false};
	struct table_made made;
	unsigned count = 0;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		assert_true(table_maker_ask(maker, i, open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
					    "this test"));
	table_maker_wait(maker, true, 60 * SECOND_NS);
	while (table_maker_take(maker, &made)) {
		assert_in_range(made.file, 0, 7);
		assert_false(came[made.file]);
		came[made.file] = true;
		assert_string_equal(made.path, "this test");
		assert_finds_its_rows(&made.table);
		assert_true(made.segments.count);
		cfi_table_free(&made.table);
		free(made.path);
		count++;
	}
	assert_int_equal(count, 8);
	table_maker_close(maker);
}

static void test_what_is_no_program_has_an_empty_table(void **state)
{
	struct table_maker *maker = maker_begin();
	struct table_made made;

	(void)state;
	assert_true(table_maker_ask(maker, 3, open("/proc/self/status", O_RDONLY | O_CLOEXEC), ""));
	table_maker_wait(maker, true, 60 * SECOND_NS);
	assert_true(table_maker_take(maker, &made));
	assert_int_equal(made.file, 3);
	assert_int_equal(made.table.count, 0);
	assert_false(made.no_memory);
	free(made.path);
	table_maker_close(maker);
}

/* The descriptors and names of what was not made yet go as well: sanitizers look. */
static void test_the_end_does_not_wait_for_all_that_was_asked_for(void **state)
{
	int before = dup(STDERR_FILENO), after;

	(void)state;
	close(before);
	for (unsigned round = 0; round < 20; round++) {
		struct table_maker *maker = maker_begin();

		for (uint32_t i = 0; i < 50; i++)
			assert_true(table_maker_ask(
				maker, i, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "again"));
		table_maker_close(maker);
	}
	after = dup(STDERR_FILENO);
	assert_int_equal(after, before);
	close(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_table_that_was_asked_for_comes_once),
		cmocka_unit_test(test_what_is_no_program_has_an_empty_table),
		cmocka_unit_test(test_the_end_does_not_wait_for_all_that_was_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
