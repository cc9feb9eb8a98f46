// SPDX-License-Identifier: Apache-2.0
/* Filters of captures that are recorded already. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "filter/eval.h"
#include "model_capture.h"

static struct filter_expr *parse(const char *expression)
{
	struct filter_expr *filter;
	struct error err = ERROR_INIT;

	if (filter_parse(&filter, "test", expression, &err))
		fail_msg("%s", err.message);
	return filter;
}

/* Ends the capture and reads what passes. */
static const struct model *load(struct capture *capture, const char *expression, bool keep_children)
{
	capture->keep =
		(struct model_filter){.filter = parse(expression), .keep_children = keep_children};
	return capture_load(capture, 5000);
}

static void unload(struct capture *capture)
{
	filter_free((struct filter_expr *)(uintptr_t)capture->keep.filter);
	capture_free(capture);
}

/* Ids of the spans, or of the events, that are there, in order: "2 3 7". */
static const char *span_ids(const struct model *model)
{
	static char text[256];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < model->spans.len && len < sizeof(text) - 24; i++)
		len += (size_t)sprintf(text + len, "%s%llu", i ? " " : "",
				       (unsigned long long)model->spans.data[i].id);
	return text;
}

static const char *event_ids(const struct model *model)
{
	static char text[256];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < model->events.len && len < sizeof(text) - 24; i++)
		len += (size_t)sprintf(text + len, "%s%llu", i ? " " : "",
				       (unsigned long long)model->events.data[i].id);
	return text;
}

/* A span of SITE_STEP_AT with n. */
static void step_at(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t id,
		    uint64_t parent, int64_t n)
{
	capture_hit(capture, ts, tid, SITE_STEP_AT, id, parent, 2, (uint64_t[]){(uint64_t)n, 0});
}

static void load_span(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t id,
		      uint64_t parent, uint64_t after, uint64_t because)
{
	capture_hit(capture, ts, tid, SITE_LOAD, id, parent, 2, (uint64_t[]){after, because});
}

/* step 1 { load 2 { step 3 { event 20 } }, event 21 }, step 4; on another thread load 5, child of 2
 */
static void family(struct capture *capture)
{
	capture_begin(capture, false);
	capture_span(capture, 1010, 11, 1);
	load_span(capture, 1020, 11, 2, 1, 0, 0);
	step_at(capture, 1030, 11, 3, 2, 7);
	capture_hit(capture, 1040, 11, SITE_FAILED, 20, 3, 0, NULL);
	capture_end(capture, 1050, 11, 3);
	load_span(capture, 1060, 12, 5, 2, 1, 20);
	capture_end(capture, 1070, 11, 2);
	capture_hit(capture, 1080, 11, SITE_FOUND, 21, 1, 1, (uint64_t[]){20});
	capture_end(capture, 1090, 12, 5);
	capture_end(capture, 1100, 11, 1);
	capture_span(capture, 1200, 11, 4);
	capture_end(capture, 1300, 11, 4);
}

static void test_without_a_filter_all_is_kept(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	family(&capture);
	model = capture_load(&capture, 5000);
	assert_string_equal(span_ids(model), "1 2 3 5 4");
	assert_null(model->filtered.expression);
	assert_int_equal(model->filtered.spans, 0);
	capture_free(&capture);
}

static void test_what_is_left_out_is_counted_and_nothing_leads_to_it(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	family(&capture);
	model = load(&capture, "name == \"load\" || kind == event", false);
	assert_string_equal(span_ids(model), "2 5");
	assert_string_equal(event_ids(model), "21");
	assert_string_equal(model->filtered.expression, "name == \"load\" || kind == event");
	assert_int_equal(model->filtered.spans, 3);
	assert_int_equal(model->filtered.events, 1);
	assert_int_equal(model->counts.delivered, 12);
	/* A parent that is gone keeps its id only. */
	assert_int_equal(capture_find(model, 2)->parent, MODEL_NONE);
	assert_int_equal(model_context_of(model, capture_find(model, 2))->parent_id, 1);
	assert_int_equal(capture_find(model, 5)->parent, 0);
	assert_int_equal(model->events.data[0].parent, MODEL_NONE);
	assert_int_equal(model->events.data[0].parent_id, 1);
	assert_int_equal(model_span_find(model, 1), MAP_NONE);
	/* And so do the causes: of span 5 span 1 and event 20, of event 21 event 20. */
	assert_int_equal(model->links.len, 3);
	for (size_t i = 0; i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];

		assert_int_equal(link->to, MODEL_NONE);
		assert_int_equal(link->to_id, link->to_kind == MODEL_NODE_SPAN ? 1 : 20);
		assert_int_equal(link->from, link->from_kind == MODEL_NODE_SPAN ? 1 : 0);
	}
	unload(&capture);
}

