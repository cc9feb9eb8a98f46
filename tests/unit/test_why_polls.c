// SPDX-License-Identifier: Apache-2.0
/* Threads in no span that have nothing to do, or that poll: event loops, loops of sleeps, pools. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "why_capture.h"

#define MS 1000000ull

/* Thread 11 waits on CPU 1 from the ms `from` to `to`, until an interrupt ends the wait. */
static void wait_of(struct capture *capture, uint64_t from, uint64_t to, int syscall)
{
	waits(capture, from * MS, 1, 11, 0, S, syscall, 4, 1, 0);
	gets(capture, to * MS, 1, 0, 11, 0, to * MS, HARD);
}

/* The timeout of its event loop expires at `to`. */
static void idle(struct capture *capture, uint64_t from, uint64_t to)
{
	wait_of(capture, from, to, NR_EPOLL_WAIT);
	wake_details(capture, to * MS, 0, 11, 1, HARD);
}

static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	kernel_stack(capture, 0xffff8000, "hrtimer_wakeup");
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
}

static struct why *ask_thread(struct capture *capture, uint64_t end_ms, struct stack_names *names)
{
	return ask(capture, end_ms * MS,
		   &(struct why_query){
			   .tid = 11, .from_ts = MS, .to_ts = end_ms * MS, .names = names});
}

/* ---- event loops ---- */

static void test_what_blocks_an_event_loop_comes_before_its_idle_time(void **state)
{
	struct why_by_cause sums[WHY_BY_CAUSE_MAX];
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	idle(&capture, 1, 60);
	wait_of(&capture, 61, 70, NR_NANOSLEEP);
	idle(&capture, 71, 99);
	wait_of(&capture, 99, 100, NR_FSYNC);
	why = ask_thread(&capture, 100, NULL);
	check_part(why, 0, "sleep", 9 * MS, 11, "certain", "");
	check_part(why, 1, "timer", 87 * MS, 11, "likely", "");
	assert_true(part_of(why, 1)->idle && !part_of(why, 0)->idle);
	check_why_text(why, "\n  idle time, cpu-contention and unknown are listed after other "
			    "causes, whatever their share\n   1.  ");
	assert_int_equal(why_by_cause(why, &why->instances.data[0], sums), 4);
	assert_int_equal(sums[0].cause, WHY_SLEEP);
	assert_true(sums[1].idle && sums[1].cause == WHY_TIMER);
	done(&capture, why);
}

/* What takes little time is not why the thread is slow. */
static void test_what_hardly_blocks_an_event_loop_comes_behind_its_idle_time(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	idle(&capture, 1, 60);
	wait_of(&capture, 61, 64, NR_NANOSLEEP);
	idle(&capture, 65, 100);
	why = ask_thread(&capture, 100, NULL);
	assert_true(part_of(why, 0)->idle);
	done(&capture, why);
}

/* A span waits for its timeout, and poll() may wait for the answer to a request. */
static void test_a_timeout_in_a_span_or_in_poll_is_not_idle(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	for (int in_span = 0; in_span < 2; in_span++) {
		begin(&capture);
		if (in_span)
			capture_span(&capture, MS - 1, 11, 1);
		wait_of(&capture, 1, 60, in_span ? NR_EPOLL_WAIT : NR_POLL);
		wake_details(&capture, 60 * MS, 0, 11, 1, HARD);
		wait_of(&capture, 61, 80, NR_NANOSLEEP);
		if (in_span)
			capture_end(&capture, 80 * MS, 11, 1);
		why = in_span ? ask_span(&capture, 80 * MS) : ask_thread(&capture, 80, NULL);
		assert_int_equal(part_of(why, 0)->cause, WHY_TIMER);
		assert_false(part_of(why, 0)->idle || part_of(why, 1)->idle);
		done(&capture, why);
	}
}

/* The loop watches it as it watches its files. */
static void test_a_timer_with_a_descriptor_is_an_event(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "anon_inode:[timerfd]", "");
	wait_of(&capture, 1, 60, NR_EPOLL_WAIT);
	wait_details(&capture, MS, 60 * MS, 11, 1, 0, 0);
	wake_details(&capture, 60 * MS, 0, 11, 1, HARD);
	wait_of(&capture, 61, 80, NR_NANOSLEEP);
	why = ask_thread(&capture, 80, NULL);
	assert_int_equal(part_of(why, 0)->cause, WHY_TIMER);
	assert_false(part_of(why, 0)->idle);
	done(&capture, why);
}

/* ---- loops of sleeps ---- */

#define SLEEPS 8

/* Thread 11 sleeps again and again for 9 ms, and runs for `ran_ns` in between. Where it runs, it
 * may wake thread 12. */
