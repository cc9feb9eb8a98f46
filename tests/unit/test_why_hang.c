// SPDX-License-Identifier: Apache-2.0
/* Cycles among open waits, and the chains of waits that do not end. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "analyze/why/hang/why_hang.h"
#include "analyze/why/lookup/why_holder.h"
#include "analyze/why/why_outside.h"
#include "analyze/why/why_pick.h"
#include "fake_names.h"
#include "growth.h"
#include "render/json/hang_json_internal.h"
#include "render/text/hang_text.h"
#include "why_capture.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define END_TS 10000000
static uint64_t end_ts = END_TS;

/* A thread that waits in a system call from the begin of the capture, or `from_ts`, to its end. */
struct hung {
	uint32_t tid, pid, owner, flags, stack, ended; /* pid 0: CAPTURE_PID */
	int syscall;
	uint64_t lock, expected, from_ts;
	uint16_t task_state; /* 0: S */
	bool shared;         /* other processes may have the futex */
};

static void hang_add(struct capture *capture, const struct hung *hung)
{
	struct waffle_rec_state state = {
		.rec = {CAPTURE_START, hung->tid, WAFFLE_REC_STATE, 0},
		.tgid = hung->pid ?: CAPTURE_PID,
		.state = WAFFLE_THREAD_BLOCKED,
		.task_state = hung->task_state ?: S,
		.syscall = hung->syscall,
		.args = {hung->lock, hung->shared ? 0 : FUTEX_MUTEX, hung->expected}};
	struct waffle_rec_open_wait open = {.rec = {end_ts, hung->tid, WAFFLE_REC_OPEN_WAIT, 0},
					    .from_ts = hung->from_ts,
					    .lock = hung->syscall == NR_FUTEX ? hung->lock : 0,
					    .user_stack = hung->stack,
					    .owner_tid = hung->owner,
					    .ended_tid = hung->ended,
					    .flags = hung->flags};

	capture_add(capture, &state);
	state.rec.ts = end_ts;
	state.at_end = 1;
	capture_add(capture, &state);
	capture_add(capture, &open);
}

static void waits_from_begin(struct capture *capture, uint32_t tid, int syscall, uint32_t owner,
			     uint32_t flags)
{
	hang_add(capture, &(struct hung){.tid = tid,
					 .owner = owner,
					 .flags = flags,
					 .syscall = syscall,
					 .lock = 0x7000 + 64 * tid,
					 .expected = 2});
}

static void hangs_from_begin(struct capture *capture, uint32_t tid, uint32_t owner, uint32_t flags)
{
	waits_from_begin(capture, tid, NR_FUTEX, owner, flags);
}

static void threads_named(struct capture *capture, uint32_t from, uint32_t to)
{
	capture_begin(capture, true);
	for (uint32_t tid = from; tid <= to; tid++)
		named(capture, tid, CAPTURE_PID, "t");
}

static uint32_t tid_of(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len ? model->threads.data[thread].tid : 0;
}

static uint32_t waiter(const struct model *model, const struct why_hung *hung)
{
	return tid_of(model, model->open_waits.data[hung->wait].thread);
}

static void test_cycles_are_found_and_come_first(void **state)
{
	struct why_hangs hangs;
	struct capture capture;
	const struct model *model;

	(void)state;
	threads_named(&capture, 10, 17);
	/* 10 → 12 → 13 → 14 → 12; 11 → 10; 15 → 15; 16 waits for nobody; 17 → 16. */
	hangs_from_begin(&capture, 10, 12, WAFFLE_OPEN_WAIT_WORD);
	hangs_from_begin(&capture, 11, 10, WAFFLE_OPEN_WAIT_WORD);
	hangs_from_begin(&capture, 12, 13, WAFFLE_OPEN_WAIT_WORD);
	hangs_from_begin(&capture, 13, 14, WAFFLE_OPEN_WAIT_WORD);
	hangs_from_begin(&capture, 14, 12, WAFFLE_OPEN_WAIT_WORD);
	hangs_from_begin(&capture, 15, 15, WAFFLE_OPEN_WAIT_MUTEX);
	hangs_from_begin(&capture, 16, 0, 0);
	hangs_from_begin(&capture, 17, 16, WAFFLE_OPEN_WAIT_WORD);
	model = capture_load(&capture, END_TS);
	why_hangs_find(&hangs, model, NULL);
	assert_int_equal(hangs.waits.len, 8);
	assert_int_equal(hangs.deadlocks.len, 2);
	assert_int_equal(hangs.deadlocks.data[0].count, 3);
	assert_int_equal(hangs.deadlocks.data[1].count, 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(waiter(model, &hangs.waits.data[i]), 12 + i);
		assert_int_equal(hangs.waits.data[i].next, (i + 1) % 3);
		assert_true(hangs.waits.data[i].sure);
	}
	assert_int_equal(waiter(model, &hangs.waits.data[3]), 15);
	assert_false(hangs.waits.data[3].sure); /* no stack shows that it is a mutex */
	assert_int_equal(hangs.waits.data[4].deadlock, MODEL_NONE);
	assert_int_equal(waiter(model, &hangs.waits.data[7]), 16);
	assert_int_equal(hangs.waits.data[7].owner, MODEL_NONE);
	why_hangs_free(&hangs);
	capture_free(&capture);
}

static void test_a_read_write_lock_needs_a_function_that_says_so(void **state)
{
	struct why_hangs hangs;
	struct capture capture;

	(void)state;
	threads_named(&capture, 10, 11);
	hangs_from_begin(&capture, 10, 11, WAFFLE_OPEN_WAIT_RWLOCK);
	why_hangs_find(&hangs, capture_load(&capture, END_TS), NULL);
	assert_int_equal(hangs.waits.len, 1);
	assert_int_equal(hangs.waits.data[0].owner, MODEL_NONE);
	why_hangs_free(&hangs);
	capture_free(&capture);
}

static void test_the_chain_of_a_deadlock_ends_in_its_cycle(void **state)
{
	const struct why_query query = {.tid = 10, .from_ts = 0, .to_ts = UINT64_MAX};
	struct error err = ERROR_INIT;
	struct capture capture;
	struct why *why;

	(void)state;
	threads_named(&capture, 10, 11);
	hangs_from_begin(&capture, 10, 11, WAFFLE_OPEN_WAIT_WORD);
	hangs_from_begin(&capture, 11, 10, WAFFLE_OPEN_WAIT_WORD);
	capture_load(&capture, END_TS);
	capture_must(why_new(&why, capture.model, &query, &err), err);
	assert_int_equal(why->instances.len, 1);
	assert_int_equal(why->parts.data[0].cause, WHY_LOCK);
	assert_int_equal(why->parts.data[0].grade, WHY_GRADE_CERTAIN);
	assert_int_equal(why->parts.data[0].step_count, 2);
	assert_true(why->steps.data[why->parts.data[0].step].owned);
	assert_int_equal(tid_of(capture.model, why->parts.data[0].thread), 10);
	why_free(why);
	capture_free(&capture);
}

/* The number of processes at a standstill: threads 10 and 11 of one wait with these flags and
 * owners, and thread 12, if it is there, runs. */
static size_t standstills(uint32_t flags, uint32_t other_flags, uint32_t owner, bool runs)
{
	struct why_hangs hangs;
	struct capture capture;
	size_t count;

	threads_named(&capture, 10, runs ? 12 : 11);
	hangs_from_begin(&capture, 10, owner, flags);
	hangs_from_begin(&capture, 11, owner ? 10 : 0, other_flags);
	if (runs)
		gets(&capture, CAPTURE_START + 10, 1, 0, 12, 0, 0, 0);
	why_hangs_find(&hangs, capture_load(&capture, end_ts), NULL);
	count = hangs.standstills.len;
	if (count)
		assert_int_equal(hangs.standstills.data[0].threads, 2);
	why_hangs_free(&hangs);
	capture_free(&capture);
	return count;
}

static void test_threads_that_only_wait_for_each_other_are_a_standstill(void **state)
{
	const uint32_t inside = WAFFLE_OPEN_WAIT_INSIDE;

	(void)state;
	end_ts = 300000000;
	assert_int_equal(standstills(inside, inside, 0, false), 1);
	assert_int_equal(standstills(inside, 0, 0, false), 0); /* a timeout, or another process */
	assert_int_equal(standstills(inside, inside, 0, true), 0);
	assert_int_equal(standstills(inside | WAFFLE_OPEN_WAIT_WORD, inside | WAFFLE_OPEN_WAIT_WORD,
				     11, false),
			 0); /* a deadlock, which says more */
	end_ts = 50000000;   /* too short */
	assert_int_equal(standstills(inside, inside, 0, false), 0);
	end_ts = END_TS;
}

#define NR_PAUSE 34

/* The owner is known, but not what it waits for. */
static void test_the_owner_is_to_blame_if_its_own_wait_is_unknown(void **state)
{
	const struct why_query query = {.tid = 10, .from_ts = 0, .to_ts = UINT64_MAX};
	struct capture capture;
	struct why *why;

	(void)state;
	threads_named(&capture, 10, 11);
	hangs_from_begin(&capture, 10, 11, WAFFLE_OPEN_WAIT_WORD);
	waits_from_begin(&capture, 11, NR_PAUSE, 0, 0);
	why = ask(&capture, END_TS, &query);
	assert_int_equal(why->parts.data[0].cause, WHY_LOCK);
	assert_int_equal(why->parts.data[0].grade, WHY_GRADE_LIKELY);
	assert_int_equal(why->parts.data[0].step_count, 2);
	assert_int_equal(tid_of(why->model, why->parts.data[0].thread), 11);
	done(&capture, why);
}

/* ---- threads that wait all the time, while another one goes on ---- */

#define PYTHON(name, of)                                                                           \
	{                                                                                          \
		.function = name, .module = "[python]", .file = of                                 \
	}
#define NATIVE(name)                                                                               \
	{                                                                                          \
		.function = name                                                                   \
	}
#define NAMELESS                                                                                   \
	{                                                                                          \
		.module = "/usr/bin/python3.11"                                                    \
	}
#define THREADING "/usr/lib/python3.11/threading.py"
#define FUTURES "/usr/lib/python3.11/concurrent/futures/"
#define POOLS "/usr/lib/python3.11/multiprocessing/pool.py"

/* Stack number n is the n-th row, innermost first. */
static const struct stack_frame stacks[][3] = {
	{NATIVE("lock_PyThread_acquire_lock"), PYTHON("take", "/srv/app.py")},
	{NATIVE("lock_PyThread_acquire_lock"), PYTHON("Thread._wait_for_tstate_lock", THREADING)},
	{NATIVE("lock_PyThread_acquire_lock"), PYTHON("Condition.wait", THREADING)},
	{NATIVE("_queue_SimpleQueue_get"),
	 PYTHON("_worker", "/usr/lib/python3.11/futures/thread.py")},
	{NATIVE("std::sys::sync::mutex::futex::Mutex::lock_contended"), NATIVE("work")},
	{NATIVE("pthread_cond_wait"), NATIVE("work")},
	{NATIVE("pthread_cond_timedwait"), NATIVE("os::PlatformEvent::park(long)"),
	 NATIVE("ObjectMonitor::EnterI(…)")},
	{NATIVE("pthread_cond_wait"), NATIVE("os::PlatformEvent::park()"),
	 NATIVE("ObjectMonitor::wait(…)")},
	{NATIVE("__futex_abstimed_wait_common"), NATIVE("__pthread_mutex_lock_full"),
	 NATIVE("take")},
	{NATIVE("WaitLatch"), NATIVE("ProcSleep"), NATIVE("LockAcquireExtended")},
	{NATIVE("PyThread_acquire_lock_timed"), NAMELESS, PYTHON("take", "/srv/app.py")},
	{NATIVE("PyThread_acquire_lock_timed"), NAMELESS, PYTHON("Condition.wait", THREADING)},
	{NATIVE("PyThread_acquire_lock_timed"), NATIVE("_queue_SimpleQueue_get_impl"),
	 PYTHON("take", "/srv/app.py")},
	{NATIVE("__pthread_clockjoin_ex"), NATIVE("ContinueInNewThread"), NATIVE("JLI_Launch")},
	{NATIVE("WaitLatch"), NATIVE("SyncRepWaitForLSN"), NATIVE("CommitTransactionCommand")},
	{NATIVE("_multiprocessing_SemLock_acquire_impl"),
	 PYTHON("SemLock.__enter__", "/usr/lib/python3.11/multiprocessing/synchronize.py"),
	 PYTHON("take", "/srv/app.py")},
	{NAMELESS, NAMELESS,
	 PYTHON("SemLock.__enter__", "/usr/lib/python3.11/multiprocessing/synchronize.py")},
	{NATIVE("_multiprocessing_SemLock_acquire_impl"),
	 PYTHON("Condition.wait", "/usr/lib/python3.11/multiprocessing/synchronize.py"),
	 PYTHON("take", "/srv/app.py")},
	{NATIVE("__GI___lll_lock_wait"), NATIVE("pthread_mutex_lock"), NATIVE("bump")},
	{NATIVE("pthread_cond_timedwait"), NATIVE("MDL_wait::timed_wait(…)")},
	{NATIVE("pthread_cond_wait"), NATIVE("c10d::Reducer::finalize_backward()")},
	{NATIVE("pthread_cond_wait"), NATIVE("c10d::ProcessGroupGloo::runLoop(int)")},
	{PYTHON("Future.result", FUTURES "_base.py"), PYTHON("settle", "/srv/app.py"),
	 PYTHON("_worker", FUTURES "thread.py")},
	{NATIVE("_queue_SimpleQueue_get"), PYTHON("_worker", FUTURES "thread.py")},
	{NATIVE("read"), PYTHON("settle", "/srv/app.py"), PYTHON("_worker", FUTURES "thread.py")},
	{NATIVE("epoll_wait"), PYTHON("Loop.run_forever", "/srv/uvloop/loop.py")},
	{NATIVE("read"), PYTHON("Pool._handle_results", POOLS)},
	{NATIVE("clock_nanosleep"), PYTHON("beat", "/srv/app.py"), PYTHON("Thread.run", THREADING)},
	{NATIVE("clock_nanosleep"),
	 PYTHON("settle", "/srv/app.py"),
	 {.function = "[cut]", .cut = true}},
	{PYTHON("ApplyResult.get", POOLS), PYTHON("settle", "/srv/app.py"),
	 PYTHON("worker", POOLS)},
	{NATIVE("accept"), PYTHON("serve", "/srv/app.py")},
};
enum {
	SLEEPS,
	PY_LOCK,
	PY_JOIN,
	PY_WAIT,
	PY_QUEUE,
	RUST,
	CONDITION,
	MONITOR,
	NOTIFIED,
	PI,
	PROGRAM,
	PY_NAMELESS,
	PY_NAMELESS_WAIT,
	PY_SIMPLE_QUEUE,
	LAUNCHER,
	STANDBY,
	PY_SHARED_LOCK,
	PY_NAMELESS_SHARED_LOCK,
	PY_SHARED_WAIT,
	MUTEX,
	METADATA,
	RANKS,
	RANK_LOOP,
	POOL_WAITS,
	POOL_IDLE,
	POOL_WORKS,
	LOOP,
	RESULTS,
	BEATS,
	DEEP_SLEEP,
	THREAD_POOL_WAITS,
	ACCEPTS,
};

