// SPDX-License-Identifier: Apache-2.0
/* Which threads why_waiters_find() lists, and for how much of their time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/why/why_waiters.h"
#include "fake_names.h"
#include "why_capture.h"

#define US 1000ull
#define MS 1000000ull

/* Thread 12 runs all the time, and is the one that is explained. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	named(capture, 12, 10, "holder");
	gets(capture, 2 * US, 2, 0, 12, 0, 0, 0);
}

/* The thread runs from 2 us on, and waits from `ts` on, until `waker` wakes it after `ns`. */
static void waits_for(struct capture *capture, uint32_t tid, const char *name, uint64_t ts,
		      uint64_t ns, uint32_t waker)
{
	uint16_t cpu = (uint16_t)tid;

	named(capture, tid, 10, name);
	gets(capture, 2 * US + tid, cpu, 0, tid, 0, 0, 0);
	waits(capture, ts, cpu, tid, 0, S, NR_READ, 3, 0, 0);
	gets(capture, ts + ns, cpu, 0, tid, waker, ts + ns, 0);
}

static void find(struct why_waiters *waiters, struct capture *capture, uint64_t end_ts)
{
	struct why_query query = {.tid = 12};
	struct error err = ERROR_INIT;

	capture_load(capture, end_ts);
	query.from_ts = capture->model->start_ts;
	query.to_ts = capture->model->end_ts;
	capture_must(why_waiters_find(waiters, capture->model, &query, &err), err);
}

static void check(const struct why_waiters *waiters, size_t number, uint32_t tid, uint64_t ns)
{
	const struct why_waiter *waiter = &waiters->list.data[number];
	const struct why_instance *instance = &waiters->why->instances.data[waiter->instance];
	const struct why_part *part = &waiters->why->parts.data[instance->part + waiter->part];

	assert_int_equal(waiters->why->model->threads.data[instance->thread].tid, tid);
	assert_int_equal(waiters->why->model->threads.data[part->thread].tid, 12);
	assert_int_equal(waiter->ns, ns);
}

/* How many wait, if the main thread 10 waits in the call for a file of that name, which is also
 * ready, until thread 12 wakes it. The process listens at socket 9, and may be a client itself. */
static size_t waiting_beside(int syscall, const char *name, const char *detail, bool asks)
{
	const struct store_object client = {.pid = CAPTURE_PID,
					    .ino = 8,
					    .name = "socket:[8]",
					    .detail = "tcp 127.0.0.1:50000 <-> 127.0.0.1:81"};
	const struct store_object listener = {
		.pid = CAPTURE_PID, .ino = 9, .name = "socket:[9]", .detail = "tcp 127.0.0.1:80"};
	struct error err = ERROR_INIT;
	struct capture capture = {0};
	struct why_waiters waiters;
	size_t count;

	begin(&capture);
	object(&capture, name, detail);
	capture_must(store_writer_add_object(capture.writer, &listener, &err), err);
	if (asks)
		capture_must(store_writer_add_object(capture.writer, &client, &err), err);
	named(&capture, 10, 10, "main");
	gets(&capture, 2 * US + 10, 3, 0, 10, 0, 0, 0);
	waits(&capture, 1 * MS, 3, 10, 0, S, syscall, 3, 2, 0);
	gets(&capture, 7 * MS, 3, 0, 10, 12, 7 * MS, 0);
	wait_details(&capture, 1 * MS, 7 * MS, 10, 1, 0, 0);
	find(&waiters, &capture, 10 * MS);
	count = waiters.list.len;
	why_waiters_free(&waiters);
	capture_free(&capture);
	return count;
}

static size_t waiting_in(int syscall, const char *name, const char *detail)
{
	return waiting_beside(syscall, name, detail, false);
}

/* A server waits for whoever asks it next, a client for the answer. An event loop that both listens
 * and asks may wait for an answer. */
