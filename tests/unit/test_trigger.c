// SPDX-License-Identifier: Apache-2.0
/* Records that trigger the flight recorder, and the times of these triggers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/trigger_internal.h"
#include "waffle/abi.h"

#define SITE 3
#define MS 1000000ull
#define DAYS 86400000000000ull

static const struct site_info site = {.name = "step",
				      .category = "",
				      .file = "a.c",
				      .func = "f",
				      .object = "a",
				      .kind = WAFFLE_SITE_SPAN};

static struct trigger *open_trigger(const char *expression, struct filter_expr **filter)
{
	struct error err = ERROR_INIT;
	struct trigger *trigger;

	if (filter_parse(filter, "test", expression, &err) ||
	    trigger_open(&trigger, *filter, &err)) {
		fail_msg("%s", err.message);
		return NULL;
	}
	return trigger;
}

/* A span from `from` to `to`, which was recorded at `now`. */
static const struct trigger_match *span(struct trigger *trigger, uint64_t id, uint64_t from,
					uint64_t to, uint64_t now)
{
	struct {
		struct waffle_rec_hit rec;
		struct waffle_frame head;
	} hit = {.rec = {.rec = {from, 10, WAFFLE_REC_HIT, 0},
			 .tgid = 10,
			 .site = SITE,
			 .frame_bytes = sizeof(hit.head)},
		 .head = {.id = id}};
	struct waffle_rec_span_end end = {
		.rec = {to, 10, WAFFLE_REC_SPAN_END, 0}, .span_id = id, .tgid = 10, .site = SITE};

	assert_null(trigger_look(trigger, &hit.rec.rec, &site, now));
	return trigger_look(trigger, &end.rec, &site, now);
}

static void test_a_span_matches_by_its_duration_at_its_end(void **state)
{
	struct filter_expr *filter;
	struct trigger *trigger = open_trigger("name == \"step\" && dur > 1ms", &filter);
	const struct trigger_match *match;

	(void)state;
	assert_null(span(trigger, 1, MS, 2 * MS, 2 * MS));
	match = span(trigger, 2, 3 * MS, 5 * MS, 5 * MS);
	assert_non_null(match);
	assert_true(match->ts == 5 * MS);
	assert_string_equal(match->text, "span \"step\" of thread 10, 2.00 ms");
	trigger_free(trigger);
	filter_free(filter);
}

/* Otherwise the recorder would wait some days for it, and ignore all that matches meanwhile. */
static void test_a_span_of_the_future_matches_when_it_is_recorded(void **state)
{
	struct filter_expr *filter;
	struct trigger *trigger = open_trigger("name == \"step\" && rate(1/ms)", &filter);
	const struct trigger_match *match;

	(void)state;
	match = span(trigger, 1, 20 * DAYS, 20 * DAYS + MS, 5 * MS);
	assert_non_null(match);
	assert_true(match->ts == 5 * MS);
	match = span(trigger, 2, 6 * MS, 6 * MS, 6 * MS);
	assert_non_null(match);
	assert_true(match->ts == 6 * MS);
	trigger_free(trigger);
	filter_free(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_span_matches_by_its_duration_at_its_end),
		cmocka_unit_test(test_a_span_of_the_future_matches_when_it_is_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
