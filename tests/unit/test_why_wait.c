// SPDX-License-Identifier: Apache-2.0
/* Objects of waits: locks by functions, pipes with a path, terminals, mapped files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/why/lookup/why_wait.h"
#include "fake_names.h"
#include "util/memory.h"
#include "why_capture.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NR_SELECT 23
#define NR_MSYNC 26
#define NR_PSELECT6 270

/* The stacks of a test: number n is that of the n-th row, innermost first. */
static const char *const stacks[][3] = {
	{"__futex_abstimed_wait_common64", "___pthread_rwlock_wrlock", "put"},
	{"__futex_abstimed_wait_common64", "pthread_cond_timedwait@@GLIBC_2.3.2", "take"},
	{"syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended", "work"},
	{"syscall", "std::sys::pal::unix::futex::futex_wait", "work"},
	{"__GI___lll_lock_wake", "work", NULL},
	{"runtime.futex", "runtime.futexsleep", "runtime.lock2"},
	{NULL, NULL, NULL},
	{NULL, NULL, NULL},
};
enum { NONE, RWLOCK, CONDITION, RUST, BARE, UNLOCK, GO, UNNAMED, GLIBC };

static uint32_t functions(void *arg, uint32_t stack, uint64_t ts, const char **names, uint32_t max)
{
	(void)ts;
	assert_ptr_equal(arg, stacks);
	assert_in_range(stack, 1, LENGTH(stacks));
	assert_true(max >= 3);
	memcpy(names, stacks[stack - 1], sizeof(stacks[0]));
	return 3;
}

static const char *variable(void *arg, uint32_t pid, uint64_t ts, uint64_t address)
{
	(void)arg;
	(void)pid;
	(void)ts;
	return address == 0x7f04 ? "table_lock" : address == 0x7f00 ? "ready" : NULL;
}

static struct stack_names names = {
	.arg = (void *)stacks, .variable = variable, .functions = functions};

/* Thread 11, in a span from 1010 on CPU 1, and thread 12, which computes on CPU 2. */
static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	gets(capture, 1005, 1, 0, 11, 0, 0, 0);
	gets(capture, 1006, 2, 0, 12, 0, 0, 0);
	capture_span(capture, 1010, 11, 1);
}

/* Thread 11 waits for 12 from 1020 to 1200, both with user stacks. */
static struct why *ask_futex(struct capture *capture, uint64_t op, uint64_t value, uint32_t waiter,
			     uint32_t waker)
{
	struct waffle_rec_wait wait = {
		.rec = {1200, 11, WAFFLE_REC_WAIT, 0}, .from_ts = 1020, .user_stack = waiter};
	struct waffle_rec_wake wake = {
		.rec = {1200, 12, WAFFLE_REC_WAKE, 0}, .woken_tid = 11, .user_stack = waker};

	begin(capture);
	mapping(capture, 0x5000 + GLIBC - 1, 0x6000, "/usr/lib/libc.so.6");
	for (size_t i = 0; i < LENGTH(stacks); i++) {
		uint64_t address = 0x5000 + i;
		struct store_stack stack = {.pid = CAPTURE_PID, .addresses = &address, .count = 1};
		struct error err = ERROR_INIT;

		capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
	}
	waits(capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x7f04, op, value);
	gets(capture, 1200, 1, 0, 11, 12, 1200, 0);
	capture_add(capture, &wait);
	capture_add(capture, &wake);
	capture_end(capture, 1210, 11, 1);
	return ask(capture, 1300, &(struct why_query){.name = "step", .names = &names});
}

static void test_locks_are_told_by_the_functions_that_wait_for_them(void **state)
{
	static const uint32_t locks[] = {RWLOCK, RUST};
	struct capture capture;
	struct why *why;

	(void)state;
	for (size_t i = 0; i < LENGTH(locks); i++) {
		why = ask_futex(&capture, FUTEX_COND, 3, locks[i], NONE);
		/* The last of several readers lets a writer in. */
		check_part(why, 0, "lock", 180, 12, locks[i] == RWLOCK ? "likely" : "certain",
			   "futex 0x7f04 (table_lock)");
		done(&capture, why);
	}
}

