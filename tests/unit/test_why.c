// SPDX-License-Identifier: Apache-2.0
/* Why spans took long, on captures whose right answer is known. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_names.h"
#include "why_turns.h"

#include "calls_capture.h"
#include "render/text/why_text.h"

static const struct why_part *part_at(const struct why *why, uint32_t number)
{
	assert_true(why->instances.len > 0);
	assert_true(number < why->instances.data[0].part_count);
	return &why->parts.data[why->instances.data[0].part + number];
}

static void check_cause(const struct why *why, uint32_t number, enum why_cause cause,
			enum why_grade grade, uint32_t tid, uint64_t ns)
{
	const struct why_part *part = part_at(why, number);

	assert_string_equal(why_causes[part->cause].name, why_causes[cause].name);
	assert_string_equal(why_grade_names[part->grade], why_grade_names[grade]);
	if (tid)
		assert_int_equal(why->model->threads.data[part->thread].tid, tid);
	else
		assert_int_equal(part->thread, MODEL_NONE);
	assert_int_equal(part->ns, ns);
}

/* A's span is 100 µs, of which it waits 90 in a system call that B ends. */
static void wait_for_b(struct capture *capture, struct turn out, uint32_t waker, unsigned flags)
{
	out.ts = 6000;
	out.prev = A;
	out.state = WAFFLE_TASK_INTERRUPTIBLE;
	capture_span(capture, 1000, A, 0xa1);
	turn(capture, out);
	turn(capture, (struct turn){.ts = 97000,
				    .next = A,
				    .waker = waker,
				    .wake_ts = 96000,
				    .flags = flags,
				    .state = 1});
	capture_end(capture, 101000, A, 0xa1);
}

static void test_a_mutex_is_the_work_of_its_holder(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_for_b(&capture, (struct turn){.syscall = NR_FUTEX, .args = MUTEX_ARGS}, B, 0);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 0, WHY_LOCK, WHY_GRADE_LIKELY, B, 90000);
	assert_string_equal(strtab_get(why->texts, part_at(why, 0)->object), "futex 0x1000");
	check_cause(why, 1, WHY_RUNNING, WHY_GRADE_CERTAIN, A, 9000);
	check_cause(why, 2, WHY_CPU_CONTENTION, WHY_GRADE_LIKELY, 0, 1000);
	assert_int_equal(why->instances.data[0].blocked_ns, 90000);
	assert_int_equal(why->instances.data[0].runnable_ns, 1000);
	done(&capture, why);
}

static const char *queue_lock(void *arg, uint32_t pid, uint64_t ts, uint64_t address)
{
	assert_int_equal(pid, CAPTURE_PID);
	assert_int_equal(ts, 6000);
	assert_int_equal(address, 0x1000);
	return arg;
}

static void test_a_lock_has_the_name_of_its_variable_where_that_is_known(void **state)
{
	static char name[] = "queue_lock";
	struct stack_names known = {.arg = name, .variable = queue_lock};
	struct stack_names unknown = {.variable = queue_lock};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_for_b(&capture, (struct turn){.syscall = NR_FUTEX, .args = MUTEX_ARGS}, B, 0);
	why = ask(&capture, END_TS, &(struct why_query){.names = &known});
	assert_string_equal(strtab_get(why->texts, part_at(why, 0)->object),
			    "futex 0x1000 (queue_lock)");
	done(&capture, why);
	begin(&capture);
	wait_for_b(&capture, (struct turn){.syscall = NR_FUTEX, .args = MUTEX_ARGS}, B, 0);
	why = ask(&capture, END_TS, &(struct why_query){.names = &unknown});
	assert_string_equal(strtab_get(why->texts, part_at(why, 0)->object), "futex 0x1000");
	done(&capture, why);
}

static void test_a_condition_is_the_work_of_whoever_signals_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_for_b(&capture, (struct turn){.syscall = NR_FUTEX, .args = CONDITION_ARGS}, B, 0);
	why = ask(&capture, END_TS, &(struct why_query){0});
	/* Only names of functions could show that it is a condition variable. */
	check_cause(why, 0, WHY_USER_WORK, WHY_GRADE_LIKELY, B, 90000);
	done(&capture, why);
}

