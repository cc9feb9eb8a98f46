// SPDX-License-Identifier: Apache-2.0
/* Chains over threads and processes, what is not recorded, and machines made at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "why_capture.h"

#define RUNNING WAFFLE_THREAD_RUNNING
#define BLOCKED WAFFLE_THREAD_BLOCKED

/* Thread 11 runs on CPU 1 and begins a span at 1010. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	gets(capture, 1005, 1, 0, 11, 0, 0, 0);
	capture_span(capture, 1010, 11, 1);
}

static void test_chain_of_three_threads_ends_at_the_last_one(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1006, 2, 0, 12, 0, 0, 0);
	gets(&capture, 1007, 3, 0, 13, 0, 0, 0);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_MUTEX, 2);
	waits(&capture, 1030, 2, 12, 0, S, NR_FUTEX, 0x7e00, FUTEX_COND, 0);
	waits(&capture, 1040, 3, 13, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1150, 3, 0, 13, 0, 1140, HARD);
	gets(&capture, 1175, 2, 0, 12, 13, 1170, 0);
	gets(&capture, 1205, 1, 0, 11, 12, 1200, 0);
	capture_end(&capture, 1210, 11, 1);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "sleep", 100, 13, "likely", "");
	assert_int_equal(part_of(why, 0)->step_count, 3);
	check_step(why, 0, 0, 11, BLOCKED, 1020, 1200);
	check_step(why, 0, 1, 12, BLOCKED, 1030, 1170);
	check_step(why, 0, 2, 13, BLOCKED, 1040, 1140);
	check_part(why, 1, "lock", 10 + 25, 12, "likely", "futex 0x7f00");
	check_part(why, 2, "user-work", 10 + 20, 13, "likely", "futex 0x7e00");
	/* From each wake-up to the run: nobody else was on the CPU. */
	check_part(why, 3, "cpu-contention", 10 + 5 + 5, 0, "likely",
		   "the CPU was idle: woken late");
	check_part(why, 4, "running", 10 + 5, 11, "certain", "");
	assert_int_equal(why->instances.data[0].part_count, 5);
	assert_int_equal(why->instances.data[0].blocked_ns, 180);
	assert_int_equal(why->instances.data[0].runnable_ns, 5);
	done(&capture, why);
}

static void test_wait_for_a_process_is_what_the_process_did(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 20, 20, "child");
	named(&capture, 30, 30, "grandchild");
	waits(&capture, 1020, 1, 11, 0, S, NR_WAIT4, 20, 0, 0);
	gets(&capture, 1030, 2, 0, 20, 11, 1030, WAFFLE_SWITCH_NEW);
	waits(&capture, 1040, 2, 20, 0, S, NR_WAIT4, 30, 0, 0);
	gets(&capture, 1050, 3, 0, 30, 20, 1050, WAFFLE_SWITCH_NEW);
	waits(&capture, 1060, 3, 30, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1160, 3, 0, 30, 0, 1160, HARD);
	gets(&capture, 1180, 2, 0, 20, 30, 1180, 0);
	waits(&capture, 1185, 3, 30, 0, WAFFLE_TASK_DEAD, NR_NONE, 0, 0, 0);
	gets(&capture, 1200, 1, 0, 11, 20, 1200, 0);
	capture_end(&capture, 1210, 11, 1);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "sleep", 100, 30, "certain", "");
	check_step(why, 0, 2, 30, BLOCKED, 1060, 1160);
	check_part(why, 1, "process-exit", 10 + 20, 20, "certain", "");
	check_part(why, 2, "process-exit", 10 + 20, 30, "certain", "");
	check_part(why, 3, "running", 20, 11, "certain", "");
	done(&capture, why);
}