static void test_a_lock_is_told_by_who_lets_it_go(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	why = ask_futex(&capture, FUTEX_COND, 3, NONE, UNLOCK);
	check_part(why, 0, "lock", 180, 12, "certain", "futex 0x7f04 (table_lock)");
	done(&capture, why);
	why = ask_futex(&capture, FUTEX_COND, 3, BARE, UNLOCK);
	check_part(why, 0, "lock", 180, 12, "certain", "futex 0x7f04 (table_lock)");
	done(&capture, why);
	/* glibc waits with this value for its mutexes only. */
	why = ask_futex(&capture, FUTEX_MUTEX, 2, GLIBC, NONE);
	check_part(why, 0, "lock", 180, 12, "certain", "futex 0x7f04 (table_lock)");
	done(&capture, why);
	why = ask_futex(&capture, FUTEX_MUTEX, 2, NONE, GLIBC);
	check_part(why, 0, "lock", 180, 12, "certain", "futex 0x7f04 (table_lock)");
	done(&capture, why);
}

static const char *openmp_variable(void *arg, uint32_t pid, uint64_t ts, uint64_t address)
{
	(void)arg;
	(void)pid;
	(void)ts;
	return address == 0x7f04 ? ".gomp_critical_user_bins" : NULL;
}

static void test_the_lock_of_a_critical_section_is_told_by_its_name(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	names.variable = openmp_variable;
	why = ask_futex(&capture, FUTEX_MUTEX, UINT32_MAX, NONE, NONE);
	names.variable = variable;
	check_part(why, 0, "lock", 180, 12, "likely", "futex 0x7f04 (.gomp_critical_user_bins)");
	done(&capture, why);
}

static void test_what_is_no_lock_is_work_with_its_futex(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	why = ask_futex(&capture, FUTEX_COND, 3, CONDITION, UNLOCK);
	/* The second futex of a condition variable is that of the first. */
	check_part(why, 0, "user-work", 180, 12, "certain", "futex 0x7f00 (ready)");
	done(&capture, why);
	why = ask_futex(&capture, FUTEX_COND, 3, BARE, NONE);
	check_part(why, 0, "user-work", 180, 12, "likely", "futex 0x7f00 (ready)");
	done(&capture, why);
	/* Neither waiter nor waker says more: by the value that mutexes have. */
	why = ask_futex(&capture, FUTEX_COND, 2, BARE, NONE);
	check_part(why, 0, "lock", 180, 12, "likely", "futex 0x7f04 (table_lock)");
	done(&capture, why);
	/* A futex of the program's own that looks like the C library's mutex. */
	why = ask_futex(&capture, FUTEX_MUTEX, 2, BARE, NONE);
	check_part(why, 0, "lock", 180, 12, "likely", "futex 0x7f04 (table_lock)");
	done(&capture, why);
	/* Without any function: musl's conditions and std::atomic wait like this as well. */
	why = ask_futex(&capture, FUTEX_MUTEX, 2, UNNAMED, NONE);
	check_part(why, 0, "lock", 180, 12, "likely", "futex 0x7f04 (table_lock)");
	done(&capture, why);
	/* Go waits with a mutex's value for anything. */
	why = ask_futex(&capture, FUTEX_MUTEX, 2, GO, NONE);
	check_part(why, 0, "user-work", 180, 12, "likely", "futex 0x7f04 (table_lock)");
	/* The goroutine of the span may have been parked meanwhile. */
	check_part(why, 1, "running", 20, 11, "likely", "");
	done(&capture, why);
}

static bool is_go(void *arg, const struct store_mapping *mapping)
{
	assert_ptr_equal(arg, is_go);
	return !strcmp(mapping->path, "/srv/stripped");
}

static const char *no_variable(void *arg, uint32_t pid, uint64_t ts, uint64_t address)
{
	(void)arg;
	(void)pid;
	(void)ts;
	(void)address;
	return NULL;
}

