// SPDX-License-Identifier: Apache-2.0
/* What changed between two captures, and which spans are selected and typical. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/why/why_compare.h"
#include "render/text/compare_text.h"
#include "why_capture.h"

#define A 10
#define B 11
#define END_TS 10000000

static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	named(capture, A, CAPTURE_PID, "a");
	named(capture, B, CAPTURE_PID, "b");
	capture_state(capture, CAPTURE_START, A, WAFFLE_THREAD_RUNNING, false);
	capture_state(capture, CAPTURE_START, B, WAFFLE_THREAD_RUNNING, false);
}

/* A span of A that runs for 1000 and waits for `wait` for a futex that B wakes. */
static void add_span(struct capture *capture, uint64_t *ts, uint64_t id, uint64_t wait,
		     uint64_t futex)
{
	capture_span(capture, *ts, A, id);
	if (wait) {
		waits(capture, *ts + 500, 0, A, 0, S, NR_FUTEX, futex, FUTEX_MUTEX, 2);
		gets(capture, *ts + 500 + wait, 0, 0, A, B, *ts + 500 + wait, 0);
	}
	*ts += 1000 + wait;
	capture_end(capture, *ts, A, id);
	*ts += 10;
}

static struct why_aggregate *aggregate_of(struct capture *capture)
{
	const struct why_aggregate_options options = {.stretches = 0};
	struct why_aggregate *aggregate;
	struct error err = ERROR_INIT;

	capture_load(capture, END_TS);
	capture_must(why_aggregate_new(&aggregate, capture->model, &options, &err), err);
	return aggregate;
}

static struct why_aggregate *capture_of(struct capture *capture, unsigned spans, uint64_t wait,
					uint64_t futex)
{
	uint64_t ts = CAPTURE_START + 100;

	begin(capture);
	for (unsigned i = 0; i < spans; i++)
		add_span(capture, &ts, 0xa0 + i, wait, futex);
	return aggregate_of(capture);
}

static bool is(double value, double expected)
{
	return fabs(value - expected) < 0.5;
}

static void test_a_longer_wait_for_the_same_lock_is_one_change(void **state)
{
	struct capture captures[WHY_SIDES];
	struct why_aggregate *before = capture_of(&captures[0], 4, 2000, 0x7f01000);
	struct why_aggregate *after = capture_of(&captures[1], 5, 6000, 0x5581000);
	const struct why_change_name *name;
	struct why_comparison comparison;
	double sum = 0;

	(void)state;
	why_compare(&comparison, before, after, NULL);
	assert_int_equal(comparison.names.len, 1);
	name = &comparison.names.data[0];
	assert_true(is(name->ns[WHY_BEFORE], 3000) && is(name->ns[WHY_AFTER], 7000));
	assert_true(is(name->weight_ns, 5 * 4000));
	/* The lock has another address in each capture, and is one lock all the same. */
	assert_int_equal(name->causes.data[0].cause[WHY_AFTER]->cause, WHY_LOCK);
	assert_true(is(name->causes.data[0].ns[WHY_BEFORE], 2000));
	assert_true(is(name->causes.data[0].ns[WHY_AFTER], 6000));
	for (size_t i = 0; i < name->causes.len; i++)
		sum += name->causes.data[i].ns[WHY_AFTER] - name->causes.data[i].ns[WHY_BEFORE];
	assert_true(is(sum, 4000));
	why_comparison_free(&comparison);
	why_compare(&comparison, before, after, "nothing");
	assert_int_equal(comparison.names.len, 0);
	why_comparison_free(&comparison);
	why_aggregate_free(before);
	why_aggregate_free(after);
	capture_free(&captures[0]);
	capture_free(&captures[1]);
}

static void test_a_cause_that_is_new_or_gone_is_a_change(void **state)
{
	struct capture captures[WHY_SIDES];
	struct why_aggregate *before = capture_of(&captures[0], 4, 0, 0);
	struct why_aggregate *after = capture_of(&captures[1], 4, 6000, 0x5581000);
	struct why_comparison comparison;

	(void)state;
	why_compare(&comparison, before, after, NULL);
	assert_null(comparison.names.data[0].causes.data[0].cause[WHY_BEFORE]);
	assert_true(is(comparison.names.data[0].causes.data[0].ns[WHY_AFTER], 6000));
	why_comparison_free(&comparison);
	why_compare(&comparison, after, before, NULL);
	assert_null(comparison.names.data[0].causes.data[0].cause[WHY_AFTER]);
	assert_true(is(comparison.names.data[0].causes.data[0].ns[WHY_BEFORE], 6000));
	why_comparison_free(&comparison);
	why_aggregate_free(before);
	why_aggregate_free(after);
	capture_free(&captures[0]);
	capture_free(&captures[1]);
}

