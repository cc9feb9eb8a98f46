// SPDX-License-Identifier: Apache-2.0
/* Waits for GPUs and other ranks, and the numbers of records: four times as much of anything takes
 * about four times as many steps of a search (see test_why_growth.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu_capture.h"

#define TIMES 4
#define FEW 250
/* Twice the steps of a linear search, and half of those of a quadratic one. */
#define GROWTH_MAX (2 * TIMES)

static uint64_t end(struct capture *capture, uint64_t ts)
{
	struct error err = ERROR_INIT;
	struct why *why;
	uint64_t searched;

	capture_end(capture, ts, 11, 1);
	why = ask_span(capture, ts + 1000);
	capture_must(why_records_find(why, &err), err);
	searched = why->searched;
	done(capture, why);
	return searched;
}

static void check_growth(uint64_t (*work)(uint32_t count))
{
	uint64_t few = work(FEW), many = work(FEW * TIMES);

	assert_true(few > 0);
	if (many > GROWTH_MAX * few)
		fail_msg("%u take %llu steps, %u take %llu", FEW, (unsigned long long)few,
			 FEW * TIMES, (unsigned long long)many);
}

/* The innermost of many spans waits for the GPU, and each of them begins with a launch. */
static uint64_t launches_in_nested_spans(uint32_t count)
{
	struct capture capture;
	uint64_t ts = 1100;

	begin(&capture);
	for (uint32_t i = 0; i < count; i++) {
		capture_hit(&capture, ts++, 11, CALL_FORWARD, 0x10000 + i, i ? 0xffff + i : 1, 0,
			    NULL);
		launches(&capture, ts++, 11, GEMM, STREAM);
	}
	syncs(&capture, ts, ts + 1000, STREAM);
	ts += 1100;
	for (uint32_t i = count; i--;)
		ends(&capture, ts++, 11, CALL_FORWARD, 0x10000 + i);
	return end(&capture, ts);
}

static void test_launches_in_deeply_nested_spans(void **state)
{
	(void)state;
	check_growth(launches_in_nested_spans);
}

/* The innermost span outlives all the calls around it. */
static uint64_t nested_calls(uint32_t count)
{
	struct capture capture;
	uint64_t ts = 1100, below = 0x10000 + count;

	begin(&capture);
	launches(&capture, ts++, 11, GEMM, STREAM);
	for (uint32_t i = 0; i < count; i++)
		capture_hit(&capture, ts++, 11, CALL_FREE, 0x10000 + i, i ? 0xffff + i : 1, 1,
			    &(const uint64_t){0});
	capture_hit(&capture, ts++, 11, CALL_FORWARD, below, below - 1, 0, NULL);
	for (uint32_t i = 0; i < count; i++)
		returns(&capture, ts++, 11, CALL_FREE, 0x10000 + i);
	for (uint32_t i = 0; i < count; i++, ts += 10)
		blocks(&capture, ts, ts + 5);
	ends(&capture, ts++, 11, CALL_FORWARD, below);
	return end(&capture, ts);
}

static void test_deeply_nested_calls(void **state)
{
	(void)state;
	check_growth(nested_calls);
}

/* Nothing shows that a call such as cudaFree() has waited. */
static uint64_t calls_that_may_wait(uint32_t count)
{
	struct capture capture;
	uint64_t ts = 1100;

	begin(&capture);
	for (uint32_t i = 0; i < count; i++, ts += 20) {
		launches(&capture, ts, 11, GEMM, STREAM);
		hit(&capture, ts + 1, 11, CALL_FREE, 0x10000 + i, WORDS(0));
		blocks(&capture, ts + 2, ts + 10);
		returns(&capture, ts + 11, 11, CALL_FREE, 0x10000 + i);
	}
	return end(&capture, ts);
}

static void test_calls_that_may_wait_for_all_work_before(void **state)
{
	(void)state;
	check_growth(calls_that_may_wait);
}

