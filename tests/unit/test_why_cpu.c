// SPDX-License-Identifier: Apache-2.0
/* Stolen time and the CPU's frequency, which change what a thread's time on a CPU is worth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "why_capture.h"

#define STOLEN "stolen by the hypervisor"

static void stolen(struct capture *capture, uint32_t tid, uint64_t from, uint64_t to, uint64_t ns)
{
	capture_add(capture, &(struct waffle_rec_stolen){.rec = {to, tid, WAFFLE_REC_STOLEN, 1},
							 .from_ts = from,
							 .stolen_ns = ns});
}

static void frequency(struct capture *capture, uint64_t ts, uint16_t cpu, uint32_t khz,
		      uint32_t flags)
{
	capture_add(capture,
		    &(struct waffle_rec_frequency){.rec = {ts, 0, WAFFLE_REC_FREQUENCY, cpu},
						   .khz = khz,
						   .max_khz = 3500000,
						   .flags = flags});
}

static void test_stolen_time_is_no_time_that_the_thread_ran(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(&capture, 1000, 10, 1);
	gets(&capture, 11000, 1, 10, 900, 0, 0, 0);
	gets(&capture, 41000, 1, 900, 10, 0, 0, 0);
	stolen(&capture, 10, 41000, 91000, 20000);
	gets(&capture, 91000, 1, 10, 900, 0, 0, 0);
	gets(&capture, 96000, 1, 900, 10, 0, 0, 0);
	capture_end(&capture, 101000, 10, 1);
	why = ask_span(&capture, 102000);
	check_part(why, 0, "running", 10000 + 30000 + 5000, 10, "certain", "");
	check_part(why, 1, "cpu-contention", 35000, 900, "certain", "");
	check_part(why, 2, "cpu-contention", 20000, 0, "certain", STOLEN);
	/* The parts are the scheduler's: it had the CPU. */
	assert_int_equal(why->instances.data[0].running_ns, 65000);
	assert_int_equal(why->instances.data[0].runnable_ns, 35000);
	done(&capture, why);
}

static void test_a_span_has_its_share_of_what_was_stolen_around_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	gets(&capture, 1500, 1, 0, 10, 0, 0, 0);
	gets(&capture, 1500, 2, 0, 11, 0, 0, 0);
	capture_span(&capture, 21500, 10, 1);
	capture_end(&capture, 61500, 10, 1);
	stolen(&capture, 10, 1500, 81500, 8000); /* a tenth of the time, half of it in the span */
	stolen(&capture, 11, 1500, 81500, 80000);
	why = ask_span(&capture, 82000);
	check_part(why, 0, "running", 36000, 10, "certain", "");
	check_part(why, 1, "cpu-contention", 4000, 0, "likely", STOLEN);
	done(&capture, why);
}

static void test_what_only_ticks_count_is_not_certain(void **state)
{
	struct waffle_rec_stolen rec = {.rec = {91000, 10, WAFFLE_REC_STOLEN, 1},
					.from_ts = 2000,
					.stolen_ns = 20000,
					.flags = WAFFLE_STOLEN_BY_TICK};
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	capture_span(&capture, 1000, 10, 1);
	capture_add(&capture, &rec);
	capture_end(&capture, 101000, 10, 1);
	why = ask_span(&capture, 102000);
	check_part(why, 0, "running", 80000, 10, "certain", "");
	check_part(why, 1, "cpu-contention", 20000, 0, "likely", STOLEN);
	done(&capture, why);
}

/* A thread that holds a lock is no faster than its CPU. */
static void test_time_stolen_of_who_is_waited_for_is_the_cause(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	gets(&capture, 1000, 2, 0, 11, 0, 0, 0);
	capture_span(&capture, 2000, 10, 1);
	waits(&capture, 2000, 1, 10, 0, S, NR_FUTEX, 0x7f00, FUTEX_MUTEX, 2);
	gets(&capture, 52000, 1, 0, 10, 11, 52000, 0);
	stolen(&capture, 11, 1000, 52000, 51000);
	capture_end(&capture, 53000, 10, 1);
	why = ask_span(&capture, 54000);
	check_part(why, 0, "cpu-contention", 50000, 0, "likely", STOLEN);
	check_step(why, 0, 0, 10, WAFFLE_THREAD_BLOCKED, 2000, 52000);
	check_step(why, 0, 1, 11, WAFFLE_THREAD_RUNNABLE, 2000, 52000);
	check_part(why, 1, "running", 1000, 10, "certain", "");
	done(&capture, why);
}

static void test_stolen_time_longer_than_its_interval_makes_no_sense(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, true);
	stolen(&capture, 10, 2000, 3000, 1001);
	stolen(&capture, 10, 3000, 3000, 0);
	stolen(&capture, 10, 3001, 3000, 0);
	stolen(&capture, 10, 2000, 3000, 1000);
	model = capture_load(&capture, 4000);
	assert_int_equal(model->bad_records, 3);
	assert_int_equal(model->stolen.len, 1);
	capture_free(&capture);
}

static void check_frequency(const struct model *model, uint16_t cpu, uint64_t from, uint64_t to,
			    uint32_t expected)
{
	uint32_t khz = 0, max_khz = 0;

	assert_int_equal(model_frequency(model, cpu, from, to, &khz, &max_khz), expected != 0);
	assert_int_equal(khz, expected);
	assert_int_equal(max_khz, expected ? 3500000 : 0);
}

static void test_code_ran_at_the_average_of_its_cpus_frequencies(void **state)
{
	const struct why_step *step;
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	frequency(&capture, 1100, 1, 3000000, WAFFLE_FREQUENCY_READ);
	frequency(&capture, 1100, 2, 3000000, WAFFLE_FREQUENCY_READ);
	gets(&capture, 1200, 1, 0, 10, 0, 0, 0);
	capture_span(&capture, 1500, 10, 1);
	frequency(&capture, 26500, 1, 1000000, 0);
	frequency(&capture, 91500, 1, 2000000, 0);
	capture_end(&capture, 101500, 10, 1);
	why = ask_span(&capture, 102000);
	check_part(why, 0, "running", 100000, 10, "certain", "");
	step = &why->steps.data[part_of(why, 0)->step];
	assert_int_equal(step->cpu_khz, (3000000.0 * 25 + 1000000.0 * 65 + 2000000.0 * 10) / 100);
	assert_int_equal(step->cpu_max_khz, 3500000);
	check_frequency(why->model, 1, 1200, 26500, 3000000); /* read, and confirmed by a change */
	check_frequency(why->model, 1, 30000, 40000, 1000000);
	check_frequency(why->model, 1, 95000, 99000, 2000000);
	check_frequency(why->model, 1, 1000, 1090, 0); /* before the first one */
	check_frequency(why->model, 1, 30000, 30000, 0);
	check_frequency(why->model, 2, 30000, 40000, 0); /* a driver that reports no changes */
	check_frequency(why->model, 3, 30000, 40000, 0);
	done(&capture, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stolen_time_is_no_time_that_the_thread_ran),
		cmocka_unit_test(test_a_span_has_its_share_of_what_was_stolen_around_it),
		cmocka_unit_test(test_what_only_ticks_count_is_not_certain),
		cmocka_unit_test(test_time_stolen_of_who_is_waited_for_is_the_cause),
		cmocka_unit_test(test_stolen_time_longer_than_its_interval_makes_no_sense),
		cmocka_unit_test(test_code_ran_at_the_average_of_its_cpus_frequencies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
