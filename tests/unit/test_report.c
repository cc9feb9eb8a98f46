// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include "model_capture.h"

#include "analyze/report.h"
#include "analyze/select.h"
#include "render/info.h"
#include "render/text/report_causes.h"
#include "render/text/report_text.h"
#include "util/memory.h"

static struct report *report_of(const struct model *model, enum report_sort sort)
{
	struct report_options options = REPORT_OPTIONS_DEFAULT;
	struct error err = ERROR_INIT;
	struct report *report;

	options.sort = sort;
	capture_must(report_new(&report, model, &options, &err), err);
	return report;
}

static char *printed(const struct report *report, bool colour)
{
	struct report_view view = {20, colour};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	report_print_text(report, &view, out);
	fclose(out);
	return text;
}

static int compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static void test_percentiles_are_the_nearest_rank_of_the_sorted_values(void **state)
{
	uint64_t values[300], sorted[300];

	(void)state;
	assert_int_equal(select_percentile_rank(1, 99), 0);
	assert_int_equal(select_percentile_rank(2, 50), 0);
	assert_int_equal(select_percentile_rank(3, 50), 1);
	assert_int_equal(select_percentile_rank(100, 99), 98);
	assert_int_equal(select_percentile_rank(101, 99), 99);
	srand(4);
	for (size_t count = 1; count <= 300; count++) {
		size_t rank = (size_t)rand() % count;

		for (size_t i = 0; i < count; i++)
			values[i] = (uint64_t)rand() % (count % 7 ? 1000 : 3);
		memcpy(sorted, values, sizeof(values));
		qsort(sorted, count, sizeof(*sorted), compare);
		assert_int_equal(select_rank(values, count, rank), sorted[rank]);
	}
}

/* Two sites of one name: durations 1 … 100; one span is open at the begin, one at the end. */
static const struct model *steps(struct capture *capture)
{
	uint64_t ts = 2000;

	capture_begin(capture, true);
	capture_state(capture, 1001, 11, WAFFLE_THREAD_RUNNING, false);
	capture_end(capture, 1900, 11, 999);
	for (unsigned i = 1; i <= 100; i++) {
		uint64_t duration = i * 37 % 101; /* each of 1 … 100 once */

		capture_hit(capture, ts, 11, i % 2 ? SITE_STEP : SITE_STEP_AT, i, 0, i % 2 ? 0 : 3,
			    (uint64_t[]){i, 3, 0x0a1b63 /* "c", escape, newline */});
		ts += duration;
		capture_end(capture, ts, 11, i);
	}
	capture_span(capture, ts, 11, 1000);
	return capture_load(capture, ts + 50000);
}

static void test_spans_are_summed_up_by_name(void **state)
{
	struct capture capture;
	struct report *report = report_of(steps(&capture), REPORT_SORT_TOTAL);
	const struct report_span *row = &report->spans.data[0];

	(void)state;
	assert_int_equal(report->spans.len, 1);
	assert_string_equal(row->name, "step");
	assert_int_equal(row->count, 100);
	assert_int_equal(row->total_ns, 5050);
	assert_int_equal(row->p50_ns, 50);
	assert_int_equal(row->p99_ns, 99);
	assert_int_equal(row->max_ns, 100);
	assert_int_equal(row->unfinished, 1);
	assert_int_equal(row->begun_before, 1);
	assert_int_equal(row->sched_count, 100);
	assert_int_equal(row->running_ns, 5050);
	assert_int_equal(row->blocked_ns, 0);
	assert_int_equal(report->slowest.len, 3);
	assert_int_equal(report->model->spans.data[report->slowest.data[0].span].id, 1000);
	assert_int_equal(report->model->spans.data[report->slowest.data[1].span].id, 999);
	report_free(report);
	capture_free(&capture);
}

