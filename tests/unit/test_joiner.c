// SPDX-License-Identifier: Apache-2.0
/* Records are joined to whole spans and events in bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/process/joiner_internal.h"

#define DELIVERED_MAX 64

/* What was delivered, as text: "span outer 1-9 depth 0 parent - flags 0". */
struct delivered {
	struct joiner *joiner;
	char lines[DELIVERED_MAX][256];
	size_t count;
};

static void deliver(struct full_record *full, void *arg)
{
	static const char *const kinds[] = {"", "span", "event", "counter", "log"};
	struct delivered *delivered = arg;
	struct full_record_values room;
	const struct waffle_record *record = &full->record;
	char *line = delivered->lines[delivered->count % DELIVERED_MAX];
	int len;

	joiner_decode(delivered->joiner, full, &room);
	len = snprintf(line, sizeof(delivered->lines[0]),
		       "%s %s %llu-%llu %u/%u %s depth %lld parent %llx %s trace %llx flags %u",
		       kinds[record->kind], record->name, (unsigned long long)record->start_ns,
		       (unsigned long long)record->end_ns, record->tid, record->end_tid,
		       record->comm, (long long)full->depth, (unsigned long long)record->parent,
		       full->parent_name ? full->parent_name : "-",
		       (unsigned long long)record->trace_lo, record->flags);
	if (full->has_sched)
		len += snprintf(line + len, sizeof(delivered->lines[0]) - (size_t)len,
				" ran %llu waited %llu", (unsigned long long)full->running_ns,
				(unsigned long long)full->runnable_ns);
	if (*record->track)
		len += snprintf(line + len, sizeof(delivered->lines[0]) - (size_t)len,
				" on %s of %s", record->track, record->track_group);
	for (size_t i = 0; i < record->value_count; i++)
		len += snprintf(line + len, sizeof(delivered->lines[0]) - (size_t)len, " %s=%lld",
				record->values[i].key, (long long)record->values[i].i64);
	for (size_t i = 0; i < record->link_count; i++)
		len += snprintf(line + len, sizeof(delivered->lines[0]) - (size_t)len,
				" link %llx of %llx", (unsigned long long)record->links[i].id,
				(unsigned long long)record->links[i].trace_lo);
	delivered->count++;
}

static void open_joiner(struct delivered *delivered, size_t bytes)
{
	*delivered = (struct delivered){0};
	delivered->joiner = joiner_new(bytes, deliver, delivered);
	assert_non_null(delivered->joiner);
}

static struct site_info site_of(const char *name, uint16_t kind)
{
	return (struct site_info){.name = name,
				  .category = "",
				  .file = "a.c",
				  .func = "f",
				  .object = "a",
				  .kind = kind,
				  .key_count = 1,
				  .keys = {{WAFFLE_KEY_I64, "i"}}};
}

static const uint16_t KINDS[] = {WAFFLE_SITE_SPAN, WAFFLE_SITE_SPAN, WAFFLE_SITE_EVENT};
static const char *const NAMES[] = {"outer", "inner", "tick"};

struct hit {
	struct waffle_rec_hit hit;
	struct waffle_frame frame;
	uint64_t values[4];
};

static void begin(struct delivered *delivered, uint32_t site, uint64_t ts, uint32_t tid,
		  uint64_t id, uint64_t parent)
{
	struct site_info info = site_of(NAMES[site], KINDS[site]);
	struct hit hit = {
		.hit = {.rec = {ts, tid, WAFFLE_REC_HIT, 0},
			.tgid = 7,
			.site = site,
			.frame_bytes = sizeof(hit.frame) + 8},
		.frame = {id, parent, 0, 100},
		.values = {ts},
	};

	joiner_record(delivered->joiner, &hit.hit.rec, &info);
}

static void end(struct delivered *delivered, uint64_t ts, uint32_t tid, uint64_t id)
{
	struct waffle_rec_span_end end_rec = {.rec = {ts, tid, WAFFLE_REC_SPAN_END, 0},
					      .span_id = id};

	joiner_record(delivered->joiner, &end_rec.rec, NULL);
}