static void frames(void *arg, uint32_t stack, stack_frame_fn each, void *each_arg)
{
	assert_ptr_equal(arg, stacks);
	assert_in_range(stack, 1, LENGTH(stacks));
	for (size_t i = 0; i < LENGTH(stacks[0]); i++)
		if (stacks[stack - 1][i].function || stacks[stack - 1][i].module)
			each(&stacks[stack - 1][i], each_arg);
}

static uint32_t functions(void *arg, uint32_t stack, uint64_t ts, const char **found, uint32_t max)
{
	uint32_t count = 0;

	(void)ts;
	assert_ptr_equal(arg, stacks);
	for (size_t i = 0; i < LENGTH(stacks[0]) && count < max; i++)
		if (stacks[stack - 1][i].function)
			found[count++] = stacks[stack - 1][i].function;
	return count;
}

static struct stack_names names = {
	.arg = (void *)stacks, .functions = functions, .frames = frames, .has_jvm = true};

static void stacks_add(struct capture *capture)
{
	for (size_t i = 0; i < LENGTH(stacks); i++) {
		uint64_t address = 0x400000 + i;
		struct store_stack stack = {.pid = CAPTURE_PID, .addresses = &address, .count = 1};
		struct error err = ERROR_INIT;

		capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
	}
}

#define NR_NANOSLEEP 35
#define THREADS 4

static int call_of(uint32_t way)
{
	switch (way) {
	case SLEEPS:
	case BEATS:
	case DEEP_SLEEP:
		return NR_NANOSLEEP;
	case LOOP:
		return NR_EPOLL_WAIT;
	case RESULTS:
		return NR_READ;
	case ACCEPTS:
		return NR_ACCEPT;
	default:
		return NR_FUTEX;
	}
}

/* Threads 10 to 13 wait in these ways; one that sleeps wakes up now and then. */
static void ways_add(struct capture *capture, const uint32_t ways[THREADS], bool one_lock)
{
	threads_named(capture, 10, 9 + THREADS);
	stacks_add(capture);
	for (uint32_t i = 0; i < THREADS; i++) {
		int call = call_of(ways[i]);
		bool futex = call == NR_FUTEX, sleeps = call == NR_NANOSLEEP;

		hang_add(capture,
			 &(struct hung){
				 .tid = 10 + i,
				 .flags = futex && ways[i] != MONITOR ? WAFFLE_OPEN_WAIT_INSIDE : 0,
				 .stack = ways[i],
				 .syscall = call,
				 .lock = !futex     ? 0
					 : one_lock ? 0x7000
						    : 0x7000 + 64 * i,
				 .from_ts = sleeps ? end_ts - 10 : 0,
			 });
	}
}

static uint32_t stuck_threads(const uint32_t ways[THREADS], bool one_lock)
{
	struct capture capture;
	struct why_hangs hangs;
	uint32_t count = 0, stuck = 0;

	ways_add(&capture, ways, one_lock);
	why_hangs_find(&hangs, capture_load(&capture, end_ts), &names);
	assert_int_equal(hangs.deadlocks.len, 0);
	if (hangs.standstills.len) {
		assert_int_equal(hangs.standstills.data[0].of, THREADS);
		count = hangs.standstills.data[0].threads;
	}
	for (size_t i = 0; i < hangs.waits.len; i++) {
		assert_int_equal(hangs.waits.data[i].stuck, i < count);
		stuck += hangs.waits.data[i].stuck;
	}
	assert_int_equal(stuck, count);
	why_hangs_free(&hangs);
	capture_free(&capture);
	return count;
}

static void test_threads_that_wait_for_locks_all_the_time_may_be_in_a_deadlock(void **state)
{
	static const struct {
		uint32_t ways[THREADS], stuck;
	} rows[] = {
		{{PY_LOCK, PY_LOCK, PY_JOIN, SLEEPS}, 3},
		{{PY_LOCK, PY_LOCK, PY_QUEUE, SLEEPS}, 2},
		{{PY_LOCK, PY_WAIT, PY_JOIN, SLEEPS}, 0}, /* one lock is no cycle */
		{{PY_WAIT, PY_QUEUE, PY_JOIN, SLEEPS}, 0},
		/* A queue of such an interpreter would look the same. */
		{{PY_NAMELESS, PY_NAMELESS, PY_JOIN, SLEEPS}, 0},
		{{PY_QUEUE, PY_QUEUE, PY_QUEUE, SLEEPS}, 0},
		{{RUST, RUST, SLEEPS, SLEEPS}, 2},
		/* One that waits for work may hold a lock of a pool. */
		{{RUST, RUST, CONDITION, SLEEPS}, 0},
		{{CONDITION, CONDITION, CONDITION, SLEEPS}, 0},
		{{MONITOR, MONITOR, NOTIFIED, SLEEPS}, 2},
		{{NOTIFIED, NOTIFIED, NOTIFIED, SLEEPS}, 0},
		{{MONITOR, NOTIFIED, NOTIFIED, SLEEPS}, 0},
	};

	(void)state;
	end_ts = 300000000;
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(stuck_threads(rows[i].ways, false), rows[i].stuck);
	assert_int_equal(stuck_threads(rows[0].ways, true), 0);
	end_ts = END_TS;
}

/* Thread 13, which sleeps, has run most. */
static uint32_t picked(uint32_t way, uint64_t running_ns, bool *stuck)
{
	const uint32_t ways[THREADS] = {way, way, PY_JOIN, SLEEPS};
	const struct why_wanted wanted = {.span = NULL};
	struct why_query query = {.names = &names};
	struct error err = ERROR_INIT;
	struct capture capture;

	ways_add(&capture, ways, false);
	gets(&capture, CAPTURE_START + 1000, 1, 0, 13, 0, CAPTURE_START + 1000, HARD);
	waits(&capture, CAPTURE_START + 1000 + running_ns, 1, 13, 0, S, NR_NANOSLEEP, 0, 0, 0);
	capture_load(&capture, end_ts);
	capture_must(why_pick(&query, capture.model, &wanted, &err), err);
	*stuck = query.stuck;
	capture_free(&capture);
	return query.tid;
}

static void test_a_thread_that_hangs_is_explained_if_no_thread_does_much(void **state)
{
	bool stuck;

	(void)state;
	end_ts = 300000000;
	assert_in_range(picked(PY_LOCK, 1000000, &stuck), 10, 12);
	assert_true(stuck);
	assert_int_equal(picked(PY_QUEUE, 1000000, &stuck), 13);
	assert_false(stuck);
	assert_int_equal(picked(PY_LOCK, 100000000, &stuck), 13);
	assert_false(stuck);
	end_ts = END_TS;
}

/* Java's threads look at a monitor that they wait for once a second, so they run now and then. */
static void test_a_thread_that_does_more_than_look_at_a_monitor_is_in_no_deadlock(void **state)
{
	const uint32_t ways[THREADS] = {MONITOR, MONITOR, NOTIFIED, SLEEPS};
	static const struct {
		uint32_t waker, flags;
		uint64_t running_ns;
		int syscall;
		size_t standstills;
	} rows[] = {
		{0, HARD, 1000, NR_FUTEX, 1}, /* a timeout */
		{12, 0, 1000, NR_FUTEX, 0},   /* another thread gave it the monitor */
		{0, SOFT, 1000, NR_FUTEX, 0}, /* a packet came */
		{0, HARD | SOFT, 1000, NR_FUTEX, 0}, {0, HARD, 1000, NR_READ, 0},
		{0, HARD, 2000000, NR_FUTEX, 0}, /* it works */
	};

	(void)state;
	end_ts = 300000000;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		struct why_hangs hangs;

		ways_add(&capture, ways, false);
		gets(&capture, CAPTURE_START + 1000, 1, 0, 11, rows[i].waker, CAPTURE_START + 900,
		     rows[i].flags);
		waits(&capture, CAPTURE_START + 1000 + rows[i].running_ns, 1, 11, 0, S,
		      rows[i].syscall, 0x7000, FUTEX_COND, 0);
		why_hangs_find(&hangs, capture_load(&capture, end_ts), &names);
		assert_int_equal(hangs.standstills.len, rows[i].standstills);
		why_hangs_free(&hangs);
		capture_free(&capture);
	}
	end_ts = END_TS;
}

/* Other programs may have functions of the same names. */
static void test_monitors_are_those_of_a_process_with_the_jvm(void **state)
{
	const uint32_t ways[THREADS] = {MONITOR, MONITOR, NOTIFIED, SLEEPS};

	(void)state;
	end_ts = 300000000;
	names.has_jvm = false;
	assert_int_equal(stuck_threads(ways, false), 0);
	names.has_jvm = true;
	end_ts = END_TS;
}

/* The JVM's own thread looks at the clock 20 times a second, while the program stands still. It
 * says nothing about the program, unless it works. */
static void test_own_threads_of_the_jvm_do_not_count(void **state)
{
	static const struct {
		bool jvm;
		uint64_t running_ns;
		uint32_t standstills, tid;
	} rows[] = {{true, 1000000, 1, 10}, {true, 100000000, 1, 12}, {false, 100000000, 0, 12}};
	const struct why_wanted wanted = {.span = NULL};

	(void)state;
	end_ts = 300000000;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		uint64_t out_ts = CAPTURE_START + 1000 + rows[i].running_ns;
		struct why_query query = {.names = &names};
		struct error err = ERROR_INIT;
		struct why_hangs hangs;
		struct capture capture;

		names.has_jvm = rows[i].jvm;
		threads_named(&capture, 10, 11);
		named(&capture, 12, CAPTURE_PID, "VM Thread");
		hangs_from_begin(&capture, 10, 0, WAFFLE_OPEN_WAIT_INSIDE);
		hangs_from_begin(&capture, 11, 0, WAFFLE_OPEN_WAIT_INSIDE);
		hang_add(&capture, &(struct hung){.tid = 12,
						  .syscall = NR_FUTEX,
						  .lock = 0x9000,
						  .from_ts = out_ts});
		gets(&capture, CAPTURE_START + 1000, 1, 0, 12, 0, CAPTURE_START + 1000, HARD);
		waits(&capture, out_ts, 1, 12, 0, S, NR_FUTEX, 0x9000, 0, 0);
		capture_load(&capture, end_ts);
		why_hangs_find(&hangs, capture.model, &names);
		assert_int_equal(hangs.standstills.len, rows[i].standstills);
		why_hangs_free(&hangs);
		capture_must(why_pick(&query, capture.model, &wanted, &err), err);
		assert_int_equal(query.tid, rows[i].tid);
		capture_free(&capture);
	}
	names.has_jvm = true;
	end_ts = END_TS;
}

/* Threads of a program wait while garbage is collected: they do not stand still. A collector is not
 * idle while it runs, nor if it waits for another one for a moment. */
static void test_a_program_that_waits_for_the_jvm_does_not_stand_still(void **state)
{
	static const struct {
		bool waits;
		uint32_t flags;
		uint64_t from_ts;
		size_t standstills;
	} rows[] = {{false, 0, 0, 0},
		    {true, WAFFLE_OPEN_WAIT_INSIDE, 250000000, 0},
		    {true, WAFFLE_OPEN_WAIT_INSIDE, 150000000, 1},
		    {true, 0, 250000000, 1}};

	(void)state;
	end_ts = 300000000;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct why_hangs hangs;
		struct capture capture;

		threads_named(&capture, 10, 11);
		named(&capture, 12, CAPTURE_PID, "GC Thread#0");
		hangs_from_begin(&capture, 10, 0, WAFFLE_OPEN_WAIT_INSIDE);
		hangs_from_begin(&capture, 11, 0, WAFFLE_OPEN_WAIT_INSIDE);
		if (rows[i].waits)
			hang_add(&capture, &(struct hung){.tid = 12,
							  .syscall = NR_FUTEX,
							  .lock = 0x9000,
							  .from_ts = rows[i].from_ts,
							  .flags = rows[i].flags});
		else
			gets(&capture, CAPTURE_START + 10, 1, 0, 12, 0, 0, 0);
		why_hangs_find(&hangs, capture_load(&capture, end_ts), &names);
		assert_int_equal(hangs.standstills.len, rows[i].standstills);
		if (hangs.standstills.len)
			assert_int_equal(hangs.standstills.data[0].of, 2);
		why_hangs_free(&hangs);
		capture_free(&capture);
	}
	end_ts = END_TS;
}

/* The program java runs main() in another thread. The one that it began with waits for the end of
 * that, and says nothing about the program. */
