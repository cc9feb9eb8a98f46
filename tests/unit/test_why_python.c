// SPDX-License-Identifier: Apache-2.0
/* Waits of Python programs: which are for the interpreter's lock, and which are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_names.h"
#include "why_capture.h"

#define GIL 0x7f00  /* in the interpreter's state, as GIL + 4 */
#define HEAP 0x9f00 /* elsewhere */
#define GIL_TEXT "GIL (_PyRuntime)"

static const char *variable(void *arg, uint32_t pid, uint64_t ts, uint64_t address)
{
	(void)ts;
	assert_ptr_equal(arg, variable);
	assert_int_equal(pid, CAPTURE_PID);
	return address >= GIL && address < GIL + 8 ? "_PyRuntime+0x1b0" : NULL;
}

static bool has_variable(void *arg, const struct store_mapping *mapping, const char *name)
{
	assert_ptr_equal(arg, variable);
	return !strcmp(name, "_PyRuntime") && strstr(mapping->path, "libpython3");
}

static struct stack_names known = {
	.arg = variable, .variable = variable, .has_variable = has_variable};

/* Thread 11, in a span from 1010 on CPU 1, and thread 12, which computes on CPU 2 until 1300. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	mapping(capture, 0x1000, 0x2000, "/usr/bin/python3.11");
	mapping(capture, 0x3000, 0x4000, "/usr/lib/libpython3.11.so.1.0");
	named(capture, 11, CAPTURE_PID, "main");
	named(capture, 12, CAPTURE_PID, "other");
	gets(capture, 1005, 1, 0, 11, 0, 0, 0);
	gets(capture, 1006, 2, 0, 12, 0, 0, 0);
	capture_span(capture, 1010, 11, 1);
}

static struct why *ask_python(struct capture *capture, struct stack_names *names)
{
	waits(capture, 1300, 2, 12, 0, S, NR_FUTEX, 0x5500, FUTEX_COND, 0);
	return ask(capture, 1400, &(struct why_query){.name = "step", .names = names});
}

/* Thread 11 waits from 1020 to 1200. */
static void wait_at(struct capture *capture, uint64_t address, uint64_t op, uint32_t waker,
		    unsigned flags)
{
	waits(capture, 1020, 1, 11, 0, S, NR_FUTEX, address, op, 0);
	gets(capture, 1200, 1, 0, 11, waker, 1200, flags);
	capture_end(capture, 1210, 11, 1);
}

static void test_timeout_that_nobody_cut_short_is_a_timer_not_the_interpreter_lock(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_at(&capture, HEAP, FUTEX_COND, 0, HARD);
	why = ask_python(&capture, &known);
	check_part(why, 0, "timer", 180, 11, "likely", "futex 0x9f00");
	done(&capture, why);
}

static void test_event_that_a_thread_sets_without_the_lock_is_its_work(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_at(&capture, HEAP, FUTEX_COND, 12, 0);
	why = ask_python(&capture, &known);
	check_part(why, 0, "user-work", 180, 12, "likely", "futex 0x9f00");
	done(&capture, why);
}

static void test_interpreter_lock_is_known_by_its_variable(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_at(&capture, GIL, FUTEX_COND, 0, HARD);
	why = ask_python(&capture, &known);
	check_part(why, 0, "gil", 180, 12, "likely", GIL_TEXT);
	done(&capture, why);
	/* Its mutex, and the condition variable without a timeout, are parts of it. */
	begin(&capture);
	wait_at(&capture, GIL, FUTEX_COND | 0x100, 12, 0);
	why = ask_python(&capture, &known);
	check_part(why, 0, "gil", 180, 12, "likely", GIL_TEXT);
	done(&capture, why);
}

/* Thread 13 waits in a system call until just before it wakes thread 11. */
static void waker_waits(struct capture *capture, uint16_t task_state, int syscall)
{
	begin(capture);
	named(capture, 13, CAPTURE_PID, "waker");
	gets(capture, 1007, 3, 0, 13, 0, 0, 0);
	waits(capture, 1015, 3, 13, 0, task_state, syscall, 0, 1, 0);
	waits(capture, 1020, 1, 11, 0, S, NR_FUTEX, GIL, FUTEX_COND, 0);
	gets(capture, 1190, 3, 0, 13, 0, 1190, HARD);
	gets(capture, 1200, 1, 0, 11, 13, 1200, 0);
	capture_end(capture, 1210, 11, 1);
}

/* It gave the lock back before it waited in poll(), and took it only at the end. */
static void test_a_waker_that_waited_without_the_interpreter_lock_did_not_keep_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	waker_waits(&capture, S, NR_POLL);
	why = ask_python(&capture, &known);
	check_part(why, 0, "gil", 180, 12, "likely", GIL_TEXT);
	done(&capture, why);
}