/* Thread 11 waits for process 20, and that for process 60, which is not recorded. */
static void test_who_awaits_the_end_of_a_process_is_named_if_it_is_another_one(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 20, 20, "child");
	waits(&capture, 1020, 1, 11, 0, S, NR_READ, 5, 0, 0);
	gets(&capture, 1025, 2, 0, 20, 11, 1025, 0);
	waits(&capture, 1040, 2, 20, 0, S, NR_WAIT4, 60, 0, 0);
	gets(&capture, 1140, 2, 0, 20, 60, 1140, 0);
	gets(&capture, 1150, 1, 0, 11, 20, 1150, 0);
	waits(&capture, 1160, 1, 11, 0, S, NR_WAIT4, 61, 0, 0);
	gets(&capture, 1200, 1, 0, 11, 61, 1200, 0);
	capture_end(&capture, 1210, 11, 1);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "process-exit", 100, 60, "likely", "awaited by child");
	check_part(why, 1, "process-exit", 40, 61, "likely", "");
	done(&capture, why);
}

/* Outside of a system call, a thread that wakes another one looks like an interrupt. */
static void test_a_child_that_a_signal_ends_is_no_interrupt(void **state)
{
	static const char *const functions[] = {"__wake_up_sync_key", "do_notify_parent", "do_exit",
						"get_signal", "asm_exc_page_fault"};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	kernel_stack_of(&capture, 0xffff8000, functions, 5);
	named(&capture, 20, 20, "child");
	waits(&capture, 1020, 1, 11, 0, S, NR_WAIT4, 20, 0, 0);
	gets(&capture, 1030, 2, 0, 20, 11, 1030, WAFFLE_SWITCH_NEW);
	wake_details(&capture, 1200, 20, 11, 1, HARD);
	gets(&capture, 1200, 1, 0, 11, 20, 1200, HARD);
	capture_end(&capture, 1210, 11, 1);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "process-exit", 170, 20, "certain", "");
	check_step(why, 0, 0, 11, BLOCKED, 1020, 1200);
	assert_false(why->steps.data[part_of(why, 0)->step].interrupt);
	done(&capture, why);
}

static void test_pipe_of_a_recorded_process_is_followed(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 20, 20, "backend");
	object(&capture, "pipe:[7]", "");
	gets(&capture, 1006, 2, 0, 20, 0, 0, 0);
	waits(&capture, 1020, 1, 11, 0, S, NR_READ, 3, 0, 0);
	waits(&capture, 1030, 2, 20, 0, D, NR_FSYNC, 4, 0, 0);
	io_done(&capture, 1030, 1190, 20, WAFFLE_IO_WRITE);
	gets(&capture, 1190, 2, 0, 20, 0, 1190, HARD);
	wait_details(&capture, 1020, 1200, 11, 1, 0, 0);
	gets(&capture, 1200, 1, 0, 11, 20, 1200, 0);
	capture_end(&capture, 1210, 11, 1);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "disk-write", 160, 20, "certain", "");
	check_part(why, 1, "running", 20, 11, "certain", "");
	check_part(why, 2, "pipe", 20, 20, "certain", "pipe:[7]");
	done(&capture, why);
}

static void test_two_causes_are_ranked_by_their_time(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1100, 1, 0, 11, 0, 1100, HARD);
	gets(&capture, 1110, 1, 11, 99, 0, 0, 0);
	gets(&capture, 1310, 1, 99, 11, 0, 0, 0);
	capture_end(&capture, 1310, 11, 1);
	why = ask_span(&capture, 1400);
	check_part(why, 0, "cpu-contention", 200, 99, "certain", "");
	check_part(why, 1, "sleep", 80, 11, "certain", "");
	check_part(why, 2, "running", 20, 11, "certain", "");
	done(&capture, why);
}

/* ---- honest ---- */

static void test_lost_records_are_unknown_and_lower_the_grade_beside_them(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	capture_loss(&capture, 1060, 1100, WAFFLE_SOURCE_SCHED, 3);
	gets(&capture, 1130, 1, 0, 11, 0, 1120, HARD);
	capture_end(&capture, 1140, 11, 1);
	why = ask_span(&capture, 1200);
	assert_true(why->instances.data[0].loss);
	check_part(why, 0, "unknown", 60, 11, "unknown", "");
	check_part(why, 1, "sleep", 40, 11, "likely", "");
	check_part(why, 2, "running", 20, 11, "likely", "");
	check_part(why, 3, "cpu-contention", 10, 0, "likely", "the CPU was idle: woken late");
	assert_int_equal(why->instances.data[0].unknown_ns, 60);
	done(&capture, why);
}

