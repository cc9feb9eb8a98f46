// SPDX-License-Identifier: Apache-2.0
/* A capture is untrusted. The work of `why` must not grow with the square of its size: four times
 * as much of anything takes about four times as many steps of a search. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake_names.h"
#include "why_capture.h"

#define TIMES 4
#define FEW 500
/* Twice the steps of a linear search, and half of those of a quadratic one. */
#define GROWTH_MAX (2 * TIMES)
#define US 1000ull

/* Thread 11 begins a span. Threads 12 and 13 have CPUs of their own. */
static uint64_t begin(struct capture *capture)
{
	capture_begin(capture, true);
	named(capture, 12, 10, "other");
	named(capture, 13, 10, "doer");
	gets(capture, 2 * US, 1, 0, 11, 0, 0, 0);
	gets(capture, 2 * US + 1, 2, 0, 12, 0, 0, 0);
	gets(capture, 2 * US + 2, 3, 0, 13, 0, 0, 0);
	capture_span(capture, 3 * US, 11, 1);
	return 4 * US;
}

/* Thread 11 waits from ts on, for 100 us. */
static uint64_t wait_of(struct capture *capture, uint64_t ts, int syscall, uint64_t a, uint64_t b,
			uint64_t c, unsigned flags)
{
	waits(capture, ts, 1, 11, 0, S, syscall, a, b, c);
	gets(capture, ts + 100 * US, 1, 0, 11, 13, ts + 100 * US, flags);
	return ts + 100 * US + 10;
}

static uint64_t end(struct capture *capture, uint64_t ts)
{
	struct why *why;
	uint64_t searched;

	capture_end(capture, ts, 11, 1);
	why = ask_span(capture, ts + US);
	searched = why->searched;
	done(capture, why);
	return searched;
}

static uint64_t steps_of(struct capture *capture, uint64_t end_ts, const struct why_query *query)
{
	struct why *why = ask(capture, end_ts, query);
	uint64_t searched = why->searched;

	done(capture, why);
	return searched;
}

/* The steps to explain all spans. */
static uint64_t all_spans(struct capture *capture, uint64_t end_ts)
{
	return steps_of(capture, end_ts,
			&(struct why_query){.name = "step", .slowest = UINT32_MAX});
}

static void check_growth(uint64_t (*work)(uint32_t count))
{
	uint64_t few = work(FEW), many = work(FEW * TIMES);

	assert_true(few > 0);
	if (many > GROWTH_MAX * few)
		fail_msg("%u take %llu steps, %u take %llu", FEW, (unsigned long long)few,
			 FEW * TIMES, (unsigned long long)many);
}

/* Each time it is woken, it waits for the mutex and then for the condition again. */
static uint64_t condition_with_mutex(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++) {
		ts = wait_of(&capture, ts, NR_FUTEX, 0x7f00, FUTEX_COND, 0, 0);
		ts = wait_of(&capture, ts, NR_FUTEX, 0x8f00, FUTEX_MUTEX, 2, 0);
	}
	return end(&capture, ts);
}

static void test_a_condition_whose_mutex_is_contended(void **state)
{
	(void)state;
	check_growth(condition_with_mutex);
}

/* A frozen thread is uninterruptible (D) in its call. */
static uint64_t frozen_again_and_again(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++) {
		ts = wait_of(&capture, ts, NR_READ, 3, 0, 0, 0);
		waits(&capture, ts, 1, 11, 0, D, NR_READ, 3, 0, 0);
		gets(&capture, ts + 100 * US, 1, 0, 11, 13, ts + 100 * US, 0);
		ts += 100 * US + 10;
	}
	return end(&capture, ts);
}

static void test_a_wait_in_which_the_thread_is_frozen(void **state)
{
	(void)state;
	check_growth(frozen_again_and_again);
}

/* Thread 13 is preempted all the time and never waits. Each wait of thread 11 is for another file.
 */
