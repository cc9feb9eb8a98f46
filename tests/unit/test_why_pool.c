// SPDX-License-Identifier: Apache-2.0
/* Pools: threads and processes that take the CPU from each other, or from who waits for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "why_capture.h"

#define COND "futex 0x7f00"

struct pool_case {
	const char *worker, *other; /* the names of 11 and 12 */
	uint32_t waker;             /* of the earlier wait of 10 */
	uint64_t futex;             /* what the call of the explained wait waits for */
	uint64_t value;
};

/* Thread 10 waits from 20 to 60 us for 11. Of these, 12 has the CPU of 11 from 30 to 48 us. */
static struct why *explain(struct capture *capture, const struct pool_case *of)
{
	capture_begin(capture, true);
	named(capture, 10, CAPTURE_PID, "loop");
	named(capture, 11, CAPTURE_PID, of->worker);
	named(capture, 12, CAPTURE_PID, of->other);
	gets(capture, 1000, 1, 0, 10, 0, 0, 0);
	gets(capture, 1000, 2, 0, 11, 0, 0, 0);
	waits(capture, 2000, 1, 10, 0, S, NR_FUTEX, 0x7f08, FUTEX_COND, 0);
	gets(capture, 10000, 1, 0, 10, of->waker, 10000, 0);
	capture_span(capture, 20000, 10, 1);
	waits(capture, 20000, 1, 10, 0, S, NR_FUTEX, 0x7f00, of->futex, of->value);
	gets(capture, 30000, 2, 11, 12, 0, 0, 0);
	gets(capture, 48000, 2, 12, 11, 0, 0, 0);
	gets(capture, 60000, 1, 0, 10, 11, 60000, 0);
	capture_end(capture, 61000, 10, 1);
	return ask_span(capture, 70000);
}

static void test_what_a_pool_does_on_the_cpu_of_its_thread_is_its_work(void **state)
{
	struct capture capture;
	struct why *why = explain(&capture, &(struct pool_case){.worker = "pool-1",
								.other = "pool-2",
								.waker = 12,
								.futex = FUTEX_COND});

	(void)state;
	check_part(why, 0, "user-work", 40000, 11, "likely", COND);
	assert_int_equal(part_of(why, 0)->pool_wait_ns, 18000);
	check_why_text(why, "pool-1 (11), " COND
			    ", of which 18.0 us while other threads of its pool had the CPU\n");
	done(&capture, why);
}

/* The CPU goes to others, so it is a lack of CPUs. */
static void check_contention(const struct pool_case *of, const char *cause)
{
	struct capture capture;
	struct why *why = explain(&capture, of);

	check_part(why, 0, cause, 22000, 11, "likely", COND);
	check_part(why, 1, "cpu-contention", 18000, 12, "likely", "");
	assert_int_equal(part_of(why, 0)->pool_wait_ns, 0);
	done(&capture, why);
}

static void test_a_thread_that_does_nothing_for_the_waiting_one_is_not_of_its_pool(void **state)
{
	(void)state;
	check_contention(
		&(struct pool_case){
			.worker = "pool-1", .other = "pool-2", .waker = 11, .futex = FUTEX_COND},
		"user-work");
}

static void test_threads_of_other_names_are_no_pool(void **state)
{
	(void)state;
	check_contention(
		&(struct pool_case){
			.worker = "pool-1", .other = "logger", .waker = 12, .futex = FUTEX_COND},
		"user-work");
}

static void test_who_holds_a_lock_is_held_up_by_its_pool(void **state)
{
	(void)state;
	check_contention(&(struct pool_case){.worker = "pool-1",
					     .other = "pool-2",
					     .waker = 12,
					     .futex = FUTEX_MUTEX,
					     .value = 2},
			 "lock");
}

/* ---- pools of processes ---- */

static void started(struct capture *capture, uint32_t pid, uint32_t ppid)
{
	const struct store_process add = {pid, ppid, CAPTURE_START, "worker"};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_process(capture->writer, &add, &err), err);
	named(capture, pid, pid, "worker");
}

/* Thread 10 of process 100 has parent 40. The last of three processes takes the CPU for short. */
static void check_relation(const uint32_t *parents, uint64_t last_ns, const char *text)
{
	struct capture capture;
	struct why *why;
	uint64_t ts = 1010;

	capture_begin(&capture, true);
	started(&capture, CAPTURE_PID, 40);
	started(&capture, 40, 1);
	named(&capture, 10, CAPTURE_PID, "main");
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(&capture, 1000, 10, 1);
	for (uint32_t i = 0; i < 3; i++) {
		started(&capture, 500 + i, parents[i]);
		gets(&capture, ts, 1, 10, 500 + i, 0, 0, 0);
		ts += i == 2 ? last_ns : 1000;
		gets(&capture, ts, 1, 500 + i, 10, 0, 0, 0);
		ts += 10;
	}
	capture_end(&capture, ts, 10, 1);
	why = ask_span(&capture, 9000);
	check_why_text(why, text);
	done(&capture, why);
}

static void test_processes_that_take_the_cpu_may_be_its_children(void **state)
{
	static const uint32_t children[] = {CAPTURE_PID, CAPTURE_PID, CAPTURE_PID};
	static const uint32_t siblings[] = {40, 40, 40}, unknown[] = {1, 1, 1};
	static const uint32_t mixed[] = {CAPTURE_PID, CAPTURE_PID, 1};

	(void)state;
	check_relation(children, 1000, "certain  3 processes named worker, its children\n");
	check_relation(siblings, 1000,
		       "certain  3 processes named worker, children of the same process\n");
	check_relation(mixed, 1000, "certain  3 processes named worker\n");
	check_relation(mixed, 100, "certain  3 processes named worker, mostly its children\n");
	check_relation(unknown, 1000, "certain  3 processes named worker\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_pool_does_on_the_cpu_of_its_thread_is_its_work),
		cmocka_unit_test(
			test_a_thread_that_does_nothing_for_the_waiting_one_is_not_of_its_pool),
		cmocka_unit_test(test_threads_of_other_names_are_no_pool),
		cmocka_unit_test(test_who_holds_a_lock_is_held_up_by_its_pool),
		cmocka_unit_test(test_processes_that_take_the_cpu_may_be_its_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
