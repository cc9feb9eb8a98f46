// SPDX-License-Identifier: Apache-2.0
/* Waits with one known cause each: what `why` makes of them, to the nanosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "why_capture.h"

#define RUNNING WAFFLE_THREAD_RUNNING
#define RUNNABLE WAFFLE_THREAD_RUNNABLE
#define BLOCKED WAFFLE_THREAD_BLOCKED

/* Thread 11 runs on CPU 1 and begins a span at 1010. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	named(capture, 11, CAPTURE_PID, "main");
	gets(capture, 1005, 1, 0, 11, 0, 0, 0);
	capture_span(capture, 1010, 11, 1);
}

static void test_span_that_only_ran_has_one_cause(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_end(&capture, 1110, 11, 1);
	why = ask_span(&capture, 1200);
	assert_int_equal(why->instances.data[0].part_count, 1);
	check_part(why, 0, "running", 100, 11, "certain", "");
	assert_int_equal(part_of(why, 0)->span, 0);
	check_step(why, 0, 0, 11, RUNNING, 1010, 1110);
	done(&capture, why);
}

static void test_preempted_thread_waited_for_whoever_had_its_cpu(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 99, 99, "hog");
	gets(&capture, 1020, 1, 11, 99, 0, 0, 0);
	gets(&capture, 1100, 1, 99, 11, 0, 0, 0);
	capture_end(&capture, 1110, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "cpu-contention", 80, 99, "certain", "");
	assert_string_equal(model_comm(why->model, part_of(why, 0)->thread), "hog");
	check_step(why, 0, 0, 11, RUNNABLE, 1020, 1100);
	check_part(why, 1, "running", 20, 11, "certain", "");
	done(&capture, why);
}

static void test_neighbours_on_a_cpu_share_the_time_that_each_had(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1020, 1, 11, 99, 0, 0, 0);
	gets(&capture, 1050, 1, 99, 12, 0, 0, 0); /* of the target: seen */
	gets(&capture, 1110, 1, 12, 98, 0, 0, 0);
	gets(&capture, 1130, 1, 97, 11, 0, 0, 0); /* 98 to 97 was not */
	capture_end(&capture, 1140, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "cpu-contention", 60, 12, "certain", "");
	check_part(why, 1, "cpu-contention", 30, 99, "certain", "");
	check_part(why, 2, "running", 20, 11, "certain", "");
	check_part(why, 3, "cpu-contention", 10, 98, "likely", "");
	check_part(why, 4, "cpu-contention", 10, 97, "likely", "");
	done(&capture, why);
}

static void test_woken_thread_waits_for_the_cpu_that_it_then_gets(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1021, 0, 0, 12, 0, 0, 0);
	gets(&capture, 1035, 0, 12, 77, 0, 0, 0);
	gets(&capture, 1060, 0, 77, 11, 12, 1030, HARD);
	capture_end(&capture, 1070, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "cpu-contention", 25, 77, "certain", "");
	check_part(why, 1, "running", 20, 11, "certain", "");
	check_part(why, 2, "sleep", 10, 11, "certain", "");
	check_part(why, 3, "cpu-contention", 5, 12, "certain", "");
	done(&capture, why);
}

/* Thread 11 waits for a futex from 1020 to 1220 until 12 wakes it. */
static void futex_begins(struct capture *capture, uint64_t op, uint64_t value)
{
	begin(capture);
	named(capture, 12, CAPTURE_PID, "holder");
	gets(capture, 1011, 0, 0, 12, 0, 0, 0);
	waits(capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f00, op, value);
}

static void futex_ends(struct capture *capture)
{
	gets(capture, 1220, 1, 0, 11, 12, 1220, 0);
	capture_end(capture, 1230, 11, 1);
}

