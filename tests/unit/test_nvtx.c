// SPDX-License-Identifier: Apache-2.0
/* Texts, domains and categories of NVTX, and the search for its function pointers. What becomes of
 * ranges is tested by tests/integration/test_nvtx.py. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "usdt/gpu/nvtx_find.h"
#include "usdt/gpu/nvtx_text.h"

/* ---- in place of libwaffle ---- */

static struct waffle_name_spec last;
static char last_keys[128];
static unsigned names_made;

waffle_name_t *waffle_name(const struct waffle_name_spec *spec)
{
	static waffle_name_t made[64];

	last = *spec;
	last_keys[0] = '\0';
	for (unsigned i = 0; i < spec->key_count; i++) {
		strcat(last_keys, spec->keys[i].name);
		strcat(last_keys, " ");
	}
	return &made[names_made++ % 64];
}

/* ---- texts ---- */

static void test_same_text_is_kept_once(void **state)
{
	char copy[] = "a range";
	struct nvtx_text *text = nvtx_text_of("a range");

	(void)state;
	assert_non_null(text);
	assert_ptr_equal(nvtx_text_of(copy), text);
	assert_ptr_not_equal(nvtx_text_of("a range "), text);
	assert_string_equal(nvtx_text_string(text), "a range");
	assert_null(nvtx_text_of(NULL));
	assert_non_null(nvtx_text_of(""));
}

static void test_long_text_is_cut_between_characters(void **state)
{
	char text[NVTX_TEXT_BYTES + 8];

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text + NVTX_TEXT_BYTES - 1, "\u00e4", 2);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(strlen(nvtx_text_string(nvtx_text_of(text))), NVTX_TEXT_BYTES - 1);
}

static void test_wide_text_becomes_utf8(void **state)
{
	const wchar_t odd[] = {'a', 0xd800, 0x110000, (wchar_t)0xffffffff, 0x1f600, 0};
	char narrow[64], small[4];

	(void)state;
	nvtx_text_narrow(narrow, sizeof(narrow), L"\u00e4\u20ac");
	assert_string_equal(narrow, "\u00e4\u20ac");
	nvtx_text_narrow(narrow, sizeof(narrow), odd);
	assert_string_equal(narrow, "a\ufffd\ufffd\ufffd\U0001f600");
	nvtx_text_narrow(small, sizeof(small), L"ab\u20ac");
	assert_string_equal(small, "ab");
	nvtx_text_narrow(small, sizeof(small), NULL);
	assert_string_equal(small, "");
}

static void test_only_our_handles_are_texts(void **state)
{
	struct nvtx_text *text = nvtx_text_of("registered");

	(void)state;
	assert_ptr_equal(nvtx_text_of_handle(text), text);
	assert_null(nvtx_text_of_handle((char *)text + 8));
	assert_null(nvtx_text_of_handle(NULL));
	assert_null(nvtx_text_of_handle(state));
	assert_null(nvtx_text_of_handle((void *)(uintptr_t)-8));
}

static void test_name_has_the_keys_that_apply(void **state)
{
	struct nvtx_text *text = nvtx_text_of("step");
	waffle_name_t *name = nvtx_name(text, true, NVTX_KEY_DOMAIN | NVTX_KEY_PAYLOAD);

	(void)state;
	assert_string_equal(last_keys, "domain payload ");
	assert_string_equal(last.name, "step");
	assert_string_equal(last.category, "nvtx");
	assert_int_equal(last.kind, WAFFLE_SITE_SPAN);
	assert_ptr_equal(nvtx_name(text, true, NVTX_KEY_DOMAIN | NVTX_KEY_PAYLOAD), name);
	assert_ptr_not_equal(nvtx_name(text, false, 0), name);
	assert_int_equal(last.kind, WAFFLE_SITE_EVENT);
}

/* ---- domains ---- */

static void test_domain_has_a_number_and_its_own_categories(void **state)
{
	const void *one = nvtx_domain("one"), *two = nvtx_domain("two");
	unsigned first = nvtx_domain_number(one), second = nvtx_domain_number(two);

	(void)state;
	assert_int_not_equal(first, second);
	assert_ptr_equal(nvtx_domain("one"), one);
	assert_string_equal(nvtx_domain_name(second), "two");
	assert_int_equal(nvtx_domain_number(NULL), 0);
	assert_int_equal(nvtx_domain_number((const char *)one + 1), 0);
	assert_int_equal(nvtx_domain_number(state), 0);
	nvtx_category_set(first, 7, "seven");
	nvtx_category_set(first, 7, "other seven");
	nvtx_category_set(0, 7, "seven of none");
	assert_string_equal(nvtx_category_name(first, 7), "other seven");
	assert_string_equal(nvtx_category_name(0, 7), "seven of none");
	assert_null(nvtx_category_name(second, 7));
}