/* An extension may have kept it while it waited for a disk. */
static void test_a_waker_that_may_have_kept_the_interpreter_lock_is_to_blame(void **state)
{
	static const struct {
		uint16_t task_state;
		int syscall;
	} rows[] = {{D, NR_READ}, {D, NR_NONE}, {S, NR_IOCTL}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		waker_waits(&capture, rows[i].task_state, rows[i].syscall);
		why = ask_python(&capture, &known);
		for (uint32_t k = 0; k < why->instances.data[0].part_count; k++)
			assert_string_not_equal(
				model_thread_name(why->model, part_of(why, k)->thread), "other");
		done(&capture, why);
	}
}

static void test_both_futexes_of_the_interpreter_lock_are_one_cause(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t ts = 1020 + 40 * i;

		waits(&capture, ts, 1, 11, 0, S, NR_FUTEX, GIL + 4 * (i % 2), FUTEX_COND, 0);
		gets(&capture, ts + 30, 1, 0, 11, 0, ts + 30, HARD);
	}
	capture_end(&capture, 1210, 11, 1);
	why = ask_python(&capture, &known);
	check_part(why, 0, "gil", 120, 12, "likely", GIL_TEXT);
	assert_int_equal(part_of(why, 0)->stretches, 4);
	assert_int_equal(why->instances.data[0].part_count, 2);
	done(&capture, why);
}

static void test_without_the_variable_a_timed_wait_is_likely_the_interpreter_lock(void **state)
{
	static struct stack_names unknown = {.arg = variable, .variable = variable};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_at(&capture, HEAP, FUTEX_COND, 0, HARD);
	why = ask_python(&capture, &unknown);
	check_part(why, 0, "gil", 180, 12, "likely", "futex 0x9f00");
	done(&capture, why);
	begin(&capture);
	wait_at(&capture, HEAP + 4, FUTEX_COND, 0, HARD);
	why = ask_python(&capture, NULL);
	check_part(why, 0, "gil", 180, 12, "likely", "futex 0x9f00");
	done(&capture, why);
}

static void
test_without_the_variable_a_long_timeout_is_not_that_of_the_interpreter_lock(void **state)
{
	const uint64_t end = 1020 + 30000000;
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, HEAP, FUTEX_COND, 0);
	gets(&capture, end, 1, 0, 11, 0, end, HARD);
	capture_end(&capture, end + 10, 11, 1);
	waits(&capture, end + 20, 2, 12, 0, S, NR_FUTEX, 0x5500, FUTEX_COND, 0);
	why = ask(&capture, end + 30, &(struct why_query){.name = "step"});
	check_part(why, 0, "timer", end - 1020, 11, "likely", "futex 0x9f00");
	done(&capture, why);
}

/* A word of the value 2 is a lock of its own, perhaps beside another one. */
static const char *queue_ready(void *arg, uint32_t pid, uint64_t ts, uint64_t address)
{
	(void)arg;
	(void)pid;
	(void)ts;
	return address == 0x9f00 ? "queue_ready" : NULL;
}

static void test_another_variable_s_timed_wait_is_not_the_interpreter_lock(void **state)
{
	struct stack_names others = {.variable = queue_ready};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_at(&capture, 0x9f00, FUTEX_COND, 12, 0);
	why = ask_python(&capture, &others);
	check_part(why, 0, "user-work", 180, 12, "likely", "futex 0x9f00 (queue_ready)");
	done(&capture, why);
}

static void test_futexes_of_a_condition_variable_have_one_text(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_at(&capture, HEAP + 12, FUTEX_COND, 0, HARD);
	why = ask_python(&capture, &known);
	check_part(why, 0, "timer", 180, 11, "likely", "futex 0x9f08");
	done(&capture, why);
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, HEAP + 12, FUTEX_COND, 2);
	gets(&capture, 1200, 1, 0, 11, 0, 1200, HARD);
	capture_end(&capture, 1210, 11, 1);
	why = ask_python(&capture, &known);
	check_part(why, 0, "timer", 180, 11, "likely", "futex 0x9f0c");
	done(&capture, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_timeout_that_nobody_cut_short_is_a_timer_not_the_interpreter_lock),
		cmocka_unit_test(test_event_that_a_thread_sets_without_the_lock_is_its_work),
		cmocka_unit_test(test_interpreter_lock_is_known_by_its_variable),
		cmocka_unit_test(
			test_a_waker_that_waited_without_the_interpreter_lock_did_not_keep_it),
		cmocka_unit_test(test_a_waker_that_may_have_kept_the_interpreter_lock_is_to_blame),
		cmocka_unit_test(test_both_futexes_of_the_interpreter_lock_are_one_cause),
		cmocka_unit_test(
			test_without_the_variable_a_timed_wait_is_likely_the_interpreter_lock),
		cmocka_unit_test(
			test_without_the_variable_a_long_timeout_is_not_that_of_the_interpreter_lock),
		cmocka_unit_test(test_another_variable_s_timed_wait_is_not_the_interpreter_lock),
		cmocka_unit_test(test_futexes_of_a_condition_variable_have_one_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