static void test_spans_come_at_their_end_and_events_at_once(void **state)
{
	struct waffle_rec_task task = {.rec = {1, 5, WAFFLE_REC_TASK, 0}, .comm = "worker"};
	struct delivered delivered;

	(void)state;
	open_joiner(&delivered, 1 << 20);
	joiner_record(delivered.joiner, &task.rec, NULL);
	begin(&delivered, 0, 10, 5, 0xa, 0);
	begin(&delivered, 1, 20, 5, 0xb, 0xa);
	begin(&delivered, 2, 25, 5, 0xc, 0xb);
	end(&delivered, 30, 5, 0xb);
	end(&delivered, 40, 6, 0xa);
	begin(&delivered, 2, 50, 5, 0xd, 0xb);
	assert_int_equal(delivered.count, 4);
	assert_string_equal(delivered.lines[0],
			    "event tick 25-25 5/5 worker depth 2 parent b inner "
			    "trace 64 flags 0 i=25");
	assert_string_equal(delivered.lines[1],
			    "span inner 20-30 5/5 worker depth 1 parent a outer "
			    "trace 64 flags 0 i=20");
	assert_string_equal(delivered.lines[2],
			    "span outer 10-40 5/6 worker depth 0 parent 0 - trace 64 flags 2 i=10");
	/* The parent has ended already. */
	assert_string_equal(delivered.lines[3],
			    "event tick 50-50 5/5 worker depth 2 parent b inner "
			    "trace 64 flags 0 i=50");
	joiner_free(delivered.joiner);
}

static void test_spans_without_end_are_unfinished_and_ends_alone_are_counted(void **state)
{
	struct delivered delivered;
	struct joiner_counts counts;

	(void)state;
	open_joiner(&delivered, 1 << 20);
	end(&delivered, 5, 5, 0xf);
	begin(&delivered, 0, 10, 5, 0xa, 0);
	begin(&delivered, 1, 20, 5, 0xb, 0xa);
	joiner_finish(delivered.joiner, 99);
	assert_int_equal(delivered.count, 2);
	assert_string_equal(delivered.lines[0],
			    "span outer 10-99 5/5  depth 0 parent 0 - trace 64 flags 1 i=10");
	assert_string_equal(delivered.lines[1],
			    "span inner 20-99 5/5  depth 1 parent a outer trace 64 flags 1 i=20");
	counts = joiner_counts(delivered.joiner);
	assert_int_equal(counts.unfinished, 2);
	assert_int_equal(counts.ends_alone, 1);
	assert_int_equal(counts.delivered, 2);
	joiner_free(delivered.joiner);
}

static void test_memory_of_open_spans_is_bounded(void **state)
{
	struct delivered delivered;
	struct joiner_counts counts;

	(void)state;
	open_joiner(&delivered, 100000);
	for (uint64_t i = 1; i <= 10000; i++)
		begin(&delivered, 0, i, (uint32_t)i, i, 0);
	counts = joiner_counts(delivered.joiner);
	assert_true(counts.unfinished > 9000 && counts.unfinished < 10000);
	/* The oldest ones went first, and the newest one still has its end. */
	end(&delivered, 20000, 10000, 10000);
	assert_int_equal(joiner_counts(delivered.joiner).ends_alone, 0);
	end(&delivered, 20000, 1, 1);
	assert_int_equal(joiner_counts(delivered.joiner).ends_alone, 1);
	joiner_free(delivered.joiner);
}

static void test_many_threads_that_end_are_forgotten(void **state)
{
	struct delivered delivered;

	(void)state;
	open_joiner(&delivered, 1 << 20);
	for (uint32_t i = 1; i <= 300000; i++)
		begin(&delivered, 2, i, i, i, 0);
	assert_int_equal(joiner_counts(delivered.joiner).delivered, 300000);
	joiner_free(delivered.joiner);
}