/* Rank 1 comes late to each of the collectives that one call of rank 0 waits for. */
static uint64_t late_ranks(uint32_t count)
{
	struct capture capture;
	uint64_t ts = 1100;

	begin_two_ranks(&capture);
	for (uint32_t i = 0; i < count; i++, ts += 2)
		reduces(&capture, ts, 11, 1 + i, 2);
	hit(&capture, ts, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	waits(&capture, ts++, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	for (uint32_t i = 0; i < count; i++, ts += 2)
		reduces(&capture, ts, 21, 1 + i, 2);
	gets(&capture, ts, 1, 0, 11, 15, ts, 0);
	returns(&capture, ts + 10, 11, CALL_SYNC, SYNC_ID);
	return end(&capture, ts + 20);
}

static void test_collectives_to_which_a_rank_comes_late(void **state)
{
	(void)state;
	check_growth(late_ranks);
}

/* A group of calls, and a wait in each. */
static uint64_t group_of_calls(uint32_t count)
{
	struct capture capture;
	uint64_t ts = 1100;

	begin_two_ranks(&capture);
	hit(&capture, ts, 11, CALL_GROUP_START, ts, 0, NULL);
	ts += 5;
	for (uint32_t i = 0; i < count; i++, ts += 10) {
		hit(&capture, ts, 11, CALL_ALL_REDUCE, ts << 8 | 11,
		    WORDS(1024, 7, COMM, 0, 2, 1 + i, COMM_STREAM));
		blocks(&capture, ts + 1, ts + 5);
		returns(&capture, ts + 6, 11, CALL_ALL_REDUCE, ts << 8 | 11);
	}
	hit(&capture, ts, 11, CALL_GROUP_END, ts, 0, NULL);
	returns(&capture, ts + 10, 11, CALL_GROUP_END, ts);
	return end(&capture, ts + 20);
}

static void test_a_group_of_many_calls(void **state)
{
	(void)state;
	check_growth(group_of_calls);
}

static uint64_t communicators(uint32_t count)
{
	struct capture capture;
	uint64_t ts = 1100;

	begin(&capture);
	for (uint32_t i = 0; i < count; i++, ts += 20) {
		hit(&capture, ts, 11, CALL_COMM_INIT, 0x10000 + i, WORDS(0, 2, 0));
		blocks(&capture, ts + 1, ts + 10);
		returns(&capture, ts + 11, 11, CALL_COMM_INIT, 0x10000 + i);
	}
	return end(&capture, ts);
}

static void test_communicators_one_after_the_other(void **state)
{
	(void)state;
	check_growth(communicators);
}

/* All ranks but one make calls of a collective; the last one is looked for. */
static uint64_t ranks_of_a_collective(uint32_t count)
{
	struct capture capture;
	uint64_t ts = 1100;
	const uint64_t comm = COMM;

	begin(&capture);
	for (uint32_t i = 0; i < count; i++) {
		hit(&capture, ts, 11, CALL_COMM_INIT, 0x100000 + i, WORDS(i, count + 1));
		call_return_in(&capture, 10, ts + 1, 11, CALL_COMM_INIT, 0x100000 + i, 1, &comm);
		ts += 2;
	}
	for (uint32_t i = 0; i < count; i++) {
		hit(&capture, ts, 11, CALL_ALL_REDUCE, 0x200000 + i,
		    WORDS(1024, 7, COMM, i, count + 1, 1, COMM_STREAM));
		returns(&capture, ts + 1, 11, CALL_ALL_REDUCE, 0x200000 + i);
		ts += 2;
	}
	syncs(&capture, ts, ts + 100, COMM_STREAM);
	return end(&capture, ts + 200);
}

static void test_the_missing_rank_of_a_large_collective(void **state)
{
	(void)state;
	check_growth(ranks_of_a_collective);
}

/* Many steps rest on records of one time, at which there are many others. */
static uint64_t records_at_once(uint32_t count)
{
	struct capture capture;
	uint64_t ts = 1100;

	begin(&capture);
	for (uint32_t i = 0; i < count; i++)
		span(&capture, 1010, 21, CALL_FORWARD, 0x10000 + i);
	for (uint32_t i = 0; i < count; i++, ts += 20) {
		waits(&capture, ts, 1, 11, 0, S, NR_FUTEX, 0x10000 + 64 * (uint64_t)i, FUTEX_COND,
		      0);
		gets(&capture, ts + 10, 1, 0, 11, 60, ts + 10, 0);
	}
	return end(&capture, ts);
}

static void test_many_records_at_one_time(void **state)
{
	(void)state;
	check_growth(records_at_once);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launches_in_deeply_nested_spans),
		cmocka_unit_test(test_deeply_nested_calls),
		cmocka_unit_test(test_calls_that_may_wait_for_all_work_before),
		cmocka_unit_test(test_collectives_to_which_a_rank_comes_late),
		cmocka_unit_test(test_a_group_of_many_calls),
		cmocka_unit_test(test_communicators_one_after_the_other),
		cmocka_unit_test(test_the_missing_rank_of_a_large_collective),
		cmocka_unit_test(test_many_records_at_one_time),
	};

	return cmocka_run_group_tests_name("why gpu growth", tests, NULL, NULL);
}
