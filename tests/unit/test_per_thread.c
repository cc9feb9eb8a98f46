// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "usdt/gpu/per_thread.h"

struct thing {
	struct per_thread memory;
	char text[5000];
};

static struct per_thread_list all;
static __thread struct per_thread *own;

static struct thing *thing_get(void)
{
	return (struct thing *)(own ?: per_thread_open(&all, &own, sizeof(struct thing)));
}

static unsigned count(void)
{
	unsigned count = 0;

	for (struct per_thread *one = per_thread_first(&all); one; one = one->next)
		count++;
	return count;
}

/* Returns the thread's memory, which it has found zero. */
static void *fill(void *arg)
{
	struct thing *thing = thing_get();
	static const char zero[sizeof(thing->text)];

	(void)arg;
	if (!thing || memcmp(thing->text, zero, sizeof(zero)) != 0)
		return NULL;
	memset(thing->text, 'x', sizeof(thing->text));
	return thing;
}

static void *in_a_thread(void)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, fill, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	return result;
}

static void test_a_thread_keeps_its_memory(void **state)
{
	struct thing *first = thing_get();

	(void)state;
	assert_non_null(first);
	assert_ptr_equal(thing_get(), first);
}

/* The kernel may still know a thread that has just been joined, so the next one may get memory of
 * its own, too. Which of several that are free a thread gets is not said. */
static void test_memory_of_a_thread_that_has_ended_is_given_to_another_one_as_zero(void **state)
{
	void *next;
	unsigned before;

	(void)state;
	thing_get();
	assert_non_null(in_a_thread());
	do {
		before = count();
		next = in_a_thread();
		assert_non_null(next);
		assert_ptr_not_equal(next, thing_get());
	} while (count() != before);
}

/* The thread that continues in the child has another tid there than the owner of its memory. */
static void test_threads_of_a_child_leave_the_memory_of_the_one_that_forked(void **state)
{
	struct thing *thing = thing_get();
	pid_t child;
	int status;

	(void)state;
	strcpy(thing->text, "the forking thread's");
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		void *others = in_a_thread();

		_exit(!others || others == thing || thing_get() != thing ||
		      strcmp(thing->text, "the forking thread's") != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_many_threads_one_after_the_other_share_little_memory(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_non_null(in_a_thread());
	assert_in_range(count(), 1, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_keeps_its_memory),
		cmocka_unit_test(
			test_memory_of_a_thread_that_has_ended_is_given_to_another_one_as_zero),
		cmocka_unit_test(test_threads_of_a_child_leave_the_memory_of_the_one_that_forked),
		cmocka_unit_test(test_many_threads_one_after_the_other_share_little_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