static void test_calls_have_parents_by_thread_and_values_of_their_return(void **state)
{
	struct site_info site = site_of("read", WAFFLE_SITE_SPAN);
	struct delivered delivered;
	struct hit hit = {
		.hit = {.rec = {20, 5, WAFFLE_REC_HIT, 0},
			.site = 9,
			.frame_bytes = sizeof(hit.frame) + 8},
		.frame = {.id = 0xb},
		.values = {3},
	};
	struct {
		struct waffle_rec_return end;
		uint64_t value;
	} end_rec = {
		.end = {.rec = {30, 5, WAFFLE_REC_RETURN, 0}, .span_id = 0xb, .frame_bytes = 8},
		.value = 4096,
	};

	(void)state;
	open_joiner(&delivered, 1 << 20);
	site.call = true;
	site.key_count = 2;
	site.keys[1] = (struct site_key){WAFFLE_KEY_I64, "result"};
	begin(&delivered, 0, 10, 5, 0xa, 0);
	joiner_record(delivered.joiner, &hit.hit.rec, &site);
	joiner_record(delivered.joiner, &end_rec.end.rec, NULL);
	assert_string_equal(delivered.lines[0], "span read 20-30 5/5  depth 1 parent a outer trace "
						"64 flags 0 i=3 result=4096");
	joiner_free(delivered.joiner);
}

static void test_links_have_the_traces_of_their_spans(void **state)
{
	struct site_info site = site_of("reply", WAFFLE_SITE_EVENT);
	struct delivered delivered;
	struct hit hit = {
		.hit = {.rec = {20, 5, WAFFLE_REC_HIT, 0},
			.site = 9,
			.frame_bytes = sizeof(hit.frame) + 24},
		.frame = {.id = 0xc},
		.values = {0xa, 0, 0x77},
	};

	(void)state;
	open_joiner(&delivered, 1 << 20);
	site.key_count = 3;
	site.keys[0] = site.keys[1] = site.keys[2] = (struct site_key){WAFFLE_KEY_CAUSE_SPAN, "c"};
	begin(&delivered, 0, 10, 5, 0xa, 0);
	end(&delivered, 15, 5, 0xa);
	joiner_record(delivered.joiner, &hit.hit.rec, &site);
	assert_string_equal(delivered.lines[1], "event reply 20-20 5/5  depth 0 parent 0 - trace 0 "
						"flags 0 link a of 64 link 77 of 0");
	joiner_free(delivered.joiner);
}

static void test_spans_on_tracks_may_overlap_and_come_in_any_order(void **state)
{
	struct waffle_rec_track track = {.rec = {1, 5, WAFFLE_REC_TRACK, 0},
					 .tgid = 7,
					 .track = 3,
					 .name = "gpu",
					 .group = "g"};
	struct waffle_rec_on_track on = {
		.rec = {50, 5, WAFFLE_REC_ON_TRACK, 0}, .tgid = 7, .track = 3, .id = 0xb};
	struct delivered delivered;

	(void)state;
	open_joiner(&delivered, 1 << 20);
	joiner_record(delivered.joiner, &track.rec, NULL);
	begin(&delivered, 0, 100, 5, 0xa, 0);
	joiner_record(delivered.joiner, &on.rec, NULL);
	begin(&delivered, 1, 50, 5, 0xb, 0);
	begin(&delivered, 2, 110, 5, 0xc, 0xa);
	end(&delivered, 60, 5, 0xb);
	end(&delivered, 120, 5, 0xa);
	assert_string_equal(delivered.lines[0], "event tick 110-110 5/5  depth 1 parent a outer "
						"trace 64 flags 0 i=110");
	assert_string_equal(delivered.lines[1], "span inner 50-60 5/5  depth 0 parent 0 - trace 64 "
						"flags 0 on gpu of g i=50");
	joiner_free(delivered.joiner);
}

