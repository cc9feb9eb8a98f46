// SPDX-License-Identifier: Apache-2.0
/* Threads that try to lock a file, are refused, and sleep to try again. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "why_capture.h"

#define MS 1000000ull
#define FILE_TEXT "/data/ts.db (ext4)"

/* ---- captures ---- */

/* Thread 11 of process 10 begins to run on CPU 1. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	file_on(capture, "/data/ts.db", 8);
	named(capture, 10, 10, "app");
	named(capture, 11, 10, "poller");
	gets(capture, CAPTURE_START, 1, 0, 11, 0, 0, 0);
}

static void refused(struct capture *capture, uint64_t ts, uint32_t holder, const char *comm)
{
	struct waffle_rec_lock_refusal rec = {.rec = {ts, 11, WAFFLE_REC_LOCK_REFUSAL, 1},
					      .ino = 77,
					      .dev = 8,
					      .object = 1,
					      .holder_pid = holder};

	snprintf(rec.holder_comm, sizeof(rec.holder_comm), "%s", comm);
	capture_add(capture, &rec);
}

static void sleeps(struct capture *capture, uint64_t from, uint64_t to)
{
	waits(capture, from, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(capture, to, 1, 0, 11, 0, to, HARD);
}

static struct why *ask_poller(struct capture *capture, uint64_t from_ms, uint64_t to_ms)
{
	return ask(capture, to_ms * MS,
		   &(struct why_query){.tid = 11, .from_ts = from_ms * MS, .to_ts = to_ms * MS});
}

/* The thread is refused at `refused_ts` and sleeps from the ms `from` to `to`: what part 0 says. */
static void check_sleep(uint64_t refused_ts, uint64_t from, uint64_t to, uint32_t holder,
			const char *cause, uint32_t culprit, const char *grade)
{
	bool is_lock = !strcmp(cause, "lock");
	struct capture capture;
	struct why *why;

	begin(&capture);
	refused(&capture, refused_ts, holder, "holder");
	sleeps(&capture, from * MS, to * MS);
	why = ask_poller(&capture, from, to);
	check_part(why, 0, cause, (to - from) * MS, culprit, grade, is_lock ? FILE_TEXT : "");
	done(&capture, why);
}

/* ---- tests ---- */

static void test_sleeps_between_tries_are_for_the_lock_of_the_file(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint64_t from = 1; from <= 81; from += 10) {
		refused(&capture, from * MS - 5000, 60, "rollupd");
		sleeps(&capture, from * MS, from * MS + 10 * MS - 20000);
	}
	why = ask_poller(&capture, 1, 91);
	check_part(why, 0, "lock", 9 * (10 * MS - 20000), 60, "likely", FILE_TEXT);
	assert_int_equal(part_of(why, 0)->polls.sleeps, 9);
	check_why_text(why, "rollupd (60), " FILE_TEXT);
	check_why_text(why, "was refused the lock of " FILE_TEXT ", which rollupd (60) had");
	done(&capture, why);
}

static void test_the_one_thread_of_a_traced_holder_is_followed(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 20, 20, "writer");
	gets(&capture, CAPTURE_START, 2, 0, 20, 0, 0, 0);
	refused(&capture, MS - 5000, 20, "writer");
	sleeps(&capture, MS, 50 * MS);
	waits(&capture, 51 * MS, 2, 20, 0, S, NR_READ, 1, 0, 0);
	why = ask_poller(&capture, 1, 50);
	check_part(why, 0, "lock", 49 * MS, 20, "likely", FILE_TEXT);
	assert_int_equal(part_of(why, 0)->step_count, 2);
	check_why_text(why, "← locked by writer (20)");
	done(&capture, why);
}

/* It may have released the lock before it sleeps. */
static void test_a_holder_that_sleeps_had_locked_the_file_before(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 20, 20, "writer");
	gets(&capture, CAPTURE_START, 2, 0, 20, 0, 0, 0);
	refused(&capture, MS - 5000, 20, "writer");
	waits(&capture, MS, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	waits(&capture, 2 * MS, 2, 20, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 48 * MS, 2, 0, 20, 0, 48 * MS, HARD);
	gets(&capture, 50 * MS, 1, 0, 11, 0, 50 * MS, HARD);
	waits(&capture, 51 * MS, 2, 20, 0, S, NR_READ, 1, 0, 0);
	why = ask_poller(&capture, 1, 50);
	check_part(why, 0, "sleep", 46 * MS, 20, "likely", "");
	check_why_text(why, "writer (20), had locked " FILE_TEXT "\n");
	done(&capture, why);
}

