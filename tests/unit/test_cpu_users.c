// SPDX-License-Identifier: Apache-2.0
/* Which processes are recorded as users of the CPU time of a cgroup, and with how much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "capture/enrich/cpu_users_internal.h"
#include "target/process/cgroup.h"
#include "target/process/cpu_time.h"
#include "target/process/process.h"

#define MS 1000000ull
#define CGROUP 77

/* Times in ms; the process is in the cgroup if `present`. */
static struct process {
	bool present;
	uint64_t start, ran;
} processes[16];
static uint64_t now_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
bool __wrap_cgroup_path(char *path, size_t size, pid_t tid, uint64_t ino);
void __wrap_cgroup_processes_each(const char *path, void (*each)(pid_t pid, void *arg), void *arg);
bool __wrap_process_cpu_time(struct cpu_time *time, pid_t pid);
void __wrap_process_comm(pid_t pid, char comm[16]);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now->tv_sec = (time_t)(now_ms / 1000);
	now->tv_nsec = (long)(now_ms % 1000 * MS);
	return 0;
}

bool __wrap_cgroup_path(char *path, size_t size, pid_t tid, uint64_t ino)
{
	(void)tid;
	return ino == CGROUP && snprintf(path, size, "/") == 1;
}

void __wrap_cgroup_processes_each(const char *path, void (*each)(pid_t pid, void *arg), void *arg)
{
	(void)path;
	for (pid_t pid = 1; pid < 16; pid++)
		if (processes[pid].present)
			each(pid, arg);
}

bool __wrap_process_cpu_time(struct cpu_time *time, pid_t pid)
{
	*time = (struct cpu_time){.ran_ns = processes[pid].ran * MS,
				  .start_ns = processes[pid].start * MS};
	return true;
}

void __wrap_process_comm(pid_t pid, char comm[16])
{
	snprintf(comm, 16, "p%d", pid);
}

/* What was passed: "p3 80 of 2000", by falling time. */
static char passed[256];

static int rec_take(struct waffle_rec *rec, void *arg)
{
	const struct waffle_rec_task *task = (const struct waffle_rec_task *)rec;
	const struct waffle_rec_io_limit *limit = (const struct waffle_rec_io_limit *)rec;
	size_t len = strlen(passed);

	(void)arg;
	if (rec->kind == WAFFLE_REC_TASK) {
		assert_int_equal(task->flags, 0); /* it is not traced */
		snprintf(passed + len, sizeof(passed) - len, "%s ", task->comm);
		return 0;
	}
	assert_int_equal(limit->cgroup, CGROUP);
	assert_int_equal(limit->kind, WAFFLE_IO_LIMIT_CPU_USER);
	snprintf(passed + len, sizeof(passed) - len, "%u of %u; ", (unsigned)(limit->limit / MS),
		 limit->dev);
	return 0;
}

/* The records of these processes, whose cgroup throttled at 10 s, at 12 s. */
static void check_passed(const struct process *before, const struct process *after, size_t count,
			 const char *expected)
{
	struct cpu_users *users = cpu_users_open();

	assert_non_null(users);
	memset(processes, 0, sizeof(processes));
	memcpy(&processes[1], before, count * sizeof(*before));
	now_ms = 10000;
	cpu_users_throttled(users, CGROUP, 1);
	cpu_users_throttled(users, CGROUP + 1, 1); /* it is not found */
	now_ms = 11000;
	cpu_users_throttled(users, CGROUP, 1);
	now_ms = 12000;
	memcpy(&processes[1], after, count * sizeof(*after));
	*passed = '\0';
	assert_int_equal(cpu_users_each(users, 1, rec_take, NULL), 0);
	assert_string_equal(passed, expected);
	cpu_users_close(users);
}

static void test_processes_are_recorded_by_the_time_that_they_ran_since(void **state)
{
	static const struct process before[] = {{true, 1000, 500},
						{true, 1000, 900},
						{true, 1000, 5}},
				    after[] = {
					    {true, 1000, 580}, {true, 1000, 2000}, {true, 1000, 5}};

	(void)state;
	check_passed(before, after, 3, "p2 1100 of 2000; p1 80 of 2000; ");
}

static void test_a_process_whose_time_before_is_unknown_is_not_recorded(void **state)
{
	static const struct process before[] = {{true, 1000, 500}, {false, 0, 0}, {false, 0, 0}};
	static const struct process after[] = {
		{true, 11000, 600}, /* another one has its pid */
		{true, 11500, 70},  /* it was started since */
		{true, 2000, 9000}, /* it came from another cgroup */
	};

	(void)state;
	check_passed(before, after, 3, "p1 600 of 2000; p2 70 of 2000; ");
}

static void test_only_the_eight_that_ran_longest_are_recorded(void **state)
{
	struct process before[12], after[12];

	(void)state;
	for (size_t i = 0; i < 12; i++) {
		before[i] = (struct process){true, 1000, 100};
		after[i] = (struct process){true, 1000, 101 + i * 5 % 12};
	}
	check_passed(before, after, 12,
		     "p8 12 of 2000; p3 11 of 2000; p10 10 of 2000; p5 9 of 2000; p12 8 of 2000; "
		     "p7 7 of 2000; p2 6 of 2000; p9 5 of 2000; ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes_are_recorded_by_the_time_that_they_ran_since),
		cmocka_unit_test(test_a_process_whose_time_before_is_unknown_is_not_recorded),
		cmocka_unit_test(test_only_the_eight_that_ran_longest_are_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
