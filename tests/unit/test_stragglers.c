// SPDX-License-Identifier: Apache-2.0
/* The ranks that made others wait in collectives and messages, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "analyze/stragglers.h"

#define COMM 0xc0ffee
#define STREAM 0xa
#define END 100000

/* Rank r is process and thread 100 + r. */
static uint32_t pid_of(uint32_t rank)
{
	return 100 + rank;
}

static void call(struct capture *capture, uint32_t rank, uint32_t site, uint64_t from, uint64_t to,
		 uint64_t id, unsigned count, const uint64_t *words)
{
	call_hit_in(capture, pid_of(rank), from, pid_of(rank), site, id, count, words);
	call_return_in(capture, pid_of(rank), to, pid_of(rank), site, id, 0, NULL);
}

/* The first ranks of a communicator are traced. */
static void begin_traced(struct capture *capture, uint32_t traced, uint32_t nranks)
{
	capture_begin(capture, false);
	calls_add_sites(capture);
	for (uint32_t i = 0; i < traced; i++) {
		const uint64_t words[] = {i, nranks}, comm = COMM;

		call_hit_in(capture, pid_of(i), 1001, pid_of(i), CALL_COMM_INIT, 0x900 + i, 2,
			    words);
		call_return_in(capture, pid_of(i), 1002, pid_of(i), CALL_COMM_INIT, 0x900 + i, 1,
			       &comm);
	}
}

static void begin(struct capture *capture, uint32_t nranks)
{
	begin_traced(capture, nranks, nranks);
}

/* A collective that the rank enters at `from`; it synchronises until `to`. */
static void meets(struct capture *capture, uint32_t site, uint32_t rank, uint32_t nranks,
		  uint64_t seq, uint64_t from, uint64_t to)
{
	const uint64_t words[] = {1024, 7, COMM, rank, nranks, seq, STREAM}, stream = STREAM;
	uint64_t id = (seq + 1) << 16 | (uint64_t)site << 8 | rank << 1;

	call(capture, rank, site, from, from + 1, id, 7, words);
	call(capture, rank, CALL_SYNC, from + 2, to, id + 1, 1, &stream);
}

static struct stragglers *made(struct capture *capture, uint32_t waits)
{
	capture_load(capture, END);
	return stragglers_new(capture->model, waits);
}

static void done(struct stragglers *stragglers, struct capture *capture)
{
	stragglers_free(stragglers);
	capture_free(capture);
}

static void test_last_rank_is_blamed_for_the_time_of_all_others(void **state)
{
	struct stragglers *stragglers;
	struct capture capture;

	(void)state;
	begin(&capture, 3);
	/* Rank 2 comes last twice, rank 0 once. The transfer takes 50. */
	for (uint32_t i = 0; i < 3; i++)
		meets(&capture, CALL_ALL_REDUCE, i, 3, 0, i == 2 ? 3000 : 2000 + 100 * i, 3050);
	for (uint32_t i = 0; i < 3; i++)
		meets(&capture, CALL_ALL_REDUCE, i, 3, 1, i == 2 ? 5000 : 4000, 5050);
	for (uint32_t i = 0; i < 3; i++)
		meets(&capture, CALL_ALL_REDUCE, i, 3, 2, i == 0 ? 6500 : 6000, 6550);
	stragglers = made(&capture, 2);
	assert_int_equal(stragglers->ranks.len, 3);
	assert_int_equal(stragglers->ranks.data[0].rank, 2);
	assert_int_equal(stragglers->ranks.data[0].made_wait_ns, 1000 + 900 + 2 * 1000);
	assert_int_equal(stragglers->ranks.data[0].last, 2);
	assert_int_equal(stragglers->ranks.data[0].calls, 3);
	assert_int_equal(stragglers->ranks.data[0].waited_ns, 500);
	assert_int_equal(stragglers->ranks.data[0].unsure_ns, 0);
	assert_int_equal(stragglers->ranks.data[1].rank, 0);
	assert_int_equal(stragglers->ranks.data[1].made_wait_ns, 1000);
	assert_int_equal(stragglers->ranks.data[1].waited_ns, 2000);
	assert_int_equal(stragglers->ranks.data[2].made_wait_ns, 0);

	assert_int_equal(stragglers->groups.len, 1);
	assert_string_equal(stragglers->groups.data[0].name, "ncclAllReduce");
	assert_int_equal(stragglers->groups.data[0].count, 3);
	assert_int_equal(stragglers->groups.data[0].known, 3);
	assert_int_equal(stragglers->groups.data[0].nranks, 3);
	assert_int_equal(stragglers->groups.data[0].transfer_ns, 9 * 50);
	assert_int_equal(stragglers->groups.data[0].waiting_ns, 1900 + 2000 + 1000);
	assert_int_equal(stragglers->groups.data[0].worst, 0);
	assert_int_equal(stragglers->groups.data[0].worst_ns, 3900);

	assert_int_equal(stragglers->waits.len, 2);
	assert_int_equal(stragglers->waits.data[0].made_wait_ns, 2000);
	assert_int_equal(stragglers->waits.data[0].longest_ns, 1000);
	assert_int_equal(stragglers->waits.data[0].transfer_ns, 50);
	assert_int_equal(stragglers->waits.data[0].ts, 5000);
	assert_int_equal(stragglers->waits.data[0].rank, 0);
	assert_true(stragglers->waits.data[0].sure);
	assert_int_equal(stragglers->waits.data[1].made_wait_ns, 1900);
	done(stragglers, &capture);
}

