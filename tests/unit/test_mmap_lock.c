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
#include "waffle.skel.h"

static struct waffle_mmap_lock_wait held;
static bool waits;
static unsigned looks;

int __wrap_iterator_open(const struct bpf_program *program);

int __wrap_iterator_open(const struct bpf_program *program)
{
	int fd = memfd_create("waits", MFD_CLOEXEC);

	(void)program;
	assert_true(fd >= 0);
	looks++;
	if (waits)
		assert_int_equal(pwrite(fd, &held, sizeof(held), 0), sizeof(held));
	return fd;
}

static struct waffle_bpf bpf;

static struct kernel begin(void)
{
	looks = 0;
	waits = true;
	held = (struct waffle_mmap_lock_wait){.switches = 7, .tid = 11, .tgid = 10, .owner = 1};
	return (struct kernel){.bpf = &bpf};
}

static int check(struct kernel *kernel)
{
	struct error err = ERROR_INIT;

	return mmap_locks_check(kernel, "file", &err);
}

/* The next call looks at once. */
static int check_later(struct kernel *kernel)
{
	kernel->locks.until_ts = 0;
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

static void test_another_wait_of_the_thread_keeps_none(void **state)
{
	struct kernel kernel = begin();

	(void)state;
	kernel_drain_begins(&kernel);
	assert_int_equal(check(&kernel), -EAGAIN);
	held.switches++;
	assert_int_equal(check_later(&kernel), 0);
}

static void test_while_records_are_drained_few_looks_are_taken_at_once(void **state)
{
	struct kernel kernel = begin();

	(void)state;
	kernel_drain_begins(&kernel);
	assert_int_equal(check(&kernel), -EAGAIN);
	assert_int_equal(looks, 3);
	for (unsigned expected = 4; expected < 11; expected++) {
		assert_int_equal(check_later(&kernel), -EAGAIN);
		assert_int_equal(looks, expected);
	}
	assert_int_equal(check_later(&kernel), -EBUSY);
	waits = false;
	assert_int_equal(check_later(&kernel), 0);
	assert_int_equal(kernel.locks.pid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wait_that_lasts_through_all_looks_keeps_a_lock),
		cmocka_unit_test(test_another_wait_of_the_thread_keeps_none),
		cmocka_unit_test(test_while_records_are_drained_few_looks_are_taken_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