/* A waits for B, which waits for C, which sleeps for a while and then computes. */
static void test_a_chain_of_three_threads_ends_at_the_last_one(void **state)
{
	struct capture capture;
	struct why *why;
	const struct why_part *part;

	(void)state;
	begin(&capture);
	capture_span(&capture, 1000, A, 0xa1);
	turn(&capture, (struct turn){.ts = 2000,
				     .cpu = 1,
				     .prev = B,
				     .state = 1,
				     .syscall = NR_FUTEX,
				     .args = CONDITION_ARGS});
	turn(&capture,
	     (struct turn){
		     .ts = 6000, .prev = A, .state = 1, .syscall = NR_FUTEX, .args = MUTEX_ARGS});
	turn(&capture,
	     (struct turn){.ts = 10000, .cpu = 2, .prev = C, .state = 1, .syscall = NR_NANOSLEEP});
	turn(&capture, (struct turn){.ts = 60000,
				     .cpu = 2,
				     .next = C,
				     .waker = NEIGHBOUR,
				     .wake_ts = 60000,
				     .flags = WAFFLE_SWITCH_WAKER_HARDIRQ,
				     .state = 1});
	turn(&capture,
	     (struct turn){
		     .ts = 90000, .cpu = 1, .next = B, .waker = C, .wake_ts = 90000, .state = 1});
	turn(&capture,
	     (struct turn){.ts = 96000, .next = A, .waker = B, .wake_ts = 96000, .state = 1});
	capture_end(&capture, 101000, A, 0xa1);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 0, WHY_SLEEP, WHY_GRADE_LIKELY, C, 50000);
	part = part_at(why, 0);
	assert_int_equal(part->step_count, 3);
	assert_int_equal(why->steps.data[part->step + 1].syscall, NR_FUTEX);
	assert_int_equal(why->steps.data[part->step + 2].syscall, NR_NANOSLEEP);
	/* 6000 to 10000 and 60000 to 90000, named by the last link. */
	check_cause(why, 1, WHY_USER_WORK, WHY_GRADE_LIKELY, C, 34000);
	check_cause(why, 2, WHY_RUNNING, WHY_GRADE_CERTAIN, A, 10000);
	check_cause(why, 3, WHY_LOCK, WHY_GRADE_LIKELY, B, 6000);
	done(&capture, why);
}

static void test_a_waker_outside_is_not_recorded(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_for_b(&capture, (struct turn){.syscall = NR_FUTEX, .args = CONDITION_ARGS}, NEIGHBOUR,
		   0);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 0, WHY_NOT_RECORDED, WHY_GRADE_LIKELY, NEIGHBOUR, 90000);
	done(&capture, why);
}

static void test_who_an_interrupt_met_is_not_to_blame(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_for_b(&capture, (struct turn){.syscall = NR_READ}, B, WAFFLE_SWITCH_WAKER_HARDIRQ);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 0, WHY_INTERRUPT, WHY_GRADE_LIKELY, 0, 90000);
	assert_true(why->steps.data[part_at(why, 0)->step].interrupt);
	done(&capture, why);
}

/* A timer ends a sleep: that a thread did is against all rules, if it was not by a signal. */
static void test_a_sleep_is_the_sleepers_whoever_ends_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_for_b(&capture, (struct turn){.syscall = NR_NANOSLEEP}, B, 0);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 0, WHY_SLEEP, WHY_GRADE_LIKELY, A, 90000);
	done(&capture, why);
}

/* By the records, each woke the other while it was blocked itself. */
static void test_wakers_in_a_circle_are_unknown(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	turn(&capture, (struct turn){.ts = 2000,
				     .cpu = 1,
				     .prev = B,
				     .state = 1,
				     .syscall = NR_FUTEX,
				     .args = CONDITION_ARGS});
	capture_span(&capture, 2500, A, 0xa1);
	turn(&capture,
	     (struct turn){
		     .ts = 6000, .prev = A, .state = 1, .syscall = NR_FUTEX, .args = MUTEX_ARGS});
	turn(&capture,
	     (struct turn){
		     .ts = 90000, .cpu = 1, .next = B, .waker = A, .wake_ts = 90000, .state = 1});
	turn(&capture,
	     (struct turn){.ts = 90000, .next = A, .waker = B, .wake_ts = 90000, .state = 1});
	capture_end(&capture, 101000, A, 0xa1);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 0, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, 0, 84000);
	done(&capture, why);
}

