// SPDX-License-Identifier: Apache-2.0
/* Tracks in the model: lanes that are no threads, with times of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

static void track_add(struct capture *capture, uint64_t ts, uint32_t number, const char *name,
		      const char *group)
{
	struct waffle_rec_track rec = {
		.rec = {ts, 11, WAFFLE_REC_TRACK, 0}, .tgid = CAPTURE_PID, .track = number};

	memcpy(rec.name, name, strnlen(name, sizeof(rec.name)));
	memcpy(rec.group, group, strnlen(group, sizeof(rec.group)));
	capture_add(capture, &rec);
}

static void mark_add(struct capture *capture, uint64_t ts, uint64_t id, uint32_t number)
{
	struct waffle_rec_on_track rec = {.rec = {ts, 11, WAFFLE_REC_ON_TRACK, 0},
					  .id = id,
					  .tgid = CAPTURE_PID,
					  .track = number};

	capture_add(capture, &rec);
}

static void track_span(struct capture *capture, uint64_t from, uint64_t to, uint64_t id,
		       uint32_t number)
{
	mark_add(capture, from, id, number);
	capture_span(capture, from, 11, id);
	capture_end(capture, to, 11, id);
}

static const struct model_thread *lane_of(const struct model *model, uint64_t id)
{
	return &model->threads.data[capture_find(model, id)->thread];
}

static void test_spans_are_on_their_tracks_and_threads_know_nothing_of_their_times(void **state)
{
	struct capture capture;
	const struct model *model;
	const struct model_span *span;

	(void)state;
	capture_begin(&capture, true);
	capture_state(&capture, CAPTURE_START, 11, WAFFLE_THREAD_RUNNING, false);
	capture_task(&capture, 1001, 11, 500, "worker");
	track_add(&capture, 1002, 1, "engine", "gpu 0");
	capture_span(&capture, 1010, 11, 100);  /* of the thread, never ended */
	track_span(&capture, 400, 600, 1, 1);   /* before the capture */
	track_span(&capture, 9000, 9900, 2, 1); /* after it */
	track_span(&capture, 1500, 2500, 3, 2); /* a track without a name */
	capture_switch(&capture, 1800, 1, 11, 0, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	model = capture_load(&capture, 2000);
	assert_int_equal(model->bad_records, 0);
	assert_int_equal(model->track_count, 2);
	span = capture_find(model, 1);
	assert_int_equal(span->start_ts, 400);
	assert_int_equal(span->end_ts, 600);
	assert_int_equal(span->flags, 0);
	assert_int_equal(span->cpu, MODEL_CPU_NONE);
	assert_int_equal(lane_of(model, 1)->tid, 0);
	assert_int_equal(lane_of(model, 1)->pid, CAPTURE_PID);
	assert_false(lane_of(model, 1)->traced);
	assert_string_equal(model_thread_name(model, span->thread), "gpu 0: engine");
	assert_ptr_equal(lane_of(model, 1), lane_of(model, 2));
	assert_string_equal(model_thread_name(model, capture_find(model, 3)->thread), "track 2");
	for (uint64_t id = 1; id <= 3; id++) {
		assert_int_equal(capture_find(model, id)->flags, 0); /* no thread, no scheduler */
		assert_false(lane_of(model, id)->has_sched);
	}
	/* Everything is inside the model; but threads end with the capture. */
	assert_int_equal(model->start_ts, 400);
	assert_int_equal(model->end_ts, 9900);
	assert_int_equal(model->threads_end_ts, 2000);
	span = capture_find(model, 100);
	assert_int_equal(span->end_ts, 2000);
	assert_int_equal(span->flags & MODEL_SPAN_CUT, MODEL_SPAN_UNFINISHED);
	assert_int_equal(span->running_ns, 1800 - 1010);
	assert_int_equal(model->threads.data[span->thread].running_ns, 1800 - CAPTURE_START);
	assert_int_equal(model->threads.data[span->thread].blocked_ns, 200);
	assert_int_equal(model->threads.data[span->thread].last_ts, 1800);
	assert_int_equal(model_process_of(model, capture_find(model, 1)->thread)->main_thread,
			 MODEL_NONE);
	capture_free(&capture);
}

