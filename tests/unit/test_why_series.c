// SPDX-License-Identifier: Apache-2.0
/* Wake-ups that end no wait, signals, and what waffle-bpf itself did. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "why_capture.h"

#define NR_RESTART 219
#define NR_EXECVE 59
#define NR_SEMOP 65
#define NR_WAITID 247
#define NR_PAUSE 34
#define NR_SIGTIMEDWAIT 128
#define MS 1000000ull
#define SI_BPF 0x80

/* Thread 11 runs on CPU 1 and begins a span at 1 ms. */
#define FUTEX_PI 0x86 /* FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG */

static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	named(capture, 12, 10, "ticker");
	named(capture, 13, 10, "doer");
	gets(capture, MS - 200, 1, 0, 11, 0, 0, 0);
	gets(capture, MS - 190, 2, 0, 12, 0, 0, 0);
	gets(capture, MS - 180, 3, 0, 13, 0, 0, 0);
	capture_span(capture, MS, 11, 1);
}

/* Thread 11 waits from the ms `from` to `to`, `late_ns` later than the first; woken by `waker`. */
static void wait_of(struct capture *capture, uint64_t from, uint64_t late_ns, uint64_t to,
		    int syscall, uint64_t object, uint64_t op, uint64_t value, uint32_t waker,
		    unsigned flags)
{
	waits(capture, from * MS + late_ns, 1, 11, 0, S, syscall, object, op, value);
	gets(capture, to * MS, 1, 0, 11, waker, to * MS, flags);
}

static struct why *end(struct capture *capture, uint64_t ms)
{
	capture_end(capture, ms * MS, 11, 1);
	return ask_span(capture, (ms + 1) * MS);
}

static void sent(struct capture *capture, uint64_t ts, uint32_t sender, uint32_t target, int signo,
		 int code)
{
	struct waffle_rec_signal rec = {.rec = {ts, sender, WAFFLE_REC_SIGNAL, 0},
					.target_tid = target,
					.target_tgid = 10,
					.signo = signo,
					.code = code};

	capture_add(capture, &rec);
}

static void told_major(struct capture *capture, uint64_t from_ts, uint64_t ts, uint32_t tid)
{
	struct waffle_rec_fault rec = {.rec = {ts, tid, WAFFLE_REC_FAULT, 0},
				       .from_ts = from_ts,
				       .total_ns = ts - from_ts,
				       .count = 1,
				       .flags = WAFFLE_FAULT_MAJOR};

	capture_add(capture, &rec);
}

static const struct why_step *first_step(const struct why *why, uint32_t part)
{
	return &why->steps.data[part_of(why, part)->step];
}

static void test_a_broadcast_for_another_is_no_end_of_a_wait(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_of(&capture, 1, 10, 5, NR_FUTEX, 0x7f00, FUTEX_COND, 0, 12, 0);
	/* The condition variable's other futex. */
	wait_of(&capture, 5, 10, 9, NR_FUTEX, 0x7f04, FUTEX_COND, 0, 12, 0);
	wait_of(&capture, 9, 10, 13, NR_FUTEX, 0x7f00, FUTEX_COND, 0, 13, 0);
	why = end(&capture, 13);
	check_part(why, 0, "user-work", 12 * MS - 30, 13, "likely", "futex 0x7f00");
	assert_int_equal(first_step(why, 0)->wakes, 3);
	assert_int_equal(first_step(why, 0)->woken_count, 2);
	assert_int_equal(why->model->threads.data[first_step(why, 0)->woken_by].tid, 12);
	done(&capture, why);
}

/* A semaphore on the stack has the same address each time. */
static void test_a_thread_ends_no_wait_from_before_its_start(void **state)
{
	struct waffle_rec_task young = {.rec = {5 * MS + 5, 14, WAFFLE_REC_TASK, 0},
					.tgid = 10,
					.flags = WAFFLE_TASK_TRACED_FLAG,
					.start_ts = 5 * MS + 5,
					.comm = "young"};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_of(&capture, 1, 10, 5, NR_FUTEX, 0x7f00, FUTEX_COND, 0, 12, 0);
	capture_add(&capture, &young);
	gets(&capture, 5 * MS + 6, 4, 0, 14, 11, 5 * MS + 5, WAFFLE_SWITCH_NEW);
	wait_of(&capture, 5, 10, 8, NR_FUTEX, 0x7f00, FUTEX_COND, 0, 14, 0);
	why = end(&capture, 8);
	check_part(why, 0, "user-work", 4 * MS - 10, 12, "likely", "futex 0x7f00");
	check_part(why, 1, "user-work", 3 * MS - 10, 14, "likely", "futex 0x7f00");
	done(&capture, why);
}

#define FUTEX_TIMED 0x189 /* FUTEX_COND | FUTEX_CLOCK_REALTIME */

/* queue.get(timeout=) in a loop: Python runs longer between two waits than C does. */
static void test_timeouts_of_python_end_no_wait(void **state)
{
	(void)state;
	for (int python = 0; python < 2; python++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		if (python)
			mapping(&capture, 0x400000, 0x500000, "/usr/bin/python3.11");
		wait_of(&capture, 1, 10, 5, NR_FUTEX, 0x7f00, FUTEX_TIMED, 0, 0, HARD);
		wait_of(&capture, 5, 300000, 9, NR_FUTEX, 0x7f00, FUTEX_TIMED, 0, 0, HARD);
		wait_of(&capture, 9, 300000, 13, NR_FUTEX, 0x7f00, FUTEX_TIMED, 0, 13, 0);
		why = end(&capture, 13);
		if (python)
			check_part(why, 0, "user-work", 12 * MS - 600010, 13, "likely",
				   "futex 0x7f00");
		else
			check_part(why, 0, "timer", 8 * MS - 300010, 11, "likely", "futex 0x7f00");
		done(&capture, why);
	}
}

/* Thread 12 has nothing to run. */
static void rest(struct capture *capture)
{
	waits(capture, MS + 1, 2, 12, 0, S, NR_NANOSLEEP, 0x9100, 0, 0);
}

static const struct {
	int syscall;
	uint64_t object, op;
	const char *cause, *text;
} any_of_several[] = {{NR_READ, 3, 0, "pipe", "pipe:[7]"},
		      {NR_RECVFROM, 3, 0, "socket", "pipe:[7]"},
		      {NR_WAIT4, (uint64_t)-1, 0, "process-exit", "pipe:[7]"},
		      {NR_SEMOP, 3, 0, "user-work", "pipe:[7]"}};

/* Its condition may have come true while it was awake. */
static void test_who_ends_repeated_waits_is_likely(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(any_of_several) / sizeof(any_of_several[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		rest(&capture);
		object(&capture, "pipe:[7]", "");
		wait_of(&capture, 1, 10, 5, any_of_several[i].syscall, any_of_several[i].object, 0,
			0, 13, 0);
		wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
		wait_of(&capture, 5, 10, 9, any_of_several[i].syscall, any_of_several[i].object, 0,
			0, 13, 0);
		wait_details(&capture, 5 * MS + 10, 9 * MS, 11, 1, 0, 0);
		why = end(&capture, 9);
		check_part(why, 0, any_of_several[i].cause, 8 * MS - 20, 13, "likely",
			   any_of_several[i].text);
		done(&capture, why);
	}
}

/* It also waits for something else in between, which takes the place in the cache. */
static void test_the_last_of_repeated_waits_is_likely_as_well(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	rest(&capture);
	wait_of(&capture, 1, 10, 5, NR_RECVFROM, 3, 0, 0, 13, 0);
	/* The number of this call has the same remainder. */
	wait_of(&capture, 6, 0, 8, NR_SEMOP, 9, 0, 0, 13, 0);
	wait_of(&capture, 9, 0, 20, NR_RECVFROM, 3, 0, 0, 13, 0);
	why = end(&capture, 20);
	check_part(why, 0, "socket", 15 * MS - 10, 13, "likely", "");
	done(&capture, why);
}

static void test_who_ends_a_single_wait_is_certain_if_nobody_else_ran(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(any_of_several) / sizeof(any_of_several[0]); i++) {
		struct capture capture;
		struct why *why;

		for (int others = 0; others < 2; others++) {
			begin(&capture);
			if (!others)
				rest(&capture);
			object(&capture, "pipe:[7]", "");
			wait_of(&capture, 1, 10, 5, any_of_several[i].syscall,
				any_of_several[i].object, 0, 0, 13, 0);
			wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
			why = end(&capture, 5);
			check_part(why, 0, any_of_several[i].cause, 4 * MS - 10, 13,
				   others ? "likely" : "certain", any_of_several[i].text);
			done(&capture, why);
		}
	}
}

/* Threads that are not traced say nothing about a wait, however many there are. */
static void test_untraced_threads_make_no_wait_doubtful(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	rest(&capture);
	object(&capture, "pipe:[7]", "");
	for (uint32_t tid = 100; tid < 500; tid++)
		named(&capture, tid, 5, "neighbour");
	wait_of(&capture, 1, 10, 5, NR_READ, 3, 0, 0, 13, 0);
	wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
	why = end(&capture, 5);
	check_part(why, 0, "pipe", 4 * MS - 10, 13, "certain", "pipe:[7]");
	done(&capture, why);
}