static void test_a_preempted_thread_is_behind_those_who_ran(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_span(&capture, 1000, A, 0xa1);
	turn(&capture, (struct turn){.ts = 11000, .prev = A, .next = B});
	turn(&capture,
	     (struct turn){.ts = 41000, .prev = B, .next = NEIGHBOUR, .state = 1, .syscall = -1});
	turn(&capture,
	     (struct turn){.ts = 61000, .prev = NEIGHBOUR, .next = A, .state = 1, .syscall = -1});
	capture_end(&capture, 101000, A, 0xa1);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 0, WHY_RUNNING, WHY_GRADE_CERTAIN, A, 50000);
	check_cause(why, 1, WHY_CPU_CONTENTION, WHY_GRADE_CERTAIN, B, 30000);
	check_cause(why, 2, WHY_CPU_CONTENTION, WHY_GRADE_CERTAIN, NEIGHBOUR, 20000);
	done(&capture, why);
}

/* Of the cgroups whose folders have one inode, that with the controller has throttled the thread.
 */
static void check_throttled_by(const char *detail, const char *name)
{
	const struct store_object cgroup = {
		.ino = 77, .name = "/sys/fs/cgroup/app", .detail = detail};
	struct error err = ERROR_INIT;
	struct capture capture;
	struct why *why;
	struct waffle_rec_quota quota = {.rec = {61000, A, WAFFLE_REC_QUOTA, 0},
					 .throttled_ns = 45000,
					 .cgroup = 77,
					 .quota_ns = 10,
					 .period_ns = 50};

	begin(&capture);
	capture_must(store_writer_add_object(capture.writer, &cgroup, &err), err);
	capture_span(&capture, 1000, A, 0xa1);
	turn(&capture, (struct turn){.ts = 11000, .prev = A, .next = B});
	turn(&capture, (struct turn){.ts = 61000, .prev = B, .next = A});
	capture_add(&capture, &quota);
	capture_end(&capture, 101000, A, 0xa1);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 1, WHY_CPU_QUOTA, WHY_GRADE_CERTAIN, A, 45000);
	assert_string_equal(strtab_get(why->texts, part_at(why, 1)->object), name);
	check_cause(why, 2, WHY_CPU_CONTENTION, WHY_GRADE_CERTAIN, B, 5000);
	done(&capture, why);
}

static void test_throttled_time_is_the_quotas(void **state)
{
	(void)state;
	check_throttled_by("cgroup pids", "cgroup 77");
	check_throttled_by("cgroup cpu", "/sys/fs/cgroup/app");
	check_throttled_by("cgroup", "/sys/fs/cgroup/app"); /* of an older version */
}

/* Process `tid` ran `ran_us` of the last 10 ms in the cgroup, in which it may use 4 ms; 1: of the
 * last 0.9 ms. */
struct outside {
	uint32_t tid;
	uint64_t ran_us;
	const char *comm;
};

static void add_outside(struct capture *capture, uint64_t ts, const struct outside *outside)
{
	struct waffle_rec_task task = {.rec = {ts, outside->tid, WAFFLE_REC_TASK, 0},
				       .tgid = outside->tid};
	struct waffle_rec_io_limit limit = {.rec = {ts, outside->tid, WAFFLE_REC_IO_LIMIT, 0},
					    .cgroup = 77,
					    .limit = outside->ran_us * 1000,
					    .dev = outside->ran_us > 1 ? 10 : 0,
					    .kind = WAFFLE_IO_LIMIT_CPU_USER};

	snprintf(task.comm, sizeof(task.comm), "%s", outside->comm);
	if (outside->tid != A)
		capture_add(capture, &task);
	capture_add(capture, &limit);
}

/* A runs for `ran_us` of a period of 200 µs, of which its cgroup may run 80, and is throttled for
 * the rest. If B is given, it ran `sibling_us` on another CPU. `outside` ends without a tid. */
