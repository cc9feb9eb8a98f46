// SPDX-License-Identifier: Apache-2.0
/* Calls in the model: returns, parents by time, names of code, names with values, stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

static struct value span_value(const struct model *model, const struct model_span *span,
			       const char *key)
{
	struct value_walk walk = model_values(model, span->site, span->frame);
	struct value value;

	while (value_walk_next(&walk, &value))
		if (!strcmp(value.key->name, key))
			return value;
	fail_msg("no value %s", key);
	return value;
}

static bool has_value(const struct model *model, const struct model_span *span, const char *key)
{
	struct value_walk walk = model_values(model, span->site, span->frame);
	struct value value;

	while (value_walk_next(&walk, &value))
		if (!strcmp(value.key->name, key))
			return true;
	return false;
}

/* ---- returns ---- */

static const uint64_t returned[] = {(uint64_t)-5, 3, 0x6f6f66 /* "foo" */};

static void test_return_ends_a_span_and_adds_its_values(void **state)
{
	struct capture capture;
	const struct model *model;
	struct value path;

	(void)state;
	calls_begin(&capture);
	for (uint64_t id = 1; id <= 3; id++) {
		call_hit(&capture, 2000 * id, 20, CALL_READ, id, 40 + id);
		call_return_in(&capture, CAPTURE_PID, 2000 * id + 100, 20, CALL_READ, id, 3,
			       returned);
	}
	model = capture_load(&capture, 9000);
	assert_int_equal(model->bad_records, 0);
	for (uint64_t id = 1; id <= 3; id++) {
		const struct model_span *span = capture_find(model, id);

		assert_int_equal(span->start_ts, 2000 * id);
		assert_int_equal(span->end_ts, 2000 * id + 100);
		assert_int_equal(span->flags, 0);
		assert_int_equal(span_value(model, span, "fd").i64, 40 + id);
		assert_int_equal(span_value(model, span, "ret").i64, -5);
		path = span_value(model, span, "path");
		assert_int_equal(path.text_len, 3);
		assert_memory_equal(path.text, "foo", 3);
	}
	capture_free(&capture);
}

static void test_return_that_comes_before_its_begin_adds_its_values_too(void **state)
{
	struct capture capture;
	const struct model_span *span;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	call_return_in(&capture, CAPTURE_PID, 2100, 20, CALL_READ, 1, 3, returned);
	call_hit(&capture, 2000, 20, CALL_READ, 1, 7);
	model = capture_load(&capture, 9000);
	span = capture_find(model, 1);
	assert_int_equal(model->spans.len, 1);
	assert_int_equal(span->start_ts, 2000);
	assert_int_equal(span->end_ts, 2100);
	assert_int_equal(span->flags, 0);
	assert_int_equal(span_value(model, span, "fd").i64, 7);
	assert_int_equal(span_value(model, span, "ret").i64, -5);
	capture_free(&capture);
}

static void test_return_without_a_begin_is_a_span_begun_before_without_values(void **state)
{
	struct capture capture;
	const struct model_span *span;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	call_return_in(&capture, CAPTURE_PID, 2100, 20, CALL_READ, 1, 3, returned);
	model = capture_load(&capture, 9000);
	span = capture_find(model, 1);
	assert_int_equal(span->flags, MODEL_SPAN_BEGUN_BEFORE);
	assert_int_equal(span->start_ts, CAPTURE_START);
	assert_int_equal(span->end_ts, 2100);
	assert_string_equal(model_site(model, span->site)->name, "read {fd}");
	assert_false(has_value(model, span, "fd"));
	assert_false(has_value(model, span, "ret"));
	capture_free(&capture);
}

static void test_return_of_another_site_or_of_no_call_is_counted_as_bad(void **state)
{
	struct capture capture;
	const struct model_span *span;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	call_hit(&capture, 2000, 20, CALL_READ, 1, 7);
	call_return(&capture, 2100, 20, CALL_SYNC, 1, 5);
	capture_span(&capture, 2200, 20, 2);
	call_return(&capture, 2300, 20, SITE_STEP, 2, 5);
	model = capture_load(&capture, 9000);
	span = capture_find(model, 1);
	assert_int_equal(model->bad_records, 2);
	assert_int_equal(span->flags, MODEL_SPAN_UNFINISHED);
	assert_false(has_value(model, span, "ret"));
	capture_free(&capture);
}

/* ---- laps ---- */