/* A stripped Go program has no names in its stacks. */
static void test_a_stripped_go_program_is_known_by_its_file(void **state)
{
	struct stack_names files = {.arg = (void *)is_go, .variable = no_variable, .is_go = is_go};
	static const char *const paths[] = {"/srv/other", "/srv/stripped"};
	struct capture capture;
	struct why *why;

	(void)state;
	for (size_t i = 0; i < LENGTH(paths); i++) {
		begin(&capture);
		mapping(&capture, 0x400000, 0x500000, paths[i]);
		waits(&capture, 1020, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
		gets(&capture, 1200, 1, 0, 11, 0, 1200, HARD);
		capture_end(&capture, 1210, 11, 1);
		why = ask(&capture, 1300, &(struct why_query){.name = "step", .names = &files});
		check_part(why, 0, "sleep", 180, 11, i ? "likely" : "certain", "");
		check_part(why, 1, "running", 20, 11, i ? "likely" : "certain", "");
		done(&capture, why);
	}
}

static enum futex_use told_of(const char *function)
{
	return futex_use_by(&function, 1);
}

static void test_functions_of_libraries_are_known_by_all_their_names(void **state)
{
	static const char *const locks[] = {"__lll_lock_wait_private",
					    "__GI___pthread_mutex_timedlock",
					    "pthread_mutex_clocklock",
					    "__pthread_rwlock_rdlock_full64",
					    "std::sys::sync::rwlock::futex::RwLock::read_contended",
					    "parking_lot::raw_mutex::RawMutex::lock_slow"};
	static const char *const others[] = {"pthread_cond_clockwait", "__new_sem_wait_slow64",
					     "runtime.futexsleep",
					     "std::sys::sync::condvar::futex::Condvar::wait"};
	static const char *const ends[] = {"__pthread_clockjoin_ex", "pthread_barrier_wait"};
	static const char *const shared[] = {
		"__pthread_rwlock_wrlock_full64", "__pthread_rwlock_rdunlock",
		"pthread_rwlock_unlock", "std::sys::sync::rwlock::futex::RwLock::write_contended"};
	static const char *const nothing[] = {"my_pthread_mutex_lock", "pthread_create", "GI_",
					      "_"};
	const char *const nested[] = {NULL, "futex_wait", "__lll_lock_wait", "pthread_cond_wait"};

	(void)state;
	for (size_t i = 0; i < LENGTH(locks); i++)
		assert_int_equal(told_of(locks[i]), FUTEX_USE_LOCK);
	for (size_t i = 0; i < LENGTH(others); i++)
		assert_int_equal(told_of(others[i]), FUTEX_USE_OTHER);
	for (size_t i = 0; i < LENGTH(ends); i++)
		assert_int_equal(told_of(ends[i]), FUTEX_USE_ENDS);
	for (size_t i = 0; i < LENGTH(shared); i++)
		assert_int_equal(told_of(shared[i]), FUTEX_USE_SHARED);
	for (size_t i = 0; i < LENGTH(nothing); i++)
		assert_int_equal(told_of(nothing[i]), FUTEX_USE_UNKNOWN);
	assert_int_equal(told_of("syscall"), FUTEX_USE_OWN);
	/* The condition variable's mutex. */
	assert_int_equal(futex_use_by(nested, LENGTH(nested)), FUTEX_USE_LOCK);
	assert_int_equal(futex_use_by(NULL, 0), FUTEX_USE_UNKNOWN);
}

/* Thread 11 waits in a system call from 1020 to 1200, woken by `waker`. */
static struct why *ask_wait(struct capture *capture, int syscall, uint16_t state, uint32_t waker,
			    uint32_t number, uint32_t wait_stack, uint32_t wake_stack)
{
	waits(capture, 1020, 1, 11, 0, state, syscall, 0x8100, 1, 0);
	gets(capture, 1200, 1, 0, 11, waker, 1200, 0);
	wait_details(capture, 1020, 1200, 11, number, wait_stack, 0);
	if (wake_stack)
		wake_details(capture, 1200, waker, 11, wake_stack, 0);
	capture_end(capture, 1210, 11, 1);
	return ask_span(capture, 1300);
}

static void test_a_pipe_with_a_path_is_a_pipe(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "/run/jobs", "fifo");
	why = ask_wait(&capture, NR_READ, S, 12, 1, 0, 0);
	check_part(why, 0, "pipe", 180, 12, "certain", "/run/jobs (fifo)");
	done(&capture, why);
	/* Whoever is not recorded. */
	begin(&capture);
	object(&capture, "/run/jobs", "fifo");
	why = ask_wait(&capture, NR_WRITE, S, 60, 1, 0, 0);
	check_part(why, 0, "pipe", 180, 60, "likely", "/run/jobs (fifo)");
	done(&capture, why);
}

