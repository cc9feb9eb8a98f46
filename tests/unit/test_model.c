// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

static void test_spans_have_their_times_parents_and_traces(void **state)
{
	struct capture capture;
	const struct model *model;
	const struct model_span *outer, *inner;

	(void)state;
	capture_begin(&capture, false);
	capture_task(&capture, 1001, 11, 500, "worker");
	capture_span(&capture, 1010, 11, 100);
	capture_hit(&capture, 1020, 11, SITE_STEP_AT, 101, 100, 3,
		    (uint64_t[]){42, 3, 0x636261 /* "abc" */});
	capture_end(&capture, 1030, 11, 101);
	capture_end(&capture, 1050, 11, 100);
	model = capture_load(&capture, 2000);
	assert_int_equal(model->spans.len, 2);
	outer = capture_find(model, 100);
	inner = capture_find(model, 101);
	assert_int_equal(outer->start_ts, 1010);
	assert_int_equal(outer->end_ts, 1050);
	assert_int_equal(outer->flags, 0);
	assert_int_equal(outer->parent, MODEL_NONE);
	assert_int_equal(outer->frame, MODEL_NONE);
	assert_int_equal(inner->parent, outer - model->spans.data);
	assert_int_equal(model_context_of(model, inner)->trace_hi, 7);
	assert_int_equal(model_context_of(model, inner)->trace_lo, 8);
	assert_int_equal(inner->end_ts, 1030);
	assert_string_equal(model_thread_name(model, inner->thread), "worker");
	assert_int_equal(model->threads.data[inner->thread].pid, CAPTURE_PID);
	assert_string_equal(model_site(model, inner->site)->file, "b.c");
	assert_int_equal(model->start_ts, CAPTURE_START);
	assert_int_equal(model->end_ts, 2000);
	assert_int_equal(model->bad_records, 0);
	capture_free(&capture);
}

static void test_compact_model_reads_the_values_of_chosen_spans_later(void **state)
{
	struct capture capture;
	struct model *model;
	struct error err = ERROR_INIT;
	uint32_t last;

	(void)state;
	capture_begin(&capture, false);
	for (uint64_t i = 0; i < 100; i++) {
		capture_hit(&capture, 1010 + 10 * i, 11, SITE_STEP_AT, 100 + i, i ? 100 : 0, 3,
			    (uint64_t[]){i, 3, 0x636261 /* "abc" */});
		capture_end(&capture, 1015 + 10 * i, 11, 100 + i);
	}
	capture.keep.compact = true;
	capture_load(&capture, 3000);
	model = capture.model;
	assert_int_equal(model->spans.len, 100);
	assert_int_equal(model->frames.len, 0);
	assert_int_equal(model->contexts.len, 0);
	assert_int_equal(model->spans.data[99].parent, 0);
	capture_must(model_values_load(model, (uint32_t[]){99, 7, 99}, 3, &err), err);
	last = model->spans.data[99].frame;
	for (size_t i = 0; i < 100; i++) {
		const struct model_span *span = &model->spans.data[i];
		struct value_walk walk = model_values(model, span->site, span->frame);
		struct value value;

		assert_int_equal(value_walk_next(&walk, &value), i == 7 || i == 99);
		if (i == 7 || i == 99)
			assert_int_equal(value.u64, i);
	}
	capture_must(model_values_load(model, (uint32_t[]){99}, 1, &err), err);
	assert_int_equal(model->spans.data[99].frame, last);
	capture_free(&capture);
}

static void test_spans_cut_by_the_capture_are_marked(void **state)
{
	struct capture capture;
	const struct model *model;
	const struct model_span *span;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1100, 11, 2);
	capture_end(&capture, 1200, 11, 1);
	model = capture_load(&capture, 3000);
	span = capture_find(model, 1);
	assert_int_equal(span->flags, MODEL_SPAN_BEGUN_BEFORE);
	assert_int_equal(span->start_ts, CAPTURE_START);
	assert_int_equal(span->end_ts, 1200);
	assert_ptr_equal(span, &model->spans.data[0]);
	span = capture_find(model, 2);
	assert_int_equal(span->flags, MODEL_SPAN_UNFINISHED);
	assert_int_equal(span->end_ts, 3000);
	capture_free(&capture);
}