static uint16_t lap_flags(uint64_t waits_from_ts, bool unfinished)
{
	struct waffle_rec_open_wait wait = {.rec = {9000, 20, WAFFLE_REC_OPEN_WAIT, 0},
					    .from_ts = waits_from_ts};
	struct capture capture;
	uint16_t flags;

	calls_begin(&capture);
	call_hit_in(&capture, CAPTURE_PID, 2000, 20, CALL_LAP, 1, 0, NULL);
	if (!unfinished)
		call_return_in(&capture, CAPTURE_PID, 2500, 20, CALL_LAP, 1, 0, NULL);
	if (waits_from_ts)
		capture_add(&capture, &wait);
	flags = capture_find(capture_load(&capture, 9000), 1)->flags;
	capture_free(&capture);
	return flags & (MODEL_SPAN_UNFINISHED | MODEL_SPAN_PART_OF_LAP);
}

static void test_last_lap_has_no_length_unless_its_thread_hangs(void **state)
{
	(void)state;
	assert_int_equal(lap_flags(0, false), 0);
	assert_int_equal(lap_flags(0, true), MODEL_SPAN_UNFINISHED | MODEL_SPAN_PART_OF_LAP);
	assert_int_equal(lap_flags(8000, true), MODEL_SPAN_UNFINISHED | MODEL_SPAN_PART_OF_LAP);
	assert_int_equal(lap_flags(3000, true), MODEL_SPAN_UNFINISHED);
}

/* ---- parents ---- */

static uint64_t parent_of(const struct model *model, uint64_t id)
{
	const struct model_span *span = capture_find(model, id);
	uint64_t parent_id = model_context_of(model, span)->parent_id;

	if (span->parent != MODEL_NONE)
		assert_int_equal(model->spans.data[span->parent].id, parent_id);
	return parent_id;
}

static void test_call_belongs_to_the_innermost_span_open_on_its_thread(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	capture_span(&capture, 2000, 20, 1);
	capture_hit(&capture, 2100, 20, SITE_STEP, 2, 1, 0, NULL);
	call_hit(&capture, 2200, 20, CALL_SYNC, 3, 5);
	call_hit(&capture, 2250, 20, CALL_LAUNCH, 30, 9, 1, 1, 5); /* inside of the call */
	call_hit(&capture, 2260, 21, CALL_SYNC, 4, 5);             /* another thread */
	call_return_in(&capture, CAPTURE_PID, 2270, 21, CALL_SYNC, 4, 0, NULL);
	call_return_in(&capture, CAPTURE_PID, 2300, 20, CALL_SYNC, 3, 0, NULL);
	capture_end(&capture, 2400, 20, 2);
	call_span(&capture, 2500, 2600, 20, CALL_SYNC, 5, 5);
	capture_end(&capture, 2700, 20, 1);
	call_span(&capture, 2800, 2900, 20, CALL_SYNC, 6, 5);
	model = capture_load(&capture, 9000);
	assert_int_equal(parent_of(model, 3), 2);
	assert_int_equal(parent_of(model, 4), 0);
	assert_int_equal(parent_of(model, 5), 1);
	assert_int_equal(parent_of(model, 6), 0);
	assert_int_equal(model->events.data[0].parent_id, 3);
	/* The trace goes down with it, to calls inside of calls too. */
	assert_int_equal(model_context_of(model, capture_find(model, 3))->trace_hi, 7);
	assert_int_equal(model_context_of(model, capture_find(model, 3))->trace_lo, 8);
	assert_int_equal(model->events.data[0].trace_lo, 8);
	assert_int_equal(model_context_of(model, capture_find(model, 6))->trace_lo, 0);
	capture_free(&capture);
}

