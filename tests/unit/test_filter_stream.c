// SPDX-License-Identifier: Apache-2.0
/* A filter as a stage between records in user space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf/filter.h"
#include "bpf/rate.h"
#include "filter_stream_rig.h"

#define PID 10u
#define MS 1000000ull
#define SECOND 1000000000ull

enum { OUTER, INNER, EVENT, TEXT, UNWANTED, CALL };

static const struct site_info sites[] = {
	[OUTER] = {.name = "outer",
		   .category = "",
		   .file = "a.c",
		   .func = "f",
		   .object = "a",
		   .kind = WAFFLE_SITE_SPAN,
		   .key_count = 1,
		   .keys = {{WAFFLE_KEY_I64, "n"}}},
	[INNER] = {.name = "inner",
		   .category = "",
		   .file = "a.c",
		   .func = "f",
		   .object = "a",
		   .kind = WAFFLE_SITE_SPAN},
	[EVENT] = {.name = "event",
		   .category = "",
		   .file = "a.c",
		   .func = "f",
		   .object = "a",
		   .kind = WAFFLE_SITE_EVENT,
		   .key_count = 1,
		   .keys = {{WAFFLE_KEY_I64, "n"}}},
	[TEXT] = {.name = "text",
		  .category = "",
		  .file = "a.c",
		  .func = "f",
		  .object = "a",
		  .kind = WAFFLE_SITE_SPAN,
		  .key_count = 1,
		  .keys = {{WAFFLE_KEY_STR, "s"}}},
	[CALL] = {.name = "call",
		  .category = "cuda",
		  .file = "",
		  .func = "",
		  .object = "a",
		  .kind = WAFFLE_SITE_SPAN,
		  .call = true},
};
#define SITES (sizeof(sites) / sizeof(sites[0]))

/* ---- records ---- */

struct hit {
	struct waffle_rec_hit rec;
	struct waffle_frame head;
	uint64_t words[64];
};

static void hit_words(struct rig *rig, uint64_t ts, uint32_t tid, uint32_t site, uint64_t id,
		      uint64_t parent, unsigned count, const uint64_t *words)
{
	struct hit hit = {
		.rec = {.rec = {ts, tid, WAFFLE_REC_HIT, 0},
			.tgid = PID,
			.site = site,
			.frame_bytes = (uint32_t)sizeof(hit.head) + 8 * count},
		.head = {.id = id, .parent = parent},
	};

	if (count)
		memcpy(hit.words, words, 8 * count);
	filter_stream_hit(rig->stream, &hit.rec, hit.rec.rec.ts);
}

static void hit(struct rig *rig, uint64_t ts, uint32_t tid, uint32_t site, uint64_t id,
		uint64_t parent)
{
	hit_words(rig, ts, tid, site, id, parent, sites[site].key_count, &id);
}

static void end(struct rig *rig, uint64_t ts, uint32_t tid, uint64_t id)
{
	struct waffle_rec_span_end rec = {.rec = {ts, tid, WAFFLE_REC_SPAN_END, 0},
					  .span_id = id,
					  .tgid = PID,
					  .site = WAFFLE_SITE_UNKNOWN};

	filter_stream_end(rig->stream, &rec, rec.rec.ts);
}

static void begin(struct rig *rig, const char *expression, bool keep_children)
{
	rig_open(rig, expression, keep_children);
	for (size_t i = 0; i < SITES; i++)
		assert_true(filter_stream_add_site(rig->stream, i == UNWANTED ? NULL : &sites[i]));
}

static void name(struct rig *rig, uint32_t tid, const char *text)
{
	char comm[WAFFLE_COMM_BYTES] = "";

	strncpy(comm, text, sizeof(comm) - 1);
	filter_stream_name(rig->stream, PID, tid, comm);
}

/* What was delivered, in its order: "+1@10 .7@20 -1@30" are begin and end of span 1 around event 7,
 * with their times. */
