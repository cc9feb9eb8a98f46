// SPDX-License-Identifier: Apache-2.0
/* The causes of all spans of a name, and what the slow ones have that the others have not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analyze/why_aggregate.h"
#include "model_capture.h"

#define A 10
#define END_TS 10000000
#define CALL_NANOSLEEP 35

/* A span of a thread that runs for 1000 and sleeps for `sleep`. */
static void add_span(struct capture *capture, uint64_t *ts, uint64_t id, uint64_t sleep)
{
	struct waffle_rec_switch out = {.rec = {*ts + 500, A, WAFFLE_REC_SWITCH, 0},
					.prev_state = WAFFLE_TASK_INTERRUPTIBLE,
					.flags = WAFFLE_SWITCH_PREV_TRACED,
					.syscall = CALL_NANOSLEEP};
	struct waffle_rec_switch in = {
		.rec = {*ts + 500 + sleep, 0, WAFFLE_REC_SWITCH, 0},
		.next_tid = A,
		.waker_tid = 0,
		.wake_ts = *ts + 500 + sleep,
		.prev_state = 1,
		.flags = WAFFLE_SWITCH_NEXT_TRACED | WAFFLE_SWITCH_WOKEN |
			 WAFFLE_SWITCH_WAKER_HARDIRQ,
		.syscall = -1,
	};

	capture_span(capture, *ts, A, id);
	if (sleep) {
		capture_add(capture, &out);
		capture_add(capture, &in);
	}
	*ts += 1000 + sleep;
	capture_end(capture, *ts, A, id);
	*ts += 10;
}

static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	capture_task(capture, CAPTURE_START, A, CAPTURE_START, "a");
	capture_state(capture, CAPTURE_START, A, WAFFLE_THREAD_RUNNING, false);
}

static void test_causes_are_ranked_by_the_time_of_all_spans(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	struct error err = ERROR_INIT;
	const struct why_group *group;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 100; i++)
		add_span(&capture, &ts, 0x100 + i, i == 40 ? 250000 : 0);
	capture_span(&capture, ts, A, 0x900); /* not ended: not counted */
	capture_must(why_aggregate_new(&aggregate, capture_load(&capture, END_TS), &err), err);

	assert_int_equal(aggregate->groups.len, 1);
	group = &aggregate->groups.data[0];
	assert_string_equal(group->name, "step");
	assert_int_equal(group->count, 100);
	assert_int_equal(group->total_ns, 350000);
	assert_int_equal(group->p99_ns, 1000);
	assert_int_equal(group->causes.len, 2);
	assert_int_equal(group->causes.data[0].cause, WHY_SLEEP);
	assert_int_equal(group->causes.data[0].total_ns, 250000);
	assert_int_equal(group->causes.data[0].spans, 1);
	assert_int_equal(aggregate->model->spans.data[group->causes.data[0].most].id, 0x100 + 40);
	assert_int_equal(group->causes.data[1].cause, WHY_RUNNING);
	assert_int_equal(group->causes.data[1].total_ns, 100000);
	assert_int_equal(group->causes.data[1].spans, 100);
	why_aggregate_free(aggregate);
	capture_free(&capture);
}

static void test_what_slow_spans_have_more_of_is_told(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	struct error err = ERROR_INIT;
	const struct why_group *group;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 100; i++)
		add_span(&capture, &ts, 0x100 + i, i >= 98 ? 40000 : 2000);
	capture_must(why_aggregate_new(&aggregate, capture_load(&capture, END_TS), &err), err);

	group = &aggregate->groups.data[0];
	assert_int_equal(group->slow_count, 2);
	assert_int_equal(group->slow_total_ns, 82000);
	assert_int_equal(group->median_count, 98);
	assert_int_equal(group->causes.data[0].cause, WHY_SLEEP);
	assert_int_equal(why_group_difference(group, &group->causes.data[0]), 38000);
	assert_int_equal(group->causes.data[1].cause, WHY_RUNNING);
	assert_int_equal(why_group_difference(group, &group->causes.data[1]), 0);
	why_aggregate_free(aggregate);
	capture_free(&capture);
}

static void test_without_the_scheduler_it_says_so(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	struct error err = ERROR_INIT;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 2000, A, 0x100);
	capture_end(&capture, 3000, A, 0x100);
	assert_int_equal(why_aggregate_new(&aggregate, capture_load(&capture, END_TS), &err),
			 -ENODATA);
	assert_null(aggregate);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes_are_ranked_by_the_time_of_all_spans),
		cmocka_unit_test(test_what_slow_spans_have_more_of_is_told),
		cmocka_unit_test(test_without_the_scheduler_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
