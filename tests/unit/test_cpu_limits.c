// SPDX-License-Identifier: Apache-2.0
/* Which threads others go before, and which may not run on all CPUs. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "target/process/cpu_limits.h"

static void test_a_policy_that_children_do_not_inherit_counts(void **state)
{
	const struct sched_param none = {0};
	uint64_t nice;
	uint32_t policy;

	(void)state;
	assert_int_equal(sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none), 0);
	assert_int_equal(setpriority(PRIO_PROCESS, 0, 15), 0);
	assert_true(thread_is_nice(&nice, &policy, 0));
	assert_int_equal(nice, 15);
	assert_int_equal(policy, SCHED_BATCH);
	assert_int_equal(sched_setscheduler(0, SCHED_IDLE | SCHED_RESET_ON_FORK, &none), 0);
	assert_true(thread_is_nice(&nice, &policy, 0));
	assert_int_equal(policy, SCHED_IDLE);
}

static void test_cpus_count_as_limited_if_more_are_online(void **state)
{
	uint64_t count;
	uint32_t lowest;
	cpu_set_t cpus;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	assert_true(cpus_are_limited(&count, &lowest, 0, CPU_COUNT(&cpus) + 1));
	assert_int_equal(count, CPU_COUNT(&cpus));
	assert_true(CPU_ISSET(lowest, &cpus));
	assert_false(cpus_are_limited(&count, &lowest, 0, CPU_COUNT(&cpus)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_policy_that_children_do_not_inherit_counts),
		cmocka_unit_test(test_cpus_count_as_limited_if_more_are_online),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