static void test_spans_that_overlap_or_end_elsewhere_are_no_parents_of_calls(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	capture_span(&capture, 2000, 20, 1); /* around all */
	/* Two requests in flight. */
	capture_hit(&capture, 2100, 20, SITE_STEP, 2, 1, 0, NULL);
	capture_hit(&capture, 2200, 20, SITE_STEP, 3, 1, 0, NULL);
	call_span(&capture, 2300, 2310, 20, CALL_SYNC, 10, 5);
	capture_end(&capture, 2400, 20, 2);
	call_span(&capture, 2500, 2510, 20, CALL_SYNC, 11, 5);
	capture_end(&capture, 2600, 20, 3);
	/* One that is handed to another thread. */
	capture_hit(&capture, 2700, 20, SITE_STEP, 4, 1, 0, NULL);
	call_span(&capture, 2800, 2810, 20, CALL_SYNC, 12, 5);
	capture_end(&capture, 2900, 21, 4);
	/* A call that such a span begins in is what its thread does until it returns. */
	call_hit(&capture, 3000, 20, CALL_READ, 13, 5);
	capture_hit(&capture, 3100, 20, SITE_STEP, 5, 1, 0, NULL);
	call_span(&capture, 3200, 3210, 20, CALL_SYNC, 14, 5);
	call_return_in(&capture, CAPTURE_PID, 3300, 20, CALL_READ, 13, 0, NULL);
	call_span(&capture, 3400, 3410, 20, CALL_SYNC, 15, 5);
	capture_end(&capture, 3500, 20, 5);
	capture_end(&capture, 3600, 20, 1);
	model = capture_load(&capture, 9000);
	assert_int_equal(parent_of(model, 10), 1);
	assert_int_equal(parent_of(model, 11), 1);
	assert_int_equal(parent_of(model, 12), 1);
	assert_int_equal(parent_of(model, 13), 1);
	assert_int_equal(parent_of(model, 14), 13);
	assert_int_equal(parent_of(model, 15), 1);
	capture_free(&capture);
}

static void test_call_with_a_lost_return_ends_with_the_span_around_it(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	capture_span(&capture, 2000, 20, 1);
	call_hit(&capture, 2100, 20, CALL_READ, 2, 5);
	call_span(&capture, 2200, 2210, 20, CALL_SYNC, 3, 5);
	capture_end(&capture, 2300, 20, 1);
	call_span(&capture, 2400, 2410, 20, CALL_SYNC, 4, 5);
	model = capture_load(&capture, 9000);
	assert_int_equal(parent_of(model, 2), 1);
	assert_int_equal(parent_of(model, 3), 2);
	assert_int_equal(parent_of(model, 4), 0);
	capture_free(&capture);
}

static void test_span_without_an_end_is_no_parent_if_records_were_lost(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	call_hit(&capture, 2100, 20, CALL_READ, 2, 5);
	capture_loss(&capture, 2150, 2160, WAFFLE_SOURCE_SPANS, 3);
	call_span(&capture, 2200, 2210, 20, CALL_SYNC, 3, 5);
	model = capture_load(&capture, 9000);
	assert_int_equal(parent_of(model, 3), 0);
	capture_free(&capture);
}

/* A call's end that is no return. */
static void left(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site, uint64_t id)
{
	struct waffle_rec_return rec = {.rec = {ts, tid, WAFFLE_REC_RETURN, 0},
					.span_id = id,
					.tgid = CAPTURE_PID,
					.site = site,
					.flags = WAFFLE_RETURN_LEFT};

	capture_add(capture, &rec);
}

static void test_call_that_was_left_ends_where_that_shows_and_has_no_later_children(void **state)
{
	const struct model_span *span;
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	call_hit(&capture, 2100, 20, CALL_READ, 2, 5);
	call_hit(&capture, 2110, 20, CALL_SYNC, 3, 5);
	call_hit(&capture, 2120, 20, CALL_LAUNCH, 4, 1, 1, 1, 1);
	left(&capture, 2200, 20, CALL_SYNC, 3);
	left(&capture, 2200, 20, CALL_READ, 2);
	call_hit(&capture, 2200, 20, CALL_READ, 5, 5);
	call_return(&capture, 2210, 20, CALL_READ, 5, 1);
	left(&capture, 2300, 21, CALL_READ, 6); /* its begin is not there */
	model = capture_load(&capture, 9000);
	span = capture_find(model, 2);
	assert_int_equal(span->flags, MODEL_SPAN_LEFT);
	assert_int_equal(span->end_ts, 2200);
	assert_false(model_span_ranks(span));
	span = capture_find(model, 3);
	assert_int_equal(span->flags, MODEL_SPAN_LEFT);
	assert_int_equal(parent_of(model, 3), 2);
	assert_int_equal(model->events.data[0].parent_id, 3);
	assert_int_equal(parent_of(model, 5), 0);
	assert_int_equal(capture_find(model, 5)->flags, 0);
	assert_int_equal(capture_find(model, 6)->flags, MODEL_SPAN_LEFT | MODEL_SPAN_BEGUN_BEFORE);
	assert_int_equal(model->bad_records, 0);
	capture_free(&capture);
}

