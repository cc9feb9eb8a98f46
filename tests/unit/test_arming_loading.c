// SPDX-License-Identifier: Apache-2.0
/* Files of lld, which must not be armed in a process that is about to execute them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/arming/arming_internal.h"
#include "kernel/kernel_internal.h"

#define PID 10

static void row(struct arming *arming, uint32_t file, pid_t pid, uint64_t begin_ns)
{
	const struct loading loading = {
		.pid = pid, .file = file, .ahead = true, .begin_ns = begin_ns};

	assert_true(vec_push(&arming->loading, loading));
}

/* The tracer handles the record of an exec when the next program of the process is held already,
 * and prepared. That program has not begun. */
static void test_an_exec_does_not_begin_the_program_after_it(void **state)
{
	struct arming arming = {0};

	(void)state;
	row(&arming, 1, PID, 15);
	row(&arming, 1, PID + 1, 15);
	row(&arming, 2, PID, 45);
	arming_began(&arming, PID, 40);
	assert_false(file_is_ahead(&arming, 1, PID));
	assert_true(file_is_ahead(&arming, 1, PID + 1));
	assert_true(file_is_ahead(&arming, 2, PID));
	arming_began(&arming, PID, UINT64_MAX);
	assert_false(file_is_ahead(&arming, 2, PID));
	vec_free(&arming.loading);
}

/* Some process keeps its mmap_lock, or may do so. */
static void test_what_the_kernel_refuses_for_a_time_is_armed_later(void **state)
{
	struct kernel kernel = {.locks.until_ts = 5};
	const struct session_options options = {0};
	struct arming arming = {.kernel = &kernel, .options = &options};
	const struct armed_file file = {.fd = -1, .ino = 1};
	struct error problem = ERROR_INIT, err = ERROR_INIT;

	(void)state;
	error_set(&problem, EBUSY, "kept");
	assert_true(vec_push(&arming.files, file));
	assert_int_equal(file_arm_failed(&arming, 0, getpid(), -EMFILE, &problem, &err), 0);
	assert_int_equal(arming.loading.len, 0);
	assert_int_equal(file_arm_failed(&arming, 0, getpid(), -EAGAIN, &problem, &err), 0);
	kernel.locks.until_ts = UINT64_MAX;
	assert_int_equal(file_arm_failed(&arming, 0, getpid(), -EBUSY, &problem, &err), 0);
	assert_int_equal(arming.loading.len, 1);
	arming_loaded(&arming);
	assert_int_equal(arming.loading.len, 1);
	arming.loading.data[0].next_ns = 0;
	arming_loaded(&arming);
	assert_int_equal(arming.loading.len, 0);
	assert_int_equal(arming.files.data[0].arm_count, 0);
	vec_free(&arming.loading);
	vec_free(&arming.files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_exec_does_not_begin_the_program_after_it),
		cmocka_unit_test(test_what_the_kernel_refuses_for_a_time_is_armed_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
