// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "capture/holds_internal.h"

static struct hold *hold_of(struct holds *holds, uint64_t id, uint64_t begin_ts, const char *name)
{
	struct hold *hold = holds_add(holds, id, begin_ts);

	assert_non_null(hold);
	snprintf(hold->name, sizeof(hold->name), "%s", name);
	return hold;
}

static void test_a_program_is_ready_if_all_its_holds_were(void **state)
{
	struct holds holds = {0};

	(void)state;
	hold_of(&holds, 1, 10, "program")->ready = true;
	assert_true(holds_any_ready(&holds));
	hold_of(&holds, 2, 20, "ld.so")->ready = true;
	holds_exec(&holds, 30);
	assert_true(holds_sum(&holds, 30).ready);
	assert_false(holds_sum(&holds, 30).counted);
	assert_string_equal(holds_sum(&holds, 30).name, "program");

	hold_of(&holds, 3, 40, "next")->ready = true;
	hold_of(&holds, 4, 50, "ld.so")->missed = true;
	holds_exec(&holds, 60);
	assert_false(holds_sum(&holds, 60).ready);
	assert_string_equal(holds_sum(&holds, 60).name, "next");
	holds_free(&holds);
}

static void test_a_program_without_holds_is_not_ready(void **state)
{
	struct holds holds = {0};

	(void)state;
	hold_of(&holds, 1, 10, "program")->ready = true;
	holds_exec(&holds, 30);
	holds_exec(&holds, 60);
	assert_false(holds_sum(&holds, 60).ready);
	assert_string_equal(holds_sum(&holds, 60).name, "");
	holds_free(&holds);
}

/* The tracer reads the next exec's hold before the last exec's record. */
static void test_a_hold_does_not_belong_to_the_exec_before_it(void **state)
{
	struct holds holds = {0};

	(void)state;
	hold_of(&holds, 1, 10, "first")->ready = true;
	hold_of(&holds, 2, 50, "second")->missed = true; /* by another thread, say */
	holds_find(&holds, 2)->counted = true;

	holds_exec(&holds, 30);
	assert_true(holds_sum(&holds, 30).ready);
	assert_false(holds_sum(&holds, 30).counted);

	holds_exec(&holds, 70);
	assert_false(holds_sum(&holds, 70).ready);
	assert_true(holds_sum(&holds, 70).counted);
	holds_free(&holds);
}

static void test_records_of_two_execs_in_the_wrong_order(void **state)
{
	struct holds holds = {0};

	(void)state;
	hold_of(&holds, 1, 10, "first")->missed = true;
	hold_of(&holds, 2, 50, "second")->ready = true;
	holds_exec(&holds, 70);
	assert_false(holds_sum(&holds, 70).ready);
	holds_exec(&holds, 30);
	assert_int_equal(holds.exec_ts, 70);
	assert_true(holds_sum(&holds, 70).ready);
	assert_false(holds_sum(&holds, 30).ready);
	holds_free(&holds);
}

static void test_a_hold_that_is_read_after_the_record_of_its_exec_was_missed(void **state)
{
	struct holds holds = {0};

	(void)state;
	holds_exec(&holds, 30);
	assert_int_equal(hold_of(&holds, 1, 10, "program")->exec_ts, 30);
	assert_true(holds_sum(&holds, 30).any);
	assert_false(holds_sum(&holds, 30).ready);
	assert_false(holds_sum(&holds, 0).any);
	/* The hold of the next exec was not. */
	hold_of(&holds, 2, 40, "next")->ready = true;
	holds_exec(&holds, 50);
	assert_true(holds_sum(&holds, 50).ready);
	holds_free(&holds);
}

static void test_a_hold_is_found_after_its_exec_and_counted_once(void **state)
{
	struct holds holds = {0};
	struct hold *late;

	(void)state;
	hold_of(&holds, 1, 10, "program")->ready = true;
	hold_of(&holds, 2, 20, "ld.so")->ready = true;
	holds_exec(&holds, 30);
	hold_of(&holds, 3, 40, "next")->ready = true;
	late = holds_find(&holds, 1);
	assert_non_null(late);
	assert_int_equal(late->exec_ts, 30);
	holds_count(&holds);
	assert_true(holds_find(&holds, 2)->counted);
	assert_false(holds_find(&holds, 3)->counted);
	holds_free(&holds);
}

static void test_what_the_gate_refused_to_hold_is_no_hold_to_find(void **state)
{
	struct holds holds = {0};

	(void)state;
	holds_add(&holds, 0, 10)->missed = true;
	assert_null(holds_find(&holds, 0));
	assert_false(holds_sum(&holds, 0).prepared);
	holds_free(&holds);
}