static void test_span_of_an_exited_thread_is_unfinished_at_the_exit(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1100, 11, 1);
	capture_span(&capture, 1110, 12, 2);
	capture_gone(&capture, 1300, 11, WAFFLE_REC_EXIT);
	capture_gone(&capture, 1400, 12, WAFFLE_REC_EXEC);
	capture_span(&capture, 1500, 12, 3);
	model = capture_load(&capture, 3000);
	assert_int_equal(capture_find(model, 1)->end_ts, 1300);
	assert_int_equal(capture_find(model, 2)->end_ts, 1400);
	assert_int_equal(capture_find(model, 3)->end_ts, 3000);
	capture_free(&capture);
}

static void test_span_ended_on_another_thread_is_moved(void **state)
{
	struct capture capture;
	const struct model *model;
	const struct model_span *span;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1100, 11, 1);
	capture_end(&capture, 1200, 12, 1);
	model = capture_load(&capture, 3000);
	span = capture_find(model, 1);
	assert_int_equal(span->flags, MODEL_SPAN_MOVED);
	assert_int_equal(model->threads.data[span->thread].tid, 11);
	assert_int_equal(model->threads.data[span->end_thread].tid, 12);
	capture_free(&capture);
}

static void test_records_may_come_in_any_order(void **state)
{
	struct capture capture;
	const struct model *model;
	const struct model_span *child;

	(void)state;
	capture_begin(&capture, false);
	capture_end(&capture, 1300, 11, 2);
	capture_hit(&capture, 1200, 11, SITE_LOAD, 2, 1, 2, (uint64_t[]){1, 5});
	capture_hit(&capture, 1150, 11, SITE_FOUND, 5, 1, 1, (uint64_t[]){0});
	capture_hit(&capture, 1050, 11, SITE_FAILED, 6, 1, 0, NULL);
	capture_span(&capture, 1010, 11, 1);
	capture_end(&capture, 1400, 11, 1);
	model = capture_load(&capture, 3000);
	child = capture_find(model, 2);
	assert_int_equal(model->spans.len, 2);
	assert_int_equal(model->spans.data[0].id, 1);
	assert_int_equal(child->flags, 0);
	assert_int_equal(child->start_ts, 1200);
	assert_int_equal(child->end_ts, 1300);
	assert_int_equal(child->parent, 0);
	assert_int_equal(model->events.len, 2);
	assert_int_equal(model->events.data[0].id, 6);
	assert_int_equal(model->events.data[1].id, 5);
	assert_int_equal(model->events.data[1].parent, 0);
	assert_int_equal(model->links.len, 2);
	assert_int_equal(model->links.data[0].from, 1);
	assert_int_equal(model->links.data[0].to_kind, MODEL_NODE_SPAN);
	assert_int_equal(model->links.data[0].to, 0);
	assert_int_equal(model->links.data[1].to_kind, MODEL_NODE_EVENT);
	assert_int_equal(model->links.data[1].to, 1);
	capture_free(&capture);
}

static void test_links_to_null_are_none_and_to_the_missing_are_kept(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_hit(&capture, 1010, 11, SITE_FOUND, 5, 0, 1, (uint64_t[]){0});
	capture_hit(&capture, 1020, 11, SITE_FOUND, 6, 0, 1, (uint64_t[]){99});
	model = capture_load(&capture, 3000);
	assert_int_equal(model->links.len, 1);
	assert_int_equal(model->links.data[0].from, 1);
	assert_int_equal(model->links.data[0].to, MODEL_NONE);
	assert_int_equal(model->links.data[0].to_id, 99);
	capture_free(&capture);
}

static void test_tid_used_again_is_another_thread(void **state)
{
	struct capture capture;
	const struct model *model;
	const struct model_thread *old, *new;

	(void)state;
	capture_begin(&capture, true);
	capture_task(&capture, 1001, 11, 500, "old");
	capture_span(&capture, 1010, 11, 1);
	capture_gone(&capture, 1100, 11, WAFFLE_REC_EXIT);
	capture_switch(&capture, 1110, 0, 11, 0, WAFFLE_TASK_DEAD, 0, 0);
	capture_end(&capture, 1090, 11, 1); /* comes late: the old one's */
	capture_task(&capture, 1200, 11, 1190, "new");
	capture_span(&capture, 1210, 11, 2);
	model = capture_load(&capture, 2000);
	assert_int_equal(model->threads.len, 2);
	old = &model->threads.data[capture_find(model, 1)->thread];
	new = &model->threads.data[capture_find(model, 2)->thread];
	assert_string_equal(strtab_get(model->strings, old->comm), "old");
	assert_string_equal(strtab_get(model->strings, new->comm), "new");
	assert_int_equal(capture_find(model, 1)->flags & MODEL_SPAN_MOVED, 0);
	assert_int_equal(old->exit_ts, 1100);
	assert_int_equal(old->last_ts, 1110);
	assert_int_equal(new->exit_ts, 0);
	assert_int_equal(new->first_ts, 1200);
	capture_free(&capture);
}

