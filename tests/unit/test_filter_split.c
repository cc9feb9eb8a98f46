// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "filter/filter.h"
#include "filter/split.h"

static const struct site_info copy = {
	.name = "copy",
	.category = "net",
	.file = "src/copy.c",
	.func = "run",
	.object = "/usr/lib/libx.so",
	.line = 12,
	.kind = WAFFLE_SITE_SPAN,
	.key_count = 4,
	.keys = {{WAFFLE_KEY_U64, "bytes"},
		 {WAFFLE_KEY_STR, "path"},
		 {WAFFLE_KEY_F64, "load"},
		 {WAFFLE_KEY_NUMBER, "n"}},
};

/* ---- a tree as text ---- */

struct text {
	char bytes[1024];
	size_t len;
};

static void add(struct text *text, const char *bytes, size_t len)
{
	assert_true(text->len + len < sizeof(text->bytes));
	memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
	text->bytes[text->len] = '\0';
}

static void show(struct text *text, const struct filter_expr *filter,
		 const struct residual *residual, uint32_t index)
{
	const struct filter_node *node = &residual->nodes.data[index];
	const struct filter_predicate *predicate;

	switch (node->type) {
	case FILTER_AND:
	case FILTER_OR:
		assert_true(node->left < index && node->right < index);
		add(text, "(", 1);
		show(text, filter, residual, node->left);
		add(text, node->type == FILTER_AND ? " && " : " || ", 4);
		show(text, filter, residual, node->right);
		add(text, ")", 1);
		break;
	case FILTER_NOT:
		assert_true(node->left < index);
		add(text, "!", 1);
		show(text, filter, residual, node->left);
		break;
	case FILTER_TEST:
		predicate = &filter->predicates.data[node->predicate];
		add(text, filter->source + predicate->from, predicate->to - predicate->from);
		break;
	case FILTER_SAMPLE:
		add(text, "sample", 6);
		break;
	default:
		add(text, node->type == FILTER_TRUE ? "true" : "false",
		    node->type == FILTER_TRUE ? 4 : 5);
		break;
	}
}

static struct filter_expr *parse(const char *source)
{
	struct error err = ERROR_INIT;
	struct filter_expr *filter;

	if (filter_parse(&filter, "test", source, &err))
		fail_msg("%s", err.message);
	return filter;
}

enum step { SITE, UPPER, LOWER, REST };

/* The rest of an expression that is undecided at a site, and then at its begin or its end. */
static void expect(const char *source, const struct site_info *site, enum step step,
		   const char *expected)
{
	struct filter_expr *filter = parse(source);
	struct residual residual, next = {0};
	struct text text = {.len = 0};

	assert_true(residual_make(&residual, filter, site));
	if (step == UPPER || step == LOWER)
		assert_true(residual_bound(&next, filter, &residual, site, step == UPPER));
	if (step == REST)
		assert_true(residual_rest(&next, filter, &residual));
	if (step != SITE) {
		residual_free(&residual);
		residual = next;
	}
	show(&text, filter, &residual, (uint32_t)residual.nodes.len - 1);
	assert_string_equal(text.bytes, expected);
	residual_free(&residual);
	filter_free(filter);
}

static void test_what_a_site_knows_is_folded_away(void **state)
{
	(void)state;
	expect("name == \"copy\"", &copy, SITE, "true");
	expect("name ~ \"s*\"", &copy, SITE, "false");
	expect("kind == span && category == \"net\" && line in {12, 13}", &copy, SITE, "true");
	expect("file == \"copy.c\" && func != \"main\" && lib ~ \"libx*\"", &copy, SITE, "true");
	expect("kind == event && pid == 1", &copy, SITE, "false");
	expect("name == \"copy\" && pid == 1", &copy, SITE, "pid == 1");
	expect("name == \"send\" || pid == 1", &copy, SITE, "pid == 1");
	expect("name == \"copy\" || pid == 1", &copy, SITE, "true");
	expect("!(name == \"copy\") || !(pid == 1)", &copy, SITE, "!pid == 1");
	expect("(pid == 1 || tid == 2) && (name == \"send\" || cpu == 3)", &copy, SITE,
	       "((pid == 1 || tid == 2) && cpu == 3)");
	expect("(pid == 1 || tid == 2) && name == \"send\"", &copy, SITE, "false");
}

static void test_a_key_that_is_not_declared_makes_its_comparison_false(void **state)
{
	(void)state;
	expect("kv.bits > 1", &copy, SITE, "false");
	expect("kv.bits != 1", &copy, SITE, "false");
	expect("!(kv.bits > 1)", &copy, SITE, "true");
	expect("kv.bytes > 1 && kv.bits > 1", &copy, SITE, "false");
	expect("kv.bytes > 1 || kv.bits > 1", &copy, SITE, "kv.bytes > 1");
}

static void test_a_key_of_another_type_makes_its_comparison_false(void **state)
{
	(void)state;
	expect("kv.bytes == \"1\"", &copy, SITE, "false");
	expect("kv.bytes != \"1\"", &copy, SITE, "false");
	expect("kv.bytes ~ \"*\"", &copy, SITE, "false");
	expect("kv.path > 1", &copy, SITE, "false");
	expect("kv.path == \"1\"", &copy, SITE, "kv.path == \"1\"");
	expect("kv.n == 1.5", &copy, SITE, "kv.n == 1.5");
}