static void test_servers_that_wait_for_a_request_are_not_listed(void **state)
{
	const char *socket = "socket:[7]";

	(void)state;
	assert_int_equal(waiting_in(NR_ACCEPT, socket, ""), 0);
	assert_int_equal(waiting_in(NR_RECVFROM, socket, "tcp 127.0.0.1:80 <-> 127.0.0.1:50000"),
			 0);
	assert_int_equal(waiting_in(NR_RECVFROM, socket, "tcp 127.0.0.1:50000 <-> 127.0.0.1:80"),
			 1);
	assert_int_equal(waiting_in(NR_SENDTO, socket, "tcp 127.0.0.1:80 <-> 127.0.0.1:50000"), 1);
	assert_int_equal(waiting_in(NR_RECVFROM, socket, "udp 127.0.0.1:53"), 0);
	assert_int_equal(waiting_in(NR_RECVFROM, socket, "udp 0.0.0.0:41000"), 1);
	assert_int_equal(waiting_in(NR_RECVFROM, socket, "unix /run/log"), 0);
	assert_int_equal(waiting_in(NR_RECVFROM, socket, "unix"), 1);
	assert_int_equal(waiting_in(NR_EPOLL_WAIT, socket, "tcp 127.0.0.1:80"), 0);
	assert_int_equal(waiting_in(NR_POLL,
				    "2 descriptors: pipe:[4], tcp 127.0.0.1:80 <-> 127.0.0.1:50000",
				    ""),
			 1);
	assert_int_equal(waiting_in(NR_POLL, "2 descriptors: pipe:[4], tcp 127.0.0.1:80", ""), 0);
	assert_int_equal(
		waiting_in(NR_EPOLL_WAIT, "anon_inode:[eventpoll]", "pipe:[4], socket:[5]"), 1);
	assert_int_equal(
		waiting_in(NR_EPOLL_WAIT, "anon_inode:[eventpoll]", "pipe:[4], socket:[9]"), 0);
	assert_int_equal(waiting_beside(NR_EPOLL_WAIT, "anon_inode:[eventpoll]",
					"socket:[8], socket:[9]", true),
			 1);
}

/* A worker waits for the main thread of a server. If that waits for any client, until it has
 * accepted the explained one, the worker only has nothing to do. If it waits for the next request
 * of one client, it may hold what the worker wants. */
static void test_workers_of_a_server_that_waits_for_any_client_are_not_listed(void **state)
{
	static const struct {
		int syscall;
		const char *socket;
		size_t listed;
	} rows[] = {{NR_ACCEPT, "tcp 127.0.0.1:80", 0},
		    {NR_RECVFROM, "tcp 127.0.0.1:80 <-> 127.0.0.1:50000", 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture = {0};
		struct why_waiters waiters;

		begin(&capture);
		object(&capture, "socket:[7]", rows[i].socket);
		named(&capture, 20, 20, "main");
		named(&capture, 21, 20, "worker");
		gets(&capture, 3 * US, 3, 0, 20, 0, 0, 0);
		gets(&capture, 4 * US, 4, 0, 21, 0, 0, 0);
		waits(&capture, 1 * MS, 3, 20, 0, S, rows[i].syscall, 3, 0, 0);
		waits(&capture, 1 * MS + 1, 4, 21, 0, S, NR_FUTEX, 0x7000, FUTEX_COND, 0);
		gets(&capture, 6 * MS, 3, 0, 20, 12, 6 * MS, 0);
		wait_details(&capture, 1 * MS, 6 * MS, 20, 1, 0, 0);
		gets(&capture, 6 * MS + 1, 4, 0, 21, 20, 6 * MS + 1, 0);
		find(&waiters, &capture, 10 * MS);
		assert_int_equal(waiters.list.len, rows[i].listed);
		why_waiters_free(&waiters);
		capture_free(&capture);
	}
}

/* Timeouts of its own end most waits of a thread for signals. */
static void test_a_thread_that_waits_for_signals_with_a_timeout_is_not_listed(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	kernel_stack(&capture, 0xffff8000, "hrtimer_wakeup");
	object(&capture, "anon_inode:[signalfd]", "");
	named(&capture, 10, 10, "writer");
	gets(&capture, 2 * US + 10, 3, 0, 10, 0, 0, 0);
	for (unsigned i = 1; i < 8; i += 2) {
		bool last = i == 7;

		waits(&capture, i * MS, 3, 10, 0, S, NR_EPOLL_WAIT, 3, 0, 0);
		gets(&capture, (i + 2) * MS - 10 * US, 3, 0, 10, last ? 12 : 0,
		     (i + 2) * MS - 10 * US, last ? 0 : HARD);
		wait_details(&capture, i * MS, (i + 2) * MS - 10 * US, 10, 1, 0, 0);
		if (!last)
			wake_details(&capture, (i + 2) * MS - 10 * US, 0, 10, 1, HARD);
	}
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 0);
	why_waiters_free(&waiters);
	capture_free(&capture);
}

