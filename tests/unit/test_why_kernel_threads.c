// SPDX-License-Identifier: Apache-2.0
/* A thread of a process that has the name of a thread of the kernel is not taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "why_capture.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define KERNEL WAFFLE_TASK_KERNEL_FLAG
#define USER WAFFLE_TASK_USER_FLAG

/* What the explanation of a wait for thread 60 is, by the flags of that thread. */
struct by_flags {
	uint32_t flags;
	const char *cause;
	uint32_t culprit;
	const char *grade, *object;
};

/* Thread 11 of process 100 runs on CPU 1 and begins a span at 1000. */
static void begin(struct capture *capture, const char *name, uint32_t flags)
{
	capture_begin(capture, true);
	named(capture, 11, CAPTURE_PID, "worker");
	named_as(capture, 60, 60, name, flags);
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	capture_span(capture, 1000, 11, 1);
}

/* Ends the capture after a wait of thread 11 that lasted until 1200. */
static void check_end(struct capture *capture, uint64_t ns, const struct by_flags *want)
{
	struct why *why;

	capture_end(capture, 1210, 11, 1);
	why = ask_span(capture, 1300);
	check_part(why, 0, want->cause, ns, want->culprit, want->grade, want->object);
	done(capture, why);
}

static void test_only_a_thread_of_the_kernel_reclaims_memory_on_the_cpu(void **state)
{
	static const struct by_flags rows[] = {
		{KERNEL, "cpu-contention", 60, "certain", "kernel: memory reclaim"},
		{USER, "cpu-contention", 60, "certain", ""},
		/* The tid was reused. */
		{KERNEL | USER, "cpu-contention", 60, "certain", ""},
		/* Captures of earlier versions do not say it. */
		{0, "cpu-contention", 60, "likely", "kernel: memory reclaim"},
	};
	struct capture capture;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		begin(&capture, "kswapd0", rows[i].flags);
		gets(&capture, 1020, 1, 11, 60, 0, 0, 0);
		gets(&capture, 1200, 1, 60, 11, 0, 0, 0);
		check_end(&capture, 180, &rows[i]);
	}
}

static void test_only_a_waker_of_the_kernel_commits_the_journal(void **state)
{
	static const struct by_flags rows[] = {
		{KERNEL, "disk-write", 60, "likely", "kernel: commits of the journal (jbd2)"},
		{USER, "not-recorded", 60, "likely", ""},
		{0, "disk-write", 60, "likely", "kernel: commits of the journal (jbd2)"},
	};
	struct capture capture;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		begin(&capture, "jbd2/vda-8", rows[i].flags);
		kernel_stack(&capture, 0x9100, "wake_up_q");
		waits(&capture, 1020, 1, 11, 0, D, NR_IOCTL, 3, 0, 0);
		gets(&capture, 1200, 1, 0, 11, 60, 1200, 0);
		wait_details(&capture, 1020, 1200, 11, 0, 0, 0);
		wake_details(&capture, 1200, 60, 11, 1, 0);
		check_end(&capture, 180, &rows[i]);
	}
}

/* Softirqs run timers. Only an interrupt ends a sleep in time. */
static void test_only_a_softirq_thread_of_the_kernel_is_an_interrupt(void **state)
{
	static const struct by_flags rows[] = {
		{KERNEL, "sleep", 11, "certain", ""},
		{USER, "sleep", 11, "likely", ""},
		{0, "sleep", 11, "likely", ""},
	};
	struct capture capture;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		begin(&capture, "ksoftirqd/0", rows[i].flags);
		waits(&capture, 1020, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
		gets(&capture, 1200, 1, 0, 11, 60, 1200, 0);
		check_end(&capture, 180, &rows[i]);
	}
}

/* An interrupt ends such a wait at its timeout. */
static void test_a_process_named_as_a_softirq_thread_is_the_waker(void **state)
{
	static const struct by_flags rows[] = {
		{KERNEL, "timer", 11, "likely", "futex 0x8100"},
		{USER, "not-recorded", 60, "likely", "futex 0x8100"},
		{0, "timer", 11, "likely", "futex 0x8100"},
	};
	struct capture capture;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		begin(&capture, "ksoftirqd/0", rows[i].flags);
		waits(&capture, 1020, 1, 11, 0, S, NR_FUTEX, 0x8100, 0, 0);
		gets(&capture, 1200, 1, 0, 11, 60, 1200, 0);
		check_end(&capture, 180, &rows[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_a_thread_of_the_kernel_reclaims_memory_on_the_cpu),
		cmocka_unit_test(test_only_a_waker_of_the_kernel_commits_the_journal),
		cmocka_unit_test(test_only_a_softirq_thread_of_the_kernel_is_an_interrupt),
		cmocka_unit_test(test_a_process_named_as_a_softirq_thread_is_the_waker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