static void test_mutex_held_by_a_sleeping_thread_is_its_sleep(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	futex_begins(&capture, FUTEX_MUTEX, 2);
	waits(&capture, 1030, 0, 12, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1200, 0, 0, 12, 0, 1190, HARD);
	futex_ends(&capture);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "sleep", 160, 12, "certain", "");
	check_step(why, 0, 0, 11, BLOCKED, 1020, 1220);
	check_step(why, 0, 1, 12, BLOCKED, 1030, 1190);
	assert_int_equal(part_of(why, 0)->step_count, 2);
	assert_string_equal(strtab_get(why->texts, why->steps.data[part_of(why, 0)->step].object),
			    "futex 0x7f00");
	check_part(why, 1, "lock", 10 + 20, 12, "likely", "futex 0x7f00");
	check_part(why, 2, "running", 20, 11, "certain", "");
	check_part(why, 3, "cpu-contention", 10, 0, "likely", "");
	done(&capture, why);
}

static void test_mutex_held_by_a_preempted_thread_is_the_preemptors_doing(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	futex_begins(&capture, FUTEX_MUTEX, 2);
	gets(&capture, 1040, 0, 12, 99, 0, 0, 0);
	gets(&capture, 1200, 0, 99, 12, 0, 0, 0);
	futex_ends(&capture);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "cpu-contention", 160, 99, "certain", "");
	check_step(why, 0, 0, 11, BLOCKED, 1020, 1220);
	check_step(why, 0, 1, 12, RUNNABLE, 1040, 1200);
	check_part(why, 1, "lock", 40, 12, "likely", "futex 0x7f00");
	done(&capture, why);
}

static void test_holder_that_computes_is_named_with_its_span(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	futex_begins(&capture, FUTEX_MUTEX, 2);
	capture_hit(&capture, 1050, 12, SITE_LOAD, 2, 0, 2, (const uint64_t[]){0, 0});
	capture_end(&capture, 1200, 12, 2);
	futex_ends(&capture);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "lock", 150, 12, "likely", "futex 0x7f00");
	assert_int_equal(why->model->spans.data[part_of(why, 0)->span].id, 2);
	check_step(why, 0, 1, 12, RUNNING, 1050, 1200);
	check_part(why, 1, "lock", 30 + 20, 12, "likely", "futex 0x7f00");
	assert_int_equal(part_of(why, 1)->span, MODEL_NONE);
	done(&capture, why);
}

static void test_lock_with_priority_inheritance_is_told_for_certain(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	futex_begins(&capture, 6, 0);
	futex_ends(&capture);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "lock", 200, 12, "certain", "futex 0x7f00");
	done(&capture, why);
}

static void test_condition_is_the_work_of_whoever_met_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	futex_begins(&capture, FUTEX_COND, 0);
	futex_ends(&capture);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "user-work", 200, 12, "certain", "");
	done(&capture, why);
}

static void test_producer_that_reads_a_disk_is_the_disk(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	futex_begins(&capture, FUTEX_COND, 0);
	object(&capture, "/data/shard-7", "ext4");
	waits(&capture, 1025, 0, 12, 0, D, NR_READ, 5, 0, 0);
	told(&capture, 1025, 1205, 12, 1, 0, 0);
	gets(&capture, 1205, 0, 0, 12, 99, 1200, SOFT);
	futex_ends(&capture);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "disk-read", 175, 12, "certain", "/data/shard-7");
	check_step(why, 0, 1, 12, BLOCKED, 1025, 1200);
	assert_int_equal(why->steps.data[part_of(why, 0)->step + 1].wait, 0);
	assert_true(why->steps.data[part_of(why, 0)->step + 1].interrupt);
	check_part(why, 1, "running", 20, 11, "certain", "");
	check_part(why, 2, "user-work", 5 + 15, 12, "certain", "");
	done(&capture, why);
}

/* Thread 11 waits in a call from 1020 to 1120 until `waker` wakes it. */
static struct why *one_wait(struct capture *capture, uint16_t task_state, int syscall, uint64_t a,
			    uint64_t b, uint64_t c, uint32_t waker, unsigned flags)
{
	waits(capture, 1020, 1, 11, 0, task_state, syscall, a, b, c);
	gets(capture, 1120, 1, 0, 11, waker, 1120, flags);
	capture_end(capture, 1130, 11, 1);
	return ask_span(capture, 1200);
}

