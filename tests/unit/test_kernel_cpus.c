// SPDX-License-Identifier: Apache-2.0
/*
 * CPUs that come online while a capture runs, and how much memory each has: on this machine's CPUs,
 * with a file that says which of them are online. Needs root, and two CPUs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "kernel/cpus_internal.h"
#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

#define SWITCHES 50

struct rig {
	char folder[64], file[80];
	struct kernel *kernel;
	unsigned came;
	uint32_t came_last;
};

static void online_write(const struct rig *rig, const char *list)
{
	FILE *file = fopen(rig->file, "w");

	assert_non_null(file);
	fprintf(file, "%s\n", list);
	fclose(file);
}

static void rig_make(struct rig *rig, const char *list)
{
	*rig = (struct rig){.folder = "/tmp/waffle-online-XXXXXX"};
	assert_non_null(mkdtemp(rig->folder));
	snprintf(rig->file, sizeof(rig->file), "%s/online", rig->folder);
	online_write(rig, list);
}

static void rig_open(struct rig *rig, struct kernel_options *options)
{
	struct error err = ERROR_INIT;

	options->cpus_folder = rig->folder;
	if (kernel_open(&rig->kernel, options, &err)) {
		print_message("%s\n", err.message);
		skip();
	}
}

static void rig_remove(struct rig *rig)
{
	kernel_close(rig->kernel);
	remove(rig->file);
	rmdir(rig->folder);
}

static void check_online(const struct rig *rig, const char *list, const char *expected)
{
	uint32_t count = (uint32_t)strlen(expected);
	bool online[16];

	online_write(rig, list);
	cpus_online(online, count, rig->folder);
	for (uint32_t cpu = 0; cpu < count; cpu++)
		assert_int_equal(online[cpu], expected[cpu] == '1');
}

static void test_list_of_cpus_is_read(void **state)
{
	struct rig rig;
	bool one;

	(void)state;
	rig_make(&rig, "0");
	check_online(&rig, "0", "1000");
	check_online(&rig, "0-3", "111100");
	check_online(&rig, "0,2-3,6", "10110010");
	check_online(&rig, "1-15", "0111"); /* more than are possible */
	check_online(&rig, "", "00");
	check_online(&rig, "0-x", "00");
	cpus_online(&one, 1, "/nowhere");
	assert_true(one);
	rig_remove(&rig);
}

static uint64_t lost(const struct rig *rig, uint32_t cpu)
{
	return kernel_cpu(rig->kernel, cpu)->dropped[WAFFLE_SOURCE_SCHED];
}

/* Switches of this thread on a CPU. */
static void switch_on(uint32_t cpu)
{
	struct timespec time = {.tv_nsec = 100000};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	for (int i = 0; i < SWITCHES; i++)
		nanosleep(&time, NULL);
}

static void came(uint32_t cpu, void *arg)
{
	struct rig *rig = arg;

	rig->came++;
	rig->came_last = cpu;
}

static bool faults_are_counted(const struct rig *rig, uint32_t cpu)
{
	return rig->kernel->bpf->bss->fault_cpus[0] >> cpu & 1;
}

static void test_cpu_that_comes_online_is_recorded_from_then_on(void **state)
{
	struct kernel_options options = {.ring_bytes = 1 << 20,
					 .config.sched_slots = 1 << 18, /* nobody reads them here */
					 .sched = true,
					 .config.wait_sources = WAFFLE_WAIT_FAULTS,
					 .config.wait_min_ns = 1000};
	struct error err = ERROR_INIT;
	struct rig rig;
	uint64_t before;
	bool faults;

	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	rig_make(&rig, "0");
	rig_open(&rig, &options);
	faults = kernel_wait_sources(rig.kernel) & WAFFLE_WAIT_FAULTS;
	assert_int_equal(kernel_target_add(rig.kernel, getpid(), &err), 0);
	assert_int_equal(kernel_attach(rig.kernel, &err), 0);
	switch_on(0);
	assert_int_equal(lost(&rig, 0), 0);
	assert_int_equal(faults_are_counted(&rig, 0), 1);
	switch_on(1); /* what it can't record is counted */
	assert_in_range(lost(&rig, 1), SWITCHES, UINT32_MAX);
	assert_false(faults_are_counted(&rig, 1));

	online_write(&rig, "0-1");
	kernel_cpus_check(rig.kernel, came, &rig);
	assert_int_equal(rig.came, 1);
	assert_int_equal(rig.came_last, 1);
	assert_int_equal(faults_are_counted(&rig, 1), faults);
	before = lost(&rig, 1);
	switch_on(1);
	assert_int_equal(lost(&rig, 1), before);
	assert_in_range(kernel_cpu(rig.kernel, 1)->head, SWITCHES, UINT32_MAX);
	assert_int_equal(kernel_slot(rig.kernel, 1, 0)->rec.cpu, 1);

	online_write(&rig, "0");
	kernel_cpus_check(rig.kernel, came, &rig);
	assert_false(faults_are_counted(&rig, 1));
	assert_int_equal(rig.came, 1);
	rig_remove(&rig);
}

static void test_memory_is_bounded_over_all_cpus(void **state)
{
	struct kernel_options options = {.ring_bytes = 8 << 20,
					 .ring_total = 1 << 20,
					 .config.sched_slots = 65536,
					 .sched_total = 1 << 20,
					 .sched = true};
	struct rig rig;

	(void)state;
	rig_make(&rig, "0");
	rig_open(&rig, &options);
	assert_int_equal(kernel_ring_bytes(rig.kernel), 1 << 20);
	assert_true(rig.kernel->slot_bytes <= 1 << 20);
	assert_int_equal(rig.kernel->slot_bytes, rig.kernel->rows * kernel_slot_count(rig.kernel) *
							 sizeof(struct waffle_rec_switch));
	kernel_close(rig.kernel);
	options.ring_total = options.sched_total = 0;
	rig_open(&rig, &options);
	assert_int_equal(kernel_ring_bytes(rig.kernel), 8 << 20);
	assert_int_equal(kernel_slot_count(rig.kernel), 65536);
	rig_remove(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list_of_cpus_is_read),
		cmocka_unit_test(test_cpu_that_comes_online_is_recorded_from_then_on),
		cmocka_unit_test(test_memory_is_bounded_over_all_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