static void test_links_of_what_is_left_out_go_and_others_find_their_ends(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	family(&capture);
	model = load(&capture, "!(name in {\"found\", \"step\"}) || line == 1", false);
	assert_string_equal(span_ids(model), "1 2 5 4");
	assert_string_equal(event_ids(model), "20");
	assert_int_equal(model->links.len, 2);
	assert_int_equal(model->links.data[0].from, 2);
	assert_int_equal(model->links.data[0].to, 0);
	assert_int_equal(model->links.data[1].to_kind, MODEL_NODE_EVENT);
	assert_int_equal(model->links.data[1].to, 0);
	assert_int_equal(model->events.data[0].parent, MODEL_NONE);
	unload(&capture);
}

static void test_children_of_what_is_kept_are_kept_on_any_thread(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	family(&capture);
	model = load(&capture, "name == \"load\" && tid == 11", true);
	assert_string_equal(span_ids(model), "2 3 5");
	assert_string_equal(event_ids(model), "20");
	assert_int_equal(model->spans.data[2].parent, 0);
	assert_int_equal(model->events.data[0].parent, 1);
	unload(&capture);
}

static void test_depth_and_the_parents_name_are_known_from_the_parents(void **state)
{
	static const struct {
		const char *expression, *spans, *events;
	} rows[] = {
		{"depth == 0", "1 4", ""},
		{"depth == 1", "2", "21"},
		{"depth >= 2", "3 5", "20"},
		{"depth == 3", "", "20"},
		{"parent.name == \"step\"", "2", "20 21"},
		{"parent.name ~ \"l*\"", "3 5", ""},
		{"parent.name != \"step\"", "3 5", ""},
		{"!(parent.name == \"load\")", "1 2 4", "20 21"},
	};
	struct capture capture;
	const struct model *model;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		family(&capture);
		model = load(&capture, rows[i].expression, false);
		assert_string_equal(span_ids(model), rows[i].spans);
		assert_string_equal(event_ids(model), rows[i].events);
		unload(&capture);
	}
}

static void test_below_a_parent_that_is_missing_no_depth_is_known(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_end(&capture, 1005, 11, 8);                         /* begun before */
	capture_hit(&capture, 1001, 11, SITE_STEP, 1, 99, 0, NULL); /* no such parent */
	load_span(&capture, 1002, 11, 2, 1, 0, 0);
	load_span(&capture, 1003, 11, 3, 8, 0, 0);
	capture_span(&capture, 1004, 11, 4);
	model = load(&capture, "depth >= 0 || depth < 0", false);
	assert_string_equal(span_ids(model), "4");
	unload(&capture);
}

static void test_spans_without_an_end_pass_only_if_their_begin_decides(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 1010, 11, 1);
	step_at(&capture, 1020, 11, 2, 1, 5);
	capture_end(&capture, 1030, 11, 9); /* begun before */
	capture_span(&capture, 1040, 12, 3);
	capture_end(&capture, 1140, 12, 3);
	model = load(&capture, "dur >= 100 || kv.n == 5", false);
	assert_string_equal(span_ids(model), "2 3");
	unload(&capture);
}