static uint32_t lock_function(void *arg, uint32_t stack, uint64_t ts, const char **functions,
			      uint32_t max)
{
	(void)ts;
	functions[0] = arg;
	return stack && max;
}

/* How many wait, if a process with this title waits for signals until thread 12 sends one; with
 * a lock, because it waits for that. */
static size_t waiting_with_title(const char *title, bool lock)
{
	const struct store_process process = {20, 1, CAPTURE_START, title};
	const struct store_stack stack = {
		.pid = 20, .addresses = &(uint64_t){0x400000}, .count = 1};
	struct stack_names names = {.arg = "LWLockAcquire", .functions = lock_function};
	struct why_query query = {.tid = 12, .names = lock ? &names : NULL};
	struct error err = ERROR_INIT;
	struct capture capture = {0};
	struct why_waiters waiters;
	size_t count;

	begin(&capture);
	capture_must(store_writer_add_process(capture.writer, &process, &err), err);
	capture_must(store_writer_add_stack(capture.writer, &stack, &err), err);
	named(&capture, 20, 20, "postgres");
	gets(&capture, 2 * US, 3, 0, 20, 0, 0, 0);
	waits(&capture, 1 * MS, 3, 20, 0, S, NR_EPOLL_WAIT, 3, 0, 0);
	gets(&capture, 6 * MS, 3, 0, 20, 12, 6 * MS, 0);
	capture_add(&capture, &(struct waffle_rec_wait){.rec = {6 * MS, 20, WAFFLE_REC_WAIT, 0},
							.from_ts = 1 * MS,
							.user_stack = 1});
	capture_load(&capture, 10 * MS);
	query.from_ts = capture.model->start_ts;
	query.to_ts = capture.model->end_ts;
	capture_must(why_waiters_find(&waiters, capture.model, &query, &err), err);
	count = waiters.list.len;
	why_waiters_free(&waiters);
	capture_free(&capture);
	return count;
}

/* A session of any user and database may wait for another one. */
static void test_background_processes_of_postgresql_are_not_listed(void **state)
{
	(void)state;
	assert_int_equal(waiting_with_title("postgres: walwriter ", false), 0);
	assert_int_equal(waiting_with_title("postgres: main: checkpointer ", false), 0);
	assert_int_equal(waiting_with_title("postgres: archiver last was 0001", false), 0);
	assert_int_equal(waiting_with_title("postgres: logger shop [local] UPDATE", false), 1);
	assert_int_equal(waiting_with_title("postgres: app shop 10.0.0.1(50000) idle", false), 1);
	assert_int_equal(waiting_with_title("postgres: startup recovering 0001", false), 1);
	assert_int_equal(waiting_with_title("walwriter", false), 1);
}

static void test_a_background_process_that_waits_for_a_lock_is_listed(void **state)
{
	(void)state;
	assert_int_equal(waiting_with_title("postgres: checkpointer ", true), 1);
}

/* Threads 13 and 14 have the name of the explained one. Only of 13, a function shows a lock, and
 * only after many short waits without a stack. */
static void test_a_sibling_that_waits_for_a_lock_of_the_program_is_listed(void **state)
{
	const struct store_stack stack = {
		.pid = 10, .addresses = &(uint64_t){0x400000}, .count = 1};
	struct stack_names names = {.arg = "MDL_wait::timed_wait(", .functions = lock_function};
	struct why_query query = {.tid = 12, .names = &names};
	struct error err = ERROR_INIT;
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	capture_must(store_writer_add_stack(capture.writer, &stack, &err), err);
	for (uint32_t tid = 13; tid <= 14; tid++) {
		named(&capture, tid, 10, "holder");
		gets(&capture, 2 * US + tid, (uint16_t)tid, 0, tid, 0, 0, 0);
	}
	for (uint64_t ts = 100 * US; ts < 200 * US; ts += US) {
		waits(&capture, ts, 13, 13, 0, S, NR_FUTEX, 0x7000, FUTEX_COND, 0);
		gets(&capture, ts + 500, 13, 0, 13, 0, ts + 500, HARD);
		wait_details(&capture, ts, ts + 500, 13, 0, 0, 0);
	}
	for (uint32_t tid = 13; tid <= 14; tid++)
		waits(&capture, MS, (uint16_t)tid, tid, 0, S, NR_FUTEX, 0x7000, FUTEX_COND, 0);
	for (uint32_t tid = 13; tid <= 14; tid++)
		gets(&capture, 6 * MS, (uint16_t)tid, 0, tid, 12, 6 * MS, 0);
	capture_add(&capture, &(struct waffle_rec_wait){.rec = {6 * MS, 13, WAFFLE_REC_WAIT, 0},
							.from_ts = MS,
							.user_stack = 1});
	capture_load(&capture, 10 * MS);
	query.from_ts = capture.model->start_ts;
	query.to_ts = capture.model->end_ts;
	capture_must(why_waiters_find(&waiters, capture.model, &query, &err), err);
	assert_int_equal(waiters.list.len, 1);
	check(&waiters, 0, 13, 5 * MS);
	why_waiters_free(&waiters);
	capture_free(&capture);
}