static const char *out(const struct rig *rig)
{
	static char text[1024];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < rig->out.len && len < sizeof(text) - 64; i++) {
		const struct delivered *one = &rig->out.data[i];
		char mark = one->kind != WAFFLE_REC_HIT ? '-' : one->site == EVENT ? '.' : '+';

		len += (size_t)sprintf(text + len, "%s%c%llu@%llu", i ? " " : "", mark,
				       (unsigned long long)one->id, (unsigned long long)one->ts);
	}
	return text;
}

static uint64_t lost(const struct rig *rig)
{
	return filter_stream_counts(rig->stream).lost;
}

static uint64_t open_count(const struct rig *rig)
{
	return filter_stream_counts(rig->stream).open;
}

/* ---- sites ---- */

static void test_without_a_filter_everything_passes(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, NULL, false);
	hit(&rig, 10, 11, OUTER, 1, 0);
	hit(&rig, 20, 11, EVENT, 7, 1);
	end(&rig, 30, 11, 1);
	end(&rig, 40, 11, 99);
	assert_string_equal(out(&rig), "+1@10 .7@20 -1@30 -99@40");
	assert_int_equal(filter_stream_counts(rig.stream).delivered, 4);
	rig_close(&rig);
}

static void test_sites_that_can_not_match_are_dormant_unless_others_need_them(void **state)
{
	static const struct {
		const char *expression;
		bool keep_children;
		enum filter_stream_use outer, event;
	} rows[] = {
		{"name == \"event\"", false, FILTER_STREAM_DORMANT, FILTER_STREAM_ALWAYS},
		{"name == \"event\"", true, FILTER_STREAM_CONTEXT, FILTER_STREAM_ALWAYS},
		{"kv.n > 3", false, FILTER_STREAM_ASKS, FILTER_STREAM_ASKS},
		{"dur > 3", false, FILTER_STREAM_ASKS, FILTER_STREAM_DORMANT},
		{"kind == event && depth > 0", false, FILTER_STREAM_CONTEXT, FILTER_STREAM_ASKS},
		{"kind == event && sample(1/2)", false, FILTER_STREAM_CONTEXT, FILTER_STREAM_ASKS},
		{"kind == span && rate(3/s)", false, FILTER_STREAM_ALWAYS, FILTER_STREAM_DORMANT},
	};
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(&rig, rows[i].expression, rows[i].keep_children);
		assert_int_equal(filter_stream_use(rig.stream, &sites[OUTER]), rows[i].outer);
		assert_int_equal(filter_stream_use(rig.stream, &sites[EVENT]), rows[i].event);
		rig_close(&rig);
	}
}

/* Another tracer may arm what this filter rejects, and the ends of such spans come, too. */
static void test_hits_of_dormant_and_unknown_sites_are_rejected(void **state)
{
	struct waffle_rec_span_end rec = {
		.rec = {30, 11, WAFFLE_REC_SPAN_END, 0}, .span_id = 1, .tgid = PID, .site = OUTER};
	struct rig rig;

	(void)state;
	begin(&rig, "name == \"inner\"", false);
	hit(&rig, 10, 11, OUTER, 1, 0);
	filter_stream_end(rig.stream, &rec, rec.rec.ts);
	hit_words(&rig, 10, 11, UNWANTED, 2, 0, 0, NULL);
	hit_words(&rig, 10, 11, SITES, 3, 0, 0, NULL);
	hit(&rig, 40, 11, INNER, 4, 0);
	end(&rig, 50, 11, 4);
	assert_string_equal(out(&rig), "+4@40 -4@50");
	rig_close(&rig);
}

static void test_calls_pass_since_the_kernel_has_decided_them(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "name == \"inner\" && dur > 1s", true);
	hit_words(&rig, 10, 11, CALL, 1, 0, 0, NULL);
	assert_string_equal(out(&rig), "+1@10");
	assert_int_equal(open_count(&rig), 0);
	rig_close(&rig);
}

/* ---- spans ---- */

static void test_an_end_is_kept_if_its_begin_was(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "kv.n == 2", false);
	hit(&rig, 10, 11, OUTER, 1, 0);
	hit(&rig, 11, 11, OUTER, 2, 1);
	end(&rig, 12, 11, 2);
	end(&rig, 13, 11, 1);
	end(&rig, 14, 11, 2);
	assert_string_equal(out(&rig), "+2@11 -2@12");
	assert_int_equal(open_count(&rig), 0);
	rig_close(&rig);
}