static void test_pipe_of_an_outside_process_names_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 77, 77, "pv");
	object(&capture, "pipe:[123]", "");
	told(&capture, 1020, 1120, 11, 1, 0, 0);
	why = one_wait(&capture, S, NR_WRITE, 1, 0, 0, 77, 0);
	check_part(why, 0, "pipe", 100, 77, "likely", "pipe:[123]");
	check_step(why, 0, 0, 11, BLOCKED, 1020, 1120);
	done(&capture, why);
}

static void test_packet_from_outside_is_the_socket(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "socket:[9]", "tcp 10.0.0.1:80 -> 10.0.0.2:5000");
	told(&capture, 1020, 1120, 11, 1, 0, 0);
	why = one_wait(&capture, S, NR_RECVFROM, 3, 0, 0, 77, SOFT);
	check_part(why, 0, "socket", 100, 0, "likely", "tcp 10.0.0.1:80 -> 10.0.0.2:5000");
	done(&capture, why);
}

static void test_packet_of_this_machine_names_its_sender(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "socket:[9]", "tcp 127.0.0.1:80 -> 127.0.0.1:5000");
	told(&capture, 1020, 1120, 11, 1, 0, 0);
	why = one_wait(&capture, S, NR_RECVFROM, 3, 0, 0, 77, SOFT);
	check_part(why, 0, "socket", 100, 77, "likely", "tcp 127.0.0.1:80 -> 127.0.0.1:5000");
	done(&capture, why);
}

static void test_stack_of_the_sender_follows_a_packet_to_a_recorded_thread(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	kernel_stack(&capture, 0xff01, "tcp_sendmsg_locked");
	gets(&capture, 1012, 0, 0, 13, 0, 0, 0);
	waits(&capture, 1015, 0, 13, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1100, 0, 0, 13, 0, 1100, HARD);
	told_wake(&capture, 1120, 13, 11, 1, SOFT);
	why = one_wait(&capture, S, NR_RECVFROM, 3, 0, 0, 13, SOFT);
	check_part(why, 0, "sleep", 80, 13, "certain", "");
	check_part(why, 1, "running", 20, 11, "certain", "");
	check_part(why, 2, "user-work", 20, 13, "certain", "");
	done(&capture, why);
}

static void test_fsync_that_the_journal_ends_is_the_disk(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 60, 60, "jbd2/sda1-8");
	kernel_stack(&capture, 0xff01, "jbd2_log_wait_commit");
	object(&capture, "/var/log/app", "ext4");
	told(&capture, 1020, 1120, 11, 1, 1, 0);
	why = one_wait(&capture, D, NR_FSYNC, 4, 0, 0, 60, 0);
	check_part(why, 0, "disk-write", 100, 11, "certain", "/var/log/app");
	done(&capture, why);
}

static void test_uninterruptible_call_without_a_record_is_likely_the_disk(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	why = one_wait(&capture, D, NR_OPENAT, 4, 0, 0, 0, HARD);
	check_part(why, 0, "disk-read", 100, 11, "likely", "");
	done(&capture, why);
}

static void test_own_request_makes_the_disk_certain_and_tells_its_direction(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	told_io(&capture, 1019, 1115, 11, WAFFLE_IO_WRITE);
	why = one_wait(&capture, D, NR_OPENAT, 4, 0, 0, 0, HARD);
	check_part(why, 0, "disk-write", 100, 11, "certain", "");
	done(&capture, why);
}

static void test_lock_of_a_kernel_is_followed_to_its_holder(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	kernel_stack(&capture, 0xff01, "rwsem_down_write_slowpath");
	gets(&capture, 1012, 0, 0, 13, 0, 0, 0);
	told(&capture, 1020, 1120, 11, 0, 1, 0);
	why = one_wait(&capture, D, NR_OPENAT, 4, 0, 0, 13, 0);
	check_part(why, 0, "lock", 100, 13, "certain", "lock in the kernel");
	done(&capture, why);
}

