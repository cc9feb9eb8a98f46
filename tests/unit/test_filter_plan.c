// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "filter/plan.h"

#define LINES_MAX 8

struct fixture {
	struct filter_expr *filter;
	struct plan *plan;
	char lines[LINES_MAX][1024];
	unsigned count;
};

static const struct site_info copy = {
	.name = "copy",
	.category = "",
	.file = "a.c",
	.func = "run",
	.object = "/bin/a",
	.line = 1,
	.kind = WAFFLE_SITE_SPAN,
	.key_count = 2,
	.keys = {{WAFFLE_KEY_U64, "bytes"}, {WAFFLE_KEY_STR, "path"}},
};

/* The same keys at the same places. */
static struct site_info site_like_copy(const char *name, uint16_t kind)
{
	struct site_info site = copy;

	site.name = name;
	site.kind = kind;
	return site;
}

static void fixture_open(struct fixture *fixture, const char *source, bool keep_children)
{
	struct error err = ERROR_INIT;

	*fixture = (struct fixture){0};
	if (filter_parse(&fixture->filter, "test", source, &err) ||
	    plan_open(&fixture->plan, fixture->filter, keep_children, &err))
		fail_msg("%s", err.message);
}

static void fixture_close(struct fixture *fixture)
{
	plan_free(fixture->plan);
	filter_free(fixture->filter);
}

/* The use of a site; its class goes to *class. */
static enum plan_use use_of(struct fixture *fixture, const struct site_info *site, uint32_t *class)
{
	struct error err = ERROR_INIT;
	enum plan_use use;

	*class = UINT32_MAX;
	if (plan_site(fixture->plan, site, &use, class, &err))
		fail_msg("%s", err.message);
	assert_true((use == PLAN_DORMANT) == (*class == UINT32_MAX));
	return use;
}

static void line_keep(const char *line, void *arg)
{
	struct fixture *fixture = arg;

	assert_true(fixture->count < LINES_MAX);
	snprintf(fixture->lines[fixture->count++], sizeof(fixture->lines[0]), "%s", line);
}

/* The slots that a program's tail calls lead to, a bit each. */
static uint32_t slots_of(const struct filter_code *code)
{
	uint32_t slots = 0;

	for (size_t i = 0; i < code->insns.len; i++) {
		const struct bpf_insn *insn = &code->insns.data[i];

		if (insn->code == (BPF_JMP | BPF_CALL) && insn->imm == BPF_FUNC_tail_call)
			slots |= 1u << insn[-1].imm;
	}
	return slots;
}
#define SLOT(next) (1u << WAFFLE_NEXT_##next)

static void test_sites_that_can_not_match_stay_dormant(void **state)
{
	struct site_info event = site_like_copy("mark", WAFFLE_SITE_EVENT);
	struct fixture fixture;
	uint32_t class;

	(void)state;
	fixture_open(&fixture, "name == \"copy\" && kind == span", false);
	assert_true(fixture.plan->is_static);
	assert_false(fixture.plan->tracks);
	assert_int_equal(use_of(&fixture, &event, &class), PLAN_DORMANT);
	assert_int_equal(use_of(&fixture, &copy, &class), PLAN_MATCHES);
	assert_true(fixture.plan->classes.data[class].always);
	assert_int_equal(fixture.plan->classes.data[class].hit.insns.len, 0);
	assert_int_equal(fixture.plan->uses[PLAN_DORMANT], 1);
	assert_int_equal(fixture.plan->uses[PLAN_MATCHES], 1);
	fixture_close(&fixture);
}

static void test_end_of_a_pair_of_calls_is_armed_if_its_begin_may_match(void **state)
{
	static const struct {
		const char *filter;
		enum plan_use use;
	} asked[] = {
		{"kv.bytes > 1", PLAN_MATCHES},
		{"kv.name ~ \"a*\"", PLAN_MATCHES},
		{"!(kv.bytes > 1)", PLAN_MATCHES},
		{"name == \"copy\" && dur > 1us", PLAN_MATCHES},
		{"name == \"copy\"", PLAN_MATCHES},
		{"kind == event && kv.bytes > 1", PLAN_DORMANT},
		{"name == \"x\" && kv.bytes > 1", PLAN_DORMANT},
	};
	struct site_info end = site_like_copy("copy", WAFFLE_SITE_SPAN_END);

	end.call = true;
	end.key_count = 0;
	for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct fixture fixture;
		uint32_t class;

		fixture_open(&fixture, asked[i].filter, false);
		assert_int_equal(use_of(&fixture, &end, &class), asked[i].use);
		if (asked[i].use == PLAN_MATCHES)
			assert_true(fixture.plan->classes.data[class].always);
		fixture_close(&fixture);
	}
	(void)state;
}

