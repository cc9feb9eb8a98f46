// SPDX-License-Identifier: Apache-2.0
/* Spans of PyTorch's wait counters, made of the calls that name, start and stop them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture/arming/arming_internal.h"
#include "capture/wait_counters_internal.h"
#include "fake_sites.h"

#define FORWARD "pytorch.wait_counter.entire_forward_compile"
#define BACKWARD "pytorch.wait_counter.entire_backward_compile"
#define PROCESS 7
#define THREAD 8

static const struct site_info naming = {
	.role = SITE_ROLE_COUNTER_NAME,
	.kind = WAFFLE_SITE_SPAN,
	.call = true,
	.key_count = 2,
	.begin_keys = 1,
	.keys = {{WAFFLE_KEY_STR, "name"}, {WAFFLE_KEY_PTR, "counter"}}};
static const struct site_info counting = {
	.role = SITE_ROLE_COUNTER,
	.kind = WAFFLE_SITE_SPAN,
	.call = true,
	.keyed = true,
	.key_count = 2,
	.begin_keys = 1,
	.keys = {{WAFFLE_KEY_PTR, "counter"}, {WAFFLE_KEY_PTR, "handle"}}};

struct span {
	const char *name;
	uint64_t id, begin_ts, end_ts;
	uint32_t tid;
	bool left;
};

struct rig {
	struct session_options options;
	struct arming arming;
	struct wait_counters *counters;
	struct span spans[16];
	size_t count;
	uint64_t now, id;
	unsigned refused; /* so many records are refused first */
};

static int deliver(struct waffle_rec *rec, void *arg)
{
	const struct waffle_rec_hit *hit = (const struct waffle_rec_hit *)rec;
	const struct waffle_rec_return *end = (const struct waffle_rec_return *)rec;
	struct rig *rig = arg;
	struct waffle_frame frame;

	if (rig->refused) {
		rig->refused--;
		return -EINVAL;
	}
	if (rec->kind == WAFFLE_REC_HIT) {
		memcpy(&frame, hit + 1, sizeof(frame));
		assert_int_equal(hit->frame_bytes, sizeof(frame));
		assert_true(rig->count < 16);
		rig->spans[rig->count++] =
			(struct span){.name = rig->arming.sites.data[hit->site].info->name,
				      .id = frame.id,
				      .begin_ts = rec->ts,
				      .tid = rec->tid};
	} else {
		assert_int_equal(rec->kind, WAFFLE_REC_RETURN);
		assert_int_equal(end->frame_bytes, 0);
		assert_int_equal(end->span_id, rig->spans[rig->count - 1].id);
		rig->spans[rig->count - 1].end_ts = rec->ts;
		rig->spans[rig->count - 1].left = end->flags & WAFFLE_RETURN_LEFT;
	}
	return 0;
}

static void begin(struct rig *rig)
{
	struct wait_counters_options options = {
		.arming = &rig->arming, .deliver = deliver, .arg = rig};
	struct error err = ERROR_INIT;

	*rig = (struct rig){.arming.options = &rig->options};
	assert_int_equal(wait_counters_open(&rig->counters, &options, &err), 0);
}

static void end(struct rig *rig)
{
	wait_counters_close(rig->counters);
	vec_free(&rig->arming.sites);
}

/* Returns the id of the call. */
static uint64_t hit(struct rig *rig, const struct site_info *site, uint32_t tid,
		    const uint64_t *values, size_t words)
{
	struct {
		struct waffle_rec_hit hit;
		struct waffle_frame frame;
		uint64_t values[40];
	} rec = {.hit = {.rec = {.ts = ++rig->now, .tid = tid, .kind = WAFFLE_REC_HIT},
			 .tgid = PROCESS,
			 .frame_bytes = (uint32_t)(sizeof(rec.frame) + words * 8)},
		 .frame = {.id = ++rig->id}};

	memcpy(rec.values, values, words * 8);
	assert_int_equal(wait_counters_pass(rig->counters, site, &rec.hit.rec), 0);
	return rec.frame.id;
}