/* Thread 30 waits for 20, which waits for a lock that 12 releases. */
static void test_a_waiter_says_for_which_lock_another_one_keeps_it_waiting(void **state)
{
	const struct store_stack stack = {
		.pid = 20, .addresses = &(uint64_t){0x400000}, .count = 1};
	struct stack_names names = {.arg = "LWLockAcquire", .functions = lock_function};
	struct why_query query = {.tid = 12, .names = &names};
	struct error err = ERROR_INIT;
	struct capture capture = {0};
	struct why_waiters waiters;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	begin(&capture);
	capture_must(store_writer_add_stack(capture.writer, &stack, &err), err);
	named(&capture, 20, 20, "postgres");
	named(&capture, 30, 30, "client");
	gets(&capture, 2 * US, 3, 0, 20, 0, 0, 0);
	gets(&capture, 2 * US, 4, 0, 30, 0, 0, 0);
	waits(&capture, 1 * MS, 3, 20, 0, S, NR_EPOLL_WAIT, 3, 0, 0);
	waits(&capture, 1 * MS, 4, 30, 0, S, NR_READ, 3, 0, 0);
	gets(&capture, 6 * MS, 3, 0, 20, 12, 6 * MS, 0);
	capture_add(&capture, &(struct waffle_rec_wait){.rec = {6 * MS, 20, WAFFLE_REC_WAIT, 0},
							.from_ts = 1 * MS,
							.user_stack = 1});
	gets(&capture, 6 * MS + 10, 4, 0, 30, 20, 6 * MS + 10, 0);
	capture_load(&capture, 10 * MS);
	query.from_ts = capture.model->start_ts;
	query.to_ts = capture.model->end_ts;
	capture_must(why_waiters_find(&waiters, capture.model, &query, &err), err);
	why_print_text(waiters.why, &(struct why_view){.waiters = &waiters, .brief = true}, out);
	fclose(out);
	assert_non_null(strstr(text, "  client (30)  likely  blocked in read; 50.0 % in waits for "
				     "a lock of shared memory in PostgreSQL\n"));
	assert_non_null(strstr(text, "  postgres (20)  likely  blocked in epoll_wait: waits for "
				     "a lock of shared memory in PostgreSQL\n"));
	free(text);
	why_waiters_free(&waiters);
	capture_free(&capture);
}

static void waiters_free(struct why_waiters *waiters, struct capture *capture)
{
	why_waiters_free(waiters);
	capture_free(capture);
}

static void test_threads_that_wait_for_the_explained_one_are_listed(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	waits_for(&capture, 13, "short", 2 * MS, 2 * MS, 12);
	waits_for(&capture, 14, "long", 1 * MS, 7 * MS, 12);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 2);
	check(&waiters, 0, 13, 2 * MS); /* it ran longer */
	check(&waiters, 1, 14, 7 * MS);
	waiters_free(&waiters, &capture);
}

/* The thread sleeps from 1 ms on for `ns`. */
static void sleeps(struct capture *capture, uint32_t tid, uint32_t pid, uint64_t ns)
{
	named(capture, tid, pid, tid == pid ? "main" : "idle");
	gets(capture, 2 * US + tid, (uint16_t)tid, 0, tid, 0, 0, 0);
	waits(capture, 1 * MS, (uint16_t)tid, tid, 0, S, NR_NANOSLEEP, 0, 0, 0);
	gets(capture, 1 * MS + ns, (uint16_t)tid, 0, tid, 0, 1 * MS + ns, HARD);
}