static void test_the_launcher_of_the_jvm_is_no_thread_of_the_program(void **state)
{
	const struct why_wanted wanted = {.span = NULL};

	(void)state;
	end_ts = 300000000;
	for (int jvm = 0; jvm < 2; jvm++) {
		struct why_query query = {.names = &names};
		struct error err = ERROR_INIT;
		struct why_hangs hangs;
		struct capture capture;

		names.has_jvm = jvm;
		capture_begin(&capture, true);
		for (uint32_t tid = CAPTURE_PID; tid < CAPTURE_PID + 3; tid++)
			named(&capture, tid, CAPTURE_PID, "java");
		stacks_add(&capture);
		hang_add(&capture,
			 &(struct hung){.tid = CAPTURE_PID,
					.owner = CAPTURE_PID + 1,
					.flags = WAFFLE_OPEN_WAIT_INSIDE | WAFFLE_OPEN_WAIT_JOIN,
					.stack = LAUNCHER,
					.syscall = NR_FUTEX,
					.lock = 0x9000});
		hangs_from_begin(&capture, CAPTURE_PID + 1, CAPTURE_PID + 2,
				 WAFFLE_OPEN_WAIT_WORD | WAFFLE_OPEN_WAIT_INSIDE);
		hangs_from_begin(&capture, CAPTURE_PID + 2, CAPTURE_PID + 1,
				 WAFFLE_OPEN_WAIT_WORD | WAFFLE_OPEN_WAIT_INSIDE);
		capture_load(&capture, end_ts);
		why_hangs_find(&hangs, capture.model, &names);
		assert_int_equal(hangs.deadlocks.len, 1);
		why_hangs_free(&hangs);
		capture_must(why_pick(&query, capture.model, &wanted, &err), err);
		assert_true(query.stuck);
		assert_int_equal(query.tid, CAPTURE_PID + jvm);
		capture_free(&capture);
	}
	names.has_jvm = true;
	end_ts = END_TS;
}

/* The only thread of a process waits for a lock that another one would have to release. If it waits
 * for something else, it may be idle until a signal comes. */
static void test_a_thread_alone_may_wait_for_itself(void **state)
{
	static const struct {
		uint32_t way, flags;
		bool lock;
	} rows[] = {{PY_LOCK, WAFFLE_OPEN_WAIT_INSIDE, true},
		    {RUST, WAFFLE_OPEN_WAIT_INSIDE, true},
		    {PY_WAIT, WAFFLE_OPEN_WAIT_INSIDE, false},
		    {PY_NAMELESS, WAFFLE_OPEN_WAIT_INSIDE, true},
		    {PY_NAMELESS, 0, false},
		    {PY_NAMELESS_WAIT, WAFFLE_OPEN_WAIT_INSIDE, false},
		    {PY_SIMPLE_QUEUE, WAFFLE_OPEN_WAIT_INSIDE, false},
		    {PY_LOCK, 0, false}};
	const struct why_query query = {
		.tid = 10, .from_ts = 0, .to_ts = UINT64_MAX, .names = &names};

	(void)state;
	end_ts = 300000000;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct why_hangs hangs;
		struct capture capture;
		struct why *why;

		threads_named(&capture, 10, 10);
		stacks_add(&capture);
		hang_add(&capture, &(struct hung){.tid = 10,
						  .flags = rows[i].flags,
						  .stack = rows[i].way,
						  .syscall = NR_FUTEX,
						  .lock = 0x7000});
		why = ask(&capture, end_ts, &query);
		why_hangs_find(&hangs, capture.model, &names);
		assert_int_equal(hangs.standstills.len, rows[i].lock);
		assert_int_equal(hangs.waits.data[0].stuck, rows[i].lock);
		assert_int_equal(why->parts.data[0].cause, rows[i].lock ? WHY_LOCK : WHY_UNKNOWN);
		assert_int_equal(why->parts.data[0].grade,
				 rows[i].lock ? WHY_GRADE_LIKELY : WHY_GRADE_UNKNOWN);
		why_hangs_free(&hangs);
		done(&capture, why);
	}
	end_ts = END_TS;
}

/* PostgreSQL looks at its lock after a second. A server that otherwise does nothing is explained by
 * who waits for the lock. */
static void test_who_waits_for_a_lock_of_the_program_hangs(void **state)
{
	const struct why_wanted wanted = {.span = NULL};
	uint32_t ways[THREADS] = {SLEEPS, PROGRAM, PY_QUEUE, SLEEPS};

	(void)state;
	end_ts = 300000000;
	for (int again = 0; again < 2; again++) {
		struct why_query query = {.names = &names};
		struct error err = ERROR_INIT;
		struct why_hangs hangs;
		struct capture capture;

		ways_add(&capture, ways, false);
		gets(&capture, CAPTURE_START + 1000, 1, 0, 13, 0, CAPTURE_START + 1000, HARD);
		waits(&capture, CAPTURE_START + 2000000, 1, 13, 0, S, NR_NANOSLEEP, 0, 0, 0);
		capture_load(&capture, end_ts);
		why_hangs_find(&hangs, capture.model, &names);
		assert_int_equal(hangs.standstills.len, 0);
		assert_int_equal(hangs.waits.data[0].stuck, !again);
		why_hangs_free(&hangs);
		capture_must(why_pick(&query, capture.model, &wanted, &err), err);
		assert_int_equal(query.tid, again ? 13 : 11);
		capture_free(&capture);
		ways[1] = PY_LOCK; /* a single one */
	}
	end_ts = END_TS;
}

/* The text of the hangs of a capture, without its stacks. */
static char *text_of(const struct capture *capture,
		     bool (*print)(const struct why_hangs *, const struct hang_view *, FILE *))
{
	const struct hang_view view = {.model = capture->model};
	struct why_hangs hangs;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	why_hangs_find(&hangs, capture->model, &names);
	print(&hangs, &view, out);
	why_hangs_free(&hangs);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* What is said first of threads 10 to 13, and how many of them are stuck. */
struct pool_case {
	uint32_t ways[THREADS], stuck;
	const char *begin;
	const char *names[THREADS]; /* NULL: "t" */
};

static void check_pool(const struct pool_case *of)
{
	struct capture capture;
	struct why_hangs hangs;
	uint32_t stuck = 0;
	char *text;

	ways_add(&capture, of->ways, false);
	for (uint32_t i = 0; i < THREADS; i++)
		if (of->names[i])
			capture_thread_name(&capture, CAPTURE_START, 10 + i, 1, of->names[i]);
	capture_load(&capture, end_ts);
	why_hangs_find(&hangs, capture.model, &names);
	for (size_t i = 0; i < hangs.waits.len; i++)
		stuck += hangs.waits.data[i].stuck;
	assert_int_equal(stuck, of->stuck);
	why_hangs_free(&hangs);
	text = text_of(&capture, hang_print_deadlocks);
	assert_int_equal(strncmp(text, of->begin, strlen(of->begin)), 0);
	assert_true(*of->begin || !*text);
	free(text);
	capture_free(&capture);
}

#define ALL_2_OF_POOL "may be a deadlock: all 2 threads of a ThreadPoolExecutor, such as "
#define ONLY_OF_POOL "may be a deadlock: the only thread of a ThreadPoolExecutor, "
#define ALL_4 "may be a deadlock: all 4 threads of t (10) wait"

static void test_jobs_that_all_wait_for_others_of_their_pool_may_be_in_a_deadlock(void **state)
{
	static const struct pool_case rows[] = {
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, PY_WAIT},
		 2,
		 ALL_2_OF_POOL "t (thread 11), have jobs that wait for others; if those are queued "
			       "in the same pool, no thread is left to do them\n",
		 {NULL}},
		{{PY_WAIT, POOL_WAITS, PY_WAIT, PY_WAIT},
		 1,
		 ONLY_OF_POOL "t (thread 11), has a job that waits for another one; if that is "
			      "queued in the same pool, no thread is left to do it\n",
		 {NULL}},
		/* Threads that do nothing for the others. */
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, BEATS}, 2, ALL_2_OF_POOL, {NULL}},
		{{ACCEPTS, POOL_WAITS, POOL_WAITS, BEATS}, 2, ALL_2_OF_POOL, {NULL}},
		/* Another thread may do what they wait for. */
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, POOL_IDLE}, 0, ALL_4, {NULL}},
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, POOL_WORKS}, 0, ALL_4, {NULL}},
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, LOOP}, 0, "", {NULL}},
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, RESULTS}, 0, "", {NULL}},
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, ACCEPTS}, 0, "", {NULL}},
		/* It may have a job. */
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, SLEEPS}, 0, "", {NULL}},
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, DEEP_SLEEP}, 0, "", {NULL}},
		/* Only the threads of one pool are counted. */
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, POOL_WAITS},
		 3,
		 ALL_2_OF_POOL "pool-0_0 (11)",
		 {NULL, "pool-0_0", "pool-0_1", "pool-1_0"}},
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, THREAD_POOL_WAITS},
		 3,
		 ALL_2_OF_POOL "t (thread 11)",
		 {NULL}},
		{{PY_WAIT, POOL_WAITS, POOL_WAITS, POOL_IDLE},
		 2,
		 ALL_2_OF_POOL "pool-0_9 (11)",
		 {NULL, "pool-0_9", "pool-0_10", "pool-1_0"}},
	};

	(void)state;
	end_ts = 300000000;
	for (size_t i = 0; i < LENGTH(rows); i++)
		check_pool(&rows[i]);
	end_ts = END_TS;
}

static bool print_waits(const struct why_hangs *hangs, const struct hang_view *view, FILE *out)
{
	hang_print_waits(hangs, view, out);
	return true;
}

static bool print_json(const struct why_hangs *hangs, const struct hang_view *view, FILE *out)
{
	struct json *json = json_new(out, false);

	json_object_begin(json);
	hang_json(json, hangs, view);
	json_object_end(json);
	return !json_close(json);
}

/* Who holds the lock is not known. */
static void test_json_says_which_waits_are_for_a_lock(void **state)
{
	static const struct {
		uint32_t way;
		const char *expected;
	} rows[] = {
		{PROGRAM, "\"waits_for\":\"lock\""}, {STANDBY, "\"waits_for\":null"},
		{PY_LOCK, "\"waits_for\":\"lock\""}, {RUST, "\"waits_for\":\"lock\""},
		{MONITOR, "\"waits_for\":\"lock\""}, {CONDITION, "\"waits_for\":null"},
		{PY_JOIN, "\"waits_for\":null"},     {PY_QUEUE, "\"waits_for\":null"},
		{PI, "\"waits_for\":\"nothing\""},   {SLEEPS, "\"waits_for\":null"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		char *text;

		threads_named(&capture, 10, 10);
		stacks_add(&capture);
		hang_add(&capture, &(struct hung){.tid = 10,
						  .stack = rows[i].way,
						  .syscall = NR_FUTEX,
						  .lock = 0x7000});
		capture_load(&capture, END_TS);
		text = text_of(&capture, print_json);
		if (!strstr(text, rows[i].expected))
			fail_msg("%s is not in:\n%s", rows[i].expected, text);
		free(text);
		capture_free(&capture);
	}
}

/* The JVM has about twenty threads of its own, which mostly wait for longer. */
static void test_threads_of_the_jvm_itself_come_behind_those_of_the_program(void **state)
{
	struct why_hangs hangs;
	struct capture capture;

	(void)state;
	for (uint32_t jvm = 0; jvm < 2; jvm++) {
		names.has_jvm = jvm;
		capture_begin(&capture, true);
		named(&capture, 10, CAPTURE_PID, "G1 Service");
		named(&capture, 11, CAPTURE_PID, "issuer");
		hang_add(&capture, &(struct hung){.tid = 10, .syscall = NR_FUTEX, .lock = 0x7000});
		hang_add(&capture,
			 &(struct hung){
				 .tid = 11, .syscall = NR_FUTEX, .lock = 0x7040, .from_ts = 5000});
		why_hangs_find(&hangs, capture_load(&capture, END_TS), &names);
		assert_int_equal(hangs.waits.len, 2);
		assert_int_equal(waiter(capture.model, &hangs.waits.data[0]), 10 + jvm);
		why_hangs_free(&hangs);
		capture_free(&capture);
	}
	names.has_jvm = true;
}

/* A wait for a monitor has a timeout. */
static void test_of_threads_that_are_all_stuck_not_all_wait_without_a_timeout(void **state)
{
	const uint32_t ways[THREADS] = {MONITOR, MONITOR, MONITOR, MONITOR};
	struct capture capture;
	char *text;

	(void)state;
	end_ts = 300000000;
	ways_add(&capture, ways, false);
	capture_load(&capture, end_ts);
	text = text_of(&capture, hang_print_deadlocks);
	assert_string_equal(text, "may be a deadlock: all 4 threads of t (10) have waited for "
				  "others of it all the time, for locks or the end of a thread\n");
	free(text);
	capture_free(&capture);
	end_ts = END_TS;
}

/* Stuck threads do not take the room of the others without an owner. */
static void test_an_uninterruptible_wait_is_shown_beside_many_stuck_ones(void **state)
{
	struct waffle_rec_state device = {.rec = {CAPTURE_START, 30, WAFFLE_REC_STATE, 0},
					  .tgid = CAPTURE_PID,
					  .state = WAFFLE_THREAD_BLOCKED,
					  .task_state = D,
					  .syscall = NR_FSYNC};
	const struct waffle_rec_open_wait open = {.rec = {300000000, 30, WAFFLE_REC_OPEN_WAIT, 0}};
	struct capture capture;
	char *text;

	(void)state;
	end_ts = 300000000;
	threads_named(&capture, 10, 30);
	stacks_add(&capture);
	for (uint32_t tid = 10; tid < 20; tid++)
		hang_add(&capture, &(struct hung){.tid = tid,
						  .flags = WAFFLE_OPEN_WAIT_INSIDE,
						  .stack = PY_LOCK,
						  .syscall = NR_FUTEX,
						  .lock = 0x7000 + 64 * tid});
	capture_add(&capture, &device);
	device.rec.ts = end_ts;
	device.at_end = 1;
	capture_add(&capture, &device);
	capture_add(&capture, &open);
	capture_load(&capture, end_ts);
	text = text_of(&capture, print_waits);
	assert_non_null(strstr(text, "uninterruptible (D) in fsync"));
	assert_null(strstr(text, "more; --evidence"));
	free(text);
	capture_free(&capture);
	end_ts = END_TS;
}

/* glibc stops a thread whose lock the kernel refuses, by a wait for a word that is 0. That may be
 * since it would be a deadlock, or since the owner has ended. */
static void test_a_thread_that_glibc_has_stopped_is_told_but_not_as_a_deadlock(void **state)
{
	(void)state;
	end_ts = 300000000;
	for (uint64_t expected = 0; expected < 2; expected++) {
		struct hung stopped = {.tid = 10,
				       .flags = WAFFLE_OPEN_WAIT_INSIDE,
				       .stack = PI,
				       .syscall = NR_FUTEX,
				       .lock = 0x7000,
				       .expected = expected};
		struct capture capture;
		struct why_hangs hangs;

		threads_named(&capture, 10, 11);
		stacks_add(&capture);
		hang_add(&capture, &stopped);
		hangs_from_begin(&capture, 11, 10, WAFFLE_OPEN_WAIT_WORD | WAFFLE_OPEN_WAIT_INSIDE);
		why_hangs_find(&hangs, capture_load(&capture, end_ts), &names);
		assert_int_equal(hangs.deadlocks.len, 0);
		assert_int_equal(hangs.stopped, !expected);
		if (!expected) {
			char *text = text_of(&capture, hang_print_deadlocks);

			assert_int_equal(strncmp(text,
						 "t (10) is stopped for ever by the C "
						 "library: the kernel refused its lock",
						 56),
					 0);
			free(text);
			assert_int_equal(hangs.waits.data[0].awaits, WHY_AWAITS_NOTHING);
			assert_int_equal(waiter(capture.model, &hangs.waits.data[0]), 10);
			assert_true(hangs.waits.data[0].stuck && hangs.waits.data[1].stuck);
		}
		why_hangs_free(&hangs);
		capture_free(&capture);
	}
	end_ts = END_TS;
}

/* The owner of a mutex in shared memory may have been another process. */
static void test_a_mutex_whose_owner_has_ended_is_never_released(void **state)
{
	static const struct {
		uint32_t stack;
		bool mutex, shared;
		const char *cause;
	} rows[] = {{MUTEX, true, false, "lock"},
		    {MUTEX, true, true, "lock"},
		    {CONDITION, false, false, "unknown"},
		    {0, false, false, "lock"}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct hung hung = {.tid = 10,
				    .flags = WAFFLE_OPEN_WAIT_MUTEX,
				    .stack = rows[i].stack,
				    .ended = 77,
				    .shared = rows[i].shared,
				    .syscall = NR_FUTEX,
				    .lock = 0x7000,
				    .expected = 2};
		const struct why_query query = {
			.tid = 10, .from_ts = 0, .to_ts = UINT64_MAX, .names = &names};
		struct capture capture;
		struct why_hangs hangs;
		struct why *why;

		threads_named(&capture, 10, 11);
		stacks_add(&capture);
		hang_add(&capture, &hung);
		why = ask(&capture, END_TS, &query);
		check_part(why, 0, rows[i].cause, END_TS - CAPTURE_START, 0,
			   rows[i].mutex ? "likely" : "unknown",
			   rows[i].shared  ? "futex 0x7000: thread 77 may have had it when it ended"
			   : rows[i].mutex ? "futex 0x7000: thread 77 had it when it ended"
					   : "futex 0x7000");
		why_hangs_find(&hangs, capture.model, &names);
		assert_int_equal(hangs.ended, rows[i].mutex);
		assert_int_equal(hangs.waits.data[0].stuck, rows[i].mutex);
		if (rows[i].mutex) {
			char *text = text_of(&capture, hang_print_deadlocks);
			const char *begin =
				rows[i].shared
					? "t (10) may wait for a lock that nobody can release: "
					  "thread 77 may have had it when it ended\n"
					: "t (10) waits for a lock that nobody can release: "
					  "thread 77 had it when it ended\n";
			const char *wait =
				rows[i].shared
					? "waits for lock 0x7000, which thread 77 may have had "
					  "when it ended, since before the capture began"
					: "waits for lock 0x7000, which thread 77 had when it "
					  "ended, since before the capture began";

			assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
			assert_non_null(strstr(text, wait));
			free(text);
		}
		why_hangs_free(&hangs);
		done(&capture, why);
	}
}

/* The threads and the waits of a long deadlock have limits. */
static void test_a_deadlock_of_many_threads_shows_the_first_ones(void **state)
{
	struct capture capture;
	unsigned lines = 0;
	char *text;

	(void)state;
	threads_named(&capture, 10, 34);
	for (uint32_t tid = 10; tid <= 34; tid++)
		hangs_from_begin(&capture, tid, tid < 34 ? tid + 1 : 10, WAFFLE_OPEN_WAIT_WORD);
	capture_load(&capture, END_TS);
	text = text_of(&capture, hang_print_deadlocks);
	assert_non_null(strstr(text, "t (thread 29) → … 5 more → t (10): each waits for what"));
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 1 + 20 + 1);
	assert_non_null(strstr(text, "\n  … 5 more; --evidence shows all\n"));
	free(text);
	capture_free(&capture);
}