static struct why *ask_throttled(struct capture *capture, uint64_t ran_us, uint64_t sibling_us,
				 const struct outside *outside)
{
	uint64_t from = 10000, out = from + ran_us * 1000, in = from + 200000;
	struct waffle_rec_quota quota = {.rec = {in, A, WAFFLE_REC_QUOTA, 0},
					 .throttled_ns = in - out,
					 .cgroup = 77,
					 .quota_ns = 80000,
					 .period_ns = 200000};

	begin(capture);
	turn(capture, (struct turn){.ts = 5000, .next = A});
	capture_span(capture, 6000, A, 0xa1);
	turn(capture, (struct turn){.ts = out, .prev = A});
	if (sibling_us) {
		turn(capture, (struct turn){.ts = out, .next = B});
		turn(capture, (struct turn){.ts = out + sibling_us * 1000, .prev = B});
	}
	turn(capture, (struct turn){.ts = in, .next = A});
	capture_add(capture, &quota);
	capture_end(capture, in + 1000, A, 0xa1);
	for (; outside->tid; outside++)
		add_outside(capture, in + 2000, outside);
	return ask(capture, in + 2000, &(struct why_query){0});
}

static void check_throttled(uint64_t ran_us, uint64_t sibling_us, enum why_grade grade,
			    uint32_t tid, const char *rest)
{
	struct capture capture;
	struct why *why = ask_throttled(&capture, ran_us, sibling_us, &(struct outside){0});
	bool found = false;

	check_cause(why, 0, WHY_CPU_QUOTA, grade, tid, 200000 - ran_us * 1000);
	for (size_t i = 0; i < why->steps.len; i++) {
		const char *meaning = strtab_get(why->texts, why->steps.data[i].meaning);

		assert_true(rest || !strstr(meaning, "not recorded"));
		found |= rest && strstr(meaning, rest);
	}
	assert_int_equal(found, rest != NULL);
	done(&capture, why);
}

static void test_a_quota_that_others_used_is_not_blamed_on_the_throttled_thread(void **state)
{
	(void)state;
	check_throttled(75, 0, WHY_GRADE_CERTAIN, A, NULL);
	check_throttled(50, 0, WHY_GRADE_CERTAIN, A, "; others, not recorded, about 30.0 us");
	check_throttled(10, 0, WHY_GRADE_LIKELY, 0, "; others, not recorded, about 70.0 us");
	/* The other thread of the process may be in that cgroup, which no record says. */
	check_throttled(10, 65, WHY_GRADE_LIKELY, A, NULL);
}

static void test_a_quota_that_other_processes_used_is_theirs(void **state)
{
	static const struct {
		struct outside outside[4];
		uint32_t culprit; /* 0: none */
		const char *text;
	} rows[] = {
		{{{31, 2500, "hog"}, {32, 400, "small"}},
		 31,
		 "about 70.0 us, in the capture mostly hog (31)"},
		{{{31, 900, "w"}, {32, 1000, "w"}, {33, 800, "w"}}, 32, "mostly w (32) and 2 more"},
		{{{31, 1900, "hog"}, {32, 400, "small"}}, 0, "about 70.0 us"}, /* less than half */
		{{{31, 9000, "hog"}}, 0, "about 70.0 us"}, /* it ran in another cgroup as well */
		{{{31, 2500, "x"}, {32, 2000, "y"}, {33, 2000, "y"}},
		 32,
		 "mostly y (32) and 1 more"},
		{{{A, 2500, "a"}}, 0, "about 70.0 us"}, /* the traced one, at another time */
		{{{31, 1, "hog"}}, 0, "about 70.0 us"}, /* in less than a millisecond */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why = ask_throttled(&capture, 10, 0, rows[i].outside);
		bool found = false;

		check_cause(why, 0, WHY_CPU_QUOTA, WHY_GRADE_LIKELY, rows[i].culprit, 190000);
		for (size_t k = 0; k < why->steps.len; k++) {
			const char *meaning = strtab_get(why->texts, why->steps.data[k].meaning);

			found |= strstr(meaning, rows[i].text) != NULL;
			assert_true(rows[i].culprit || !strstr(meaning, "mostly"));
		}
		assert_true(found);
		done(&capture, why);
	}
	/* The thread itself used it up in that period, whatever others did in the others. */
	{
		struct capture capture;
		struct why *why = ask_throttled(&capture, 75, 0,
						(const struct outside[]){{31, 2500, "hog"}, {0}});

		check_cause(why, 0, WHY_CPU_QUOTA, WHY_GRADE_CERTAIN, A, 125000);
		done(&capture, why);
	}
}

