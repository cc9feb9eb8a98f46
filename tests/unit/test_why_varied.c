// SPDX-License-Identifier: Apache-2.0
/* why_varied_keep() chooses slow spans that differ in their causes. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "why_capture.h"

/* Spans of thread 11, one after the other, that run or sleep. */
struct span {
	uint64_t ns;
	bool sleeps;
};

static struct why *ask_varied(struct capture *capture, const struct span *spans, uint32_t count,
			      uint32_t slowest)
{
	uint64_t ts = 2000;

	capture_begin(capture, true);
	named(capture, 11, CAPTURE_PID, "worker");
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t end = ts + spans[i].ns;

		capture_span(capture, ts, 11, 1 + i);
		if (spans[i].sleeps) {
			waits(capture, ts + 10, 1, 11, 0, S, NR_NANOSLEEP, 0, 0, 0);
			gets(capture, end - 10, 1, 0, 11, 0, end - 10, HARD);
		}
		capture_end(capture, end, 11, 1 + i);
		ts = end + 10;
	}
	return ask(capture, ts,
		   &(struct why_query){.name = "step", .slowest = slowest, .varied = true});
}

static void check_spans(const struct span *spans, uint32_t count, uint64_t first, uint64_t second)
{
	struct capture capture;
	struct why *why = ask_varied(&capture, spans, count, 2);

	assert_int_equal(why->instances.len, 2);
	assert_int_equal(why->model->spans.data[why->instances.data[0].span].id, first);
	assert_int_equal(why->model->spans.data[why->instances.data[1].span].id, second);
	why_free(why);
	capture_free(&capture);
}

static void test_a_slow_span_of_another_cause_is_chosen_before_one_of_the_same(void **state)
{
	const struct span spans[] = {{9000, false}, {8000, false}, {5000, true}, {6000, true}};

	(void)state;
	check_spans(spans, 4, 1, 4);
}

/* Also only their records are looked for. */
static void test_those_that_are_chosen_stay_sorted(void **state)
{
	const struct span spans[] = {{9000, false}, {8000, false}, {7000, false}, {6000, true}};
	static const uint64_t ids[] = {1, 2, 4};
	struct capture capture;
	struct why *why = ask_varied(&capture, spans, 4, 3);
	struct error err = ERROR_INIT;
	size_t records = 0;

	(void)state;
	capture_must(why_records_find(why, &err), err);
	assert_int_equal(why->instances.len, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct why_instance *instance = &why->instances.data[i];

		assert_int_equal(why->model->spans.data[instance->span].id, ids[i]);
		for (uint32_t k = 0; k < instance->part_count; k++) {
			const struct why_part *part = &why->parts.data[instance->part + k];

			for (uint32_t step = 0; step < part->step_count; step++)
				records += why->steps.data[part->step + step].count;
		}
	}
	assert_true(records);
	assert_int_equal(why->records.len, records);
	why_free(why);
	capture_free(&capture);
}

static void test_a_quick_span_of_another_cause_does_not(void **state)
{
	const struct span spans[] = {{9000, false}, {8000, false}, {4000, true}};

	(void)state;
	check_spans(spans, 3, 1, 2);
}

static void test_spans_stay_in_order(void **state)
{
	const struct span spans[] = {{7000, true}, {9000, false}, {8000, false}};

	(void)state;
	check_spans(spans, 3, 2, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_slow_span_of_another_cause_is_chosen_before_one_of_the_same),
		cmocka_unit_test(test_those_that_are_chosen_stay_sorted),
		cmocka_unit_test(test_a_quick_span_of_another_cause_does_not),
		cmocka_unit_test(test_spans_stay_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