static void test_root_of_a_broadcast_makes_others_wait_and_waits_for_none(void **state)
{
	struct stragglers *stragglers;
	struct capture capture;

	(void)state;
	begin(&capture, 3);
	/* Rank 0 is the root. Rank 2 comes after it and finds the data there. */
	for (uint32_t i = 0; i < 3; i++) {
		const uint64_t words[] = {1024, 0, COMM, i, 3, 0, STREAM}, stream = STREAM;
		uint64_t from = i == 0 ? 2500 : i == 1 ? 2000 : 3000;

		call(&capture, i, CALL_BROADCAST, from, from + 1, 0x7700 + i, 7, words);
		call(&capture, i, CALL_SYNC, from + 2, from + 600, 0x7800 + i, 1, &stream);
	}
	stragglers = made(&capture, 10);
	assert_int_equal(stragglers->ranks.data[0].rank, 0);
	assert_int_equal(stragglers->ranks.data[0].made_wait_ns, 500);
	assert_int_equal(stragglers->ranks.data[0].waited_ns, 0);
	assert_int_equal(stragglers->ranks.data[1].made_wait_ns, 0);
	assert_int_equal(stragglers->waits.len, 1);
	/* All that is known of the transfer is what is not waiting. */
	assert_int_equal(stragglers->groups.data[0].waiting_ns, 500);
	assert_int_equal(stragglers->groups.data[0].transfer_ns, 3 * 600 - 500);
	done(stragglers, &capture);
}

static void test_rank_that_is_not_traced_may_have_come_last(void **state)
{
	struct stragglers *stragglers;
	struct capture capture;

	(void)state;
	begin_traced(&capture, 2, 3);
	for (uint32_t i = 0; i < 2; i++)
		meets(&capture, CALL_ALL_REDUCE, i, 3, 0, i ? 2600 : 2000, 3050);
	/* All wait for the root of a broadcast only, which is traced. */
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t words[] = {1024, 0, COMM, i, 3, 1, STREAM}, stream = STREAM;
		uint64_t from = i ? 4000 : 4500;

		call(&capture, i, CALL_BROADCAST, from, from + 1, 0x7700 + i, 7, words);
		call(&capture, i, CALL_SYNC, from + 2, 5000, 0x7800 + i, 1, &stream);
	}
	stragglers = made(&capture, 10);
	assert_int_equal(stragglers->waits.len, 2);
	assert_int_equal(stragglers->ranks.data[0].rank, 1);
	assert_int_equal(stragglers->ranks.data[0].made_wait_ns, 600);
	assert_int_equal(stragglers->ranks.data[0].unsure_ns, 600);
	assert_false(stragglers->waits.data[0].sure);
	assert_int_equal(stragglers->ranks.data[1].made_wait_ns, 500);
	assert_int_equal(stragglers->ranks.data[1].unsure_ns, 0);
	assert_true(stragglers->waits.data[1].sure);
	done(stragglers, &capture);
}

static void test_nobody_waits_in_a_collective_of_no_elements(void **state)
{
	const uint32_t sites[] = {CALL_BROADCAST, CALL_ALL_REDUCE};
	struct stragglers *stragglers;
	struct capture capture;

	(void)state;
	begin(&capture, 2);
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < 2; i++) {
			const uint64_t words[] = {0, k ? 7 : 0, COMM, i, 2, k, STREAM};
			const uint64_t stream = STREAM;
			uint64_t from = 2000 + 1000 * k + (i ? 0 : 50);

			call(&capture, i, sites[k], from, from + 1, 0x7700 + 4 * k + i, 7, words);
			call(&capture, i, CALL_SYNC, from + 2, from + 100, 0x7800 + 4 * k + i, 1,
			     &stream);
		}
	stragglers = made(&capture, 10);
	assert_int_equal(stragglers->waits.len, 0);
	for (size_t i = 0; i < stragglers->ranks.len; i++)
		assert_int_equal(stragglers->ranks.data[i].made_wait_ns, 0);
	done(stragglers, &capture);
}

static void test_receiver_waits_for_its_sender(void **state)
{
	struct stragglers *stragglers;
	struct capture capture;

	(void)state;
	begin(&capture, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t words[] = {1024, 1 - i, COMM, i, 2, 0, STREAM}, stream = STREAM;
		uint64_t from = i ? 2000 : 2800;

		call(&capture, i, i ? CALL_RECV : CALL_SEND, from, from + 1, 0x7700 + i, 7, words);
		call(&capture, i, CALL_SYNC, from + 2, 2900, 0x7800 + i, 1, &stream);
	}
	stragglers = made(&capture, 10);
	assert_int_equal(stragglers->ranks.data[0].rank, 0);
	assert_int_equal(stragglers->ranks.data[0].made_wait_ns, 800);
	assert_int_equal(stragglers->ranks.data[1].waited_ns, 800);
	assert_int_equal(stragglers->waits.len, 1);
	done(stragglers, &capture);
}

