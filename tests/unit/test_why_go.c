// SPDX-License-Identifier: Apache-2.0
/* Threads of Go's runtime that have nothing to run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/why/why_longest.h"
#include "analyze/why/why_pick.h"
#include "fake_names.h"
#include "why_capture.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define IDLE "Go's runtime waits for work (goroutines are not followed), "
#define PARK 0x7000 /* the futex at which thread 11 waits for work */
#define EPOLL 4
#define NR_FLOCK 73
#define OTHER_PID 77

/* The stacks of a test: number n is that of the n-th row, innermost first. */
static const char *const stacks[][4] = {
	{"runtime.futex", "runtime.notesleep", "runtime.stopm", "runtime.findRunnable"},
	{"linux.Syscall6", "linux.EpollWait", "runtime.netpoll", "[cut]"},
	{"runtime.usleep", "runtime.sysmon", "runtime.mstart1", "runtime.mstart0"},
	{"runtime.futex", "runtime.futexsleep", "runtime.lock2", "runtime.findRunnable"},
	{"runtime.futex", "runtime.notesleep", "runtime.stoplockedm", "runtime.schedule"},
	{"syscall.Syscall", "syscall.Flock", "main.main", "runtime.main"},
};
enum { NO_STACK, PARKED, POLLS, MONITOR, LOCK, LOCKED, FLOCK };

static uint32_t functions(void *arg, uint32_t stack, uint64_t ts, const char **names, uint32_t max)
{
	(void)ts;
	assert_ptr_equal(arg, stacks);
	assert_in_range(stack, 1, LENGTH(stacks));
	assert_true(max >= LENGTH(stacks[0]));
	memcpy(names, stacks[stack - 1], sizeof(stacks[0]));
	return LENGTH(stacks[0]);
}

static bool is_go(void *arg, const struct store_mapping *mapping)
{
	(void)arg;
	return !strcmp(mapping->path, "/srv/go");
}

static struct stack_names names = {.arg = (void *)stacks, .functions = functions, .is_go = is_go};

/* Thread 11 on CPU 1 and 12 on CPU 2 are of the Go program. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	mapping(capture, 0x400000, 0x500000, "/srv/go");
	named(capture, 11, CAPTURE_PID, "go");
	named(capture, 12, CAPTURE_PID, "go");
	named(capture, 13, OTHER_PID, "other");
	for (size_t i = 0; i < LENGTH(stacks); i++) {
		uint64_t address = 0x400000 + i;
		struct store_stack stack = {.pid = CAPTURE_PID, .addresses = &address, .count = 1};
		struct error err = ERROR_INIT;

		capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
	}
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	gets(capture, 1001, 2, 0, 12, 0, 0, 0);
	gets(capture, 1002, 3, 0, 13, 0, 0, 0);
}

/* A wait of thread 11, which `waker` ends. */
struct wait {
	uint64_t from_ts, to_ts;
	int syscall;
	uint64_t arg;
	uint32_t stack, waker;
	unsigned flags;
	uint32_t object;
};

static void wait_details_of(struct capture *capture, uint64_t from_ts, uint64_t to_ts, uint32_t tid,
			    uint32_t stack, uint32_t object)
{
	struct waffle_rec_wait rec = {.rec = {to_ts, tid, WAFFLE_REC_WAIT, 0},
				      .from_ts = from_ts,
				      .user_stack = stack,
				      .object = object};

	capture_add(capture, &rec);
}

static void wait_add(struct capture *capture, const struct wait *wait)
{
	waits(capture, wait->from_ts, 1, 11, 0, S, wait->syscall, wait->arg, FUTEX_MUTEX, 0);
	gets(capture, wait->to_ts, 1, 0, 11, wait->waker, wait->to_ts, wait->flags);
	if (wait->stack || wait->object)
		wait_details_of(capture, wait->from_ts, wait->to_ts, 11, wait->stack, wait->object);
}

/* Explains thread 11 from 1000 to 2000. */
static struct why *ask_go(struct capture *capture)
{
	return ask(capture, 2000,
		   &(struct why_query){.tid = 11, .from_ts = 1000, .to_ts = 2000, .names = &names});
}

static struct why *ask_wait(struct capture *capture, struct wait wait)
{
	wait.from_ts = 1010;
	wait.to_ts = 1980;
	begin(capture);
	wait_add(capture, &wait);
	return ask_go(capture);
}

