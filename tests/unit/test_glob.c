// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "util/glob.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct glob *make(const char *pattern)
{
	size_t at = 0;
	struct glob *glob = glob_new(pattern, strlen(pattern), &at);

	assert_non_null(glob);
	assert_int_equal(at, strlen(pattern));
	return glob;
}

static bool matches(const char *pattern, const char *text)
{
	struct glob *glob = make(pattern);
	bool result = glob_matches(glob, text, strlen(text));

	glob_free(glob);
	return result;
}

static void test_whole_text_has_to_match(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool result;
	} samples[] = {
		{"", "", true},
		{"", "a", false},
		{"abc", "abc", true},
		{"abc", "ab", false},
		{"abc", "abcd", false},
		{"abc", "ABC", false},
		{"*", "", true},
		{"*", "any/thing", true},
		{"nccl*", "ncclAllReduce", true},
		{"nccl*", "nccl", true},
		{"nccl*", "ncc", false},
		{"*.so", "libfoo.so", true},
		{"*.so", "libfoo.so.1", false},
		{"*a*b*", "xaxbx", true},
		{"*a*b*", "xbxax", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"*ab", "aab", true},
		{"*aab*c", "aaabxaabcc", true},
		{"?", "", false},
		{"?", "x", true},
		{"?", "xy", false},
		{"??*", "x", false},
		{"*??", "xyz", true},
		{"?*?", "x", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		if (matches(samples[i].pattern, samples[i].text) != samples[i].result)
			fail_msg("'%s' and '%s'", samples[i].pattern, samples[i].text);
	}
}