static void test_nobody_is_blamed_who_had_the_cpu_before_a_loss(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 1050, 1, 0, 99, 0, 0, 0);
	capture_loss(&capture, 1060, 1100, WAFFLE_SOURCE_SCHED, 3);
	gets(&capture, 1120, 1, 98, 97, 0, 0, 0);
	gets(&capture, 1130, 1, 97, 11, 0, 1105, HARD);
	capture_end(&capture, 1140, 11, 1);
	why = ask_span(&capture, 1200);
	/* The thread that released it had it last. */
	check_part(why, 3, "cpu-contention", 15, 98, "likely", "");
	check_part(why, 4, "cpu-contention", 10, 97, "likely", "");
	done(&capture, why);
}

static void test_lost_details_lower_the_grade_only(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
	capture_loss(&capture, 1060, 1100, WAFFLE_SOURCE_WAITS, 3);
	gets(&capture, 1130, 1, 0, 11, 0, 1130, HARD);
	capture_end(&capture, 1140, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "sleep", 110, 11, "likely", "");
	assert_int_equal(why->instances.data[0].unknown_ns, 0);
	done(&capture, why);
}

static void test_waker_of_its_own_waiter_is_unknown(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1006, 2, 0, 12, 0, 0, 0);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	waits(&capture, 1030, 2, 12, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, 1100, 2, 0, 12, 11, 1100, 0); /* by a thread that is blocked */
	gets(&capture, 1120, 1, 0, 11, 12, 1120, 0);
	capture_end(&capture, 1130, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "unknown", 70, 0, "unknown", "futex 0x7f00");
	check_part(why, 1, "user-work", 30, 12, "likely", "futex 0x7f00");
	done(&capture, why);
}

static void test_outside_waker_of_a_futex_ends_the_chain(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 88, 88, "stranger");
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, 1120, 1, 0, 11, 88, 1120, 0);
	capture_end(&capture, 1130, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "not-recorded", 100, 88, "likely", "futex 0x7f00");
	done(&capture, why);
}

static void test_waker_is_not_known_before_its_first_record(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, 1090, 2, 0, 12, 0, 0, 0);
	gets(&capture, 1120, 1, 0, 11, 12, 1120, 0);
	capture_end(&capture, 1130, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "unknown", 70, 12, "unknown", "");
	check_part(why, 1, "user-work", 30, 12, "likely", "futex 0x7f00");
	done(&capture, why);
}

static void test_span_without_an_end_is_explained_as_far_as_it_is_known(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_MUTEX, 2);
	why = ask_span(&capture, 1200);
	assert_true(why->instances.data[0].unfinished);
	assert_false(why->instances.data[0].begun_before);
	/* It waits for a lock to the end, and nobody is known to hold it. */
	check_part(why, 0, "lock", 180, 0, "unknown", "futex 0x7f00");
	check_part(why, 1, "running", 10, 11, "certain", "");
	assert_string_equal(strtab_get(why->texts, why->steps.data[part_of(why, 0)->step].meaning),
			    "still waits when the capture ends");
	done(&capture, why);
}

/* The kernel has put the thread onto a CPU, but no tracer saw what woke it. */
static void test_wait_whose_wake_up_was_not_reported_says_so(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, 1100, 1, 0, 11, 0, 0, 0);
	capture_end(&capture, 1110, 11, 1);
	why = ask_span(&capture, 1200);
	check_part(why, 0, "unknown", 80, 0, "unknown", "futex 0x7f00");
	check_part(why, 1, "running", 20, 11, "certain", "");
	assert_string_equal(strtab_get(why->texts, why->steps.data[part_of(why, 0)->step].meaning),
			    "the kernel did not report what woke it");
	done(&capture, why);
}

static void test_span_without_a_begin_is_never_certain(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	capture_state(&capture, 1000, 11, RUNNING, false);
	capture_end(&capture, 1100, 11, 9);
	why = ask(&capture, 1200, &(struct why_query){.span_id = 9});
	assert_true(why->instances.data[0].begun_before);
	check_part(why, 0, "running", 100, 11, "likely", "");
	done(&capture, why);
}

