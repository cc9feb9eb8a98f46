// SPDX-License-Identifier: Apache-2.0
/* Causes summed up over all spans of a name, and what is different about the slow ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/why_aggregate.h"
#include "why_capture.h"

static struct why_aggregate *sum_up(struct capture *capture, uint64_t end_ts)
{
	struct why_aggregate *aggregate;
	struct error err = ERROR_INIT;

	capture_load(capture, end_ts);
	capture_must(why_aggregate_new(&aggregate, capture->model, NULL, &err), err);
	for (size_t i = 0; i < aggregate->names.len; i++) {
		const struct why_name *name = &aggregate->names.data[i];
		uint64_t ns = 0, slow_ns = 0, usual_ns = 0;

		for (uint32_t j = name->sum; j < name->sum + name->sum_count; j++) {
			ns += aggregate->sums.data[j].ns;
			slow_ns += aggregate->sums.data[j].slow_ns;
			usual_ns += aggregate->sums.data[j].usual_ns;
		}
		assert_int_equal(ns, name->total_ns);
		assert_int_equal(slow_ns, name->slow_total_ns);
		assert_int_equal(usual_ns, name->usual_total_ns);
	}
	return aggregate;
}

/* Spans of thread 11: each runs 20 ns and sleeps 100; every hundredth waits for a CPU too. */
static void play(struct capture *capture, unsigned count)
{
	capture_begin(capture, true);
	named(capture, 99, 99, "backup");
	gets(capture, 1001, 1, 0, 11, 0, 0, 0);
	for (unsigned i = 0; i < count; i++) {
		uint64_t ts = 2000 + 5000ull * i;

		capture_span(capture, ts, 11, 1 + i);
		waits(capture, ts + 10, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
		gets(capture, ts + 110, 1, 0, 11, 0, ts + 110, HARD);
		if (i % 100 == 50) {
			gets(capture, ts + 112, 1, 11, 99, 0, 0, 0);
			gets(capture, ts + 3112, 1, 99, 11, 0, 0, 0);
			ts += 3000;
		}
		capture_end(capture, ts + 120, 11, 1 + i);
	}
}

static void test_causes_of_a_name_are_ranked_by_their_time(void **state)
{
	struct why_aggregate *aggregate;
	struct capture capture;
	const struct why_sum *sum;

	(void)state;
	play(&capture, 300);
	capture_span(&capture, 2000000, 11, 1000); /* has no end */
	aggregate = sum_up(&capture, 3000000);
	assert_int_equal(aggregate->names.len, 1);
	assert_string_equal(aggregate->names.data[0].name, "step");
	assert_int_equal(aggregate->names.data[0].count, 300);
	assert_int_equal(aggregate->names.data[0].total_ns, 300 * 120 + 3 * 3000);
	assert_int_equal(aggregate->names.data[0].sum_count, 3);
	sum = &aggregate->sums.data[0];
	assert_int_equal(sum[0].cause, WHY_SLEEP);
	assert_true(sum[0].own);
	assert_null(sum[0].comm);
	assert_int_equal(sum[0].instances, 300);
	assert_int_equal(sum[0].ns, 300 * 100);
	assert_int_equal(sum[1].cause, WHY_CPU_CONTENTION);
	assert_string_equal(sum[1].comm, "backup");
	assert_int_equal(sum[1].instances, 3);
	assert_int_equal(sum[1].ns, 9000);
	assert_int_equal(sum[1].grade, WHY_GRADE_CERTAIN);
	assert_int_equal(sum[2].cause, WHY_RUNNING);
	assert_int_equal(sum[2].ns, 300 * 20);
	why_aggregate_free(aggregate);
	capture_free(&capture);
}

static void test_what_is_different_about_the_slow_ones_comes_first(void **state)
{
	struct why_aggregate *aggregate;
	struct capture capture;
	const struct why_name *name;
	const struct why_sum *sum;

	(void)state;
	play(&capture, 200);
	aggregate = sum_up(&capture, 3000000);
	name = &aggregate->names.data[0];
	assert_int_equal(name->slow_from_ns, 120); /* 198 of 200 are not slower */
	assert_int_equal(name->usual_from_ns, 120);
	assert_int_equal(name->slow_count, 200);
	why_aggregate_free(aggregate);
	capture_free(&capture);
	play(&capture, 151);
	aggregate = sum_up(&capture, 3000000);
	name = &aggregate->names.data[0];
	assert_int_equal(name->slow_from_ns, 3120); /* 2 of 151 */
	assert_int_equal(name->slow_count, 2);
	assert_int_equal(name->usual_count, 149);
	sum = &aggregate->sums.data[aggregate->different.data[name->different]];
	assert_int_equal(sum->cause, WHY_CPU_CONTENTION);
	assert_int_equal(sum->slow_ns, 6000);
	assert_int_equal(sum->usual_ns, 0);
	assert_int_equal(sum->more_ns, 3000);
	sum = &aggregate->sums.data[aggregate->different.data[name->different + 1]];
	assert_int_equal(sum->more_ns, 0);
	why_aggregate_free(aggregate);
	capture_free(&capture);
}

static void test_threads_of_a_pool_are_one_culprit_for_themselves(void **state)
{
	struct why_aggregate *aggregate;
	struct capture capture;

	(void)state;
	capture_begin(&capture, true);
	for (uint32_t tid = 11; tid < 31; tid++) {
		char comm[16];

		snprintf(comm, sizeof(comm), "worker-%u", tid);
		named(&capture, tid, CAPTURE_PID, comm);
		gets(&capture, 1000 + 100 * tid, 1, 0, tid, 0, 0, 0);
		capture_span(&capture, 1010 + 100 * tid, tid, tid);
		capture_end(&capture, 1030 + 100 * tid, tid, tid);
		waits(&capture, 1040 + 100 * tid, 1, tid, 0, S, NR_FUTEX, 1, 0, 0);
	}
	aggregate = sum_up(&capture, 10000);
	assert_int_equal(aggregate->sums.len, 1);
	assert_int_equal(aggregate->sums.data[0].cause, WHY_RUNNING);
	assert_int_equal(aggregate->sums.data[0].instances, 20);
	assert_int_equal(aggregate->sums.data[0].ns, 400);
	why_aggregate_free(aggregate);
	capture_free(&capture);
}

static void test_causes_without_number_are_summed_up_as_the_rest(void **state)
{
	struct why_aggregate *aggregate;
	struct capture capture;
	uint64_t rest = 0, alone = 0;

	(void)state;
	capture_begin(&capture, true);
	gets(&capture, 1001, 1, 0, 11, 0, 0, 0);
	gets(&capture, 1002, 0, 0, 12, 0, 0, 0);
	capture_span(&capture, 1010, 11, 1);
	for (uint64_t i = 0; i < 1200; i++) {
		waits(&capture, 1020 + 100 * i, 1, 11, 0, S, NR_FUTEX, 0x1000 + 64 * i, FUTEX_MUTEX,
		      2);
		gets(&capture, 1100 + 100 * i, 1, 0, 11, 12, 1100 + 100 * i, 0);
	}
	capture_end(&capture, 200000, 11, 1);
	aggregate = sum_up(&capture, 300000);
	for (size_t i = 0; i < aggregate->sums.len; i++) {
		const struct why_sum *sum = &aggregate->sums.data[i];

		if (sum->rest)
			rest += sum->ns;
		else if (sum->cause == WHY_LOCK)
			alone += sum->ns;
	}
	assert_int_equal(rest + alone, 1200 * 80);
	assert_true(rest >= 200 * 80 && rest <= 202 * 80);
	why_aggregate_free(aggregate);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes_of_a_name_are_ranked_by_their_time),
		cmocka_unit_test(test_what_is_different_about_the_slow_ones_comes_first),
		cmocka_unit_test(test_threads_of_a_pool_are_one_culprit_for_themselves),
		cmocka_unit_test(test_causes_without_number_are_summed_up_as_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