static void test_a_deferred_span_is_delivered_at_its_end_with_its_own_time(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "dur >= 20", false);
	hit(&rig, 10, 11, OUTER, 1, 0);
	hit(&rig, 15, 11, INNER, 2, 1);
	end(&rig, 25, 11, 2);
	assert_string_equal(out(&rig), "");
	end(&rig, 30, 12, 1);
	assert_string_equal(out(&rig), "+1@10 -1@30");
	hit(&rig, 40, 11, OUTER, 3, 0);
	rig_close(&rig); /* 3 is dropped: it has not ended */
}

static void test_what_the_duration_does_not_decide_is_not_deferred(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "dur > 1s || kv.n == 1", false);
	hit(&rig, 10, 11, OUTER, 1, 0);
	assert_string_equal(out(&rig), "+1@10");
	end(&rig, 11, 11, 1);
	assert_string_equal(out(&rig), "+1@10 -1@11");
	rig_close(&rig);
}

static void test_fields_of_the_begin_are_those_at_the_begin(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig,
	      "dur > 5 && comm == \"old\" && tid == 11 && depth == 1 && "
	      "parent.name == \"outer\"",
	      false);
	name(&rig, 11, "old");
	hit(&rig, 10, 11, OUTER, 1, 0);
	hit(&rig, 11, 11, INNER, 2, 1);
	name(&rig, 11, "new");
	end(&rig, 15, 11, 1);
	end(&rig, 20, 12, 2);
	hit(&rig, 30, 11, OUTER, 3, 0);
	hit(&rig, 31, 11, INNER, 4, 3);
	end(&rig, 40, 11, 4);
	assert_string_equal(out(&rig), "+2@11 -2@20");
	rig_close(&rig);
}

static void test_a_parent_that_has_ended_is_unknown(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "kind == event && depth >= 0", false);
	hit(&rig, 10, 11, OUTER, 1, 0);
	hit(&rig, 11, 11, EVENT, 7, 1);
	end(&rig, 12, 11, 1);
	hit(&rig, 13, 11, EVENT, 8, 1);
	hit(&rig, 14, 11, EVENT, 9, 0);
	assert_string_equal(out(&rig), ".7@11 .9@14");
	rig_close(&rig);
}

static void test_the_end_in_a_forked_child_is_not_the_parents(void **state)
{
	struct waffle_rec_span_end rec = {.rec = {12, 21, WAFFLE_REC_SPAN_END, 0},
					  .span_id = 1,
					  .tgid = PID + 1,
					  .site = WAFFLE_SITE_UNKNOWN};
	struct rig rig;

	(void)state;
	begin(&rig, "dur > 5", false);
	hit(&rig, 10, 11, OUTER, 1, 0);
	filter_stream_end(rig.stream, &rec, rec.rec.ts);
	end(&rig, 20, 11, 1);
	assert_string_equal(out(&rig), "+1@10 -1@20");
	rig_close(&rig);
}

/* ---- rate() ---- */

static void test_the_rate_counts_what_passes_when_it_is_decided(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "(dur > 100us || kind == event) && rate(2/ms)", false);
	hit(&rig, 1 * MS, 11, OUTER, 1, 0);
	hit(&rig, 1 * MS + 1, 11, EVENT, 7, 1);
	end(&rig, 1 * MS + 200000, 11, 1);
	hit(&rig, 1 * MS + 200001, 11, EVENT, 8, 0);
	hit(&rig, 2 * MS, 11, EVENT, 9, 0);
	hit(&rig, 2 * MS - 1, 11, EVENT, 10, 0); /* comes late: counts in the present window */
	hit(&rig, 2 * MS + 1, 11, EVENT, 11, 0);
	assert_string_equal(out(&rig), ".7@1000001 +1@1000000 -1@1200000 .9@2000000 .10@1999999");
	rig_close(&rig);
}