static void test_a_stop_is_the_senders(void **state)
{
	struct capture capture;
	struct why *why;
	struct waffle_rec_signal signal = {.rec = {5500, C, WAFFLE_REC_SIGNAL, 0},
					   .target_tid = A,
					   .target_tgid = CAPTURE_PID,
					   .signo = 19};

	(void)state;
	begin(&capture);
	capture_span(&capture, 1000, A, 0xa1);
	capture_add(&capture, &signal);
	turn(&capture, (struct turn){.ts = 6000, .prev = A, .state = 4, .syscall = -1});
	turn(&capture,
	     (struct turn){.ts = 96000, .next = A, .waker = B, .wake_ts = 96000, .state = 1});
	capture_end(&capture, 101000, A, 0xa1);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 0, WHY_STOPPED, WHY_GRADE_CERTAIN, C, 90000);
	done(&capture, why);
}

static void test_lost_records_leave_nothing_certain(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_for_b(&capture, (struct turn){.syscall = NR_NANOSLEEP}, B, 0);
	capture_loss(&capture, 98000, 99000, WAFFLE_SOURCE_SCHED, 3);
	why = ask(&capture, END_TS, &(struct why_query){0});
	assert_true(why->instances.data[0].loss);
	for (uint32_t i = 0; i < why->instances.data[0].part_count; i++)
		assert_int_not_equal(part_at(why, i)->grade, WHY_GRADE_CERTAIN);
	assert_true(why->instances.data[0].unknown_ns >= 1000);
	done(&capture, why);
}

static void test_minor_faults_are_taken_out_of_what_ran(void **state)
{
	struct capture capture;
	struct why *why;
	struct waffle_rec_fault fault = {.rec = {41000, A, WAFFLE_REC_FAULT, 0},
					 .from_ts = 11000,
					 .total_ns = 20000,
					 .count = 2};

	(void)state;
	begin(&capture);
	capture_span(&capture, 1000, A, 0xa1);
	capture_add(&capture, &fault);
	capture_end(&capture, 101000, A, 0xa1);
	why = ask(&capture, END_TS, &(struct why_query){0});
	check_cause(why, 0, WHY_RUNNING, WHY_GRADE_CERTAIN, A, 79000);
	check_cause(why, 1, WHY_PAGE_FAULT_MINOR, WHY_GRADE_LIKELY, A, 21000);
	assert_int_equal(why->instances.data[0].running_ns, 100000);
	done(&capture, why);
}

static void test_the_slowest_come_first_and_no_more_than_asked_for(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 5; i++) {
		capture_span(&capture, 2000 + 10000 * i, A, 0xa1 + i);
		capture_end(&capture, 3000 + 10000 * i + 100 * ((i * 3) % 5), A, 0xa1 + i);
	}
	why = ask(&capture, END_TS, &(struct why_query){.name = "step", .slowest = 2});
	assert_int_equal(why->instances.len, 2);
	assert_int_equal(why->instances.data[0].to_ts - why->instances.data[0].from_ts, 1400);
	assert_int_equal(why->instances.data[1].to_ts - why->instances.data[1].from_ts, 1300);
	done(&capture, why);
}

static void test_spans_of_unknown_length_come_last_where_records_were_lost(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_end(&capture, 9000, A, 0xa1); /* its begin may be lost */
	capture_loss(&capture, 2000, 2001, WAFFLE_SOURCE_SPANS, 3);
	capture_span(&capture, 20000, A, 0xa2);
	capture_end(&capture, 20100, A, 0xa2);
	capture_span(&capture, 20200, A, 0xa3);
	capture_loss(&capture, 20300, 20301, WAFFLE_SOURCE_SCHED, 3); /* no end of a span */
	why = ask(&capture, END_TS, &(struct why_query){.name = "step", .slowest = 3});
	assert_int_equal(why->instances.len, 3);
	assert_true(why->instances.data[0].unfinished);
	assert_int_equal(why->instances.data[1].to_ts - why->instances.data[1].from_ts, 100);
	assert_true(why->instances.data[2].begun_before && why->instances.data[2].ranks_behind);
	done(&capture, why);
}

