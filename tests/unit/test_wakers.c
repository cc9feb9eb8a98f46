// SPDX-License-Identifier: Apache-2.0
/* Which processes outside of the capture are worth being recorded. Threads 10 and 11 are recorded,
 * 60 and 61 are those of process 60. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "capture/wakers_internal.h"

#define MS 1000000ull
#define BEGIN 1000ull

static struct wakers *begin(void)
{
	struct wakers *wakers = wakers_open();

	assert_non_null(wakers);
	for (uint32_t tid = 60; tid < 62; tid++) {
		struct waffle_rec_task task = {.rec = {BEGIN, tid, WAFFLE_REC_TASK, 0}, .tgid = 60};

		wakers_record(wakers, &task.rec, BEGIN);
	}
	return wakers;
}

static void blocks(struct wakers *wakers, uint64_t ms, uint32_t tid)
{
	struct waffle_rec_switch sw = {.rec = {BEGIN + ms * MS, tid, WAFFLE_REC_SWITCH, 0},
				       .flags = WAFFLE_SWITCH_PREV_TRACED,
				       .syscall = -1};

	wakers_record(wakers, &sw.rec, BEGIN);
}

static void waits_in(struct wakers *wakers, uint64_t ms, uint32_t tid, uint64_t fd, int syscall,
		     uint16_t task_state)
{
	struct waffle_rec_switch sw = {.rec = {BEGIN + ms * MS, tid, WAFFLE_REC_SWITCH, 0},
				       .flags = WAFFLE_SWITCH_PREV_TRACED,
				       .prev_state = task_state,
				       .syscall = syscall,
				       .args = {fd}};

	wakers_record(wakers, &sw.rec, BEGIN);
}

static void sends(struct wakers *wakers, uint64_t ms, uint32_t tid, uint64_t fd)
{
	waits_in(wakers, ms, tid, fd, SYS_sendto, WAFFLE_TASK_INTERRUPTIBLE);
}

static void receives(struct wakers *wakers, uint64_t ms, uint32_t tid, uint64_t fd)
{
	waits_in(wakers, ms, tid, fd, SYS_recvfrom, WAFFLE_TASK_INTERRUPTIBLE);
}

static void is_woken(struct wakers *wakers, uint64_t ms, uint32_t tid, uint32_t waker,
		     uint8_t flags)
{
	struct waffle_rec_switch sw = {
		.rec = {BEGIN + ms * MS, 0, WAFFLE_REC_SWITCH, 0},
		.next_tid = tid,
		.waker_tid = waker,
		.wake_ts = BEGIN + ms * MS,
		.flags = (uint8_t)(WAFFLE_SWITCH_NEXT_TRACED | WAFFLE_SWITCH_WOKEN | flags)};

	wakers_record(wakers, &sw.rec, BEGIN);
}

static struct waker_key next_key(struct wakers *wakers, uint64_t ms)
{
	struct waker_key key = {.fd = -1};

	wakers_next(wakers, BEGIN, BEGIN + ms * MS, &key);
	return key;
}

/* A descriptor has to count. Whether its connection is searched, which has that inode. */
static bool is_searched(struct wakers *wakers, uint64_t ms, uint64_t ino)
{
	struct waker_key key = next_key(wakers, ms);

	assert_true(key.pid && key.fd >= 0);
	return wakers_decide(wakers, &key, ino);
}

static pid_t next(struct wakers *wakers, uint64_t ms)
{
	struct waker_key key = next_key(wakers, ms);

	assert_int_equal(key.fd, -1);
	return key.pid;
}

static void test_a_process_that_ends_long_waits_counts_until_it_is_decided(void **state)
{
	struct wakers *wakers = begin();

	(void)state;
	is_woken(wakers, 100, 10, 60, 0); /* it has waited since the begin */
	assert_int_equal(next(wakers, 100), 0);
	blocks(wakers, 101, 10);
	is_woken(wakers, 102, 10, 61, 0); /* another thread of that process */
	assert_int_equal(next(wakers, 102), 60);
	assert_int_equal(next(wakers, 102), 60);
	assert_true(wakers_decide(wakers, &(struct waker_key){.pid = 60, .fd = -1}, 0));
	assert_int_equal(next(wakers, 102), 0);
	is_woken(wakers, 900, 10, 60, 0);
	assert_int_equal(next(wakers, 900), 0);
	wakers_close(wakers);
}