static void test_page_read_as_it_is_touched_names_its_file(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	mapping(&capture, 0x1000, 0x9000, "/data/model.bin");
	told(&capture, 1020, 1120, 11, 0, 0, 0x2345);
	why = one_wait(&capture, D, NR_NONE, 0, 0, 0, 0, HARD);
	check_part(why, 0, "page-fault-major", 100, 11, "certain", "/data/model.bin");
	done(&capture, why);
}

static void test_minor_faults_take_their_time_from_running(void **state)
{
	struct waffle_rec_fault fault = {.rec = {1210, 11, WAFFLE_REC_FAULT, 1},
					 .from_ts = 1010,
					 .total_ns = 120,
					 .address = 0x77000,
					 .count = 40};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_end(&capture, 1110, 11, 1); /* half of the faults' time */
	capture_add(&capture, &fault);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "page-fault-minor", 60, 11, "certain", "");
	check_step(why, 0, 0, 11, RUNNING, 1010, 1110);
	check_part(why, 1, "running", 40, 11, "certain", "");
	assert_int_equal(why->instances.data[0].running_ns, 100);
	done(&capture, why);
}

static void test_major_faults_of_short_waits_have_their_file_and_what_they_ran(void **state)
{
	struct waffle_rec_fault fault = {.rec = {1145, 11, WAFFLE_REC_FAULT, 1},
					 .from_ts = 1015,
					 .total_ns = 130,
					 .address = 0x2345,
					 .count = 1,
					 .flags = WAFFLE_FAULT_MAJOR};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	mapping(&capture, 0x1000, 0x9000, "/data/model.bin");
	waits(&capture, 1020, 1, 11, 0, D, NR_NONE, 0, 0, 0);
	gets(&capture, 1130, 1, 0, 11, 0, 1120, HARD);
	capture_add(&capture, &fault);
	capture_end(&capture, 1160, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "page-fault-major", 100 + 20, 11, "certain", "/data/model.bin");
	check_part(why, 1, "running", 20, 11, "certain", "");
	check_part(why, 2, "cpu-contention", 10, 0, "likely", "");
	assert_int_equal(why->instances.data[0].running_ns, 40);
	done(&capture, why);
}

static void test_faults_never_take_more_than_what_ran(void **state)
{
	struct waffle_rec_fault fault = {.rec = {1130, 11, WAFFLE_REC_FAULT, 1},
					 .from_ts = 1010,
					 .total_ns = 120,
					 .count = 40};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_add(&capture, &fault);
	why = one_wait(&capture, S, NR_NANOSLEEP, 0, 0, 0, 0, HARD);
	check_part(why, 0, "sleep", 100, 11, "certain", "");
	check_part(why, 1, "page-fault-minor", 20, 11, "certain", "");
	assert_int_equal(why->instances.data[0].part_count, 2);
	done(&capture, why);
}

static void test_quota_takes_the_end_of_the_runnable_time(void **state)
{
	struct waffle_rec_quota quota = {.rec = {1120, 11, WAFFLE_REC_QUOTA, 1},
					 .throttled_ns = 70,
					 .cgroup = 4711,
					 .quota_ns = 20000000,
					 .period_ns = 100000000};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1020, 1, 11, 99, 0, 0, 0);
	gets(&capture, 1120, 1, 99, 11, 0, 0, 0);
	capture_add(&capture, &quota);
	capture_end(&capture, 1130, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "cpu-quota", 70, 11, "certain",
		   "cgroup 4711, 20000 us of each 100000 us");
	check_step(why, 0, 0, 11, RUNNABLE, 1050, 1120);
	check_part(why, 1, "cpu-contention", 30, 99, "certain", "");
	done(&capture, why);
}

