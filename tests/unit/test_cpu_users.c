// SPDX-License-Identifier: Apache-2.0
/* Which processes are recorded as users of the CPU time of a cgroup, and with how much. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/enrich/cpu_users_internal.h"
#include "target/process/cgroup.h"
#include "target/process/cpu_time.h"
#include "target/process/process.h"

#define MS 1000000ull

/* Times in ms; the process is in the cgroup if `present`. */
static struct process {
	bool present;
	uint64_t start, ran;
} processes[16];
static uint64_t now_ms;
static uint32_t recorded; /* a bit for each process */
static uint64_t read_ms;  /* how long it takes to read the time of a process */
static char folder[] = "/tmp/waffle-test-cpu-users-XXXXXX";
static uint64_t cgroup; /* inode of the folder, which stands for that of the cgroup */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
bool __wrap_cgroup_path(char *path, size_t size, pid_t tid, uint64_t ino, const char *controller);
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

bool __wrap_cgroup_path(char *path, size_t size, pid_t tid, uint64_t ino, const char *controller)
{
	(void)tid;
	assert_string_equal(controller, "cpu");
	return ino == cgroup && snprintf(path, size, "%s", folder) > 0;
}

void __wrap_cgroup_processes_each(const char *path, void (*each)(pid_t pid, void *arg), void *arg)
{
	assert_string_equal(path, folder);
	for (pid_t pid = 1; pid < 16; pid++)
		if (processes[pid].present)
			each(pid, arg);
}

bool __wrap_process_cpu_time(struct cpu_time *time, pid_t pid)
{
	*time = (struct cpu_time){.ran_ns = processes[pid].ran * MS,
				  .start_ns = processes[pid].start * MS};
	now_ms += read_ms;
	return true;
}

void __wrap_process_comm(pid_t pid, char comm[16])
{
	snprintf(comm, 16, "p%d", pid);
}

static bool is_recorded(pid_t pid, void *arg)
{
	(void)arg;
	return recorded >> pid & 1;
}

/* What was passed: "p3 80 of 2000". */
static char passed[256];
static unsigned stop_at; /* record that stops */

static int rec_take(struct waffle_rec *rec, void *arg)
{
	const struct waffle_rec_task *task = (const struct waffle_rec_task *)rec;
	const struct waffle_rec_io_limit *limit = (const struct waffle_rec_io_limit *)rec;
	size_t len = strlen(passed);

	(void)arg;
	if (stop_at && !--stop_at)
		return -EIO;
	if (rec->kind == WAFFLE_REC_TASK) {
		assert_int_equal(task->flags, 0); /* it is not traced */
		snprintf(passed + len, sizeof(passed) - len, "%s ", task->comm);
		return 0;
	}
	assert_int_equal(limit->cgroup, cgroup);
	assert_int_equal(limit->kind, WAFFLE_IO_LIMIT_CPU_USER);
	snprintf(passed + len, sizeof(passed) - len, "%u of %u; ", (unsigned)(limit->limit / MS),
		 limit->dev);
	return 0;
}

/* The cgroup throttles at 10 s, when it has these processes. */
static struct cpu_users *throttled(const struct process *before, size_t count)
{
	struct cpu_users *users = cpu_users_open();
	struct stat info;

	assert_non_null(users);
	assert_int_equal(stat(folder, &info), 0);
	cgroup = info.st_ino;
	memset(processes, 0, sizeof(processes));
	if (count)
		memcpy(&processes[1], before, count * sizeof(*before));
	now_ms = 10000;
	cpu_users_throttled(users, cgroup, 1);
	cpu_users_throttled(users, cgroup + 1, 1); /* it is not found */
	now_ms = 11000;
	cpu_users_throttled(users, cgroup, 1);
	return users;
}