static void test_one_wait_counts_if_it_is_very_long(void **state)
{
	struct wakers *wakers = begin();

	(void)state;
	blocks(wakers, 1, 10);
	is_woken(wakers, 502, 10, 60, 0);
	assert_int_equal(next(wakers, 502), 60);
	wakers_close(wakers);
}

/* Nobody knows since when a thread has waited that was added just before. */
static void test_the_first_wait_of_an_added_thread_began_when_it_was_added(void **state)
{
	struct wakers *wakers = begin();

	(void)state;
	wakers_added(wakers, BEGIN + 900 * MS);
	is_woken(wakers, 901, 11, 60, 0);
	assert_int_equal(next(wakers, 901), 0);
	is_woken(wakers, 1500, 10, 60, 0);
	assert_int_equal(next(wakers, 1500), 60);
	wakers_close(wakers);
}

/* A wait that began before the capture counts only from the capture's begin on. */
static void test_waits_from_before_the_begin_count_from_there(void **state)
{
	struct wakers *wakers = begin();
	struct waffle_rec_switch sw = {.rec = {1, 10, WAFFLE_REC_SWITCH, 0},
				       .flags = WAFFLE_SWITCH_PREV_TRACED};

	(void)state;
	wakers_record(wakers, &sw.rec, 1);
	is_woken(wakers, 0, 10, 60, 0);
	assert_int_equal(next(wakers, 1), 0);
	wakers_close(wakers);
}

static void test_waits_of_less_than_a_tenth_of_the_time_do_not_count(void **state)
{
	struct wakers *wakers = begin();

	(void)state;
	for (uint64_t ms = 0; ms < 2000; ms += 500) {
		blocks(wakers, ms, 10);
		is_woken(wakers, ms + 40, 10, 60, 0);
	}
	assert_int_equal(next(wakers, 2000), 0);
	assert_int_equal(next(wakers, 1600), 60);
	wakers_close(wakers);
}

static void test_interrupts_new_threads_and_recorded_wakers_do_not_count(void **state)
{
	struct waffle_rec_task own = {
		.rec = {BEGIN, 70, WAFFLE_REC_TASK, 0}, .tgid = 70, .flags = WAFFLE_TASK_OWN_FLAG};
	struct waffle_rec_task recorded = {.rec = {BEGIN, 60, WAFFLE_REC_TASK, 0},
					   .tgid = 60,
					   .flags = WAFFLE_TASK_TRACED_FLAG};
	struct wakers *wakers = begin();

	(void)state;
	wakers_record(wakers, &own.rec, BEGIN);
	for (uint64_t ms = 0; ms < 1000; ms += 100) {
		blocks(wakers, ms, 10);
		is_woken(wakers, ms + 90, 10, 60, WAFFLE_SWITCH_WAKER_HARDIRQ);
		blocks(wakers, ms + 91, 11);
		is_woken(wakers, ms + 95, 11, 60, WAFFLE_SWITCH_NEW);
		is_woken(wakers, ms + 96, 11, 70, 0);
		is_woken(wakers, ms + 97, 11, 11, 0);
	}
	assert_int_equal(next(wakers, 1000), 0);
	wakers_record(wakers, &recorded.rec, BEGIN);
	for (uint64_t ms = 1000; ms < 2000; ms += 100) {
		blocks(wakers, ms, 10);
		is_woken(wakers, ms + 90, 10, 60, 0);
	}
	assert_int_equal(next(wakers, 2000), 0);
	wakers_close(wakers);
}