static void test_a_threads_own_name_is_that_of_no_other_one(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, true);
	capture_task(&capture, 1001, 11, 500, "python3");
	capture_span(&capture, 1010, 11, 1);
	capture_thread_name(&capture, 1001, 11, 500, "first");
	capture_thread_name(&capture, 1001, 11, 500, "loader of all the data");
	capture_task(&capture, 1050, 11, 500, "renamed"); /* in the kernel only */
	capture_gone(&capture, 1100, 11, WAFFLE_REC_EXIT);
	capture_switch(&capture, 1110, 0, 11, 0, WAFFLE_TASK_DEAD, 0, 0);
	capture_task(&capture, 1200, 11, 1190, "new");
	capture_span(&capture, 1210, 11, 2);
	capture_thread_name(&capture, 1200, 11, 500, "not the new one");
	model = capture_load(&capture, 2000);
	assert_int_equal(model->threads.len, 2);
	assert_string_equal(model_thread_name(model, capture_find(model, 1)->thread),
			    "loader of all the data");
	assert_string_equal(model_thread_name(model, capture_find(model, 2)->thread), "new");
	assert_int_equal(model->bad_records, 0);
	capture_free(&capture);
}

/* Forty threads have this name, in which a % is their number, and so many of them end. */
static void check_kind(const char *named, uint32_t ended, const char *name)
{
	struct capture capture;
	const struct model *model;
	char text[16];

	capture_begin(&capture, true);
	for (uint32_t i = 0; i < 40; i++) {
		if (strchr(named, '%'))
			snprintf(text, sizeof(text), "%.*s%u", (int)strcspn(named, "%"), named, i);
		else
			snprintf(text, sizeof(text), "%s", named);
		capture_task(&capture, 1001 + i, 100 + i, 500, "python3");
		capture_thread_name(&capture, 1001 + i, 100 + i, 500, text);
	}
	capture_span(&capture, 1050, 107, 1);
	for (uint32_t i = 0; i < ended; i++)
		capture_gone(&capture, 1100 + i, 100 + i, WAFFLE_REC_EXIT);
	model = capture_load(&capture, 2000);
	assert_string_equal(model_thread_kind_name(model, capture_find(model, 1)->thread), name);
	capture_free(&capture);
}

static void test_threads_of_one_kind_are_many_that_have_ended(void **state)
{
	(void)state;
	check_kind("job-%", 0, "job-7"); /* a large pool */
	check_kind("job-%", 32, "job-7");
	check_kind("job-%", 33, "job-N");
	check_kind("job-%", 40, "job-N");
	check_kind("server2", 40, "server2"); /* all have the name of their process */
}

static void test_bad_records_are_counted_and_left_out(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_hit(&capture, 1010, 11, 77, 1, 0, 0, NULL);        /* no such site */
	capture_hit(&capture, 1010, 11, SITE_STEP, 0, 0, 0, NULL); /* a span without an id */
	capture_hit(&capture, 1010, 0, SITE_STEP, 3, 0, 0, NULL);  /* by the idle thread */
	capture_span(&capture, 1020, 11, 4);
	capture_end(&capture, 1030, 11, 4);
	capture_end(&capture, 1040, 11, 4); /* twice */
	capture_end(&capture, 1040, 11, 0);
	capture_state(&capture, 1050, 11, 9, false);               /* no such state */
	capture_hit(&capture, 1060, 11, SITE_STEP, 5, 5, 0, NULL); /* its own parent */
	capture_end(&capture, 1070, 11, 5);
	model = capture_load(&capture, 2000);
	assert_int_equal(model->bad_records, 6);
	assert_int_equal(model->spans.len, 2);
	assert_int_equal(capture_find(model, 4)->end_ts, 1030);
	assert_int_equal(capture_find(model, 5)->parent, MODEL_NONE);
	capture_free(&capture);
}