/* There are so many spans that a second thread makes the tables (SPANS_BESIDE). */
static void test_many_spans_are_summed_up_and_explained(void **state)
{
	const uint64_t count = 101000;
	struct capture capture;
	const struct report_span *row;
	struct report *report;
	uint64_t ts = 2000;

	(void)state;
	capture_begin(&capture, true);
	capture_state(&capture, 1001, 11, WAFFLE_THREAD_RUNNING, false);
	for (uint64_t i = 0; i < count; i++) {
		capture_hit(&capture, ts, 11, SITE_STEP, i + 1, 0, 0, (uint64_t[]){i, 3, 0});
		ts += 1 + i * 37 % 101; /* each of 1 … 101 equally often */
		capture_end(&capture, ts, 11, i + 1);
	}
	report = report_of(capture_load(&capture, ts + 50000), REPORT_SORT_TOTAL);
	row = &report->spans.data[0];
	assert_int_equal(row->count, count);
	assert_int_equal(row->total_ns, count * 51);
	assert_int_equal(row->p50_ns, 51);
	assert_int_equal(row->running_ns, count * 51);
	assert_int_equal(report_causes(report, row)->explained_ns, count * 51);
	report_free(report);
	capture_free(&capture);
}

static void test_spans_of_unknown_length_are_no_slowest_where_records_were_lost(void **state)
{
	static const uint64_t order[] = {4, 3, 2, 1};
	struct report_options options = REPORT_OPTIONS_DEFAULT;
	struct error err = ERROR_INIT;
	struct capture capture;
	struct report *report;
	char *text;

	(void)state;
	capture_begin(&capture, true);
	capture_end(&capture, 1900, 11, 1);  /* 900 long, or its begin was lost */
	capture_span(&capture, 1950, 11, 2); /* likewise its end */
	capture_loss(&capture, 1960, 1961, WAFFLE_SOURCE_SPANS, 3);
	capture_loss(&capture, 1500, 1501, WAFFLE_SOURCE_SPANS, 3);
	capture_loss(&capture, 1965, 1966, WAFFLE_SOURCE_SCHED, 3);
	capture_hit(&capture, 1962, 12, SITE_STEP_AT, 3, 0, 0, NULL);
	capture_end(&capture, 1970, 12, 3);
	capture_hit(&capture, 1940, 12, SITE_STEP_AT, 4, 0, 0, NULL);
	capture_end(&capture, 1980, 12, 4); /* lost records leave it as it is */
	capture_must(report_new(&report, capture_load(&capture, 9000), &options, &err), err);
	text = printed(report, false);
	assert_non_null(strstr(text, "unfinished  with loss"));
	assert_int_equal(report->slowest.len, 3); /* of a name */
	for (size_t i = 0; i < report->slowest.len; i++)
		assert_int_equal(report->model->spans.data[report->slowest.data[i].span].id,
				 order[i]);
	free(text);
	report_free(report);
	capture_free(&capture);
}