static void test_pair_that_meets_by_a_key_is_a_parent_only_if_seen_whole_on_its_thread(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	capture_span(&capture, 2000, 20, 1);
	call_hit(&capture, 2100, 20, CALL_JOB, 2, 1);
	call_span(&capture, 2110, 2120, 20, CALL_SYNC, 10, 5);
	call_return_in(&capture, CAPTURE_PID, 2200, 20, CALL_JOB, 2, 0, NULL);
	/* One that another takes the place of. */
	call_hit(&capture, 2300, 20, CALL_JOB, 3, 2);
	call_span(&capture, 2310, 2320, 20, CALL_SYNC, 11, 5);
	left(&capture, 2400, 20, CALL_JOB, 3);
	/* One that never ends. */
	call_hit(&capture, 2400, 20, CALL_JOB, 4, 2);
	call_span(&capture, 2410, 2420, 20, CALL_SYNC, 12, 5);
	/* One that overlaps what nests: it is not the span that is none. */
	capture_hit(&capture, 2500, 20, SITE_STEP, 5, 1, 0, NULL);
	call_hit(&capture, 2600, 20, CALL_JOB, 6, 3);
	call_span(&capture, 2610, 2620, 20, CALL_SYNC, 13, 5);
	capture_end(&capture, 2700, 20, 5);
	call_span(&capture, 2710, 2720, 20, CALL_SYNC, 14, 5);
	call_return_in(&capture, CAPTURE_PID, 2800, 20, CALL_JOB, 6, 0, NULL);
	/* One whose begin was elsewhere, for all that is known. */
	call_span(&capture, 2810, 2820, 21, CALL_SYNC, 15, 5);
	call_return_in(&capture, CAPTURE_PID, 2900, 21, CALL_JOB, 7, 0, NULL);
	capture_end(&capture, 3000, 20, 1);
	model = capture_load(&capture, 9000);
	assert_int_equal(parent_of(model, 10), 2);
	assert_int_equal(parent_of(model, 11), 1);
	assert_int_equal(parent_of(model, 12), 1);
	assert_int_equal(parent_of(model, 13), 5);
	assert_int_equal(parent_of(model, 14), 1);
	assert_int_equal(parent_of(model, 15), 0);
	assert_int_equal(parent_of(model, 4), 1);
	assert_int_equal(capture_find(model, 4)->flags, MODEL_SPAN_UNFINISHED);
	capture_free(&capture);
}

static const struct model *load_filtered(struct capture *capture, const char *text,
					 struct filter_expr **filter)
{
	struct error err = ERROR_INIT;

	capture_must(filter_parse(filter, "--filter", text, &err), err);
	capture->keep.filter = *filter;
	return capture_load(capture, 9000);
}

static void test_filter_asks_for_the_depth_and_the_parents_of_calls(void **state)
{
	static const struct {
		const char *filter;
		uint64_t id;
	} rows[] = {
		{"depth == 2", 3},
		{"parent.name == \"step\" && category == \"cuda\"", 3},
		{"parent.name == \"cudaStreamSynchronize\"", 30},
		{"kv.kernel ~ \"*gemm*\"", 30},
		{"kv.kernel == \"my::gemm(float*)\"", 30},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct store_name name = {0x9000, CAPTURE_PID, "my::gemm(float*)", 0};
		struct error err = ERROR_INIT;
		struct filter_expr *filter;
		struct capture capture;
		const struct model *model;

		calls_begin(&capture);
		capture_must(store_writer_add_name(capture.writer, &name, &err), err);
		capture_span(&capture, 2000, 20, 1);
		capture_hit(&capture, 2100, 20, SITE_LOAD, 2, 1, 0, NULL);
		call_hit(&capture, 2200, 20, CALL_SYNC, 3, 5);
		call_hit(&capture, 2250, 20, CALL_LAUNCH, 30, 0x9000, 1, 1, 5);
		call_return_in(&capture, CAPTURE_PID, 2300, 20, CALL_SYNC, 3, 0, NULL);
		capture_end(&capture, 2400, 20, 2);
		call_span(&capture, 2500, 2600, 20, CALL_SYNC, 5, 5);
		capture_end(&capture, 2700, 20, 1);
		model = load_filtered(&capture, rows[i].filter, &filter);
		if (rows[i].id == 30) {
			assert_int_equal(model->events.len, 1);
			assert_int_equal(model->events.data[0].id, 30);
			assert_int_equal(model->spans.len, 0);
		} else {
			/* Both calls have a parent that is a step in the second row. */
			assert_int_equal(model->events.len, 0);
			assert_int_equal(model->spans.data[0].id, i == 1 ? 5 : 3);
			assert_int_equal(model->spans.len, 1);
		}
		capture_free(&capture);
		filter_free(filter);
	}
}