static void test_spans_open_while_records_were_lost_are_marked(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1100, 11, 1);
	capture_end(&capture, 1200, 11, 1);
	capture_span(&capture, 1210, 11, 2);
	capture_end(&capture, 1400, 11, 2);
	capture_loss(&capture, 1300, 1320, WAFFLE_SOURCE_SPANS, 3);
	capture_span(&capture, 1310, 11, 3);
	capture_end(&capture, 1315, 11, 3);
	capture_span(&capture, 1321, 11, 4);
	capture_end(&capture, 1322, 11, 4);
	model = capture_load(&capture, 2000);
	assert_int_equal(capture_find(model, 1)->flags, 0);
	assert_int_equal(capture_find(model, 2)->flags, MODEL_SPAN_LOSS);
	assert_int_equal(capture_find(model, 3)->flags, MODEL_SPAN_LOSS);
	assert_int_equal(capture_find(model, 4)->flags, 0);
	assert_int_equal(model->counts.lost, 3);
	assert_int_equal(model->counts.produced, model->counts.delivered + 3);
	capture_free(&capture);
}

static void test_window_cuts_spans_at_its_edges(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1100, 11, 1);
	capture_end(&capture, 1200, 11, 1);
	capture_span(&capture, 1250, 11, 2);
	capture_end(&capture, 1400, 11, 2);
	capture_span(&capture, 1500, 11, 3);
	model = capture_load_window(&capture, 2000, (struct store_window){1150, 1300});
	assert_int_equal(model->start_ts, 1150);
	assert_int_equal(model->end_ts, 1300);
	assert_int_equal(model->spans.len, 2);
	assert_int_equal(capture_find(model, 1)->start_ts, 1150);
	assert_int_equal(capture_find(model, 1)->flags, MODEL_SPAN_BEGUN_BEFORE);
	assert_int_equal(capture_find(model, 2)->end_ts, 1300);
	assert_int_equal(capture_find(model, 2)->flags, MODEL_SPAN_UNFINISHED);
	capture_free(&capture);
}

static void test_processes_are_those_of_threads_and_forks(void **state)
{
	struct waffle_rec_fork fork = {
		.rec = {1100, 10, WAFFLE_REC_FORK, 0}, .tgid = CAPTURE_PID, .child_tgid = 20};
	struct store_process process = {CAPTURE_PID, 1, 1000, "a --fast"};
	struct error err = ERROR_INIT;
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	assert_int_equal(store_writer_add_process(capture.writer, &process, &err), 0);
	capture_task(&capture, 1001, 10, 500, "main");
	capture_add(&capture, &fork);
	model = capture_load(&capture, 2000);
	assert_int_equal(model->processes.len, 2);
	assert_int_equal(model->processes.data[0].pid, 10);
	assert_int_equal(model->processes.data[0].ppid, 1);
	assert_int_equal(model->processes.data[0].main_thread, 0);
	assert_string_equal(strtab_get(model->strings, model->processes.data[0].cmdline),
			    "a --fast");
	assert_int_equal(model->processes.data[1].pid, 20);
	assert_int_equal(model->processes.data[1].ppid, 10);
	assert_int_equal(model->processes.data[1].main_thread, MODEL_NONE);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans_have_their_times_parents_and_traces),
		cmocka_unit_test(test_compact_model_reads_the_values_of_chosen_spans_later),
		cmocka_unit_test(test_spans_cut_by_the_capture_are_marked),
		cmocka_unit_test(test_span_of_an_exited_thread_is_unfinished_at_the_exit),
		cmocka_unit_test(test_span_ended_on_another_thread_is_moved),
		cmocka_unit_test(test_records_may_come_in_any_order),
		cmocka_unit_test(test_links_to_null_are_none_and_to_the_missing_are_kept),
		cmocka_unit_test(test_tid_used_again_is_another_thread),
		cmocka_unit_test(test_a_threads_own_name_is_that_of_no_other_one),
		cmocka_unit_test(test_threads_of_one_kind_are_many_that_have_ended),
		cmocka_unit_test(test_bad_records_are_counted_and_left_out),
		cmocka_unit_test(test_spans_open_while_records_were_lost_are_marked),
		cmocka_unit_test(test_window_cuts_spans_at_its_edges),
		cmocka_unit_test(test_processes_are_those_of_threads_and_forks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