/* A waits for a mutex or a condition variable until B, which has slept meanwhile, wakes it. */
static struct why *ask_who_sleeps(struct capture *capture, const struct turn out,
				  struct stack_names *names)
{
	begin(capture);
	turn(capture, (struct turn){.ts = 5000,
				    .cpu = 1,
				    .prev = B,
				    .state = WAFFLE_TASK_INTERRUPTIBLE,
				    .syscall = NR_NANOSLEEP});
	capture_span(capture, 5500, A, 0xa1);
	turn(capture, (struct turn){.ts = 6000,
				    .prev = A,
				    .state = WAFFLE_TASK_INTERRUPTIBLE,
				    .syscall = out.syscall,
				    .args = {out.args[0], out.args[1], out.args[2]}});
	turn(capture, (struct turn){.ts = 95000,
				    .cpu = 1,
				    .next = B,
				    .wake_ts = 95000,
				    .flags = WAFFLE_SWITCH_WAKER_HARDIRQ});
	turn(capture, (struct turn){.ts = 97000, .next = A, .waker = B, .wake_ts = 96000});
	capture_end(capture, 100000, A, 0xa1);
	return ask(capture, END_TS, &(struct why_query){.names = names});
}

static void test_who_sleeps_with_a_lock_is_said_to_hold_it(void **state)
{
	static char name[] = "queue_lock";
	struct stack_names names = {.arg = name, .variable = queue_lock};
	struct capture capture;
	struct why *why = ask_who_sleeps(
		&capture, (struct turn){.syscall = NR_FUTEX, .args = MUTEX_ARGS}, &names);

	(void)state;
	check_cause(why, 0, WHY_SLEEP, WHY_GRADE_LIKELY, B, 89000);
	check_why_text(why, "  likely   b (11), holds queue_lock\n");
	done(&capture, why);
	/* No name of a function is known that waits for it, and its address says nothing. */
	why = ask_who_sleeps(&capture, (struct turn){.syscall = NR_FUTEX, .args = MUTEX_ARGS},
			     NULL);
	assert_string_equal(strtab_get(why->texts, part_at(why, 0)->lock), "futex 0x1000");
	check_why_text(why, "  likely   b (11)\n");
	done(&capture, why);
	why = ask_who_sleeps(&capture, (struct turn){.syscall = NR_FUTEX, .args = CONDITION_ARGS},
			     NULL);
	check_cause(why, 0, WHY_SLEEP, WHY_GRADE_LIKELY, B, 89000);
	assert_int_equal(part_at(why, 0)->lock, 0);
	done(&capture, why);
}

/* A span of 10 µs of thread A, by a call of MPI. */
static void calls_mpi(struct capture *capture, uint64_t from, const char *name, enum site_role role,
		      uint32_t number)
{
	const struct site_info site = {.name = name,
				       .category = "mpi",
				       .file = "",
				       .func = "",
				       .object = "/lib/libmpi.so",
				       .kind = WAFFLE_SITE_SPAN,
				       .role = (uint16_t)role,
				       .call = true};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_site(capture->writer, &site, &err), err);
	call_hit_in(capture, CAPTURE_PID, from, A, CAPTURE_SITES + number, from, 0, NULL);
	call_return_in(capture, CAPTURE_PID, from + 10000, A, CAPTURE_SITES + number, from, 0,
		       NULL);
}

static void test_the_start_and_the_end_of_mpi_come_behind_what_the_program_repeats(void **state)
{
	static const char *const order[] = {"step", "step", "MPI_Init", "MPI_Finalize"};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	calls_mpi(&capture, 2000, "MPI_Init", SITE_ROLE_MPI_INIT, 0);
	for (uint64_t i = 0; i < 2; i++) {
		capture_span(&capture, 13000 + 1000 * i, A, 0xa1 + i);
		capture_end(&capture, 13500 + 1000 * i, A, 0xa1 + i);
	}
	calls_mpi(&capture, 20000, "MPI_Finalize", SITE_ROLE_NONE, 1);
	why = ask(&capture, END_TS, &(struct why_query){.slowest = 4});
	assert_int_equal(why->instances.len, 4);
	for (size_t i = 0; i < 4; i++) {
		uint32_t span = why->instances.data[i].span;

		assert_string_equal(model_site(why->model, why->model->spans.data[span].site)->name,
				    order[i]);
	}
	done(&capture, why);
}

