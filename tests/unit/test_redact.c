// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/redact.h"

static const struct site_info site = {
	.name = "call",
	.key_count = 6,
	.begin_keys = 4,
	.keys = {{WAFFLE_KEY_I64, "first"},
		 {WAFFLE_KEY_STR, "secret"},
		 {WAFFLE_KEY_DIM3, "grid"},
		 {WAFFLE_KEY_CAUSE_SPAN, "cause"},
		 {WAFFLE_KEY_STR, "answer"},
		 {WAFFLE_KEY_U64, "last"}},
};

struct hit {
	struct waffle_rec_hit rec;
	struct waffle_frame frame;
	uint64_t values[32];
};

static uint32_t text_put(uint64_t *to, const char *text)
{
	size_t len = strlen(text);

	to[0] = len;
	memset(to + 1, 0, (len + 7) & ~7ul);
	memcpy(to + 1, text, len);
	return 1 + (uint32_t)(len + 7) / 8;
}

static struct hit hit_make(void)
{
	struct hit hit = {.rec.rec.kind = WAFFLE_REC_HIT, .frame.id = 77};
	uint32_t words = 0;

	hit.values[words++] = 1;
	words += text_put(hit.values + words, "hunter2 and more");
	hit.values[words++] = 2;
	hit.values[words++] = 3;
	hit.values[words++] = 99;
	hit.rec.frame_bytes = sizeof(hit.frame) + 8 * words;
	return hit;
}

static struct redaction named(const char *list)
{
	struct redaction redaction = {0};
	struct error err = ERROR_INIT;

	assert_int_equal(redaction_add(&redaction, list, &err), 0);
	return redaction;
}

static void test_named_keys_go_and_the_rest_stays_in_place(void **state)
{
	struct redaction redaction = named("last,secret,nothing");
	uint32_t keys = redact_keys(&redaction, &site);
	struct hit hit = hit_make();
	struct value_walk walk;
	struct site_info kept;
	struct value value;

	(void)state;
	assert_int_equal(keys, 1u << 1 | 1u << 5);
	assert_true(redaction.keys.data[0].found && redaction.keys.data[1].found);
	assert_false(redaction.keys.data[2].found);
	redact_site(&kept, &site, keys);
	assert_int_equal(kept.key_count, 4);
	assert_int_equal(kept.begin_keys, 3);
	assert_string_equal(kept.keys[1].name, "grid");
	assert_string_equal(kept.keys[3].name, "answer");

	redact_record(&hit.rec.rec, &site, keys);
	assert_int_equal(hit.rec.frame_bytes, sizeof(hit.frame) + 8 * 4);
	assert_int_equal(hit.frame.id, 77);
	walk = value_walk_begin(&kept, &hit.frame, hit.rec.frame_bytes);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.u64, 1);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.dim[2], 3);
	assert_true(value_walk_next(&walk, &value));
	assert_int_equal(value.u64, 99);
	redaction_free(&redaction);
}

static void test_values_at_the_return_go_as_well(void **state)
{
	struct {
		struct waffle_rec_return rec;
		uint64_t values[8];
	} end = {.rec.rec.kind = WAFFLE_REC_RETURN};
	uint32_t words = text_put(end.values, "token");

	(void)state;
	end.values[words++] = 42;
	end.rec.frame_bytes = 8 * words;
	redact_record(&end.rec.rec, &site, 1u << 4);
	assert_int_equal(end.rec.frame_bytes, 8);
	assert_int_equal(end.values[0], 42);
}

static void test_all_arguments_go_but_links(void **state)
{
	struct redaction redaction = {.args = true};
	struct site_info counter = {.key_count = 1, .keys = {{WAFFLE_KEY_NUMBER, "value"}}};
	struct hit hit = hit_make();

	(void)state;
	assert_int_equal(redact_keys(&redaction, &site), 0x3f & ~(1u << 3));
	assert_int_equal(redact_keys(&redaction, &counter), 0);
	redact_record(&hit.rec.rec, &site, 0x3f & ~(1u << 3));
	assert_int_equal(hit.rec.frame_bytes, sizeof(hit.frame) + 8);
	assert_int_equal(hit.values[0], 99);
}

/* Values behind a bad one, and those of unknown sites, cannot be assigned to keys. So all are left
 * out. */
static void test_values_behind_a_bad_one_and_of_unknown_sites_go(void **state)
{
	struct hit hit = hit_make();

	(void)state;
	hit.values[1] = 5000; /* a length that can't be */
	redact_record(&hit.rec.rec, &site, 1u << 5);
	assert_int_equal(hit.rec.frame_bytes, sizeof(hit.frame) + 8);
	hit = hit_make();
	redact_record(&hit.rec.rec, NULL, 0);
	assert_int_equal(hit.rec.frame_bytes, sizeof(hit.frame));
	hit = hit_make();
	redact_record(&hit.rec.rec, &site, 0);
	assert_int_equal(hit.rec.frame_bytes, hit_make().rec.frame_bytes);
}

static void test_lists_without_a_name_are_refused(void **state)
{
	static const char *const lists[] = {"", ",", "a,,b", ",a"};

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct redaction redaction = {0};
		struct error err = ERROR_INIT;

		assert_int_equal(redaction_add(&redaction, lists[i], &err), -EINVAL);
		redaction_free(&redaction);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named_keys_go_and_the_rest_stays_in_place),
		cmocka_unit_test(test_values_at_the_return_go_as_well),
		cmocka_unit_test(test_all_arguments_go_but_links),
		cmocka_unit_test(test_values_behind_a_bad_one_and_of_unknown_sites_go),
		cmocka_unit_test(test_lists_without_a_name_are_refused),
	};

	return cmocka_run_group_tests_name("redact", tests, NULL, NULL);
}
