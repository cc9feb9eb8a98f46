// SPDX-License-Identifier: Apache-2.0
/* The looks at who keeps its mmap_lock. The Makefile links this program with --wrap=iterator_open,
 * so that a look reads the waits that a test sets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/kernel_internal.h"
#include "util/clock.h"
#include "waffle.skel.h"

static struct waffle_mmap_lock_wait held[2]; /* blocked threads */
static size_t waits;
static unsigned looks;

int __wrap_iterator_open(const struct bpf_program *program);

int __wrap_iterator_open(const struct bpf_program *program)
{
	int fd = memfd_create("waits", MFD_CLOEXEC);

	(void)program;
	assert_true(fd >= 0);
	looks++;
	assert_int_equal(pwrite(fd, held, waits * sizeof(held[0]), 0), waits * sizeof(held[0]));
	return fd;
}

static struct waffle_bpf bpf;

static struct kernel begin(void)
{
	looks = 0;
	waits = 1;
	held[0] = (struct waffle_mmap_lock_wait){.switches = 7, .tid = 11, .tgid = 10, .owner = 1};
	held[1] = (struct waffle_mmap_lock_wait){.switches = 5, .tid = 21, .tgid = 20, .owner = 1};
	return (struct kernel){.bpf = &bpf};
}

static int check(struct kernel *kernel)
{
	struct error err = ERROR_INIT;

	return kernel_locks_check(kernel, "file", &err);
}

/* The next call looks at once. */
static int check_later(struct kernel *kernel)
{
	kernel->locks.until_ts = clock_monotonic_ns();
	return check(kernel);
}

static void test_a_wait_that_lasts_through_all_looks_keeps_a_lock(void **state)
{
	struct kernel kernel = begin();

	(void)state;
	assert_int_equal(check(&kernel), -EBUSY);
	assert_int_equal(looks, 11);
	assert_int_equal(kernel.locks.pid, 10);
	assert_int_equal(check(&kernel), -EBUSY); /* still known */
	assert_int_equal(looks, 11);
}

/* Threads that use a lock much wait for it one after the other. */
static void test_waits_that_follow_each_other_keep_none(void **state)
{
	struct kernel kernel = begin();

	(void)state;
	kernel_looks_briefly(&kernel);
	assert_int_equal(check(&kernel), -EAGAIN);
	held[0].switches++;
	assert_int_equal(check_later(&kernel), 0);
}

static void test_while_records_are_drained_few_looks_are_taken_at_once(void **state)
{
	struct kernel kernel = begin();

	(void)state;
	kernel_looks_briefly(&kernel);
	assert_int_equal(check(&kernel), -EAGAIN);
	assert_int_equal(looks, 3);
	for (unsigned expected = 4; expected < 11; expected++) {
		assert_int_equal(check_later(&kernel), -EAGAIN);
		assert_int_equal(looks, expected);
	}
	assert_int_equal(check_later(&kernel), -EBUSY);
	waits = 0;
	assert_int_equal(check_later(&kernel), 0);
	assert_int_equal(kernel.locks.pid, 0);
}

/* Each lasts for two looks. */
static void test_waits_that_overlap_are_decided_in_the_end(void **state)
{
	struct kernel kernel = begin();
	unsigned calls = 0;

	(void)state;
	kernel_looks_briefly(&kernel);
	waits = 2;
	for (int result = check(&kernel); result; result = check_later(&kernel)) {
		assert_int_equal(result, -EAGAIN);
		held[calls++ % 2].switches++;
		assert_true(calls < 30);
	}
	assert_int_equal(looks, 22);
}

static void test_a_wait_that_comes_during_the_looks_keeps_a_lock(void **state)
{
	struct kernel kernel = begin();

	(void)state;
	kernel_looks_briefly(&kernel);
	assert_int_equal(check(&kernel), -EAGAIN);
	waits = 2;
	assert_int_equal(check_later(&kernel), -EAGAIN);
	held[0] = held[1]; /* the first one has ended */
	waits = 1;
	for (unsigned i = 2; i < 11; i++)
		assert_int_equal(check_later(&kernel), -EAGAIN);
	assert_int_equal(check_later(&kernel), -EBUSY);
	assert_int_equal(kernel.locks.pid, 20);
}

/* A wait that has begun since then may last for long. */
static void test_looks_that_were_left_begin_anew(void **state)
{
	struct kernel kernel = begin();

	(void)state;
	kernel_looks_briefly(&kernel);
	assert_int_equal(check(&kernel), -EAGAIN);
	kernel.locks.until_ts = 0;
	held[0] = held[1];
	assert_int_equal(check(&kernel), -EAGAIN);
	assert_int_equal(looks, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wait_that_lasts_through_all_looks_keeps_a_lock),
		cmocka_unit_test(test_waits_that_follow_each_other_keep_none),
		cmocka_unit_test(test_waits_that_overlap_are_decided_in_the_end),
		cmocka_unit_test(test_a_wait_that_comes_during_the_looks_keeps_a_lock),
		cmocka_unit_test(test_looks_that_were_left_begin_anew),
		cmocka_unit_test(test_while_records_are_drained_few_looks_are_taken_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