static uint64_t waker_that_never_waits(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++) {
		gets(&capture, ts, 3, 13, 100, 0, 0, 0);
		gets(&capture, ts + US, 3, 100, 13, 0, 0, 0);
		ts = wait_of(&capture, ts + 2 * US, NR_READ, 3 + i, 0, 0, 0);
	}
	return end(&capture, ts);
}

static void test_a_waker_that_never_waits(void **state)
{
	(void)state;
	check_growth(waker_that_never_waits);
}

/* Interrupts end all waits, so `why` looks for the other end of each connection. */
static uint64_t connections(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture), from;
	char detail[64];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(detail, sizeof(detail), "tcp 10.0.0.1:%u <-> 10.0.0.2:%u", i, i);
		object(&capture, "socket", detail);
	}
	for (uint32_t i = 0; i < count; i++) {
		snprintf(detail, sizeof(detail), "tcp 10.0.0.2:%u <-> 10.0.0.1:%u", i, i);
		object(&capture, "socket", detail);
	}
	for (uint32_t i = 0; i < count; i++) {
		from = ts;
		ts = wait_of(&capture, ts, NR_RECVFROM, 3 + i, 0, 0, SOFT);
		wait_details(&capture, from, ts - 10, 11, 1 + i, 0, 0);
	}
	return end(&capture, ts);
}

static void test_the_other_ends_of_connections(void **state)
{
	(void)state;
	check_growth(connections);
}

static void socket_of(struct capture *capture, uint32_t pid, const char *detail)
{
	struct store_object add = {.pid = pid, .name = "socket:[1]", .detail = detail};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_object(capture->writer, &add, &err), err);
}

/* The thread polls a connection that many processes share, but not its own one. */
static uint64_t polled_connection(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture), from;

	object(&capture, "2 descriptors: tcp 10.0.0.1:5000 <-> 10.0.0.2:80, anon_inode:[eventfd]",
	       "");
	for (uint32_t i = 0; i < count; i++)
		socket_of(&capture, 1000 + i, "tcp 10.0.0.1:5000 <-> 10.0.0.2:80");
	for (uint32_t i = 0; i < count; i++) {
		from = ts;
		ts = wait_of(&capture, ts, NR_POLL, 0x5000 + 64 * (uint64_t)i, 2, UINT32_MAX, SOFT);
		wait_details(&capture, from, ts - 10, 11, 1, 0, 0);
	}
	return end(&capture, ts);
}

static void test_polls_of_a_connection_of_many_processes(void **state)
{
	(void)state;
	check_growth(polled_connection);
}

/* The thread waits for one server again and again, which has as many other clients. */
static uint64_t clients_of_a_server(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture), from;
	char detail[80];

	object(&capture, "socket", "tcp 10.0.0.1:5000 <-> 10.0.0.2:80, SYN not answered");
	for (uint32_t i = 0; i < count; i++) {
		snprintf(detail, sizeof(detail), "tcp 10.0.0.2:80 <-> 10.0.0.3:%u", i);
		object(&capture, "socket", detail);
	}
	for (uint32_t i = 0; i < count; i++) {
		from = ts;
		ts = wait_of(&capture, ts, NR_CONNECT, 3, 0, 0, SOFT);
		wait_details(&capture, from, ts - 10, 11, 1, 0, 0);
	}
	return end(&capture, ts);
}

static void test_the_server_of_a_connection_with_many_clients(void **state)
{
	(void)state;
	check_growth(clients_of_a_server);
}

/* The other end of each file is of the last of many processes. They are sockets that have the text
 * of a pipe, as only a made-up capture has them. */