/* No record shows whether more arrived before it had a CPU. */
static void test_who_ends_a_wait_is_likely_if_the_thread_could_look_late(void **state)
{
	static const struct {
		uint64_t late_ns;
		const char *grade;
	} rows[] = {{390000, "certain"}, {410000, "likely"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		rest(&capture);
		waits(&capture, MS, 1, 11, 0, S, NR_READ, 3, 0, 0);
		gets(&capture, 5 * MS + rows[i].late_ns, 1, 0, 11, 13, 5 * MS, 0);
		why = end(&capture, 6);
		check_part(why, 0, "user-work", 4 * MS, 13, rows[i].grade, "");
		done(&capture, why);
	}
}

/* A wait that was not examined may have been for the same thing. */
static void test_a_wait_is_likely_if_not_all_others_were_searched(void **state)
{
	static const struct {
		unsigned sleeps;
		const char *grade;
	} rows[] = {{100, "certain"}, {2000, "likely"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;
		uint64_t ts = 5 * MS;

		begin(&capture);
		rest(&capture);
		wait_of(&capture, 1, 10, 5, NR_READ, 3, 0, 0, 13, 0);
		for (unsigned sleep = 0; sleep < rows[i].sleeps; sleep++, ts += 1000) {
			waits(&capture, ts + 10, 1, 11, 0, S, NR_NANOSLEEP, 0x9100, 0, 0);
			gets(&capture, ts + 900, 1, 0, 11, 0, ts + 900, HARD);
		}
		why = end(&capture, 8);
		check_part(why, 0, "user-work", 4 * MS - 10, 13, rows[i].grade, "");
		done(&capture, why);
	}
}

/* Any room is as good as other room. */
static void test_who_makes_room_each_time_is_certain(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	for (uint32_t first = 12; first <= 13; first++) {
		begin(&capture);
		object(&capture, "pipe:[7]", "");
		wait_of(&capture, 1, 10, 5, NR_WRITE, 3, 0, 0, first, 0);
		wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
		wait_of(&capture, 5, 10, 9, NR_WRITE, 3, 0, 0, 13, 0);
		wait_details(&capture, 5 * MS + 10, 9 * MS, 11, 1, 0, 0);
		why = end(&capture, 9);
		check_part(why, 0, "pipe", 8 * MS - 20, 13, first == 13 ? "certain" : "likely",
			   "pipe:[7]");
		done(&capture, why);
	}
}

/* It ran for long in between: whether that was for what woke it is not known. */
static void test_an_event_loop_that_works_in_between_is_likely(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_of(&capture, 1, 10, 5, NR_EPOLL_WAIT, 4, 0, 0, 12, 0);
	wait_of(&capture, 8, 0, 20, NR_EPOLL_WAIT, 4, 0, 0, 13, 0);
	why = end(&capture, 20);
	check_part(why, 0, "user-work", 12 * MS, 13, "likely", "");
	check_part(why, 1, "user-work", 4 * MS - 10, 12, "likely", "");
	done(&capture, why);
}

/* A server's loop is woken for all of its requests. Those that it begins or finishes after a
 * wake-up are what that was for, although it works on them for long. */
static void test_a_loop_woken_for_another_request_waits_on(void **state)
{
	/* When the other request begins and ends. */
	static const uint64_t others[][2] = {{5 * MS + 1, 22 * MS}, {MS + 5, 7 * MS}};
	struct capture capture;
	struct why *why;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		begin(&capture);
		add_request_site(&capture);
		capture_hit(&capture, MS + 1, 11, SITE_REQUEST, 2, 0, 0, NULL);
		if (others[i][0] < 5 * MS)
			capture_hit(&capture, others[i][0], 11, SITE_REQUEST, 3, 0, 0, NULL);
		wait_of(&capture, 1, 10, 5, NR_EPOLL_WAIT, 4, 0, 0, 12, 0);
		if (others[i][0] > 5 * MS)
			capture_hit(&capture, others[i][0], 11, SITE_REQUEST, 3, 0, 0, NULL);
		if (others[i][1] < 8 * MS)
			capture_end(&capture, others[i][1], 11, 3);
		wait_of(&capture, 8, 0, 20, NR_EPOLL_WAIT, 4, 0, 0, 13, 0);
		capture_end(&capture, 20 * MS + 1, 11, 2);
		if (others[i][1] > 20 * MS)
			capture_end(&capture, others[i][1], 11, 3);
		capture_end(&capture, 26 * MS, 11, 1);
		why = ask(&capture, 27 * MS, &(struct why_query){.name = "HTTP GET"});
		check_part(why, 0, "user-work", 16 * MS - 10, 13, "likely", "");
		assert_int_equal(first_step(why, 0)->wakes, 2);
		done(&capture, why);
	}
}

/* The last wake-up is a client's, with another request. What the first one waited for comes while
 * the loop serves that one, and wakes nobody. */
static void test_what_comes_while_a_loop_serves_another_request_is_not_the_clients(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	for (unsigned answers = 0; answers < 2; answers++) {
		begin(&capture);
		add_request_site(&capture);
		named(&capture, 30, 30, "client");
		named(&capture, 40, 40, "server");
		gets(&capture, MS - 170, 4, 0, 40, 0, 0, 0);
		capture_hit(&capture, MS + 1, 11, SITE_REQUEST, 2, 0, 0, NULL);
		if (answers)
			capture_hit(&capture, MS + 2, 40, SITE_REQUEST, 4, 0, 0, NULL);
		wait_of(&capture, 1, 10, 20, NR_EPOLL_WAIT, 4, 0, 0, 30, 0);
		capture_hit(&capture, 20 * MS + 1, 11, SITE_REQUEST, 3, 0, 0, NULL);
		if (answers)
			capture_end(&capture, 21 * MS, 40, 4);
		capture_end(&capture, 22 * MS, 11, 2);
		capture_end(&capture, 23 * MS, 11, 3);
		capture_end(&capture, 26 * MS, 11, 1);
		why = ask(&capture, 27 * MS, &(struct why_query){.name = "HTTP GET", .slowest = 1});
		if (answers)
			check_part(why, 0, "user-work", 19 * MS - 10, 40, "likely", "");
		else
			check_part(why, 0, "unknown", 19 * MS - 10, 0, "unknown", "");
		done(&capture, why);
	}
}

/* The other request is what the first one waits for: a message, which the server passes on. The
 * loop is awake for 0.2 of 20 ms, so it is hardly by chance that this came just then. */
static void test_a_request_that_ends_another_one_is_followed(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	for (unsigned others = 0; others < 2; others++) {
		begin(&capture);
		add_request_site(&capture);
		named(&capture, 30, 30, "producer");
		gets(&capture, MS - 170, 4, 0, 30, 0, 0, 0);
		waits(&capture, MS - 100, 2, 12, 0, S, NR_READ, 5, 0, 0);
		waits(&capture, MS - 90, 3, 13, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
		capture_hit(&capture, MS + 1, 11, SITE_REQUEST, 2, 0, 0, NULL);
		if (others) /* it may have the request */
			gets(&capture, 2 * MS, 2, 0, 12, 0, 0, 0);
		wait_of(&capture, 1, 10, 20, NR_EPOLL_WAIT, 4, 0, 0, 30, 0);
		capture_hit(&capture, 20 * MS + 50000, 11, SITE_REQUEST, 3, 0, 0, NULL);
		capture_end(&capture, 20 * MS + 150000, 11, 3);
		capture_end(&capture, 20 * MS + 200000, 11, 2);
		capture_end(&capture, 26 * MS, 11, 1);
		why = ask(&capture, 27 * MS, &(struct why_query){.name = "HTTP GET", .slowest = 1});
		if (others)
			check_part(why, 0, "unknown", 19 * MS - 10, 0, "unknown", "");
		else
			check_part(why, 0, "user-work", 19 * MS - 10, 30, "likely", "");
		done(&capture, why);
	}
}

/* The loop's process has one thread that runs while the loop serves another request. It is followed
 * if the loop has woken it for the explained one. The wait has an earlier wake-up for others. */
static void test_a_worker_that_ran_meanwhile_counts_if_the_loop_woke_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	for (unsigned handed = 0; handed < 2; handed++) {
		begin(&capture);
		add_request_site(&capture);
		named(&capture, 30, 30, "client");
		waits(&capture, MS - 100, 2, 12, 0, S, NR_READ, 5, 0, 0);
		waits(&capture, MS - 90, 3, 13, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
		capture_hit(&capture, MS + 1, 11, SITE_REQUEST, 2, 0, 0, NULL);
		gets(&capture, MS + 5, 3, 0, 13, handed ? 11 : 12, MS + 4, 0);
		wait_of(&capture, 1, 10, 5, NR_EPOLL_WAIT, 4, 0, 0, 30, 0);
		capture_hit(&capture, 5 * MS + 1, 11, SITE_REQUEST, 3, 0, 0, NULL);
		capture_end(&capture, 6 * MS, 11, 3);
		wait_of(&capture, 8, 0, 20, NR_EPOLL_WAIT, 4, 0, 0, 30, 0);
		capture_hit(&capture, 20 * MS + 1, 11, SITE_REQUEST, 4, 0, 0, NULL);
		capture_end(&capture, 22 * MS, 11, 2);
		capture_end(&capture, 23 * MS, 11, 4);
		capture_end(&capture, 26 * MS, 11, 1);
		why = ask(&capture, 27 * MS, &(struct why_query){.name = "HTTP GET", .slowest = 1});
		if (handed)
			check_part(why, 0, "user-work", 16 * MS - 10, 13, "likely", "");
		else
			check_part(why, 0, "unknown", 16 * MS - 10, 0, "unknown", "");
		assert_int_equal(first_step(why, 0)->wakes, 2);
		done(&capture, why);
	}
}

/* A loop, explained by thread: each wake-up is for something that it then handles, as the answers
 * that a client reads. If the last wake-up, or none, follows, that shows nothing about the ones
 * before. */
static void test_each_wait_of_a_loop_in_no_span_has_its_own_end(void **state)
{
	static const struct {
		int syscall;
		uint64_t arg, op;
		const char *file, *cause, *text;
	} rows[] = {{NR_EPOLL_WAIT, 4, 0, NULL, "user-work", ""},
		    {NR_READ, 3, 0, NULL, "user-work", ""},
		    {NR_READ, 3, 0, "socket:[1]", "socket", "socket:[1]"},
		    {NR_READ, 3, 0, "pipe:[1]", "pipe", "pipe:[1]"},
		    {NR_RECVFROM, 3, 0, NULL, "socket", ""},
		    {NR_WAIT4, (uint64_t)-1, 0, NULL, "process-exit", ""},
		    {NR_SEMOP, 3, 0, NULL, "user-work", ""},
		    {NR_FUTEX, 0x7f00, FUTEX_COND, NULL, "user-work", "futex 0x7f00"}};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int syscall = rows[i].syscall;
		struct capture capture;
		struct why *why;

		begin(&capture);
		capture_end(&capture, MS + 10, 11, 1);
		if (rows[i].file)
			object(&capture, rows[i].file, "");
		wait_of(&capture, 2, 0, 5, syscall, rows[i].arg, rows[i].op, 0, 12, 0);
		if (rows[i].file)
			wait_details(&capture, 2 * MS, 5 * MS, 11, 1, 0, 0);
		wait_of(&capture, 5, 10, 20, syscall, rows[i].arg, rows[i].op, 0, 13, 0);
		if (rows[i].file)
			wait_details(&capture, 5 * MS + 10, 20 * MS, 11, 1, 0, 0);
		waits(&capture, 20 * MS + 10, 1, 11, 0, S, syscall, rows[i].arg, rows[i].op, 0);
		why = ask(&capture, 30 * MS,
			  &(struct why_query){.tid = 11, .from_ts = 2 * MS, .to_ts = 30 * MS});
		check_part(why, 0, rows[i].cause, 15 * MS - 10, 13, "likely", rows[i].text);
		check_part(why, 2, rows[i].cause, 3 * MS, 12, "likely", rows[i].text);
		done(&capture, why);
	}
}

/* A worker with short jobs, and a loop whose timeouts expire. The capture ends during a wait, whose
 * end is not known; that of those before is. */
static void test_a_wait_that_goes_on_at_the_end_hides_no_end_of_others(void **state)
{
	static const struct {
		int syscall;
		uint32_t waker;
		const char *function, *cause;
		uint32_t culprit;
	} rows[] = {{NR_FUTEX, 12, "futex_wake", "user-work", 12},
		    {NR_POLL, 0, "hrtimer_wakeup", "timer", 11},
		    {NR_EPOLL_WAIT, 0, "hrtimer_wakeup", "timer", 11}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned flags = rows[i].waker ? 0 : HARD;
		struct capture capture;
		struct why *why;

		begin(&capture);
		capture_end(&capture, MS + 10, 11, 1);
		kernel_stack(&capture, 0xffff8000, rows[i].function);
		wait_of(&capture, 2, 0, 5, rows[i].syscall, 0x7f00, FUTEX_COND, 0, rows[i].waker,
			flags);
		wake_details(&capture, 5 * MS, rows[i].waker, 11, 1, flags);
		wait_of(&capture, 5, 10, 20, rows[i].syscall, 0x7f00, FUTEX_COND, 0, rows[i].waker,
			flags);
		wake_details(&capture, 20 * MS, rows[i].waker, 11, 1, flags);
		waits(&capture, 20 * MS + 10, 1, 11, 0, S, rows[i].syscall, 0x7f00, FUTEX_COND, 0);
		why = ask(&capture, 22 * MS,
			  &(struct why_query){.tid = 11, .from_ts = 2 * MS, .to_ts = 22 * MS});
		check_part(why, 0, rows[i].cause, 18 * MS - 10, rows[i].culprit, "likely",
			   rows[i].waker ? "futex 0x7f00" : "");
		check_part(why, 1, "unknown", 2 * MS - 10, 0, "unknown",
			   rows[i].waker ? "futex 0x7f00" : "still waits when the capture ends");
		done(&capture, why);
	}
}

/* The awaited event may happen while the thread is awake after a timeout. If only one other thread
 * ran during that time, that thread caused the event. */
static void test_who_ran_after_the_last_timeout_has_done_what_was_waited_for(void **state)
{
	(void)state;
	for (int others = 0; others < 2; others++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		kernel_stack(&capture, 0xffff8000, "hrtimer_wakeup");
		if (!others)
			waits(&capture, MS + 5, 2, 12, 0, S, NR_READ, 9, 0, 0);
		wait_of(&capture, 1, 10, 5, NR_FUTEX, 0x7f00, FUTEX_TIMED, 0, 0, HARD);
		wake_details(&capture, 5 * MS, 0, 11, 1, HARD);
		/* After a timeout it may run for longer. */
		wait_of(&capture, 5, MS / 2, 9, NR_FUTEX, 0x7f00, FUTEX_TIMED, 0, 0, HARD);
		wake_details(&capture, 9 * MS, 0, 11, 1, HARD);
		why = end(&capture, 9);
		check_part(why, 0, others ? "timer" : "user-work", 7 * MS + MS / 2 - 10,
			   others ? 11 : 13, "likely", "futex 0x7f00");
		done(&capture, why);
	}
}

/* Python lays out the list of poll(2) anew each time. */
static void test_a_list_of_the_same_descriptors_is_the_same_wait(void **state)
{
	(void)state;
	for (int same = 0; same < 2; same++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		object(&capture, "pipe:[7]", "");
		object(&capture, "pipe:[8]", "");
		wait_of(&capture, 1, 10, 5, NR_POLL, 0x7f00, 1, 4, 12, 0);
		wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
		wait_of(&capture, 5, 10, 10, NR_POLL, 0x7f80, 1, 4, 13, 0);
		wait_details(&capture, 5 * MS + 10, 10 * MS, 11, same ? 1 : 2, 0, 0);
		why = end(&capture, 10);
		check_part(why, 0, "user-work", same ? 9 * MS - 20 : 5 * MS - 10, 13, "likely",
			   same ? "pipe:[7]" : "pipe:[8]");
		done(&capture, why);
	}
}

/* The capture has only the first descriptors of a long list. The other ones may differ. */
static void test_a_list_of_which_only_a_part_is_known_may_be_another_one(void **state)
{
	static const char many[] = "many descriptors: pipe:[7], pipe:[8], pipe:[9], pipe:[10]";

	(void)state;
	for (int same = 0; same < 2; same++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		object(&capture, many, "");
		wait_of(&capture, 1, 10, 5, NR_POLL, 0x7f00, 5, 4, 12, 0);
		wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
		wait_of(&capture, 5, 10, 10, NR_POLL, same ? 0x7f00 : 0x7f80, 5, 4, 13, 0);
		wait_details(&capture, 5 * MS + 10, 10 * MS, 11, 1, 0, 0);
		why = end(&capture, 10);
		check_part(why, 0, "user-work", same ? 9 * MS - 20 : 5 * MS - 10, 13, "likely",
			   many);
		done(&capture, why);
	}
}

/* Nobody could end the wait before the thread that did was there. Its starter let that wait. */
static void test_before_a_thread_was_started_its_starter_explains_the_wait(void **state)
{
	struct waffle_rec_task young = {.rec = {5 * MS, 14, WAFFLE_REC_TASK, 0},
					.tgid = 10,
					.flags = WAFFLE_TASK_TRACED_FLAG,
					.start_ts = 5 * MS,
					.comm = "young"};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, MS + 10, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	capture_add(&capture, &young);
	gets(&capture, 5 * MS + 30, 2, 12, 14, 13, 5 * MS + 20, WAFFLE_SWITCH_NEW);
	gets(&capture, 9 * MS, 1, 0, 11, 14, 9 * MS, 0);
	why = end(&capture, 9);
	check_part(why, 0, "user-work", 4 * MS + 10, 13, "likely", "futex 0x7f00");
	check_part(why, 1, "user-work", 4 * MS - 30, 14, "likely", "futex 0x7f00");
	assert_true(why->steps.data[part_of(why, 0)->step + 1].not_started);
	done(&capture, why);
}

/* A wake-up by a thread that was started later does not end the first wait. That hides nothing of
 * the waits behind it, of which a timer ended one. */
static void test_a_timeout_before_a_younger_thread_is_no_end_of_a_wait(void **state)
{
	struct waffle_rec_task young = {.rec = {5 * MS, 14, WAFFLE_REC_TASK, 0},
					.tgid = 10,
					.flags = WAFFLE_TASK_TRACED_FLAG,
					.start_ts = 5 * MS,
					.comm = "young"};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	kernel_stack(&capture, 0xffff8000, "hrtimer_wakeup");
	wait_of(&capture, 1, 10, 2, NR_EPOLL_WAIT, 4, 0, 0, 12, 0);
	waits(&capture, 2 * MS + 10, 1, 11, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
	capture_add(&capture, &young);
	gets(&capture, 5 * MS + 30, 2, 12, 14, 13, 5 * MS + 20, WAFFLE_SWITCH_NEW);
	gets(&capture, 8 * MS, 1, 0, 11, 0, 8 * MS, HARD);
	wake_details(&capture, 8 * MS, 0, 11, 1, HARD);
	wait_of(&capture, 8, 10, 20, NR_EPOLL_WAIT, 4, 0, 0, 14, 0);
	why = end(&capture, 20);
	check_part(why, 0, "user-work", 15 * MS - 40, 14, "likely", "");
	assert_int_equal(first_step(why, 0)->wakes, 2);
	done(&capture, why);
}

/* Neither a timeout nor the signal of a timer is an event: the loop waits on for the next one. */
static void test_timers_of_an_event_loop_in_no_span_end_no_wait(void **state)
{
	static const char *const functions[] = {"hrtimer_wakeup", "complete_signal"};

	(void)state;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		capture_end(&capture, MS + 10, 11, 1);
		kernel_stack(&capture, 0xffff8000, functions[i]);
		wait_of(&capture, 2, 0, 5, NR_EPOLL_WAIT, 4, 0, 0, 0, HARD);
		wake_details(&capture, 5 * MS, 0, 11, 1, HARD);
		wait_of(&capture, 5, 10, 10, NR_EPOLL_WAIT, 4, 0, 0, 0, HARD);
		wake_details(&capture, 10 * MS, 0, 11, 1, HARD);
		wait_of(&capture, 10, 10, 20, NR_EPOLL_WAIT, 4, 0, 0, 13, 0);
		wait_of(&capture, 20, 10, 30, NR_EPOLL_WAIT, 4, 0, 0, 12, 0);
		why = ask(&capture, 30 * MS,
			  &(struct why_query){.tid = 11, .from_ts = 2 * MS, .to_ts = 30 * MS});
		check_part(why, 0, "user-work", 18 * MS - 20, 13, "likely", "");
		check_part(why, 1, "user-work", 10 * MS - 10, 12, "likely", "");
		done(&capture, why);
	}
}

/* A loop in no span handles its timers. That it waits for a thread then does not mean that it has
 * waited for that thread before. */
static void test_a_wait_after_the_timer_of_a_loop_says_nothing_of_the_timer(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_end(&capture, MS + 10, 11, 1);
	kernel_stack(&capture, 0xffff8000, "hrtimer_wakeup");
	waits(&capture, MS + 5, 2, 12, 0, S, NR_READ, 9, 0, 0);
	wait_of(&capture, 2, 0, 5, NR_EPOLL_WAIT, 4, 1, 3, 0, HARD);
	wake_details(&capture, 5 * MS, 0, 11, 1, HARD);
	wait_of(&capture, 5, 10, 8, NR_EPOLL_WAIT, 4, 1, 3, 0, HARD);
	wake_details(&capture, 8 * MS, 0, 11, 1, HARD);
	wait_of(&capture, 8, 10, 20, NR_READ, 7, 0, 0, 13, 0);
	why = ask(&capture, 20 * MS,
		  &(struct why_query){.tid = 11, .from_ts = 2 * MS, .to_ts = 20 * MS});
	check_part(why, 0, "user-work", 12 * MS - 10, 13, "certain", "");
	check_part(why, 1, "timer", 6 * MS - 10, 11, "likely", "");
	done(&capture, why);
}

/* Thread 11 waits for a loop of another process, which goes on after a timeout of 900 ms, or after
 * its thread 21 has woken it, and waits again until a server wakes it. */
static void test_a_server_that_answers_at_once_after_a_delay_is_not_to_blame(void **state)
{
	static const struct {
		uint32_t delay;     /* who ends the first wait; 0: its timeout */
		uint64_t answer_ns; /* how long after that */
		uint32_t server;    /* 60 is not traced, 13 is */
		uint32_t asked;     /* whom the loop wakes after that; 12 wakes the server */
		const char *cause;
		uint32_t culprit;
	} rows[] = {
		{0, MS, 60, 0, "timer", 20},
		{0, 100 * MS, 60, 0, "not-recorded", 60},
		{0, MS, 13, 13, "timer", 20},
		{0, MS, 13, 12, "timer", 20},
		{0, MS, 13, 0, "user-work", 13},
		{21, MS, 60, 0, "sleep", 21},
		{21, 100 * MS, 60, 0, "not-recorded", 60},
		{12, MS, 60, 0, "not-recorded", 60},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t delay = rows[i].delay, asked = rows[i].asked;
		uint64_t answer_ts = 910 * MS + rows[i].answer_ns;
		struct capture capture;
		struct why *why;

		begin(&capture);
		named(&capture, 20, 20, "loop");
		named(&capture, 21, 20, "worker");
		kernel_stack(&capture, 0xffff8000, "hrtimer_wakeup");
		gets(&capture, MS - 170, 4, 0, 20, 0, 0, 0);
		gets(&capture, MS - 160, 5, 0, 21, 0, 0, 0);
		waits(&capture, MS + 5, 2, 12, 0, S, NR_NANOSLEEP, 9, 0, 0);
		if (asked)
			waits(&capture, MS + 6, 3, 13, 0, S, NR_READ, 9, 0, 0);
		waits(&capture, MS + 7, 5, 21, 0, S, NR_NANOSLEEP, 9, 0, 0);
		waits(&capture, 2 * MS, 1, 11, 0, S, NR_READ, 7, 0, 0);
		waits(&capture, 10 * MS, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
		gets(&capture, 909 * MS, 5, 0, 21, 0, 909 * MS, HARD);
		if (!delay)
			wake_details(&capture, 910 * MS, 0, 20, 1, HARD);
		gets(&capture, 910 * MS, 4, 0, 20, delay, 910 * MS, delay ? 0 : HARD);
		if (asked == 12)
			gets(&capture, 910 * MS + 10, 2, 0, 12, 20, 910 * MS + 10, 0);
		if (asked)
			gets(&capture, 910 * MS + 20, 3, 0, 13, asked == 12 ? 12 : 20,
			     910 * MS + 20, 0);
		waits(&capture, 910 * MS + 100, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
		gets(&capture, answer_ts, 4, 0, 20, rows[i].server, answer_ts, 0);
		gets(&capture, answer_ts + 50, 1, 0, 11, 20, answer_ts + 50, 0);
		capture_end(&capture, answer_ts + 100, 11, 1);
		why = ask_span(&capture, 2000 * MS);
		assert_string_equal(why_causes[part_of(why, 0)->cause].name, rows[i].cause);
		assert_int_equal(why->model->threads.data[part_of(why, 0)->thread].tid,
				 rows[i].culprit);
		assert_string_equal(why_grade_names[part_of(why, 0)->grade], "likely");
		done(&capture, why);
	}
}

/* Thread 11 waits for a loop. Its timeout at 320 ms is for nothing, unless it asks server 30 then.
 * At 600 ms, thread 40 wakes it, and it asks the server, which answers at once. Who wakes it may be
 * unknown, or send a signal. */
static void test_a_timeout_before_another_event_has_not_caused_the_wait(void **state)
{
	static const struct {
		bool at_timeout; /* it asks the server then */
		uint32_t user;
		bool signal;
		const char *cause;
		uint32_t culprit;
		uint64_t least_ms;
	} rows[] = {{false, 40, false, "sleep", 40, 589},
		    {true, 40, false, "timer", 20, 309},
		    {false, 0, false, "timer", 20, 309},
		    {false, 40, true, "timer", 20, 309}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		const struct why_part *part;
		struct why *why;

		begin(&capture);
		named(&capture, 20, 20, "loop");
		named(&capture, 30, 30, "server");
		named(&capture, 40, 40, "user");
		kernel_stack(&capture, 0xffff8000, "hrtimer_wakeup");
		kernel_stack(&capture, 0xffff9000, "complete_signal");
		for (uint16_t cpu = 4; cpu <= 6; cpu++)
			gets(&capture, MS - 170 + cpu, cpu, 0, (uint32_t)(cpu - 2) * 10, 0, 0, 0);
		waits(&capture, MS + 5, 5, 30, 0, S, NR_EPOLL_WAIT, 9, 1, 3);
		waits(&capture, MS + 6, 6, 40, 0, S, NR_NANOSLEEP, 9, 0, 0);
		waits(&capture, 2 * MS, 1, 11, 0, S, NR_READ, 7, 0, 0);
		waits(&capture, 10 * MS, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
		wake_details(&capture, 320 * MS, 0, 20, 1, HARD);
		gets(&capture, 320 * MS, 4, 0, 20, 0, 320 * MS, HARD);
		if (rows[i].at_timeout)
			gets(&capture, 320 * MS + 20, 5, 0, 30, 20, 320 * MS + 20, 0);
		waits(&capture, 320 * MS + 100, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
		gets(&capture, 600 * MS - 50, 6, 0, 40, 0, 600 * MS - 50, HARD);
		if (rows[i].signal)
			wake_details(&capture, 600 * MS, 40, 20, 2, 0);
		gets(&capture, 600 * MS, 4, 0, 20, rows[i].user, 600 * MS, 0);
		if (!rows[i].at_timeout)
			gets(&capture, 600 * MS + 20, 5, 0, 30, 20, 600 * MS + 20, 0);
		waits(&capture, 600 * MS + 100, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
		gets(&capture, 601 * MS, 4, 0, 20, 30, 601 * MS, 0);
		gets(&capture, 601 * MS + 50, 1, 0, 11, 20, 601 * MS + 50, 0);
		capture_end(&capture, 601 * MS + 100, 11, 1);
		why = ask_span(&capture, 1000 * MS);
		part = part_of(why, 0);
		assert_string_equal(why_causes[part->cause].name, rows[i].cause);
		assert_int_equal(why->model->threads.data[part->thread].tid, rows[i].culprit);
		assert_in_range(part->ns, rows[i].least_ms * MS, (rows[i].least_ms + 12) * MS);
		done(&capture, why);
	}
}

/* Thread 11 waits for a loop, which asks a server only after half of the time. Its main thread 30
 * hands the request to 31. */
static void test_a_server_is_not_to_blame_before_it_is_asked(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 20, 20, "loop");
	named(&capture, 30, 30, "server");
	named(&capture, 31, 30, "worker");
	object(&capture, "2 descriptors: tcp 127.0.0.1:80, pipe:[3]", "");
	gets(&capture, MS - 170, 4, 0, 20, 0, 0, 0);
	gets(&capture, MS - 160, 5, 0, 30, 0, 0, 0);
	gets(&capture, MS - 150, 6, 0, 31, 0, 0, 0);
	waits(&capture, MS + 5, 5, 30, 0, S, NR_POLL, 9, 2, 0);
	waits(&capture, MS + 6, 6, 31, 0, S, NR_FUTEX, 0x7000, FUTEX_COND, 0);
	waits(&capture, 2 * MS, 1, 11, 0, S, NR_READ, 7, 0, 0);
	waits(&capture, 10 * MS, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
	gets(&capture, 500 * MS, 4, 0, 20, 60, 500 * MS, 0);
	gets(&capture, 500 * MS + 20, 5, 0, 30, 20, 500 * MS + 20, 0);
	wait_details(&capture, MS + 5, 500 * MS + 20, 30, 1, 0, 0);
	gets(&capture, 500 * MS + 40, 6, 0, 31, 30, 500 * MS + 40, 0);
	waits(&capture, 500 * MS + 100, 4, 20, 0, S, NR_EPOLL_WAIT, 4, 1, 3);
	gets(&capture, 900 * MS, 4, 0, 20, 31, 900 * MS, 0);
	gets(&capture, 900 * MS + 50, 1, 0, 11, 20, 900 * MS + 50, 0);
	capture_end(&capture, 900 * MS + 100, 11, 1);
	why = ask_span(&capture, 1000 * MS);
	check_part(why, 0, "unknown", 490 * MS, 20, "unknown", "asked server (30) only at the end");
	done(&capture, why);
}

/* An event loop in no span works for long after a signal. */
static void test_work_after_a_signal_ends_the_wait_of_an_event_loop(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_end(&capture, MS + 10, 11, 1);
	kernel_stack(&capture, 0xffff8000, "complete_signal");
	wait_of(&capture, 2, 0, 12, NR_EPOLL_WAIT, 4, 0, 0, 0, HARD);
	wake_details(&capture, 12 * MS, 0, 11, 1, HARD);
	wait_of(&capture, 12, 900000, 20, NR_EPOLL_WAIT, 4, 0, 0, 13, 0);
	why = ask(&capture, 20 * MS,
		  &(struct why_query){.tid = 11, .from_ts = 2 * MS, .to_ts = 20 * MS});
	check_part(why, 0, "interrupt", 10 * MS, 0, "likely", "");
	done(&capture, why);
}

/* The doer waits for the victim's request, so the victim's first wait was not for the doer. */
static void test_who_is_asked_in_between_has_not_ended_what_was_before(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, MS, 3, 13, 0, S, NR_READ, 9, 0, 0);
	wait_of(&capture, 1, 10, 5, NR_EPOLL_WAIT, 4, 0, 0, 12, 0);
	gets(&capture, 5 * MS + 5, 3, 0, 13, 11, 5 * MS + 5, 0);
	wait_of(&capture, 5, 10, 20, NR_EPOLL_WAIT, 4, 0, 0, 13, 0);
	why = end(&capture, 20);
	check_part(why, 0, "user-work", 15 * MS - 10, 13, "likely", "");
	check_part(why, 1, "user-work", 4 * MS - 10, 12, "likely", "");
	done(&capture, why);
}

static void test_who_is_in_another_span_waits_for_something_else(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_span(&capture, MS + 5, 11, 2);
	wait_of(&capture, 1, 10, 5, NR_FUTEX, 0x7f00, FUTEX_COND, 0, 12, 0);
	capture_end(&capture, 5 * MS + 1, 11, 2);
	capture_span(&capture, 5 * MS + 2, 11, 3);
	wait_of(&capture, 5, 10, 7, NR_FUTEX, 0x7f00, FUTEX_COND, 0, 13, 0);
	capture_end(&capture, 7 * MS + 1, 11, 3);
	capture_end(&capture, 8 * MS, 11, 1);
	why = ask_span(&capture, 9 * MS);
	check_part(why, 0, "user-work", 4 * MS - 10, 12, "likely", "futex 0x7f00");
	check_part(why, 1, "user-work", 2 * MS - 10, 13, "likely", "futex 0x7f00");
	done(&capture, why);
}

/* ---- locks ---- */

/* A faster thread has the lock now, so each wait is for another holder. */
static void test_a_lost_race_for_a_lock_is_a_wait_for_its_holder(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	wait_of(&capture, 1, 10, 5, NR_FUTEX, 0x7f00, FUTEX_PI, 0, 12, 0);
	wait_of(&capture, 5, 10, 7, NR_FUTEX, 0x7f00, FUTEX_PI, 0, 13, 0);
	why = end(&capture, 7);
	check_part(why, 0, "lock", 4 * MS - 10, 12, "certain", "futex 0x7f00");
	check_part(why, 1, "lock", 2 * MS - 10, 13, "certain", "futex 0x7f00");
	done(&capture, why);
}

/* It was let go for thread 12 in between: thread 13 had it only after that. */
static void test_a_lock_that_goes_round_is_likely(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, MS, 2, 12, 0, S, NR_FUTEX, 0x7f00, FUTEX_MUTEX, 2);
	waits(&capture, MS + 10, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_MUTEX, 2);
	gets(&capture, 5 * MS, 2, 0, 12, 14, 5 * MS, 0);
	gets(&capture, 9 * MS, 1, 0, 11, 13, 9 * MS, 0);
	why = end(&capture, 9);
	check_part(why, 0, "lock", 8 * MS - 10, 13, "likely", "futex 0x7f00");
	done(&capture, why);
}

/* ---- signals ---- */

static void test_a_signal_is_no_end_of_a_wait_that_goes_on(void **state)
{
	static const struct {
		int syscall;
		uint64_t op, value;
		const char *cause;
	} rows[] = {{NR_READ, 0, 0, "pipe"},
		    {NR_FUTEX, FUTEX_MUTEX, 2, "lock"},
		    {NR_WAIT4, 0, 0, "process-exit"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		object(&capture, "pipe:[7]", "");
		if (rows[i].syscall == NR_WAIT4)
			named(&capture, 20, 20, "child");
		wait_of(&capture, 1, 10, 5, rows[i].syscall, 7, rows[i].op, rows[i].value, 12, 0);
		wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
		sent(&capture, 5 * MS - 2000, 12, 11, SIGUSR1, 0);
		/* The handler takes its time. */
		wait_of(&capture, 5, 900000, 9, rows[i].syscall, 7, rows[i].op, rows[i].value, 13,
			0);
		wait_details(&capture, 5 * MS + 900000, 9 * MS, 11, 1, 0, 0);
		why = end(&capture, 9);
		/* It may have come while the handler ran, and this is for the next one. */
		check_part(why, 0, rows[i].cause, 8 * MS - 900010, 13, "likely", "pipe:[7]");
		done(&capture, why);
	}
}

/* Nothing else ends such a wait, whatever interrupts it. */
static void test_a_child_that_is_waited_for_by_its_number_is_certain(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 20, 20, "child");
	gets(&capture, MS - 100, 4, 0, 20, 0, 0, 0);
	wait_of(&capture, 1, 10, 5, NR_WAIT4, 20, 0, 0, 12, 0);
	sent(&capture, 5 * MS - 2000, 12, 11, SIGUSR1, 0);
	wait_of(&capture, 5, 900000, 9, NR_WAIT4, 20, 0, 0, 20, 0);
	why = end(&capture, 9);
	check_part(why, 0, "process-exit", 8 * MS - 900010, 20, "certain", "");
	done(&capture, why);
}

/* A group may have the number of its first process, but any of its processes ends the wait. */
static void test_a_wait_for_a_group_of_processes_is_likely(void **state)
{
	static const struct {
		uint64_t type;
		const char *grade;
	} rows[] = {{P_PID, "certain"}, {P_PGID, "likely"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		named(&capture, 20, 20, "child");
		gets(&capture, MS - 100, 4, 0, 20, 0, 0, 0);
		wait_of(&capture, 1, 10, 5, NR_WAITID, rows[i].type, 20, 0, 12, 0);
		wait_of(&capture, 5, 10, 9, NR_WAITID, rows[i].type, 20, 0, 20, 0);
		why = end(&capture, 9);
		check_part(why, 0, "process-exit", 8 * MS - 20, 20, rows[i].grade, "");
		done(&capture, why);
	}
}

static void test_another_child_is_another_wait(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 20, 20, "first");
	named(&capture, 21, 21, "second");
	gets(&capture, MS - 100, 4, 0, 20, 0, 0, 0);
	gets(&capture, MS - 99, 5, 0, 21, 0, 0, 0);
	wait_of(&capture, 1, 10, 5, NR_WAITID, 1, 20, 0, 20, 0);
	wait_of(&capture, 5, 10, 8, NR_WAITID, 1, 21, 0, 21, 0);
	why = end(&capture, 8);
	check_part(why, 0, "process-exit", 4 * MS - 10, 20, "certain", "");
	check_part(why, 1, "process-exit", 3 * MS - 10, 21, "certain", "");
	done(&capture, why);
}

/* The signal that stops a thread ends its wait, which goes on after the stop. */
static void test_a_wait_goes_on_after_a_stop(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "pipe:[7]", "");
	wait_of(&capture, 1, 10, 5, NR_READ, 3, 0, 0, 12, 0);
	wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
	sent(&capture, 5 * MS - 2000, 12, 11, SIGSTOP, 0);
	waits(&capture, 5 * MS + 10, 1, 11, 0, WAFFLE_TASK_STOPPED, NR_READ, 3, 0, 0);
	gets(&capture, 8 * MS, 1, 0, 11, 12, 8 * MS, 0);
	wait_of(&capture, 8, 10, 20, NR_READ, 3, 0, 0, 13, 0);
	wait_details(&capture, 8 * MS + 10, 20 * MS, 11, 1, 0, 0);
	why = end(&capture, 20);
	check_part(why, 0, "pipe", 16 * MS - 20, 13, "likely", "pipe:[7]");
	check_part(why, 1, "stopped", 3 * MS - 10, 12, "certain", "");
	done(&capture, why);
}

/* A freezer wakes the thread, which then waits in the kernel until it is thawed. */
static void test_a_wait_goes_on_after_the_thread_was_frozen(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	rest(&capture);
	object(&capture, "pipe:[7]", "");
	kernel_stack(&capture, 0xffff8000, "__refrigerator");
	kernel_stack(&capture, 0xffff9000, "complete_signal");
	wait_of(&capture, 1, 10, 5, NR_READ, 3, 0, 0, 14, 0);
	wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
	wake_details(&capture, 5 * MS, 14, 11, 2, 0);
	waits(&capture, 5 * MS + 10, 1, 11, 0, D, NR_READ, 3, 0, 0);
	wait_details(&capture, 5 * MS + 10, 8 * MS, 11, 1, 1, 0);
	gets(&capture, 8 * MS, 1, 0, 11, 12, 8 * MS, 0);
	wait_of(&capture, 8, 10, 20, NR_READ, 3, 0, 0, 13, 0);
	wait_details(&capture, 8 * MS + 10, 20 * MS, 11, 1, 0, 0);
	why = end(&capture, 20);
	check_part(why, 0, "pipe", 16 * MS - 20, 13, "likely", "pipe:[7]");
	check_part(why, 1, "stopped", 3 * MS - 10, 12, "likely",
		   "thawed ? (10), whose cgroup was frozen");
	done(&capture, why);
}

/* An earlier signal does not explain a later stop by a tracer. */
static void test_a_tracers_stop_is_not_an_earlier_signals(void **state)
{
	static const uint16_t states[] = {WAFFLE_TASK_TRACED, WAFFLE_TASK_STOPPED};

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		sent(&capture, 2 * MS - 10, 12, 11, SIGSTOP, 0);
		waits(&capture, 2 * MS, 1, 11, 0, WAFFLE_TASK_STOPPED, NR_NONE, 0, 0, 0);
		gets(&capture, 3 * MS, 1, 0, 11, 12, 3 * MS, 0);
		waits(&capture, 4 * MS, 1, 11, 0, states[i], NR_NONE, 0, 0, 0);
		gets(&capture, 9 * MS, 1, 0, 11, 13, 9 * MS, 0);
		why = end(&capture, 9);
		check_part(why, 0, "stopped", 5 * MS, 13, "likely", "");
		check_part(why, 2, "stopped", 1 * MS, 12, "certain", "");
		done(&capture, why);
	}
}

static void test_a_sleep_that_a_signal_ends_is_the_senders(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	sent(&capture, 5 * MS - 2000, 13, 11, SIGUSR1, 0);
	wait_of(&capture, 1, 10, 5, NR_NANOSLEEP, 0x8100, 0, 0, 13, 0);
	why = end(&capture, 5);
	check_part(why, 0, "user-work", 4 * MS - 10, 13, "likely", "");
	done(&capture, why);
}

static void test_a_sleep_that_goes_on_after_a_signal_is_a_sleep(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	sent(&capture, 5 * MS - 2000, 13, 11, SIGCHLD, 0);
	wait_of(&capture, 1, 10, 5, NR_NANOSLEEP, 0x8100, 0, 0, 13, 0);
	/* The kernel goes on with it under another number. */
	wait_of(&capture, 5, 10, 9, NR_RESTART, 0x8100, 0, 0, 0, HARD);
	why = end(&capture, 9);
	check_part(why, 0, "sleep", 8 * MS - 20, 11, "certain", "");
	done(&capture, why);
}

/* Another sleep has other arguments. */
static void test_a_sleep_after_one_that_a_signal_ended_is_another_one(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	sent(&capture, 5 * MS - 2000, 13, 11, SIGUSR1, 0);
	wait_of(&capture, 1, 10, 5, NR_NANOSLEEP, 0x8100, 0, 0, 13, 0);
	wait_of(&capture, 5, 10, 6, NR_NANOSLEEP, 0x8200, 0, 0, 0, HARD);
	why = end(&capture, 6);
	check_part(why, 0, "user-work", 4 * MS - 10, 13, "likely", "");
	check_part(why, 1, "sleep", 1 * MS - 10, 11, "certain", "");
	done(&capture, why);
}

/* No record shows who ended it. */
static void test_a_sleep_that_nobody_is_known_to_end_is_likely(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	waits(&capture, MS, 1, 11, 0, S, NR_NANOSLEEP, 0x8100, 0, 0);
	gets(&capture, 5 * MS, 1, 0, 11, 0, 0, 0);
	why = end(&capture, 5);
	check_part(why, 0, "sleep", 4 * MS, 11, "likely", "");
	done(&capture, why);
}

/* A freezer of a cgroup keeps who sleeps asleep, and wakes it when it lets go. */
static void test_a_sleep_that_a_freezer_ends_is_likely_stopped(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	kernel_stack(&capture, 0xffff8000, "__thaw_task");
	wait_of(&capture, 1, 10, 5, NR_NANOSLEEP, 0x8100, 0, 0, 12, 0);
	wake_details(&capture, 5 * MS, 12, 11, 1, 0);
	why = end(&capture, 5);
	check_part(why, 0, "stopped", 4 * MS - 10, 12, "likely",
		   "thawed ? (10), whose cgroup was frozen");
	done(&capture, why);
}

/* What it waited for may have come long before. */
static void test_another_wait_that_a_freezer_ends_is_unknown(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	kernel_stack(&capture, 0xffff8000, "__thaw_task");
	wait_of(&capture, 1, 10, 5, NR_FUTEX, 0x7000, FUTEX_COND, 0, 12, 0);
	wake_details(&capture, 5 * MS, 12, 11, 1, 0);
	why = end(&capture, 5);
	check_part(why, 0, "stopped", 4 * MS - 10, 12, "unknown",
		   "thawed ? (10), whose cgroup was frozen");
	done(&capture, why);
}

/* ---- interrupts of which more is known ---- */

static void test_a_wait_for_several_things_is_a_timers_if_something_says_so(void **state)
{
	static const struct {
		int syscall;
		uint64_t timeout_ms;
		const char *function, *cause, *grade;
	} rows[] = {{NR_EPOLL_WAIT, 0, "hrtimer_wakeup", "timer", "certain"},
		    {NR_EPOLL_WAIT, 0, "io_timeout_fn", "timer", "certain"},
		    {NR_EPOLL_WAIT, 0, "it_real_fn", "timer", "likely"},
		    {NR_POLL, 0, "posix_timer_fn", "timer", "likely"},
		    {NR_POLL, 4, NULL, "timer", "likely"},
		    {NR_POLL, 1000, NULL, "interrupt", "likely"},
		    {NR_EPOLL_WAIT, 0, NULL, "interrupt", "likely"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		rest(&capture);
		waits(&capture, MS + 1, 3, 13, 0, S, NR_NANOSLEEP, 0x9100, 0, 0);
		if (rows[i].function)
			kernel_stack(&capture, 0xffff8000, rows[i].function);
		wait_of(&capture, 1, 0, 5, rows[i].syscall, 4, 1, rows[i].timeout_ms, 0, HARD);
		if (rows[i].function)
			wake_details(&capture, 5 * MS, 0, 11, 1, HARD);
		why = end(&capture, 5);
		assert_string_equal(why_causes[part_of(why, 0)->cause].name, rows[i].cause);
		assert_string_equal(why_grade_names[part_of(why, 0)->grade], rows[i].grade);
		done(&capture, why);
	}
}

/* alarm(): the signal of the process's own timer ended the call. */
static void test_a_call_that_the_signal_of_a_timer_ended_is_a_timers(void **state)
{
	static const char *const functions[] = {"complete_signal", "it_real_fn"};
	uint64_t addresses[2] = {0xffff8000, 0xffff9000};
	struct store_stack stack = {.addresses = addresses, .count = 2};
	struct error err = ERROR_INIT;
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "pipe:[7]", "");
	capture_must(store_writer_add_stack(capture.writer, &stack, &err), err);
	for (size_t i = 0; i < 2; i++) {
		struct store_symbol symbol = {.address = addresses[i], .name = functions[i]};

		capture_must(store_writer_add_symbol(capture.writer, &symbol, &err), err);
	}
	wait_of(&capture, 1, 10, 5, NR_READ, 7, 0, 0, 0, HARD);
	wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
	wake_details(&capture, 5 * MS, 0, 11, 1, HARD);
	why = end(&capture, 6);
	check_part(why, 0, "timer", 4 * MS - 10, 11, "likely", "pipe:[7]");
	done(&capture, why);
}

/* ---- what became ready in an epoll ---- */

static const char *ready_of(const struct why *why)
{
	return strtab_get(why->texts, first_step(why, 0)->object);
}

/* Thread 11 waits in epoll_wait() until 5 ms; object 1 is ready then. The wake-up has a stack. */
static void ready_at_5(struct capture *capture, const char *function, uint32_t waker)
{
	kernel_stack(capture, 0xffff8000, function);
	wait_of(capture, 1, 10, 5, NR_EPOLL_WAIT, 4, 0, 0, waker, waker ? 0 : HARD);
	wait_details(capture, MS + 10, 5 * MS, 11, 1, 0, 0);
	wake_details(capture, 5 * MS, waker, 11, 1, waker ? 0 : HARD);
}

/* The thread waited for a CPU after its wake-up, and something else became ready until it ran. */
static void test_what_became_ready_is_no_cause_if_something_else_woke_the_thread(void **state)
{
	static const struct {
		const char *name, *function;
		uint32_t waker;
		const char *ready;
	} rows[] = {{"socket:[1]", "sock_def_readable", 13, "socket:[1]"},
		    {"socket:[1]", "hrtimer_wakeup", 0, ""},
		    {"pipe:[1]", "sock_def_readable", 13, ""},
		    {"pipe:[1]", "pipe_write", 13, "pipe:[1]"},
		    {"anon_inode:[timerfd]", "timerfd_tmrproc", 0, "anon_inode:[timerfd]"},
		    {"anon_inode:[eventpoll]", "hrtimer_wakeup", 0, "anon_inode:[eventpoll]"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		object(&capture, rows[i].name, "");
		ready_at_5(&capture, rows[i].function, rows[i].waker);
		why = end(&capture, 5);
		assert_string_equal(ready_of(why), rows[i].ready);
		done(&capture, why);
	}
}

/* A wake-up that did not end the wait: what was ready then is not what the thread waited for. */
static void test_what_became_ready_is_that_of_the_last_wait(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "pipe:[1]", "");
	object(&capture, "pipe:[2]", "");
	ready_at_5(&capture, "pipe_write", 12);
	wait_of(&capture, 5, 10, 9, NR_EPOLL_WAIT, 4, 0, 0, 13, 0);
	wait_details(&capture, 5 * MS + 10, 9 * MS, 11, 2, 0, 0);
	wake_details(&capture, 9 * MS, 13, 11, 1, 0);
	why = end(&capture, 9);
	check_part(why, 0, "pipe", 8 * MS - 20, 13, "likely", "pipe:[2]");
	assert_string_equal(ready_of(why), "pipe:[2]");
	done(&capture, why);
}

/* A packet arrives while a thread that is not the peer sends something else. */
static void test_the_waker_is_likely_if_the_ready_socket_has_another_peer(void **state)
{
	(void)state;
	for (int other = 0; other < 2; other++) {
		struct store_object far = {.pid = other ? 20 : 10,
					   .name = "socket:[2]",
					   .detail = "tcp 127.0.0.1:80 <-> 127.0.0.1:5000"};
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		begin(&capture);
		rest(&capture);
		named(&capture, 20, 20, "peer");
		object(&capture, "socket:[1]", "tcp 127.0.0.1:5000 <-> 127.0.0.1:80");
		capture_must(store_writer_add_object(capture.writer, &far, &err), err);
		ready_at_5(&capture, "sock_def_readable", 13);
		why = end(&capture, 5);
		check_part(why, 0, "socket", 4 * MS - 10, 13, other ? "likely" : "certain",
			   "socket:[1] (tcp 127.0.0.1:5000 <-> 127.0.0.1:80)");
		done(&capture, why);
	}
}

/* A reader that is too slow and never waits at the connection: only its process is known. So it is
 * followed if that has one thread. */
static void test_a_peer_that_never_waited_is_followed_if_its_process_has_one_thread(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 2; threads++) {
		struct store_object far = {.pid = 20,
					   .name = "socket:[2]",
					   .detail = "tcp 127.0.0.1:80 <-> 127.0.0.1:5000"};
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		begin(&capture);
		for (uint32_t i = 0; i < (uint32_t)threads; i++)
			named(&capture, 20 + i, 20, "reader");
		object(&capture, "socket:[1]", "tcp 127.0.0.1:5000 <-> 127.0.0.1:80");
		capture_must(store_writer_add_object(capture.writer, &far, &err), err);
		gets(&capture, MS, 4, 0, 20, 0, 0, 0);
		waits(&capture, MS + 5, 4, 20, 0, S, NR_NANOSLEEP, 0x9100, 0, 0);
		waits(&capture, MS + 10, 1, 11, 0, S, NR_WRITE, 4, 0, 0);
		gets(&capture, 5 * MS, 1, 0, 11, 0, 5 * MS, SOFT);
		wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
		gets(&capture, 6 * MS, 4, 0, 20, 0, 6 * MS, HARD);
		why = end(&capture, 6);
		if (threads == 1)
			check_part(why, 0, "sleep", 4 * MS - 10, 20, "likely", "");
		else
			check_part(why, 0, "socket", 4 * MS - 10, 20, "likely",
				   "socket:[1] (tcp 127.0.0.1:5000 <-> 127.0.0.1:80)");
		done(&capture, why);
	}
}

/* Client and server wait at both ends of a connection. Then an interrupt ends the client's wait,
 * and the client's next request ends the server's: nobody sent anything in between. Another thread
 * of the client may have the connection by then, as in a pool. If that one sends while the first
 * still waits, the server has waited for it. */
static void test_who_wait_for_each_other_at_a_connection_are_held_up_by_neither(void **state)
{
	static const struct {
		const char *protocol;
		uint32_t next;    /* the thread that sends the next request */
		uint64_t next_ts; /* when */
		const char *meaning;
	} rows[] = {{"tcp", 11, 5 * MS + 10,
		     "neither end sends: a delayed acknowledgement, Nagle's algorithm, or a lost "
		     "packet"},
		    {"tcp", 13, 5 * MS + 10,
		     "neither end sends: a delayed acknowledgement, Nagle's algorithm, or a lost "
		     "packet"},
		    {"tcp", 13, 5 * MS - 10, NULL},
		    {"udp", 11, 5 * MS + 10, "neither end sends: a lost packet"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char here[64], there[64], seen[200];
		const struct why_part *part;
		struct store_object far = {.pid = 20, .name = "socket:[2]", .detail = there};
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		snprintf(here, sizeof(here), "%s 127.0.0.1:5000 <-> 127.0.0.1:80",
			 rows[i].protocol);
		snprintf(there, sizeof(there), "%s 127.0.0.1:80 <-> 127.0.0.1:5000",
			 rows[i].protocol);
		snprintf(seen, sizeof(seen), "socket:[2] (%s): %s", there, rows[i].meaning ?: "");
		begin(&capture);
		named(&capture, 20, 20, "server");
		object(&capture, "socket:[1]", here);
		capture_must(store_writer_add_object(capture.writer, &far, &err), err);
		gets(&capture, MS, 4, 0, 20, 0, 0, 0);
		waits(&capture, MS + 5, 4, 20, 0, S, NR_READ, 7, 0, 0);
		waits(&capture, MS + 10, 1, 11, 0, S, NR_READ, 4, 0, 0);
		if (rows[i].next_ts < 5 * MS)
			gets(&capture, rows[i].next_ts, 4, 0, 20, rows[i].next, rows[i].next_ts, 0);
		gets(&capture, 5 * MS, 1, 0, 11, 0, 5 * MS, SOFT);
		wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
		if (rows[i].next_ts > 5 * MS)
			gets(&capture, rows[i].next_ts, 4, 0, 20, rows[i].next, rows[i].next_ts, 0);
		wait_details(&capture, MS + 5, rows[i].next_ts, 20, 2, 0, 0);
		why = end(&capture, 6);
		part = part_of(why, 0);
		if (!rows[i].meaning) {
			check_part(why, 0, "socket", 4 * MS - 20, 13, "likely",
				   "socket:[2] (tcp 127.0.0.1:80 <-> 127.0.0.1:5000)");
			done(&capture, why);
			continue;
		}
		check_part(why, 0, "socket", 4 * MS - 10, 0, "likely", seen);
		assert_string_equal(strtab_get(why->texts, why->steps.data[part->step + 1].meaning),
				    rows[i].meaning);
		done(&capture, why);
	}
}

#define CLIENT_END "tcp 127.0.0.1:40001 <-> 127.0.0.1:80"
#define SERVER_END "tcp 127.0.0.1:80 <-> 127.0.0.1:40001"

/* Objects 1 to 3: the socket of thread 11, the other end, which thread 20 has, and an epoll. */
static void connected(struct capture *capture, bool to_server)
{
	struct store_object far = {
		.pid = 20, .name = "socket:[2]", .detail = to_server ? SERVER_END : CLIENT_END};
	struct error err = ERROR_INIT;

	begin(capture);
	named(capture, 20, 20, "peer");
	object(capture, "socket:[1]", to_server ? CLIENT_END : SERVER_END);
	capture_must(store_writer_add_object(capture->writer, &far, &err), err);
	object(capture, "anon_inode:[eventpoll]", "");
	kernel_stack(capture, 0xffff8000, "hrtimer_wakeup");
	gets(capture, MS, 4, 0, 20, 0, 0, 0);
}

/* A client gives up. What the server did meanwhile explains the wait. If it is a loop that waits
 * for whatever comes, it does not answer, though timers and other clients wake it. */
static void test_a_wait_for_an_answer_that_timed_out_is_one_for_the_server(void **state)
{
	static const struct {
		bool to_server;
		int call, server_call;
		uint32_t server_object;
		const char *cause;
		uint32_t culprit;
		const char *object;
	} rows[] = {
		{true, NR_POLL, NR_EPOLL_WAIT, 3, "socket", 20, "socket:[1] (" CLIENT_END ")"},
		{true, NR_RECVFROM, NR_EPOLL_WAIT, 3, "socket", 20, "socket:[1] (" CLIENT_END ")"},
		{true, NR_POLL, NR_NANOSLEEP, 0, "sleep", 20, ""},
		/* It may lack a part of the request. */
		{true, NR_POLL, NR_READ, 2, "socket", 0, "socket:[1] (" CLIENT_END ")"},
		/* A server that closes a connection without requests. */
		{false, NR_POLL, NR_NANOSLEEP, 0, "timer", 11, "socket:[1] (" SERVER_END ")"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		connected(&capture, rows[i].to_server);
		waits(&capture, MS + 5, 4, 20, 0, S, rows[i].server_call, 7, 0, 0);
		wait_of(&capture, 1, 10, 9, rows[i].call, 4, 1, 8, 0, HARD);
		wait_details(&capture, MS + 10, 9 * MS, 11, 1, 0, 0);
		wake_details(&capture, 9 * MS, 0, 11, 1, HARD);
		gets(&capture, 9 * MS + 10, 4, 0, 20, 0, 9 * MS + 10, HARD);
		wait_details(&capture, MS + 5, 9 * MS + 10, 20, rows[i].server_object, 0, 0);
		wake_details(&capture, 9 * MS + 10, 0, 20, 1, HARD);
		why = end(&capture, 10);
		check_part(why, 0, rows[i].cause, 8 * MS - 10, rows[i].culprit, "likely",
			   rows[i].object);
		done(&capture, why);
	}
}

/* A server that waits for requests would have got that of its client at once. One that waits for
 * something else meanwhile may have been frozen at the end only. */
static void test_a_frozen_server_that_waits_for_requests_is_likely_stopped(void **state)
{
	static const struct {
		int call;
		const char *grade;
	} rows[] = {{NR_EPOLL_WAIT, "likely"}, {NR_FUTEX, "unknown"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		connected(&capture, true);
		named(&capture, 13, 30, "thawer");
		kernel_stack(&capture, 0xffff8000, "__thaw_task");
		waits(&capture, MS + 5, 4, 20, 0, S, rows[i].call, 7, 0, 0);
		waits(&capture, MS + 10, 1, 11, 0, S, NR_RECVFROM, 4, 0, 0);
		gets(&capture, 9 * MS - 10, 4, 0, 20, 13, 9 * MS - 10, 0);
		wake_details(&capture, 9 * MS - 10, 13, 20, 1, 0);
		gets(&capture, 9 * MS, 1, 0, 11, 20, 9 * MS, 0);
		wait_details(&capture, MS + 10, 9 * MS, 11, 1, 0, 0);
		why = end(&capture, 10);
		check_part(why, 0, "stopped", 8 * MS - 20, 13, rows[i].grade,
			   "thawed peer (20), whose cgroup was frozen");
		done(&capture, why);
	}
}

/* Nobody is known to have thawed it: `its cgroup` would be that of the client. */
static void test_a_frozen_server_without_a_thawer_is_named_with_its_cgroup(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	connected(&capture, true);
	kernel_stack(&capture, 0xffff8000, "__refrigerator");
	waits(&capture, MS + 5, 4, 20, 0, D, NR_EPOLL_WAIT, 7, 0, 0);
	waits(&capture, MS + 10, 1, 11, 0, S, NR_RECVFROM, 4, 0, 0);
	gets(&capture, 9 * MS - 10, 4, 0, 20, 0, 9 * MS - 10, HARD);
	wait_details(&capture, MS + 5, 9 * MS - 10, 20, 0, 1, 0);
	gets(&capture, 9 * MS, 1, 0, 11, 20, 9 * MS, 0);
	wait_details(&capture, MS + 10, 9 * MS, 11, 1, 0, 0);
	why = end(&capture, 10);
	check_part(why, 0, "stopped", 8 * MS - 20, 0, "likely",
		   "peer (20), whose cgroup was frozen");
	done(&capture, why);
}

/* The request's own thread waits for whatever comes, until the client gives up and hangs up. */
static void test_a_server_that_waits_until_the_client_gives_up_does_not_answer(void **state)
{
	const struct why_part *part;
	struct capture capture;
	struct why *why;

	(void)state;
	connected(&capture, false);
	waits(&capture, MS + 5, 4, 20, 0, S, NR_POLL, 7, 1, 8);
	waits(&capture, MS + 10, 1, 11, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
	gets(&capture, 9 * MS, 4, 0, 20, 0, 9 * MS, HARD);
	wait_details(&capture, MS + 5, 9 * MS, 20, 2, 0, 0);
	wake_details(&capture, 9 * MS, 0, 20, 1, HARD);
	gets(&capture, 9 * MS + 10, 1, 0, 11, 20, 9 * MS + 10, 0);
	wait_details(&capture, MS + 10, 9 * MS + 10, 11, 1, 0, 0);
	why = end(&capture, 10);
	part = part_of(why, 0);
	check_part(why, 0, "socket", 8 * MS - 10, 11, "likely", "socket:[2] (" CLIENT_END ")");
	assert_string_equal(strtab_get(why->texts, why->steps.data[part->step + 1].meaning),
			    "no answer came");
	done(&capture, why);
}

/* Whoever opens a named pipe waits for its other end. A signal is not what it waited for. */
static void test_who_opens_a_named_pipe_waits_for_its_other_end(void **state)
{
	static const char *const functions[] = {"wait_for_partner", "fifo_open", "do_dentry_open"};

	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		kernel_stack_of(&capture, 0xffff8000, functions, 3);
		waits(&capture, MS + 10, 1, 11, 0, S, NR_OPENAT, 4, 0, 0);
		if (killed)
			sent(&capture, 9 * MS - 2000, 13, 11, SIGUSR1, 0);
		gets(&capture, 9 * MS, 1, 0, 11, 13, 9 * MS, 0);
		wait_details(&capture, MS + 10, 9 * MS, 11, 0, 1, 0);
		why = end(&capture, 10);
		check_part(why, 0, killed ? "user-work" : "pipe", 8 * MS - 10, 13, "likely",
			   "somebody to open the other end of a named pipe");
		done(&capture, why);
	}
}

/* A proxy waits for the answer of another server until its client gives up: that it waits says
 * nothing of who is to blame. */
static void test_a_proxy_that_waits_until_the_client_gives_up_is_not_blamed(void **state)
{
	struct store_object up = {.ino = 9,
				  .pid = 20,
				  .name = "socket:[9]",
				  .detail = "tcp 127.0.0.1:40002 <-> 127.0.0.1:81"};
	struct error err = ERROR_INIT;
	struct capture capture;
	struct why *why;

	(void)state;
	connected(&capture, true);
	capture_must(store_writer_add_object(capture.writer, &up, &err), err);
	waits(&capture, MS + 5, 4, 20, 0, S, NR_EPOLL_WAIT, 7, 0, 0);
	wait_of(&capture, 1, 10, 9, NR_POLL, 4, 1, 8, 0, HARD);
	wait_details(&capture, MS + 10, 9 * MS, 11, 1, 0, 0);
	wake_details(&capture, 9 * MS, 0, 11, 1, HARD);
	gets(&capture, 9 * MS + 10, 4, 0, 20, 13, 9 * MS + 10, 0);
	why = end(&capture, 10);
	check_part(why, 0, "user-work", 8 * MS - 10, 13, "likely", "");
	done(&capture, why);
}

/* A signal of another process ends a client's wait for the answer. Who sent it is not what was
 * awaited; a thread of the same process may be. A server has no answer to wait for. */
static void test_a_signal_of_others_only_limits_a_wait_for_an_answer(void **state)
{
	static const struct {
		bool to_server;
		uint32_t sender_pid, culprit;
		const char *cause, *object;
	} rows[] = {{true, 30, 20, "socket", "socket:[1] (" CLIENT_END ")"},
		    {true, 10, 30, "user-work", "socket:[1] (" CLIENT_END ")"},
		    {false, 30, 30, "user-work", "socket:[1] (" SERVER_END ")"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		connected(&capture, rows[i].to_server);
		named(&capture, 30, rows[i].sender_pid, "sender");
		gets(&capture, MS, 3, 0, 30, 0, 0, 0);
		waits(&capture, MS + 5, 4, 20, 0, S, NR_EPOLL_WAIT, 7, 0, 0);
		waits(&capture, MS + 10, 1, 11, 0, S, NR_RECVFROM, 4, 0, 0);
		sent(&capture, 9 * MS - 2000, 30, 11, SIGUSR1, 0);
		gets(&capture, 9 * MS, 1, 0, 11, 30, 9 * MS, 0);
		wait_details(&capture, MS + 10, 9 * MS, 11, 1, 0, 0);
		why = end(&capture, 10);
		check_part(why, 0, rows[i].cause, 8 * MS - 10, rows[i].culprit, "likely",
			   rows[i].object);
		done(&capture, why);
	}
}

/* Thread 11 serves 20 and 21 at one epoll instance, which also watches the socket 9. The objects 2
 * and 3 are its ends of the connections, 4 and 5 those of the clients. */
static void begin_clients(struct capture *capture)
{
	static const char *const details[] = {
		"tcp 127.0.0.1:80 <-> 127.0.0.1:5000", "tcp 127.0.0.1:80 <-> 127.0.0.1:5001",
		"tcp 127.0.0.1:5000 <-> 127.0.0.1:80", "tcp 127.0.0.1:5001 <-> 127.0.0.1:80"};

	begin(capture);
	named(capture, 20, 20, "client");
	named(capture, 21, 21, "client");
	object(capture, "anon_inode:[eventpoll]", "socket:[101], socket:[102], socket:[9]");
	for (uint32_t i = 0; i < 4; i++) {
		char name[32];
		struct store_object socket = {.ino = 101 + i,
					      .pid = i < 2 ? CAPTURE_PID : 18 + i,
					      .name = name,
					      .detail = details[i]};
		struct error err = ERROR_INIT;

		snprintf(name, sizeof(name), "socket:[%u]", 101 + i);
		capture_must(store_writer_add_object(capture->writer, &socket, &err), err);
	}
	gets(capture, MS, 4, 0, 20, 0, 0, 0);
	gets(capture, MS + 1, 5, 0, 21, 0, 0, 0);
	waits(capture, MS + 5, 4, 20, 0, S, NR_RECVFROM, 7, 0, 0);
	waits(capture, MS + 6, 5, 21, 0, S, NR_RECVFROM, 7, 0, 0);
}

#define PACKET                                                                                     \
	{                                                                                          \
		"sock_def_readable", "tcp_rcv_established", "process_backlog"                      \
	}

/* An interrupt makes both connections ready at once. If both clients have waited for the server all
 * the time, and a packet of this machine came for an established connection, neither end sent. */
static void test_clients_that_all_wait_for_the_epoll_are_held_up_by_neither_end(void **state)
{
	static const struct {
		uint64_t sent_ts;     /* when thread 21 sends something meanwhile; 0: it does not */
		uint32_t other;       /* what it waits for: an object */
		const char *stack[3]; /* of the wake-up */
		bool nobody;
	} rows[] = {
		{0, 5, PACKET, true},
		{5 * MS - 100, 5, PACKET, false},
		{0, 1, PACKET, false},
		/* Another client connects, or one on another machine sends. */
		{0, 5, {"sock_def_readable", "tcp_child_process", "process_backlog"}, false},
		{0, 5, {"sock_def_readable", "tcp_rcv_established", "net_rx_action"}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t sent_ts = rows[i].sent_ts;
		struct capture capture;
		const char *text;
		struct why *why;

		begin_clients(&capture);
		kernel_stack_of(&capture, 0x9100, rows[i].stack, 3);
		waits(&capture, MS + 10, 1, 11, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
		if (sent_ts) {
			gets(&capture, sent_ts - 100, 5, 0, 21, 0, 0, HARD);
			waits(&capture, sent_ts, 5, 21, 0, S, NR_RECVFROM, 7, 0, 0);
		}
		gets(&capture, 5 * MS, 1, 0, 11, 0, 5 * MS, SOFT);
		wait_details(&capture, MS + 10, 5 * MS, 11, 1, 0, 0);
		wake_details(&capture, 5 * MS, 0, 11, 1, SOFT);
		gets(&capture, 5 * MS + 10, 4, 0, 20, 11, 5 * MS + 10, 0);
		wait_details(&capture, MS + 5, 5 * MS + 10, 20, 4, 0, 0);
		gets(&capture, 5 * MS + 11, 5, 0, 21, 11, 5 * MS + 11, 0);
		wait_details(&capture, sent_ts ?: MS + 6, 5 * MS + 11, 21, rows[i].other, 0, 0);
		why = end(&capture, 6);
		assert_int_equal(part_of(why, 0)->cause, WHY_SOCKET);
		text = strtab_get(why->texts, part_of(why, 0)->object);
		assert_int_equal(strstr(text, ": neither end sends: a delayed") != NULL,
				 rows[i].nobody);
		done(&capture, why);
	}
}

/* Without the stack, an interrupt in a system call on a socket looks like the doing of that call.
 */
static void test_who_ends_a_wait_for_several_things_is_likely_without_its_stack(void **state)
{
	static const struct {
		int syscall;
		const char *function, *cause, *grade;
	} rows[] = {{NR_EPOLL_WAIT, NULL, "user-work", "likely"},
		    {NR_POLL, NULL, "user-work", "likely"},
		    {NR_EPOLL_WAIT, "eventfd_write", "user-work", "certain"},
		    {NR_POLL, "pipe_write", "pipe", "certain"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		rest(&capture);
		if (rows[i].function)
			kernel_stack(&capture, 0xffff8000, rows[i].function);
		wait_of(&capture, 1, 10, 5, rows[i].syscall, 4, 1, 0, 13, 0);
		if (rows[i].function)
			wake_details(&capture, 5 * MS, 13, 11, 1, 0);
		why = end(&capture, 5);
		check_part(why, 0, rows[i].cause, 4 * MS - 10, 13, rows[i].grade, "");
		done(&capture, why);
	}
}

/* Only of calls that any signal ends do the records say that it was waited for. */
static void test_who_signals_is_certain_if_any_signal_ends_the_call(void **state)
{
	static const struct {
		int syscall, signo;
		const char *grade;
	} rows[] = {{NR_PAUSE, SIGUSR1, "certain"},
		    {NR_PAUSE, 0, "likely"},
		    {NR_PAUSE, 34, "likely"}, /* SIGRTMIN, or musl's own */
		    {NR_SIGTIMEDWAIT, SIGUSR1, "likely"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		rest(&capture);
		wait_of(&capture, 1, 10, 5, rows[i].syscall, 0, 0, 0, 13, 0);
		if (rows[i].signo)
			sent(&capture, 5 * MS - 2000, 13, 11, rows[i].signo, 0);
		why = end(&capture, 5);
		check_part(why, 0, "user-work", 4 * MS - 10, 13, rows[i].grade, "");
		done(&capture, why);
	}
}

/* glibc's setuid() signals all threads, whatever these do. */
static void test_a_signal_of_the_c_library_itself_is_not_awaited(void **state)
{
	static const int calls[] = {NR_PAUSE, NR_SIGTIMEDWAIT, NR_READ, NR_EPOLL_WAIT};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (int stack = 0; stack < 2; stack++) {
			struct capture capture;
			struct why *why;

			begin(&capture);
			kernel_stack(&capture, 0xffff8000, "complete_signal");
			wait_of(&capture, 1, 10, 5, calls[i], 3, 0, 0, 12, 0);
			sent(&capture, 5 * MS - 2000, 12, 11, 33, 0);
			if (stack)
				wake_details(&capture, 5 * MS, 12, 11, 1, 0);
			why = end(&capture, 5);
			check_part(why, 0, "user-work", 4 * MS - 10, 12, "likely", "");
			done(&capture, why);
			/* It goes on to wait, longer than a check takes. */
			begin(&capture);
			kernel_stack(&capture, 0xffff8000, "complete_signal");
			wait_of(&capture, 1, 10, 5, calls[i], 3, 0, 0, 12, 0);
			sent(&capture, 5 * MS - 2000, 12, 11, 33, 0);
			if (stack)
				wake_details(&capture, 5 * MS, 12, 11, 1, 0);
			wait_of(&capture, 5, 500000, 9, calls[i], 3, 0, 0, 13, 0);
			sent(&capture, 9 * MS - 2000, 13, 11, SIGUSR1, 0);
			why = end(&capture, 9);
			check_part(why, 0, "user-work", 8 * MS - 500010, 13, "likely", "");
			done(&capture, why);
		}
}

/* A device ends a wait by an interrupt. A thread that does has let go of a lock, say, whatever else
 * the device did meanwhile. */
static void test_a_device_is_likely_if_a_thread_ended_the_wait(void **state)
{
	static const struct {
		uint32_t waker;
		unsigned flags;
		const char *disk, *fault;
	} rows[] = {{0, HARD, "certain", "certain"},
		    {12, 0, "likely", "likely"},
		    /* It is not traced: it may have released a lock of the file. */
		    {88, 0, "likely", "certain"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		waits(&capture, MS, 1, 11, 0, D, NR_FSYNC, 4, 0, 0);
		io_done(&capture, MS, 4 * MS, 11, WAFFLE_IO_WRITE);
		gets(&capture, 5 * MS, 1, 0, 11, rows[i].waker, 5 * MS, rows[i].flags);
		why = end(&capture, 5);
		check_part(why, 0, "disk-write", 4 * MS, 11, rows[i].disk, "");
		done(&capture, why);
		begin(&capture);
		waits(&capture, MS, 1, 11, 0, D, NR_NONE, 0, 0, 0);
		gets(&capture, 5 * MS, 1, 0, 11, rows[i].waker, 5 * MS, rows[i].flags);
		told_major(&capture, MS - 10, 5 * MS, 11);
		why = end(&capture, 5);
		check_part(why, 0, "page-fault-major", 4 * MS, 11, rows[i].fault, "");
		done(&capture, why);
	}
}

/* ---- spans that were left ---- */

static void test_a_span_that_was_left_ends_with_the_one_around_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_hit(&capture, 2 * MS, 11, SITE_LOAD, 2, 1, 2, (const uint64_t[]){0, 0});
	capture_end(&capture, 5 * MS, 11, 1);
	capture_span(&capture, 9 * MS, 11, 3);
	capture_end(&capture, 10 * MS, 11, 3);
	why = ask(&capture, 11 * MS, &(struct why_query){.tid = 11, .to_ts = UINT64_MAX});
	/* From 5 ms on it is in no span. That it was in the inner one until then is not known. */
	check_part(why, 0, "running", 5 * MS + 200, 11, "certain", "");
	assert_int_equal(part_of(why, 0)->span, MODEL_NONE);
	check_part(why, 1, "running", 3 * MS, 11, "likely", "");
	assert_int_equal(why->model->spans.data[part_of(why, 1)->span].id, 2);
	check_part(why, 2, "running", 2 * MS, 11, "certain", "");
	done(&capture, why);
}

/* ---- waffle-bpf itself ---- */

static void test_the_cpu_time_of_the_tracer_is_its_own(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named_as(&capture, 91, 91, "waffle-bpf", WAFFLE_TASK_OWN_FLAG);
	named(&capture, 92, 92, "waffle-bpf");
	gets(&capture, 2 * MS, 1, 11, 91, 0, 0, 0);
	gets(&capture, 4 * MS, 1, 91, 11, 0, 0, 0);
	gets(&capture, 5 * MS, 1, 11, 92, 0, 0, 0);
	gets(&capture, 6 * MS, 1, 92, 11, 0, 0, 0);
	why = end(&capture, 10);
	/* It comes last. The waffle-bpf of another capture is a neighbour. */
	check_part(why, 2, "cpu-contention", 2 * MS, 91, "certain", "this capture");
	check_part(why, 1, "cpu-contention", 1 * MS, 92, "certain", "");
	assert_int_equal(why->instances.data[0].own_ns, 2 * MS);
	check_why_text(
		why,
		"\n  what the capture itself took is listed last, whatever its share\n   1.  ");
	done(&capture, why);
}

static void test_the_hold_of_a_new_program_is_the_tracers(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named_as(&capture, 93, 93, "waffle-gate", WAFFLE_TASK_OWN_FLAG);
	waits(&capture, 2 * MS, 1, 11, 0, D, NR_EXECVE, 0x8100, 0, 0);
	gets(&capture, 4 * MS, 1, 0, 11, 93, 4 * MS, 0);
	why = end(&capture, 4);
	check_part(why, 1, "stopped", 2 * MS, 93, "certain", "held by waffle-bpf (this capture)");
	assert_int_equal(why->instances.data[0].own_ns, 2 * MS);
	done(&capture, why);
}

/* In older captures the program is the sender of a signal that BPF has sent. */
static void test_a_stop_by_bpf_is_the_tracers(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	sent(&capture, 2 * MS - 10, 11, 11, SIGSTOP, SI_BPF);
	waits(&capture, 2 * MS, 1, 11, 0, WAFFLE_TASK_STOPPED, NR_NONE, 0, 0, 0);
	gets(&capture, 4 * MS, 1, 0, 11, 91, 4 * MS, 0);
	why = end(&capture, 4);
	check_part(why, 1, "stopped", 2 * MS, 0, "certain", "held by waffle-bpf (this capture)");
	done(&capture, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_broadcast_for_another_is_no_end_of_a_wait),
		cmocka_unit_test(test_a_thread_ends_no_wait_from_before_its_start),
		cmocka_unit_test(test_timeouts_of_python_end_no_wait),
		cmocka_unit_test(test_who_ends_repeated_waits_is_likely),
		cmocka_unit_test(test_the_last_of_repeated_waits_is_likely_as_well),
		cmocka_unit_test(test_who_ends_a_single_wait_is_certain_if_nobody_else_ran),
		cmocka_unit_test(test_untraced_threads_make_no_wait_doubtful),
		cmocka_unit_test(test_who_ends_a_wait_is_likely_if_the_thread_could_look_late),
		cmocka_unit_test(test_a_wait_is_likely_if_not_all_others_were_searched),
		cmocka_unit_test(test_who_makes_room_each_time_is_certain),
		cmocka_unit_test(test_an_event_loop_that_works_in_between_is_likely),
		cmocka_unit_test(test_a_loop_woken_for_another_request_waits_on),
		cmocka_unit_test(
			test_what_comes_while_a_loop_serves_another_request_is_not_the_clients),
		cmocka_unit_test(test_a_request_that_ends_another_one_is_followed),
		cmocka_unit_test(test_a_worker_that_ran_meanwhile_counts_if_the_loop_woke_it),
		cmocka_unit_test(test_each_wait_of_a_loop_in_no_span_has_its_own_end),
		cmocka_unit_test(test_a_wait_that_goes_on_at_the_end_hides_no_end_of_others),
		cmocka_unit_test(test_timers_of_an_event_loop_in_no_span_end_no_wait),
		cmocka_unit_test(test_a_wait_after_the_timer_of_a_loop_says_nothing_of_the_timer),
		cmocka_unit_test(test_a_server_that_answers_at_once_after_a_delay_is_not_to_blame),
		cmocka_unit_test(test_a_timeout_before_another_event_has_not_caused_the_wait),
		cmocka_unit_test(test_a_server_is_not_to_blame_before_it_is_asked),
		cmocka_unit_test(test_work_after_a_signal_ends_the_wait_of_an_event_loop),
		cmocka_unit_test(test_who_ran_after_the_last_timeout_has_done_what_was_waited_for),
		cmocka_unit_test(test_a_list_of_the_same_descriptors_is_the_same_wait),
		cmocka_unit_test(test_a_list_of_which_only_a_part_is_known_may_be_another_one),
		cmocka_unit_test(test_before_a_thread_was_started_its_starter_explains_the_wait),
		cmocka_unit_test(test_a_timeout_before_a_younger_thread_is_no_end_of_a_wait),
		cmocka_unit_test(test_who_is_asked_in_between_has_not_ended_what_was_before),
		cmocka_unit_test(test_who_is_in_another_span_waits_for_something_else),
		cmocka_unit_test(test_a_lost_race_for_a_lock_is_a_wait_for_its_holder),
		cmocka_unit_test(test_a_lock_that_goes_round_is_likely),
		cmocka_unit_test(test_a_signal_is_no_end_of_a_wait_that_goes_on),
		cmocka_unit_test(test_a_child_that_is_waited_for_by_its_number_is_certain),
		cmocka_unit_test(test_a_wait_for_a_group_of_processes_is_likely),
		cmocka_unit_test(test_another_child_is_another_wait),
		cmocka_unit_test(test_a_wait_goes_on_after_a_stop),
		cmocka_unit_test(test_a_wait_goes_on_after_the_thread_was_frozen),
		cmocka_unit_test(test_a_tracers_stop_is_not_an_earlier_signals),
		cmocka_unit_test(test_a_sleep_that_a_signal_ends_is_the_senders),
		cmocka_unit_test(test_a_sleep_after_one_that_a_signal_ended_is_another_one),
		cmocka_unit_test(test_a_sleep_that_nobody_is_known_to_end_is_likely),
		cmocka_unit_test(test_a_sleep_that_goes_on_after_a_signal_is_a_sleep),
		cmocka_unit_test(test_a_sleep_that_a_freezer_ends_is_likely_stopped),
		cmocka_unit_test(test_another_wait_that_a_freezer_ends_is_unknown),
		cmocka_unit_test(test_a_wait_for_several_things_is_a_timers_if_something_says_so),
		cmocka_unit_test(test_a_call_that_the_signal_of_a_timer_ended_is_a_timers),
		cmocka_unit_test(
			test_what_became_ready_is_no_cause_if_something_else_woke_the_thread),
		cmocka_unit_test(test_what_became_ready_is_that_of_the_last_wait),
		cmocka_unit_test(test_the_waker_is_likely_if_the_ready_socket_has_another_peer),
		cmocka_unit_test(
			test_a_peer_that_never_waited_is_followed_if_its_process_has_one_thread),
		cmocka_unit_test(
			test_who_wait_for_each_other_at_a_connection_are_held_up_by_neither),
		cmocka_unit_test(test_a_wait_for_an_answer_that_timed_out_is_one_for_the_server),
		cmocka_unit_test(test_a_frozen_server_that_waits_for_requests_is_likely_stopped),
		cmocka_unit_test(test_a_frozen_server_without_a_thawer_is_named_with_its_cgroup),
		cmocka_unit_test(
			test_a_server_that_waits_until_the_client_gives_up_does_not_answer),
		cmocka_unit_test(test_who_opens_a_named_pipe_waits_for_its_other_end),
		cmocka_unit_test(test_a_signal_of_others_only_limits_a_wait_for_an_answer),
		cmocka_unit_test(test_a_proxy_that_waits_until_the_client_gives_up_is_not_blamed),
		cmocka_unit_test(
			test_who_ends_a_wait_for_several_things_is_likely_without_its_stack),
		cmocka_unit_test(test_who_signals_is_certain_if_any_signal_ends_the_call),
		cmocka_unit_test(test_a_signal_of_the_c_library_itself_is_not_awaited),
		cmocka_unit_test(test_a_device_is_likely_if_a_thread_ended_the_wait),
		cmocka_unit_test(test_a_span_that_was_left_ends_with_the_one_around_it),
		cmocka_unit_test(test_the_cpu_time_of_the_tracer_is_its_own),
		cmocka_unit_test(test_the_hold_of_a_new_program_is_the_tracers),
		cmocka_unit_test(test_a_stop_by_bpf_is_the_tracers),
		cmocka_unit_test(
			test_clients_that_all_wait_for_the_epoll_are_held_up_by_neither_end),
	};

	return cmocka_run_group_tests_name("why series", tests, NULL, NULL);
}
