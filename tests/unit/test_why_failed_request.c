// SPDX-License-Identifier: Apache-2.0
/* Threads that sleep after a server has refused what they asked for. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "why_capture.h"

#define MS 1000000ull
#define STATUS_TEXT "after HTTP status 503 from 10.0.0.2:80"

/* ---- captures ---- */

/* Thread 11 of process 10 begins to run on CPU 1. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	object(capture, "socket:[77]", "tcp 10.0.0.1:5000 <-> 10.0.0.2:80");
	object(capture, "socket:[78]", "tcp 10.0.0.1:5001 <-> 10.0.0.2:80, SYN not answered");
	named(capture, 10, 10, "app");
	named(capture, 11, 10, "pusher");
	gets(capture, CAPTURE_START, 1, 0, 11, 0, 0, 0);
}

static void failed(struct capture *capture, uint64_t ts, uint32_t object, uint32_t status)
{
	struct waffle_rec_request_failure rec = {
		.rec = {ts, 11, WAFFLE_REC_REQUEST_FAILURE, 1}, .object = object, .status = status};

	capture_add(capture, &rec);
}

static void blocks(struct capture *capture, int32_t syscall, uint64_t from, uint64_t to)
{
	waits(capture, from, 1, 11, 0, S, syscall, 0, 0, 0);
	gets(capture, to, 1, 0, 11, 0, to, HARD);
}

/* What part 0 says of a sleep from 30 to 50 ms. */
static void check_sleep(struct capture *capture, const char *text)
{
	struct why *why;

	blocks(capture, NR_NANOSLEEP, 30 * MS, 50 * MS);
	why = ask(capture, 50 * MS,
		  &(struct why_query){.tid = 11, .from_ts = 20 * MS, .to_ts = 50 * MS});
	check_part(why, 0, "sleep", 20 * MS, 11, "certain", text);
	done(capture, why);
}

/* ---- tests ---- */

static void test_sleeps_after_failures_name_the_status_and_the_server(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint64_t from = 1; from <= 81; from += 10) {
		failed(&capture, from * MS - 5000, from % 20 < 10 ? 1 : 2, 503);
		blocks(&capture, NR_NANOSLEEP, from * MS, from * MS + 10 * MS - 20000);
	}
	why = ask(&capture, 91 * MS,
		  &(struct why_query){.tid = 11, .from_ts = 1 * MS, .to_ts = 91 * MS});
	check_part(why, 0, "sleep", 9 * (10 * MS - 20000), 11, "certain", STATUS_TEXT);
	check_why_text(why, "pusher (11), " STATUS_TEXT ", may poll");
	done(&capture, why);
}

static void test_a_refused_connection_has_no_status(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	failed(&capture, 30 * MS - 5000, 2, 0);
	check_sleep(&capture, "after a refused connection to 10.0.0.2:80");
}

static void test_a_socket_that_is_not_known_has_no_address(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	failed(&capture, 30 * MS - 5000, 0, 429);
	check_sleep(&capture, "after HTTP status 429");
}

static void test_the_thread_that_serves_the_address_is_named(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	object(&capture, "socket:[79]", "tcp 10.0.0.2:80 <-> 10.0.0.1:5000");
	named(&capture, 20, 20, "ingest");
	gets(&capture, CAPTURE_START + 1, 2, 0, 20, 0, 0, 0);
	waits(&capture, 1 * MS, 2, 20, 0, S, NR_RECVFROM, 1, 0, 0);
	gets(&capture, 10 * MS, 2, 0, 20, 0, 10 * MS, SOFT);
	wait_details(&capture, 1 * MS, 10 * MS, 20, 3, 0, 0);
	failed(&capture, 30 * MS - 5000, 1, 503);
	check_sleep(&capture, "after HTTP status 503 from ingest (20) at 10.0.0.2:80");
}

static void test_a_sleep_long_after_the_failure_is_a_sleep(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	failed(&capture, 9 * MS, 1, 503);
	check_sleep(&capture, "");
}

/* Another request may have been answered well meanwhile. */
static void test_a_sleep_after_another_wait_is_a_sleep(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	failed(&capture, 25 * MS, 1, 503);
	blocks(&capture, NR_RECVFROM, 26 * MS, 27 * MS);
	check_sleep(&capture, "");
}

static void test_a_lock_that_it_waits_for_meanwhile_does_not_matter(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	failed(&capture, 25 * MS, 1, 503);
	blocks(&capture, NR_FUTEX, 26 * MS, 27 * MS);
	check_sleep(&capture, STATUS_TEXT);
}

static void test_only_the_first_sleep_is_after_the_failure(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	failed(&capture, 25 * MS, 1, 503);
	blocks(&capture, NR_NANOSLEEP, 26 * MS, 27 * MS);
	check_sleep(&capture, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeps_after_failures_name_the_status_and_the_server),
		cmocka_unit_test(test_a_refused_connection_has_no_status),
		cmocka_unit_test(test_a_socket_that_is_not_known_has_no_address),
		cmocka_unit_test(test_the_thread_that_serves_the_address_is_named),
		cmocka_unit_test(test_a_sleep_long_after_the_failure_is_a_sleep),
		cmocka_unit_test(test_a_sleep_after_another_wait_is_a_sleep),
		cmocka_unit_test(test_a_lock_that_it_waits_for_meanwhile_does_not_matter),
		cmocka_unit_test(test_only_the_first_sleep_is_after_the_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