static void test_counters_and_events_are_on_tracks_and_counters_have_no_id(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	mark_add(&capture, 1500, 7, 1);
	capture_hit(&capture, 1500, 11, SITE_DEPTH, 7, 0, 2, (uint64_t[]){0, 5});
	mark_add(&capture, 1400, 8, 1);
	capture_hit(&capture, 1400, 11, SITE_FAILED, 8, 0, 0, NULL);
	capture_hit(&capture, 1450, 11, SITE_FAILED, 9, 0, 0, NULL); /* of the thread */
	model = capture_load(&capture, 2000);
	assert_int_equal(model->events.len, 3);
	assert_int_equal(model->events.data[0].id, 8);
	assert_true(model_is_track(model, model->events.data[0].thread));
	assert_int_equal(model->events.data[1].id, 9);
	assert_false(model_is_track(model, model->events.data[1].thread));
	assert_int_equal(model->events.data[2].id, 0);
	assert_true(model_is_track(model, model->events.data[2].thread));
	capture_free(&capture);
}

static void test_records_that_make_no_sense_are_skipped_and_counted(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	track_add(&capture, 1001, 0, "no number", "");
	mark_add(&capture, 1002, 0, 1);
	mark_add(&capture, 1003, 5, 0);
	mark_add(&capture, 1004, 6, 1); /* its hit never comes: no fault */
	mark_add(&capture, 1005, 7, 1);
	mark_add(&capture, 1006, 7, 2); /* the later one counts */
	capture_span(&capture, 1010, 11, 7);
	capture_end(&capture, 1005, 11, 7); /* before its begin: of length zero */
	capture_end(&capture, 1030, 11, 7);
	model = capture_load(&capture, 2000);
	assert_int_equal(model->bad_records, 5);
	assert_int_equal(lane_of(model, 7)->track, 2);
	assert_int_equal(capture_find(model, 7)->end_ts, 1010);
	capture_free(&capture);
}

static void test_end_may_come_before_its_begin(void **state)
{
	struct capture capture;
	const struct model *model;
	const struct model_span *span;

	(void)state;
	capture_begin(&capture, false);
	capture_end(&capture, 1500, 11, 7);
	mark_add(&capture, 1400, 7, 1);
	capture_span(&capture, 1400, 11, 7);
	model = capture_load(&capture, 2000);
	span = capture_find(model, 7);
	assert_true(model_is_track(model, span->thread));
	assert_int_equal(span->end_thread, span->thread);
	assert_int_equal(span->flags, 0);
	assert_int_equal(span->end_ts, 1500);
	capture_free(&capture);
}

static void test_window_knows_names_of_tracks_and_is_not_widened(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	track_add(&capture, 1001, 1, "engine", "");
	track_add(&capture, 1002, 1, "renamed", "");
	track_span(&capture, 500, 600, 1, 1);
	track_span(&capture, 1500, 1600, 2, 1);
	track_span(&capture, 9000, 9100, 3, 1);
	model = capture_load_window(&capture, 2000, (struct store_window){1400, 1900});
	assert_int_equal(model->spans.len, 1);
	assert_string_equal(model_thread_name(model, capture_find(model, 2)->thread), "renamed");
	assert_int_equal(model->start_ts, 1400);
	assert_int_equal(model->end_ts, 1900);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_spans_are_on_their_tracks_and_threads_know_nothing_of_their_times),
		cmocka_unit_test(test_counters_and_events_are_on_tracks_and_counters_have_no_id),
		cmocka_unit_test(test_records_that_make_no_sense_are_skipped_and_counted),
		cmocka_unit_test(test_end_may_come_before_its_begin),
		cmocka_unit_test(test_window_knows_names_of_tracks_and_is_not_widened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