static void test_only_what_sites_know_is_static(void **state)
{
	static const char *const dynamic[] = {"pid == 1",      "tid == 1",
					      "comm == \"a\"", "cpu == 1",
					      "dur > 1",       "depth == 0",
					      "kv.bytes == 1", "rate(10/s)",
					      "sample(1/2)",   "parent.name == \"copy\""};
	struct fixture fixture;

	(void)state;
	for (unsigned i = 0; i < sizeof(dynamic) / sizeof(*dynamic); i++) {
		fixture_open(&fixture, dynamic[i], false);
		assert_false(fixture.plan->is_static);
		fixture_close(&fixture);
	}
	fixture_open(&fixture, "name == \"copy\"", true);
	assert_false(fixture.plan->is_static);
	fixture_close(&fixture);
}

static void test_sites_with_equal_code_share_a_class(void **state)
{
	struct site_info send = site_like_copy("send", WAFFLE_SITE_SPAN);
	struct site_info event = site_like_copy("mark", WAFFLE_SITE_EVENT);
	struct site_info moved = site_like_copy("moved", WAFFLE_SITE_SPAN);
	struct fixture fixture;
	uint32_t first, second, third, fourth;

	(void)state;
	moved.keys[0] = copy.keys[1];
	moved.keys[1] = copy.keys[0];
	fixture_open(&fixture, "kv.bytes > 10", false);
	use_of(&fixture, &copy, &first);
	use_of(&fixture, &send, &second);
	use_of(&fixture, &event, &third);
	use_of(&fixture, &moved, &fourth);
	assert_int_equal(first, second);
	assert_int_equal(fixture.plan->classes.data[first].sites, 2);
	assert_int_not_equal(first, third);
	assert_int_not_equal(first, fourth);
	assert_int_equal(fixture.plan->classes.len, 3);
	fixture_close(&fixture);
}

static void test_verdicts_lead_where_the_kernel_side_expects_them(void **state)
{
	struct site_info event = site_like_copy("mark", WAFFLE_SITE_EVENT);
	const struct plan_class *classes;
	struct fixture fixture;
	uint32_t class;

	(void)state;
	fixture_open(&fixture, "kv.bytes > 10", false);
	use_of(&fixture, &copy, &class);
	assert_int_equal(slots_of(&fixture.plan->classes.data[class].hit), SLOT(KEEP));
	use_of(&fixture, &event, &class);
	assert_int_equal(slots_of(&fixture.plan->classes.data[class].hit), SLOT(HIT));
	fixture_close(&fixture);

	fixture_open(&fixture, "kv.bytes > 10 && dur > 5 || cpu == 0", false);
	use_of(&fixture, &copy, &class);
	classes = fixture.plan->classes.data;
	assert_true(classes[class].defers);
	assert_int_equal(slots_of(&classes[class].hit), SLOT(KEEP) | SLOT(DEFER));
	assert_int_equal(slots_of(&classes[class].end), SLOT(RELEASE) | SLOT(DISCARD));
	use_of(&fixture, &event, &class);
	assert_false(fixture.plan->classes.data[class].defers);
	fixture_close(&fixture);
}

static void test_children_and_parents_need_what_does_not_match(void **state)
{
	struct site_info event = site_like_copy("mark", WAFFLE_SITE_EVENT);
	struct site_info send = site_like_copy("send", WAFFLE_SITE_SPAN);
	struct fixture fixture;
	uint32_t class;

	(void)state;
	fixture_open(&fixture, "name == \"copy\" && depth > 0 && kv.bytes > 3", false);
	assert_true(fixture.plan->tracks);
	assert_int_equal(use_of(&fixture, &send, &class), PLAN_CONTEXT);
	assert_true(fixture.plan->classes.data[class].context);
	assert_int_equal(use_of(&fixture, &event, &class), PLAN_DORMANT);
	assert_int_equal(use_of(&fixture, &copy, &class), PLAN_MATCHES);
	assert_int_equal(slots_of(&fixture.plan->classes.data[class].hit),
			 SLOT(KEEP) | SLOT(REJECT));
	fixture_close(&fixture);

	fixture_open(&fixture, "name == \"copy\" && kv.bytes > 3", true);
	assert_int_equal(use_of(&fixture, &send, &class), PLAN_CONTEXT);
	assert_int_equal(use_of(&fixture, &event, &class), PLAN_CONTEXT);
	assert_false(fixture.plan->classes.data[class].is_span);
	fixture_close(&fixture);
}