static uint64_t ends_of_a_process(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture), from;
	struct error err = ERROR_INIT;
	char detail[64];

	snprintf(detail, sizeof(detail), "write end of process %u, x", 1000 + count - 1);
	for (uint32_t i = 0; i < count; i++) {
		const struct store_process process = {
			.pid = 1000 + i, .ppid = 1, .ts = CAPTURE_START, .cmdline = "x"};

		capture_must(store_writer_add_process(capture.writer, &process, &err), err);
		object(&capture, "socket:[1]", detail);
	}
	for (uint32_t i = 0; i < count; i++) {
		from = ts;
		ts = wait_of(&capture, ts, NR_RECVFROM, 3, 0, 0, SOFT);
		wait_details(&capture, from, ts - 10, 11, 1 + i, 0, 0);
	}
	return end(&capture, ts);
}

static void test_ends_at_the_last_of_many_processes(void **state)
{
	(void)state;
	check_growth(ends_of_a_process);
}

/* Thread 11 waits from *ts on, and its cgroup throttles it. */
static void throttle(struct capture *capture, uint64_t *ts, uint64_t cgroup)
{
	struct waffle_rec_quota quota = {.rec = {*ts + 60 * US, 11, WAFFLE_REC_QUOTA, 1},
					 .throttled_ns = 20 * US,
					 .cgroup = cgroup,
					 .quota_ns = 50 * US,
					 .period_ns = 100 * US};

	waits(capture, *ts, 1, 11, 0, S, NR_NANOSLEEP, 0x9000, 0, 0);
	capture_add(capture, &quota);
	gets(capture, *ts + 100 * US, 1, 0, 11, 13, *ts + 50 * US, 0);
	*ts += 100 * US + 10;
}

/* Each time that it is throttled, the thread is in another cgroup, and the capture names none. */
static uint64_t cgroups(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);
	char name[32];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		object(&capture, name, "");
	}
	for (uint32_t i = 0; i < count; i++)
		throttle(&capture, &ts, 1000 + i);
	return end(&capture, ts);
}

/* The cgroup has as many processes that are not traced. The thread was in another one before, so
 * that nobody takes those of its process for users. */
static uint64_t users_of_a_cgroup(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	throttle(&capture, &ts, 2000);
	for (uint32_t i = 0; i < count; i++)
		throttle(&capture, &ts, 1000);
	for (uint32_t i = 0; i < count; i++) {
		struct waffle_rec_io_limit user = {.rec = {ts, 1000 + i, WAFFLE_REC_IO_LIMIT, 1},
						   .cgroup = 1000,
						   .limit = 1,
						   .dev = 10,
						   .kind = WAFFLE_IO_LIMIT_CPU_USER};

		named(&capture, 1000 + i, 1000 + i, "user");
		capture_add(&capture, &user);
	}
	return end(&capture, ts);
}

static void test_cgroups_that_throttle(void **state)
{
	(void)state;
	check_growth(cgroups);
	check_growth(users_of_a_cgroup);
}

static void signals(struct capture *capture, uint64_t ts, uint32_t target, int signo)
{
	struct waffle_rec_signal rec = {.rec = {ts, 13, WAFFLE_REC_SIGNAL, 0},
					.target_tid = target,
					.target_tgid = 10,
					.signo = signo};

	capture_add(capture, &rec);
}

/* One signal stops the process. Others that stop nothing follow, and stops by something else. */
static uint64_t stops_after_signals(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	signals(&capture, ts++, 10, SIGSTOP);
	for (uint32_t i = 0; i < count; i++)
		signals(&capture, ts++, 10, SIGUSR1);
	for (uint32_t i = 0; i < count; i++) {
		waits(&capture, ts, 1, 11, 0, WAFFLE_TASK_STOPPED, NR_NONE, 0, 0, 0);
		gets(&capture, ts + 100 * US, 1, 0, 11, 13, ts + 100 * US, 0);
		ts += 100 * US + 10;
	}
	return end(&capture, ts);
}

static void test_stops_after_many_signals(void **state)
{
	(void)state;
	check_growth(stops_after_signals);
}