/* A track's clock may be wrong by days. */
static void test_the_rate_counts_by_the_time_of_recording_also_on_tracks(void **state)
{
	struct hit far = {.rec = {.rec = {900000 * MS, 0, WAFFLE_REC_HIT, 0},
				  .tgid = PID,
				  .site = EVENT,
				  .frame_bytes = sizeof(far.head) + 8},
			  .head = {.id = 7}};
	struct rig rig;

	(void)state;
	begin(&rig, "kind == event && rate(2/ms)", false);
	filter_stream_hit(rig.stream, &far.rec, 1 * MS);
	hit(&rig, 1 * MS + 1, 11, EVENT, 8, 0);
	hit(&rig, 1 * MS + 2, 11, EVENT, 9, 0);
	hit(&rig, 2 * MS, 11, EVENT, 10, 0);
	assert_string_equal(out(&rig), ".7@900000000000 .8@1000001 .10@2000000");
	rig_close(&rig);
}

/* The kernel takes from the same windows, when the tracer may be some windows behind. */
static void test_others_take_from_the_same_rate(void **state)
{
	static uint64_t windows[WAFFLE_RATE_WINDOWS];
	struct filter_stream_options options = {.deliver = rig_take, .rate_windows = windows};
	struct error err = ERROR_INIT;
	struct rig rig = {0};

	(void)state;
	options.arg = &rig;
	assert_int_equal(filter_parse(&rig.filter, "test", "kind == event && rate(2/ms)", &err), 0);
	options.filter = rig.filter;
	assert_int_equal(filter_stream_open(&rig.stream, &options, &err), 0);
	for (size_t i = 0; i < SITES; i++)
		assert_true(filter_stream_add_site(rig.stream, &sites[i]));
	assert_true(waffle_rate_take((__u64 *)windows, MS, 2, 1 * MS));
	assert_true(waffle_rate_take((__u64 *)windows, MS, 2, 2 * MS));
	assert_true(waffle_rate_take((__u64 *)windows, MS, 2, 2 * MS));
	hit(&rig, 1 * MS, 11, EVENT, 7, 0);
	hit(&rig, 1 * MS + 1, 11, EVENT, 8, 0);
	hit(&rig, 2 * MS, 11, EVENT, 9, 0);
	hit(&rig, 3 * MS, 11, EVENT, 10, 0);
	assert_false(waffle_rate_take((__u64 *)windows, MS, 2, 1 * MS + 2));
	assert_true(waffle_rate_take((__u64 *)windows, MS, 2, 3 * MS));
	assert_string_equal(out(&rig), ".7@1000000 .10@3000000");
	rig_close(&rig);
}

/* ---- keep_children ---- */

static void test_children_of_a_kept_span_are_kept_on_any_thread(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "name == \"outer\"", true);
	hit(&rig, 10, 11, OUTER, 1, 0);
	hit(&rig, 11, 12, INNER, 2, 1);
	hit(&rig, 12, 13, EVENT, 7, 2);
	hit(&rig, 13, 13, EVENT, 8, 0);
	end(&rig, 14, 11, 1);
	end(&rig, 15, 12, 2);
	assert_string_equal(out(&rig), "+1@10 +2@11 .7@12 -1@14 -2@15");
	rig_close(&rig);
}

static void test_children_of_a_deferred_span_wait_for_it_and_come_in_order(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "dur > 50", true);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = 1000 * i;

		hit(&rig, at + 10, 11, OUTER, 1, 0);
		hit(&rig, at + 20, 11, INNER, 2, 1); /* deferred, too, and does not pass */
		hit(&rig, at + 21, 11, EVENT, 7, 2);
		end(&rig, at + 22, 11, 2);
		hit(&rig, at + 23, 11, EVENT, 8, 1);
		end(&rig, at + (i ? 100 : 30), 11, 1);
	}
	assert_string_equal(out(&rig), "+1@1010 +2@1020 .7@1021 -2@1022 .8@1023 -1@1100");
	assert_int_equal(lost(&rig), 0);
	assert_int_equal(open_count(&rig), 0);
	rig_close(&rig);
}