/* ---- what is asked for ---- */

static void test_slowest_come_first_and_no_more_than_wanted(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	gets(&capture, 1001, 1, 0, 11, 0, 0, 0);
	for (uint64_t i = 0; i < 300; i++) {
		capture_span(&capture, 2000 + 1000 * i, 11, 1 + i);
		capture_end(&capture, 2000 + 1000 * i + 1 + i * 7 % 300, 11, 1 + i);
	}
	why = ask(&capture, 400000, &(struct why_query){.slowest = 3});
	assert_int_equal(why->instances.len, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(why->instances.data[i].to_ts - why->instances.data[i].from_ts,
				 300 - i);
	done(&capture, why);
}

#define MANY_SPANS 25000 /* the slowest so far are sorted out three times */

/* Each of the first fifth has the same length as one of the last. */
static uint64_t many_length(uint64_t i)
{
	return 1 + i * 7919 % (MANY_SPANS / 5 * 4);
}

static uint64_t many_start(uint64_t i)
{
	return 2000 + 30000 * i;
}

/* The number of spans that come before one. */
static uint64_t many_before(uint64_t of)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < MANY_SPANS; i++)
		count += many_length(i) > many_length(of) ||
			 (many_length(i) == many_length(of) && i < of);
	return count;
}

static void test_slowest_of_many_spans_come_in_order(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	gets(&capture, 1001, 1, 0, 11, 0, 0, 0);
	for (uint64_t i = 0; i < MANY_SPANS; i++) {
		capture_span(&capture, many_start(i), 11, 1 + i);
		capture_end(&capture, many_start(i) + many_length(i), 11, 1 + i);
	}
	why = ask(&capture, many_start(MANY_SPANS), &(struct why_query){.slowest = 7});
	assert_int_equal(why->instances.len, 7);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(many_before((why->instances.data[i].from_ts - 2000) / 30000), i);
	done(&capture, why);
}

static void test_only_spans_of_the_name_are_explained(void **state)
{
	struct error err = ERROR_INIT;
	struct capture capture;
	struct why *why, *none;

	(void)state;
	begin(&capture);
	capture_hit(&capture, 1020, 11, SITE_LOAD, 2, 1, 2, (const uint64_t[]){0, 0});
	capture_end(&capture, 1070, 11, 2);
	capture_hit(&capture, 1080, 11, SITE_STEP_AT, 3, 1, 2, (const uint64_t[]){0, 0});
	capture_end(&capture, 1090, 11, 3);
	capture_end(&capture, 1100, 11, 1);
	why = ask_span(&capture, 1200);
	assert_int_equal(why->instances.len, 2);
	assert_int_equal(why->model->spans.data[why->instances.data[0].span].id, 1);
	assert_int_equal(why->model->spans.data[why->instances.data[1].span].id, 3);
	capture_must(why_new(&none, capture.model, &(struct why_query){.name = "stop"}, &err), err);
	assert_int_equal(none->instances.len, 0);
	why_free(none);
	done(&capture, why);
}

static void test_thread_is_explained_in_a_window_that_cuts_its_wait(void **state)
{
	struct error err = ERROR_INIT;
	struct capture capture;
	struct why *why, *none;

	(void)state;
	begin(&capture);
	gets(&capture, 1006, 2, 0, 12, 0, 0, 0);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, 1120, 1, 0, 11, 12, 1120, 0);
	why = ask(&capture, 1200, &(struct why_query){.tid = 11, .from_ts = 1015, .to_ts = 1080});
	assert_int_equal(why->instances.len, 1);
	assert_int_equal(why->instances.data[0].span, MODEL_NONE);
	check_part(why, 0, "user-work", 60, 12, "likely", "futex 0x7f00");
	check_part(why, 1, "running", 5, 11, "certain", "");
	check_step(why, 0, 0, 11, BLOCKED, 1020, 1080);
	assert_int_equal(why_new(&none, capture.model, &(struct why_query){.tid = 5}, &err),
			 -ENOENT);
	assert_string_equal(err.message, "thread 5 is not one of the recorded process's");
	done(&capture, why);
}

