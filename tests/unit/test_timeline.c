// SPDX-License-Identifier: Apache-2.0
/* The timeline keeps bounded memory in a program that runs for weeks. tests/fuzz/fuzz_timeline.c
 * tests the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <malloc.h>
#include <string.h>

#include <cmocka.h>

#include "usdt/sink/timeline.h"

/* Counts of what the timeline has written. */
struct shown {
	/* `spans`: each once, wherever it begins. `strange`: those without a begin. */
	uint64_t spans, ends, asides, strange, lost;
	uint32_t lines; /* the greatest number of a thread, and one */
	uint32_t last_tid;
};

static void on_site(void *arg, const struct site_info *site)
{
	(void)arg;
	(void)site;
}

static void on_thread(void *arg, uint32_t thread, uint32_t tid, const char *name, uint64_t ts)
{
	struct shown *shown = arg;

	(void)name;
	(void)ts;
	if (shown->lines <= thread)
		shown->lines = thread + 1;
	shown->last_tid = tid;
}

static void on_track(void *arg, uint32_t thread, const struct timeline_track *track)
{
	on_thread(arg, thread, track->tid, track->name, 0);
}

static void on_begin(void *arg, const struct timeline_node *span)
{
	(void)span;
	((struct shown *)arg)->spans++;
}

static void on_end(void *arg, const struct timeline_node *span, bool whole)
{
	struct shown *shown = arg;

	(void)span;
	(void)whole;
	shown->ends++;
}

static uint64_t on_aside(void *arg, const struct timeline_node *span)
{
	struct shown *shown = arg;

	shown->asides++;
	shown->spans += !span->node.continued;
	shown->strange += span->node.begun_before;
	return 1;
}

static void on_node(void *arg, const struct timeline_node *node)
{
	(void)arg;
	(void)node;
}

static void on_loss(void *arg, const struct waffle_rec_loss *loss)
{
	((struct shown *)arg)->lost += loss->count;
}

static const struct timeline_format format = {
	.site = on_site,
	.thread = on_thread,
	.track = on_track,
	.begin = on_begin,
	.end = on_end,
	.aside = on_aside,
	.aside_end = on_node,
	.instant = on_node,
	.counter = on_node,
	.loss = on_loss,
};

static const struct site_info site = {.name = "span", .category = "", .kind = WAFFLE_SITE_SPAN};

static struct timeline *timeline_of(struct shown *shown)
{
	struct timeline *timeline = timeline_new(&format, shown, 1, 1);

	timeline_add_site(timeline, &site);
	return timeline;
}

static void record(struct timeline *timeline, const struct waffle_rec *rec)
{
	assert_true(timeline_record(timeline, rec));
	if (timeline_is_full(timeline))
		timeline_write(timeline, TIMELINE_OPEN);
}

static void begin(struct timeline *timeline, uint64_t id, uint64_t ts, uint32_t tid)
{
	struct {
		struct waffle_rec_hit hit;
		struct waffle_frame frame;
	} rec = {.hit = {.rec = {.ts = ts, .tid = tid, .kind = WAFFLE_REC_HIT},
			 .tgid = 1,
			 .frame_bytes = sizeof(rec.frame)},
		 .frame = {.id = id}};

	record(timeline, &rec.hit.rec);
}

static void end(struct timeline *timeline, uint64_t id, uint64_t ts, uint32_t tid)
{
	struct waffle_rec_span_end rec = {
		.rec = {.ts = ts, .tid = tid, .kind = WAFFLE_REC_SPAN_END},
		.span_id = id,
		.tgid = 1,
	};

	record(timeline, &rec.rec);
}

/* Memory in use, in MiB. */
static size_t memory_now(void)
{
	struct mallinfo2 info = mallinfo2();

	return (info.uordblks + info.hblkhd) >> 20;
}

static void test_spans_that_never_end_are_given_up_and_counted(void **state)
{
	const uint64_t count = 2000000;
	size_t before = memory_now();
	struct shown shown = {0};
	struct timeline *timeline = timeline_of(&shown);

	(void)state;
	for (uint64_t i = 1; i <= count; i++)
		begin(timeline, i, i * 1000, 1 + i % 3);
	assert_in_range(memory_now() - before, 0, 200);
	assert_true(shown.lost > count / 2);
	assert_int_equal(shown.lost, timeline_given_up(timeline));
	/* An end of one of these adds nothing. Those of the others are as ever. */
	end(timeline, shown.lost, count * 1000, 1 + shown.lost % 3);
	end(timeline, count, count * 1000 + 1, 1 + count % 3);
	timeline_write(timeline, count * 1000 + 2);
	assert_int_equal(shown.strange, 0);
	assert_int_equal(shown.spans, count);
	timeline_free(timeline);
}

static void test_threads_that_are_gone_are_forgotten(void **state)
{
	const uint32_t count = 300000;
	size_t before = memory_now();
	struct shown shown = {0};
	struct timeline *timeline = timeline_of(&shown);

	(void)state;
	/* One thread has a span open all the time. */
	begin(timeline, 1, 1, 7);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t ts = 1000 + i * 10000000ull;

		begin(timeline, 2 + i, ts, 1000 + i);
		end(timeline, 2 + i, ts + 10, 1000 + i);
		if (i % 100 == 0)
			timeline_write(timeline, TIMELINE_OPEN);
	}
	assert_in_range(shown.lines, 1000, 20000);
	assert_in_range(memory_now() - before, 0, 50);
	end(timeline, 1, 1000 + count * 10000000ull, 7);
	timeline_write(timeline, 2000 + count * 10000000ull);
	assert_int_equal(shown.spans, count + 1);
	assert_int_equal(shown.ends, count + 1);
	assert_int_equal(shown.asides, 0);
	timeline_free(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans_that_never_end_are_given_up_and_counted),
		cmocka_unit_test(test_threads_that_are_gone_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