static void test_threads_of_its_process_that_sleep_are_listed_apart(void **state)
{
	struct capture capture = {0};
	struct error err = ERROR_INIT;
	struct why_waiters waiters;
	struct why *why;

	(void)state;
	begin(&capture);
	sleeps(&capture, 13, 10, 8 * MS);
	sleeps(&capture, 14, 10, 4 * MS);
	sleeps(&capture, 15, 15, 8 * MS);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 0);
	assert_int_equal(waiters.resting.len, 1);
	assert_int_equal(waiters.resting.data[0].ns, 8 * MS);
	for (uint32_t tid = 13; tid <= 14; tid++) {
		capture_must(why_new(&why, capture.model,
				     &(struct why_query){.tid = tid, .to_ts = 10 * MS}, &err),
			     err);
		assert_int_equal(why_rests(why), tid == 13);
		why_free(why);
	}
	waiters_free(&waiters, &capture);
}

/* A wait that takes almost all of the time may be for any work, unless a main thread waits. */
static void test_a_thread_that_waits_once_all_the_time_is_not_listed(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	waits_for(&capture, 13, "idle", 100 * US, 9800 * US, 12);
	waits_for(&capture, 14, "waits", 100 * US, 8 * MS, 12);
	waits_for(&capture, 10, "main", 100 * US, 9800 * US, 12);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 2);
	check(&waiters, 0, 10, 9800 * US);
	check(&waiters, 1, 14, 8 * MS);
	waiters_free(&waiters, &capture);
}

/* Thread 13 has the name of one that the JVM makes for itself. */
static void find_with_names(struct why_waiters *waiters, struct capture *capture, bool has_jvm)
{
	struct stack_names names = {.has_jvm = has_jvm};
	struct why_query query = {.tid = 12, .names = &names};
	struct error err = ERROR_INIT;

	begin(capture);
	waits_for(capture, 13, "G1 Service", MS, 5 * MS, 12);
	waits_for(capture, 14, "waits", MS, 5 * MS, 12);
	capture_load(capture, 10 * MS);
	query.from_ts = capture->model->start_ts;
	query.to_ts = capture->model->end_ts;
	capture_must(why_waiters_find(waiters, capture->model, &query, &err), err);
}

static void test_threads_of_the_jvm_itself_are_not_listed(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	find_with_names(&waiters, &capture, true);
	assert_int_equal(waiters.list.len, 1);
	check(&waiters, 0, 14, 5 * MS);
	waiters_free(&waiters, &capture);
}

/* Another program may have functions of the same names. */
static void test_without_the_jvm_there_are_no_threads_of_its_runtime(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	find_with_names(&waiters, &capture, false);
	assert_int_equal(waiters.list.len, 2);
	waiters_free(&waiters, &capture);
}

static void launcher_frames(void *arg, uint32_t stack, stack_frame_fn each, void *each_arg)
{
	(void)stack;
	each(&(struct stack_frame){.function = arg}, each_arg);
}

/* The number of those that wait, if the main thread joins the explained one all the time, within
 * this function. */
static size_t joining_within(char *function)
{
	struct stack_names names = {.arg = function, .frames = launcher_frames, .has_jvm = true};
	struct waffle_rec_open_wait open = {.rec = {10 * MS, 10, WAFFLE_REC_OPEN_WAIT, 0},
					    .lock = 0x7000,
					    .user_stack = 1,
					    .owner_tid = 12,
					    .flags = WAFFLE_OPEN_WAIT_JOIN};
	struct store_stack stack = {.pid = 10, .addresses = &(uint64_t){0x400000}, .count = 1};
	struct why_query query = {.tid = 12, .names = &names};
	struct error err = ERROR_INIT;
	struct capture capture = {0};
	struct why_waiters waiters;
	size_t count;

	begin(&capture);
	named(&capture, 10, 10, "java");
	capture_must(store_writer_add_stack(capture.writer, &stack, &err), err);
	for (int at_end = 0; at_end < 2; at_end++)
		capture_add(&capture,
			    &(struct waffle_rec_state){.rec = {at_end ? 10 * MS : CAPTURE_START, 10,
							       WAFFLE_REC_STATE, 0},
						       .tgid = 10,
						       .state = WAFFLE_THREAD_BLOCKED,
						       .task_state = S,
						       .syscall = NR_FUTEX,
						       .args = {0x7000},
						       .at_end = (uint8_t)at_end});
	capture_add(&capture, &open);
	capture_load(&capture, 10 * MS);
	query.from_ts = capture.model->start_ts;
	query.to_ts = capture.model->end_ts;
	capture_must(why_waiters_find(&waiters, capture.model, &query, &err), err);
	count = waiters.list.len;
	waiters_free(&waiters, &capture);
	return count;
}