static void test_stopped_process_names_who_sent_the_signal(void **state)
{
	struct waffle_rec_signal signal = {.rec = {1019, 66, WAFFLE_REC_SIGNAL, 0},
					   .target_tid = 10,
					   .target_tgid = CAPTURE_PID,
					   .signo = 19};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 10, CAPTURE_PID, "a");
	named(&capture, 66, 66, "operator");
	capture_add(&capture, &signal);
	why = one_wait(&capture, WAFFLE_TASK_STOPPED, NR_NONE, 0, 0, 0, 66, 0);
	check_part(why, 0, "stopped", 100, 66, "certain", "");
	done(&capture, why);
}

static void test_sleeps_of_a_loop_are_one_cause(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 5; i++) {
		uint64_t ts = 1020 + 100 * i;

		waits(&capture, ts, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
		gets(&capture, ts + 60 + i, 1, 0, 11, 0, ts + 60 + i, HARD);
	}
	capture_end(&capture, 1510, 11, 1);
	why = ask_span(&capture, 1600);
	check_part(why, 0, "sleep", 310, 11, "certain", "");
	assert_int_equal(part_of(why, 0)->stretches, 5);
	check_step(why, 0, 0, 11, BLOCKED, 1420, 1484); /* the longest */
	done(&capture, why);
}

static void test_late_timer_is_told_by_the_wakers_stack(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	kernel_stack(&capture, 0xff01, "timerfd_tmrproc");
	object(&capture, "anon_inode:[eventpoll]", "");
	told(&capture, 1020, 1120, 11, 1, 0, 0);
	told_wake(&capture, 1120, 99, 11, 1, HARD);
	why = one_wait(&capture, S, NR_EPOLL_WAIT, 4, 0, 8, 99, HARD);
	check_part(why, 0, "timer", 100, 11, "certain", "anon_inode:[eventpoll]");
	done(&capture, why);
}

static void test_poll_of_nothing_is_a_sleep(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	why = one_wait(&capture, S, NR_POLL, 0, 0, 10, 0, HARD);
	check_part(why, 0, "sleep", 100, 11, "certain", "");
	done(&capture, why);
}

static void test_without_a_stack_the_interrupt_of_a_poll_is_guessed(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	why = one_wait(&capture, S, NR_EPOLL_WAIT, 4, 0, 8, 99, SOFT);
	check_part(why, 0, "socket", 100, 0, "likely", "");
	done(&capture, why);
	begin(&capture);
	why = one_wait(&capture, S, NR_EPOLL_WAIT, 4, 0, 8, 99, HARD);
	check_part(why, 0, "timer", 100, 11, "likely", "");
	done(&capture, why);
}

static void test_ioctl_of_a_gpu_is_the_gpu(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "/dev/nvidia0", "");
	told(&capture, 1020, 1120, 11, 1, 0, 0);
	why = one_wait(&capture, S, NR_IOCTL, 4, 0, 8, 99, HARD);
	check_part(why, 0, "gpu", 100, 11, "certain", "/dev/nvidia0");
	done(&capture, why);
}

static void test_python_lock_is_followed_through_timeouts_to_its_holder(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	mapping(&capture, 0x7000, 0x8000, "/usr/bin/python3.12");
	gets(&capture, 1012, 0, 0, 12, 0, 0, 0);
	for (uint64_t ts = 1020; ts < 1220; ts += 50) {
		bool last = ts == 1170;

		waits(&capture, ts, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
		gets(&capture, ts + 45, 1, 0, 11, last ? 12 : 0, ts + 45, last ? 0 : HARD);
	}
	capture_end(&capture, 1220, 11, 1);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "gil", 180, 12, "likely", "GIL");
	assert_int_equal(part_of(why, 0)->stretches, 4);
	done(&capture, why);
}

static uint32_t functions(void *arg, uint32_t stack, uint64_t ts, const char **names, uint32_t max)
{
	(void)ts;
	assert_int_equal(stack, 1);
	assert_true(max >= 3);
	names[0] = "__futex_abstimed_wait_common";
	names[1] = "pthread_cond_timedwait";
	names[2] = arg;
	return 3;
}