static void test_a_thread_without_work_is_idle_with_what_wakes_it(void **state)
{
	static const struct {
		struct wait wait;
		const char *text;
	} rows[] = {
		{{.syscall = NR_FUTEX, .arg = PARK, .stack = PARKED, .waker = 12},
		 IDLE "woken by its own threads"},
		{{.syscall = NR_NANOSLEEP, .stack = MONITOR, .flags = HARD},
		 IDLE "woken by a timer"},
		{{.syscall = NR_EPOLL_WAIT, .arg = EPOLL, .stack = POLLS, .flags = HARD},
		 IDLE "woken by an interrupt: a timer, or the network"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		struct why *why = ask_wait(&capture, rows[i].wait);

		check_part(why, 0, "idle", 970, 0, "likely", rows[i].text);
		done(&capture, why);
	}
}

static void test_what_a_goroutine_waits_for_is_not_idle(void **state)
{
	static const struct {
		struct wait wait;
		const char *cause;
		uint32_t culprit;
	} rows[] = {
		{{.syscall = NR_FUTEX, .arg = PARK, .stack = LOCK, .waker = 12}, "user-work", 12},
		/* The goroutine stays on its thread, so this is its own wait. */
		{{.syscall = NR_FUTEX, .arg = PARK, .stack = LOCKED, .waker = 12}, "user-work", 12},
		{{.syscall = NR_FLOCK, .arg = 3, .stack = FLOCK, .waker = 12}, "lock", 12},
		/* Another process ends the wait for all files. */
		{{.syscall = NR_EPOLL_WAIT, .arg = EPOLL, .stack = POLLS, .waker = 13},
		 "user-work",
		 13},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		struct why *why = ask_wait(&capture, rows[i].wait);
		const struct why_part *part = part_of(why, 0);

		if (strcmp(why_causes[part->cause].name, rows[i].cause) != 0)
			fail_msg("row %zu: %s", i, why_causes[part->cause].name);
		assert_int_equal(why->model->threads.data[part->thread].tid, rows[i].culprit);
		done(&capture, why);
	}
}

static void test_a_wait_without_a_stack_is_as_others_for_the_same_thing(void **state)
{
	static const struct wait known[] = {
		{1010, 1110, NR_FUTEX, PARK, PARKED, 12, 0, 0},
		{1120, 1220, NR_EPOLL_WAIT, EPOLL, POLLS, 12, 0, 0},
		{1230, 1330, NR_FUTEX, PARK + 8, PARKED, 12, 0, 0},
		{1340, 1440, NR_FUTEX, PARK + 8, LOCKED, 12, 0, 0},
	};
	static const struct {
		int syscall;
		uint64_t arg;
		bool idle;
	} rows[] = {
		{NR_FUTEX, PARK, true},
		{NR_EPOLL_WAIT, EPOLL, true},
		{NR_FUTEX, PARK + 8, false},
		{NR_FUTEX, PARK + 16, false},
		{NR_EPOLL_WAIT, EPOLL + 1, false},
		{NR_NANOSLEEP, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct wait bare = {1450, 1980, rows[i].syscall, rows[i].arg, NO_STACK, 12,
					  0,    0};
		struct capture capture;
		uint64_t idle_ns = 0;
		struct why *why;

		begin(&capture);
		for (size_t k = 0; k < LENGTH(known); k++)
			wait_add(&capture, &known[k]);
		wait_add(&capture, &bare);
		why = ask_go(&capture);
		for (uint32_t k = 0; k < why->instances.data[0].part_count; k++)
			if (part_of(why, k)->cause == WHY_IDLE)
				idle_ns += part_of(why, k)->ns;
		assert_int_equal(idle_ns, rows[i].idle ? 300 + 530 : 300);
		done(&capture, why);
	}
}

/* The computed time from 1000 on is 6 % or 4 % of the thread's time. */
static void test_idle_stands_behind_work_unless_that_is_little(void **state)
{
	static const uint64_t until[] = {1060, 1040};

	(void)state;
	for (size_t i = 0; i < LENGTH(until); i++) {
		const struct wait wait = {until[i], 2000, NR_FUTEX, PARK, PARKED, 12, 0, 0};
		struct capture capture;
		struct why *why;

		begin(&capture);
		wait_add(&capture, &wait);
		why = ask_go(&capture);
		check_part(why, i ? 1 : 0, "running", until[i] - 1000, 11, "likely", "");
		check_part(why, i ? 0 : 1, "idle", 2000 - until[i], 0, "likely",
			   IDLE "woken by its own threads");
		done(&capture, why);
	}
}

/* A span shows what the thread waits for, so its chain goes on. */
static void test_in_a_span_the_chain_goes_on(void **state)
{
	const struct wait wait = {1020, 1980, NR_FUTEX, PARK, PARKED, 12, 0, 0};
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	capture_span(&capture, 1010, 11, 1);
	wait_add(&capture, &wait);
	capture_end(&capture, 1990, 11, 1);
	why = ask(&capture, 2000, &(struct why_query){.name = "step", .names = &names});
	check_part(why, 0, "user-work", 960, 12, "likely", "futex 0x7000");
	done(&capture, why);
}

/* A thread that the program gave to a goroutine has a name of its own, and is explained alone. One
 * that runs most of the time may have any goroutine. */
static void test_the_program_is_explained_unless_one_of_its_threads_has_a_name(void **state)
{
	static const struct {
		const char *comm;
		uint64_t ran_ns;
		bool all, quiet;
	} rows[] = {{"go", 400, true, false},
		    {"go", 5, true, true},
		    {"go", 600, true, false},
		    {"named", 400, false, false}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct why_wanted wanted = {.to_ns = UINT64_MAX};
		struct why_query query = {.names = &names};
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		begin(&capture);
		named(&capture, CAPTURE_PID, CAPTURE_PID, "go");
		named(&capture, 12, CAPTURE_PID, rows[i].comm);
		waits(&capture, 1010, 3, 13, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
		waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
		waits(&capture, 1001 + rows[i].ran_ns, 2, 12, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
		named(&capture, 14, OTHER_PID, "go");
		capture_load(&capture, 2000);
		assert_int_equal(why_pick(&query, capture.model, &wanted, &err), 0);
		assert_int_equal(query.tid, rows[i].all ? 0 : 12);
		assert_int_equal(query.program, rows[i].all ? CAPTURE_PID : 0);
		assert_int_equal(query.quiet, rows[i].quiet);
		capture_must(why_new(&why, capture.model, &query, &err), err);
		assert_int_equal(why->instances.len, 1);
		assert_int_equal(why->instances.data[0].program, rows[i].all);
		why_free(why);
		capture_free(&capture);
	}
}

/* ---- the program as a whole ---- */

enum { NO_SOCKET, OWN_END, OTHER_END, POLLER };

/* The connection of the program with the process of thread 13. */
static void connection(struct capture *capture, const char *local, const char *remote)
{
	char own[64], other[64];
	const struct store_object ends[] = {
		{.ino = 701, .pid = CAPTURE_PID, .name = "socket:[701]", .detail = own},
		{.ino = 702, .pid = OTHER_PID, .name = "socket:[702]", .detail = other},
		{.ino = 9, .pid = CAPTURE_PID, .name = "anon_inode:[eventpoll]", .detail = ""},
	};

	snprintf(own, sizeof(own), "tcp %s <-> %s", local, remote);
	snprintf(other, sizeof(other), "tcp %s <-> %s", remote, local);
	for (size_t i = 0; i < LENGTH(ends); i++) {
		struct error err = ERROR_INIT;

		capture_must(store_writer_add_object(capture->writer, &ends[i], &err), err);
	}
}

#define CLIENT "127.0.0.1:40000"
#define SERVER "127.0.0.1:8080"
#define MAYBE "127.0.0.1:50000" /* a port that a client may have, too */

/* The main thread is idle all the time. */
static void begin_program(struct capture *capture, const char *local, const char *remote)
{
	begin(capture);
	named(capture, CAPTURE_PID, CAPTURE_PID, "go");
	connection(capture, local, remote);
	waits(capture, 1003, 4, CAPTURE_PID, 0, S, NR_FUTEX, PARK + 64, FUTEX_MUTEX, 0);
}

/* Thread 12 sends at 1100, and is blocked from 1110 on. Thread 13, at the other end, sleeps from
 * 1120 to 1900, and answers at 1980. */
static void exchange(struct capture *capture, int syscall)
{
	waits(capture, 1005, 3, 13, 0, S, NR_RECVFROM, 5, 0, 0);
	gets(capture, 1100, 3, 0, 13, 12, 1100, 0);
	wait_details(capture, 1005, 1100, 13, OTHER_END, 0, 0);
	waits(capture, 1110, 2, 12, 0, S, syscall, PARK, FUTEX_MUTEX, 0);
	waits(capture, 1120, 3, 13, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(capture, 1900, 3, 0, 13, 13, 1900, HARD);
}

static struct why *ask_program(struct capture *capture)
{
	return ask(
		capture, 2000,
		&(struct why_query){
			.program = CAPTURE_PID, .from_ts = 1000, .to_ts = 2000, .names = &names});
}

/* A timer, at which other goroutines may wait, wakes the poller in between. */
static void test_a_program_waits_for_the_answer_of_another_process(void **state)
{
	static const struct wait polls[] = {
		{1010, 1300, NR_EPOLL_WAIT, EPOLL, POLLS, 0, HARD, 0},
		{1310, 1980, NR_EPOLL_WAIT, EPOLL, POLLS, 13, 0, OWN_END},
	};
	const struct why_step *step;
	struct capture capture;
	struct why *why;

	(void)state;
	begin_program(&capture, CLIENT, SERVER);
	wait_add(&capture, &polls[0]);
	exchange(&capture, NR_FUTEX);
	wait_add(&capture, &polls[1]);
	why = ask_program(&capture);
	check_part(why, 0, "sleep", 780 - 10, 13, "likely", "");
	check_part(why, 1, "running", 110 + 10 + 20, CAPTURE_PID, "likely", "");
	check_part(why, 2, "socket", 10 + 80, 13, "likely",
		   "socket:[701] (tcp " CLIENT " <-> " SERVER ")");
	step = &why->steps.data[part_of(why, 0)->step];
	assert_true(step->answer);
	assert_int_equal(why->model->threads.data[step->by].tid, 13);
	done(&capture, why);
}

/* Thread 13 sends another answer at 1980. The second request was there when it had sent the first
 * one, at 1300, or it was not, and the thread waited for it until 1400, too shortly for a record.
 */
static void test_a_request_that_wakes_nobody_came_after_the_last_answer(void **state)
{
	static const struct wait polls[] = {
		{1010, 1300, NR_EPOLL_WAIT, EPOLL, POLLS, 13, 0, OWN_END},
		{1310, 1980, NR_EPOLL_WAIT, EPOLL, POLLS, 13, 0, OWN_END},
	};

	(void)state;
	for (unsigned waited = 0; waited < 2; waited++) {
		struct capture capture;
		uint64_t other_ns = 0;
		struct why *why;

		begin_program(&capture, CLIENT, SERVER);
		waits(&capture, 1110, 2, 12, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
		wait_add(&capture, &polls[0]);
		if (waited) {
			waits(&capture, 1305, 3, 13, 0, S, NR_RECVFROM, 5, 0, 0);
			gets(&capture, 1400, 3, 0, 13, 11, 1400, 0);
		}
		wait_add(&capture, &polls[1]);
		why = ask_program(&capture);
		for (uint32_t i = 0; i < why->instances.data[0].part_count; i++)
			if (why->steps.data[part_of(why, i)->step].answer)
				other_ns += part_of(why, i)->ns;
		assert_int_equal(other_ns, waited ? 580 : 670);
		done(&capture, why);
	}
}

/* The program is the server, and waits for the client's next request. That looks like the client of
 * a server that has the higher port. */
static void test_what_may_be_the_next_request_is_no_answer(void **state)
{
	static const struct wait wait = {1010, 1980, NR_EPOLL_WAIT, EPOLL, POLLS, 13, 0, OWN_END};
	static const char *const ports[] = {MAYBE, "127.0.0.1:32768"};

	(void)state;
	for (size_t i = 0; i < LENGTH(ports); i++) {
		struct capture capture;
		struct why *why;

		begin_program(&capture, ports[i], CLIENT);
		exchange(&capture, NR_FUTEX);
		wait_add(&capture, &wait);
		why = ask_program(&capture);
		for (size_t k = 0; k < why->steps.len; k++)
			assert_false(why->steps.data[k].answer);
		done(&capture, why);
	}
}

static void test_a_server_without_requests_is_idle(void **state)
{
	const struct wait wait = {1010, 1980, NR_EPOLL_WAIT, EPOLL, POLLS, 13, 0, OWN_END};
	struct capture capture;
	struct why *why;

	(void)state;
	begin_program(&capture, SERVER, CLIENT);
	exchange(&capture, NR_FUTEX);
	wait_add(&capture, &wait);
	why = ask_program(&capture);
	check_part(why, 0, "running", 130, CAPTURE_PID, "likely", "");
	check_part(why, 1, "idle", 870, 0, "likely",
		   "no goroutine can run, until a client of tcp " SERVER " sends something");
	done(&capture, why);
}

static void test_a_program_without_work_names_what_ends_that(void **state)
{
	static const struct {
		struct wait wait;
		const char *cause, *grade, *object;
	} rows[] = {
		{{.syscall = NR_EPOLL_WAIT,
		  .arg = EPOLL,
		  .stack = POLLS,
		  .flags = HARD,
		  .object = POLLER},
		 "unknown",
		 "unknown",
		 "no goroutine can run, until a timer of Go's runtime (time.Sleep, a ticker, a "
		 "timeout) ends: goroutines may wait for work, or be blocked"},
		{{.syscall = NR_EPOLL_WAIT, .arg = EPOLL, .stack = POLLS, .flags = HARD},
		 "unknown",
		 "unknown",
		 "no goroutine can run, until an interrupt: a timer, or the network: goroutines "
		 "may wait for work, or be blocked"},
		{{.syscall = NR_EPOLL_WAIT,
		  .arg = EPOLL,
		  .stack = POLLS,
		  .flags = HARD,
		  .object = OWN_END},
		 "socket",
		 "likely",
		 "socket:[701] (tcp " CLIENT " <-> " SERVER ")"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct wait wait = rows[i].wait;
		struct capture capture;
		struct why *why;

		wait.from_ts = 1020;
		wait.to_ts = 1980;
		begin_program(&capture, CLIENT, SERVER);
		waits(&capture, 1010, 2, 12, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
		wait_add(&capture, &wait);
		why = ask_program(&capture);
		check_part(why, 0, rows[i].cause, 960, 0, rows[i].grade, rows[i].object);
		done(&capture, why);
	}
}

static void test_a_program_that_works_as_well_is_idle_in_between(void **state)
{
	const struct wait wait = {1200, 1980, NR_EPOLL_WAIT, EPOLL, POLLS, 0, HARD, POLLER};
	struct capture capture;
	struct why *why;

	(void)state;
	begin_program(&capture, CLIENT, SERVER);
	waits(&capture, 1010, 2, 12, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
	wait_add(&capture, &wait);
	why = ask_program(&capture);
	check_part(why, 0, "running", 220, CAPTURE_PID, "likely", "");
	check_part(why, 1, "idle", 780, 0, "likely",
		   "no goroutine can run, until a timer of Go's runtime (time.Sleep, a ticker, a "
		   "timeout) ends");
	done(&capture, why);
}

/* A goroutine is blocked in a system call from 1200 to 1700, and the poller in vain. */
static void test_a_device_comes_before_idle_threads(void **state)
{
	static const struct wait polls[] = {
		{1010, 1500, NR_EPOLL_WAIT, EPOLL, POLLS, 0, HARD, 0},
		{1510, 1980, NR_EPOLL_WAIT, EPOLL, POLLS, 0, HARD, 0},
	};
	struct capture capture;
	struct why *why;

	(void)state;
	begin_program(&capture, CLIENT, SERVER);
	waits(&capture, 1200, 2, 12, 0, D, NR_FSYNC, 3, 0, 0);
	wait_add(&capture, &polls[0]);
	waits(&capture, polls[1].from_ts, 1, 11, 0, S, NR_EPOLL_WAIT, EPOLL, FUTEX_MUTEX, 0);
	gets(&capture, 1700, 2, 0, 12, 0, 1700, HARD);
	waits(&capture, 1710, 2, 12, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
	why = ask_program(&capture);
	check_part(why, 0, "disk-write", 490, CAPTURE_PID, "likely", "");
	done(&capture, why);
}

/* Another process waits for the answer of the program. Thread 11 sends it, which was in the poller
 * until a timer of the runtime expired. A goroutine is in a system call from 1200 to 1700. */
static void test_who_waits_for_a_program_waits_for_its_device(void **state)
{
	const struct wait wait = {1010, 1980, NR_EPOLL_WAIT, EPOLL, POLLS, 0, HARD, POLLER};
	struct capture capture;
	struct why *why;

	(void)state;
	begin_program(&capture, SERVER, CLIENT);
	waits(&capture, 1005, 3, 13, 0, S, NR_RECVFROM, 5, 0, 0);
	wait_add(&capture, &wait);
	waits(&capture, 1200, 2, 12, 0, D, NR_FSYNC, 3, 0, 0);
	gets(&capture, 1700, 2, 0, 12, 0, 1700, HARD);
	waits(&capture, 1710, 2, 12, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
	gets(&capture, 1985, 3, 0, 13, 11, 1985, 0);
	why = ask(&capture, 2000,
		  &(struct why_query){.tid = 13, .from_ts = 1000, .to_ts = 2000, .names = &names});
	check_part(why, 0, "disk-write", 500, CAPTURE_PID, "likely", "");
	check_step(why, 0, 1, 11, WAFFLE_THREAD_BLOCKED, 1200, 1700);
	check_step(why, 0, 2, 12, WAFFLE_THREAD_BLOCKED, 1200, 1700);
	done(&capture, why);
}

enum { CLIENTS_END = OTHER_END, SECOND_END = POLLER + 1 };

/* A broker: thread 13 waits for a message through the program. Thread 14 is another client, which
 * sleeps until 1400 and sends something that wakes the program. Thread 15 runs until it sends what
 * 13 waits for; or 14 has sent that. */
static void test_another_clients_message_is_no_end_unless_it_is_the_last(void **state)
{
	static const struct wait polls[] = {
		{1010, 1400, NR_EPOLL_WAIT, EPOLL, POLLS, 14, 0, SECOND_END},
		{1410, 1980, NR_EPOLL_WAIT, EPOLL, POLLS, 15, 0, SECOND_END},
	};
	const char *text = "socket:[701] (tcp " SERVER " <-> 127.0.0.1:40001)";

	(void)state;
	for (unsigned last = 0; last < 2; last++) {
		struct capture capture;
		struct why *why;

		begin_program(&capture, SERVER, CLIENT);
		connection(&capture, SERVER, "127.0.0.1:40001");
		named(&capture, 14, OTHER_PID, "other");
		named(&capture, 15, 78, "worker");
		gets(&capture, 1003, 6, 0, 15, 0, 0, 0);
		waits(&capture, 1004, 5, 14, 0, S, NR_NANOSLEEP, 0, 0, 0);
		waits(&capture, 1005, 3, 13, 0, S, NR_RECVFROM, 5, 0, 0);
		gets(&capture, 1390, 5, 0, 14, 14, 1390, HARD);
		wait_add(&capture, &polls[0]);
		if (!last)
			wait_add(&capture, &polls[1]);
		gets(&capture, 1985, 3, 0, 13, 11, 1985, 0);
		wait_details(&capture, 1005, 1985, 13, CLIENTS_END, 0, 0);
		why = ask(&capture, 2000,
			  &(struct why_query){
				  .tid = 13, .from_ts = 1000, .to_ts = 2000, .names = &names});
		if (last)
			check_part(why, 1, "sleep", 380, 14, "likely", "");
		else
			check_part(why, 0, "user-work", 970 - 10, 15, "likely", text);
		done(&capture, why);
	}
}

/* The thread on which the span began has nothing to run until another one has got the answer. The
 * other end must be known as the server: by its port, or since another connection leads there. */
static void test_in_a_span_the_last_answer_of_a_server_counts(void **state)
{
	static const struct {
		const char *remote, *other;
		bool known;
	} rows[] = {{SERVER, NULL, true}, {MAYBE, NULL, false}, {MAYBE, "127.0.0.1:40001", true}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		struct why *why;

		begin_program(&capture, CLIENT, rows[i].remote);
		if (rows[i].other)
			connection(&capture, rows[i].other, rows[i].remote);
		capture_span(&capture, 1010, 11, 1);
		waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, PARK + 8, FUTEX_MUTEX, 0);
		exchange(&capture, NR_EPOLL_WAIT);
		gets(&capture, 1980, 2, 0, 12, 13, 1980, 0);
		wait_details_of(&capture, 1110, 1980, 12, POLLS, OWN_END);
		gets(&capture, 1982, 1, 0, 11, 12, 1982, 0);
		wait_details_of(&capture, 1020, 1982, 11, PARKED, 0);
		capture_end(&capture, 1990, 11, 1);
		why = ask(&capture, 2000, &(struct why_query){.name = "step", .names = &names});
		check_part(why, 0, "sleep", 780, 13, "likely", "");
		assert_int_equal(why->steps.data[part_of(why, 0)->step].answer, rows[i].known);
		done(&capture, why);
	}
}

static void longest_see(const struct why *why, const struct why_instance *instance,
			const struct why_long *of, void *arg)
{
	const struct why_part *most = &why->parts.data[instance->part];

	if (of->span == MODEL_NONE)
		return;
	for (uint32_t i = 1; i < instance->part_count; i++)
		if (why->parts.data[instance->part + i].ns > most->ns)
			most = &why->parts.data[instance->part + i];
	assert_string_equal(why_causes[most->cause].name, "sleep");
	assert_int_equal(why->model->threads.data[most->thread].tid, 13);
	++*(unsigned *)arg;
}

/* A timer wakes the program while another process still works on its request. */
static void test_the_longest_spans_have_answers_too(void **state)
{
	const struct why_query query = {.names = &names};
	struct capture capture;
	struct error err = ERROR_INIT;
	uint64_t left_out = 0;
	unsigned seen = 0;
	struct why *why;

	(void)state;
	begin_program(&capture, CLIENT, SERVER);
	capture_span(&capture, 1010, 11, 1);
	waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, PARK + 8, FUTEX_MUTEX, 0);
	exchange(&capture, NR_EPOLL_WAIT);
	waits(&capture, 1910, 3, 13, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(&capture, 900000, 2, 0, 12, 0, 900000, HARD);
	wait_details_of(&capture, 1110, 900000, 12, POLLS, 0);
	waits(&capture, 900010, 2, 12, 0, S, NR_EPOLL_WAIT, EPOLL, 0, 0);
	gets(&capture, 1100000, 3, 0, 13, 13, 1100000, HARD);
	gets(&capture, 1180000, 2, 0, 12, 13, 1180000, 0);
	wait_details_of(&capture, 900010, 1180000, 12, POLLS, OWN_END);
	gets(&capture, 1182000, 1, 0, 11, 12, 1182000, 0);
	wait_details_of(&capture, 1020, 1182000, 11, PARKED, 0);
	capture_end(&capture, 1190000, 11, 1);
	capture_load(&capture, 1200000);
	capture_must(why_longest(&why, capture.model, &query, longest_see, &seen, &left_out, &err),
		     err);
	assert_int_equal(seen, 1);
	done(&capture, why);
}

/* Thread 14, the last one, runs from 1020 on. 300 others have no state, or are blocked. */
static void test_only_threads_of_the_time_count_and_more_than_the_limit_are_unknown(void **state)
{
	(void)state;
	for (unsigned blocked = 0; blocked < 2; blocked++) {
		struct capture capture;
		struct why *why;

		begin_program(&capture, CLIENT, SERVER);
		for (uint32_t tid = 100; tid < 400; tid++) {
			struct waffle_rec_switch out = {.rec = {1004, tid, WAFFLE_REC_SWITCH, 5},
							.prev_state = S,
							.flags = WAFFLE_SWITCH_PREV_TRACED,
							.syscall = NR_FUTEX,
							.args = {PARK, FUTEX_MUTEX}};

			named_as(&capture, tid, CAPTURE_PID, "go", WAFFLE_TASK_TRACED_FLAG);
			if (blocked)
				capture_add(&capture, &out);
		}
		named(&capture, 14, CAPTURE_PID, "go");
		waits(&capture, 1010, 1, 11, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
		waits(&capture, 1010, 2, 12, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
		gets(&capture, 1020, 6, 0, 14, 11, 1020, 0);
		why = ask_program(&capture);
		if (blocked)
			assert_int_equal(part_of(why, 0)->grade, WHY_GRADE_UNKNOWN);
		else
			check_part(why, 0, "running", 990, CAPTURE_PID, "likely", "");
		done(&capture, why);
	}
}

/* The span's thread parks again and again. Then comes an answer, and another thread of the program
 * blocks again and again until the span ends. */
static uint64_t parks_and_switches(uint32_t count, bool program)
{
	struct capture capture;
	uint64_t ts = 1020, asked, searched;
	struct why *why;

	begin_program(&capture, CLIENT, SERVER);
	capture_span(&capture, 1010, 11, 1);
	for (uint32_t i = 0; i < count; i++, ts += 20) {
		waits(&capture, ts, 1, 11, 0, S, NR_FUTEX, PARK, FUTEX_MUTEX, 0);
		gets(&capture, ts + 10, 1, 0, 11, 12, ts + 10, 0);
		wait_details_of(&capture, ts, ts + 10, 11, PARKED, 0);
	}
	waits(&capture, ts, 3, 13, 0, S, NR_RECVFROM, 5, 0, 0);
	asked = ts + 10;
	gets(&capture, asked, 3, 0, 13, 12, asked, 0);
	wait_details_of(&capture, ts, asked, 13, 0, OTHER_END);
	waits(&capture, asked + 10, 2, 12, 0, S, NR_EPOLL_WAIT, EPOLL, 0, 0);
	gets(&capture, asked + 20, 2, 0, 12, 13, asked + 20, 0);
	wait_details_of(&capture, asked + 10, asked + 20, 12, POLLS, OWN_END);
	ts = asked + 30;
	for (uint32_t i = 0; i < count; i++, ts += 5000) {
		waits(&capture, ts, 2, 12, 0, S, NR_FUTEX, PARK + 8, FUTEX_MUTEX, 0);
		gets(&capture, ts + 10, 2, 0, 12, 11, ts + 10, 0);
	}
	capture_end(&capture, ts, 11, 1);
	why = ask(&capture, ts + 10,
		  &(struct why_query){.name = program ? NULL : "step",
				      .program = program ? CAPTURE_PID : 0,
				      .from_ts = program ? 1000 : 0,
				      .to_ts = program ? ts : 0,
				      .names = &names});
	searched = why->searched;
	done(&capture, why);
	return searched;
}

/* Four times as much of anything takes about four times as many steps of a search, and less than
 * half of those of a quadratic one. */
static void test_stretches_do_not_each_search_the_switches_after_an_answer(void **state)
{
	(void)state;
	for (unsigned program = 0; program < 2; program++) {
		uint64_t few = parks_and_switches(250, program);
		uint64_t many = parks_and_switches(1000, program);

		assert_in_range(many, few, 8 * few);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_without_work_is_idle_with_what_wakes_it),
		cmocka_unit_test(test_what_a_goroutine_waits_for_is_not_idle),
		cmocka_unit_test(test_a_wait_without_a_stack_is_as_others_for_the_same_thing),
		cmocka_unit_test(test_idle_stands_behind_work_unless_that_is_little),
		cmocka_unit_test(test_in_a_span_the_chain_goes_on),
		cmocka_unit_test(
			test_the_program_is_explained_unless_one_of_its_threads_has_a_name),
		cmocka_unit_test(test_a_program_waits_for_the_answer_of_another_process),
		cmocka_unit_test(test_a_request_that_wakes_nobody_came_after_the_last_answer),
		cmocka_unit_test(test_what_may_be_the_next_request_is_no_answer),
		cmocka_unit_test(test_a_server_without_requests_is_idle),
		cmocka_unit_test(
			test_only_threads_of_the_time_count_and_more_than_the_limit_are_unknown),
		cmocka_unit_test(test_a_program_without_work_names_what_ends_that),
		cmocka_unit_test(test_a_program_that_works_as_well_is_idle_in_between),
		cmocka_unit_test(test_a_device_comes_before_idle_threads),
		cmocka_unit_test(test_who_waits_for_a_program_waits_for_its_device),
		cmocka_unit_test(test_another_clients_message_is_no_end_unless_it_is_the_last),
		cmocka_unit_test(test_in_a_span_the_last_answer_of_a_server_counts),
		cmocka_unit_test(test_the_longest_spans_have_answers_too),
		cmocka_unit_test(test_stretches_do_not_each_search_the_switches_after_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