static void test_a_child_that_outlives_its_span_is_kept_whole(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "name == \"outer\" && dur > 50", true);
	hit(&rig, 10, 11, OUTER, 1, 0);
	hit(&rig, 20, 11, INNER, 2, 1);
	end(&rig, 100, 11, 1);
	hit(&rig, 110, 11, EVENT, 7, 2);
	end(&rig, 120, 11, 2);
	assert_string_equal(out(&rig), "+1@10 +2@20 -1@100 .7@110 -2@120");
	rig_close(&rig);
}

static void test_only_the_last_children_fit_and_the_others_are_lost(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "dur > 1ms", true);
	hit(&rig, 1, 11, OUTER, 1, 0);
	for (uint64_t i = 0; i < WAFFLE_CHILD_COUNT + 20; i++)
		hit(&rig, 10 + i, 11, EVENT, 100 + i, 1);
	end(&rig, 2 * MS, 11, 1);
	assert_int_equal(rig.out.len, 2 + WAFFLE_CHILD_COUNT);
	assert_int_equal(rig.out.data[1].id, 100 + 20);
	assert_int_equal(lost(&rig), 20);
	rig_close(&rig);
}

static void test_children_on_other_threads_are_lost_if_their_span_passes(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "dur > 1ms", true);
	hit(&rig, 1, 11, OUTER, 1, 0);
	hit(&rig, 2, 12, EVENT, 7, 1);
	end(&rig, 3, 11, 1);
	assert_int_equal(lost(&rig), 0);
	hit(&rig, 4, 11, OUTER, 2, 0);
	hit(&rig, 5, 12, EVENT, 8, 2);
	end(&rig, 2 * MS, 11, 2);
	assert_int_equal(lost(&rig), 1);
	assert_string_equal(out(&rig), "+2@4 -2@2000000");
	rig_close(&rig);
}

/* ---- limits ---- */

static void test_spans_that_find_no_room_are_lost(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "dur > 1ms", false);
	for (uint64_t i = 1; i <= WAFFLE_DEFERRED_SMALL_MAX + 100; i++)
		hit(&rig, i, 11, OUTER, i, 0);
	assert_int_equal(open_count(&rig), WAFFLE_DEFERRED_SMALL_MAX);
	assert_int_equal(lost(&rig), 100);
	for (uint64_t i = 1; i <= WAFFLE_DEFERRED_SMALL_MAX + 100; i++)
		end(&rig, 2 * MS + i, 11, i);
	assert_int_equal(rig.out.len, 2 * WAFFLE_DEFERRED_SMALL_MAX);
	assert_int_equal(lost(&rig), 100);
	rig_close(&rig);
}

static void test_one_process_does_not_take_the_room_of_another(void **state)
{
	struct hit other = {
		.rec = {.rec = {500000, 21, WAFFLE_REC_HIT, 0},
			.tgid = PID + 1,
			.site = OUTER,
			.frame_bytes = sizeof(struct waffle_frame) + 8},
		.head = {.id = 1ull << 40},
	};
	struct rig rig;

	(void)state;
	begin(&rig, "kv.n >= 0", false);
	for (uint64_t i = 1; i <= WAFFLE_OPEN_MAX + 1; i++)
		hit(&rig, i, 11, OUTER, i, 0);
	assert_int_equal(lost(&rig), 1);
	filter_stream_hit(rig.stream, &other.rec, other.rec.rec.ts);
	assert_int_equal(lost(&rig), 1);
	assert_int_equal(rig.out.len, WAFFLE_OPEN_MAX + 1);
	rig_close(&rig);
}

/* Spans that longjmp() has left never end. */
static void test_old_spans_make_room_for_new_ones(void **state)
{
	struct rig rig;
	uint64_t i;

	(void)state;
	begin(&rig, "kv.n >= 0", false);
	for (i = 1; i <= WAFFLE_OPEN_MAX; i++)
		hit(&rig, i, 11, OUTER, i, 0);
	hit(&rig, 4 * SECOND, 11, OUTER, i++, 0);
	assert_int_equal(lost(&rig), 1);
	hit(&rig, 6 * SECOND, 11, OUTER, i, 0);
	end(&rig, 6 * SECOND + 1, 11, i);
	assert_int_equal(lost(&rig), 1 + WAFFLE_OPEN_MAX / 2);
	assert_int_equal(rig.out.data[rig.out.len - 1].id, i);
	assert_int_equal(open_count(&rig), WAFFLE_OPEN_MAX / 2);
	rig_close(&rig);
}