/* ---- names ---- */

static const char *event_text(const struct model *model, size_t index, const char *key)
{
	const struct model_event *event = &model->events.data[index];
	struct value_walk walk = model_values(model, event->site, event->frame);
	struct value value;

	while (value_walk_next(&walk, &value)) {
		if (strcmp(value.key->name, key))
			continue;
		assert_int_equal(value.type, WAFFLE_KEY_STR);
		assert_int_equal(strlen(value.text), value.text_len);
		return value.text;
	}
	fail_msg("no value %s", key);
	return NULL;
}

static void test_addresses_of_code_are_shown_by_the_names_of_their_process(void **state)
{
	static const struct store_name names[] = {
		{0x9000, CAPTURE_PID, "old", 0},
		{0x9000, 11, "other(int)", 0},
		{0x9000, CAPTURE_PID, "gemm(float*)", 0},
	};
	struct error err = ERROR_INIT;
	struct capture capture;
	const struct model *model;
	struct value_walk walk;
	struct value value;

	(void)state;
	calls_begin(&capture);
	call_hit(&capture, 2000, 20, CALL_LAUNCH, 1, 0x9000, 2 | 3ull << 32, 4, 0x55);
	call_hit(&capture, 2001, 20, CALL_LAUNCH, 2, 0x7f0012345678, 1, 1, 0);
	call_hit_in(&capture, 11, 2002, 30, CALL_LAUNCH, 3, CALL_WORDS(0x9000, 1, 1, 0));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		capture_must(store_writer_add_name(capture.writer, &names[i], &err), err);
	model = capture_load(&capture, 9000);
	assert_int_equal(model->events.len, 3);
	assert_string_equal(event_text(model, 0, "kernel"), "gemm(float*)");
	assert_string_equal(event_text(model, 1, "kernel"), "0x7f0012345678");
	assert_string_equal(event_text(model, 2, "kernel"), "other(int)");
	/* The values behind the name have not moved. */
	walk = model_values(model, model->events.data[0].site, model->events.data[0].frame);
	assert_true(value_walk_next(&walk, &value) && value_walk_next(&walk, &value));
	assert_int_equal(value.type, WAFFLE_KEY_DIM3);
	assert_int_equal(value.dim[0], 2);
	assert_int_equal(value.dim[1], 3);
	assert_int_equal(value.dim[2], 4);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.u64, 0x55);
	assert_false(value_walk_next(&walk, &value));
	capture_free(&capture);
}

