// SPDX-License-Identifier: Apache-2.0
/* When cgroups are searched, and of which processes limits are passed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "capture/enrich/limits_internal.h"

#define MS 1000000ull

static uint64_t now_ns = 1;
static unsigned searches;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
bool __wrap_cgroup_path(char *path, size_t size, pid_t tid, uint64_t ino, const char *controller);
bool __wrap_cgroup_memory_user(struct cgroup_user *user, const char *path);
size_t __wrap_cgroup_io_limits(pid_t pid, struct cgroup_io_limit *limits, size_t max);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now->tv_sec = (time_t)(now_ns / (1000 * MS));
	now->tv_nsec = (long)(now_ns % (1000 * MS));
	return 0;
}

bool __wrap_cgroup_path(char *path, size_t size, pid_t tid, uint64_t ino, const char *controller)
{
	(void)tid, (void)ino, (void)controller;
	return snprintf(path, size, "/") == 1;
}

/* A cgroup of a thousand processes. */
bool __wrap_cgroup_memory_user(struct cgroup_user *user, const char *path)
{
	(void)path;
	searches++;
	now_ns += 10 * MS;
	*user = (struct cgroup_user){.pid = 7, .bytes = 1};
	return true;
}

size_t __wrap_cgroup_io_limits(pid_t pid, struct cgroup_io_limit *limits, size_t max)
{
	(void)max;
	*limits = (struct cgroup_io_limit){.cgroup = (uint64_t)pid, .limit = 1};
	return 1;
}

static uint32_t user_of(struct limits *limits, uint64_t cgroup)
{
	struct waffle_rec_memory memory = {.rec.ts = now_ns, .cgroup = cgroup};

	limits_memory(limits, &memory);
	return memory.user_pid;
}

/* Records wait meanwhile. */
static void test_many_cgroups_are_searched_one_by_one(void **state)
{
	struct limits *limits = limits_open();

	(void)state;
	assert_non_null(limits);
	searches = 0;
	for (uint64_t end_ns = now_ns + 2000 * MS; now_ns < end_ns; now_ns += MS)
		for (uint64_t cgroup = 1; cgroup <= 60; cgroup++)
			user_of(limits, cgroup);
	assert_in_range(searches, 2, 4);
	assert_int_equal(user_of(limits, 1), 7);
	assert_int_equal(user_of(limits, 60), 0);
	limits_close(limits);
}

static int add_pid(struct waffle_rec *rec, void *arg)
{
	uint32_t *sum = arg;

	*sum += rec->tid;
	return 0;
}

static uint32_t pids_of(struct limits *limits)
{
	uint32_t sum = 0;

	limits_each(limits, 1, add_pid, &sum);
	return sum;
}

static void test_limits_of_a_process_are_not_those_of_the_next_one_with_its_pid(void **state)
{
	struct cgroup_io_limit found[LIMITS_OF_PROCESS];
	struct limits *limits = limits_open();

	(void)state;
	assert_non_null(limits);
	assert_int_equal(limits_process(limits, 1, found), 1);
	assert_int_equal(limits_process(limits, 10, found), 1);
	assert_int_equal(limits_process(limits, 10, found), 0);
	limits_forget(limits, 10);
	limits_forget(limits, 100);
	assert_int_equal(pids_of(limits), 11); /* an end alone changes nothing */
	assert_int_equal(limits_process(limits, 10, found), 0);
	assert_int_equal(pids_of(limits), 1);
	limits_forget(limits, 10);
	assert_int_equal(limits_process(limits, 10, found), 0);
	assert_int_equal(pids_of(limits), 1);
	limits_close(limits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_cgroups_are_searched_one_by_one),
		cmocka_unit_test(
			test_limits_of_a_process_are_not_those_of_the_next_one_with_its_pid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