static void test_a_pipe_is_told_by_functions_of_the_kernel(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	for (int wake = 0; wake < 2; wake++) {
		begin(&capture);
		object(&capture, "/run/jobs", "ext4");
		kernel_stack(&capture, 0x9100, wake ? "pipe_write" : "fifo_pipe_read");
		why = ask_wait(&capture, NR_READ, S, 12, 1, !wake, wake);
		check_part(why, 0, "pipe", 180, 12, "certain", "/run/jobs (ext4)");
		done(&capture, why);
	}
}

static void test_a_terminal_is_not_the_fault_of_the_worker_that_passes_it_on(void **state)
{
	static const int calls[] = {NR_READ, NR_POLL};
	struct capture capture;
	struct why *why;

	(void)state;
	for (size_t i = 0; i < LENGTH(calls); i++) {
		begin(&capture);
		object(&capture, "/dev/pts/3", "character device 136:3");
		kernel_stack(&capture, 0x9100, "n_tty_receive_buf_common");
		named(&capture, 60, 60, "kworker/u8:2");
		why = ask_wait(&capture, calls[i], S, 60, 1, 0, 1);
		check_part(why, 0, "pipe", 180, 0, "likely", "/dev/pts/3 (character device 136:3)");
		done(&capture, why);
	}
	/* Captures since then say that it is one. */
	for (size_t i = 0; i < LENGTH(calls); i++) {
		begin(&capture);
		object(&capture, "/dev/pts/3", "terminal");
		named(&capture, 60, 60, "kworker/u8:2");
		why = ask_wait(&capture, calls[i], S, 60, 1, 0, 0);
		check_part(why, 0, "pipe", 180, 0, "likely", "/dev/pts/3 (terminal)");
		done(&capture, why);
	}
	/* Without the stack nobody knows. */
	begin(&capture);
	object(&capture, "/dev/pts/3", "character device 136:3");
	why = ask_wait(&capture, NR_READ, S, 60, 1, 0, 0);
	check_part(why, 0, "not-recorded", 180, 60, "likely",
		   "/dev/pts/3 (character device 136:3)");
	done(&capture, why);
}

/* Thread 13 is the only one of its process, which is at the other end. */
static void test_behind_a_terminal_is_the_process_at_its_other_end(void **state)
{
	static const struct {
		const char *detail, *cause;
		uint32_t culprit;
	} rows[] = {
		{"terminal of process 13, script", "pipe", 13},
		{"terminal of process 14, script", "pipe", 0},    /* not recorded */
		{"terminal of process 4294967309, x", "pipe", 0}, /* 2^32 + 13 */
	};
	struct capture capture;
	char text[64];
	struct why *why;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		begin(&capture);
		object(&capture, "/dev/pts/3", rows[i].detail);
		named(&capture, 13, 13, "script");
		named(&capture, 60, 60, "kworker/u8:2");
		gets(&capture, 1011, 3, 0, 13, 0, 0, 0);
		why = ask_wait(&capture, NR_READ, S, 60, 1, 0, 0);
		snprintf(text, sizeof(text), "/dev/pts/3 (%s)", rows[i].detail);
		check_part(why, 0, rows[i].cause, 180, rows[i].culprit, "likely", text);
		done(&capture, why);
	}
	/* The wait goes on. */
	begin(&capture);
	object(&capture, "/dev/pts/3", "terminal");
	waits(&capture, 1020, 1, 11, 0, S, NR_READ, 0, 0, 0);
	wait_details(&capture, 1020, 1300, 11, 1, 0, 0);
	why = ask_span(&capture, 1300);
	check_part(why, 0, "pipe", 280, 0, "unknown", "/dev/pts/3 (terminal)");
	done(&capture, why);
}

static void test_who_reads_a_terminal_and_is_recorded_is_waited_for_as_at_a_pipe(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "/dev/pts/3", "terminal of process 12, panel");
	why = ask_wait(&capture, NR_WRITE, S, 12, 1, 0, 0);
	check_part(why, 0, "pipe", 180, 12, "certain",
		   "/dev/pts/3 (terminal of process 12, panel)");
	done(&capture, why);
}