static void test_names_of_parents_are_bits(void **state)
{
	struct site_info send = site_like_copy("send", WAFFLE_SITE_SPAN);
	struct fixture fixture;
	uint32_t first, second;

	(void)state;
	fixture_open(&fixture, "pid > 0 && (parent.name ~ \"c*\" || parent.name != \"copy\")",
		     false);
	use_of(&fixture, &copy, &first);
	use_of(&fixture, &send, &second);
	assert_int_not_equal(first, second);
	assert_int_equal(fixture.plan->classes.data[first].name_bits, 1 << 1);
	assert_int_equal(fixture.plan->classes.data[second].name_bits, 1 << 2);
	fixture_close(&fixture);
}

static void test_spans_are_deferred_by_their_longest_frame(void **state)
{
	struct site_info words = copy, three = copy;
	struct fixture fixture;
	uint32_t class;

	(void)state;
	words.key_count = WAFFLE_KEYS_MAX;
	for (unsigned i = 0; i < WAFFLE_KEYS_MAX; i++)
		words.keys[i] = copy.keys[0];
	three.key_count = 3;
	three.keys[0] = three.keys[2] = copy.keys[1];
	fixture_open(&fixture, "dur > 5", false);
	use_of(&fixture, &words, &class);
	assert_int_equal(fixture.plan->classes.data[class].deferred, WAFFLE_DEFERRED_SMALL);
	use_of(&fixture, &copy, &class);
	assert_int_equal(fixture.plan->classes.data[class].deferred, WAFFLE_DEFERRED_MEDIUM);
	use_of(&fixture, &three, &class);
	assert_int_equal(fixture.plan->classes.data[class].deferred, WAFFLE_DEFERRED_LARGE);
	assert_int_equal(fixture.plan->classes.len, 3);
	fixture_close(&fixture);
}

static void test_a_key_that_no_site_declares_is_warned_of(void **state)
{
	struct site_info send = site_like_copy("send", WAFFLE_SITE_SPAN);
	struct fixture fixture;
	uint32_t class;

	(void)state;
	fixture_open(&fixture,
		     "kv.byte > 1 || kv.byte > 2 || kv.zzz == 1 || kv.path > 3 || kv.bytes > 4",
		     false);
	use_of(&fixture, &copy, &class);
	use_of(&fixture, &send, &class);
	plan_warn(fixture.plan, line_keep, &fixture);
	assert_int_equal(fixture.count, 3);
	assert_string_equal(fixture.lines[0],
			    "no site declares the key 'byte'; did you mean bytes (of copy, send)");
	assert_string_equal(fixture.lines[1],
			    "no site declares the key 'zzz'; keys are: bytes (of copy, send), "
			    "path (of copy, send)");
	assert_string_equal(fixture.lines[2],
			    "'kv.path > 3' is never true: the key 'path' of copy is a string");
	fixture_close(&fixture);
}

static void test_names_and_parents_that_only_the_file_knows_are_warned_of(void **state)
{
	struct site_info launch = site_like_copy("launch", WAFFLE_SITE_EVENT);
	struct site_info named = site_like_copy("get", WAFFLE_SITE_SPAN);
	struct fixture fixture;
	uint32_t class;

	launch.call = named.call = true;
	launch.keys[0] = (struct site_key){WAFFLE_KEY_CODE, "kernel"};
	named.keys[0] = (struct site_key){WAFFLE_KEY_STR, "kernel"};
	fixture_open(&fixture, "kv.kernel ~ \"*a*\"", false);
	use_of(&fixture, &named, &class);
	plan_warn(fixture.plan, line_keep, &fixture);
	assert_int_equal(fixture.count, 0);
	use_of(&fixture, &launch, &class);
	plan_warn(fixture.plan, line_keep, &fixture);
	assert_int_equal(fixture.count, 1);
	assert_string_equal(fixture.lines[0],
			    "'kv.kernel ~ \"*a*\"' is never true there: the key 'kernel' of "
			    "launch is an address while it is recorded; filter the file to "
			    "compare its name");
	fixture_close(&fixture);
	fixture_open(&fixture, "depth == 0", false);
	plan_warn(fixture.plan, line_keep, &fixture);
	assert_int_equal(fixture.count, 0);
	use_of(&fixture, &named, &class);
	plan_warn(fixture.plan, line_keep, &fixture);
	assert_int_equal(fixture.count, 1);
	assert_string_equal(fixture.lines[0],
			    "depth and parent.name of calls are not known while they are recorded: "
			    "comparisons with them are false; filter the file instead");
	fixture_close(&fixture);
	fixture_open(&fixture, "depth == 0 && kv.kernel ~ \"*a*\"", false);
	fixture.plan->of_file = true;
	use_of(&fixture, &launch, &class);
	plan_warn(fixture.plan, line_keep, &fixture);
	assert_int_equal(fixture.count, 0);
	fixture_close(&fixture);
	(void)state;
}

