// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/process/tracer_id.h"

static void test_a_process_is_alive_until_it_has_ended(void **state)
{
	char id[TRACER_ID_BYTES];
	int ends[2], go[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(go), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		char byte;

		close(go[1]);
		if (!tracer_id_make(id) || write(ends[1], id, sizeof(id)) != sizeof(id))
			_exit(1);
		_exit(read(go[0], &byte, 1) != 0);
	}
	assert_int_equal(read(ends[0], id, sizeof(id)), sizeof(id));
	assert_true(tracer_id_is_alive(id));
	close(go[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(tracer_id_is_alive(id));
}

static void test_a_process_that_began_at_another_time_is_another_one(void **state)
{
	char id[TRACER_ID_BYTES], other[TRACER_ID_BYTES];
	unsigned long long start;
	long pid;

	(void)state;
	assert_true(tracer_id_make(id));
	assert_true(tracer_id_is_alive(id));
	assert_int_equal(sscanf(id, "%ld.%llu", &pid, &start), 2);
	assert_int_equal(pid, getpid());
	snprintf(other, sizeof(other), "%ld.%llu", pid, start + 1);
	assert_false(tracer_id_is_alive(other));
}

static void test_nonsense_names_no_process(void **state)
{
	static const char *const ids[] = {"",  ".",  "1",   "0.1",   "-1.5",
					  "x", "1.", "1.x", "1.2.3", "99999999999999999999.1"};

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		assert_false(tracer_id_is_alive(ids[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process_is_alive_until_it_has_ended),
		cmocka_unit_test(test_a_process_that_began_at_another_time_is_another_one),
		cmocka_unit_test(test_nonsense_names_no_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