static const char *variable(void *arg, uint32_t pid, uint64_t ts, uint64_t address)
{
	(void)arg;
	(void)ts;
	assert_int_equal(pid, CAPTURE_PID);
	return address == 0x7f00 ? "queue_lock" : NULL;
}

static void test_names_of_functions_and_variables_tell_locks(void **state)
{
	static const char *const cases[][3] = {
		{"take_gil", "gil", "GIL"},
		{"consume", "user-work", ""},
	};
	struct capture capture;
	struct why *why;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const struct why_names names = {(void *)cases[i][0], functions, variable};
		struct waffle_rec_wait rec = {
			.rec = {1220, 11, WAFFLE_REC_WAIT, 0}, .from_ts = 1020, .user_stack = 1};

		futex_begins(&capture, FUTEX_COND, 0);
		kernel_stack(&capture, 0xff01, "not looked at");
		capture_add(&capture, &rec);
		futex_ends(&capture);
		why = ask(&capture, 1300, &(const struct why_query){.span_id = 1, .names = &names});
		check_part(why, 0, cases[i][1], 200, 12, i ? "certain" : "likely", cases[i][2]);
		assert_string_equal(
			strtab_get(why->texts, why->steps.data[part_of(why, 0)->step].object),
			i ? "futex 0x7f00 (queue_lock)" : "GIL");
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_span_that_only_ran_has_one_cause),
		cmocka_unit_test(test_preempted_thread_waited_for_whoever_had_its_cpu),
		cmocka_unit_test(test_neighbours_on_a_cpu_share_the_time_that_each_had),
		cmocka_unit_test(test_woken_thread_waits_for_the_cpu_that_it_then_gets),
		cmocka_unit_test(test_mutex_held_by_a_sleeping_thread_is_its_sleep),
		cmocka_unit_test(test_mutex_held_by_a_preempted_thread_is_the_preemptors_doing),
		cmocka_unit_test(test_holder_that_computes_is_named_with_its_span),
		cmocka_unit_test(test_lock_with_priority_inheritance_is_told_for_certain),
		cmocka_unit_test(test_condition_is_the_work_of_whoever_met_it),
		cmocka_unit_test(test_producer_that_reads_a_disk_is_the_disk),
		cmocka_unit_test(test_pipe_of_an_outside_process_names_it),
		cmocka_unit_test(test_packet_from_outside_is_the_socket),
		cmocka_unit_test(test_packet_of_this_machine_names_its_sender),
		cmocka_unit_test(test_stack_of_the_sender_follows_a_packet_to_a_recorded_thread),
		cmocka_unit_test(test_fsync_that_the_journal_ends_is_the_disk),
		cmocka_unit_test(test_uninterruptible_call_without_a_record_is_likely_the_disk),
		cmocka_unit_test(test_own_request_makes_the_disk_certain_and_tells_its_direction),
		cmocka_unit_test(test_lock_of_a_kernel_is_followed_to_its_holder),
		cmocka_unit_test(test_page_read_as_it_is_touched_names_its_file),
		cmocka_unit_test(test_minor_faults_take_their_time_from_running),
		cmocka_unit_test(
			test_major_faults_of_short_waits_have_their_file_and_what_they_ran),
		cmocka_unit_test(test_faults_never_take_more_than_what_ran),
		cmocka_unit_test(test_quota_takes_the_end_of_the_runnable_time),
		cmocka_unit_test(test_stopped_process_names_who_sent_the_signal),
		cmocka_unit_test(test_sleeps_of_a_loop_are_one_cause),
		cmocka_unit_test(test_late_timer_is_told_by_the_wakers_stack),
		cmocka_unit_test(test_poll_of_nothing_is_a_sleep),
		cmocka_unit_test(test_without_a_stack_the_interrupt_of_a_poll_is_guessed),
		cmocka_unit_test(test_ioctl_of_a_gpu_is_the_gpu),
		cmocka_unit_test(test_python_lock_is_followed_through_timeouts_to_its_holder),
		cmocka_unit_test(test_names_of_functions_and_variables_tell_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