static void returns(struct rig *rig, const struct site_info *site, uint64_t id, uint64_t value,
		    uint32_t flags)
{
	struct {
		struct waffle_rec_return end;
		uint64_t value;
	} rec = {.end = {.rec = {.ts = ++rig->now, .tid = THREAD, .kind = WAFFLE_REC_RETURN},
			 .span_id = id,
			 .tgid = PROCESS,
			 .frame_bytes = 8,
			 .flags = flags},
		 .value = value};

	assert_int_equal(wait_counters_pass(rig->counters, site, &rec.end.rec), 0);
}

static void name(struct rig *rig, const char *text, uint64_t counter)
{
	uint64_t values[40] = {strlen(text)};

	memcpy(values + 1, text, strlen(text));
	returns(rig, &naming, hit(rig, &naming, THREAD, values, 1 + (strlen(text) + 7) / 8),
		counter, 0);
}

static uint64_t start(struct rig *rig, uint64_t counter, uint32_t tid)
{
	return hit(rig, &counting, tid, &counter, 1);
}

static void stop(struct rig *rig, uint64_t id)
{
	returns(rig, &counting, id, 0, 0);
}

static void leaves(struct rig *rig, unsigned kind, uint32_t tid)
{
	const struct waffle_rec_exit rec = {.rec = {.ts = ++rig->now, .tid = tid, .kind = kind},
					    .tgid = PROCESS};

	assert_int_equal(wait_counters_process(rig->counters, &rec), 0);
}

static void assert_span(const struct rig *rig, size_t at, const char *called, uint64_t id)
{
	assert_true(at < rig->count);
	assert_string_equal(rig->spans[at].name, called);
	assert_int_equal(rig->spans[at].id, id);
}

/* As torch.compile does it: it names the counters of all levels before it starts them. */
static void test_compilation_is_one_span_and_its_parts_are_none(void **state)
{
	struct rig rig;
	uint64_t whole, part;

	(void)state;
	begin(&rig);
	name(&rig, FORWARD, 0x10);
	name(&rig, "pytorch.wait_counter.dynamo_compile", 0x20);
	whole = start(&rig, 0x10, THREAD);
	part = start(&rig, 0x20, THREAD);
	stop(&rig, part);
	assert_int_equal(rig.count, 0);
	stop(&rig, whole);
	assert_int_equal(rig.count, 1);
	assert_span(&rig, 0, "compile", whole);
	assert_true(rig.spans[0].begin_ts < rig.spans[0].end_ts);
	assert_int_equal(rig.spans[0].tid, THREAD);
	name(&rig, BACKWARD, 0x30);
	whole = start(&rig, 0x30, THREAD);
	stop(&rig, whole);
	assert_span(&rig, 1, "compile", whole);
	assert_ptr_equal(rig.spans[0].name, rig.spans[1].name);
	end(&rig);
}

/* Of older versions, and of what is tuned at a later call. */
static void test_outermost_part_is_a_span_where_nothing_is_around_it(void **state)
{
	struct rig rig;
	uint64_t outer, inner, whole;

	(void)state;
	begin(&rig);
	name(&rig, "pytorch.wait_counter.dynamo_compile", 0x20);
	outer = start(&rig, 0x20, THREAD);
	inner = start(&rig, 0x20, THREAD);
	stop(&rig, inner);
	assert_int_equal(rig.count, 0);
	stop(&rig, outer);
	assert_span(&rig, 0, "compile", outer);
	name(&rig, FORWARD, 0x10);
	whole = start(&rig, 0x10, THREAD);
	outer = start(&rig, 0x20, THREAD + 1);
	stop(&rig, outer);
	assert_span(&rig, 1, "compile", outer);
	stop(&rig, whole);
	assert_span(&rig, 2, "compile", whole);
	assert_int_equal(rig.count, 3);
	end(&rig);
}

static void test_only_names_that_users_look_for_have_spans(void **state)
{
	static const char *const others[] = {"pytorch.filelock.enter",
					     "pytorch.wait_counter.subproc_pool.running",
					     "pytorch.wait_counter.c10d._object_to_tensor",
					     "pytorch.wait_counter.c10d.",
					     "pytorch.wait_counter.",
					     "entire_forward_compile",
					     "pytorch.wait_counter.entire_forward_compile_2",
					     ""};
	char longest[WAFFLE_STR_MAX + 1] = "pytorch.wait_counter.c10d.";
	struct rig rig;

	(void)state;
	begin(&rig);
	memset(longest + strlen(longest), 'x', sizeof(longest) - 1 - strlen(longest));
	name(&rig, longest, 0xff);
	stop(&rig, start(&rig, 0xff, THREAD));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		name(&rig, others[i], 0x10 + i);
		stop(&rig, start(&rig, 0x10 + i, THREAD));
	}
	assert_int_equal(rig.count, 0);
	name(&rig, "pytorch.wait_counter.c10d.new_group", 0x50);
	stop(&rig, start(&rig, 0x50, THREAD));
	assert_int_equal(rig.count, 1);
	assert_string_equal(rig.spans[0].name, "c10d.new_group");
	end(&rig);
}