static void test_value_has_the_name_that_held_at_its_time(void **state)
{
	static const struct store_name names[] = {
		{0x9000, CAPTURE_PID, "third", 4000}, {0x9000, CAPTURE_PID, "no longer", 3000},
		{0x9000, CAPTURE_PID, "", 3000},      {0x9000, CAPTURE_PID, "second", 2000},
		{0x9000, CAPTURE_PID, "first", 0},    {0x9000, 11, "other", 2500},
		{0xa000, CAPTURE_PID, "late", 3000},
	};
	static const struct {
		uint64_t ts, value;
		const char *name;
	} rows[] = {
		{1500, 0x9000, "first"},  {1600, 0xa000, "0xa000"}, {1999, 0x9000, "first"},
		{2000, 0x9000, "second"}, {2999, 0x9000, "second"}, {3000, 0x9000, "0x9000"},
		{3001, 0xa000, "late"},   {3999, 0x9000, "0x9000"}, {4000, 0x9000, "third"},
	};
	struct error err = ERROR_INIT;
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		call_hit(&capture, rows[i].ts, 20, CALL_LAUNCH, i + 1, rows[i].value, 1, 1, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		capture_must(store_writer_add_name(capture.writer, &names[i], &err), err);
	model = capture_load(&capture, 9000);
	assert_int_equal(model->events.len, sizeof(rows) / sizeof(rows[0]));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(event_text(model, i, "kernel"), rows[i].name);
	capture_free(&capture);
}

static void test_name_with_a_key_in_it_is_filled_with_values(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	call_span(&capture, 2000, 2010, 20, CALL_READ, 1, 3);
	call_span(&capture, 2020, 2030, 20, CALL_READ, 2, 4);
	call_span(&capture, 2040, 2050, 20, CALL_READ, 3, 3);
	model = capture_load(&capture, 9000);
	assert_string_equal(model_site(model, capture_find(model, 1)->site)->name, "read 3");
	assert_string_equal(model_site(model, capture_find(model, 2)->site)->name, "read 4");
	assert_int_equal(capture_find(model, 1)->site, capture_find(model, 3)->site);
	assert_string_equal(model_site(model, capture_find(model, 2)->site)->category, "libc");
	assert_int_equal(span_value(model, capture_find(model, 2), "fd").i64, 4);
	assert_int_equal(model_site_count(model), CALL_SITES_END + 2);
	capture_free(&capture);
}

static void test_template_with_too_many_values_keeps_its_own_name(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	for (uint64_t i = 1; i <= 1200; i++)
		call_span(&capture, 2000 + 2 * i, 2001 + 2 * i, 20, CALL_READ, i, i);
	call_span(&capture, 5000, 5001, 20, CALL_READ, 2000, 7);
	model = capture_load(&capture, 9000);
	assert_int_equal(model_site_count(model), CALL_SITES_END + 1000);
	assert_string_equal(model_site(model, capture_find(model, 1000)->site)->name, "read 1000");
	assert_string_equal(model_site(model, capture_find(model, 1001)->site)->name, "read {fd}");
	assert_string_equal(model_site(model, capture_find(model, 2000)->site)->name, "read 7");
	capture_free(&capture);
}

/* ---- stacks ---- */

static void test_stacks_are_found_by_the_id_of_their_span(void **state)
{
	struct waffle_rec_stack stack = {.rec = {2000, 20, WAFFLE_REC_STACK, 0}};
	struct capture capture;
	const struct model *model;
	const struct model_stack *found;

	(void)state;
	calls_begin(&capture);
	for (uint32_t i = 5; i > 1; i--) {
		stack.id = i * 1000000007ull;
		stack.user_stack = 10 + i;
		stack.kernel_stack = 20 + i;
		stack.python_stack = i;
		capture_add(&capture, &stack);
	}
	stack.id = 0;
	capture_add(&capture, &stack);
	model = capture_load(&capture, 9000);
	assert_int_equal(model->bad_records, 1);
	for (uint32_t i = 2; i <= 5; i++) {
		found = model_stack_of(model, i * 1000000007ull);
		assert_non_null(found);
		assert_int_equal(found->user_stack, 10 + i);
		assert_int_equal(found->kernel_stack, 20 + i);
		assert_int_equal(found->python_stack, i);
		assert_int_equal(found->ts, 2000);
	}
	assert_null(model_stack_of(model, 7));
	assert_null(model_stack_of(model, UINT64_MAX));
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_return_ends_a_span_and_adds_its_values),
		cmocka_unit_test(test_return_that_comes_before_its_begin_adds_its_values_too),
		cmocka_unit_test(test_return_without_a_begin_is_a_span_begun_before_without_values),
		cmocka_unit_test(test_return_of_another_site_or_of_no_call_is_counted_as_bad),
		cmocka_unit_test(test_last_lap_has_no_length_unless_its_thread_hangs),
		cmocka_unit_test(test_call_belongs_to_the_innermost_span_open_on_its_thread),
		cmocka_unit_test(test_spans_that_overlap_or_end_elsewhere_are_no_parents_of_calls),
		cmocka_unit_test(test_call_with_a_lost_return_ends_with_the_span_around_it),
		cmocka_unit_test(
			test_call_that_was_left_ends_where_that_shows_and_has_no_later_children),
		cmocka_unit_test(test_span_without_an_end_is_no_parent_if_records_were_lost),
		cmocka_unit_test(
			test_pair_that_meets_by_a_key_is_a_parent_only_if_seen_whole_on_its_thread),
		cmocka_unit_test(test_filter_asks_for_the_depth_and_the_parents_of_calls),
		cmocka_unit_test(test_addresses_of_code_are_shown_by_the_names_of_their_process),
		cmocka_unit_test(test_value_has_the_name_that_held_at_its_time),
		cmocka_unit_test(test_name_with_a_key_in_it_is_filled_with_values),
		cmocka_unit_test(test_template_with_too_many_values_keeps_its_own_name),
		cmocka_unit_test(test_stacks_are_found_by_the_id_of_their_span),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