static void test_set_is_members_ranges_and_their_opposite(void **state)
{
	static const struct {
		const char *pattern, *yes, *no;
	} samples[] = {
		{"[abc]", "abc", "dABC-]["},   {"[a-c]", "abc", "d-"},
		{"[a-cx-z]", "abcxyz", "dw-"}, {"[!a-c]", "d!-\x80\xff", "abc"},
		{"[a!]", "a!", "b"},           {"[]a]", "]a", "[b"},
		{"[!]a]", "b[", "]a"},         {"[-a]", "-a", "b"},
		{"[a-]", "-a", "b"},           {"[a-c-e]", "abc-e", "d"},
		{"[\\]]", "]", "\\"},          {"[\\\\]", "\\", "]"},
		{"[a\\-c]", "a-c", "b"},       {"[*?]", "*?", "a"},
		{"[^a]", "^a", "b"},           {"[\x80-\xff]", "\x80\xc3\xff", "a"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		struct glob *glob = make(samples[i].pattern);

		assert_int_equal(glob->len, 1);
		for (const char *c = samples[i].yes; *c; c++)
			if (!glob_matches(glob, c, 1))
				fail_msg("%s misses %c", samples[i].pattern, *c);
		for (const char *c = samples[i].no; *c; c++)
			if (glob_matches(glob, c, 1))
				fail_msg("%s takes %c", samples[i].pattern, *c);
		glob_free(glob);
	}
}

static void test_backslash_takes_the_next_byte_as_it_is(void **state)
{
	(void)state;
	assert_true(matches("\\*", "*"));
	assert_false(matches("\\*", "a"));
	assert_true(matches("a\\?b", "a?b"));
	assert_false(matches("a\\?b", "axb"));
	assert_true(matches("\\[a]", "[a]"));
	assert_true(matches("\\\\*", "\\home"));
	assert_true(matches("\\a", "a"));
}

static void test_bytes_are_compared_not_characters(void **state)
{
	struct glob *any = make("a?b");

	(void)state;
	assert_false(matches("?", "ö"));
	assert_true(matches("??", "ö"));
	assert_true(matches("gr*e", "größe"));
	/* A NUL is a byte as others. */
	assert_true(glob_matches(any, "a\0b", 3));
	assert_false(glob_matches(any, "a\0c", 3));
	glob_free(any);
}

static void test_stars_never_stand_beside_each_other(void **state)
{
	struct glob *glob = make("a***b*?**");

	(void)state;
	assert_int_equal(glob->len, 6);
	assert_int_equal(glob->tokens[0].type, GLOB_BYTE);
	assert_int_equal(glob->tokens[0].byte, 'a');
	assert_int_equal(glob->tokens[1].type, GLOB_STAR);
	assert_int_equal(glob->tokens[2].byte, 'b');
	assert_int_equal(glob->tokens[3].type, GLOB_STAR);
	assert_int_equal(glob->tokens[4].type, GLOB_ANY_ONE);
	assert_int_equal(glob->tokens[5].type, GLOB_STAR);
	assert_true(glob_token_takes(&glob->tokens[0], 'a'));
	assert_false(glob_token_takes(&glob->tokens[0], 'b'));
	assert_true(glob_token_takes(&glob->tokens[4], 0));
	glob_free(glob);
}

static void test_fault_of_a_pattern_has_its_place(void **state)
{
	static const struct {
		const char *pattern;
		size_t at;
	} samples[] = {
		{"[", 0},       {"ab[", 2},   {"ab[cd", 2}, {"[]", 0},      {"[!]", 0},
		{"[a\\", 0},    {"[a-", 0},   {"ab\\", 2},  {"[a-z]\\", 5}, {"[z-a]", 2},
		{"x[ac-b]", 4}, {"[a\\]", 0}, {"[a-\\", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		size_t at = 99;

		assert_null(glob_new(samples[i].pattern, strlen(samples[i].pattern), &at));
		if (at != samples[i].at)
			fail_msg("'%s': at %zu", samples[i].pattern, at);
	}
}

/* A matcher that tries all ways would take 2^60 steps. */
static void test_many_stars_take_no_time(void **state)
{
	char pattern[256], text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(pattern) - 1; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[sizeof(pattern) - 2] = 'b';
	pattern[sizeof(pattern) - 1] = '\0';
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(matches(pattern, text));
}

/* Does the same by trying all ways. */
static bool slow_match(const struct glob *glob, size_t token, const char *text, size_t len)
{
	if (token == glob->len)
		return !len;
	if (glob->tokens[token].type == GLOB_STAR) {
		for (size_t taken = 0; taken <= len; taken++)
			if (slow_match(glob, token + 1, text + taken, len - taken))
				return true;
		return false;
	}
	return len && glob_token_takes(&glob->tokens[token], (unsigned char)*text) &&
	       slow_match(glob, token + 1, text + 1, len - 1);
}

static void test_every_short_pattern_matches_as_trying_all_ways_does(void **state)
{
	static const char letters[] = "ab*?";
	char pattern[7], text[7];

	(void)state;
	for (unsigned number = 0; number < 4096; number++) {
		struct glob *glob;

		for (unsigned i = 0; i < 6; i++)
			pattern[i] = letters[number >> (2 * i) & 3];
		pattern[6] = '\0';
		glob = make(pattern);
		for (unsigned bits = 0; bits < 128; bits++) {
			size_t len = 0;

			/* Below its highest bit: the letters. */
			for (unsigned left = bits; left > 1; left >>= 1)
				text[len++] = left & 1 ? 'a' : 'b';
			if (glob_matches(glob, text, len) != slow_match(glob, 0, text, len))
				fail_msg("'%s' and '%.*s'", pattern, (int)len, text);
		}
		glob_free(glob);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_text_has_to_match),
		cmocka_unit_test(test_set_is_members_ranges_and_their_opposite),
		cmocka_unit_test(test_backslash_takes_the_next_byte_as_it_is),
		cmocka_unit_test(test_bytes_are_compared_not_characters),
		cmocka_unit_test(test_stars_never_stand_beside_each_other),
		cmocka_unit_test(test_fault_of_a_pattern_has_its_place),
		cmocka_unit_test(test_many_stars_take_no_time),
		cmocka_unit_test(test_every_short_pattern_matches_as_trying_all_ways_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