static struct why *sleeps(struct capture *capture, uint64_t ran_ns, bool wakes)
{
	begin(capture);
	named(capture, 11, 10, "poller");
	named(capture, 12, 10, "main");
	for (uint64_t i = 0; i < SLEEPS; i++) {
		uint64_t from = (1 + 10 * i) * MS, to = from + 10 * MS - ran_ns;

		waits(capture, from, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
		if (wakes)
			waits(capture, from + 1, 2, 12, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
		gets(capture, to, 1, 0, 11, 0, to, HARD);
		if (wakes)
			gets(capture, to + 2, 2, 0, 12, 11, to + 1, 0);
	}
	return ask_thread(capture, 1 + 10 * SLEEPS, NULL);
}

static void test_a_thread_that_sleeps_and_checks_seems_to_poll(void **state)
{
	struct capture capture;
	struct why *why = sleeps(&capture, 20000, false);

	(void)state;
	check_part(why, 0, "sleep", SLEEPS * (10 * MS - 20000), 11, "certain", "");
	assert_int_equal(part_of(why, 0)->polls.sleeps, SLEEPS);
	assert_int_equal(part_of(why, 0)->polls.ran_ns, (SLEEPS - 1) * 20000);
	check_why_text(why, "poller (11), may poll: 8 sleeps of 9.98 ms, "
			    "it runs for 20.0 us between them\n");
	done(&capture, why);
}

static void test_a_thread_that_works_between_its_sleeps_does_not_poll(void **state)
{
	struct capture capture;
	struct why *why = sleeps(&capture, 600000, false);

	(void)state;
	assert_int_equal(part_of(why, 0)->polls.sleeps, 0);
	done(&capture, why);
}

/* It sleeps in the jobs that it does for others. */
static void test_a_thread_that_wakes_others_between_its_sleeps_does_not_poll(void **state)
{
	struct capture capture;
	struct why *why = sleeps(&capture, 20000, true);

	(void)state;
	assert_int_equal(part_of(why, 0)->polls.sleeps, 0);
	done(&capture, why);
}

#define NR_FCNTL 72

/* Thread 11 sleeps and calls fcntl(), in which a sample hits it. Each `every`-th call waits. */
static struct why *sleeps_and_locks(struct capture *capture, uint64_t every)
{
	begin(capture);
	named(capture, 11, 10, "editor");
	for (uint64_t i = 0; i < 4 * SLEEPS; i++) {
		uint64_t from = (1 + 10 * i) * MS, to = from + 9 * MS;
		struct waffle_rec_sample hit = {.rec = {to + 5, 11, WAFFLE_REC_SAMPLE, 1},
						.kernel_stack = 1,
						.syscall = NR_FCNTL,
						.flags = WAFFLE_SAMPLE_KERNEL,
						.period_ns = 1000};

		waits(capture, from, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
		gets(capture, to, 1, 0, 11, 0, to, HARD);
		capture_add(capture, &hit);
		if (i % every == every - 1) {
			waits(capture, to + 10, 1, 11, 0, S, NR_FCNTL, 4, 7, 0);
			gets(capture, from + 10 * MS - 10, 1, 0, 11, 88, from + 10 * MS - 20, 0);
		} else {
			waits(capture, to + 10, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
			gets(capture, from + 10 * MS - 10, 1, 0, 11, 0, from + 10 * MS - 10, HARD);
		}
	}
	return ask_thread(capture, 1 + 40 * SLEEPS, NULL);
}

/* What it polls does not block. */
static void test_a_thread_that_waits_in_the_call_between_its_sleeps_does_not_poll(void **state)
{
	struct capture capture;
	struct why *why = sleeps_and_locks(&capture, 4);

	(void)state;
	assert_int_equal(part_of(why, 0)->cause, WHY_SLEEP);
	assert_int_equal(part_of(why, 0)->polls.sleeps, 0);
	done(&capture, why);
	why = sleeps_and_locks(&capture, 1000);
	assert_int_equal(part_of(why, 0)->polls.sleeps, 8 * SLEEPS);
	assert_int_equal(part_of(why, 0)->polls.call, NR_FCNTL);
	done(&capture, why);
}

/* Thread 12 sleeps with what thread 11 waits for, which looks every 3 ms, then without it. */
static void test_a_sleep_that_another_thread_awaits_in_parts_is_one_sleep(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 11, 10, "web");
	named(&capture, 12, 10, "holder");
	for (uint64_t i = 0; i < SLEEPS; i++) {
		uint64_t at = (1 + 20 * i) * MS, end = at + 10 * MS;

		waits(&capture, at, 2, 12, 0, S, NR_NANOSLEEP, 0, 0, 0);
		for (unsigned ms = 0; ms < 9; ms += 3) {
			uint64_t until = ms < 6 ? at + (ms + 3) * MS : end + 10;

			waits(&capture, at + ms * MS + 20, 1, 11, 0, S, NR_FUTEX, 0x7f00,
			      FUTEX_COND, 0);
			if (ms == 6)
				gets(&capture, end, 2, 0, 12, 0, end, HARD);
			gets(&capture, until, 1, 0, 11, ms < 6 ? 0 : 12, until, ms < 6 ? HARD : 0);
		}
		waits(&capture, end + 20, 2, 12, 0, S, NR_NANOSLEEP, 0, 0, 0);
		gets(&capture, at + 20 * MS - 20, 2, 0, 12, 0, at + 20 * MS - 20, HARD);
	}
	why = ask_thread(&capture, 1 + 20 * SLEEPS, NULL);
	assert_int_equal(part_of(why, 1)->cause, WHY_SLEEP);
	assert_int_equal(part_of(why, 1)->stretches, 3 * SLEEPS);
	assert_int_equal(part_of(why, 1)->polls.sleeps, 0);
	done(&capture, why);
}

/* ---- names of functions and threads ---- */

static void user_stack(struct capture *capture, uint64_t number, const char *function)
{
	uint64_t address = STORE_NAMED | number;
	struct store_stack stack = {.addresses = &address, .count = 1, .pid = CAPTURE_PID};
	struct store_name name = {.pid = CAPTURE_PID, .value = address, .name = function};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
	capture_must(store_writer_add_name(capture->writer, &name, &err), err);
}

static void slept_at(struct capture *capture, uint64_t from_ts, uint64_t ts, uint32_t tid,
		     uint32_t stack)
{
	capture_add(capture, &(struct waffle_rec_wait){.rec = {ts, tid, WAFFLE_REC_WAIT, 0},
						       .from_ts = from_ts,
						       .user_stack = stack});
}

/* A stack of several functions, the innermost first. NULL: code without a name. */
static void deep_stack(struct capture *capture, uint32_t number, const char *const *functions,
		       uint32_t count)
{
	struct error err = ERROR_INIT;
	uint64_t addresses[8];
	struct store_stack stack = {.pid = CAPTURE_PID, .addresses = addresses, .count = count};

	for (uint32_t i = 0; i < count; i++) {
		struct store_name name = {.pid = CAPTURE_PID,
					  .value = STORE_NAMED | (64 * number + i),
					  .name = functions[i]};

		addresses[i] = name.value;
		if (name.name)
			capture_must(store_writer_add_name(capture->writer, &name, &err), err);
	}
	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
}

/* The answer with the names of functions, until done_named(). */
static struct why *ask_named(struct capture *capture, uint64_t end_ms, struct stack_names **names)
{
	struct error err = ERROR_INIT;
	struct why *why;

	capture_load(capture, end_ms * MS);
	*names = stack_names_open(capture->reader, false);
	capture_must(
		why_new(&why, capture->model,
			&(struct why_query){
				.tid = 11, .from_ts = MS, .to_ts = end_ms * MS, .names = *names},
			&err),
		err);
	return why;
}

static void done_named(struct capture *capture, struct why *why, struct stack_names *names)
{
	why_free(why);
	stack_names_close(names);
	capture_free(capture);
}

/* Thread 11 waits from 1 to 50 ms. Checks the cause of this wait, and ends the capture. */
static void check_whole_wait(struct capture *capture, const char *cause, const char *says)
{
	struct stack_names *names;
	struct why *why = ask_named(capture, 50, &names);

	check_part(why, 0, cause, 49 * MS, 0, "likely", says);
	done_named(capture, why, names);
}

/* A backend of PostgreSQL waits for the lock of a row. */
static const char *const row_lock[] = {"epoll_wait (x.c:1)",        "WaitLatch (x.c:1)",
				       "ProcSleep (x.c:1)",         "LockAcquireExtended (x.c:1)",
				       "XactLockTableWait (x.c:1)", "heap_update (x.c:1)"};

/* A backend waits for a message of the one that holds the lock, with this stack. An interrupt ends
 * the wait. */
static void check_backend(uint32_t stack, const char *says, const char *cause)
{
	static const char *const table[] = {"epoll_wait (x.c:1)", "WaitLatch (x.c:1)",
					    "ProcSleep (x.c:1)", "LockAcquire (x.c:1)",
					    "LockRelationOid (x.c:1)"};
	static const char *const other[] = {"epoll_wait (x.c:1)", "WaitLatch (x.c:1)",
					    "LockRelationOid (x.c:1)"};
	static const char *const standby[] = {"epoll_wait (x.c:1)", "WaitLatch (x.c:1)",
					      "SyncRepWaitForLSN (x.c:1)"};
	struct capture capture;

	begin(&capture);
	deep_stack(&capture, 2, row_lock, 6);
	deep_stack(&capture, 3, table, 5);
	deep_stack(&capture, 4, other, 3);
	deep_stack(&capture, 5, standby, 3);
	wait_of(&capture, 1, 50, NR_EPOLL_WAIT);
	slept_at(&capture, MS, 50 * MS, 11, stack);
	check_whole_wait(&capture, cause, says);
}

static void test_locks_of_postgresql_are_known_by_their_functions(void **state)
{
	(void)state;
	check_backend(2, "the lock of a row in PostgreSQL", "lock");
	check_backend(3, "the lock of a table in PostgreSQL", "lock");
	check_backend(4, "", "interrupt");
	check_backend(5, "a synchronous standby of PostgreSQL, which has to confirm the commit",
		      "socket");
}

/* A thread of mariadbd without the names of InnoDB's functions waits with this stack. */
static void check_engine(uint32_t stack, const char *cause, uint32_t culprit, const char *says)
{
	static const char *const row[] = {"pthread_cond_timedwait (x.c:1)",
					  "handler::ha_index_read_map (x.c:1)",
					  "mysql_execute_command (x.c:1)"};
	static const char *const page[] = {"pthread_cond_wait (x.c:1)",
					   "handler::ha_index_read_map (x.c:1)",
					   "mysql_execute_command (x.c:1)"};
	static const char *const sleep[] = {"pthread_cond_timedwait (x.c:1)",
					    "Item_func_sleep::val_int (x.c:1)",
					    "mysql_execute_command (x.c:1)"};
	static const char *const other[] = {"pthread_cond_timedwait (x.c:1)",
					    "handler::ha_index_read_map (x.c:1)", "serve (x.c:1)"};
	struct stack_names *names;
	struct capture capture;
	struct why *why;

	begin(&capture);
	deep_stack(&capture, 2, row, 3);
	deep_stack(&capture, 3, page, 3);
	deep_stack(&capture, 4, sleep, 3);
	deep_stack(&capture, 5, other, 3);
	wait_of(&capture, 1, 50, NR_FUTEX);
	slept_at(&capture, MS, 50 * MS, 11, stack);
	why = ask_named(&capture, 50, &names);
	check_part(why, 0, cause, 49 * MS, culprit, "likely", says);
	done_named(&capture, why, names);
}

static void test_a_lock_of_mariadb_is_known_by_the_call_of_its_engine(void **state)
{
	(void)state;
	check_engine(2, "lock", 0, "a lock of a row or table in MariaDB or MySQL");
	check_engine(3, "timer", 11, "futex 0x4");
	check_engine(4, "timer", 11, "futex 0x4");
	check_engine(5, "timer", 11, "futex 0x4");
}

/* Thread 11 waits five times for 10 ms, and each time another thread wakes it, which has run until
 * then. The waits have these stacks, 0: none. That of the last wake-up may have two functions. */
static void begin_turns(struct capture *capture, const uint32_t *stacks, const char *const *release)
{
	static const char *const row[] = {"ProcSleep (x.c:1)", "heap_update (x.c:1)"};
	static const char *const other[] = {"WaitLatch (x.c:1)"};

	begin(capture);
	deep_stack(capture, 2, row, 2);
	deep_stack(capture, 3, other, 1);
	if (release)
		deep_stack(capture, 4, release, 2);
	object(capture, "anon_inode:[signalfd]", "");
	for (uint32_t i = 0; i < 5; i++) {
		named(capture, 12 + i, CAPTURE_PID, (const char[]){'a' + (char)i, 0});
		gets(capture, 1000, (uint16_t)(2 + i), 0, 12 + i, 0, 0, 0);
	}
	for (uint32_t i = 0; i < 5; i++) {
		uint64_t from = (1 + 10 * i) * MS, to = from + 10 * MS;

		waits(capture, from, 1, 11, 0, S, NR_EPOLL_WAIT, 4, 1, 0);
		gets(capture, to, 1, 0, 11, 12 + i, to, 0);
		capture_add(capture, &(struct waffle_rec_wait){.rec = {to, 11, WAFFLE_REC_WAIT, 0},
							       .from_ts = from,
							       .object = 1,
							       .user_stack = stacks[i]});
	}
	if (release)
		capture_add(capture,
			    &(struct waffle_rec_wake){.rec = {51 * MS, 16, WAFFLE_REC_WAKE, 0},
						      .woken_tid = 11,
						      .user_stack = 4});
}

/* One lock whose holders do different things may be in no cause of its own. */
static void test_waits_without_a_stack_are_for_the_lock_that_others_show(void **state)
{
	static const char *const release[] = {"ProcLockWakeup (x.c:1)", "LockRelease (x.c:1)"};
	static const struct {
		uint32_t stacks[5];
		uint64_t ms;
		const char *const *release;
	} rows[] = {
		{{2, 2, 2, 0, 0}, 50, NULL}, {{2, 2, 2, 0, 0}, 50, release},
		{{2, 2, 0, 0, 0}, 20, NULL}, {{2, 2, 2, 3, 0}, 30, NULL},
		{{3, 3, 3, 0, 0}, 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stack_names *names;
		struct capture capture;
		struct why *why;

		begin_turns(&capture, rows[i].stacks, rows[i].release);
		why = ask_named(&capture, 51, &names);
		assert_int_equal(why->instances.data[0].lock_count, rows[i].ms != 0);
		if (rows[i].ms) {
			assert_int_equal(why->locks.data[0].ns, rows[i].ms * MS);
			assert_string_equal(strtab_get(why->texts, why->locks.data[0].lock),
					    "the lock of a row in PostgreSQL");
		}
		if (rows[i].ms == 50)
			check_why_text(why, "  in waits for locks: 100.0 % the lock of a row in "
					    "PostgreSQL\n");
		done_named(&capture, why, names);
	}
}

static void test_who_releases_a_lock_shows_which_it_was_if_the_wait_has_no_stack(void **state)
{
	static const char *const grants[] = {"MDL_wait::set_status (x.cc:1)",
					     "MDL_lock::reschedule_waiters (x.cc:1)"};
	static const char *const kills[] = {"MDL_wait::set_status (x.cc:1)",
					    "kill_one_thread (x.cc:1)"};
	static const struct {
		const char *const *release;
		const char *lock;
	} rows[] = {{grants, "a metadata lock of MariaDB or MySQL"}, {kills, NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stack_names *names;
		struct capture capture;
		struct why *why;

		begin_turns(&capture, (const uint32_t[5]){0}, rows[i].release);
		why = ask_named(&capture, 51, &names);
		assert_int_equal(why->instances.data[0].lock_count, rows[i].lock != NULL);
		if (rows[i].lock) {
			assert_int_equal(why->locks.data[0].ns, 10 * MS);
			assert_string_equal(strtab_get(why->texts, why->locks.data[0].lock),
					    rows[i].lock);
		}
		done_named(&capture, why, names);
	}
}

/* Thread 11 waits for a lock from 1 to 41 ms. Thread 12 has it, and waits for its client meanwhile:
 * for its next command, or for rows of COPY. */
static void test_who_holds_up_a_lock_and_what_that_waits_for_is_told(void **state)
{
	static const char *const row[] = {"ProcSleep (x.c:1)", "heap_update (x.c:1)"};
	static const char *const advisory[] = {"ProcSleep (x.c:1)",
					       "pg_advisory_lock_int8 (x.c:1)"};
	static const char *const command[] = {"secure_read (x.c:1)", NULL, "pq_getbyte (x.c:1)",
					      NULL, "PostgresMain (x.c:1)"};
	static const char *const copy[] = {"secure_read (x.c:1)", "pq_getbyte (x.c:1)",
					   "NextCopyFrom (x.c:1)", "DoCopy (x.c:1)",
					   "PostgresMain (x.c:1)"};
	static const struct {
		const char *const *waits, *const *holds;
		const char *lock, *text;
	} rows[] = {
		{row, command, "the lock of a row",
		 "idle in transaction: it waits for its client psql (13)\n"},
		{advisory, command, "an advisory lock", "which waits for psql (13)\n"},
		{row, copy, "the lock of a row", "which waits for psql (13)\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stack_names *names;
		struct capture capture;
		struct why *why;
		char text[160];

		begin(&capture);
		deep_stack(&capture, 2, rows[i].waits, 2);
		deep_stack(&capture, 3, rows[i].holds, 5);
		object(&capture, "anon_inode:[signalfd]", "");
		object(&capture, "socket:[9]", "");
		named(&capture, 12, 12, "postgres");
		named(&capture, 13, 13, "psql");
		gets(&capture, 1000, 2, 0, 12, 0, 0, 0);
		gets(&capture, 1000, 3, 0, 13, 0, 0, 0);
		waits(&capture, MS, 1, 11, 0, S, NR_EPOLL_WAIT, 4, 1, 0);
		waits(&capture, MS + 1, 2, 12, 0, S, NR_READ, 5, 0, 0);
		gets(&capture, 41 * MS - 10, 2, 0, 12, 13, 41 * MS - 10, 0);
		capture_add(&capture,
			    &(struct waffle_rec_wait){.rec = {41 * MS - 10, 12, WAFFLE_REC_WAIT, 0},
						      .from_ts = MS + 1,
						      .object = 2,
						      .user_stack = 3});
		gets(&capture, 41 * MS, 1, 0, 11, 12, 41 * MS, 0);
		capture_add(&capture,
			    &(struct waffle_rec_wait){.rec = {41 * MS, 11, WAFFLE_REC_WAIT, 0},
						      .from_ts = MS,
						      .object = 1,
						      .user_stack = 2});
		why = ask_named(&capture, 41, &names);
		snprintf(text, sizeof(text),
			 "  in waits for locks: 100.0 %% %s in PostgreSQL, held up by postgres "
			 "(12), %s",
			 rows[i].lock, rows[i].text);
		check_why_text(why, text);
		done_named(&capture, why, names);
	}
}

/* Threads 12 and 13 take turns to have a lock: thread 12 for 24 ms, and thread 13 for 16 ms. Thread
 * 12 sleeps in most of them, until a timer interrupts thread 13. */
static void test_the_holder_for_more_than_half_of_the_time_is_told(void **state)
{
	static const uint32_t ms[][2] = {{12, 12}, {13, 8}, {12, 12}, {13, 8}};
	uint64_t from = MS;
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint32_t tid = 12; tid < 14; tid++) {
		named(&capture, tid, CAPTURE_PID, "holder");
		gets(&capture, 1000, (uint16_t)(tid - 10), 0, tid, 0, 0, 0);
	}
	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
		uint64_t to = from + ms[i][1] * MS;

		waits(&capture, from, 1, 11, 0, S, NR_FUTEX, 0x8000, FUTEX_MUTEX, 2);
		if (ms[i][0] == 12) {
			waits(&capture, from, 2, 12, 0, S, NR_NANOSLEEP, 0, 0, 0);
			gets(&capture, to - 1, 2, 0, 12, 13, to - 1, HARD);
		}
		gets(&capture, to, 1, 0, 11, ms[i][0], to, 0);
		from = to + 1;
	}
	why = ask_thread(&capture, 42, NULL);
	assert_int_equal(why->instances.data[0].lock_count, 1);
	assert_int_equal(why->locks.data[0].ns, 40 * MS);
	assert_int_equal(why->model->threads.data[why->locks.data[0].holder].tid, 12);
	assert_int_equal(why->locks.data[0].awaited, MODEL_NONE);
	done(&capture, why);
}

/* Thread 12 has a mutex without a name while it waits for thread 13. */
static void test_a_lock_without_a_name_is_told_by_who_waits_for_it(void **state)
{
	static const char *const functions[] = {"pthread_mutex_lock (a.c:1)", "take (a.c:2)"};
	struct stack_names *names;
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	deep_stack(&capture, 2, functions, 2);
	named(&capture, 12, CAPTURE_PID, "holder");
	named(&capture, 13, CAPTURE_PID, "other");
	gets(&capture, 1000, 2, 0, 12, 0, 0, 0);
	gets(&capture, 1000, 3, 0, 13, 0, 0, 0);
	waits(&capture, MS, 1, 11, 0, S, NR_FUTEX, 0x8000, FUTEX_MUTEX, 2);
	waits(&capture, MS + 1, 2, 12, 0, S, NR_FUTEX, 0x9000, FUTEX_COND, 0);
	gets(&capture, 41 * MS - 10, 2, 0, 12, 13, 41 * MS - 10, 0);
	gets(&capture, 41 * MS, 1, 0, 11, 12, 41 * MS, 0);
	capture_add(&capture, &(struct waffle_rec_wait){.rec = {41 * MS, 11, WAFFLE_REC_WAIT, 0},
							.from_ts = MS,
							.user_stack = 2});
	why = ask_named(&capture, 41, &names);
	check_why_view(why, &(struct why_view){.names = names},
		       "  in waits for locks: 100.0 % futex 0x8000, awaited by take (a.c:2), held "
		       "up by holder "
		       "(12), which waits for other (13)\n");
	done_named(&capture, why, names);
}

/* Thread 11 waits for `first` from before the capture on to 20 ms, which has no stack, and then for
 * descriptor 4 to 50 ms. Checks the longest cause. */
static void check_first_wait(uint64_t first, uint64_t lock_ns)
{
	struct waffle_rec_state state = {.rec = {CAPTURE_START, 11, WAFFLE_REC_STATE, 0},
					 .tgid = CAPTURE_PID,
					 .state = WAFFLE_THREAD_BLOCKED,
					 .task_state = S,
					 .syscall = NR_EPOLL_WAIT,
					 .args = {first}};
	struct stack_names *names;
	struct capture capture;
	struct why *why;

	capture_begin(&capture, true);
	capture_add(&capture, &state);
	deep_stack(&capture, 1, row_lock, 6);
	gets(&capture, 20 * MS, 1, 0, 11, 0, 20 * MS, HARD);
	waits(&capture, 20 * MS + 10, 1, 11, 0, S, NR_EPOLL_WAIT, 4, 0, 0);
	gets(&capture, 50 * MS, 1, 0, 11, 0, 50 * MS, HARD);
	slept_at(&capture, 20 * MS + 10, 50 * MS, 11, 1);
	why = ask_named(&capture, 50, &names);
	check_part(why, 0, "lock", lock_ns, 0, "likely", "the lock of a row in PostgreSQL");
	done_named(&capture, why, names);
}

static void test_a_wait_from_before_the_capture_is_like_the_next_one_for_the_same(void **state)
{
	(void)state;
	check_first_wait(4, 49 * MS - 10);
	check_first_wait(5, 30 * MS - 10);
}

static void test_the_busy_handler_of_sqlite_waits_for_a_lock(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	user_stack(&capture, 2, "sqliteDefaultBusyCallback (sqlite3.c:1)");
	wait_of(&capture, 1, 50, NR_NANOSLEEP);
	slept_at(&capture, MS, 50 * MS, 11, 2);
	check_whole_wait(&capture, "lock",
			 "the lock of an SQLite database: its holder is not recorded");
}

/* Thread 11 waits in turn for 12 and 13, which sleep in the places `a` and `b`. */
static struct why *waits_for_two(struct capture *capture, uint32_t a, uint32_t b)
{
	const uint32_t stacks[] = {a, b};

	user_stack(capture, 2, "job (pool.py:3)");
	user_stack(capture, 3, "other (pool.py:9)");
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t from = MS + i * 21 * MS, to = from + 20 * MS;
		uint16_t cpu = (uint16_t)(2 + i);

		gets(capture, from - 10, cpu, 0, 12 + i, 0, 0, 0);
		waits(capture, from, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
		waits(capture, from + 10, cpu, 12 + i, 0, S, NR_NANOSLEEP, 0, 0, 0);
		gets(capture, to - 10, cpu, 0, 12 + i, 0, to - 10, HARD);
		slept_at(capture, from + 10, to - 10, 12 + i, stacks[i]);
		gets(capture, to, 1, 0, 11, 12 + i, to, 0);
	}
	return ask_thread(capture, 42, NULL);
}

/* The two are threads of a pool. */
static struct why *waits_for_pool(struct capture *capture, uint32_t a, uint32_t b)
{
	begin(capture);
	named(capture, 12, 10, "pool-1");
	named(capture, 13, 10, "pool-12");
	return waits_for_two(capture, a, b);
}

/* The two are programs of one name, the second one started by process `parent`. */
static struct why *waits_for_programs(struct capture *capture, uint32_t parent)
{
	const struct store_process programs[] = {{12, CAPTURE_PID, CAPTURE_START, "curl"},
						 {13, parent, CAPTURE_START, "curl"}};
	struct error err = ERROR_INIT;

	begin(capture);
	for (uint32_t i = 0; i < 2; i++) {
		capture_must(store_writer_add_process(capture->writer, &programs[i], &err), err);
		named(capture, 12 + i, 12 + i, "curl");
	}
	return waits_for_two(capture, 2, 2);
}

static void test_programs_of_one_parent_that_sleep_in_one_place_are_one_cause(void **state)
{
	struct capture capture;
	struct why *why = waits_for_programs(&capture, CAPTURE_PID);

	(void)state;
	assert_int_equal(part_of(why, 0)->threads, 2);
	assert_int_equal(part_of(why, 0)->processes, 2);
	assert_int_equal(part_of(why, 0)->ns, 2 * (20 * MS - 20));
	done(&capture, why);
	why = waits_for_programs(&capture, 40);
	assert_int_equal(part_of(why, 0)->threads, 1);
	assert_int_equal(part_of(why, 1)->threads, 1);
	done(&capture, why);
}

static void test_threads_of_a_pool_that_sleep_in_one_place_are_one_cause(void **state)
{
	struct capture capture;
	struct why *why = waits_for_pool(&capture, 2, 2);

	(void)state;
	assert_int_equal(part_of(why, 0)->cause, WHY_SLEEP);
	assert_int_equal(part_of(why, 0)->threads, 2);
	assert_int_equal(part_of(why, 0)->processes, 1);
	assert_int_equal(part_of(why, 0)->ns, 2 * (20 * MS - 20));
	done(&capture, why);
}

static void test_threads_that_sleep_in_different_places_are_causes_of_their_own(void **state)
{
	static const uint32_t stacks[][2] = {{2, 3}, {2, 0}, {0, 0}};
	struct capture capture;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct why *why = waits_for_pool(&capture, stacks[i][0], stacks[i][1]);

		assert_int_equal(part_of(why, 0)->threads, 1);
		assert_int_equal(part_of(why, 1)->cause, WHY_SLEEP);
		done(&capture, why);
	}
}

/* Only some of many waits have a stack. One of them is enough to say where the thread waits. */
static void test_the_place_of_a_wait_without_a_stack_is_that_of_another_of_its_cause(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	named(&capture, 12, 10, "pool-1");
	named(&capture, 13, 10, "pool-12");
	user_stack(&capture, 2, "job (pool.py:3)");
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t tid = 12 + i / 2;
		uint64_t from = MS + i * 21 * MS, to = from + (i % 2 ? 10 : 20) * MS;
		uint16_t cpu = (uint16_t)(2 + i / 2);

		gets(&capture, from - 10, cpu, 0, tid, 0, i % 2 ? from - 10 : 0, HARD);
		waits(&capture, from, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
		waits(&capture, from + 10, cpu, tid, 0, S, NR_NANOSLEEP, 0, 0, 0);
		gets(&capture, to - 10, cpu, 0, tid, 0, to - 10, HARD);
		if (i % 2)
			slept_at(&capture, from + 10, to - 10, tid, 2);
		gets(&capture, to, 1, 0, 11, tid, to, 0);
		waits(&capture, to + 10, cpu, tid, 0, S, NR_READ, 3, 0, 0);
	}
	why = ask_thread(&capture, 84, NULL);
	assert_int_equal(part_of(why, 0)->cause, WHY_SLEEP);
	assert_int_equal(part_of(why, 0)->threads, 2);
	assert_int_equal(part_of(why, 0)->ns, 2 * (30 * MS - 40));
	assert_int_equal(why->model->waits.data[part_of(why, 0)->wait].user_stack, 2);
	done(&capture, why);
}

/* A row that says where the thread slept must not hide that it was elsewhere for as long. */
static void test_a_cause_has_a_place_if_that_has_most_of_its_time(void **state)
{
	(void)state;
	for (uint64_t longer = 15; longer <= 30; longer += 15) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		user_stack(&capture, 2, "job (pool.py:3)");
		user_stack(&capture, 3, "other (pool.py:9)");
		wait_of(&capture, 1, 1 + longer, NR_NANOSLEEP);
		slept_at(&capture, MS, (1 + longer) * MS, 11, 2);
		wait_of(&capture, 32, 42, NR_NANOSLEEP);
		slept_at(&capture, 32 * MS, 42 * MS, 11, 3);
		why = ask_thread(&capture, 42, NULL);
		assert_int_equal(part_of(why, 0)->cause, WHY_SLEEP);
		assert_int_equal(part_of(why, 0)->ns, (longer + 10) * MS);
		if (longer == 30)
			assert_int_equal(why->model->waits.data[part_of(why, 0)->wait].user_stack,
					 2);
		else
			assert_int_equal(part_of(why, 0)->wait, MODEL_NONE);
		done(&capture, why);
	}
}

/* Thread 11 waits in turn for three threads of a pool. Each sleeps until the timeout of a futex of
 * its own, in the functions of one of two stacks. */
static struct why *waits_for_timeouts(struct capture *capture, const char *const *functions,
				      struct stack_names **names)
{
	begin(capture);
	deep_stack(capture, 2, functions, 4);
	deep_stack(capture, 3, functions + 4, 4);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t from = MS + i * 21 * MS, to = from + 20 * MS;
		uint16_t cpu = (uint16_t)(2 + i);

		named(capture, 12 + i, 10, i ? "Thread-1" : "Thread-23");
		gets(capture, from - 10, cpu, 0, 12 + i, 0, 0, 0);
		waits(capture, from, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
		waits(capture, from + 10, cpu, 12 + i, 0, S, NR_FUTEX, 0x8000 + 64 * i, FUTEX_COND,
		      0);
		gets(capture, to - 10, cpu, 0, 12 + i, 0, to - 10, HARD);
		slept_at(capture, from + 10, to - 10, 12 + i, 2 + i / 2);
		gets(capture, to, 1, 0, 11, 12 + i, to, 0);
	}
	return ask_named(capture, 64, names);
}

static void test_threads_of_a_pool_with_a_timer_each_are_one_cause(void **state)
{
	static const char *const functions[] = {
		"park (a.c:1)", "sleep (a.c:2)", NULL,          "run (a.c:3)",
		"park (a.c:1)", "sleep (a.c:2)", "run (a.c:3)", NULL};
	struct stack_names *names;
	struct capture capture;
	struct why *why = waits_for_timeouts(&capture, functions, &names);

	(void)state;
	check_part(why, 0, "timer", 3 * (20 * MS - 20), 12, "likely", "3 futexes");
	assert_int_equal(part_of(why, 0)->threads, 3);
	assert_int_equal(part_of(why, 0)->objects, 3);
	done_named(&capture, why, names);
}

static void test_threads_of_a_pool_that_wait_for_different_things_are_not_one_cause(void **state)
{
	static const char *const functions[] = {
		"park (a.c:1)", "sleep (a.c:2)", NULL,          "run (a.c:3)",
		"park (a.c:1)", "take (a.c:2)",  "run (a.c:3)", NULL};
	struct stack_names *names;
	struct capture capture;
	struct why *why = waits_for_timeouts(&capture, functions, &names);

	(void)state;
	check_part(why, 0, "timer", 2 * (20 * MS - 20), 12, "likely", "2 futexes");
	check_part(why, 1, "timer", 20 * MS - 20, 14, "likely", "futex 0x8080");
	done_named(&capture, why, names);
}

/* Thread 11 waits in turn for `count` futexes until the timeout of each; from number `second` on,
 * it does so in the functions of another stack. */
static struct why *waits_in_turn(struct capture *capture, uint32_t count, uint32_t second,
				 struct stack_names **names)
{
	static const char *const functions[] = {"wait (a.c:1)", "result (a.c:2)", "outer (a.c:3)",
						"wait (a.c:1)", "take (a.c:4)",   "worker (a.c:5)"};

	begin(capture);
	deep_stack(capture, 2, functions, 3);
	deep_stack(capture, 3, functions + 3, 3);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t from = MS + i * 20 * MS, to = from + 19 * MS;

		waits(capture, from, 1, 11, 0, S, NR_FUTEX, 0x8000 + 64 * i, FUTEX_COND, 0);
		gets(capture, to, 1, 0, 11, 0, to, HARD);
		slept_at(capture, from, to, 11, i < second ? 2 : 3);
	}
	return ask_named(capture, 1 + count * 20, names);
}

static void test_futexes_that_a_thread_waits_for_in_one_place_are_one_cause(void **state)
{
	struct stack_names *names;
	struct capture capture;
	struct why *why = waits_in_turn(&capture, 6, 4, &names);
	const struct why_view view = {0};
	char *printed = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&printed, &len);