static void test_owners_and_times_of_any_kind_are_read(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 50; seed++) {
		struct why_hangs hangs;
		struct capture capture;
		uint32_t in_cycles = 0;

		srand(seed);
		threads_named(&capture, 10, 29);
		for (uint32_t tid = 10; tid < 30; tid++)
			hangs_from_begin(&capture, tid, rand() % 3 ? 5 + (uint32_t)rand() % 30 : 0,
					 1u << rand() % 4);
		why_hangs_find(&hangs, capture_load(&capture, END_TS), NULL);
		for (size_t i = 0; i < hangs.deadlocks.len; i++) {
			uint32_t at = hangs.deadlocks.data[i].first;

			for (uint32_t k = 0; k < hangs.deadlocks.data[i].count; k++, in_cycles++) {
				assert_int_equal(hangs.waits.data[at].deadlock, i);
				at = hangs.waits.data[at].next;
			}
			assert_int_equal(at, hangs.deadlocks.data[i].first);
		}
		for (size_t i = 0; i < hangs.waits.len; i++)
			assert_int_equal(hangs.waits.data[i].deadlock != MODEL_NONE, i < in_cycles);
		why_hangs_free(&hangs);
		capture_free(&capture);
	}
}

/* ---- growth ---- */

static uint64_t find_ns(struct capture *capture)
{
	const struct model *model = capture_load(capture, end_ts);
	struct why_hangs hangs;
	uint64_t start = cpu_ns(), took;

	why_hangs_find(&hangs, model, &names);
	took = cpu_ns() - start;
	why_hangs_free(&hangs);
	capture_free(capture);
	return took;
}

/* Each thread waits for the next one, and the last one for something else. */
static uint64_t chain_ns(uint32_t count)
{
	struct capture capture;

	threads_named(&capture, 10, 9 + count);
	for (uint32_t tid = 10; tid < 10 + count; tid++)
		hangs_from_begin(&capture, tid, tid < 9 + count ? tid + 1 : 0,
				 WAFFLE_OPEN_WAIT_WORD);
	return find_ns(&capture);
}

static void test_a_long_chain_of_waits(void **state)
{
	(void)state;
	check_growth(chain_ns, 4000);
}

static uint64_t locks_ns(uint32_t count)
{
	struct capture capture;

	threads_named(&capture, 10, 9 + count);
	stacks_add(&capture);
	for (uint32_t tid = 10; tid < 10 + count; tid++)
		hang_add(&capture, &(struct hung){.tid = tid,
						  .flags = WAFFLE_OPEN_WAIT_INSIDE,
						  .stack = PY_LOCK,
						  .syscall = NR_FUTEX,
						  .lock = 0x7000 + 64 * (uint64_t)tid});
	return find_ns(&capture);
}

static void test_many_locks_of_one_process(void **state)
{
	(void)state;
	end_ts = 300000000;
	check_growth(locks_ns, 4000);
	end_ts = END_TS;
}

/* A thread that waits in connect() from the begin of the capture, and one that began later. A
 * record with the same end has what each waits for. */
static void test_open_waits_have_the_file_that_was_read_at_the_end(void **state)
{
	const uint64_t begins[] = {CAPTURE_START, CAPTURE_START + 100};
	struct capture capture;
	struct why *why;

	(void)state;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		struct waffle_rec_open_wait open = {.rec = {END_TS, 11, WAFFLE_REC_OPEN_WAIT, 0},
						    .from_ts = i ? begins[i] : 0};
		struct waffle_rec_state at = {.rec = {CAPTURE_START, 11, WAFFLE_REC_STATE, 0},
					      .tgid = CAPTURE_PID,
					      .state = WAFFLE_THREAD_BLOCKED,
					      .task_state = S,
					      .syscall = NR_CONNECT,
					      .args = {3}};

		threads_named(&capture, 11, 11);
		object(&capture, "socket:[7]", "tcp 10.0.0.1:5000 <-> 10.0.0.2:80");
		if (!i)
			capture_add(&capture, &at);
		else
			gets(&capture, CAPTURE_START + 10, 1, 0, 11, 0, 0, 0);
		if (i)
			waits(&capture, begins[i], 1, 11, 0, S, NR_CONNECT, 3, 0, 0);
		at.rec.ts = END_TS;
		at.at_end = 1;
		capture_add(&capture, &at);
		wait_details(&capture, i ? begins[i] : END_TS, END_TS, 11, 1, 0, 0);
		capture_add(&capture, &open);
		why = ask(&capture, END_TS,
			  &(struct why_query){.tid = 11, .from_ts = begins[i], .to_ts = END_TS});
		check_part(why, 0, "socket", END_TS - begins[i], 0, "unknown",
			   "socket:[7] (tcp 10.0.0.1:5000 <-> 10.0.0.2:80)");
		assert_int_equal(why->model->open_waits.data[0].object, 1);
		assert_int_equal(why->model->waits.len, 1);
		done(&capture, why);
	}
}

/* A process with two children waits for the end of one, by its number or whichever ends first. The
 * last row is the number of another process's child. */
static void test_a_wait_for_a_child_by_its_number_goes_on_with_that_child(void **state)
{
	static const struct {
		uint64_t number;
		uint32_t culprit;
		const char *cause, *grade;
	} rows[] = {{20, 20, "sleep", "likely"},
		    {21, 21, "disk-write", "likely"},
		    {(uint64_t)-1, 0, "process-exit", "unknown"},
		    {30, 0, "process-exit", "unknown"}};
	static const uint32_t pids[][2] = {{10, 1}, {20, 10}, {21, 10}, {30, 1}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		for (size_t k = 0; k < LENGTH(pids); k++) {
			struct store_process process = {pids[k][0], pids[k][1], CAPTURE_START, "t"};
			struct error err = ERROR_INIT;

			capture_must(store_writer_add_process(capture.writer, &process, &err), err);
			named(&capture, pids[k][0], pids[k][0], "t");
		}
		waits(&capture, CAPTURE_START, 0, 20, 0, S, NR_NANOSLEEP, 0, 0, 0);
		waits(&capture, CAPTURE_START, 1, 21, 0, D, NR_FSYNC, 3, 0, 0);
		waits(&capture, CAPTURE_START, 2, 30, 0, S, NR_NANOSLEEP, 0, 0, 0);
		waits(&capture, CAPTURE_START, 3, 10, 0, S, NR_WAIT4, rows[i].number, 0, 0);
		why = ask(
			&capture, END_TS,
			&(struct why_query){.tid = 10, .from_ts = CAPTURE_START, .to_ts = END_TS});
		check_part(why, 0, rows[i].cause, END_TS - CAPTURE_START, rows[i].culprit,
			   rows[i].grade, "");
		why_free(why);
		capture_free(&capture);
	}
}

static void process_add_as(struct capture *capture, uint32_t pid, uint32_t ppid, const char *title,
			   uint32_t flags)
{
	struct store_process process = {pid, ppid, CAPTURE_START, title};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_process(capture->writer, &process, &err), err);
	named_as(capture, pid, pid, "t", flags);
}

static void process_add(struct capture *capture, uint32_t pid, uint32_t ppid, const char *title)
{
	process_add_as(capture, pid, ppid, title, WAFFLE_TASK_TRACED_FLAG);
}

#define NR_WAITID 247

/* Its only child may be of another group. */
static void test_a_wait_for_children_of_a_group_goes_on_with_none(void **state)
{
	static const struct {
		int syscall;
		uint64_t first, second;
		uint32_t culprit;
	} rows[] = {{NR_WAIT4, 20, 0, 20},      {NR_WAIT4, (uint32_t)-1, 0, 20},
		    {NR_WAIT4, 0, 0, 0},        {NR_WAIT4, (uint32_t)-20, 0, 0},
		    {NR_WAITID, P_ALL, 0, 20},  {NR_WAITID, P_PID, 20, 20},
		    {NR_WAITID, P_PGID, 20, 0}, {NR_WAITID, P_PIDFD, 20, 0}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		process_add(&capture, 10, 1, "t");
		process_add(&capture, 20, 10, "t");
		waits(&capture, CAPTURE_START, 0, 20, 0, S, NR_NANOSLEEP, 0, 0, 0);
		waits(&capture, CAPTURE_START, 3, 10, 0, S, rows[i].syscall, rows[i].first,
		      rows[i].second, 0);
		why = ask(
			&capture, END_TS,
			&(struct why_query){.tid = 10, .from_ts = CAPTURE_START, .to_ts = END_TS});
		check_part(why, 0, rows[i].culprit ? "sleep" : "process-exit",
			   END_TS - CAPTURE_START, rows[i].culprit,
			   rows[i].culprit ? "likely" : "unknown", "");
		done(&capture, why);
	}
}

/* What is asked about thread 10, which waits with a stack all the time. Threads from 11 on of its
 * process sleep. */
static struct why *ask_about(struct capture *capture, const struct hung *hung, uint32_t others)
{
	threads_named(capture, 10, 10 + others);
	stacks_add(capture);
	hang_add(capture, hung);
	for (uint32_t i = 0; i < others; i++)
		waits(capture, CAPTURE_START, (uint16_t)i, 11 + i, 0, S, NR_NANOSLEEP, 0, 0, 0);
	return ask(capture, END_TS,
		   &(struct why_query){
			   .tid = 10, .from_ts = CAPTURE_START, .to_ts = END_TS, .names = &names});
}