static void test_counter_named_before_the_capture_has_no_spans(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig);
	stop(&rig, start(&rig, 0x10, THREAD));
	stop(&rig, 99);                      /* it was started before the capture */
	returns(&rig, &naming, 98, 0x10, 0); /* and so was this */
	stop(&rig, start(&rig, 0x10, THREAD));
	assert_int_equal(rig.count, 0);
	end(&rig);
}

/* It was thrown while the name was looked up: there is no counter. */
static void test_lookup_that_an_exception_left_names_nothing(void **state)
{
	uint64_t values[] = {strlen(FORWARD), 0, 0, 0, 0, 0, 0};
	struct rig rig;

	(void)state;
	begin(&rig);
	memcpy(values + 1, FORWARD, strlen(FORWARD));
	returns(&rig, &naming, hit(&rig, &naming, THREAD, values, 7), 0x10, WAFFLE_RETURN_LEFT);
	stop(&rig, start(&rig, 0x10, THREAD));
	assert_int_equal(rig.count, 0);
	end(&rig);
}

static void test_two_threads_in_one_counter_have_a_span_each(void **state)
{
	struct rig rig;
	uint64_t first, second;

	(void)state;
	begin(&rig);
	name(&rig, FORWARD, 0x10);
	first = start(&rig, 0x10, THREAD);
	second = start(&rig, 0x10, THREAD + 1);
	stop(&rig, first);
	stop(&rig, second);
	assert_span(&rig, 0, "compile", first);
	assert_int_equal(rig.spans[0].tid, THREAD);
	assert_span(&rig, 1, "compile", second);
	assert_int_equal(rig.spans[1].tid, THREAD + 1);
	end(&rig);
}

static void test_span_that_was_left_is_marked(void **state)
{
	struct rig rig;
	uint64_t id;

	(void)state;
	begin(&rig);
	name(&rig, FORWARD, 0x10);
	id = start(&rig, 0x10, THREAD);
	returns(&rig, &counting, id, 0, WAFFLE_RETURN_LEFT);
	assert_span(&rig, 0, "compile", id);
	assert_true(rig.spans[0].left);
	end(&rig);
}

static void test_open_spans_are_delivered_without_an_end(void **state)
{
	struct rig rig;
	uint64_t first, second, third;

	(void)state;
	begin(&rig);
	name(&rig, FORWARD, 0x10);
	first = start(&rig, 0x10, THREAD);
	second = start(&rig, 0x10, THREAD + 1);
	leaves(&rig, WAFFLE_REC_EXIT, THREAD);
	assert_int_equal(rig.count, 1);
	assert_span(&rig, 0, "compile", first);
	leaves(&rig, WAFFLE_REC_EXEC, PROCESS);
	assert_span(&rig, 1, "compile", second);
	name(&rig, FORWARD, 0x10);
	third = start(&rig, 0x10, THREAD);
	assert_int_equal(wait_counters_finish(rig.counters), 0);
	assert_span(&rig, 2, "compile", third);
	for (size_t i = 0; i < rig.count; i++)
		assert_int_equal(rig.spans[i].end_ts, 0);
	end(&rig);
}

/* What has the address of a counter in the next program is another one. */
static void test_program_leaves_no_counters_to_the_next(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig);
	name(&rig, FORWARD, 0x10);
	leaves(&rig, WAFFLE_REC_EXIT, THREAD);
	stop(&rig, start(&rig, 0x10, THREAD));
	assert_int_equal(rig.count, 1);
	leaves(&rig, WAFFLE_REC_EXIT, PROCESS);
	stop(&rig, start(&rig, 0x10, THREAD));
	assert_int_equal(rig.count, 1);
	name(&rig, FORWARD, 0x10);
	wait_counters_forget(rig.counters, PROCESS); /* whose exit was lost */
	stop(&rig, start(&rig, 0x10, THREAD));
	assert_int_equal(rig.count, 1);
	end(&rig);
}