static void test_categories_have_a_limit(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 2 * NVTX_CATEGORIES_MAX; i++)
		nvtx_category_set(9, i, "many");
	assert_string_equal(nvtx_category_name(9, 1), "many");
	assert_null(nvtx_category_name(9, 2 * NVTX_CATEGORIES_MAX));
}

static void test_texts_have_a_limit(void **state)
{
	char text[32];
	unsigned kept = 0;

	(void)state;
	for (unsigned i = 0; i < 2 * NVTX_TEXTS_MAX; i++) {
		snprintf(text, sizeof(text), "text %u", i);
		kept += nvtx_text_of(text) != NULL;
	}
	assert_true(kept > NVTX_TEXTS_MAX - 100 && kept <= NVTX_TEXTS_MAX);
	assert_non_null(nvtx_text_of("text 0")); /* those that are kept are still found */
	nvtx_name(NULL, true, NVTX_KEY_CATEGORY);
	assert_string_equal(last.name, "nvtx");
	assert_string_equal(last_keys, "category message ");
}

/* ---- the search ---- */

/* As NVTX has it: pointers to functions, and tables of addresses of them. */
struct globals {
	uint32_t state;
	char other[NVTX_AT_FUNCTIONS - 4];
	void *functions[(NVTX_AT_CORE - NVTX_AT_FUNCTIONS) / 8];
	void *core[NVTX_CORE_COUNT];
	void *between[(NVTX_AT_CORE2 - NVTX_AT_CORE) / 8 - NVTX_CORE_COUNT];
	void *core2[NVTX_CORE2_COUNT];
	void *rest[(NVTX_GLOBALS_BYTES - NVTX_AT_CORE2) / 8 - NVTX_CORE2_COUNT];
};
_Static_assert(sizeof(struct globals) == NVTX_GLOBALS_BYTES, "the layout of NVTX");

/* In the file's data, where the search looks. */
static struct globals own = {.state = 77};

static void globals_fill(struct globals *globals)
{
	for (unsigned i = 1; i < NVTX_CORE_COUNT; i++)
		globals->core[i] = &globals->functions[i - 1];
	for (unsigned i = 1; i < NVTX_CORE2_COUNT; i++)
		globals->core2[i] =
			&globals->functions[(NVTX_AT_DOMAIN_FUNCTIONS - NVTX_AT_FUNCTIONS) / 8 + i -
					    1];
}

static void count_own(char *globals, void *arg)
{
	*(unsigned *)arg += globals == (char *)&own;
}

static void test_structure_in_an_object_is_found(void **state)
{
	static struct nvtx_found found;
	unsigned count = 0, first;

	(void)state;
	if (nvtx_find(&found) == -ENOSYS)
		return; /* an emulator that can't read memory that way */
	first = found.count;
	globals_fill(&own);
	assert_int_equal(nvtx_find(&found), 0);
	assert_int_equal(found.count, first + 1);
	nvtx_found_each(&found, count_own, &count);
	assert_int_equal(count, 1);
	own.core[3] = NULL; /* it is none any more */
	nvtx_found_each(&found, count_own, &count);
	assert_int_equal(count, 1);
	assert_false(nvtx_find_is_old(&found));
}

static void test_structure_with_a_foreign_pointer_is_none(void **state)
{
	struct globals globals;
	uint64_t at = (uintptr_t)&globals;

	(void)state;
	for (unsigned i = 0; i < sizeof(globals) / 8; i++) {
		bool in_table =
			(i >= NVTX_AT_CORE / 8 && i < NVTX_AT_CORE / 8 + NVTX_CORE_COUNT) ||
			(i >= NVTX_AT_CORE2 / 8 && i < NVTX_AT_CORE2 / 8 + NVTX_CORE2_COUNT);

		memset(&globals, 0, sizeof(globals));
		globals_fill(&globals);
		assert_true(nvtx_globals_match(&globals, at));
		((uint64_t *)&globals)[i] = at + NVTX_AT_CORE; /* one behind the functions */
		assert_int_equal(nvtx_globals_match(&globals, at), !in_table);
		assert_false(nvtx_globals_match(&globals, at + 8));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_text_is_kept_once),
		cmocka_unit_test(test_long_text_is_cut_between_characters),
		cmocka_unit_test(test_wide_text_becomes_utf8),
		cmocka_unit_test(test_only_our_handles_are_texts),
		cmocka_unit_test(test_name_has_the_keys_that_apply),
		cmocka_unit_test(test_domain_has_a_number_and_its_own_categories),
		cmocka_unit_test(test_categories_have_a_limit),
		cmocka_unit_test(test_texts_have_a_limit),
		cmocka_unit_test(test_structure_in_an_object_is_found),
		cmocka_unit_test(test_structure_with_a_foreign_pointer_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