/* Many signals come at once, to the process's first thread, and many threads' waits end then. */
static uint64_t signals_at_once(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++) {
		signals(&capture, ts, 14, SIGUSR1);
		ts += i % 2;
	}
	for (uint32_t i = 0; i < count; i++) {
		waits(&capture, ts, 1, 11, 0, S, NR_READ, 3, 0, 0);
		gets(&capture, ts + 2, 1, 0, 11, 13, ts + 2, 0);
		ts += 4;
	}
	return end(&capture, ts);
}

static void test_many_signals_at_once(void **state)
{
	(void)state;
	check_growth(signals_at_once);
}

/* Deeply nested spans around one wait, in which a device serves others and other requests. */
static uint64_t requests_in_nested_spans(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture), from;

	for (uint32_t i = 0; i < count; i++)
		capture_span(&capture, ts++, 11, 2 + i);
	from = ts;
	waits(&capture, ts++, 1, 11, 0, D, NR_READ, 3, 0, 0);
	for (uint32_t i = 0; i < count; i++) {
		io_done(&capture, from, ts++, 11, WAFFLE_IO_WRITE);
		io_done(&capture, from, ts++, 12, WAFFLE_IO_WRITE);
	}
	gets(&capture, ts, 1, 0, 11, 0, ts, HARD);
	for (uint32_t i = count; i--;)
		capture_end(&capture, ++ts, 11, 2 + i);
	return end(&capture, ts + US);
}

static void test_requests_in_a_wait_within_nested_spans(void **state)
{
	(void)state;
	check_growth(requests_in_nested_spans);
}

/* The spans are throttled again and again before the thread gets a CPU. */
static uint64_t quotas_in_nested_spans(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++)
		capture_span(&capture, ts++, 11, 2 + i);
	gets(&capture, ts++, 1, 11, 100, 0, 0, 0);
	for (uint32_t i = 0; i < count; i++) {
		struct waffle_rec_quota quota = {
			.rec = {ts++, 11, WAFFLE_REC_QUOTA, 1}, .throttled_ns = 1, .cgroup = 1000};

		capture_add(&capture, &quota);
	}
	gets(&capture, ts++, 1, 100, 11, 0, 0, 0);
	for (uint32_t i = count; i--;)
		capture_end(&capture, ++ts, 11, 2 + i);
	return end(&capture, ts + US);
}

static void test_quotas_within_nested_spans(void **state)
{
	(void)state;
	check_growth(quotas_in_nested_spans);
}

/* The thread has no CPU for a while, in which another CPU has many switches. */
static uint64_t switches_in_nested_spans(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++)
		capture_span(&capture, ts++, 11, 2 + i);
	gets(&capture, ts++, 1, 11, 100, 0, 0, 0);
	for (uint32_t i = 0; i < count; i++)
		gets(&capture, ts++, 5, 101 + i % 2, 102 - i % 2, 0, 0, 0);
	gets(&capture, ts++, 1, 100, 11, 0, 0, 0);
	for (uint32_t i = count; i--;)
		capture_end(&capture, ++ts, 11, 2 + i);
	capture_end(&capture, ++ts, 11, 1);
	return all_spans(&capture, ts + US);
}

static void test_switches_of_other_cpus_within_nested_spans(void **state)
{
	(void)state;
	check_growth(switches_in_nested_spans);
}

/* Spans that no record ends, in one that ends. */
static uint64_t spans_left(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++)
		capture_span(&capture, ts++, 11, 2 + i);
	ts = wait_of(&capture, ts, NR_READ, 3, 0, 0, 0);
	return end(&capture, ts);
}

static void test_deeply_nested_spans_that_are_left(void **state)
{
	(void)state;
	check_growth(spans_left);
}

#define LOCK 0x7f00
#define FUTEX_PI 0x86 /* FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG */

/* Threads 14 to 49 take one lock in turn. Each holds it while all others wait. */
static uint64_t threads_on_a_lock(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t tid = 14; tid < 50; tid++)
		named(&capture, tid, 10, "taker");
	waits(&capture, ts++, 1, 11, 0, S, NR_FUTEX, LOCK, FUTEX_PI, 0);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t tid = 14 + i % 36, next = 14 + (i + 1) % 36;

		gets(&capture, ts, (uint16_t)tid, 0, tid, i ? next : 13, ts, 0);
		waits(&capture, ts + 5 * US, (uint16_t)tid, tid, 0, S, NR_FUTEX, LOCK, FUTEX_PI, 0);
		ts += 6 * US;
	}
	gets(&capture, ts, 1, 0, 11, 14, ts, 0);
	return end(&capture, ts + US);
}

static void test_many_threads_on_one_lock(void **state)
{
	(void)state;
	check_growth(threads_on_a_lock);
}

/* Thread 13 wakes thread 11 each time, which waits on. Meanwhile 13 itself waits for other things,
 * so there are many parts whose chains begin with the same series. */
static uint64_t parts_of_a_series(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++) {
		waits(&capture, ts, 1, 11, 0, S, NR_READ, 3, 0, 0);
		waits(&capture, ts + 10, 3, 13, 0, S, NR_FUTEX, 0x10000 + 64 * (uint64_t)i,
		      FUTEX_COND, 0);
		gets(&capture, ts + 50 * US, 3, 0, 13, 12, ts + 50 * US, 0);
		gets(&capture, ts + 100 * US, 1, 0, 11, 13, ts + 100 * US, 0);
		ts += 100 * US + 10;
	}
	return end(&capture, ts);
}

static void test_many_parts_of_a_series(void **state)
{
	(void)state;
	check_growth(parts_of_a_series);
}

/* Each wait is for another lock, so each has a cause of its own. */
static uint64_t causes(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++)
		ts = wait_of(&capture, ts, NR_FUTEX, 0x10000 + 64 * (uint64_t)i, FUTEX_COND, 0, 0);
	return end(&capture, ts);
}

static void test_many_causes(void **state)
{
	(void)state;
	check_growth(causes);
}

/* A span that moves to thread 13, which is woken again and again, but not by the span's thread. */
static uint64_t handed_over(uint32_t count)
{
	struct capture capture;
	uint64_t ts = begin(&capture);

	for (uint32_t i = 0; i < count; i++) {
		waits(&capture, ts, 3, 13, 0, S, NR_READ, 3, 0, 0);
		gets(&capture, ts + 10 * US, 3, 0, 13, 12, ts + 10 * US, 0);
		ts += 20 * US;
	}
	capture_end(&capture, ts, 13, 1);
	return end(&capture, ts + 1);
}

static void test_a_span_that_another_thread_ends(void **state)
{
	(void)state;
	check_growth(handed_over);
}

static void add_stack(struct capture *capture)
{
	const struct store_stack stack = {
		.pid = CAPTURE_PID, .addresses = &(uint64_t){0x400000}, .count = 1};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
}

static void wait_with_stack(struct capture *capture, uint64_t from_ts, uint64_t ts, uint32_t tid,
			    uint32_t object, uint32_t stack)
{
	capture_add(capture, &(struct waffle_rec_wait){.rec = {ts, tid, WAFFLE_REC_WAIT, 0},
						       .from_ts = from_ts,
						       .object = object,
						       .user_stack = stack});
}

static void frames(void *arg, uint32_t stack, stack_frame_fn each, void *each_arg)
{
	const struct stack_frame *frame = arg;

	if (stack)
		each(frame, each_arg);
}