static void test_slow_span_names_its_longest_wait_and_who_ended_it(void **state)
{
	struct capture capture;
	struct report *report;
	const struct report_slow *slow;

	(void)state;
	capture_begin(&capture, true);
	capture_switch(&capture, 1010, 1, 0, 11, 0, 0, 0);
	capture_span(&capture, 1020, 11, 1);
	capture_switch(&capture, 1030, 1, 11, 0, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_switch(&capture, 1045, 1, 0, 11, 0, 13, 1040);
	capture_switch(&capture, 1050, 1, 11, 0, WAFFLE_TASK_UNINTERRUPTIBLE, 0, 0);
	capture_switch(&capture, 1190, 1, 0, 11, 0, 12, 1180);
	capture_end(&capture, 1200, 11, 1);
	report = report_of(capture_load(&capture, 1300), REPORT_SORT_TOTAL);
	slow = &report->slowest.data[0];
	assert_int_equal(report->slowest.len, 1);
	assert_int_equal(slow->wait_ns, 130);
	assert_int_equal(slow->wait_from_ts, 1050);
	assert_int_equal(slow->task_state, WAFFLE_TASK_UNINTERRUPTIBLE);
	assert_int_equal(slow->syscall, 202);
	assert_int_equal(report->model->threads.data[slow->waker].tid, 12);
	assert_int_equal(report->spans.data[0].blocked_ns, 140);
	assert_int_equal(report->spans.data[0].runnable_ns, 15);
	assert_int_equal(report->spans.data[0].running_ns, 25);
	report_free(report);
	capture_free(&capture);
}

static void test_counters_have_their_extremes_mean_and_last(void **state)
{
	double half = -0.5, nan = strtod("nan", NULL);
	uint64_t half_bits, nan_bits;
	struct capture capture;
	struct report *report;
	const struct report_counter *row;

	(void)state;
	memcpy(&half_bits, &half, sizeof(half));
	memcpy(&nan_bits, &nan, sizeof(nan));
	capture_begin(&capture, false);
	capture_hit(&capture, 1010, 11, SITE_DEPTH, 0, 0, 2, (uint64_t[]){WAFFLE_NUMBER_I64, 7});
	capture_hit(&capture, 1011, 11, SITE_DEPTH, 0, 0, 2,
		    (uint64_t[]){WAFFLE_NUMBER_F64, half_bits});
	capture_hit(&capture, 1012, 11, SITE_DEPTH, 0, 0, 2,
		    (uint64_t[]){WAFFLE_NUMBER_F64, nan_bits});
	capture_hit(&capture, 1013, 11, SITE_DEPTH, 0, 0, 2,
		    (uint64_t[]){WAFFLE_NUMBER_I64, (uint64_t)-2});
	capture_hit(&capture, 1014, 11, SITE_DEPTH, 0, 0, 2, (uint64_t[]){WAFFLE_NUMBER_U64, 1});
	report = report_of(capture_load(&capture, 2000), REPORT_SORT_TOTAL);
	row = &report->counters.data[0];
	assert_int_equal(report->counters.len, 1);
	assert_int_equal(row->count, 4);
	assert_int_equal(row->ignored, 1);
	assert_true(row->min == -2 && row->max == 7 && row->last == 1 && row->mean == 1.375);
	report_free(report);
	capture_free(&capture);
}

static void test_rows_come_in_the_order_asked_for(void **state)
{
	struct capture capture;
	const struct model *model;
	struct report *report;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1010, 11, 1);
	capture_end(&capture, 1020, 11, 1);
	capture_span(&capture, 1030, 11, 2);
	capture_end(&capture, 1040, 11, 2);
	capture_hit(&capture, 1050, 11, SITE_LOAD, 3, 0, 2, (uint64_t[]){0, 0});
	capture_end(&capture, 1065, 11, 3);
	model = capture_load(&capture, 2000);
	report = report_of(model, REPORT_SORT_TOTAL);
	assert_string_equal(report->spans.data[0].name, "step");
	report_free(report);
	report = report_of(model, REPORT_SORT_MAX);
	assert_string_equal(report->spans.data[0].name, "load");
	report_free(report);
	report = report_of(model, REPORT_SORT_NAME);
	assert_string_equal(report->spans.data[0].name, "load");
	report_free(report);
	capture_free(&capture);
}

/* ---- what is printed ---- */

static yajl_val parsed(const char *text)
{
	char error[256];
	yajl_val tree = yajl_tree_parse(text, error, sizeof(error));

	if (!tree)
		fail_msg("not JSON: %s", error);
	return tree;
}

static long long number(yajl_val in, const char *key)
{
	const char *path[] = {key, NULL};
	yajl_val value = yajl_tree_get(in, path, yajl_t_number);

	if (!value)
		fail_msg("no number %s", key);
	return YAJL_GET_INTEGER(value);
}

static yajl_val member(yajl_val in, const char *key, yajl_type type)
{
	const char *path[] = {key, NULL};
	yajl_val value = yajl_tree_get(in, path, type);

	if (!value)
		fail_msg("no %s", key);
	return value;
}

static void test_report_json_has_what_scripts_rely_on(void **state)
{
	struct capture capture;
	struct report *report = report_of(steps(&capture), REPORT_SORT_TOTAL);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	yajl_val tree, span;

	(void)state;
	assert_int_equal(report_print_json(report, out), 0);
	fclose(out);
	tree = parsed(text);
	span = YAJL_GET_ARRAY(member(tree, "spans", yajl_t_array))->values[0];
	assert_string_equal(YAJL_GET_STRING(member(span, "name", yajl_t_string)), "step");
	assert_int_equal(number(span, "count"), 100);
	assert_int_equal(number(span, "total_ns"), 5050);
	assert_int_equal(number(span, "p50_ns"), 50);
	assert_int_equal(number(span, "p99_ns"), 99);
	assert_int_equal(number(span, "max_ns"), 100);
	assert_int_equal(number(span, "running_ns"), 5050);
	assert_int_equal(number(span, "runnable_ns"), 0);
	assert_int_equal(number(span, "blocked_ns"), 0);
	assert_int_equal(YAJL_GET_ARRAY(member(tree, "counters", yajl_t_array))->len, 0);
	assert_int_equal(number(member(tree, "records", yajl_t_object), "produced"),
			 capture.records);
	assert_int_equal(number(member(tree, "records", yajl_t_object), "lost"), 0);
	yajl_tree_free(tree);
	free(text);
	report_free(report);
	capture_free(&capture);
}