/* The program java only waits for the thread in which it runs main(). */
static void test_the_launcher_of_the_jvm_is_not_listed(void **state)
{
	char launcher[] = "JLI_Launch", other[] = "run";

	(void)state;
	assert_int_equal(joining_within(other), 1);
	assert_int_equal(joining_within(launcher), 0);
}

/* Two threads share a CPU: the one that runs more keeps the other one from running. */
static void test_a_thread_that_is_runnable_behind_the_explained_one_is_listed(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	named(&capture, 10, 10, "main");
	gets(&capture, 6 * MS, 2, 12, 10, 0, 0, 0);
	gets(&capture, 7 * MS, 2, 10, 12, 0, 0, 0);
	gets(&capture, 9 * MS, 2, 12, 10, 0, 0, 0);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 1);
	check(&waiters, 0, 10, 2 * MS);
	waiters_free(&waiters, &capture);
}

static void test_little_time_and_other_culprits_are_not_listed(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	waits_for(&capture, 13, "little", 2 * MS, MS - 100 * US, 12);
	waits_for(&capture, 14, "asleep", 1 * MS, 7 * MS, 13);
	waits_for(&capture, 15, "device", 1 * MS, 7 * MS, 0);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 0);
	waiters_free(&waiters, &capture);
}

static void test_threads_of_one_name_are_listed_once_and_at_most_three_names(void **state)
{
	static const char *const names[] = {"pool", "pool", "pool", "a", "b", "c"};
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < 6; i++)
		waits_for(&capture, 13 + i, names[i], MS, 8 * MS - i * US, 12);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 3);
	check(&waiters, 0, 18, 8 * MS - 5 * US);
	check(&waiters, 1, 17, 8 * MS - 4 * US);
	check(&waiters, 2, 16, 8 * MS - 3 * US);
	waiters_free(&waiters, &capture);
}

/* The threads of a pool differ in a number, and may wait in different system calls. */
static void test_threads_of_a_pool_share_a_line_that_counts_them(void **state)
{
	static const char *const names[] = {"user-1", "user-2", "user-3", "user-14"};
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	for (uint32_t tid = 13; tid < 17; tid++) {
		named(&capture, tid, 20, names[tid - 13]);
		gets(&capture, 2 * US + tid, (uint16_t)tid, 0, tid, 0, 0, 0);
		waits(&capture, MS + 100 * tid, (uint16_t)tid, tid, 0, S,
		      tid == 14 ? NR_CONNECT : NR_RECVFROM, 3, 0, 0);
		gets(&capture, 6 * MS, (uint16_t)tid, 0, tid, 12, 6 * MS, 0);
	}
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 2);
	check(&waiters, 0, 16, 5 * MS - 1600);
	assert_int_equal(waiters.list.data[0].more, 2);
	check(&waiters, 1, 14, 5 * MS - 1400);
	assert_int_equal(waiters.list.data[1].more, 0);
	assert_false(waiters.cut);
	waiters_free(&waiters, &capture);
}

static void
test_of_siblings_with_the_name_of_the_explained_one_only_the_main_thread_is_listed(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	waits_for(&capture, 10, "holder", MS, 5 * MS, 12);
	waits_for(&capture, 13, "holder", MS, 7 * MS, 12);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 1);
	check(&waiters, 0, 10, 5 * MS);
	waiters_free(&waiters, &capture);
}