/* Each of many processes has a pool of one thread, which is in a span. */
static uint64_t pools(uint32_t count)
{
	struct stack_frame frame = {.function = "worker", .file = "uv/src/threadpool.c"};
	struct stack_names names = {.arg = &frame, .frames = frames};
	const struct why_query query = {.name = "step", .slowest = UINT32_MAX, .names = &names};
	const uint64_t until = 100000 * US;
	struct capture capture;
	uint64_t searched;
	struct why *why;

	capture_begin(&capture, true);
	add_stack(&capture);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t pid = 1000 + 2 * i, tid = pid + 1;
		uint64_t ts = 2 * US + 3 * i;

		named_as(&capture, tid, pid, "node", WAFFLE_TASK_TRACED_FLAG);
		gets(&capture, ts, 1, 0, tid, 0, 0, WAFFLE_SWITCH_NEXT_TRACED);
		capture_hit_of(&capture, ts + 1, pid, tid, SITE_STEP, 1 + i, 0, 0, NULL);
		capture_add(&capture,
			    &(struct waffle_rec_switch){.rec = {ts + 2, tid, WAFFLE_REC_SWITCH, 1},
							.prev_state = S,
							.flags = WAFFLE_SWITCH_PREV_TRACED,
							.syscall = NR_READ});
	}
	for (uint32_t i = 0; i < count; i++)
		wait_with_stack(&capture, 2 * US + 3 * i + 2, until, 1001 + 2 * i, 0, 1);
	why = ask(&capture, until + 1, &query);
	searched = why->searched;
	assert_int_equal(why->instances.len, count);
	for (uint32_t i = 0; i < count; i++)
		assert_true(why->instances.data[i].full_pool);
	done(&capture, why);
	return searched;
}

static void test_pools_of_many_processes(void **state)
{
	(void)state;
	check_growth(pools);
}

static uint32_t functions(void *arg, uint32_t stack, uint64_t ts, const char **found, uint32_t max)
{
	(void)ts;
	found[0] = arg;
	return stack && max;
}

/* The thread polls many lists, and every second of its waits has a stack. */
static uint64_t votes_for_locks(uint32_t count)
{
	struct stack_names names = {.arg = "LWLockAcquire", .functions = functions};
	struct capture capture;
	uint64_t ts = begin(&capture), from;

	add_stack(&capture);
	for (uint32_t i = 0; i < count; i++)
		object(&capture, "2 descriptors: pipe:[1], pipe:[2]", "");
	for (uint32_t i = 0; i < count; i++) {
		from = ts;
		ts = wait_of(&capture, ts, NR_POLL, 0x5000 + 64 * (uint64_t)i, 2, UINT32_MAX, 0);
		wait_with_stack(&capture, from, ts - 10, 11, 1 + i, i % 2);
	}
	capture_end(&capture, ts, 11, 1);
	return steps_of(&capture, ts + US, &(struct why_query){.name = "step", .names = &names});
}

static void test_locks_that_stacks_of_polls_show(void **state)
{
	(void)state;
	check_growth(votes_for_locks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_condition_whose_mutex_is_contended),
		cmocka_unit_test(test_a_wait_in_which_the_thread_is_frozen),
		cmocka_unit_test(test_a_waker_that_never_waits),
		cmocka_unit_test(test_the_other_ends_of_connections),
		cmocka_unit_test(test_polls_of_a_connection_of_many_processes),
		cmocka_unit_test(test_the_server_of_a_connection_with_many_clients),
		cmocka_unit_test(test_ends_at_the_last_of_many_processes),
		cmocka_unit_test(test_cgroups_that_throttle),
		cmocka_unit_test(test_stops_after_many_signals),
		cmocka_unit_test(test_many_signals_at_once),
		cmocka_unit_test(test_requests_in_a_wait_within_nested_spans),
		cmocka_unit_test(test_quotas_within_nested_spans),
		cmocka_unit_test(test_switches_of_other_cpus_within_nested_spans),
		cmocka_unit_test(test_deeply_nested_spans_that_are_left),
		cmocka_unit_test(test_many_threads_on_one_lock),
		cmocka_unit_test(test_many_parts_of_a_series),
		cmocka_unit_test(test_many_causes),
		cmocka_unit_test(test_a_span_that_another_thread_ends),
		cmocka_unit_test(test_pools_of_many_processes),
		cmocka_unit_test(test_locks_that_stacks_of_polls_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