static void test_windows_of_several_spans_keep_their_cpus_apart(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1020, 1, 11, 99, 0, 0, 0); /* only this one tells of 99 in the first span */
	gets(&capture, 1200, 1, 99, 11, 0, 0, 0);
	capture_end(&capture, 1210, 11, 1);
	for (uint64_t i = 0; i < 5; i++) {
		gets(&capture, 1300 + 20 * i, 1, 11, 98, 0, 0, 0);
		gets(&capture, 1310 + 20 * i, 1, 98, 11, 0, 0, 0);
	}
	capture_span(&capture, 1500, 11, 2);
	gets(&capture, 1510, 1, 11, 97, 0, 0, 0);
	gets(&capture, 1600, 1, 97, 11, 0, 0, 0);
	capture_end(&capture, 1610, 11, 2);
	why = ask_span(&capture, 1700);
	assert_int_equal(why->instances.len, 2);
	check_part(why, 0, "cpu-contention", 180, 99, "certain", "");
	assert_int_equal(why->parts.data[why->instances.data[1].part].ns, 90);
	assert_int_equal(
		why->model->threads.data[why->parts.data[why->instances.data[1].part].thread].tid,
		97);
	done(&capture, why);
}

/* ---- machines made at random ---- */

#define MACHINE_THREADS 12
#define MACHINE_CPUS 3

struct machine {
	struct capture capture;
	uint64_t random, ts;
	int on_cpu[MACHINE_CPUS]; /* 0: idle */
	uint64_t woken[MACHINE_THREADS];
	uint32_t waker[MACHINE_THREADS];
	bool blocked[MACHINE_THREADS];
	uint64_t span[MACHINE_THREADS], span_id;
};

static unsigned below(struct machine *machine, unsigned limit)
{
	machine->random = machine->random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(machine->random >> 33) % limit;
}

static void machine_switch(struct machine *machine, unsigned cpu)
{
	static const int calls[] = {NR_FUTEX, NR_READ,   NR_NANOSLEEP, NR_POLL,
				    NR_WAIT4, NR_OPENAT, NR_NONE,      NR_RECVFROM};
	int prev = machine->on_cpu[cpu], next = 0;
	bool block = prev && below(machine, 3);
	unsigned first = below(machine, MACHINE_THREADS);

	for (unsigned i = 0; i < MACHINE_THREADS && below(machine, 8); i++) {
		int thread = (int)((first + i) % MACHINE_THREADS);
		bool running = false;

		for (unsigned j = 0; j < MACHINE_CPUS; j++)
			running |= machine->on_cpu[j] == thread + 10;
		if (!running && !machine->blocked[thread])
			next = thread + 10;
	}
	if (prev == next)
		return;
	capture_add(
		&machine->capture,
		&(struct waffle_rec_switch){
			.rec = {machine->ts, (uint32_t)prev, WAFFLE_REC_SWITCH, (uint16_t)cpu},
			.next_tid = (uint32_t)next,
			.waker_tid = next ? machine->waker[next - 10] : 0,
			.wake_ts = next ? machine->woken[next - 10] : 0,
			.prev_state = block ? (below(machine, 3) ? S : D) : 0,
			.flags = (uint8_t)(sides((uint32_t)prev, (uint32_t)next) |
					   (block || !prev ? 0 : WAFFLE_SWITCH_PREEMPTED) |
					   (next && machine->woken[next - 10] ? WAFFLE_SWITCH_WOKEN
									      : 0) |
					   (below(machine, 4) ? 0 : HARD)),
			.syscall = block ? calls[below(machine, 8)] : -1,
			.args = {0x7f00, below(machine, 2) ? FUTEX_MUTEX : FUTEX_COND,
				 below(machine, 4)},
		});
	if (prev) {
		machine->blocked[prev - 10] = block;
		machine->woken[prev - 10] = 0;
	}
	machine->on_cpu[cpu] = next;
}