/* Before idle time stands what delays, also if it is shorter than the wait for a CPU behind it. */
static void test_the_largest_part_is_shown_also_if_it_is_not_the_first(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;
	const struct why_instance *instance;
	const struct why_part *parts;

	(void)state;
	begin(&capture);
	kernel_stack(&capture, 0xffff8000, "hrtimer_wakeup");
	named(&capture, 13, 10, "loop");
	gets(&capture, 3 * US, 3, 0, 13, 0, 0, 0);
	waits(&capture, 1 * MS, 3, 13, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
	gets(&capture, 6 * MS, 3, 0, 13, 0, 6 * MS, HARD);
	wake_details(&capture, 6 * MS, 0, 13, 1, HARD);
	waits(&capture, 6 * MS + 1, 3, 13, 0, S, NR_READ, 3, 0, 0);
	gets(&capture, 9 * MS, 2, 12, 13, 12, 7 * MS, 0);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 1);
	check(&waiters, 0, 13, 3 * MS - 1);
	instance = &waiters.why->instances.data[0];
	parts = &waiters.why->parts.data[instance->part];
	assert_int_equal(parts[waiters.list.data[0].part].cause, WHY_CPU_CONTENTION);
	assert_true(parts[waiters.list.data[0].part].ns == 2 * MS);
	assert_true(waiters.list.data[0].part > 0);
	waiters_free(&waiters, &capture);
}

/* The explained thread keeps what another one wants, and waits itself for a third. That one is the
 * culprit, but the explained thread is waited for. */
static void test_who_waits_for_the_explained_thread_is_listed_whoever_that_waits_for(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;
	const struct why_waiter *waiter;
	const struct why_part *part;

	(void)state;
	begin(&capture);
	named(&capture, 13, 10, "client");
	named(&capture, 14, 10, "server");
	gets(&capture, 3 * US, 3, 0, 13, 0, 0, 0);
	gets(&capture, 4 * US, 4, 0, 14, 0, 0, 0);
	waits(&capture, 1 * MS, 3, 13, 0, S, NR_READ, 3, 0, 0);
	waits(&capture, 1 * MS + 1, 2, 12, 0, S, NR_READ, 4, 0, 0);
	gets(&capture, 6 * MS, 2, 0, 12, 14, 6 * MS, 0);
	gets(&capture, 8 * MS, 3, 0, 13, 12, 8 * MS, 0);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 1);
	waiter = &waiters.list.data[0];
	assert_int_equal(waiter->ns, 7 * MS);
	part = &waiters.why->parts
			.data[waiters.why->instances.data[waiter->instance].part + waiter->part];
	assert_int_equal(waiters.why->model->threads.data[part->thread].tid, 14);
	waiters_free(&waiters, &capture);
}

static void test_one_thread_has_nobody_that_waits(void **state)
{
	struct capture capture = {0};
	struct why_waiters waiters;

	(void)state;
	begin(&capture);
	find(&waiters, &capture, 10 * MS);
	assert_int_equal(waiters.list.len, 0);
	waiters_free(&waiters, &capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_that_wait_for_the_explained_one_are_listed),
		cmocka_unit_test(test_threads_of_its_process_that_sleep_are_listed_apart),
		cmocka_unit_test(test_a_thread_that_waits_once_all_the_time_is_not_listed),
		cmocka_unit_test(test_threads_of_the_jvm_itself_are_not_listed),
		cmocka_unit_test(test_without_the_jvm_there_are_no_threads_of_its_runtime),
		cmocka_unit_test(test_the_launcher_of_the_jvm_is_not_listed),
		cmocka_unit_test(test_a_thread_that_is_runnable_behind_the_explained_one_is_listed),
		cmocka_unit_test(test_little_time_and_other_culprits_are_not_listed),
		cmocka_unit_test(test_threads_of_one_name_are_listed_once_and_at_most_three_names),
		cmocka_unit_test(
			test_of_siblings_with_the_name_of_the_explained_one_only_the_main_thread_is_listed),
		cmocka_unit_test(test_the_largest_part_is_shown_also_if_it_is_not_the_first),
		cmocka_unit_test(
			test_who_waits_for_the_explained_thread_is_listed_whoever_that_waits_for),
		cmocka_unit_test(test_servers_that_wait_for_a_request_are_not_listed),
		cmocka_unit_test(test_workers_of_a_server_that_waits_for_any_client_are_not_listed),
		cmocka_unit_test(test_a_thread_that_waits_for_signals_with_a_timeout_is_not_listed),
		cmocka_unit_test(test_background_processes_of_postgresql_are_not_listed),
		cmocka_unit_test(test_a_background_process_that_waits_for_a_lock_is_listed),
		cmocka_unit_test(test_a_sibling_that_waits_for_a_lock_of_the_program_is_listed),
		cmocka_unit_test(test_a_waiter_says_for_which_lock_another_one_keeps_it_waiting),
		cmocka_unit_test(test_one_thread_has_nobody_that_waits),
		cmocka_unit_test(test_threads_of_a_pool_share_a_line_that_counts_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