/* The program chooses the names. */
static void test_names_are_limited(void **state)
{
	struct rig rig;
	char text[64];

	(void)state;
	begin(&rig);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "pytorch.wait_counter.c10d.f%u", i);
		name(&rig, text, 0x1000 + i);
	}
	assert_int_equal(rig.arming.sites.len, 32);
	stop(&rig, start(&rig, 0x1000 + 31, THREAD));
	stop(&rig, start(&rig, 0x1000 + 32, THREAD));
	assert_int_equal(rig.count, 1);
	end(&rig);
}

/* The record of the exit or exec passes, and so do the other spans. */
static void test_refused_span_holds_nothing_up(void **state)
{
	struct rig rig;

	(void)state;
	for (unsigned ends = 0; ends < 2; ends++) {
		begin(&rig);
		name(&rig, FORWARD, 0x10);
		start(&rig, 0x10, THREAD);
		start(&rig, 0x10, THREAD + 1);
		rig.refused = 1;
		if (ends)
			assert_int_equal(wait_counters_finish(rig.counters), 0);
		else
			leaves(&rig, WAFFLE_REC_EXEC, PROCESS);
		assert_int_equal(rig.count, 1);
		end(&rig);
	}
}

static int look_up(struct rig *rig, uint32_t tgid, uint32_t tid, const char *text)
{
	struct {
		struct waffle_rec_hit hit;
		struct waffle_frame frame;
		uint64_t values[40];
	} rec = {.hit = {.rec = {.ts = ++rig->now, .tid = tid, .kind = WAFFLE_REC_HIT},
			 .tgid = tgid,
			 .frame_bytes = sizeof(rec.frame) + sizeof(rec.values)},
		 .frame = {.id = ++rig->id},
		 .values = {strlen(text)}};

	memcpy(rec.values + 1, text, strlen(text));
	return wait_counters_pass(rig->counters, &naming, &rec.hit.rec);
}

static void test_lookups_whose_return_is_lost_do_not_add_up(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig);
	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(look_up(&rig, PROCESS, THREAD, FORWARD), 0);
	for (uint32_t i = 0; i < 9000; i++) { /* by threads that end */
		assert_int_equal(look_up(&rig, PROCESS, THREAD + i, FORWARD), 0);
		leaves(&rig, WAFFLE_REC_EXIT, THREAD + i);
	}
	end(&rig);
}

static void test_one_process_leaves_room_for_others(void **state)
{
	struct rig rig;
	char text[64];
	int result = 0;

	(void)state;
	begin(&rig);
	for (uint32_t i = 0; !result && i < 20000; i++)
		result = look_up(&rig, PROCESS, THREAD + i, FORWARD);
	assert_int_equal(result, -EINVAL);
	assert_int_equal(look_up(&rig, PROCESS + 1, 1, FORWARD), 0);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "pytorch.wait_counter.c10d.f%u", i);
		look_up(&rig, PROCESS, THREAD, text);
	}
	assert_int_equal(rig.arming.sites.len, 32);
	look_up(&rig, PROCESS + 1, 1, "pytorch.wait_counter.c10d.g");
	assert_int_equal(rig.arming.sites.len, 33);
	end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compilation_is_one_span_and_its_parts_are_none),
		cmocka_unit_test(test_outermost_part_is_a_span_where_nothing_is_around_it),
		cmocka_unit_test(test_only_names_that_users_look_for_have_spans),
		cmocka_unit_test(test_counter_named_before_the_capture_has_no_spans),
		cmocka_unit_test(test_lookup_that_an_exception_left_names_nothing),
		cmocka_unit_test(test_two_threads_in_one_counter_have_a_span_each),
		cmocka_unit_test(test_span_that_was_left_is_marked),
		cmocka_unit_test(test_open_spans_are_delivered_without_an_end),
		cmocka_unit_test(test_program_leaves_no_counters_to_the_next),
		cmocka_unit_test(test_names_are_limited),
		cmocka_unit_test(test_refused_span_holds_nothing_up),
		cmocka_unit_test(test_lookups_whose_return_is_lost_do_not_add_up),
		cmocka_unit_test(test_one_process_leaves_room_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