static void test_numbers_that_a_type_can_not_hold_are_folded_away(void **state)
{
	(void)state;
	expect("kv.bytes < 0", &copy, SITE, "false");
	expect("kv.bytes == 1.5", &copy, SITE, "false");
	expect("kv.bytes in {-1, 1.5}", &copy, SITE, "false");
	expect("kv.bytes in {-1, 1}", &copy, SITE, "kv.bytes in {-1, 1}");
	/* True of each value, but there may be none. */
	expect("kv.bytes >= 0", &copy, SITE, "kv.bytes >= 0");
	expect("kv.load == 9007199254740993", &copy, SITE, "false");
	expect("kv.load == 9007199254740992", &copy, SITE, "kv.load == 9007199254740992");
	expect("pid >= 0", &copy, SITE, "true");
	expect("tid < 0", &copy, SITE, "false");
	expect("dur >= 0", &copy, SITE, "dur >= 0"); /* if it ends */
	expect("depth >= 0", &copy, SITE, "depth >= 0");
}

static void test_a_comm_longer_than_15_bytes_is_none(void **state)
{
	(void)state;
	expect("comm == \"0123456789abcde\"", &copy, SITE, "comm == \"0123456789abcde\"");
	expect("comm == \"0123456789abcdef\"", &copy, SITE, "false");
	expect("comm != \"0123456789abcdef\"", &copy, SITE, "true");
	expect("comm ~ \"????????????????*\"", &copy, SITE, "false");
	expect("comm ~ \"*\"", &copy, SITE, "true");
}

static void test_only_spans_have_a_duration(void **state)
{
	struct site_info event = copy;

	(void)state;
	event.kind = WAFFLE_SITE_EVENT;
	expect("dur > 1ms", &copy, SITE, "dur > 1ms");
	expect("dur > 1ms", &event, SITE, "false");
	expect("!(dur > 1ms)", &event, SITE, "true");
}

static void test_a_walk_ends_at_a_type_that_is_not_known(void **state)
{
	struct site_info strange = copy;

	(void)state;
	strange.keys[1].type = '?';
	expect("kv.bytes == 1", &strange, SITE, "kv.bytes == 1");
	expect("kv.path == \"1\"", &strange, SITE, "false");
	expect("kv.load == 1", &strange, SITE, "false");
}

static void test_the_first_key_of_a_name_counts(void **state)
{
	struct site_info twice = copy;

	(void)state;
	twice.keys[2].name = "bytes";
	expect("kv.bytes == 1.5", &twice, SITE, "false");
}

static void test_sample_of_all_is_true(void **state)
{
	(void)state;
	expect("sample(1/1)", &copy, SITE, "true");
	expect("sample(1/2) && name == \"copy\"", &copy, SITE, "sample");
	expect("rate(10/s) && pid == 1", &copy, SITE, "pid == 1");
}

static void test_bounds_are_what_no_duration_changes(void **state)
{
	static const char both[] = "(pid == 1 && dur > 1) || cpu == 2";

	(void)state;
	expect("dur > 1", &copy, UPPER, "true");
	expect("dur > 1", &copy, LOWER, "false");
	expect("pid == 1 && dur > 1", &copy, UPPER, "pid == 1");
	expect("pid == 1 && dur > 1", &copy, LOWER, "false");
	expect(both, &copy, UPPER, "(pid == 1 || cpu == 2)");
	expect(both, &copy, LOWER, "cpu == 2");
	expect("!(dur > 1 || pid == 1)", &copy, UPPER, "!pid == 1");
	expect("!(dur > 1 || pid == 1)", &copy, LOWER, "false");
	expect("pid == 1 && !(tid == 2)", &copy, LOWER, "(pid == 1 && !tid == 2)");
}

static void test_the_rest_is_what_asks_the_duration(void **state)
{
	(void)state;
	expect("pid == 1 && dur > 1 && cpu == 2", &copy, REST, "dur > 1");
	expect("dur > 1", &copy, REST, "dur > 1");
	expect("pid == 1 && (dur > 1 || cpu == 2) && dur < 9", &copy, REST,
	       "((dur > 1 || cpu == 2) && dur < 9)");
	expect("pid == 1 || dur > 1", &copy, REST, "(pid == 1 || dur > 1)");
	expect("tid == 3 && !(pid == 1 && dur > 1)", &copy, REST, "!(pid == 1 && dur > 1)");
}

static void test_what_is_left_says_which_fields_it_asks(void **state)
{
	struct filter_expr *filter = parse("name == \"copy\" && (pid == 1 || kv.bits == 2)");
	struct residual residual;

	(void)state;
	assert_true(residual_make(&residual, filter, &copy));
	assert_true(residual_uses(filter, &residual, FILTER_PID));
	assert_false(residual_uses(filter, &residual, FILTER_NAME));
	assert_false(residual_uses(filter, &residual, FILTER_KV));
	residual_free(&residual);
	filter_free(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_site_knows_is_folded_away),
		cmocka_unit_test(test_a_key_that_is_not_declared_makes_its_comparison_false),
		cmocka_unit_test(test_a_key_of_another_type_makes_its_comparison_false),
		cmocka_unit_test(test_numbers_that_a_type_can_not_hold_are_folded_away),
		cmocka_unit_test(test_a_comm_longer_than_15_bytes_is_none),
		cmocka_unit_test(test_only_spans_have_a_duration),
		cmocka_unit_test(test_a_walk_ends_at_a_type_that_is_not_known),
		cmocka_unit_test(test_the_first_key_of_a_name_counts),
		cmocka_unit_test(test_sample_of_all_is_true),
		cmocka_unit_test(test_bounds_are_what_no_duration_changes),
		cmocka_unit_test(test_the_rest_is_what_asks_the_duration),
		cmocka_unit_test(test_what_is_left_says_which_fields_it_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