static void test_a_descriptor_at_which_the_kernel_ends_long_waits_counts(void **state)
{
	const struct waffle_rec_task ksoftirqd = {.rec = {BEGIN, 16, WAFFLE_REC_TASK, 0},
						  .tgid = 16,
						  .flags = WAFFLE_TASK_KERNEL_FLAG};
	struct wakers *wakers = begin();
	struct waker_key key;

	(void)state;
	wakers_record(wakers, &ksoftirqd.rec, BEGIN);
	for (uint64_t ms = 0; ms < 1000; ms += 100) {
		sends(wakers, ms, 10, 5);
		is_woken(wakers, ms + 5, 10, 60, WAFFLE_SWITCH_WAKER_SOFTIRQ);
		sends(wakers, ms + 5, 10, 5);
		is_woken(wakers, ms + 40, 10, 16, 0);
		sends(wakers, ms + 41, 10, 6); /* for less than a tenth of the time */
		is_woken(wakers, ms + 45, 10, 60, WAFFLE_SWITCH_WAKER_SOFTIRQ);
		sends(wakers, ms, 11, UINT64_MAX); /* no descriptor */
		is_woken(wakers, ms + 90, 11, 60, WAFFLE_SWITCH_WAKER_SOFTIRQ);
	}
	key = next_key(wakers, 1000);
	assert_int_equal(key.pid, 10);
	assert_int_equal(key.fd, 5);
	assert_true(key.writes);
	wakers_decide(wakers, &key, 1);
	assert_int_equal(next(wakers, 1000), 0);
	wakers_close(wakers);
}

/* At 5, in the time from `ms` on. */
static void long_sends(struct wakers *wakers, uint64_t ms)
{
	for (uint64_t end = ms + 300; ms < end; ms += 100) {
		sends(wakers, ms, 10, 5);
		is_woken(wakers, ms + 90, 10, 60, WAFFLE_SWITCH_WAKER_SOFTIRQ);
	}
}

static void test_a_connection_is_searched_once_if_it_stays_while_waits_count(void **state)
{
	struct wakers *wakers = begin();

	(void)state;
	long_sends(wakers, 0);
	assert_false(is_searched(wakers, 300, 1)); /* some may have been for others */
	assert_int_equal(next(wakers, 300), 0);
	long_sends(wakers, 300);
	assert_false(is_searched(wakers, 600, 2));
	long_sends(wakers, 600);
	assert_true(is_searched(wakers, 900, 2));
	assert_int_equal(next(wakers, 900), 0);
	long_sends(wakers, 900);
	assert_false(is_searched(wakers, 1200, 2));
	long_sends(wakers, 1200);
	assert_false(is_searched(wakers, 1500, 3));
	long_sends(wakers, 1500);
	assert_true(is_searched(wakers, 1800, 3));
	wakers_close(wakers);
}

/* The connection of a wait that goes on is the one that is there. */
static void test_a_second_wait_that_goes_on_is_for_another_connection(void **state)
{
	struct wakers *wakers = begin();

	(void)state;
	sends(wakers, 0, 10, 5);
	assert_true(is_searched(wakers, 500, 1));
	is_woken(wakers, 501, 10, 60, WAFFLE_SWITCH_WAKER_SOFTIRQ);
	sends(wakers, 502, 10, 5);
	assert_false(is_searched(wakers, 1002, 1)); /* the same one */
	assert_int_equal(next(wakers, 1002), 0);
	is_woken(wakers, 1003, 10, 60, WAFFLE_SWITCH_WAKER_SOFTIRQ);
	long_sends(wakers, 1100);
	assert_false(is_searched(wakers, 1400, 1));
	sends(wakers, 1500, 10, 5);
	assert_true(is_searched(wakers, 2000, 2));
	assert_int_equal(next(wakers, 2000), 0);
	wakers_close(wakers);
}

static void test_reads_do_not_hide_writes_at_the_same_descriptor(void **state)
{
	struct wakers *wakers = begin();

	(void)state;
	for (uint64_t ms = 0; ms < 600; ms += 100) {
		receives(wakers, ms, 10, 5);
		is_woken(wakers, ms + 90, 10, 60, WAFFLE_SWITCH_WAKER_SOFTIRQ);
		if (ms == 200)
			assert_false(is_searched(wakers, 300, 1));
	}
	assert_false(next_key(wakers, 600).writes);
	assert_true(is_searched(wakers, 600, 1));
	sends(wakers, 600, 10, 5);
	assert_true(next_key(wakers, 1100).writes);
	assert_true(is_searched(wakers, 1100, 1));
	waits_in(wakers, 1200, 11, 5, SYS_sendfile, WAFFLE_TASK_INTERRUPTIBLE);
	assert_true(next_key(wakers, 1700).writes);
	wakers_close(wakers);
}