static void test_a_window_of_a_thread_is_an_instance(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_for_b(&capture, (struct turn){.syscall = NR_FUTEX, .args = MUTEX_ARGS}, B, 0);
	why = ask(&capture, END_TS,
		  &(struct why_query){.tid = A, .from_ts = 50000, .to_ts = 60000});
	assert_int_equal(why->instances.data[0].span, MODEL_NONE);
	check_cause(why, 0, WHY_LOCK, WHY_GRADE_LIKELY, B, 10000);
	done(&capture, why);
}

/* The time before its birth is not unknown time of this thread. */
static void test_a_thread_that_was_born_in_the_window_begins_there(void **state)
{
	struct waffle_rec_task task = {.rec = {50000, A, WAFFLE_REC_TASK, 0},
				       .tgid = CAPTURE_PID,
				       .flags = WAFFLE_TASK_TRACED_FLAG,
				       .start_ts = 49990};
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	capture_add(&capture, &task);
	turn(&capture, (struct turn){.ts = 50000, .next = A, .state = 1});
	capture_span(&capture, 60000, A, 0xa1);
	capture_end(&capture, 61000, A, 0xa1);
	why = ask(&capture, END_TS, &(struct why_query){.tid = A, .to_ts = 60000});
	assert_int_equal(why->instances.data[0].from_ts, 49990);
	check_cause(why, 0, WHY_RUNNING, WHY_GRADE_CERTAIN, A, 10000);
	done(&capture, why);
}

static void test_without_the_scheduler_it_says_so(void **state)
{
	struct why_query query = {0};
	struct error err = ERROR_INIT;
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1000, A, 0xa1);
	capture_end(&capture, 2000, A, 0xa1);
	assert_int_equal(why_new(&why, capture_load(&capture, END_TS), &query, &err), -ENODATA);
	assert_non_null(strstr(err.message, "sched"));
	assert_null(why);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_mutex_is_the_work_of_its_holder),
		cmocka_unit_test(test_a_lock_has_the_name_of_its_variable_where_that_is_known),
		cmocka_unit_test(test_a_condition_is_the_work_of_whoever_signals_it),
		cmocka_unit_test(test_a_chain_of_three_threads_ends_at_the_last_one),
		cmocka_unit_test(test_a_waker_outside_is_not_recorded),
		cmocka_unit_test(test_who_an_interrupt_met_is_not_to_blame),
		cmocka_unit_test(test_a_sleep_is_the_sleepers_whoever_ends_it),
		cmocka_unit_test(test_wakers_in_a_circle_are_unknown),
		cmocka_unit_test(test_a_preempted_thread_is_behind_those_who_ran),
		cmocka_unit_test(test_throttled_time_is_the_quotas),
		cmocka_unit_test(
			test_a_quota_that_others_used_is_not_blamed_on_the_throttled_thread),
		cmocka_unit_test(test_a_quota_that_other_processes_used_is_theirs),
		cmocka_unit_test(test_a_stop_is_the_senders),
		cmocka_unit_test(test_lost_records_leave_nothing_certain),
		cmocka_unit_test(test_minor_faults_are_taken_out_of_what_ran),
		cmocka_unit_test(test_the_slowest_come_first_and_no_more_than_asked_for),
		cmocka_unit_test(test_spans_of_unknown_length_come_last_where_records_were_lost),
		cmocka_unit_test(test_who_sleeps_with_a_lock_is_said_to_hold_it),
		cmocka_unit_test(
			test_the_start_and_the_end_of_mpi_come_behind_what_the_program_repeats),
		cmocka_unit_test(test_a_window_of_a_thread_is_an_instance),
		cmocka_unit_test(test_a_thread_that_was_born_in_the_window_begins_there),
		cmocka_unit_test(test_without_the_scheduler_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
