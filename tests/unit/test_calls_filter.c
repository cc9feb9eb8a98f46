// SPDX-License-Identifier: Apache-2.0
/* Filters on calls in the kernel: which calls of this
 * program's own functions are recorded. Needs root. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "calls_rig.h"

#define FACTORIAL "uprobe:exe:factorial(i64 n) -> i64 ret"

static void factorials_pass(const char *filter, const long *passing, size_t count)
{
	struct rig *rig = RIG_FILTERED(filter, FACTORIAL);
	size_t hits = 0;

	factorial(6);
	rig_read(rig);
	for (size_t i = 0; i < rig->said.len; i++) {
		const struct said *hit = &rig->said.data[i];
		size_t j = i + 1;

		if (hit->rec.kind != WAFFLE_REC_HIT)
			continue;
		assert_true(hits < count);
		assert_int_equal(value_of(rig, hit, "n").i64, passing[hits++]);
		while (j < rig->said.len && rig->said.data[j].id != hit->id)
			j++;
		assert_true(j < rig->said.len);
		assert_int_equal(rig->said.data[j].rec.kind, WAFFLE_REC_RETURN);
		assert_true(rig->said.data[j].rec.ts > hit->rec.ts);
		value_of(rig, &rig->said.data[j], "ret");
	}
	assert_int_equal(hits, count);
	assert_int_equal(rig->said.len, 2 * count);
	assert_int_equal(dropped(rig), 0);
	rig_end(rig);
}

static void test_filters_ask_arguments_and_what_is_returned(void **state)
{
	static const long some[] = {4, 3}, large[] = {6, 5}, all[] = {6, 5, 4, 3, 2, 1};
	char thread[64];

	factorials_pass("kv.n > 2 && kv.n < 5", some, 2);
	factorials_pass("kv.ret >= 120", large, 2);
	factorials_pass("dur < 10s", all, 6);
	snprintf(thread, sizeof(thread), "tid == %d", gettid());
	factorials_pass(thread, all, 6);
	snprintf(thread, sizeof(thread), "tid != %d", gettid());
	factorials_pass(thread, NULL, 0);
	factorials_pass("name == \"factorial\" && comm ~ \"*calls*\" && kv.n == 3", some + 1, 1);
	(void)state;
}

static void test_the_longest_filter_is_taken_by_the_kernel(void **state)
{
	static const char *const kinds[] = {
		"kv.n > %u00",       "kv.ret == 1%u00000000", "kv.n in {1%u0, 20, 30}",
		"comm ~ \"*%u?y*\"", "tid == 50000%u",        "dur > %u00h",
	};
	static const long passing[] = {5};
	char filter[4096] = "";
	size_t len = 0;

	for (unsigned i = 0; i < 63; i++) {
		char text[64], *number;

		snprintf(text, sizeof(text), "%s", kinds[i % 6]);
		number = strstr(text, "%u");
		len += (size_t)snprintf(filter + len, sizeof(filter) - len, "%.*s%u%s || ",
					(int)(number - text), text, 10 + i, number + 2);
	}
	snprintf(filter + len, sizeof(filter) - len, "kv.n == 5");
	factorials_pass(filter, passing, 1);
	(void)state;
}

static void test_filters_ask_events_and_texts(void **state)
{
	struct rig *rig = RIG_FILTERED("kv.number >= 3 && kv.number != 5 || kv.text == \"two\"",
				       "uprobe:exe:launch(i64 number) as event",
				       "uprobe:exe:take_box(dim3 box, char *text, dim3 second) as "
				       "event");
	static const char *const texts[] = {"one", "two", "three"};

	for (long i = 0; i < 7; i++)
		launch(i);
	for (unsigned i = 0; i < 3; i++)
		take_box((struct box){1, 2, i}, texts[i], (struct box){0, 0, 0});
	rig_read(rig);
	assert_int_equal(rig->said.len, 4);
	assert_int_equal(value_of(rig, HIT(rig, 0, "launch"), "number").i64, 3);
	assert_int_equal(value_of(rig, HIT(rig, 1, "launch"), "number").i64, 4);
	assert_int_equal(value_of(rig, HIT(rig, 2, "launch"), "number").i64, 6);
	text_is(rig, HIT(rig, 3, "take_box"), "text", "two");
	rig_end(rig);
	(void)state;
}

static void test_filters_ask_pairs(void **state)
{
	struct rig *rig = RIG_FILTERED("kv.key > 11",
				       "uprobe:exe:pair_begins(i64 key)..pair_ends(i64) key=key"
				       "..arg1 as span paired");

	for (long key = 10; key < 14; key++)
		pair_begins(key);
	for (long key = 10; key < 14; key++)
		pair_ends(key);
	rig_read(rig);
	assert_int_equal(rig->said.len, 4);
	assert_int_equal(value_of(rig, HIT(rig, 0, "paired"), "key").i64, 12);
	assert_int_equal(value_of(rig, HIT(rig, 1, "paired"), "key").i64, 13);
	assert_int_equal(rig->said.data[2].rec.kind, WAFFLE_REC_RETURN);
	assert_int_equal(rig->said.data[2].id, rig->said.data[0].id);
	assert_int_equal(rig->said.data[3].rec.kind, WAFFLE_REC_RETURN);
	assert_int_equal(rig->said.data[3].id, rig->said.data[1].id);
	rig_end(rig);
	(void)state;
}

/* Calls that never return, so that only decisions at the begin record anything. */
static void begun_pass(const char *filter, size_t count)
{
	struct rig *rig = RIG_FILTERED(filter, "uprobe:exe:jump_out(ptr, i32 depth) -> i32 ret");

	jump_once(3);
	rig_read(rig);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "jump_out"), count);
	assert_int_equal(dropped(rig), 0);
	rig_end(rig);
}

