// SPDX-License-Identifier: Apache-2.0
/* Programs that read captures end with one line when memory runs out (util/memory.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/memory.h"

struct ended {
	char said[512];
	int status;
};

/* Runs `body` in a child process. Returns its output on stderr and its exit status. */
static struct ended run(void (*body)(void))
{
	struct ended ended = {0};
	size_t len = 0;
	ssize_t got;
	int ends[2];
	pid_t child;

	assert_return_code(pipe(ends), 0);
	child = fork();
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		body();
		_exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], ended.said + len, sizeof(ended.said) - 1 - len)) > 0)
		len += (size_t)got;
	close(ends[0]);
	assert_int_equal(waitpid(child, &ended.status, 0), child);
	return ended;
}

static void say_outer(void *arg, struct error *err)
{
	error_set(err, ENOMEM, "%s", (const char *)arg);
}

static void say_count(void *arg, struct error *err)
{
	error_set(err, ENOMEM, "out of memory after %d spans", *(int *)arg);
}

static void run_out(void)
{
	VEC(char) bytes = {0};

	vec_need(&bytes, SIZE_MAX);
}

static void fail_in_guards(void)
{
	int count = 7;
	struct memory_guard outer = {.call = say_outer, .arg = (void *)"the outer one"};
	struct memory_guard inner = {.call = say_count, .arg = &count};

	memory_guard_set(&outer);
	memory_guard_set(&inner);
	run_out();
}

static void fail_after_a_guard(void)
{
	int count = 7;
	struct memory_guard guard = {.call = say_count, .arg = &count};

	memory_guard_set(&guard);
	memory_guard_remove(&guard);
	run_out();
}

static void check(void (*body)(void), const char *says)
{
	struct ended ended = run(body);

	assert_string_equal(ended.said, says);
	assert_true(WIFEXITED(ended.status));
	assert_int_equal(WEXITSTATUS(ended.status), 1);
}

static void test_a_failed_allocation_ends_the_process_with_one_line(void **state)
{
	(void)state;
	check(run_out, "waffle-bpf: out of memory\n");
}

static void test_the_message_of_the_innermost_guard_counts(void **state)
{
	(void)state;
	check(fail_in_guards, "waffle-bpf: out of memory after 7 spans\n");
}

static void test_a_removed_guard_is_not_called(void **state)
{
	(void)state;
	check(fail_after_a_guard, "waffle-bpf: out of memory\n");
}

static void test_what_succeeds_returns(void **state)
{
	struct map map = {0};
	VEC(int) list = {0};
	struct strtab *texts = strtab_make();
	uint32_t number = strtab_put(texts, "one", 3);
	char *text = memory_text(strtab_get(texts, number));

	(void)state;
	for (int i = 0; i < 1000; i++) {
		vec_add(&list, i);
		map_put(&map, (uint64_t)i, (uint32_t)i + 1);
	}
	assert_int_equal(list.len, 1000);
	assert_int_equal(map_get(&map, 999), 1000);
	assert_string_equal(text, "one");
	free(text);
	free(memory_get(0));
	vec_free(&list);
	map_free(&map);
	strtab_free(texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_failed_allocation_ends_the_process_with_one_line),
		cmocka_unit_test(test_the_message_of_the_innermost_guard_counts),
		cmocka_unit_test(test_a_removed_guard_is_not_called),
		cmocka_unit_test(test_what_succeeds_returns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