/* A lock of Python says nothing of the thread that has to end. If there is only one, it is that. */
static void test_a_wait_for_the_end_of_the_only_other_thread_goes_on_with_that(void **state)
{
	static const struct {
		uint32_t stack, flags, others, culprit;
		const char *cause;
	} rows[] = {{PY_JOIN, WAFFLE_OPEN_WAIT_INSIDE, 1, 11, "sleep"},
		    {PY_JOIN, WAFFLE_OPEN_WAIT_INSIDE, 2, 0, "lock"},
		    {PY_JOIN, 0, 1, 0, "lock"}, /* it may have a timeout */
		    {PY_WAIT, WAFFLE_OPEN_WAIT_INSIDE, 1, 0, "lock"}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct hung hung = {.tid = 10,
				    .flags = rows[i].flags,
				    .stack = rows[i].stack,
				    .syscall = NR_FUTEX,
				    .lock = 0x7000,
				    .expected = 2};
		struct capture capture;
		struct why *why = ask_about(&capture, &hung, rows[i].others);
		const struct why_part *part = part_of(why, 0);

		assert_string_equal(why_causes[part->cause].name, rows[i].cause);
		assert_int_equal(tid_of(why->model, part->thread), rows[i].culprit);
		assert_int_equal(part->grade,
				 rows[i].culprit ? WHY_GRADE_LIKELY : WHY_GRADE_UNKNOWN);
		done(&capture, why);
	}
}

/* Thread 10 waits for the only other thread of its process, which has waited since before for
 * something outside. It goes on with that, unless that may be a wait for work, or began later. */
static void test_a_wait_goes_on_with_the_only_other_thread_that_hangs(void **state)
{
	static const struct {
		uint32_t stack, flags;
		int syscall;
		uint64_t from_ts;
		bool goes_on;
	} rows[] = {{PY_WAIT, WAFFLE_OPEN_WAIT_INSIDE, NR_OPENAT, 0, true},
		    {PY_LOCK, WAFFLE_OPEN_WAIT_INSIDE, NR_OPENAT, 0, false},
		    {PY_WAIT, 0, NR_OPENAT, 0, false}, /* it may have a timeout */
		    {PY_WAIT, WAFFLE_OPEN_WAIT_INSIDE, NR_WRITE, 0, true},
		    {PY_WAIT, WAFFLE_OPEN_WAIT_INSIDE, NR_ACCEPT, 0, false},
		    {PY_WAIT, WAFFLE_OPEN_WAIT_INSIDE, NR_READ, 0, false},
		    {PY_WAIT, WAFFLE_OPEN_WAIT_INSIDE, NR_POLL, 0, false},
		    {PY_WAIT, WAFFLE_OPEN_WAIT_INSIDE, NR_RECVFROM, 0, false},
		    {PY_WAIT, WAFFLE_OPEN_WAIT_INSIDE, NR_OPENAT, CAPTURE_START + 1000, false}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct hung hung = {.tid = 10,
				    .flags = rows[i].flags,
				    .stack = rows[i].stack,
				    .syscall = NR_FUTEX,
				    .lock = 0x7000};
		struct hung other = {
			.tid = 11, .syscall = rows[i].syscall, .from_ts = rows[i].from_ts};
		struct capture capture;
		const struct why_part *part;
		const struct why_step *step;
		struct why *why;

		threads_named(&capture, 10, 11);
		stacks_add(&capture);
		object(&capture, "/run/jobs", "fifo, nobody has opened it to read");
		hang_add(&capture, &hung);
		wait_details(&capture, END_TS, END_TS, 11, 1, 0, 0);
		hang_add(&capture, &other);
		why = ask(&capture, END_TS,
			  &(struct why_query){.tid = 10,
					      .from_ts = CAPTURE_START,
					      .to_ts = END_TS,
					      .names = &names});
		part = part_of(why, 0);
		step = &why->steps.data[part->step];
		assert_int_equal(step->left, rows[i].goes_on);
		assert_false(step->owned);
		if (rows[i].goes_on) {
			assert_int_equal(tid_of(why->model, step->by), 11);
			assert_string_equal(why_causes[part->cause].name, "pipe");
			assert_string_equal(strtab_get(why->texts, part->object),
					    "/run/jobs (fifo, nobody has opened it to read)");
		}
		done(&capture, why);
	}
}

/* The functions show what the wait is for, but not who has to end it. */
static void test_an_open_wait_for_a_lock_of_the_program_names_the_lock_and_no_holder(void **state)
{
	static const struct {
		uint32_t stack;
		int syscall;
		const char *cause, *grade, *object;
	} rows[] = {
		{PROGRAM, NR_EPOLL_WAIT, "lock", "likely", "a lock in PostgreSQL"},
		{STANDBY, NR_EPOLL_WAIT, "socket", "likely",
		 "a synchronous standby of PostgreSQL, which has to confirm the commit"},
		{PY_SHARED_LOCK, NR_FUTEX, "lock", "likely", "a lock of Python's multiprocessing"},
		{PY_NAMELESS_SHARED_LOCK, NR_FUTEX, "lock", "likely",
		 "a lock of Python's multiprocessing"},
		{METADATA, NR_FUTEX, "lock", "likely",
		 "a metadata lock of MariaDB or MySQL: which connection holds it is not recorded"},
		{PY_SHARED_WAIT, NR_FUTEX, "unknown", "unknown", "futex 0x7000"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct hung hung = {.tid = 10,
				    .stack = rows[i].stack,
				    .syscall = rows[i].syscall,
				    .lock = rows[i].syscall == NR_FUTEX ? 0x7000 : 0};
		struct capture capture;
		struct why *why = ask_about(&capture, &hung, 1);

		check_part(why, 0, rows[i].cause, END_TS - CAPTURE_START, 0, rows[i].grade,
			   rows[i].object);
		done(&capture, why);
	}
}

/* A client waits for a server that is known to have the other end. The server sleeps, or waits for
 * the client; if it has several threads, any of them may be the one that should answer. */
static void test_a_wait_for_an_answer_goes_on_with_the_process_at_the_other_end(void **state)
{
	static const struct {
		uint32_t threads;
		int syscall;
		bool remote; /* no traced process has the other end */
		uint32_t culprit;
		const char *cause, *grade, *object;
	} rows[] = {
		{1, NR_NANOSLEEP, false, 20, "sleep", "likely", ""},
		{2, NR_NANOSLEEP, false, 20, "socket", "likely",
		 "socket:[1] (tcp 127.0.0.1:5 <-> 127.0.0.1:80)"},
		{1, NR_READ, false, 10, "socket", "likely",
		 "socket:[2] (tcp 127.0.0.1:80 <-> 127.0.0.1:5)"},
		{1, NR_NANOSLEEP, true, 0, "socket", "unknown",
		 "socket:[1] (tcp 127.0.0.1:5 <-> 127.0.0.1:80)"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct store_object near = {.pid = 10,
					    .name = "socket:[1]",
					    .detail = "tcp 127.0.0.1:5 <-> 127.0.0.1:80"};
		struct store_object far = {.pid = 20,
					   .ino = 2,
					   .name = "socket:[2]",
					   .detail = "tcp 127.0.0.1:80 <-> 127.0.0.1:5"};
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		for (uint32_t pid = 10; pid <= 20; pid += 10) {
			struct store_process process = {pid, 1, CAPTURE_START, "t"};

			capture_must(store_writer_add_process(capture.writer, &process, &err), err);
			named(&capture, pid, pid, "t");
		}
		if (rows[i].threads > 1)
			named(&capture, 21, 20, "t");
		capture_must(store_writer_add_object(capture.writer, &near, &err), err);
		if (!rows[i].remote)
			capture_must(store_writer_add_object(capture.writer, &far, &err), err);
		waits(&capture, CAPTURE_START, 0, 20, 0, S, rows[i].syscall, 7, 0, 0);
		waits(&capture, CAPTURE_START, 3, 10, 0, S, NR_RECVFROM, 7, 0, 0);
		wait_details(&capture, CAPTURE_START, END_TS, 10, 1, 0, 0);
		if (rows[i].syscall == NR_READ)
			wait_details(&capture, CAPTURE_START, END_TS, 20, 2, 0, 0);
		why = ask(
			&capture, END_TS,
			&(struct why_query){.tid = 10, .from_ts = CAPTURE_START, .to_ts = END_TS});
		check_part(why, 0, rows[i].cause, END_TS - CAPTURE_START, rows[i].culprit,
			   rows[i].grade, rows[i].object);
		why_free(why);
		capture_free(&capture);
	}
}

static void waited_within(struct capture *capture, uint64_t from_ts, uint64_t ts, uint32_t tid,
			  uint32_t user_stack)
{
	capture_add(capture, &(struct waffle_rec_wait){.rec = {ts, tid, WAFFLE_REC_WAIT, 0},
						       .from_ts = from_ts,
						       .user_stack = user_stack});
}

/* A program polls a connection and an eventfd by which its own threads wake it. The server waits
 * for a lock of PostgreSQL, and wakes up once to look for a deadlock. */
static void test_a_poll_of_one_connection_goes_on_with_the_server_and_its_lock(void **state)
{
	static const struct {
		const char *list, *cause, *grade, *object;
	} rows[] = {
		{"2 descriptors: tcp 127.0.0.1:5 <-> 127.0.0.1:80, anon_inode:[eventfd]", "lock",
		 "likely", "a lock in PostgreSQL"},
		{"2 descriptors: anon_inode:[eventfd], tcp 127.0.0.1:5 <-> 127.0.0.1:80", "lock",
		 "likely", "a lock in PostgreSQL"},
		{"2 descriptors: pipe:[4], tcp 127.0.0.1:5 <-> 127.0.0.1:80", "unknown", "unknown",
		 "2 descriptors: pipe:[4], tcp 127.0.0.1:5 <-> 127.0.0.1:80"},
		{"2 descriptors: tcp 127.0.0.1:5 <-> 127.0.0.1:80, tcp 127.0.0.1:6 <-> "
		 "127.0.0.1:80",
		 "unknown", "unknown",
		 "2 descriptors: tcp 127.0.0.1:5 <-> 127.0.0.1:80, tcp 127.0.0.1:6 <-> "
		 "127.0.0.1:80"},
		{"many descriptors: tcp 127.0.0.1:5 <-> 127.0.0.1:80, anon_inode:[eventfd]",
		 "unknown", "unknown",
		 "many descriptors: tcp 127.0.0.1:5 <-> 127.0.0.1:80, anon_inode:[eventfd]"},
	};
	const uint64_t looks_ts = CAPTURE_START + (END_TS - CAPTURE_START) / 2;
	struct store_object far = {.pid = 20,
				   .ino = 2,
				   .name = "socket:[2]",
				   .detail = "tcp 127.0.0.1:80 <-> 127.0.0.1:5"};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		stacks_add(&capture);
		process_add(&capture, 10, 1, "t");
		process_add(&capture, 20, 1, "t");
		object(&capture, rows[i].list, "");
		capture_must(store_writer_add_object(capture.writer, &far, &err), err);
		waits(&capture, CAPTURE_START, 0, 20, 0, S, NR_EPOLL_WAIT, 7, 0, 0);
		waits(&capture, CAPTURE_START, 3, 10, 0, S, NR_POLL, 0x7000, 2, 0);
		gets(&capture, looks_ts, 0, 0, 20, 0, looks_ts, SOFT);
		waits(&capture, looks_ts, 0, 20, 0, S, NR_EPOLL_WAIT, 7, 0, 0);
		waited_within(&capture, CAPTURE_START, looks_ts, 20, PROGRAM);
		waited_within(&capture, looks_ts, END_TS, 20, PROGRAM);
		wait_details(&capture, CAPTURE_START, END_TS, 10, 1, 0, 0);
		why = ask(&capture, END_TS,
			  &(struct why_query){.tid = 10,
					      .from_ts = CAPTURE_START,
					      .to_ts = END_TS,
					      .names = &names});
		check_part(why, 0, rows[i].cause, END_TS - CAPTURE_START, 0, rows[i].grade,
			   rows[i].object);
		done(&capture, why);
	}
}

static void socket_add(struct capture *capture, uint32_t pid, uint64_t ino, const char *detail)
{
	const struct store_object add = {
		.pid = pid, .ino = ino, .name = "socket:[1]", .detail = detail};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_object(capture->writer, &add, &err), err);
}

/* Thread 10 waits for other ranks. Thread 20 sleeps, or waits as its stack shows, and so does 21 of
 * the same process, to which the first one has a connection. */