static void test_ends_of_threads_and_programs_end_what_they_must(void **state)
{
	struct waffle_rec_exit gone = {.rec = {30, 5, WAFFLE_REC_EXIT, 0}, .tgid = 7};
	struct site_info site = site_of("read", WAFFLE_SITE_SPAN);
	struct delivered delivered;
	struct hit hit = {
		.hit = {.rec = {40, 5, WAFFLE_REC_HIT, 0},
			.tgid = 7,
			.site = 9,
			.frame_bytes = sizeof(hit.frame) + 8},
		.frame = {.id = 0xe},
	};

	(void)state;
	open_joiner(&delivered, 1 << 20);
	site.call = true;
	begin(&delivered, 0, 10, 5, 0xa, 0);
	begin(&delivered, 1, 20, 5, 0xb, 0xa);
	joiner_record(delivered.joiner, &gone.rec, NULL);
	assert_int_equal(delivered.count, 0);
	/* Another thread with this tid: what it calls has no parent. */
	joiner_record(delivered.joiner, &hit.hit.rec, &site);
	end(&delivered, 50, 5, 0xe);
	end(&delivered, 60, 6, 0xb);
	gone.rec.kind = WAFFLE_REC_EXEC;
	gone.rec.ts = 70;
	joiner_record(delivered.joiner, &gone.rec, NULL);
	assert_int_equal(delivered.count, 3);
	assert_string_equal(delivered.lines[0],
			    "span read 40-50 5/5  depth 0 parent 0 - trace e flags 0 i=0");
	assert_string_equal(delivered.lines[1],
			    "span inner 20-60 5/6  depth 1 parent a outer trace 64 flags 2 i=20");
	assert_string_equal(delivered.lines[2],
			    "span outer 10-70 5/5  depth 0 parent 0 - trace 64 flags 1 i=10");
	joiner_free(delivered.joiner);
}

static void test_invalid_records_are_ignored(void **state)
{
	struct site_info site = site_of("x", WAFFLE_SITE_SPAN);
	struct delivered delivered;
	struct hit hit = {.hit = {.rec = {20, 5, WAFFLE_REC_HIT, 0}, .site = 9, .frame_bytes = 8}};

	(void)state;
	open_joiner(&delivered, 1 << 20);
	joiner_record(delivered.joiner, &hit.hit.rec, &site); /* no whole frame */
	hit.hit.frame_bytes = sizeof(hit.frame);
	hit.hit.site = 10;
	joiner_record(delivered.joiner, &hit.hit.rec, NULL); /* no site */
	hit.hit.rec.kind = 999;
	joiner_record(delivered.joiner, &hit.hit.rec, NULL);
	joiner_finish(delivered.joiner, 30);
	assert_int_equal(delivered.count, 0);
	/* The same id twice: the first one has lost its end. */
	begin(&delivered, 0, 40, 5, 0xa, 0);
	begin(&delivered, 0, 50, 5, 0xa, 0);
	end(&delivered, 60, 5, 0xa);
	end(&delivered, 70, 5, 0xa);
	assert_int_equal(delivered.count, 2);
	assert_int_equal(joiner_counts(delivered.joiner).unfinished, 1);
	assert_int_equal(joiner_counts(delivered.joiner).ends_alone, 1);
	joiner_free(delivered.joiner);
}

/* Thread 5 gives its CPU to thread 6, or gets it back from there. */
static void switches(struct delivered *delivered, bool out, uint64_t ts, uint16_t state,
		     uint64_t wake_ts)
{
	struct waffle_rec_switch rec = {
		.rec = {ts, out ? 5 : 6, WAFFLE_REC_SWITCH, 0},
		.next_tid = out ? 6 : 5,
		.wake_ts = wake_ts,
		.prev_state = state,
		.flags = (uint8_t)((out ? WAFFLE_SWITCH_PREV_TRACED : WAFFLE_SWITCH_NEXT_TRACED) |
				   (wake_ts ? WAFFLE_SWITCH_WOKEN : 0)),
		.syscall = -1,
	};

	joiner_record(delivered->joiner, &rec.rec, NULL);
}