static void test_a_span_begun_before_passes_only_if_its_site_decides(void **state)
{
	static const struct {
		const char *expression, *spans;
	} rows[] = {
		{"name == \"step\"", "9"}, {"name == \"step\" || dur > 5", "9"},
		{"dur > 5", ""},           {"tid == 11", ""},
		{"!(tid == 12)", ""},      {"sample(1/2) || sample(1/2)", ""},
		{"name == \"load\"", ""},  {"kind == span", "9"},
	};
	struct capture capture;
	const struct model *model;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		capture_begin(&capture, false);
		capture_end(&capture, 1030, 11, 9);
		model = load(&capture, rows[i].expression, false);
		assert_string_equal(span_ids(model), rows[i].spans);
		unload(&capture);
	}
}

static void test_a_thread_has_the_name_that_it_had_at_the_begin(void **state)
{
	static const struct {
		const char *expression, *spans, *events;
	} rows[] = {
		{"comm == \"old\"", "1 2", "20"},
		{"comm == \"new\"", "3", ""},
		{"comm == \"other\"", "4", ""},
		{"comm != \"old\"", "3 4", ""}, /* of thread 13 no name is known */
	};
	struct capture capture;
	const struct model *model;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		capture_begin(&capture, false);
		capture_span(&capture, 1010, 11, 1); /* before the first name */
		capture_task(&capture, 1020, 11, 500, "old");
		capture_span(&capture, 1030, 11, 2);
		capture_hit(&capture, 1035, 11, SITE_FAILED, 20, 2, 0, NULL);
		capture_task(&capture, 1040, 11, 500, "new");
		capture_end(&capture, 1050, 11, 2);
		capture_end(&capture, 1055, 11, 1);
		capture_span(&capture, 1060, 11, 3);
		capture_task(&capture, 1070, 12, 500, "other");
		capture_span(&capture, 1080, 12, 4);
		capture_span(&capture, 1090, 13, 5);
		model = load(&capture, rows[i].expression, false);
		assert_string_equal(span_ids(model), rows[i].spans);
		assert_string_equal(event_ids(model), rows[i].events);
		unload(&capture);
	}
}

static void test_threads_processes_and_cpus_are_those_of_the_begin(void **state)
{
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4];
	} rec = {.hit = {.rec = {1010, 11, WAFFLE_REC_HIT, 3},
			 .tgid = CAPTURE_PID,
			 .site = SITE_STEP,
			 .frame_bytes = 32},
		 .frame = {1, 0, 7, 8}};
	static const struct {
		const char *expression, *spans;
	} rows[] = {
		{"cpu == 3", "1"},
		{"cpu == 0", "2"},
		{"tid in {11, 14}", "1"},
		{"pid == 10", "1 2"},
	};
	struct capture capture;
	const struct model *model;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		capture_begin(&capture, false);
		capture_add(&capture, &rec);
		capture_end(&capture, 1020, 12, 1); /* on CPU 0, by another thread */
		capture_span(&capture, 1030, 12, 2);
		model = load(&capture, rows[i].expression, false);
		assert_string_equal(span_ids(model), rows[i].spans);
		unload(&capture);
	}
}

static void test_a_trace_is_sampled_as_a_whole(void **state)
{
	static const char *const expressions[] = {"sample(1/2)", "!sample(1/2)"};
	struct capture capture;
	const struct model *model;
	/* The trace of model_capture.h; with keys and without. */
	bool kept = filter_sample(1, 2, 7, 8, 0);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		family(&capture);
		model = load(&capture, expressions[i], false);
		assert_int_equal(model->spans.len, kept == !i ? 5 : 0);
		assert_int_equal(model->events.len, kept == !i ? 2 : 0);
		unload(&capture);
	}
}