static void test_info_json_counts_what_is_there(void **state)
{
	struct capture capture;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	yajl_val tree;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1010, 11, 1);
	capture_end(&capture, 1020, 11, 1);
	capture_hit(&capture, 1030, 12, SITE_FOUND, 5, 0, 1, (uint64_t[]){9});
	capture_hit(&capture, 1040, 12, SITE_DEPTH, 0, 0, 2, (uint64_t[]){0, 9});
	capture_loss(&capture, 1050, 1060, WAFFLE_SOURCE_SPANS, 4);
	assert_int_equal(info_print_json(capture_load(&capture, 3000), out), 0);
	fclose(out);
	tree = parsed(text);
	assert_int_equal(number(tree, "spans"), 1);
	assert_int_equal(number(tree, "events"), 1);
	assert_int_equal(number(tree, "counters"), 1);
	assert_int_equal(number(tree, "links"), 1);
	assert_int_equal(number(tree, "threads"), 2);
	assert_int_equal(number(tree, "duration_ns"), 2000);
	assert_int_equal(number(member(tree, "records", yajl_t_object), "lost"), 4);
	assert_int_equal(number(member(tree, "records", yajl_t_object), "produced"),
			 capture.records + 4);
	yajl_tree_free(tree);
	free(text);
	capture_free(&capture);
}

static void test_text_report_has_colour_only_if_asked_and_no_foreign_escapes(void **state)
{
	struct capture capture;
	struct report *report = report_of(steps(&capture), REPORT_SORT_TOTAL);
	char *text = printed(report, false);

	(void)state;
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "1 unfinished, 1 begun before"));
	assert_non_null(strstr(text, "100.0 %"));
	assert_non_null(strstr(text, "0 lost"));
	free(text);
	text = printed(report, true);
	assert_non_null(strstr(text, "\033[1m"));
	free(text);
	report_free(report);
	capture_free(&capture);
}

static void test_text_report_shows_losses(void **state)
{
	struct capture capture;
	struct report *report;
	char *text;

	(void)state;
	capture_begin(&capture, true);
	capture_span(&capture, 1010, 11, 1);
	capture_loss(&capture, 1020, 1030, WAFFLE_SOURCE_SCHED, 1234);
	capture_end(&capture, 1040, 11, 1);
	report = report_of(capture_load(&capture, 2000), REPORT_SORT_TOTAL);
	text = printed(report, false);
	assert_non_null(strstr(text, "lost 1,234 sched records in 1 interval"));
	assert_non_null(strstr(text, "1 with loss"));
	assert_non_null(strstr(text, "1,234 lost"));
	free(text);
	report_free(report);
	capture_free(&capture);
}

/* Three spans of which one passes, and an event that does not. */
static const struct model *filtered(struct capture *capture, const char *recorded,
				    const char *expression)
{
	struct filter_expr *filter;
	struct error err = ERROR_INIT;

	capture_begin_with(capture, true, recorded);
	for (uint64_t i = 1; i <= 3; i++) {
		capture_span(capture, 1000 * i, 11, i);
		capture_end(capture, 1000 * i + 100 * i, 11, i);
	}
	capture_hit(capture, 4000, 11, SITE_FAILED, 20, 0, 0, NULL);
	capture_must(filter_parse(&filter, "test", expression, &err), err);
	capture->keep.filter = filter;
	return capture_load(capture, 5000);
}

static void filtered_free(struct capture *capture)
{
	filter_free((struct filter_expr *)(uintptr_t)capture->keep.filter);
	capture_free(capture);
}

