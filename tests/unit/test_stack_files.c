// SPDX-License-Identifier: Apache-2.0
/* Files that have unwind tables: their limit, and what counts before the tables are there
 * (capture/enrich/stacks_internal.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/stack.h"
#include "capture/enrich/stacks_internal.h"
#include "util/clock.h"

#define QUEUED_MAX 1024 /* ASKED_MAX of capture/enrich/tables.c */

/* The kernel has no room for tables, and forgets processes. */
bool kernel_program_is_privileged(const struct kernel *kernel, pid_t pid)
{
	(void)kernel, (void)pid;
	return false;
}

uint64_t kernel_program_since(const struct kernel *kernel, pid_t pid)
{
	(void)kernel, (void)pid;
	return 0;
}

/* Pages that are reserved, the calls for that, and pages that are requested without. */
static uint64_t reserved, unreserved;
static unsigned reservations;

int kernel_unwind_reserve(struct kernel *kernel, uint64_t count)
{
	(void)kernel;
	reserved += count;
	reservations++;
	return 0;
}

int64_t kernel_unwind_pages(struct kernel *kernel, uint32_t count)
{
	(void)kernel;
	if (count > reserved)
		unreserved += count;
	else
		reserved -= count;
	return -ENOSPC;
}

struct waffle_unwind_page *kernel_unwind_page(struct kernel *kernel, uint32_t page)
{
	(void)kernel, (void)page;
	return NULL;
}

void kernel_stack_file(struct kernel *kernel, const struct waffle_inode *inode,
		       const struct waffle_stack_file *file)
{
	(void)kernel, (void)inode, (void)file;
}

static bool kernel_knows; /* the last process */

int kernel_stack_process(struct kernel *kernel, pid_t pid,
			 const struct waffle_stack_process *process)
{
	(void)kernel, (void)pid;
	kernel_knows = process != NULL;
	return 0;
}

static struct stacks *begin(void)
{
	struct rlimit files = {0};
	struct error err = ERROR_INIT;
	struct stacks *stacks;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	assert_true(files.rlim_max > 4 * QUEUED_MAX);
	assert_int_equal(stacks_open(&stacks, NULL, NULL, &err), 0);
	return stacks;
}

/* A file that no other has the inode of. It is no program, so its table is empty. */
static void new_file(struct stacks *stacks)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	stacks_file(stacks, fd, "file");
	close(fd);
}

static void wait_for_tables(struct stacks *stacks)
{
	struct error err = ERROR_INIT;

	assert_int_equal(stacks_ready(stacks, true, false, &err), 0);
}

/* The names in a folder of /proc/self; *last: the last one as a number. */
static unsigned count_in(const char *folder, int *last)
{
	DIR *names = opendir(folder);
	const struct dirent *name;
	unsigned count = 0;

	assert_non_null(names);
	while ((name = readdir(names)))
		if (name->d_name[0] != '.') {
			*last = atoi(name->d_name);
			count++;
		}
	closedir(names);
	return count;
}

static sem_t stopped, go;

static void stop_here(int signal)
{
	(void)signal;
	sem_post(&stopped);
	while (sem_wait(&go))
		;
}

/* Stops the thread that makes tables until go_on(). */
static void stop_thread(void)
{
	struct sigaction action = {.sa_handler = stop_here};
	int thread = 0;

	sem_init(&stopped, 0, 0);
	sem_init(&go, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	count_in("/proc/self/task", &thread);
	assert_int_not_equal(thread, gettid());
	assert_int_equal(syscall(SYS_tgkill, getpid(), thread, SIGUSR1), 0);
	while (sem_wait(&stopped))
		;
}

static void test_files_that_wait_for_tables_hold_a_bounded_number_of_descriptors(void **state)
{
	struct stacks *stacks = begin();
	unsigned before, after;
	int last;

	(void)state;
	new_file(stacks);
	wait_for_tables(stacks);
	before = count_in("/proc/self/fd", &last);
	stop_thread();
	for (unsigned i = 0; i < 2 * QUEUED_MAX; i++)
		new_file(stacks);
	after = count_in("/proc/self/fd", &last);
	sem_post(&go);
	assert_int_equal(after - before, QUEUED_MAX);
	wait_for_tables(stacks);
	assert_int_equal(count_in("/proc/self/fd", &last), before);
	assert_null(stacks_warning(stacks));
	stacks_free(stacks);
}

static void test_too_many_files_are_reported(void **state)
{
	struct stacks *stacks = begin();

	(void)state;
	for (unsigned i = 1; i <= WAFFLE_STACK_FILES_MAX; i++) {
		new_file(stacks);
		if (i % (QUEUED_MAX / 2) == 0)
			wait_for_tables(stacks);
	}
	assert_null(stacks_warning(stacks));
	new_file(stacks);
	assert_non_null(stacks_warning(stacks));
	stacks_free(stacks);
}

static void test_stacks_that_are_cut_before_the_tables_are_there_count_as_early(void **state)
{
	struct error err = ERROR_INIT;
	struct stacks *stacks = begin();
	uint32_t pid = (uint32_t)getpid();
	uint64_t before;

	(void)state;
	new_file(stacks);
	wait_for_tables(stacks);
	stop_thread();
	assert_int_equal(stacks_process(stacks, getpid(), true, &err), 0);
	before = clock_monotonic_ns();
	assert_int_equal(stacks_early(stacks), 0);
	stacks_cut(stacks, pid, before);
	assert_int_equal(stacks_early(stacks), 1);
	stacks_cut(stacks, 1, before); /* not a process of the capture */
	assert_int_equal(stacks_early(stacks), 1);
	sem_post(&go);
	wait_for_tables(stacks);
	stacks_cut(stacks, pid, clock_monotonic_ns());
	assert_int_equal(stacks_early(stacks), 1);
	stacks_cut(stacks, pid, before); /* its record came late */
	assert_int_equal(stacks_early(stacks), 2);
	stacks_free(stacks);
}

/* The record of an exec may come after the new program was read. */
static void test_a_late_exec_does_not_void_what_was_read_of_the_new_program(void **state)
{
	struct error err = ERROR_INIT;
	struct stacks *stacks = begin();
	uint64_t exec_ts = clock_monotonic_ns();

	(void)state;
	assert_int_equal(stacks_process(stacks, getpid(), false, &err), 0);
	stacks_forget(stacks, getpid(), exec_ts);
	assert_true(kernel_knows);
	stacks_forget(stacks, getpid(), clock_monotonic_ns());
	assert_false(kernel_knows);
	stacks_free(stacks);
}

/* The kernel waits at each reservation. */
static void test_tables_that_come_together_make_room_once(void **state)
{
	struct error err = ERROR_INIT;
	struct stacks *stacks = begin();

	(void)state;
	reserved = unreserved = reservations = 0;
	assert_int_equal(stacks_process(stacks, getpid(), false, &err), 0);
	assert_int_equal(reservations, 0);
	wait_for_tables(stacks);
	assert_int_equal(reservations, 1);
	assert_int_equal(reserved, 0);
	assert_int_equal(unreserved, 0);
	stacks_free(stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_files_that_wait_for_tables_hold_a_bounded_number_of_descriptors),
		cmocka_unit_test(test_too_many_files_are_reported),
		cmocka_unit_test(
			test_stacks_that_are_cut_before_the_tables_are_there_count_as_early),
		cmocka_unit_test(test_a_late_exec_does_not_void_what_was_read_of_the_new_program),
		cmocka_unit_test(test_tables_that_come_together_make_room_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