/* What is recorded of these processes at 12 s. */
static void check_passed(struct cpu_users *users, const struct process *after, size_t count,
			 int result, const char *expected)
{
	now_ms = 12000;
	memcpy(&processes[1], after, count * sizeof(*after));
	*passed = '\0';
	assert_int_equal(cpu_users_each(users, 1, is_recorded, rec_take, NULL), result);
	assert_string_equal(passed, expected);
	cpu_users_close(users);
}

static void test_processes_are_recorded_with_the_time_that_they_ran_since(void **state)
{
	static const struct process before[] = {{true, 1000, 500},
						{true, 1000, 900},
						{true, 1000, 5}},
				    after[] = {
					    {true, 1000, 580}, {true, 1000, 2000}, {true, 1000, 5}};

	(void)state;
	check_passed(throttled(before, 3), after, 3, 0, "p1 80 of 2000; p2 1100 of 2000; ");
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
	check_passed(throttled(before, 3), after, 3, 0, "p1 600 of 2000; p2 70 of 2000; ");
}

static void test_all_but_those_that_are_recorded_themselves_are_passed(void **state)
{
	struct process before[12], after[12];

	(void)state;
	for (size_t i = 0; i < 12; i++) {
		before[i] = (struct process){true, 1000, 100};
		after[i] = (struct process){true, 1000, 101 + i};
	}
	recorded = ~(1u << 1 | 1u << 7);
	check_passed(throttled(before, 12), after, 12, 0, "p1 1 of 2000; p7 7 of 2000; ");
	recorded = 1u << 1 | 1u << 2;
	check_passed(
		throttled(before, 12), after, 12, 0,
		"p3 3 of 2000; p4 4 of 2000; p5 5 of 2000; p6 6 of 2000; p7 7 of 2000; "
		"p8 8 of 2000; p9 9 of 2000; p10 10 of 2000; p11 11 of 2000; p12 12 of 2000; ");
	recorded = 0;
}

/* 20 ms for a cgroup. */
static void test_the_search_ends_in_time(void **state)
{
	struct process before[8], after[8];
	struct cpu_users *users;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		before[i] = (struct process){true, 1000, 100};
		after[i] = (struct process){true, 1000, 101};
	}
	users = throttled(before, 8);
	read_ms = 5;
	check_passed(users, after, 8, 0,
		     "p1 1 of 2005; p2 1 of 2010; p3 1 of 2015; p4 1 of 2020; ");
	read_ms = 0;
}

static void test_the_search_ends_when_a_record_is_not_taken(void **state)
{
	static const struct process before[] = {{true, 1000, 1}, {true, 1000, 1}, {true, 1000, 1}},
				    after[] = {{true, 1000, 2}, {true, 1000, 2}, {true, 1000, 2}};

	(void)state;
	stop_at = 3;
	check_passed(throttled(before, 3), after, 3, -EIO, "p1 1 of 2000; ");
	assert_int_equal(stop_at, 0);
}

static void test_a_cgroup_made_again_at_the_path_is_not_the_old_one(void **state)
{
	static const struct process process = {true, 11500, 70};
	char again[sizeof(folder) + 6];
	struct cpu_users *users = throttled(NULL, 0);

	(void)state;
	snprintf(again, sizeof(again), "%s-again", folder);
	assert_int_equal(mkdir(again, 0700), 0);
	assert_int_equal(rename(again, folder), 0);
	check_passed(users, &process, 1, 0, "");
}

static int folder_make(void **state)
{
	(void)state;
	return !mkdtemp(folder);
}

static int folder_remove(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes_are_recorded_with_the_time_that_they_ran_since),
		cmocka_unit_test(test_a_process_whose_time_before_is_unknown_is_not_recorded),
		cmocka_unit_test(test_all_but_those_that_are_recorded_themselves_are_passed),
		cmocka_unit_test(test_the_search_ends_in_time),
		cmocka_unit_test(test_the_search_ends_when_a_record_is_not_taken),
		cmocka_unit_test(test_a_cgroup_made_again_at_the_path_is_not_the_old_one),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