static void test_a_rate_counts_in_the_order_of_decisions(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	/* Windows of 1 s. By begins: 1, 2; by ends: 2, 1. */
	capture_begin(&capture, false);
	capture_span(&capture, 2000000010, 11, 1);
	capture_span(&capture, 2000000020, 12, 2);
	capture_end(&capture, 2000000500, 12, 2);
	capture_end(&capture, 2000000600, 11, 1);
	capture_hit(&capture, 2000000550, 11, SITE_FAILED, 20, 0, 0, NULL);
	capture_span(&capture, 3000000000, 11, 3);
	capture_end(&capture, 3000000900, 11, 3);
	capture_span(&capture, 3000000910, 11, 4);
	capture_end(&capture, 3000000999, 11, 4);
	model = load(&capture, "(dur >= 0 || kind == log) && rate(2/s)", false);
	assert_string_equal(span_ids(model), "2 3 4");
	assert_string_equal(event_ids(model), "20");
	unload(&capture);

	capture_begin(&capture, false);
	capture_span(&capture, 2000000010, 11, 1);
	capture_span(&capture, 2000000020, 12, 2);
	capture_end(&capture, 2000000500, 12, 2);
	capture_end(&capture, 2000000600, 11, 1);
	model = load(&capture, "kind == span && rate(1/s)", false);
	assert_string_equal(span_ids(model), "1");
	unload(&capture);
}

static void test_children_do_not_depend_on_the_rate(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	family(&capture);
	model = load(&capture, "name == \"step\" && depth == 0 && rate(1/s)", true);
	assert_string_equal(span_ids(model), "1 2 3 5");
	assert_string_equal(event_ids(model), "20 21");
	unload(&capture);
}

static void scheduled(struct capture *capture)
{
	capture_begin(capture, true);
	capture_state(capture, 1001, 11, WAFFLE_THREAD_RUNNING, false);
	capture_span(capture, 1010, 11, 1);
	capture_switch(capture, 1020, 1, 11, 12, WAFFLE_TASK_INTERRUPTIBLE, 0, 0);
	capture_switch(capture, 1040, 1, 12, 11, WAFFLE_TASK_INTERRUPTIBLE, 12, 1030);
	capture_end(capture, 1050, 11, 1);
}

static void test_a_filter_that_is_false_for_switches_leaves_the_scheduler_out(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	scheduled(&capture);
	model = load(&capture, "kind != sched && tid == 11", false);
	assert_true(model->meta->sched);
	assert_false(model->sched);
	assert_string_equal(span_ids(model), "1");
	assert_int_equal(model->switches.len, 0);
	assert_int_equal(model->states.len, 0);
	assert_int_equal(model->spans.data[0].flags, 0);
	assert_false(model->threads.data[0].has_sched);
	unload(&capture);
}

static void test_other_filters_keep_the_scheduler_and_the_times_of_spans(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	scheduled(&capture);
	model = load(&capture, "name == \"step\" && dur < 1s", false);
	assert_true(model->sched);
	assert_int_equal(model->switches.len, 2);
	assert_string_equal(span_ids(model), "1");
	assert_int_equal(model->spans.data[0].flags, MODEL_SPAN_HAS_SCHED);
	assert_int_equal(model->spans.data[0].running_ns, 20);
	unload(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_filter_all_is_kept),
		cmocka_unit_test(test_what_is_left_out_is_counted_and_nothing_leads_to_it),
		cmocka_unit_test(test_links_of_what_is_left_out_go_and_others_find_their_ends),
		cmocka_unit_test(test_children_of_what_is_kept_are_kept_on_any_thread),
		cmocka_unit_test(test_depth_and_the_parents_name_are_known_from_the_parents),
		cmocka_unit_test(test_below_a_parent_that_is_missing_no_depth_is_known),
		cmocka_unit_test(test_spans_without_an_end_pass_only_if_their_begin_decides),
		cmocka_unit_test(test_a_span_begun_before_passes_only_if_its_site_decides),
		cmocka_unit_test(test_a_thread_has_the_name_that_it_had_at_the_begin),
		cmocka_unit_test(test_threads_processes_and_cpus_are_those_of_the_begin),
		cmocka_unit_test(test_a_trace_is_sampled_as_a_whole),
		cmocka_unit_test(test_a_rate_counts_in_the_order_of_decisions),
		cmocka_unit_test(test_children_do_not_depend_on_the_rate),
		cmocka_unit_test(test_a_filter_that_is_false_for_switches_leaves_the_scheduler_out),
		cmocka_unit_test(test_other_filters_keep_the_scheduler_and_the_times_of_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
