// SPDX-License-Identifier: Apache-2.0
/* A process that becomes a target is written with its nice value. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/address_space/processes.h"
#include "capture/session_internal.h"

static char nice_value[16];

struct processes *__wrap_address_spaces_processes(struct address_spaces *spaces);
struct processes *__wrap_address_spaces_processes(struct address_spaces *spaces)
{
	(void)spaces;
	return NULL;
}

/* So it has no rank. */
bool __wrap_processes_is_privileged(const struct processes *processes, pid_t pid);
bool __wrap_processes_is_privileged(const struct processes *processes, pid_t pid)
{
	(void)processes;
	(void)pid;
	return true;
}

int __wrap_store_writer_add_process(struct store_writer *writer,
				    const struct store_process *process, struct error *err);
int __wrap_store_writer_add_process(struct store_writer *writer,
				    const struct store_process *process, struct error *err)
{
	(void)writer;
	(void)process;
	(void)err;
	return 0;
}

int __wrap_store_writer_add_attribute(struct store_writer *writer,
				      const struct store_attribute *attribute, struct error *err);
int __wrap_store_writer_add_attribute(struct store_writer *writer,
				      const struct store_attribute *attribute, struct error *err)
{
	(void)writer;
	(void)err;
	if (!strcmp(attribute->key, STORE_NICE))
		snprintf(nice_value, sizeof(nice_value), "%s", attribute->value);
	return 0;
}

/* The nice value that is written of a process; "": none. */
static const char *nice_of(pid_t pid)
{
	const struct session_options options = {.duration_ns = 1};
	static struct session session;

	session = (struct session){.options = &options};
	nice_value[0] = '\0';
	assert_int_equal(target_describe(&session, pid), 0);
	return nice_value;
}

/* After an exec, 0 replaces an earlier value. */
static void test_any_nice_value_is_written(void **state)
{
	pid_t child = fork();

	(void)state;
	if (!child) {
		alarm(60); /* also if a check fails */
		for (;;)
			pause();
	}
	if (!setpriority(PRIO_PROCESS, (id_t)child, -1)) /* only root may */
		assert_string_equal(nice_of(child), "-1");
	if (!setpriority(PRIO_PROCESS, (id_t)child, 0))
		assert_string_equal(nice_of(child), "0");
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)child, 19), 0);
	assert_string_equal(nice_of(child), "19");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_string_equal(nice_of(child), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_nice_value_is_written)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