static void test_children_and_traces_of_calls_that_only_the_file_knows_are_warned_of(void **state)
{
	static const struct {
		const char *filter;
		bool keep_children, of_file;
		const char *line; /* NULL: none */
	} rows[] = {
		{"name == \"copy\"", true, false,
		 "--keep-children: what span a call is in is not known while it is recorded: calls "
		 "are kept only if they match themselves; filter the file instead"},
		{"name == \"launch\" && kv.bytes > 1", true, false,
		 "--keep-children: what span a call is in is not known while it is recorded: calls "
		 "are kept only if they match themselves; filter the file instead"},
		{"name == \"launch\"", true, false, NULL},
		{"name == \"copy\"", false, false, NULL},
		{"name == \"copy\"", true, true, NULL},
		{"kind == event && sample(1/3)", false, false,
		 "sample(): the trace of a call is not known while it is recorded: "
		 "each call is sampled by itself; filter the file instead"},
		{"name == \"copy\" && sample(1/3)", false, false, NULL},
		{"kind == event && sample(1/3)", false, true, NULL},
	};
	struct site_info launch = site_like_copy("launch", WAFFLE_SITE_EVENT);

	(void)state;
	launch.call = true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture fixture;
		uint32_t class;

		fixture_open(&fixture, rows[i].filter, rows[i].keep_children);
		fixture.plan->of_file = rows[i].of_file;
		use_of(&fixture, &copy, &class);
		plan_warn(fixture.plan, line_keep, &fixture);
		assert_int_equal(fixture.count, 0); /* there is no call yet */
		use_of(&fixture, &launch, &class);
		plan_warn(fixture.plan, line_keep, &fixture);
		assert_int_equal(fixture.count, rows[i].line != NULL);
		if (rows[i].line)
			assert_string_equal(fixture.lines[0], rows[i].line);
		fixture_close(&fixture);
	}
}

static void test_more_sites_of_a_key_are_not_listed(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d", "a"};
	struct fixture fixture;
	uint32_t class;

	(void)state;
	fixture_open(&fixture, "kv.byte > 1", false);
	plan_warn(fixture.plan, line_keep, &fixture);
	assert_string_equal(fixture.lines[0],
			    "no site declares the key 'byte'; none of them has keys");
	for (unsigned i = 0; i < 5; i++) {
		struct site_info site = site_like_copy(names[i], WAFFLE_SITE_SPAN);

		use_of(&fixture, &site, &class);
	}
	plan_warn(fixture.plan, line_keep, &fixture);
	assert_string_equal(fixture.lines[1],
			    "no site declares the key 'byte'; did you mean bytes (of a, b, c, …)");
	fixture_close(&fixture);
}

/* 40 patterns of 250 bytes after a star exceed the verifier's limit. */
static void test_too_much_to_search_is_an_error_that_says_so(void **state)
{
	static char source[FILTER_SOURCE_MAX], pattern[241];
	struct error err = ERROR_INIT;
	struct fixture fixture;
	enum plan_use use;
	uint32_t class;
	size_t len = 0;

	(void)state;
	memset(pattern, 'x', sizeof(pattern) - 1);
	for (unsigned i = 0; i < 40; i++)
		len += (size_t)snprintf(source + len, sizeof(source) - len,
					"%skv.path ~ \"*%u%s*\"", i ? " || " : "", i, pattern);
	fixture_open(&fixture, source, false);
	assert_int_equal(plan_site(fixture.plan, &copy, &use, &class, &err), -E2BIG);
	assert_non_null(strstr(err.message, "site copy (a.c:1)"));
	assert_int_equal(fixture.plan->classes.len, 0);
	fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sites_that_can_not_match_stay_dormant),
		cmocka_unit_test(test_end_of_a_pair_of_calls_is_armed_if_its_begin_may_match),
		cmocka_unit_test(test_only_what_sites_know_is_static),
		cmocka_unit_test(test_sites_with_equal_code_share_a_class),
		cmocka_unit_test(test_verdicts_lead_where_the_kernel_side_expects_them),
		cmocka_unit_test(test_children_and_parents_need_what_does_not_match),
		cmocka_unit_test(test_names_of_parents_are_bits),
		cmocka_unit_test(test_spans_are_deferred_by_their_longest_frame),
		cmocka_unit_test(test_a_key_that_no_site_declares_is_warned_of),
		cmocka_unit_test(test_names_and_parents_that_only_the_file_knows_are_warned_of),
		cmocka_unit_test(
			test_children_and_traces_of_calls_that_only_the_file_knows_are_warned_of),
		cmocka_unit_test(test_more_sites_of_a_key_are_not_listed),
		cmocka_unit_test(test_too_much_to_search_is_an_error_that_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