static void test_a_program_is_prepared_until_its_exec(void **state)
{
	struct holds holds = {0};

	(void)state;
	holds_add(&holds, 0, 10)->ready = true;
	hold_of(&holds, 1, 20, "command")->ready = true;
	assert_true(holds_sum(&holds, 0).prepared);
	holds_exec(&holds, 30);
	assert_true(holds_sum(&holds, 30).prepared);
	hold_of(&holds, 2, 40, "next")->ready = true;
	assert_false(holds_sum(&holds, 0).prepared);
	holds_free(&holds);
}

/* A process may execute, again and again, what is no program. */
static void test_a_thousand_execs_that_fail_are_not_all_kept(void **state)
{
	struct holds holds = {0};

	(void)state;
	hold_of(&holds, 1, 10, "late")->missed = true;
	holds_count(&holds); /* there is no program yet */
	assert_false(holds_sum(&holds, 0).counted);
	holds_find(&holds, 1)->counted = true;
	for (uint64_t i = 2; i < 1000; i++)
		hold_of(&holds, i, 10 * i, "text")->ready = true;
	assert_in_range(holds.list.len, 1, 64);
	assert_null(holds_find(&holds, 1));
	assert_non_null(holds_find(&holds, 999));
	assert_false(holds_sum(&holds, 0).ready);
	assert_true(holds_sum(&holds, 0).counted);

	/* A fact that speaks against one exec says nothing about the next. */
	holds_exec(&holds, 20000);
	for (uint64_t i = 0; i < 100; i++)
		hold_of(&holds, 2000 + i, 30000 + i, "program")->ready = true;
	holds_exec(&holds, 40000);
	assert_true(holds_sum(&holds, 40000).ready);
	assert_false(holds_sum(&holds, 40000).counted);
	holds_free(&holds);
}

/* The record of one exec may be handled when the next program is held already. */
static void test_the_next_program_is_that_of_the_first_hold_without_an_exec(void **state)
{
	struct holds holds = {0};

	(void)state;
	assert_true(holds_next_ts(&holds) == UINT64_MAX);
	hold_of(&holds, 1, 10, "program");
	hold_of(&holds, 2, 20, "ld.so");
	assert_int_equal(holds_next_ts(&holds), 10);
	holds_exec(&holds, 30);
	assert_true(holds_next_ts(&holds) == UINT64_MAX);
	hold_of(&holds, 3, 40, "next");
	hold_of(&holds, 4, 50, "ld.so");
	assert_int_equal(holds_next_ts(&holds), 40);
	holds_free(&holds);
}

/* An exec by another thread removes the probes of the process, also those for its next program. */
static void test_the_next_program_is_not_ready_if_its_probes_were_removed(void **state)
{
	struct holds holds = {0};

	(void)state;
	hold_of(&holds, 1, 10, "first")->ready = true;
	holds_exec(&holds, 30);
	hold_of(&holds, 2, 40, "next")->ready = true;
	holds_disarmed(&holds);
	holds_exec(&holds, 50);
	assert_true(holds_sum(&holds, 30).ready);
	assert_false(holds_sum(&holds, 50).ready);
	holds_free(&holds);
}

/* Its mappings and the parsed file are known before the record of its exec is read. */
static void test_a_program_that_is_armed_before_its_record_is_read_was_late(void **state)
{
	struct holds holds = {0};

	(void)state;
	hold_of(&holds, 1, 10, "first")->ready = true;
	holds_armed(&holds); /* a library of the program before */
	holds_exec(&holds, 30);
	assert_false(holds_sum(&holds, 30).armed);
	hold_of(&holds, 2, 40, "next")->missed = true;
	holds_armed(&holds);
	holds_exec(&holds, 50);
	assert_false(holds_sum(&holds, 30).armed);
	assert_true(holds_sum(&holds, 50).armed);
	holds_armed(&holds);
	hold_of(&holds, 3, 60, "third")->missed = true;
	holds_exec(&holds, 70);
	assert_false(holds_sum(&holds, 70).armed);
	holds_free(&holds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_program_is_ready_if_all_its_holds_were),
		cmocka_unit_test(test_a_program_without_holds_is_not_ready),
		cmocka_unit_test(test_a_hold_does_not_belong_to_the_exec_before_it),
		cmocka_unit_test(test_records_of_two_execs_in_the_wrong_order),
		cmocka_unit_test(test_a_hold_that_is_read_after_the_record_of_its_exec_was_missed),
		cmocka_unit_test(test_a_hold_is_found_after_its_exec_and_counted_once),
		cmocka_unit_test(test_what_the_gate_refused_to_hold_is_no_hold_to_find),
		cmocka_unit_test(test_a_program_is_prepared_until_its_exec),
		cmocka_unit_test(test_a_thousand_execs_that_fail_are_not_all_kept),
		cmocka_unit_test(test_the_next_program_is_that_of_the_first_hold_without_an_exec),
		cmocka_unit_test(test_the_next_program_is_not_ready_if_its_probes_were_removed),
		cmocka_unit_test(test_a_program_that_is_armed_before_its_record_is_read_was_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