static void test_text_says_which_filters_were_at_work_on_a_line_each(void **state)
{
	struct capture capture;
	struct report *report =
		report_of(filtered(&capture, "name ~ \"*\"  # all \"names\n\t&& kv.a != \"#  1\"\n",
				   "kind != sched &&\n dur >= 300ns # slow"),
			  REPORT_SORT_TOTAL);
	char *text = printed(report, false);

	(void)state;
	assert_non_null(strstr(text,
			       "\nrecorded with the filter: name ~ \"*\" && kv.a != \"#  1\"\n"
			       "filter: kind != sched && dur >= 300ns (kept 1 of 4 spans and "
			       "events)\nscheduler not kept by the filter: "));
	assert_null(strstr(text, "THREADS"));
	free(text);
	report_free(report);
	filtered_free(&capture);
}

static void test_json_has_the_filters_as_they_were_written(void **state)
{
	struct capture capture;
	struct report *report = report_of(filtered(&capture, "pid >= 1", "dur >= 200ns\n# slow"),
					  REPORT_SORT_TOTAL);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	yajl_val tree, filter;

	(void)state;
	assert_int_equal(report_print_json(report, out), 0);
	fclose(out);
	tree = parsed(text);
	filter = member(tree, "filter", yajl_t_object);
	assert_string_equal(YAJL_GET_STRING(member(tree, "recorded_filter", yajl_t_string)),
			    "pid >= 1");
	assert_string_equal(YAJL_GET_STRING(member(filter, "expression", yajl_t_string)),
			    "dur >= 200ns\n# slow");
	assert_int_equal(number(filter, "spans"), 3);
	assert_int_equal(number(filter, "spans_kept"), 2);
	assert_int_equal(number(filter, "events"), 1);
	assert_int_equal(number(filter, "events_kept"), 0);
	yajl_tree_free(tree);
	free(text);
	report_free(report);
	filtered_free(&capture);
}

/* ---- culprits ---- */

static void check_file(const char *object, const char *expected)
{
	struct why why = {.texts = strtab_make()};
	struct why_aggregate causes = {.why = &why};
	struct why_group_cause cause = {.cause = WHY_DISK_READ, .comm = MODEL_NONE};
	char *text;

	cause.object = strtab_put(why.texts, object, strlen(object));
	text = report_culprit_text(&causes, NULL, &cause, NULL, "", 24);
	assert_string_equal(text, expected);
	free(text);
	strtab_free(why.texts);
}

static void test_a_file_is_told_by_the_end_of_its_path(void **state)
{
	(void)state;
	check_file("/data/shard-7 (ext4)", "/data/shard-7 (ext4)");
	check_file("/data/of/2026/shard-7 (ext4)", "…/of/2026/shard-7 (ext4)");
	check_file("/data/shard-7 (ext4), and its cgroup is limited to 1.00 MiB of reads a second",
		   "/data/shard-7 (ext4), a…");
	check_file("/data/of/2026/shard-7 (ext4), and its cgroup is limited to 1.00 MiB of reads a "
		   "second",
		   "…/of/2026/shard-7 (ext4)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentiles_are_the_nearest_rank_of_the_sorted_values),
		cmocka_unit_test(test_spans_are_summed_up_by_name),
		cmocka_unit_test(test_many_spans_are_summed_up_and_explained),
		cmocka_unit_test(
			test_spans_of_unknown_length_are_no_slowest_where_records_were_lost),
		cmocka_unit_test(test_slow_span_names_its_longest_wait_and_who_ended_it),
		cmocka_unit_test(test_counters_have_their_extremes_mean_and_last),
		cmocka_unit_test(test_rows_come_in_the_order_asked_for),
		cmocka_unit_test(test_report_json_has_what_scripts_rely_on),
		cmocka_unit_test(test_info_json_counts_what_is_there),
		cmocka_unit_test(test_text_report_has_colour_only_if_asked_and_no_foreign_escapes),
		cmocka_unit_test(test_text_report_shows_losses),
		cmocka_unit_test(test_text_says_which_filters_were_at_work_on_a_line_each),
		cmocka_unit_test(test_json_has_the_filters_as_they_were_written),
		cmocka_unit_test(test_a_file_is_told_by_the_end_of_its_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