static void machine_step(struct machine *machine)
{
	unsigned cpu = below(machine, MACHINE_CPUS), thread = below(machine, MACHINE_THREADS);
	int on = machine->on_cpu[cpu];

	machine->ts += 1 + below(machine, 50);
	if (machine->blocked[thread] && below(machine, 2)) {
		machine->blocked[thread] = false;
		machine->woken[thread] = machine->ts;
		machine->waker[thread] = (uint32_t)on;
	}
	if (on && !below(machine, 4)) {
		uint64_t *span = &machine->span[on - 10];

		if (*span)
			capture_end(&machine->capture, machine->ts, (uint32_t)on, *span);
		*span = *span ? 0 : ++machine->span_id;
		if (*span)
			capture_span(&machine->capture, machine->ts, (uint32_t)on, *span);
	} else {
		machine_switch(machine, cpu);
	}
	if (!below(machine, 3000))
		capture_loss(&machine->capture, machine->ts - below(machine, 500), machine->ts,
			     below(machine, 3), 5);
}

static void play(uint64_t seed, unsigned steps, struct why_query query)
{
	struct machine *machine = calloc(1, sizeof(*machine));
	struct why *why;

	assert_non_null(machine);
	machine->random = seed;
	machine->ts = CAPTURE_START;
	capture_begin(&machine->capture, true);
	for (unsigned i = 0; i < steps; i++)
		machine_step(machine);
	/* Sums and the order of times are checked in there. */
	why = ask(&machine->capture, machine->ts + 1, &query);
	assert_true(why->instances.len);
	done(&machine->capture, why);
	free(machine);
}

static void test_parts_of_any_span_sum_to_its_duration(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++)
		play(seed, 2000, (struct why_query){0});
}

static void test_windows_of_any_thread_sum_to_their_length(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 120; seed++)
		play(seed, 1000,
		     (struct why_query){.tid = 10 + (uint32_t)seed % MACHINE_THREADS,
					.from_ts = 5000 + 77 * seed,
					.to_ts = 15000 + 99 * seed});
}

static void test_hundred_thousand_records_are_explained(void **state)
{
	(void)state;
	play(7, 100000, (struct why_query){.slowest = 10});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain_of_three_threads_ends_at_the_last_one),
		cmocka_unit_test(test_wait_for_a_process_is_what_the_process_did),
		cmocka_unit_test(
			test_who_awaits_the_end_of_a_process_is_named_if_it_is_another_one),
		cmocka_unit_test(test_a_child_that_a_signal_ends_is_no_interrupt),
		cmocka_unit_test(test_pipe_of_a_recorded_process_is_followed),
		cmocka_unit_test(test_two_causes_are_ranked_by_their_time),
		cmocka_unit_test(test_lost_records_are_unknown_and_lower_the_grade_beside_them),
		cmocka_unit_test(test_nobody_is_blamed_who_had_the_cpu_before_a_loss),
		cmocka_unit_test(test_lost_details_lower_the_grade_only),
		cmocka_unit_test(test_waker_of_its_own_waiter_is_unknown),
		cmocka_unit_test(test_outside_waker_of_a_futex_ends_the_chain),
		cmocka_unit_test(test_waker_is_not_known_before_its_first_record),
		cmocka_unit_test(test_span_without_an_end_is_explained_as_far_as_it_is_known),
		cmocka_unit_test(test_wait_whose_wake_up_was_not_reported_says_so),
		cmocka_unit_test(test_span_without_a_begin_is_never_certain),
		cmocka_unit_test(test_slowest_come_first_and_no_more_than_wanted),
		cmocka_unit_test(test_slowest_of_many_spans_come_in_order),
		cmocka_unit_test(test_only_spans_of_the_name_are_explained),
		cmocka_unit_test(test_thread_is_explained_in_a_window_that_cuts_its_wait),
		cmocka_unit_test(test_windows_of_several_spans_keep_their_cpus_apart),
		cmocka_unit_test(test_parts_of_any_span_sum_to_its_duration),
		cmocka_unit_test(test_windows_of_any_thread_sum_to_their_length),
		cmocka_unit_test(test_hundred_thousand_records_are_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
