// SPDX-License-Identifier: Apache-2.0
/* Limit of the files that can have unwind tables at a time (capture/enrich/stacks_internal.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/stack.h"
#include "capture/enrich/stacks_internal.h"

#define QUEUED_MAX 1024 /* ASKED_MAX of capture/enrich/tables.c */

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

	assert_int_equal(stacks_ready(stacks, false, &err), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_files_that_wait_for_tables_hold_a_bounded_number_of_descriptors),
		cmocka_unit_test(test_too_many_files_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