static void test_a_thread_that_is_stopped_waits_for_no_descriptor(void **state)
{
	struct wakers *wakers = begin();

	(void)state;
	waits_in(wakers, 0, 10, 5, SYS_recvfrom, WAFFLE_TASK_STOPPED);
	waits_in(wakers, 0, 11, 5, SYS_recvfrom, WAFFLE_TASK_TRACED);
	waits_in(wakers, 0, 12, 5, SYS_sendfile, WAFFLE_TASK_UNINTERRUPTIBLE); /* for a disk */
	assert_int_equal(next(wakers, 1000), 0);
	wakers_close(wakers);
}

/* Descriptors take half of the places, and those at which threads go on waiting need none. */
static void test_many_descriptors_leave_room_for_processes(void **state)
{
	struct wakers *wakers = begin();

	(void)state;
	for (uint64_t fd = 0; fd < 600; fd++) {
		receives(wakers, 0, 10, fd);
		is_woken(wakers, 600, 10, 60, WAFFLE_SWITCH_WAKER_SOFTIRQ);
	}
	blocks(wakers, 0, 11);
	is_woken(wakers, 600, 11, 60, 0);
	for (int fd = 0; fd < 512; fd++) {
		assert_int_equal(next_key(wakers, 600).fd, fd);
		assert_false(is_searched(wakers, 600, 1));
	}
	assert_int_equal(next(wakers, 600), 60);
	assert_true(wakers_decide(wakers, &(struct waker_key){.pid = 60, .fd = -1}, 0));
	assert_int_equal(next(wakers, 600), 0);
	receives(wakers, 600, 10, 599);
	assert_true(is_searched(wakers, 1200, 1));
	assert_int_equal(next(wakers, 1200), 0);
	wakers_close(wakers);
}

/* Threads 10 and 11 wait since before the capture, and 12 during it. */
static void test_a_descriptor_counts_at_which_a_thread_goes_on_waiting(void **state)
{
	struct wakers *wakers = begin();
	struct waker_key key;

	(void)state;
	for (uint32_t tid = 10; tid < 12; tid++) {
		struct waffle_rec_state begins = {.rec = {BEGIN, tid, WAFFLE_REC_STATE, 0},
						  .state = WAFFLE_THREAD_BLOCKED,
						  .task_state = WAFFLE_TASK_INTERRUPTIBLE,
						  .syscall = SYS_recvfrom,
						  .args = {7}};

		wakers_record(wakers, &begins.rec, BEGIN);
	}
	is_woken(wakers, 400, 11, 60, 0); /* and no longer */
	sends(wakers, 8000, 12, 5);
	assert_int_equal(next(wakers, 499), 0);
	key = next_key(wakers, 500);
	assert_int_equal(key.pid, 10);
	assert_int_equal(key.fd, 7);
	assert_false(key.writes);
	assert_true(wakers_decide(wakers, &key, 1));
	assert_int_equal(next(wakers, 8700), 0); /* less than a tenth of the time */
	assert_int_equal(next_key(wakers, 9000).pid, 12);
	wakers_close(wakers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process_that_ends_long_waits_counts_until_it_is_decided),
		cmocka_unit_test(test_one_wait_counts_if_it_is_very_long),
		cmocka_unit_test(test_the_first_wait_of_an_added_thread_began_when_it_was_added),
		cmocka_unit_test(test_waits_from_before_the_begin_count_from_there),
		cmocka_unit_test(test_waits_of_less_than_a_tenth_of_the_time_do_not_count),
		cmocka_unit_test(test_interrupts_new_threads_and_recorded_wakers_do_not_count),
		cmocka_unit_test(test_a_descriptor_at_which_the_kernel_ends_long_waits_counts),
		cmocka_unit_test(test_a_descriptor_counts_at_which_a_thread_goes_on_waiting),
		cmocka_unit_test(test_a_connection_is_searched_once_if_it_stays_while_waits_count),
		cmocka_unit_test(test_a_second_wait_that_goes_on_is_for_another_connection),
		cmocka_unit_test(test_reads_do_not_hide_writes_at_the_same_descriptor),
		cmocka_unit_test(test_a_thread_that_is_stopped_waits_for_no_descriptor),
		cmocka_unit_test(test_many_descriptors_leave_room_for_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