/* poll(NULL, 0, ms) and select(0, NULL, NULL, NULL, &time), as time.sleep() of Python 3.10 does. */
static void test_a_wait_for_no_descriptor_is_a_sleep(void **state)
{
	static const struct {
		int syscall;
		uint64_t first, second;
		const char *cause;
	} calls[] = {{NR_POLL, 0x8100, 0, "sleep"}, {NR_POLL, 0, 0, "sleep"},
		     {NR_POLL, 0x8100, 1, "timer"}, {NR_SELECT, 0, 0, "sleep"},
		     {NR_PSELECT6, 0, 0, "sleep"},  {NR_SELECT, 4, 0x8100, "timer"},
		     {NR_EPOLL_WAIT, 0, 0, "timer"}};

	(void)state;
	for (size_t i = 0; i < LENGTH(calls); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		kernel_stack(&capture, 0x9100, "hrtimer_wakeup");
		waits(&capture, 1020, 1, 11, 0, S, calls[i].syscall, calls[i].first,
		      calls[i].second, 0);
		gets(&capture, 1200, 1, 0, 11, 0, 1200, HARD);
		wake_details(&capture, 1200, 0, 11, 1, HARD);
		capture_end(&capture, 1210, 11, 1);
		why = ask_span(&capture, 1300);
		check_part(why, 0, calls[i].cause, 180, 11,
			   *calls[i].cause == 's' ? "certain" : "likely", "");
		done(&capture, why);
	}
}

static void test_msync_waits_for_the_mapped_file(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	mapping(&capture, 0x8000, 0x9000, "/data/table");
	why = ask_wait(&capture, NR_MSYNC, D, 60, 0, 0, 0);
	check_part(why, 0, "disk-write", 180, 11, "likely", "/data/table");
	done(&capture, why);
}

static void test_the_mapped_file_is_the_one_of_that_time(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	mapping_at(&capture, CAPTURE_START + 50000, 0x8000, 0x9000, "/data/later");
	mapping(&capture, 0x8000, 0x9000, "/data/table");
	why = ask_wait(&capture, NR_MSYNC, D, 60, 0, 0, 0);
	check_part(why, 0, "disk-write", 180, 11, "likely", "/data/table");
	done(&capture, why);
}

static void test_a_lock_of_the_kernel_is_named_by_its_stack(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	kernel_stack(&capture, 0x9100, "mutex_lock");
	why = ask_wait(&capture, NR_IOCTL, D, 12, 0, 1, 0);
	check_part(why, 0, "lock", 180, 12, "certain", "a lock of the kernel (mutex)");
	done(&capture, why);
}

static void test_files_of_memory_wait_for_no_disk(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	for (int named_worker = 0; named_worker < 2; named_worker++) {
		begin(&capture);
		object(&capture, "/sys/fs/cgroup/a/cgroup.procs", "cgroup2");
		if (named_worker)
			named(&capture, 60, 60, "rcu_preempt");
		kernel_stack(&capture, 0x9100, "rcu_gp_kthread");
		why = ask_wait(&capture, NR_WRITE, D, 60, 1, 0, 1);
		check_part(why, 0, "not-recorded", 180, 60, "likely",
			   named_worker ? "kernel: RCU grace periods"
					: "/sys/fs/cgroup/a/cgroup.procs (cgroup2)");
		done(&capture, why);
	}
	begin(&capture);
	object(&capture, "/data/log", "ext4");
	why = ask_wait(&capture, NR_WRITE, D, 60, 1, 0, 0);
	check_part(why, 0, "disk-write", 180, 11, "likely", "/data/log (ext4)");
	done(&capture, why);
}

/* Thread 11 waits from 1020 to 1200 in `syscall` for object 1, if any. A worker of the kernel, 60,
 * issues a request for a write at 1180, after a limit held it back, and it ends at 1190. `waker`,
 * with stack 1, ends the wait. */
static struct why *ask_request(struct capture *capture, int syscall, uint16_t state,
			       uint32_t object, uint32_t waker, unsigned flags, uint32_t io_flags)
{
	named(capture, 60, 60, "kworker/1:0");
	waits(capture, 1020, 1, 11, 0, state, syscall, 0x9000, 0, 0);
	if (io_flags)
		io_done(capture, 1180, 1190, 60, io_flags);
	wake_details(capture, 1200, waker, 11, 1, flags);
	gets(capture, 1200, 1, 0, 11, waker, 1200, flags);
	wait_details(capture, 1020, 1200, 11, object, 0, 0);
	capture_end(capture, 1210, 11, 1);
	return ask_span(capture, 1300);
}