	(void)state;
	check_part(why, 0, "timer", 4 * 19 * MS, 11, "likely", "4 futexes");
	check_part(why, 1, "timer", 2 * 19 * MS, 11, "likely", "2 futexes");
	check_part(why, 2, "running", 6 * MS, 11, "certain", "");
	assert_int_equal(part_of(why, 0)->objects, 4);
	assert_int_equal(part_of(why, 0)->stretches, 4);
	assert_int_equal(part_of(why, 0)->threads, 1);
	why_print_text(why, &view, out);
	fclose(out);
	assert_non_null(strstr(printed, ", 4 futexes\n"));
	free(printed);
	done_named(&capture, why, names);
}

/* Each wait is for another pipe. The second one takes longest. */
static void test_pipes_that_a_thread_waits_for_in_one_place_are_one_cause(void **state)
{
	static const char *const functions[] = {"read (a.c:1)", "result (a.c:2)"};
	uint64_t from = MS;
	struct stack_names *names;
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	deep_stack(&capture, 2, functions, 2);
	for (uint32_t i = 1; i <= 3; i++) {
		uint64_t to = from + (i == 2 ? 15 : 10) * MS;
		char name[32];

		snprintf(name, sizeof(name), "pipe:[%" PRIu32 "]", 4710 + i);
		object(&capture, name, "");
		waits(&capture, from, 1, 11, 0, S, NR_READ, 3, 0, 0);
		gets(&capture, to, 1, 0, 11, 0, to, HARD);
		capture_add(&capture, &(struct waffle_rec_wait){.rec = {to, 11, WAFFLE_REC_WAIT, 0},
								.from_ts = from,
								.object = i,
								.user_stack = 2});
		from = to + MS;
	}
	why = ask_named(&capture, from / MS, &names);
	assert_int_equal(part_of(why, 0)->ns, 35 * MS);
	assert_int_equal(part_of(why, 0)->objects, 3);
	assert_string_equal(strtab_get(why->texts, part_of(why, 0)->object),
			    "pipe:[4712] and 2 more");
	done_named(&capture, why, names);
}