static void test_call_without_an_end_counts_as_waiting_but_not_as_transfer(void **state)
{
	struct stragglers *stragglers;
	struct capture capture;

	(void)state;
	begin(&capture, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t words[] = {1024, 7, COMM, i, 2, 0, STREAM};

		call(&capture, i, CALL_ALL_REDUCE, 2000 + 300 * i, 2001 + 300 * i, 0x7700 + i, 7,
		     words);
	}
	stragglers = made(&capture, 10);
	assert_int_equal(stragglers->groups.data[0].count, 1);
	assert_int_equal(stragglers->groups.data[0].known, 0);
	assert_int_equal(stragglers->groups.data[0].total_ns, 0);
	assert_int_equal(stragglers->ranks.data[0].rank, 1);
	assert_int_equal(stragglers->ranks.data[0].made_wait_ns, 300);
	done(stragglers, &capture);
}

/* Rank 1 is on another host, whose clock is not aligned. */
static void meets_far(struct capture *capture, uint32_t rank, uint64_t from, uint64_t to)
{
	const uint64_t words[] = {1024, 7, COMM, rank, 2, 0, STREAM}, stream = STREAM;
	uint32_t pid = store_pid_of(rank, pid_of(rank));

	call_hit_in(capture, pid, from, pid, CALL_ALL_REDUCE, 0x7700 + rank, 7, words);
	call_return_in(capture, pid, from + 1, pid, CALL_ALL_REDUCE, 0x7700 + rank, 0, NULL);
	call_hit_in(capture, pid, from + 2, pid, CALL_SYNC, 0x7800 + rank, 1, &stream);
	call_return_in(capture, pid, to, pid, CALL_SYNC, 0x7800 + rank, 0, NULL);
}

static void test_shortest_call_came_last_if_clocks_are_not_aligned(void **state)
{
	struct error err = ERROR_INIT;
	struct stragglers *stragglers;
	struct capture capture;

	(void)state;
	capture_begin(&capture, false);
	calls_add_sites(&capture);
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t words[] = {i, 2}, comm = COMM;
		uint32_t pid = store_pid_of(i, pid_of(i));
		struct store_host host = {
			.name = i ? "b" : "a",
			.boot_id = i ? "b" : "a",
			.kernel = "",
			.machine = "",
			.cpu_count = 1,
			.clock = {.kind = STORE_CLOCK_WALL, .error_ns = UINT64_MAX}};

		capture_must(store_writer_add_host(capture.writer, &host, &err), err);
		call_hit_in(&capture, pid, 1001, pid, CALL_COMM_INIT, 0x900 + i, 2, words);
		call_return_in(&capture, pid, 1002, pid, CALL_COMM_INIT, 0x900 + i, 1, &comm);
	}
	/* By the clocks as they are, rank 1 would have come last. */
	meets_far(&capture, 0, 2000, 2040);
	meets_far(&capture, 1, 9000, 9540);
	stragglers = made(&capture, 10);
	assert_int_equal(stragglers->ranks.data[0].rank, 0);
	assert_int_equal(stragglers->ranks.data[0].made_wait_ns, 500);
	assert_int_equal(stragglers->ranks.data[0].unsure_ns, 500);
	assert_int_equal(stragglers->groups.data[0].transfer_ns, 80);
	assert_false(stragglers->waits.data[0].sure);
	done(stragglers, &capture);
}

static void test_capture_of_one_rank_has_no_rows(void **state)
{
	struct stragglers *stragglers;
	struct capture capture;

	(void)state;
	capture_begin(&capture, false);
	calls_add_sites(&capture);
	meets(&capture, CALL_ALL_REDUCE, 0, 2, 0, 2000, 2100);
	stragglers = made(&capture, 10);
	assert_int_equal(stragglers->groups.len, 0);
	assert_int_equal(stragglers->ranks.len, 0);
	assert_int_equal(stragglers->waits.len, 0);
	done(stragglers, &capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_rank_is_blamed_for_the_time_of_all_others),
		cmocka_unit_test(test_root_of_a_broadcast_makes_others_wait_and_waits_for_none),
		cmocka_unit_test(test_rank_that_is_not_traced_may_have_come_last),
		cmocka_unit_test(test_nobody_waits_in_a_collective_of_no_elements),
		cmocka_unit_test(test_receiver_waits_for_its_sender),
		cmocka_unit_test(test_call_without_an_end_counts_as_waiting_but_not_as_transfer),
		cmocka_unit_test(test_shortest_call_came_last_if_clocks_are_not_aligned),
		cmocka_unit_test(test_capture_of_one_rank_has_no_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