static void test_a_rank_waits_for_the_only_one_that_is_in_no_collective(void **state)
{
	static const struct {
		uint32_t main, other;
		bool connected;
		const char *more; /* another connection of process 10 */
		uint32_t culprit;
		const char *cause, *object;
	} rows[] = {
		{0, RANK_LOOP, true, "", 20, "sleep", ""},
		{0, RANK_LOOP, true, "tcp 127.0.0.1:15 <-> 127.0.0.1:16", 20, "sleep", ""},
		/* With a rank that is not recorded. */
		{0, RANK_LOOP, true, "tcp 127.0.0.1:7 <-> 127.0.0.1:8", 0, "collective",
		 "the other ranks in a collective"},
		{0, RANK_LOOP, false, "", 0, "collective", "the other ranks in a collective"},
		{0, CONDITION, true, "", 0, "collective", "the other ranks in a collective"},
		{RANKS, RANK_LOOP, true, "", 0, "collective", "the other ranks in a collective"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct hung hung[] = {
			{.tid = 10, .pid = 10, .stack = RANKS, .syscall = NR_FUTEX, .lock = 0x7000},
			{.tid = 20,
			 .pid = 20,
			 .stack = rows[i].main,
			 .syscall = rows[i].main ? NR_FUTEX : NR_NANOSLEEP},
			{.tid = 21, .pid = 20, .stack = rows[i].other, .syscall = NR_FUTEX}};
		struct capture capture;
		struct why_hangs hangs;
		struct why *why;

		capture_begin(&capture, true);
		stacks_add(&capture);
		process_add(&capture, 10, 1, "t");
		process_add(&capture, 20, 1, "t");
		named(&capture, 21, 20, "t");
		socket_add(&capture, 10, 1, "tcp 127.0.0.1:5 <-> 127.0.0.1:6");
		if (*rows[i].more)
			socket_add(&capture, 10, 3, rows[i].more);
		socket_add(&capture, 20, 4, "tcp 127.0.0.1:16 <-> 127.0.0.1:15");
		if (rows[i].connected)
			socket_add(&capture, 20, 2, "tcp 127.0.0.1:6 <-> 127.0.0.1:5");
		for (size_t k = 0; k < LENGTH(hung); k++)
			hang_add(&capture, &hung[k]);
		why = ask(&capture, END_TS,
			  &(struct why_query){.tid = 10, .to_ts = END_TS, .names = &names});
		check_part(why, 0, rows[i].cause, END_TS - CAPTURE_START, rows[i].culprit, "likely",
			   rows[i].object);
		why_hangs_find(&hangs, capture.model, &names);
		assert_int_equal(waiter(capture.model, &hangs.waits.data[0]), 10);
		assert_true(hangs.waits.data[0].stuck);
		why_hangs_free(&hangs);
		done(&capture, why);
	}
}

/* Process 10 has many connections to a process of many threads. */
static uint64_t ranks_ns(uint32_t count)
{
	const struct why_query query = {.tid = 10, .to_ts = END_TS, .names = &names};
	struct capture capture;
	struct why *why;
	uint64_t ns;

	capture_begin(&capture, true);
	stacks_add(&capture);
	process_add(&capture, 10, 1, "t");
	process_add(&capture, 20, 1, "t");
	hang_add(
		&capture,
		&(struct hung){
			.tid = 10, .pid = 10, .stack = RANKS, .syscall = NR_FUTEX, .lock = 0x7000});
	for (uint32_t i = 0; i < count; i++) {
		char near[64], far[64];

		snprintf(near, sizeof(near), "tcp 127.0.0.1:%u <-> 127.0.0.1:6", 100 + i);
		snprintf(far, sizeof(far), "tcp 127.0.0.1:6 <-> 127.0.0.1:%u", 100 + i);
		socket_add(&capture, 10, 2 * i + 1, near);
		socket_add(&capture, 20, 2 * i + 2, far);
		named(&capture, 100000 + i, 20, "t");
		hang_add(&capture, &(struct hung){.tid = 100000 + i,
						  .pid = 20,
						  .stack = CONDITION,
						  .syscall = NR_FUTEX});
	}
	ns = cpu_ns();
	why = ask(&capture, END_TS, &query);
	ns = cpu_ns() - ns;
	check_part(why, 0, "collective", END_TS - CAPTURE_START, 0, "likely",
		   "the other ranks in a collective");
	done(&capture, why);
	return ns;
}

static void test_many_connections_to_a_process_of_many_threads(void **state)
{
	(void)state;
	check_growth(ranks_ns, 1000);
}

static void test_threads_that_wait_for_other_ranks_are_no_standstill(void **state)
{
	struct capture capture;
	struct why_hangs hangs;

	(void)state;
	end_ts = 300000000;
	threads_named(&capture, 10, 11);
	stacks_add(&capture);
	for (uint32_t tid = 10; tid < 12; tid++)
		hang_add(&capture, &(struct hung){.tid = tid,
						  .stack = RANKS,
						  .flags = WAFFLE_OPEN_WAIT_INSIDE,
						  .syscall = NR_FUTEX,
						  .lock = 0x7000});
	why_hangs_find(&hangs, capture_load(&capture, end_ts), &names);
	assert_int_equal(hangs.standstills.len, 0);
	assert_true(hangs.waits.data[0].stuck);
	why_hangs_free(&hangs);
	capture_free(&capture);
	end_ts = END_TS;
}

/* A poll() of pipes whose other ends one process holds goes on with that process, if it is traced.
 * One of other lists says what it polls. */
static void test_a_poll_of_pipes_goes_on_with_the_process_at_all_other_ends(void **state)
{
	static const char list[] = "2 descriptors: pipe:[1], pipe:[2]";
	static const struct {
		const char *detail;
		uint32_t culprit;
		const char *cause, *grade, *object;
	} rows[] = {
		{"other ends of process 20, t", 20, "sleep", "likely", ""},
		{"other ends of process 99, t", 0, "pipe", "unknown",
		 "2 descriptors: pipe:[1], pipe:[2] (other ends of process 99, t)"},
		{"pipe:[1]: write end of process 20, t", 0, "unknown", "unknown",
		 "2 descriptors: pipe:[1], pipe:[2] (pipe:[1]: write end of process 20, t)"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		process_add(&capture, 10, 1, "t");
		process_add(&capture, 20, 10, "t");
		object(&capture, list, rows[i].detail);
		waits(&capture, CAPTURE_START, 0, 20, 0, S, NR_NANOSLEEP, 0, 0, 0);
		waits(&capture, CAPTURE_START, 3, 10, 0, S, NR_POLL, 0x7000, 2, 0);
		wait_details(&capture, CAPTURE_START, END_TS, 10, 1, 0, 0);
		why = ask(
			&capture, END_TS,
			&(struct why_query){.tid = 10, .from_ts = CAPTURE_START, .to_ts = END_TS});
		check_part(why, 0, rows[i].cause, END_TS - CAPTURE_START, rows[i].culprit,
			   rows[i].grade, rows[i].object);
		done(&capture, why);
	}
}

/* A process that waits for its number's object, or for its child: 10 for the first one, its child
 * 20 for the second one. */
struct end_wait {
	int syscall;
	const char *detail;
	uint64_t timeout;    /* of poll(); that of others is not looked at */
	uint16_t task_state; /* 0: S */
};

#define FOREVER UINT64_MAX

/* What another thread of process 20 does. */
enum end_thread {
	NO_THREAD,
	WAITS_INSIDE,
	SLEEPS_TOO,
	WAITS_OUTSIDE,
	IS_AWAKE,
};

static void end_thread_add(struct capture *capture, enum end_thread thread)
{
	struct hung hung = {.tid = 21, .pid = 20, .syscall = NR_FUTEX, .lock = 0x7000};

	if (thread == NO_THREAD)
		return;
	named(capture, 21, 20, "t");
	if (thread == WAITS_INSIDE)
		hung.flags = WAFFLE_OPEN_WAIT_INSIDE;
	if (thread == SLEEPS_TOO)
		hung.syscall = NR_NANOSLEEP;
	if (thread != IS_AWAKE)
		hang_add(capture, &hung);
}

static void end_waits_add(struct capture *capture, const struct end_wait waits[2],
			  enum end_thread thread)
{
	capture_begin(capture, true);
	for (uint32_t i = 0; i < 2; i++) {
		bool socket = !strncmp(waits[i].detail, "unix", strlen("unix"));

		process_add(capture, 10 * (i + 1), i ? 10 : 1, "t");
		object(capture, socket ? "socket:[1]" : "/srv/file", waits[i].detail);
	}
	end_thread_add(capture, thread);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t pid = 10 * (i + 1);

		if (*waits[i].detail)
			wait_details(capture, end_ts, end_ts, pid, i + 1, 0, 0);
		hang_add(capture, &(struct hung){.tid = pid,
						 .pid = pid,
						 .syscall = waits[i].syscall,
						 .lock = waits[i].syscall == NR_WAIT4 ? 20 : 0,
						 .expected = waits[i].timeout,
						 .task_state = waits[i].task_state});
	}
}

#define LOCKED_BY_20 "ext4, locked by process 20, t"
#define LOCKED_BY_10 "ext4, locked by process 10, t"
#define READ_BY_20 "read end of process 20, t"
#define WRITTEN_BY_20 "write end of process 20, t"
#define READ_BY_10 "read end of process 10, t"

#define WRITTEN_BY_10 "write end of process 10, t"

/* Processes wait for each other if each has what the other one waits for, nobody else has it, and
 * neither has a timeout, nor another thread, unless that is idle and a pipe is full. */
static const struct {
	struct end_wait waits[2];
	enum end_thread thread;
	uint32_t deadlocks;
	const char *begin;
} file_waits[] = {
	{{{NR_FLOCK, LOCKED_BY_20, 0, 0}, {NR_FLOCK, LOCKED_BY_10, 0, 0}},
	 NO_THREAD,
	 1,
	 "deadlock: t (10) → t (20) → t (10): each waits for what the next one holds\n"
	 "  t (10) blocked in flock on /srv/file (ext4, locked by process 20, t), since "},
	{{{NR_FLOCK, LOCKED_BY_20 ", and its descendants u (21)", 0, 0},
	  {NR_FLOCK, LOCKED_BY_10, 0, 0}},
	 NO_THREAD,
	 1,
	 "may be "},
	{{{NR_WRITE, READ_BY_20, 0, 0}, {NR_WRITE, READ_BY_10, 0, 0}},
	 NO_THREAD,
	 1,
	 "may be a deadlock: t (10) → t (20) → t (10): each waits for the next one, at a "
	 "pipe, for a lock or for its exit; only a signal can end that\n"},
	{{{NR_WAIT4, "", 0, 0}, {NR_WRITE, READ_BY_10, 0, 0}}, NO_THREAD, 1, "may be "},
	{{{NR_WAIT4, "", 0, 0}, {NR_EPOLL_WAIT, READ_BY_10, 0, 0}}, NO_THREAD, 0, ""},
	{{{NR_READ, WRITTEN_BY_20, 0, 0}, {NR_FLOCK, LOCKED_BY_10, 0, 0}}, NO_THREAD, 1, "may be "},
	{{{NR_POLL, READ_BY_20, FOREVER, 0}, {NR_WRITE, READ_BY_10, 0, 0}},
	 NO_THREAD,
	 1,
	 "may be "},
	{{{NR_POLL, READ_BY_20, 5000, 0}, {NR_WRITE, READ_BY_10, 0, 0}}, NO_THREAD, 0, ""},
	{{{NR_EPOLL_WAIT, READ_BY_20, 0, 0}, {NR_WRITE, READ_BY_10, 0, 0}}, NO_THREAD, 0, ""},
	{{{NR_WRITE, READ_BY_20, 0, 0}, {NR_WRITE, READ_BY_10, 0, WAFFLE_TASK_STOPPED}},
	 NO_THREAD,
	 0,
	 ""},
	{{{NR_FLOCK, LOCKED_BY_20, 0, 0}, {NR_FLOCK, LOCKED_BY_10, 0, 0}}, WAITS_INSIDE, 0, ""},
	{{{NR_WRITE, READ_BY_20, 0, 0}, {NR_READ, WRITTEN_BY_10, 0, 0}},
	 WAITS_INSIDE,
	 1,
	 "may be a deadlock: t (10) → t (20) → t (10): each waits for the next one, at a "
	 "pipe, for a lock or for its exit; only a signal or another thread of these "
	 "processes can end that\n"},
	{{{NR_READ, WRITTEN_BY_20, 0, 0}, {NR_WRITE, READ_BY_10, 0, 0}}, SLEEPS_TOO, 1, "may be "},
	{{{NR_WAIT4, "", 0, 0}, {NR_WRITE, READ_BY_10, 0, 0}}, WAITS_INSIDE, 1, "may be "},
	/* The other thread of 20 may be the one that writes, or just be slow to read. */
	{{{NR_WRITE, READ_BY_20, 0, 0}, {NR_WRITE, READ_BY_10, 0, 0}}, WAITS_OUTSIDE, 0, ""},
	{{{NR_WRITE, READ_BY_20, 0, 0}, {NR_WRITE, READ_BY_10, 0, 0}}, IS_AWAKE, 0, ""},
	{{{NR_READ, WRITTEN_BY_20, 0, 0}, {NR_READ, WRITTEN_BY_10, 0, 0}}, WAITS_INSIDE, 0, ""},
	/* Sockets may have a timeout. */
	{{{NR_READ, "unix, other end of process 20, t", 0, 0},
	  {NR_READ, "unix, other end of process 10, t", 0, 0}},
	 NO_THREAD,
	 0,
	 ""},
	{{{NR_WRITE, READ_BY_20, 0, 0}, {NR_FLOCK, "ext4", 0, 0}}, NO_THREAD, 0, ""},
	{{{NR_FLOCK, LOCKED_BY_20, 0, 0},
	  {NR_FLOCK, "ext4, locked by 2 processes: t (10), t (30)", 0, 0}},
	 NO_THREAD,
	 0,
	 ""},
};

static void test_processes_may_wait_for_each_other_at_files(void **state)
{
	(void)state;
	end_ts = 300000000;
	for (size_t i = 0; i < LENGTH(file_waits); i++) {
		const struct why_query query = {.tid = 10, .from_ts = 0, .to_ts = UINT64_MAX};
		struct capture capture;
		struct why_hangs hangs;
		struct why *why;
		char *text;

		end_waits_add(&capture, file_waits[i].waits, file_waits[i].thread);
		why = ask(&capture, end_ts, &query);
		text = text_of(&capture, hang_print_deadlocks);
		assert_int_equal(strncmp(text, file_waits[i].begin, strlen(file_waits[i].begin)),
				 0);
		assert_true(*file_waits[i].begin || !*text);
		free(text);
		why_hangs_find(&hangs, capture.model, NULL);
		assert_int_equal(hangs.deadlocks.len, file_waits[i].deadlocks);
		why_hangs_free(&hangs);
		done(&capture, why);
	}
	end_ts = END_TS;
}

/* A wait for the lock of a file goes on with the process that holds it. */
static void test_a_wait_for_the_lock_of_a_file_goes_on_with_its_holder(void **state)
{
	static const struct {
		struct end_wait other;
		const char *detail;
		enum end_thread thread;
		uint32_t culprit;
		const char *cause, *grade, *object;
	} rows[] = {
		{{NR_NANOSLEEP, "", 0, 0}, LOCKED_BY_20, NO_THREAD, 20, "sleep", "likely", ""},
		{{NR_NANOSLEEP, "", 0, 0},
		 LOCKED_BY_20,
		 IS_AWAKE,
		 20,
		 "lock",
		 "likely",
		 "/srv/file (ext4, locked by process 20, t)"},
		{{NR_FLOCK, LOCKED_BY_10, 0, 0},
		 LOCKED_BY_20,
		 NO_THREAD,
		 10,
		 "lock",
		 "certain",
		 "/srv/file (ext4, locked by process 10, t)"},
		{{NR_NANOSLEEP, "", 0, 0},
		 LOCKED_BY_10,
		 NO_THREAD,
		 10,
		 "lock",
		 "certain",
		 "/srv/file (ext4, locked by process 10, t)"},
		{{NR_NANOSLEEP, "", 0, 0},
		 "ext4, locked by process 99, t",
		 NO_THREAD,
		 0,
		 "lock",
		 "unknown",
		 "/srv/file (ext4, locked by process 99, t)"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct end_wait both[2] = {{NR_FLOCK, rows[i].detail, 0, 0}, rows[i].other};
		struct capture capture;
		struct why *why;

		end_waits_add(&capture, both, rows[i].thread);
		why = ask(
			&capture, END_TS,
			&(struct why_query){.tid = 10, .from_ts = CAPTURE_START, .to_ts = END_TS});
		check_part(why, 0, rows[i].cause, END_TS - CAPTURE_START, rows[i].culprit,
			   rows[i].grade, rows[i].object);
		assert_int_equal(why_outside_find(why).pid, rows[i].culprit ? 0 : 99);
		done(&capture, why);
	}
}

#define NEAR_END "tcp 127.0.0.1:5 <-> 127.0.0.1:80"
#define FAR_END "tcp 127.0.0.1:80 <-> 127.0.0.1:5"

/* Process 10 reads from `own` to the end, while process 20 waits in a call. */
static const struct {
	const char *name, *own;
	struct {
		uint32_t pid;
		const char *detail;
	} others[2]; /* sockets */
	int call;
	uint32_t culprit;
	const char *cause, *grade, *object;
} other_ends[] = {
	{"/srv/fifo",
	 "fifo, write end of process 99, t, which is stopped",
	 {{0}},
	 NR_EPOLL_WAIT,
	 0,
	 "stopped",
	 "likely",
	 "/srv/fifo (fifo, write end of process 99, t, which is stopped)"},
	{"/srv/fifo",
	 "fifo, write end of process 99, t",
	 {{0}},
	 NR_EPOLL_WAIT,
	 0,
	 "pipe",
	 "unknown",
	 "/srv/fifo (fifo, write end of process 99, t)"},
	{"socket:[1]",
	 NEAR_END,
	 {{0, FAR_END ", which is gone"}},
	 NR_EPOLL_WAIT,
	 0,
	 "socket",
	 "likely",
	 "socket:[1] (" NEAR_END "): no socket is at the other end any more"},
	{"socket:[1]",
	 NEAR_END,
	 {{0, FAR_END ", with 12 bytes unread"}, {20, FAR_END}},
	 NR_EPOLL_WAIT,
	 20,
	 "socket",
	 "likely",
	 "socket:[1] (" NEAR_END "): 12 bytes are unread there, while t waits in "
	 "epoll_wait"},
	{"socket:[1]",
	 "unix, other end of process 20, t, with 12 bytes unread",
	 {{0}},
	 NR_EPOLL_WAIT,
	 20,
	 "socket",
	 "likely",
	 "socket:[1] (unix, other end of process 20, t, with 12 bytes unread): t "
	 "waits in epoll_wait"},
	/* A proxy. */
	{"socket:[1]",
	 "unix, other end of process 20, t, with 12 bytes unread",
	 {{20, "tcp 127.0.0.1:40000 <-> 127.0.0.1:81"}},
	 NR_EPOLL_WAIT,
	 20,
	 "socket",
	 "likely",
	 "socket:[1] (unix, other end of process 20, t, with 12 bytes unread)"},
	{"socket:[1]",
	 "unix, other end of process 20, t, with 12 bytes unread",
	 {{0}},
	 NR_NANOSLEEP,
	 20,
	 "sleep",
	 "likely",
	 ""},
	{"socket:[1]",
	 NEAR_END,
	 {{10, "tcp 127.0.0.1:80"}, {0, FAR_END ", not accepted yet"}},
	 NR_EPOLL_WAIT,
	 10,
	 "socket",
	 "likely",
	 "socket:[1] (" NEAR_END ", not accepted yet)"},
	{"socket:[1]",
	 NEAR_END,
	 {{20, "tcp 127.0.0.1:80"}, {0, FAR_END ", not accepted yet"}},
	 NR_NANOSLEEP,
	 20,
	 "sleep",
	 "likely",
	 ""},
};

static void test_the_other_end_explains_a_wait_as_it_is_at_the_end(void **state)
{
	(void)state;
	end_ts = 300000000;
	for (size_t i = 0; i < LENGTH(other_ends); i++) {
		struct store_object object = {.pid = 10,
					      .ino = 1,
					      .name = other_ends[i].name,
					      .detail = other_ends[i].own};
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		process_add(&capture, 10, 1, "t");
		process_add(&capture, 20, 1, "t");
		capture_must(store_writer_add_object(capture.writer, &object, &err), err);
		object.name = "socket:";
		for (size_t k = 0; k < 2 && other_ends[i].others[k].detail; k++) {
			object.pid = other_ends[i].others[k].pid;
			object.ino++;
			object.detail = other_ends[i].others[k].detail;
			capture_must(store_writer_add_object(capture.writer, &object, &err), err);
		}
		wait_details(&capture, end_ts, end_ts, 10, 1, 0, 0);
		hang_add(&capture, &(struct hung){.tid = 10, .pid = 10, .syscall = NR_READ});
		hang_add(&capture,
			 &(struct hung){.tid = 20, .pid = 20, .syscall = other_ends[i].call});
		why = ask(
			&capture, end_ts,
			&(struct why_query){.tid = 10, .from_ts = CAPTURE_START, .to_ts = end_ts});
		check_part(why, 0, other_ends[i].cause, end_ts - CAPTURE_START,
			   other_ends[i].culprit, other_ends[i].grade, other_ends[i].object);
		done(&capture, why);
	}
	end_ts = END_TS;
}

/* An end without a process is of this connection only if the capture has one host, and one network
 * namespace. */
static void test_an_end_without_a_process_may_be_that_of_another_network(void **state)
{
	static const struct {
		const char *networks[2]; /* the network namespace of each process */
		unsigned hosts;
		const char *object;
	} rows[] = {
		{{"1", "1"},
		 1,
		 "socket:[1] (" NEAR_END "): no socket is at the other end any more"},
		{{"1", "2"}, 1, "socket:[1] (" NEAR_END ")"},
		{{"1", "1"}, 2, "socket:[1] (" NEAR_END ")"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct store_host host = {
			.name = "a", .boot_id = "", .kernel = "", .machine = "x86_64"};
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		for (unsigned k = 0; rows[i].hosts > 1 && k < rows[i].hosts; k++)
			capture_must(store_writer_add_host(capture.writer, &host, &err), err);
		for (uint32_t k = 0; k < 2; k++) {
			const struct store_attribute network = {.pid = 10 * (k + 1),
								.ts = CAPTURE_START,
								.key = STORE_NETWORK,
								.value = rows[i].networks[k]};

			process_add(&capture, network.pid, 1, "t");
			capture_must(store_writer_add_attribute(capture.writer, &network, &err),
				     err);
		}
		socket_add(&capture, 10, 1, NEAR_END);
		socket_add(&capture, 0, 2, FAR_END ", which is gone");
		wait_details(&capture, END_TS, END_TS, 10, 1, 0, 0);
		hang_add(&capture, &(struct hung){.tid = 10, .pid = 10, .syscall = NR_READ});
		why = ask(
			&capture, END_TS,
			&(struct why_query){.tid = 10, .from_ts = CAPTURE_START, .to_ts = END_TS});
		assert_string_equal(strtab_get(why->texts, part_of(why, 0)->object),
				    rows[i].object);
		done(&capture, why);
	}
}

static void test_a_number_that_no_host_gives_names_no_holder(void **state)
{
	static const struct {
		uint32_t pid;
		const char *detail;
		uint32_t holder;
	} rows[] = {{10, "ext4, locked by process 42, t", 42},
		    {1u << STORE_PID_BITS | 10, "ext4, locked by process 42, t",
		     1u << STORE_PID_BITS | 42},
		    {10, "ext4, locked by process 4194346, t", 0}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(why_holder_pid(&(struct store_object){.pid = rows[i].pid,
								       .detail = rows[i].detail}),
				 rows[i].holder);
}

/* Process 10 waits for its children 20 and 21, which wait for a lock that they share. */
static void family_add(struct capture *capture, uint64_t number, bool killed)
{
	struct waffle_rec_exit end = {
		.rec = {CAPTURE_START, 22, WAFFLE_REC_EXIT, 0}, .tgid = 22, .code = SIGKILL};

	capture_begin(capture, true);
	process_add(capture, 10, 1, "t");
	for (uint32_t pid = 20; pid < 23; pid++)
		process_add(capture, pid, 10, "t");
	stacks_add(capture);
	if (killed)
		capture_add(capture, &end);
	hang_add(capture,
		 &(struct hung){.tid = 10, .pid = 10, .syscall = NR_WAIT4, .lock = number});
	for (uint32_t pid = 20; pid < 22; pid++)
		hang_add(capture, &(struct hung){.tid = pid,
						 .pid = pid,
						 .stack = PY_SHARED_LOCK,
						 .syscall = NR_FUTEX,
						 .lock = 0x7000});
}

static void test_a_family_of_which_all_wait_for_each_other_may_hang(void **state)
{
	const struct why_query query = {
		.tid = 10, .from_ts = 0, .to_ts = UINT64_MAX, .names = &names};

	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		struct capture capture;
		struct why *why;
		char *text;

		family_add(&capture, 20, killed);
		why = ask(&capture, END_TS, &query);
		text = text_of(&capture, hang_print_deadlocks);
		if (killed) {
			check_part(why, 0, "lock", END_TS - CAPTURE_START, 0, "likely",
				   "a lock of Python's multiprocessing: may be held by t (22), "
				   "which SIGKILL has ended");
			assert_string_equal(
				text, "may be a deadlock: all 3 threads of t (10) and its "
				      "descendants wait for each other: for the end of a child, or "
				      "a lock that they share, whose holder may have ended\n");
		} else {
			check_part(why, 0, "lock", END_TS - CAPTURE_START, 0, "likely",
				   "a lock of Python's multiprocessing");
			assert_string_equal(text, ""); /* the capture does not have process 22 */
		}
		free(text);
		done(&capture, why);
	}
}

/* Process 20 waits for a lock that it shares with 10, 21 and 22, which a signal has ended. */
static void test_a_killed_process_may_have_a_lock_only_if_no_other_one_can(void **state)
{
	static const struct {
		int syscall;
		uint32_t stack;
		uint64_t born_ts; /* of 21 */
		int parent_call;
		bool untraced; /* there is a child that is not traced */
		bool may;
	} rows[] = {{NR_FUTEX, PY_SHARED_LOCK, 1, NR_WAIT4, false, true},
		    /* A worker of a pool has the lock while it waits. */
		    {NR_READ, 0, 1, NR_WAIT4, false, false},
		    {NR_FUTEX, PY_SHARED_LOCK, CAPTURE_START + 1000, NR_WAIT4, false, false},
		    {NR_FUTEX, PY_SHARED_LOCK, 1, NR_READ, false, false},
		    {NR_FUTEX, PY_SHARED_LOCK, 1, NR_WAIT4, true, false}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct waffle_rec_exit end = {.rec = {CAPTURE_START, 22, WAFFLE_REC_EXIT, 0},
					      .tgid = 22,
					      .code = SIGTERM};
		struct waffle_rec_task born = {.rec = {CAPTURE_START + 1, 21, WAFFLE_REC_TASK, 0},
					       .tgid = 21,
					       .flags = WAFFLE_TASK_TRACED_FLAG,
					       .comm = "t",
					       .start_ts = rows[i].born_ts};
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		process_add(&capture, 10, 1, "t");
		for (uint32_t pid = 20; pid < 23; pid++)
			process_add(&capture, pid, 10, "t");
		if (rows[i].untraced)
			process_add_as(&capture, 23, 10, "cc", 0);
		stacks_add(&capture);
		capture_add(&capture, &end);
		capture_add(&capture, &born);
		hang_add(&capture, &(struct hung){.tid = 10,
						  .pid = 10,
						  .syscall = rows[i].parent_call,
						  .lock = UINT32_MAX});
		hang_add(&capture, &(struct hung){.tid = 20,
						  .pid = 20,
						  .stack = PY_SHARED_LOCK,
						  .syscall = NR_FUTEX,
						  .lock = 0x7000});
		hang_add(&capture, &(struct hung){.tid = 21,
						  .pid = 21,
						  .stack = rows[i].stack,
						  .syscall = rows[i].syscall,
						  .lock = 0x7000});
		why = ask(&capture, END_TS,
			  &(struct why_query){
				  .tid = 20, .from_ts = 0, .to_ts = UINT64_MAX, .names = &names});
		check_part(why, 0, "lock", END_TS - CAPTURE_START, 0, "likely",
			   rows[i].may ? "a lock of Python's multiprocessing: may be held by t "
					 "(22), which SIGTERM has ended"
				       : "a lock of Python's multiprocessing");
		done(&capture, why);
	}
}

/* Process 10 waits for any of its children. Of these, 20 and 21 wait for a lock that all share. 30
 * is not traced: it may have the lock, or end. */
static void test_a_child_that_is_not_traced_may_end_the_waits_of_a_family(void **state)
{
	(void)state;
	for (int untraced = 0; untraced < 2; untraced++) {
		struct capture capture;
		char *text;

		family_add(&capture, (uint32_t)-1, true);
		if (untraced)
			process_add_as(&capture, 30, 10, "cc", 0);
		capture_load(&capture, END_TS);
		text = text_of(&capture, hang_print_deadlocks);
		assert_int_equal(!*text, untraced);
		free(text);
		capture_free(&capture);
	}
}

static void test_an_open_wait_says_for_which_children_it_is(void **state)
{
	static const struct {
		uint64_t number;
		const char *text, *json; /* json NULL: no children */
	} rows[] = {
		{21, "t (10) blocked in wait4 for its child t (21), since",
		 "\"child_count\":1,\"children\":[{\"pid\":21,\"tid\":21,\"comm\":\"t\"}]"},
		{(uint32_t)-1, "t (10) blocked in wait4 for its children t (20), t (21), since",
		 "\"child_count\":2,\"children\":[{\"pid\":20,\"tid\":20,\"comm\":\"t\"},"
		 "{\"pid\":21,\"tid\":21,\"comm\":\"t\"}]"},
		/* Of another process, or ended. */
		{22, "t (10) blocked in wait4, since", NULL},
		{10, "t (10) blocked in wait4, since", NULL},
		/* Those of its group. */
		{0, "t (10) blocked in wait4, since", NULL},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		char *text;

		family_add(&capture, rows[i].number, true);
		capture_load(&capture, END_TS);
		text = text_of(&capture, print_waits);
		assert_non_null(strstr(text, rows[i].text));
		free(text);
		text = text_of(&capture, print_json);
		assert_non_null(strstr(text, rows[i].json ?: "\"open_waits\""));
		assert_int_equal(strstr(text, "child") != NULL, rows[i].json != NULL);
		free(text);
		capture_free(&capture);
	}
}

/* All threads of a process wait for any of its children. */
static uint64_t children_ns(uint32_t count)
{
	struct capture capture;

	capture_begin(&capture, true);
	process_add(&capture, 10, 1, "t");
	for (uint32_t i = 0; i < count; i++) {
		uint32_t tid = 100000 + i, child = 200000 + i;

		named_as(&capture, tid, 10, "t", WAFFLE_TASK_TRACED_FLAG);
		hang_add(&capture,
			 &(struct hung){.tid = tid, .syscall = NR_WAIT4, .lock = (uint32_t)-1});
		process_add(&capture, child, 10, "t");
	}
	return find_ns(&capture);
}

static void test_many_threads_that_wait_for_many_children(void **state)
{
	(void)state;
	check_growth(children_ns, 3000);
}

#define T WAFFLE_TASK_STOPPED

/* A client's wait for an answer ends by a timeout. All threads of its server are stopped, or all
 * but one, or only until then. The connection of the last row is another one of the same server. */
static void test_a_server_that_is_stopped_gives_no_answer(void **state)
{
	static const char stopped[] = "t (20), which is stopped";
	static const struct {
		uint16_t first, second;
		bool goes_on;
		uint32_t culprit;
		const char *far, *cause, *grade, *object;
	} rows[] = {
		{T, T, false, 0, "tcp 127.0.0.1:80 <-> 127.0.0.1:5", "stopped", "likely", stopped},
		{T, S, false, 10, "tcp 127.0.0.1:80 <-> 127.0.0.1:5", "timer", "certain",
		 "socket:[1] (tcp 127.0.0.1:5 <-> 127.0.0.1:80)"},
		{T, T, true, 10, "tcp 127.0.0.1:80 <-> 127.0.0.1:5", "timer", "likely",
		 "socket:[1] (tcp 127.0.0.1:5 <-> 127.0.0.1:80)"},
		{T, T, false, 0, "tcp 127.0.0.1:80 <-> 127.0.0.1:6", "stopped", "likely", stopped},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct store_object near = {.pid = 10,
					    .ino = 1,
					    .name = "socket:[1]",
					    .detail = "tcp 127.0.0.1:5 <-> 127.0.0.1:80"};
		struct store_object far = {
			.pid = 20, .ino = 2, .name = "socket:[2]", .detail = rows[i].far};
		struct error err = ERROR_INIT;
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		process_add(&capture, 10, 1, "t");
		process_add(&capture, 20, 1, "t");
		named(&capture, 21, 20, "t");
		capture_must(store_writer_add_object(capture.writer, &near, &err), err);
		capture_must(store_writer_add_object(capture.writer, &far, &err), err);
		kernel_stack(&capture, 0x900, "hrtimer_wakeup");
		waits(&capture, CAPTURE_START, 0, 20, 0, rows[i].first, NR_READ, 7, 0, 0);
		waits(&capture, CAPTURE_START, 1, 21, 0, rows[i].second, NR_READ, 8, 0, 0);
		waits(&capture, CAPTURE_START, 3, 10, 0, S, NR_POLL, 7, 1, 5);
		if (rows[i].goes_on)
			gets(&capture, 3000000, 0, 0, 20, 0, 3000000, HARD);
		gets(&capture, 5000000, 3, 0, 10, 0, 5000000, HARD);
		wait_details(&capture, CAPTURE_START, 5000000, 10, 1, 0, 0);
		wake_details(&capture, 5000000, 0, 10, 1, HARD);
		why = ask(
			&capture, END_TS,
			&(struct why_query){.tid = 10, .from_ts = CAPTURE_START, .to_ts = 5000000});
		check_part(why, 0, rows[i].cause, 5000000 - CAPTURE_START, rows[i].culprit,
			   rows[i].grade, rows[i].object);
		done(&capture, why);
	}
}

/* The tracer has stopped the thread that is waited for. */
static void test_the_tracer_of_a_stopped_thread_is_to_blame(void **state)
{
	struct waffle_rec_state stopped = {.rec = {CAPTURE_START, 11, WAFFLE_REC_STATE, 0},
					   .tgid = CAPTURE_PID,
					   .state = WAFFLE_THREAD_BLOCKED,
					   .task_state = WAFFLE_TASK_TRACED,
					   .syscall = NR_POLL};
	struct waffle_rec_open_wait open = {.rec = {END_TS, 11, WAFFLE_REC_OPEN_WAIT, 0},
					    .tracer_pid = 77,
					    .tracer_comm = "gdb"};
	struct capture capture;
	struct why *why;
	char *text;

	(void)state;
	threads_named(&capture, 10, 11);
	hangs_from_begin(&capture, 10, 11, WAFFLE_OPEN_WAIT_WORD);
	capture_add(&capture, &stopped);
	stopped.rec.ts = END_TS;
	stopped.at_end = 1;
	capture_add(&capture, &stopped);
	capture_add(&capture, &open);
	why = ask(&capture, END_TS,
		  &(struct why_query){.tid = 10, .from_ts = CAPTURE_START, .to_ts = END_TS});
	check_part(why, 0, "stopped", END_TS - CAPTURE_START, 77, "likely",
		   "which has stopped t (11)");
	text = text_of(&capture, print_waits);
	assert_non_null(strstr(
		text, "t (thread 11) is stopped by gdb (77), which traces it, in poll, since "
		      "before the capture began\n"));
	free(text);
	done(&capture, why);
}

/* A server process of PostgreSQL waits for a lock. Others of the same parent were idle in a
 * transaction when the capture began, or are of another PostgreSQL or database. */
static void test_the_only_session_idle_in_a_transaction_may_hold_a_lock(void **state)
{
	static const char idle[] = "postgres: app shop 127.0.0.1(49032) idle in transaction";
	static const char unknown[] = "a lock in PostgreSQL";
	static const struct {
		uint32_t parent;
		const char *first, *second;
		uint64_t moves_ts; /* when the first one goes on; 0: never */
		const char *object;
		const char *waits; /* the title of the one that waits; NULL: of the database shop */
	} rows[] = {
		{5, idle, "postgres: app shop 127.0.0.1(49033) idle", 0,
		 "a lock in PostgreSQL: may be held by t (20), which is idle in a transaction",
		 NULL},
		{5, idle, idle, 0, unknown, NULL},
		{5, idle, "postgres: app store 127.0.0.1(49033) idle in transaction", 0,
		 "a lock in PostgreSQL: may be held by t (20), which is idle in a transaction",
		 NULL},
		{5, "postgres: main: app shop [local] idle in transaction", "t", 0,
		 "a lock in PostgreSQL: may be held by t (20), which is idle in a transaction",
		 NULL},
		{5, "postgres: app store 127.0.0.1(49032) idle in transaction", "t", 0, unknown,
		 NULL},
		{5, idle, "t", 5000000, unknown, NULL},
		{5, "postgres: app shop 127.0.0.1(49032) idle in transaction (aborted)", "t", 0,
		 unknown, NULL},
		{5, "cat idle in transaction", "t", 0, unknown, NULL},
		{6, idle, "t", 0, unknown, NULL},
		/* Titles that say no database. */
		{5, idle, "t", 0,
		 "a lock in PostgreSQL: may be held by t (20), which is idle in a transaction",
		 "postgres: parallel worker for PID 7"},
		{5, idle, "t", 0,
		 "a lock in PostgreSQL: may be held by t (20), which is idle in a transaction",
		 "postgres: logical replication apply worker for subscription 1"},
		{5, idle, "t", 0, unknown, "postgres: app other [local] UPDATE"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct hung hung = {.tid = 10, .stack = PROGRAM, .syscall = NR_EPOLL_WAIT};
		struct capture capture;
		struct why *why;

		capture_begin(&capture, true);
		stacks_add(&capture);
		process_add(&capture, 20, rows[i].parent, rows[i].first);
		process_add(&capture, 21, 5, rows[i].second);
		process_add(&capture, CAPTURE_PID, 5,
			    rows[i].waits ?: "postgres: app shop 127.0.0.1(49036) UPDATE");
		named(&capture, 10, CAPTURE_PID, "t");
		hang_add(&capture, &hung);
		waits(&capture, CAPTURE_START, 0, 20, 0, S, NR_EPOLL_WAIT, 7, 0, 0);
		waits(&capture, CAPTURE_START, 1, 21, 0, S, NR_EPOLL_WAIT, 7, 0, 0);
		if (rows[i].moves_ts)
			gets(&capture, rows[i].moves_ts, 0, 0, 20, 0, rows[i].moves_ts, SOFT);
		why = ask(&capture, END_TS,
			  &(struct why_query){.tid = 10,
					      .from_ts = CAPTURE_START,
					      .to_ts = END_TS,
					      .names = &names});
		check_part(why, 0, "lock", END_TS - CAPTURE_START, 0, "likely", rows[i].object);
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_jobs_that_all_wait_for_others_of_their_pool_may_be_in_a_deadlock),
		cmocka_unit_test(test_cycles_are_found_and_come_first),
		cmocka_unit_test(test_a_read_write_lock_needs_a_function_that_says_so),
		cmocka_unit_test(test_the_chain_of_a_deadlock_ends_in_its_cycle),
		cmocka_unit_test(test_the_owner_is_to_blame_if_its_own_wait_is_unknown),
		cmocka_unit_test(test_threads_that_only_wait_for_each_other_are_a_standstill),
		cmocka_unit_test(
			test_threads_that_wait_for_locks_all_the_time_may_be_in_a_deadlock),
		cmocka_unit_test(test_a_thread_that_hangs_is_explained_if_no_thread_does_much),
		cmocka_unit_test(
			test_a_thread_that_does_more_than_look_at_a_monitor_is_in_no_deadlock),
		cmocka_unit_test(test_monitors_are_those_of_a_process_with_the_jvm),
		cmocka_unit_test(test_own_threads_of_the_jvm_do_not_count),
		cmocka_unit_test(test_a_program_that_waits_for_the_jvm_does_not_stand_still),
		cmocka_unit_test(test_the_launcher_of_the_jvm_is_no_thread_of_the_program),
		cmocka_unit_test(test_a_thread_alone_may_wait_for_itself),
		cmocka_unit_test(test_who_waits_for_a_lock_of_the_program_hangs),
		cmocka_unit_test(test_json_says_which_waits_are_for_a_lock),
		cmocka_unit_test(test_threads_of_the_jvm_itself_come_behind_those_of_the_program),
		cmocka_unit_test(test_of_threads_that_are_all_stuck_not_all_wait_without_a_timeout),
		cmocka_unit_test(test_an_uninterruptible_wait_is_shown_beside_many_stuck_ones),
		cmocka_unit_test(
			test_a_thread_that_glibc_has_stopped_is_told_but_not_as_a_deadlock),
		cmocka_unit_test(test_a_long_chain_of_waits),
		cmocka_unit_test(test_many_locks_of_one_process),
		cmocka_unit_test(test_owners_and_times_of_any_kind_are_read),
		cmocka_unit_test(test_a_mutex_whose_owner_has_ended_is_never_released),
		cmocka_unit_test(test_a_deadlock_of_many_threads_shows_the_first_ones),
		cmocka_unit_test(test_open_waits_have_the_file_that_was_read_at_the_end),
		cmocka_unit_test(test_a_wait_goes_on_with_the_only_other_thread_that_hangs),
		cmocka_unit_test(
			test_a_poll_of_one_connection_goes_on_with_the_server_and_its_lock),
		cmocka_unit_test(test_a_rank_waits_for_the_only_one_that_is_in_no_collective),
		cmocka_unit_test(test_threads_that_wait_for_other_ranks_are_no_standstill),
		cmocka_unit_test(test_many_connections_to_a_process_of_many_threads),
		cmocka_unit_test(test_a_poll_of_pipes_goes_on_with_the_process_at_all_other_ends),
		cmocka_unit_test(test_processes_may_wait_for_each_other_at_files),
		cmocka_unit_test(test_a_wait_for_the_lock_of_a_file_goes_on_with_its_holder),
		cmocka_unit_test(test_the_other_end_explains_a_wait_as_it_is_at_the_end),
		cmocka_unit_test(test_an_end_without_a_process_may_be_that_of_another_network),
		cmocka_unit_test(test_a_number_that_no_host_gives_names_no_holder),
		cmocka_unit_test(test_a_family_of_which_all_wait_for_each_other_may_hang),
		cmocka_unit_test(test_a_killed_process_may_have_a_lock_only_if_no_other_one_can),
		cmocka_unit_test(test_a_child_that_is_not_traced_may_end_the_waits_of_a_family),
		cmocka_unit_test(test_an_open_wait_says_for_which_children_it_is),
		cmocka_unit_test(test_many_threads_that_wait_for_many_children),
		cmocka_unit_test(test_a_wait_for_a_child_by_its_number_goes_on_with_that_child),
		cmocka_unit_test(test_a_wait_for_children_of_a_group_goes_on_with_none),
		cmocka_unit_test(
			test_a_wait_for_the_end_of_the_only_other_thread_goes_on_with_that),
		cmocka_unit_test(
			test_an_open_wait_for_a_lock_of_the_program_names_the_lock_and_no_holder),
		cmocka_unit_test(test_a_server_that_is_stopped_gives_no_answer),
		cmocka_unit_test(test_the_tracer_of_a_stopped_thread_is_to_blame),
		cmocka_unit_test(test_the_only_session_idle_in_a_transaction_may_hold_a_lock),
		cmocka_unit_test(
			test_a_wait_for_an_answer_goes_on_with_the_process_at_the_other_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