static void test_a_process_that_exits_leaves_nothing(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig, "dur > 5", true);
	name(&rig, 11, "name");
	for (unsigned i = 0; i < 3; i++) {
		hit(&rig, 10, 11, OUTER, 1, 0);
		hit(&rig, 11, 11, EVENT, 7, 1);
		hit(&rig, 12, 12, INNER, 2, 0);
		filter_stream_thread_exit(rig.stream, PID, 12);
		assert_int_equal(open_count(&rig), 2);
		filter_stream_process_exit(rig.stream, PID);
		assert_int_equal(open_count(&rig), 0);
	}
	end(&rig, 100, 11, 1);
	assert_string_equal(out(&rig), "");
	assert_int_equal(lost(&rig), 0);
	rig_close(&rig);
}

/* A program may write what it wants into its records. */
static void test_records_that_make_no_sense_do_no_harm(void **state)
{
	struct hit bad = {.rec = {.rec = {10, 11, WAFFLE_REC_HIT, 0}, .tgid = PID, .site = OUTER}};
	uint64_t words[64] = {0};
	struct rig rig;

	(void)state;
	begin(&rig, "dur > 5 && depth >= 0 && kv.n >= 0", true);
	filter_stream_hit(rig.stream, &bad.rec, bad.rec.rec.ts); /* no frame: it has no id */
	assert_int_equal(open_count(&rig), 0);
	hit_words(&rig, 10, 11, INNER, 5, 5, 64, words); /* its own parent, with a long frame */
	hit(&rig, 11, 11, OUTER, 6, 0);
	hit(&rig, 12, 11, OUTER, 6, 6); /* the same id again */
	end(&rig, 5, 11, 6);            /* ends before it began */
	end(&rig, 20, 11, 6);
	assert_string_equal(out(&rig), "");
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_filter_everything_passes),
		cmocka_unit_test(test_sites_that_can_not_match_are_dormant_unless_others_need_them),
		cmocka_unit_test(test_hits_of_dormant_and_unknown_sites_are_rejected),
		cmocka_unit_test(test_calls_pass_since_the_kernel_has_decided_them),
		cmocka_unit_test(test_an_end_is_kept_if_its_begin_was),
		cmocka_unit_test(test_a_deferred_span_is_delivered_at_its_end_with_its_own_time),
		cmocka_unit_test(test_what_the_duration_does_not_decide_is_not_deferred),
		cmocka_unit_test(test_fields_of_the_begin_are_those_at_the_begin),
		cmocka_unit_test(test_a_parent_that_has_ended_is_unknown),
		cmocka_unit_test(test_the_end_in_a_forked_child_is_not_the_parents),
		cmocka_unit_test(test_the_rate_counts_what_passes_when_it_is_decided),
		cmocka_unit_test(test_others_take_from_the_same_rate),
		cmocka_unit_test(test_the_rate_counts_by_the_time_of_recording_also_on_tracks),
		cmocka_unit_test(test_children_of_a_kept_span_are_kept_on_any_thread),
		cmocka_unit_test(test_children_of_a_deferred_span_wait_for_it_and_come_in_order),
		cmocka_unit_test(test_a_child_that_outlives_its_span_is_kept_whole),
		cmocka_unit_test(test_only_the_last_children_fit_and_the_others_are_lost),
		cmocka_unit_test(test_children_on_other_threads_are_lost_if_their_span_passes),
		cmocka_unit_test(test_spans_that_find_no_room_are_lost),
		cmocka_unit_test(test_one_process_does_not_take_the_room_of_another),
		cmocka_unit_test(test_old_spans_make_room_for_new_ones),
		cmocka_unit_test(test_a_process_that_exits_leaves_nothing),
		cmocka_unit_test(test_records_that_make_no_sense_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