static const char *const ends_request[] = {"iomap_dio_bio_end_io", "blk_update_request"};
static const char *const ends_direct[] = {"aio_complete", "aio_complete_rw", "process_one_work"};

static void test_a_request_that_a_worker_issued_ends_direct_io(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	file_on(&capture, "/data/seg", 8);
	kernel_stack_of(&capture, 0x9100, ends_request, LENGTH(ends_request));
	why = ask_request(&capture, NR_IO_SUBMIT, D, 1, 0, SOFT, WAFFLE_IO_WRITE);
	check_part(why, 0, "disk-write", 180, 11, "likely", "/data/seg (ext4)");
	done(&capture, why);
	/* The request may be to another device. */
	begin(&capture);
	kernel_stack_of(&capture, 0x9100, ends_request, LENGTH(ends_request));
	why = ask_request(&capture, NR_IO_SUBMIT, D, 0, 0, SOFT, WAFFLE_IO_WRITE);
	check_part(why, 0, "disk-write", 180, 11, "likely", "");
	done(&capture, why);
	/* No request is recorded. */
	begin(&capture);
	kernel_stack_of(&capture, 0x9100, ends_request, LENGTH(ends_request));
	why = ask_request(&capture, NR_IO_SUBMIT, D, 0, 0, SOFT, 0);
	check_part(why, 0, "interrupt", 180, 0, "likely", "");
	done(&capture, why);
	/* The interrupt was for something else. */
	begin(&capture);
	file_on(&capture, "/data/seg", 8);
	kernel_stack(&capture, 0x9100, "complete");
	why = ask_request(&capture, NR_IO_SUBMIT, D, 1, 0, SOFT, WAFFLE_IO_WRITE);
	check_part(why, 0, "interrupt", 180, 0, "likely", "/data/seg (ext4)");
	done(&capture, why);
}

static void test_a_worker_that_ends_direct_io_stands_for_the_request(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	kernel_stack_of(&capture, 0x9100, ends_direct, LENGTH(ends_direct));
	why = ask_request(&capture, NR_IO_GETEVENTS, S, 0, 60, 0, WAFFLE_IO_WRITE);
	check_part(why, 0, "disk-write", 180, 11, "likely", "");
	done(&capture, why);
	begin(&capture);
	kernel_stack_of(&capture, 0x9100, ends_direct, LENGTH(ends_direct));
	why = ask_request(&capture, NR_IO_GETEVENTS, S, 0, 60, 0, WAFFLE_IO_SYNC);
	check_part(why, 0, "disk-read", 180, 11, "likely", "");
	done(&capture, why);
	/* Direct I/O without a device, as that of a network file system. */
	begin(&capture);
	kernel_stack_of(&capture, 0x9100, ends_direct, LENGTH(ends_direct));
	why = ask_request(&capture, NR_IO_GETEVENTS, S, 0, 60, 0, 0);
	check_part(why, 0, "not-recorded", 180, 60, "likely", "kernel: ends of direct I/O");
	done(&capture, why);
}

/* Thread 11 works for io_uring. It waits for requests, uninterruptibly, and for new ones. Only the
 * longer waits are recorded, with these objects. */
static struct why *ask_requests(struct capture *capture, const uint32_t *objects, size_t count)
{
	uint64_t ts = 1020;

	begin(capture);
	file_on(capture, "/data/wal", 8);
	file_on(capture, "/data/index", 8);
	object(capture, "anon_inode:[io_uring]", "");
	for (size_t i = 0; i < count; i++, ts += 100) {
		waits(capture, ts, 1, 11, 0, objects[i] == 3 ? S : D, NR_IO_URING_ENTER, 0, 0, 0);
		io_done(capture, ts + 1, ts + 49, 11, WAFFLE_IO_WRITE);
		gets(capture, ts + 50, 1, 0, 11, 0, ts + 50, SOFT);
		if (objects[i])
			wait_details(capture, ts, ts + 50, 11, objects[i], 0, 0);
	}
	capture_end(capture, ts, 11, 1);
	return ask_span(capture, ts + 100);
}