/* The last one of the shards takes half of the time, or almost all of it; or only its inode is
 * known. */
static void test_files_that_differ_only_in_numbers_are_one_cause(void **state)
{
	static const char *const functions[] = {"read (a.c:1)", "scan (a.c:2)"};
	static const struct {
		uint64_t last_ms;
		const char *last; /* NULL: like the others */
		const char *object, *text;
	} rows[] = {
		{20, NULL, "/old (x)/s-3 (ext4) and 2 more", "/old (x)/s-3 (ext4) and 2 more\n"},
		{90, NULL, "/old (x)/s-3 (ext4)", "disk-read (? (11), files in /old (x)), "},
		{90, "inode 7 of /old", "inode 7 of /old (ext4)", "disk-read (? (11)), "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t from = MS;
		struct stack_names *names;
		struct capture capture;
		struct why *why;

		begin(&capture);
		deep_stack(&capture, 2, functions, 2);
		for (uint32_t k = 1; k <= 3; k++) {
			uint64_t to = from + (k == 3 ? rows[i].last_ms : 10) * MS;
			char name[32];

			snprintf(name, sizeof(name), "/old (x)/s-%" PRIu32, k);
			if (k == 3 && rows[i].last)
				object(&capture, rows[i].last, "ext4");
			else
				file_on(&capture, name, 8);
			waits(&capture, from, 1, 11, 0, D, NR_READ, 3, 0, 0);
			gets(&capture, to, 1, 0, 11, 0, to, HARD);
			io_done(&capture, from, to, 11, 0);
			capture_add(&capture,
				    &(struct waffle_rec_wait){.rec = {to, 11, WAFFLE_REC_WAIT, 0},
							      .from_ts = from,
							      .object = k,
							      .user_stack = 2});
			from = to + MS;
		}
		why = ask_named(&capture, from / MS, &names);
		assert_int_equal(part_of(why, 0)->cause, WHY_DISK_READ);
		assert_string_equal(strtab_get(why->texts, part_of(why, 0)->object),
				    rows[i].object);
		check_why_text(why, rows[i].text);
		done_named(&capture, why, names);
	}
}

/* Each of two numbered files is locked by a program that is not recorded. */
static void test_locks_of_numbered_files_are_apart(void **state)
{
	uint64_t from = MS;
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint32_t k = 1; k <= 2; k++) {
		uint64_t to = from + (k == 1 ? 20 : 15) * MS;

		object(&capture, k == 1 ? "/run/db.1.lock" : "/run/db.2.lock", "tmpfs");
		waits(&capture, from, 1, 11, 0, S, NR_FLOCK, 3, 2, 0);
		gets(&capture, to, 1, 0, 11, 60, to, 0);
		wait_details(&capture, from, to, 11, k, 0, 0);
		from = to + MS;
	}
	why = ask_thread(&capture, from / MS, NULL);
	check_part(why, 0, "lock", 20 * MS, 60, "likely", "/run/db.1.lock (tmpfs)");
	check_part(why, 1, "lock", 15 * MS, 60, "likely", "/run/db.2.lock (tmpfs)");
	done(&capture, why);
}

