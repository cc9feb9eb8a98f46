// SPDX-License-Identifier: Apache-2.0
/*
 * The frequency of CPUs, on a machine that is made up: files as the kernel has them, and the
 * program that the kernel would run at a change. The latter needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/wait.h"
#include "kernel/cpus_internal.h"
#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

#define RECORDS_MAX 8

struct machine {
	char folder[64];
	struct waffle_rec_frequency records[RECORDS_MAX];
	uint32_t count;
};

static void file_write(const char *folder, uint32_t cpu, const char *name, uint32_t number)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu%u", folder, cpu);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/cpu%u/cpufreq", folder, cpu);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/cpu%u/cpufreq/%s", folder, cpu, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%u\n", number);
	fclose(file);
}

/* CPU 0 has a frequency. */
static int machine_make(void **state)
{
	struct machine *machine = calloc(1, sizeof(*machine));

	if (!machine)
		return -1;
	snprintf(machine->folder, sizeof(machine->folder), "/tmp/waffle-cpus-XXXXXX");
	if (!mkdtemp(machine->folder))
		return -1;
	file_write(machine->folder, 0, "scaling_cur_freq", 3000000);
	file_write(machine->folder, 0, "cpuinfo_max_freq", 3500000);
	*state = machine;
	return 0;
}

static int machine_remove(void **state)
{
	struct machine *machine = *state;
	static const char *const names[] = {"/cpu0/cpufreq/scaling_cur_freq",
					    "/cpu0/cpufreq/cpuinfo_max_freq", "/cpu0/cpufreq",
					    "/cpu0", ""};
	char path[160];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", machine->folder, names[i]);
		remove(path);
	}
	free(machine);
	return 0;
}

static void test_frequency_is_read_where_the_machine_has_one(void **state)
{
	const struct machine *machine = *state;
	struct cpu_frequency frequency;

	assert_true(cpu_frequency_read(&frequency, machine->folder, 0));
	assert_int_equal(frequency.khz, 3000000);
	assert_int_equal(frequency.max_khz, 3500000);
	assert_false(cpu_frequency_read(&frequency, machine->folder, 1));
	assert_false(cpu_frequency_read(&frequency, "/nowhere", 0));
}

/* Runs it as the kernel does, only from another place. */
static void frequency_changes(struct kernel *kernel, uint32_t khz, uint32_t cpu)
{
	__u64 arguments[2] = {khz, cpu};
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = arguments, .ctx_size_in = sizeof(arguments));

	assert_int_equal(
		bpf_prog_test_run_opts(bpf_program__fd(kernel->bpf->progs.on_frequency), &run), 0);
}

static void record_take(const void *data, size_t bytes, void *arg)
{
	struct machine *machine = arg;

	if (((const struct waffle_rec *)data)->kind != WAFFLE_REC_FREQUENCY)
		return;
	assert_int_equal(bytes, sizeof(machine->records[0]));
	assert_in_range(machine->count, 0, RECORDS_MAX - 1);
	machine->records[machine->count++] = *(const struct waffle_rec_frequency *)data;
}

static void check_record(const struct waffle_rec_frequency *record, uint32_t khz, uint32_t flags)
{
	assert_int_equal(record->rec.cpu, 0);
	assert_int_equal(record->rec.tid, 0);
	assert_int_equal(record->khz, khz);
	assert_int_equal(record->max_khz, 3500000);
	assert_int_equal(record->flags, flags);
}

static void test_kernel_tells_of_changes_that_are_worth_it(void **state)
{
	struct machine *machine = *state;
	struct kernel_options options = {.ring_bytes = 4096,
					 .config.sched_slots = 64,
					 .sched = true,
					 .config.wait_sources = WAFFLE_WAIT_FREQUENCY,
					 .cpus_folder = machine->folder};
	struct error err = ERROR_INIT;
	struct kernel *kernel;
	uint64_t produced = 0;

	if (geteuid())
		skip();
	if (kernel_open(&kernel, &options, &err))
		fail_msg("%s", err.message);
	assert_int_equal(kernel_wait_sources(kernel), WAFFLE_WAIT_FREQUENCY);
	assert_int_equal(kernel_attach(kernel, &err), 0);
	frequency_changes(kernel, 2900000, 0); /* less than a twentieth */
	frequency_changes(kernel, 2800000, 0);
	frequency_changes(kernel, 2800000, 0);
	frequency_changes(kernel, 1000000, UINT32_MAX); /* no such CPU */
	frequency_changes(kernel, 3500000, 0);
	kernel_finish(kernel);
	frequency_changes(kernel, 1000000, 0);
	kernel_take(kernel, record_take, machine);
	for (uint32_t i = 0; i < kernel_cpu_count(kernel); i++)
		produced += kernel_cpu(kernel, i)->produced[WAFFLE_SOURCE_WAITS];
	kernel_detach(kernel);
	kernel_close(kernel);
	assert_int_equal(machine->count, 3);
	assert_int_equal(produced, 3);
	check_record(&machine->records[0], 3000000, WAFFLE_FREQUENCY_READ);
	check_record(&machine->records[1], 2800000, 0);
	check_record(&machine->records[2], 3500000, 0);
}

static void test_no_frequency_is_recorded_where_there_is_none(void **state)
{
	struct kernel_options options = {.ring_bytes = 4096,
					 .config.sched_slots = 64,
					 .sched = true,
					 .config.wait_sources = WAFFLE_WAIT_FREQUENCY,
					 .cpus_folder = "/nowhere"};
	struct error err = ERROR_INIT;
	struct kernel *kernel;

	(void)state;
	if (geteuid())
		skip();
	if (kernel_open(&kernel, &options, &err))
		fail_msg("%s", err.message);
	assert_int_equal(kernel_wait_sources(kernel), 0);
	assert_int_equal(kernel_attach(kernel, &err), 0);
	kernel_detach(kernel);
	kernel_close(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_frequency_is_read_where_the_machine_has_one,
						machine_make, machine_remove),
		cmocka_unit_test_setup_teardown(test_kernel_tells_of_changes_that_are_worth_it,
						machine_make, machine_remove),
		cmocka_unit_test(test_no_frequency_is_recorded_where_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