/* Any of them may be the one. */
static void test_of_several_threads_of_a_traced_holder_none_is_followed(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 20, 20, "writer");
	named(&capture, 21, 20, "writer-2");
	gets(&capture, CAPTURE_START, 2, 0, 20, 0, 0, 0);
	refused(&capture, MS - 5000, 20, "writer");
	sleeps(&capture, MS, 50 * MS);
	why = ask_poller(&capture, 1, 50);
	check_part(why, 0, "lock", 49 * MS, 20, "likely", FILE_TEXT);
	assert_int_equal(part_of(why, 0)->step_count, 1);
	done(&capture, why);
}

/* A process that has the number now would be blamed for what another one did. */
static void test_a_process_that_has_the_holders_number_now_is_not_named(void **state)
{
	struct waffle_rec_lock_refusal rec = {.rec = {MS - 5000, 11, WAFFLE_REC_LOCK_REFUSAL, 1},
					      .object = 1,
					      .holder_pid = 60,
					      .flags = WAFFLE_LOCK_FLOCK | WAFFLE_LOCK_FORMER};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 60, 60, "postgres-main");
	capture_add(&capture, &rec);
	sleeps(&capture, MS, 50 * MS);
	why = ask_poller(&capture, 1, 50);
	check_part(why, 0, "lock", 49 * MS, 0, "likely", FILE_TEXT);
	check_why_text(why, "was refused the lock of " FILE_TEXT
			    ", taken by a process with the number 60, which does not have the "
			    "file open any more");
	done(&capture, why);
}

/* They are locks of two open files of the process. */
static void test_a_lock_of_the_own_process_has_no_culprit(void **state)
{
	(void)state;
	check_sleep(MS - 5000, 1, 50, 10, "lock", 0, "likely");
}

static void test_a_lock_of_an_unknown_holder_has_no_culprit(void **state)
{
	(void)state;
	check_sleep(MS - 5000, 1, 50, 0, "lock", 0, "likely");
}

static void test_a_sleep_long_after_the_refusal_is_a_sleep(void **state)
{
	(void)state;
	check_sleep(29 * MS, 30, 50, 60, "lock", 60, "likely");
	check_sleep(19 * MS, 30, 50, 60, "sleep", 11, "certain");
}

static void test_a_sleep_of_seconds_is_a_sleep(void **state)
{
	(void)state;
	check_sleep(MS - 5000, 1, 1001, 60, "lock", 60, "likely");
	check_sleep(MS - 5000, 1, 1201, 60, "sleep", 11, "certain");
}

/* It is not refused again before it sleeps again. */
static void test_only_the_first_sleep_after_a_refusal_is_for_the_lock(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	refused(&capture, MS - 5000, 60, "rollupd");
	sleeps(&capture, MS, 2 * MS);
	sleeps(&capture, 3 * MS, 9 * MS);
	why = ask_poller(&capture, 3, 9);
	check_part(why, 0, "sleep", 6 * MS, 11, "certain", "");
	done(&capture, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeps_between_tries_are_for_the_lock_of_the_file),
		cmocka_unit_test(test_the_one_thread_of_a_traced_holder_is_followed),
		cmocka_unit_test(test_a_holder_that_sleeps_had_locked_the_file_before),
		cmocka_unit_test(test_of_several_threads_of_a_traced_holder_none_is_followed),
		cmocka_unit_test(test_a_process_that_has_the_holders_number_now_is_not_named),
		cmocka_unit_test(test_a_lock_of_the_own_process_has_no_culprit),
		cmocka_unit_test(test_a_lock_of_an_unknown_holder_has_no_culprit),
		cmocka_unit_test(test_a_sleep_long_after_the_refusal_is_a_sleep),
		cmocka_unit_test(test_a_sleep_of_seconds_is_a_sleep),
		cmocka_unit_test(test_only_the_first_sleep_after_a_refusal_is_for_the_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
