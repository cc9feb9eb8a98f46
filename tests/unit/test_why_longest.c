// SPDX-License-Identifier: Apache-2.0
/* Which spans and waits why_longest() explains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "analyze/why/why_longest.h"
#include "util/memory.h"
#include "why_capture.h"

#define US 1000ull
#define MS 1000000ull

struct answer {
	VEC(struct why_long) list;
	uint64_t left_out;
};

static void item_see(const struct why *why, const struct why_instance *instance,
		     const struct why_long *of, void *arg)
{
	struct answer *answer = arg;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < instance->part_count; i++)
		sum += why->parts.data[instance->part + i].ns;
	assert_int_equal(sum, of->to_ts - of->from_ts);
	assert_int_equal(instance->from_ts, of->from_ts);
	assert_int_equal(instance->to_ts, of->to_ts);
	assert_int_equal(instance->span, of->span);
	assert_int_equal(instance->thread, of->thread);
	if (of->span == MODEL_NONE)
		assert_int_equal(instance->blocked_ns, sum);
	if (answer->list.len)
		assert_true(answer->list.data[answer->list.len - 1].from_ts <= of->from_ts);
	vec_add(&answer->list, *of);
}

static struct answer ask_longest(struct capture *capture, uint64_t end_ts)
{
	const struct why_query query = {0};
	struct error err = ERROR_INIT;
	struct answer answer = {0};
	struct why *why;

	capture_load(capture, end_ts);
	capture_must(why_longest(&why, capture->model, &query, item_see, &answer, &answer.left_out,
				 &err),
		     err);
	why_free(why);
	return answer;
}

static void answer_free(struct answer *answer, struct capture *capture)
{
	vec_free(&answer->list);
	capture_free(capture);
}

static uint32_t tid_of(const struct capture *capture, uint32_t thread)
{
	return capture->model->threads.data[thread].tid;
}

/* Thread 11 waits on CPU 1 from ts on, and thread 12 wakes it after `ns`. */
static void wait_for(struct capture *capture, uint64_t ts, uint64_t ns, unsigned flags)
{
	waits(capture, ts, 1, 11, 0, S, NR_READ, 3, 0, 0);
	gets(capture, ts + ns + 500, 1, 0, 11, 12, ts + ns, flags);
}

static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	named(capture, 12, 10, "other");
	gets(capture, 2 * US, 1, 0, 11, 0, 0, 0);
	gets(capture, 2 * US + 1, 2, 0, 12, 0, 0, 0);
}

static void test_only_long_waits_and_spans_are_explained(void **state)
{
	struct capture capture = {0};
	struct answer answer;

	(void)state;
	begin(&capture);
	capture_span(&capture, 5 * US, 11, 1);
	wait_for(&capture, 10 * US, MS - 1, 0);
	wait_for(&capture, 2 * MS, MS, 0);
	wait_for(&capture, 4 * MS, 3 * MS, HARD);
	capture_end(&capture, 8 * MS, 11, 1);
	capture_span(&capture, 9 * MS, 11, 2);
	capture_end(&capture, 10 * MS - 1, 11, 2);
	answer = ask_longest(&capture, 11 * MS);

	assert_int_equal(answer.list.len, 3);
	assert_int_equal(answer.left_out, 0);
	assert_int_equal(capture.model->spans.data[answer.list.data[0].span].id, 1);
	assert_int_equal(answer.list.data[1].from_ts, 2 * MS);
	assert_int_equal(answer.list.data[1].to_ts, 3 * MS);
	assert_int_equal(tid_of(&capture, answer.list.data[1].by), 12);
	assert_false(answer.list.data[1].interrupt);
	assert_int_equal(answer.list.data[1].syscall, NR_READ);
	assert_int_equal(answer.list.data[2].to_ts, 7 * MS);
	assert_true(answer.list.data[2].interrupt);
	answer_free(&answer, &capture);
}

static void test_a_wait_that_goes_on_ends_with_the_capture(void **state)
{
	struct capture capture = {0};
	struct answer answer;

	(void)state;
	begin(&capture);
	waits(&capture, 3 * MS, 1, 11, 0, S, NR_READ, 3, 0, 0);
	answer = ask_longest(&capture, 5 * MS);

	assert_int_equal(answer.list.len, 1);
	assert_int_equal(answer.list.data[0].from_ts, 3 * MS);
	assert_int_equal(answer.list.data[0].to_ts, 5 * MS);
	assert_int_equal(answer.list.data[0].by, MODEL_NONE);
	answer_free(&answer, &capture);
}

/* Many idle threads, of which each waits while a busy one is switched very often. */
static void test_waits_that_are_too_much_work_are_left_out_and_counted(void **state)
{
	enum { IDLE = 30, TURNS = 50000 };
	struct capture capture = {0};
	struct answer answer;
	uint64_t ts = 10 * MS;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < IDLE; i++) {
		named(&capture, 13 + i, 10, "idle");
		gets(&capture, 3 * US + 2 * i, 3, 0, 13 + i, 0, 0, 0);
		waits(&capture, 3 * US + 2 * i + 1, 3, 13 + i, 0, S, NR_READ, 3, 0, 0);
	}
	wait_for(&capture, 5 * MS, 2 * MS, 0);
	for (unsigned i = 0; i < TURNS; i++, ts += 2 * US)
		wait_for(&capture, ts, US, 0);
	answer = ask_longest(&capture, ts);

	assert_in_range(answer.left_out, 1, IDLE - 1);
	assert_int_equal(answer.list.len + answer.left_out, IDLE + 1);
	assert_int_equal(answer.list.data[answer.list.len - 1].from_ts, 5 * MS);
	answer_free(&answer, &capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_long_waits_and_spans_are_explained),
		cmocka_unit_test(test_a_wait_that_goes_on_ends_with_the_capture),
		cmocka_unit_test(test_waits_that_are_too_much_work_are_left_out_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