static bool ends_with(const struct delivered *delivered, size_t line, const char *text)
{
	return strstr(delivered->lines[line], text);
}

static void test_spans_have_times_of_the_scheduler_as_far_as_switches_prove_them(void **state)
{
	struct delivered delivered;

	(void)state;
	open_joiner(&delivered, 1 << 20);
	/* Nothing is recorded of the scheduler yet. */
	begin(&delivered, 0, 5, 5, 0x1, 0);
	end(&delivered, 6, 5, 0x1);
	assert_false(ends_with(&delivered, 0, "ran"));
	switches(&delivered, false, 8, 0, 0);
	begin(&delivered, 0, 10, 5, 0xa, 0);
	switches(&delivered, true, 15, WAFFLE_TASK_INTERRUPTIBLE, 0);
	switches(&delivered, false, 30, 0, 26); /* blocked for 11, runnable for 4 */
	switches(&delivered, true, 32, WAFFLE_TASK_RUNNING, 0);
	switches(&delivered, false, 35, 0, 0); /* runnable for 3 */
	end(&delivered, 40, 5, 0xa);
	assert_true(ends_with(&delivered, 1, "ran 12 waited 7"));
	/* Woken before it left its CPU. */
	begin(&delivered, 0, 50, 5, 0xb, 0);
	switches(&delivered, true, 52, WAFFLE_TASK_INTERRUPTIBLE, 0);
	switches(&delivered, false, 55, 0, 51);
	end(&delivered, 60, 5, 0xb);
	assert_true(ends_with(&delivered, 2, "ran 7 waited 3"));
	joiner_free(delivered.joiner);
}

static void test_times_that_are_not_known_are_left_out(void **state)
{
	struct waffle_rec_loss loss = {
		.rec = {25, 0, WAFFLE_REC_LOSS, 0}, .source = WAFFLE_SOURCE_SCHED, .from_ts = 22};
	struct delivered delivered;

	(void)state;
	open_joiner(&delivered, 1 << 20);
	switches(&delivered, false, 1, 0, 0);
	/* It ends on another thread. */
	begin(&delivered, 0, 10, 5, 0xa, 0);
	end(&delivered, 15, 6, 0xa);
	/* Records are dropped during a span. */
	begin(&delivered, 0, 20, 5, 0xb, 0);
	joiner_record(delivered.joiner, &loss.rec, NULL);
	end(&delivered, 30, 5, 0xb);
	/* It leaves its CPU twice, so a switch is missing. */
	begin(&delivered, 0, 40, 5, 0xc, 0);
	switches(&delivered, true, 42, WAFFLE_TASK_INTERRUPTIBLE, 0);
	switches(&delivered, true, 45, WAFFLE_TASK_INTERRUPTIBLE, 0);
	end(&delivered, 50, 5, 0xc);
	for (size_t i = 0; i < 3; i++)
		assert_false(ends_with(&delivered, i, "ran"));
	assert_int_equal(delivered.count, 3);
	joiner_free(delivered.joiner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans_come_at_their_end_and_events_at_once),
		cmocka_unit_test(test_spans_without_end_are_unfinished_and_ends_alone_are_counted),
		cmocka_unit_test(test_memory_of_open_spans_is_bounded),
		cmocka_unit_test(test_many_threads_that_end_are_forgotten),
		cmocka_unit_test(test_calls_have_parents_by_thread_and_values_of_their_return),
		cmocka_unit_test(test_links_have_the_traces_of_their_spans),
		cmocka_unit_test(test_spans_on_tracks_may_overlap_and_come_in_any_order),
		cmocka_unit_test(test_ends_of_threads_and_programs_end_what_they_must),
		cmocka_unit_test(test_invalid_records_are_ignored),
		cmocka_unit_test(
			test_spans_have_times_of_the_scheduler_as_far_as_switches_prove_them),
		cmocka_unit_test(test_times_that_are_not_known_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