/* The only wait of a short-lived thread has no stack. */
static void test_threads_made_for_a_job_each_that_sleep_are_one_cause(void **state)
{
	const uint32_t count = 36; /* a pool has at most 32 */
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t from = MS + i * MS, to = from + 3 * MS / 4;
		char name[14];

		snprintf(name, sizeof(name), "Thread-%" PRIu32, i);
		named(&capture, 12 + i, 10, name);
		gets(&capture, from - 10, 2, 0, 12 + i, 0, 0, 0);
		waits(&capture, from, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
		waits(&capture, from + 10, 2, 12 + i, 0, S, NR_FUTEX, 0x8000 + 64 * i, FUTEX_COND,
		      0);
		gets(&capture, to - 10, 2, 0, 12 + i, 0, to - 10, HARD);
		gets(&capture, to, 1, 0, 11, 12 + i, to, 0);
		capture_gone(&capture, to + 5, 12 + i, WAFFLE_REC_EXIT);
	}
	why = ask_thread(&capture, 1 + count, NULL);
	check_part(why, 0, "timer", count * (3 * MS / 4 - 20), 12, "likely", "36 futexes");
	assert_int_equal(part_of(why, 0)->threads, count);
	assert_string_equal(model_thread_kind_name(why->model, part_of(why, 0)->thread),
			    "Thread-N");
	done(&capture, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_blocks_an_event_loop_comes_before_its_idle_time),
		cmocka_unit_test(test_what_hardly_blocks_an_event_loop_comes_behind_its_idle_time),
		cmocka_unit_test(test_a_timeout_in_a_span_or_in_poll_is_not_idle),
		cmocka_unit_test(test_a_timer_with_a_descriptor_is_an_event),
		cmocka_unit_test(test_a_thread_that_sleeps_and_checks_seems_to_poll),
		cmocka_unit_test(test_a_thread_that_works_between_its_sleeps_does_not_poll),
		cmocka_unit_test(test_a_sleep_that_another_thread_awaits_in_parts_is_one_sleep),
		cmocka_unit_test(test_a_thread_that_wakes_others_between_its_sleeps_does_not_poll),
		cmocka_unit_test(
			test_a_thread_that_waits_in_the_call_between_its_sleeps_does_not_poll),
		cmocka_unit_test(test_locks_of_postgresql_are_known_by_their_functions),
		cmocka_unit_test(test_a_lock_of_mariadb_is_known_by_the_call_of_its_engine),
		cmocka_unit_test(test_waits_without_a_stack_are_for_the_lock_that_others_show),
		cmocka_unit_test(test_who_holds_up_a_lock_and_what_that_waits_for_is_told),
		cmocka_unit_test(test_the_holder_for_more_than_half_of_the_time_is_told),
		cmocka_unit_test(test_a_lock_without_a_name_is_told_by_who_waits_for_it),
		cmocka_unit_test(
			test_who_releases_a_lock_shows_which_it_was_if_the_wait_has_no_stack),
		cmocka_unit_test(
			test_a_wait_from_before_the_capture_is_like_the_next_one_for_the_same),
		cmocka_unit_test(test_the_busy_handler_of_sqlite_waits_for_a_lock),
		cmocka_unit_test(test_threads_of_a_pool_that_sleep_in_one_place_are_one_cause),
		cmocka_unit_test(test_programs_of_one_parent_that_sleep_in_one_place_are_one_cause),
		cmocka_unit_test(
			test_threads_that_sleep_in_different_places_are_causes_of_their_own),
		cmocka_unit_test(
			test_the_place_of_a_wait_without_a_stack_is_that_of_another_of_its_cause),
		cmocka_unit_test(test_a_cause_has_a_place_if_that_has_most_of_its_time),
		cmocka_unit_test(test_threads_of_a_pool_with_a_timer_each_are_one_cause),
		cmocka_unit_test(test_futexes_that_a_thread_waits_for_in_one_place_are_one_cause),
		cmocka_unit_test(test_pipes_that_a_thread_waits_for_in_one_place_are_one_cause),
		cmocka_unit_test(test_files_that_differ_only_in_numbers_are_one_cause),
		cmocka_unit_test(test_locks_of_numbered_files_are_apart),
		cmocka_unit_test(test_threads_made_for_a_job_each_that_sleep_are_one_cause),
		cmocka_unit_test(
			test_threads_of_a_pool_that_wait_for_different_things_are_not_one_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
