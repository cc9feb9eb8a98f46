// SPDX-License-Identifier: Apache-2.0
/* Processes that a signal ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyze/killed.h"
#include "render/text/killed_text_internal.h"
#include "util/signal_names.h"
#include "why_capture.h"

#define MS 1000000ull
#define PARENT 10
#define CORE_DUMPED 0x80
#define END_TS (100 * MS)

/* A process of `comm`, child of PARENT, starts at born_ts (0: unknown) and ends at `ts`. */
static void ends(struct capture *capture, uint32_t tid, const char *comm, uint64_t born_ts,
		 uint64_t ts, int32_t code)
{
	const struct waffle_rec_fork fork = {
		.rec = {ts - 10, PARENT, WAFFLE_REC_FORK, 0}, .tgid = PARENT, .child_tgid = tid};
	const struct waffle_rec_exit gone = {
		.rec = {ts, tid, WAFFLE_REC_EXIT, 0}, .tgid = tid, .code = code};
	struct waffle_rec_task task = {.rec = {ts - 5, tid, WAFFLE_REC_TASK, 0},
				       .tgid = tid,
				       .flags = WAFFLE_TASK_TRACED_FLAG,
				       .start_ts = born_ts};

	snprintf(task.comm, sizeof(task.comm), "%s", comm);
	capture_add(capture, &fork);
	capture_add(capture, &task);
	capture_add(capture, &gone);
}

static void check_killed(const struct model *model, const char *expected)
{
	char *printed = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&printed, &len);
	bool any = killed_print(model, false, out);

	fclose(out);
	assert_string_equal(printed, expected);
	assert_int_equal(any, *expected != '\0');
	free(printed);
}

static void check(struct capture *capture, const char *expected)
{
	check_killed(capture_load(capture, END_TS), expected);
	capture_free(capture);
}

static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	named(capture, PARENT, PARENT, "keeper");
}

static void test_processes_that_a_signal_ended_are_summed_up_by_name_and_signal(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	ends(&capture, 20, "worker", 1 * MS, 5 * MS, 11);
	ends(&capture, 21, "worker", 6 * MS, 40 * MS, 11 | CORE_DUMPED);
	ends(&capture, 22, "worker", 41 * MS, 42 * MS, 9);
	ends(&capture, 23, "other", 43 * MS, 44 * MS, 64);
	check(&capture,
	      "2 processes named worker, children of keeper (10), were ended by SIGSEGV; the "
	      "longest of them lived for 34.0 ms\n"
	      "worker (22), child of keeper (10), was ended by SIGKILL after 1.00 ms\n"
	      "other (23), child of keeper (10), was ended by signal 64 after 1.00 ms\n");
}

static void test_processes_that_end_by_themselves_are_not_named(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	ends(&capture, 20, "worker", 1 * MS, 5 * MS, 0);
	ends(&capture, 21, "worker", 6 * MS, 7 * MS, 11 << 8); /* exit(11) */
	check(&capture, "");
}

static void test_threads_do_not_count_as_processes(void **state)
{
	const struct waffle_rec_exit gone = {
		.rec = {5 * MS, 11, WAFFLE_REC_EXIT, 0}, .tgid = PARENT, .code = 9};
	struct capture capture;

	(void)state;
	begin(&capture);
	named(&capture, 11, PARENT, "thread");
	capture_add(&capture, &gone);
	check(&capture, "");
}

static void test_the_fourth_group_and_more_are_summed_up(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d", "d", "e"};
	struct capture capture;
	killed_list list = {0};

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < 6; i++)
		ends(&capture, 20 + i, names[i], 0, (10 + i) * MS, 6);
	capture_load(&capture, END_TS);
	killed_find(&list, capture.model);
	assert_int_equal(list.len, 5);
	assert_int_equal(list.data[0].count, 2);
	assert_int_equal(list.data[0].lived_ns, 0);
	vec_free(&list);
	check_killed(capture.model,
		     "2 processes named d, children of keeper (10), were ended by SIGABRT\n"
		     "a (20), child of keeper (10), was ended by SIGABRT\n"
		     "b (21), child of keeper (10), was ended by SIGABRT\n"
		     "2 other processes were ended by a signal\n");
	capture_free(&capture);
}

static void test_names_of_signals(void **state)
{
	(void)state;
	assert_string_equal(signal_name(1), "SIGHUP");
	assert_string_equal(signal_name(15), "SIGTERM");
	assert_string_equal(signal_name(31), "SIGSYS");
	assert_null(signal_name(0));
	assert_null(signal_name(32));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_processes_that_a_signal_ended_are_summed_up_by_name_and_signal),
		cmocka_unit_test(test_processes_that_end_by_themselves_are_not_named),
		cmocka_unit_test(test_threads_do_not_count_as_processes),
		cmocka_unit_test(test_the_fourth_group_and_more_are_summed_up),
		cmocka_unit_test(test_names_of_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