static void test_what_hangs_on_the_end_only_is_held_until_then(void **state)
{
	begun_pass("kv.depth == 1", 1);
	begun_pass("kv.depth >= 2 || dur > 1h", 2);
	begun_pass("kv.depth < 2 || kv.ret == 0", 2);
	begun_pass("kv.depth < 2 && !(kv.ret == 5)", 0);
	begun_pass("kv.depth < 2 && dur < 1h", 0);
	begun_pass("dur < 1h", 0);
	(void)state;
}

#define PAIRED_BY_THREAD "uprobe:exe:pair_begins(i64 key)..pair_ends key=tid as span paired"

/* Three nested calls, some of which pass. Their ends come
 * in reverse order, each with its own time. */
static void nested_pairs_pass(const char *filter, const long *keys, const long *passing,
			      size_t count)
{
	struct rig *rig = RIG_FILTERED(filter, PAIRED_BY_THREAD);
	struct timespec now;
	uint64_t ends[4];
	size_t hits;

	for (size_t i = 0; i < 3; i++)
		pair_begins(keys[i]);
	for (size_t i = 0; i < 4; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		ends[i] = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		pair_ends(0);
	}
	rig_read(rig);
	hits = said_count(rig, WAFFLE_REC_HIT, "paired");
	assert_int_equal(hits, count);
	assert_int_equal(rig->said.len, 2 * count);
	for (size_t i = 0; i < count; i++) {
		const struct said *hit = HIT(rig, i, "paired");
		const struct said *end = RETURN(rig, 2 * count - 1 - i, "paired");
		size_t at = 0;

		assert_int_equal(value_of(rig, hit, "key").i64, passing[i]);
		assert_int_equal(hit->id, end->id);
		while (keys[at] != passing[i])
			at++;
		assert_in_range(end->rec.ts, ends[2 - at], ends[3 - at]);
	}
	rig_end(rig);
}

static void test_pairs_that_do_not_pass_nest_all_the_same(void **state)
{
	static const long middle[] = {20, 5, 30}, last[] = {20, 30, 5}, first[] = {5, 20, 30};
	static const long passing[] = {20, 30}, one[] = {5};

	nested_pairs_pass("kv.key > 11", middle, passing, 2);
	nested_pairs_pass("kv.key > 11", last, passing, 2);
	nested_pairs_pass("kv.key > 11", first, passing, 2);
	nested_pairs_pass("kv.key > 11 && dur < 1h", middle, passing, 2);
	nested_pairs_pass("kv.key > 11 && dur < 1h", last, passing, 2);
	nested_pairs_pass("name == \"paired\" && rate(1/min)", first, one, 1);
	(void)state;
}

static void test_a_pair_that_does_not_pass_takes_the_place_of_one_with_its_key(void **state)
{
	struct rig *rig = RIG_FILTERED("name == \"paired\" && rate(1/min)",
				       "uprobe:exe:pair_begins(i64 key)..pair_ends(i64) key=key"
				       "..arg1 as span paired");

	pair_begins(7);
	pair_begins(7);
	pair_ends(7);
	rig_read(rig);
	assert_int_equal(rig->said.len, 2);
	/* That call is over, so the end that follows is not its own. */
	assert_int_equal(HIT(rig, 0, "paired")->id, RETURN(rig, 1, "paired")->id);
	assert_int_equal(RETURN(rig, 1, "paired")->flags, WAFFLE_RETURN_LEFT);
	rig_end(rig);
	(void)state;
}

static void test_the_rate_limits_calls(void **state)
{
	struct rig *rig = RIG_FILTERED("name == \"factorial\" && rate(4/min)", FACTORIAL);

	factorial(10);
	rig_read(rig);
	assert_int_equal(said_count(rig, WAFFLE_REC_HIT, "factorial"), 4);
	assert_int_equal(said_count(rig, WAFFLE_REC_RETURN, "factorial"), 4);
	assert_int_equal(dropped(rig), 0);
	rig_end(rig);
	(void)state;
}

/* ---- all ---- */

static int single_mode(void **state)
{
	(void)state;
	return setenv("WAFFLE_UPROBE_SINGLE", "1", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filters_ask_arguments_and_what_is_returned),
		cmocka_unit_test(test_the_longest_filter_is_taken_by_the_kernel),
		cmocka_unit_test(test_filters_ask_events_and_texts),
		cmocka_unit_test(test_filters_ask_pairs),
		cmocka_unit_test(test_what_hangs_on_the_end_only_is_held_until_then),
		cmocka_unit_test(test_pairs_that_do_not_pass_nest_all_the_same),
		cmocka_unit_test(
			test_a_pair_that_does_not_pass_takes_the_place_of_one_with_its_key),
		cmocka_unit_test(test_the_rate_limits_calls),
	};
	/* These tests depend on how probes are attached. */
	const struct CMUnitTest single[] = {
		cmocka_unit_test(test_filters_ask_pairs),
	};
	int failed;

	if (geteuid()) {
		print_message("needs root: skipped\n");
		return 0;
	}
	failed = cmocka_run_group_tests_name("multi", tests, NULL, NULL);
	return failed + cmocka_run_group_tests_name("single", single, single_mode, NULL);
}