static void test_short_requests_of_io_uring_have_the_only_file_of_others(void **state)
{
	static const uint32_t one[] = {1, 0, 3, 0, 1}, several[] = {1, 0, 3, 0, 2};
	struct capture capture;
	struct why *why;

	(void)state;
	why = ask_requests(&capture, one, LENGTH(one));
	check_part(why, 1, "disk-write", 200, 11, "likely", "/data/wal (ext4)");
	done(&capture, why);
	why = ask_requests(&capture, several, LENGTH(several));
	check_part(why, 1, "disk-write", 100, 11, "certain", "");
	done(&capture, why);
}

#define NR_FLOCK 73
#define NR_MQ_TIMEDSEND 242

/* Thread 60 is of another process, which is not recorded. */
static void test_who_lets_a_file_lock_go_had_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "/srv/cat.db", "ext4");
	why = ask_wait(&capture, NR_FLOCK, S, 60, 1, 0, 0);
	check_part(why, 0, "lock", 180, 60, "likely", "/srv/cat.db (ext4)");
	done(&capture, why);
}

static void test_a_full_message_queue_waits_for_its_reader(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	object(&capture, "/calls", "mqueue");
	why = ask_wait(&capture, NR_MQ_TIMEDSEND, S, 60, 1, 0, 0);
	check_part(why, 0, "pipe", 180, 60, "likely", "/calls (mqueue)");
	done(&capture, why);
}

/* Thread 11 writes to a full pipe again and again, each time for 60 ns, then gets its CPU 90 ns
 * late. After that it waits in `then`. `reader` empties the pipe; if it `idles`, it waits meanwhile
 * for what is written. */
static struct why *late_writes(struct capture *capture, int then, uint32_t reader, bool idles)
{
	begin(capture);
	object(capture, "pipe:[77]", "");
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t from = 1020 + 200 * i;

		waits(capture, from, 1, 11, 0, S, i % 2 ? then : NR_WRITE, 4, 0, 0);
		if (idles) {
			waits(capture, from + 80, 2, reader, 0, S, NR_READ, 3, 0, 0);
			gets(capture, from + 140, 2, 0, reader, 0, from + 140, 0);
		}
		gets(capture, from + 150, 1, 0, 11, reader, from + 60, 0);
		wait_details(capture, from, from + 150, 11, 1, 0, 0);
	}
	waits(capture, 1820, 1, 11, 0, S, then, 4, 0, 0);
	gets(capture, 1840, 1, 0, 11, reader, 1840, 0);
	capture_end(capture, 1850, 11, 1);
	return ask_span(capture, 2000);
}

static void
test_a_writer_that_is_woken_late_and_finds_the_pipe_full_waits_for_the_reader(void **state)
{
	static const struct {
		int then;
		uint32_t reader;
		bool idles, late;
	} rows[] = {{NR_WRITE, 12, false, false},
		    {NR_READ, 12, false, true}, /* it wanted to do something else */
		    {NR_WRITE, 12, true, true},
		    {NR_WRITE, 60, false, true}}; /* not recorded */

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct capture capture;
		struct why *why =
			late_writes(&capture, rows[i].then, rows[i].reader, rows[i].idles);

		if (rows[i].late)
			check_part(why, 0, "cpu-contention", 4 * 90, 0, "likely",
				   "the CPU was idle: woken late");
		else
			check_part(why, 0, "pipe", 4 * 150 + 20, 12, "likely", "pipe:[77]");
		done(&capture, why);
	}
}

static bool is_unnamed_of(const char *text, bool lock)
{
	struct strtab *texts = strtab_make();
	bool unnamed = wait_unnamed(texts, strtab_put(texts, text, strlen(text)), lock);

	strtab_free(texts);
	return unnamed;
}

static bool is_unnamed(const char *text)
{
	return is_unnamed_of(text, false);
}

static void test_several_objects_are_not_counted_again(void **state)
{
	(void)state;
	assert_true(is_unnamed("inode 4711 of /data"));
	assert_true(is_unnamed("inode 4711 of /data/and more/x"));
	assert_false(is_unnamed("inode 4711 of /data and 42 more"));
	assert_true(is_unnamed("pipe:[4711]"));
	assert_false(is_unnamed("pipe:[4711] and 42 more"));
	assert_true(is_unnamed("/data/seg.7 (ext4)"));
	assert_false(is_unnamed("/data/seg.7 (ext4) and 42 more"));
}

