// SPDX-License-Identifier: Apache-2.0
/* Sleeps that take longer than the thread has asked for. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "why_capture.h"

#define MS 1000000ull
#define SLACK_TEXT "sleeps longer than asked, by its timer slack of 40.0 ms"

/* Thread 11 sleeps ten times for 40 ms; it has asked for 1 to 10 ms. */
static struct why *sleeps(struct capture *capture, bool late)
{
	capture_begin(capture, true);
	named(capture, 10, 10, "app");
	named(capture, 11, 10, "meter");
	gets(capture, CAPTURE_START, 1, 0, 11, 0, 0, 0);
	for (uint64_t i = 1; i <= 10; i++) {
		struct waffle_rec_late_sleep rec = {
			.rec = {(41 * i + 40) * MS, 11, WAFFLE_REC_LATE_SLEEP, 1},
			.from_ts = 41 * i * MS,
			.asked_ns = i * MS,
			.slack_ns = 40 * MS};

		waits(capture, 41 * i * MS, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
		if (late)
			capture_add(capture, &rec);
		gets(capture, rec.rec.ts, 1, 0, 11, 0, rec.rec.ts, HARD);
	}
	return ask(capture, 460 * MS,
		   &(struct why_query){.tid = 11, .from_ts = 41 * MS, .to_ts = 451 * MS});
}

static void test_sleeps_that_the_timer_slack_makes_longer_say_so(void **state)
{
	struct capture capture;
	struct why *why = sleeps(&capture, true);

	(void)state;
	check_part(why, 0, "sleep", 400 * MS, 11, "certain", SLACK_TEXT);
	assert_int_equal(part_of(why, 0)->polls.sleeps, 0);
	check_why_text(why, "meter (11), " SLACK_TEXT);
	check_why_text(why, "nanosleep: asked for 1.00 ms [1], the longest of 10 stretches");
	done(&capture, why);
}

static void test_sleeps_as_long_as_asked_for_do_not(void **state)
{
	struct capture capture;
	struct why *why = sleeps(&capture, false);

	(void)state;
	check_part(why, 0, "sleep", 400 * MS, 11, "certain", "");
	done(&capture, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeps_that_the_timer_slack_makes_longer_say_so),
		cmocka_unit_test(test_sleeps_as_long_as_asked_for_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