static void test_spans_of_one_capture_only_are_there_without_the_other_side(void **state)
{
	struct capture captures[WHY_SIDES];
	struct why_aggregate *before = capture_of(&captures[0], 0, 0, 0);
	struct why_aggregate *after = capture_of(&captures[1], 2, 1000, 0x5581000);
	struct why_comparison comparison;

	(void)state;
	why_compare(&comparison, before, after, NULL);
	assert_int_equal(comparison.names.len, 1);
	assert_null(comparison.names.data[0].group[WHY_BEFORE]);
	assert_true(is(comparison.names.data[0].weight_ns, 2 * 2000));
	why_comparison_free(&comparison);
	why_aggregate_free(before);
	why_aggregate_free(after);
	capture_free(&captures[0]);
	capture_free(&captures[1]);
}

/* The first one of `spans` spans waits for /once, for 1 ns. The others wait for /often. */
static struct why_aggregate *capture_of_two(struct capture *capture, unsigned spans)
{
	uint64_t ts = CAPTURE_START + 100;

	begin(capture);
	object(capture, "/often", "");
	object(capture, "/once", "");
	for (unsigned i = 0; i < spans; i++) {
		uint64_t from = ts + 500, to = from + (i ? 1000 : 1);

		capture_span(capture, ts, A, 0xa0 + i);
		waits(capture, from, 0, A, 0, D, NR_READ, 3, 0, 0);
		gets(capture, to, 0, 0, A, 0, to, HARD);
		wait_details(capture, from, to, A, i ? 1 : 2, 0, 0);
		ts = to + 500;
		capture_end(capture, ts, A, 0xa0 + i);
		ts += 10;
	}
	return aggregate_of(capture);
}

static char *text_of(const struct why_comparison *comparison)
{
	const struct report_view view = {.rows = 0};
	const char *const paths[WHY_SIDES] = {"a", "b"};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	compare_print_text(comparison, paths, &view, out);
	fclose(out);
	return text;
}

/* If one of four spans waits for 1 ns, an average span waits for 0 ns, rounded. */
static void test_what_takes_no_time_in_either_capture_is_not_in_the_text(void **state)
{
	struct capture captures[WHY_SIDES];
	struct why_aggregate *before = capture_of_two(&captures[0], 4);
	struct why_aggregate *after = capture_of_two(&captures[1], 5);
	struct why_comparison comparison;
	const struct why_change_name *name;
	char *text;

	(void)state;
	why_compare(&comparison, before, after, NULL);
	name = &comparison.names.data[0];
	for (size_t i = 0; i < name->causes.len; i++)
		assert_int_equal(why_change_is_nothing(&name->causes.data[i]),
				 i + 1 == name->causes.len);
	text = text_of(&comparison);
	assert_non_null(strstr(text, "/often"));
	assert_null(strstr(text, "/once"));
	assert_null(strstr(text, " more"));
	free(text);
	why_comparison_free(&comparison);
	why_aggregate_free(before);
	why_aggregate_free(after);
	capture_free(&captures[0]);
	capture_free(&captures[1]);
}

static void load_where(struct capture *capture, const char *expression)
{
	struct error err = ERROR_INIT;
	struct filter_expr *where;

	capture_must(filter_open(&where, "--where", expression, &err), err);
	capture->keep.where = where;
	capture_load(capture, END_TS);
	filter_free(where);
}

static void test_a_selection_removes_nothing_from_the_model(void **state)
{
	const struct why_query query = {.median = true};
	const struct why_aggregate_options options = {.stretches = 0};
	uint64_t ts = CAPTURE_START + 100;
	struct error err = ERROR_INIT;
	struct why_aggregate *aggregate;
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	for (unsigned i = 0; i < 5; i++)
		add_span(&capture, &ts, 0xa0 + i, 1000 * (i + 1), 0x5581000);
	load_where(&capture, "dur > 5us");
	assert_int_equal(capture.model->spans.len, 5);
	capture_must(why_new(&why, capture.model, &query, &err), err);
	/* The slowest one, and the median of all, which was not selected. */
	assert_int_equal(why->instances.len, 2);
	assert_int_equal(capture.model->spans.data[why->instances.data[0].span].id, 0xa4);
	assert_int_equal(why->instances.data[0].median_of, 0);
	assert_int_equal(capture.model->spans.data[why->instances.data[1].span].id, 0xa2);
	assert_int_equal(why->instances.data[1].median_of, 5);
	why_free(why);
	capture_must(why_aggregate_new(&aggregate, capture.model, &options, &err), err);
	assert_int_equal(aggregate->groups.data[0].count, 1);
	assert_int_equal(aggregate->groups.data[0].explained_ns, 6000);
	why_aggregate_free(aggregate);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_longer_wait_for_the_same_lock_is_one_change),
		cmocka_unit_test(test_a_cause_that_is_new_or_gone_is_a_change),
		cmocka_unit_test(test_spans_of_one_capture_only_are_there_without_the_other_side),
		cmocka_unit_test(test_what_takes_no_time_in_either_capture_is_not_in_the_text),
		cmocka_unit_test(test_a_selection_removes_nothing_from_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