/* Files of one folder that differ only in a number are parts of one thing. */
static void test_numbered_files_are_of_a_kind(void **state)
{
	static const char *const apart[] = {
		"/data/seg (ext4)",
		"/data-7/seg (ext4)",
		"/base/5/16384 (ext4)",
		"/dev/nvidia0 (devtmpfs)",
		"seg.7 (ext4)",
		"/data/seg.7",
		"/run/7.fifo (fifo, write end of process 4712, sh)",
	};
	static const char limited[] = "/d/seg.12 (ext4), and its cgroup may read 1 MiB (x)";
	struct strtab *texts = strtab_make();
	uint32_t kind = wait_unnamed(texts, strtab_put(texts, "/a 7/seg.12 (ext4)", 18), false);
	uint32_t some = strtab_put(texts, limited, sizeof(limited) - 1);

	(void)state;
	assert_string_equal(strtab_get(texts, kind), "/a 7/seg.N");
	assert_string_equal(strtab_get(texts, wait_unnamed(texts, some, false)),
			    "/d/seg.N, and its cgroup may read 1 MiB (x)");
	assert_string_equal(strtab_get(texts, wait_unnamed_text(texts, some, 8)),
			    "/d/seg.12 (ext4) and 7 more, and its cgroup may read 1 MiB (x)");
	assert_false(is_unnamed("/d/seg.12 (ext4) and 7 more, and its cgroup may read 1 MiB (x)"));
	for (size_t i = 0; i < LENGTH(apart); i++)
		assert_false(is_unnamed(apart[i]));
	assert_true(is_unnamed("/d/a (1).csv (ext4)"));
	assert_false(is_unnamed_of("/run/db.1.lock (tmpfs)", true));
	assert_true(is_unnamed_of("pipe:[4711]", true));
	strtab_free(texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locks_are_told_by_the_functions_that_wait_for_them),
		cmocka_unit_test(test_a_lock_is_told_by_who_lets_it_go),
		cmocka_unit_test(test_what_is_no_lock_is_work_with_its_futex),
		cmocka_unit_test(test_the_lock_of_a_critical_section_is_told_by_its_name),
		cmocka_unit_test(test_functions_of_libraries_are_known_by_all_their_names),
		cmocka_unit_test(test_a_pipe_with_a_path_is_a_pipe),
		cmocka_unit_test(test_a_pipe_is_told_by_functions_of_the_kernel),
		cmocka_unit_test(test_a_terminal_is_not_the_fault_of_the_worker_that_passes_it_on),
		cmocka_unit_test(test_behind_a_terminal_is_the_process_at_its_other_end),
		cmocka_unit_test(
			test_who_reads_a_terminal_and_is_recorded_is_waited_for_as_at_a_pipe),
		cmocka_unit_test(test_a_stripped_go_program_is_known_by_its_file),
		cmocka_unit_test(test_a_wait_for_no_descriptor_is_a_sleep),
		cmocka_unit_test(test_who_lets_a_file_lock_go_had_it),
		cmocka_unit_test(test_a_full_message_queue_waits_for_its_reader),
		cmocka_unit_test(
			test_a_writer_that_is_woken_late_and_finds_the_pipe_full_waits_for_the_reader),
		cmocka_unit_test(test_msync_waits_for_the_mapped_file),
		cmocka_unit_test(test_the_mapped_file_is_the_one_of_that_time),
		cmocka_unit_test(test_a_lock_of_the_kernel_is_named_by_its_stack),
		cmocka_unit_test(test_files_of_memory_wait_for_no_disk),
		cmocka_unit_test(test_a_request_that_a_worker_issued_ends_direct_io),
		cmocka_unit_test(test_a_worker_that_ends_direct_io_stands_for_the_request),
		cmocka_unit_test(test_short_requests_of_io_uring_have_the_only_file_of_others),
		cmocka_unit_test(test_several_objects_are_not_counted_again),
		cmocka_unit_test(test_numbered_files_are_of_a_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
