// SPDX-License-Identifier: Apache-2.0
/* Finds the mapping at an address of a process after mappings have replaced others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "target/process/address_space.h"

#define PAGES 64

static bool map(struct mappings *space, uint64_t start, uint64_t end, uint64_t ino)
{
	char path[32];

	snprintf(path, sizeof(path), "/lib/%d", (int)ino);
	return address_space_map(space, &(struct mapping){.start = start,
							  .end = end,
							  .offset = start + 7,
							  .ino = ino,
							  .executable = true,
							  .path = path});
}

/* After dlclose() another library is often mapped at the same address. */
static void test_library_in_the_place_of_another_hides_it(void **state)
{
	struct mappings space = {0};

	(void)state;
	assert_true(map(&space, 0x1000, 0x4000, 1));
	assert_true(map(&space, 0x1000, 0x4000, 2));
	assert_int_equal(space.list.len, 1);
	assert_string_equal(address_space_at(&space, 0x1000)->path, "/lib/2");
	assert_string_equal(address_space_at(&space, 0x3fff)->path, "/lib/2");
	assert_null(address_space_at(&space, 0x4000));
	assert_null(address_space_at(&space, 0xfff));
	mappings_free(&space);
}

static void test_same_mapping_again_changes_nothing(void **state)
{
	struct mappings space = {0};
	const struct mapping *first;

	(void)state;
	assert_true(map(&space, 0x1000, 0x4000, 1));
	first = address_space_at(&space, 0x1000);
	assert_true(map(&space, 0x1000, 0x4000, 1));
	assert_ptr_equal(address_space_at(&space, 0x1000), first);
	mappings_free(&space);
}

/* Against one number for each page. */
static void test_space_agrees_with_a_table_of_pages(void **state)
{
	struct mappings space = {0};
	uint64_t pages[PAGES] = {0};
	uint32_t seed = 1;

	(void)state;
	for (uint64_t ino = 1; ino < 5000; ino++) {
		uint64_t from = (seed = seed * 1103515245 + 12345) >> 16, to;

		from %= PAGES;
		to = from + 1 + (seed >> 8 & 0xff) % (PAGES - from);
		assert_true(map(&space, from, to, ino));
		for (uint64_t i = from; i < to; i++)
			pages[i] = ino;
		for (uint64_t i = 0; i < PAGES; i++) {
			const struct mapping *at = address_space_at(&space, i);

			assert_int_equal(at ? at->ino : 0, pages[i]);
			if (at) /* its file's bytes are where they were */
				assert_int_equal(at->offset, at->start + 7);
		}
	}
	mappings_free(&space);
}

static void test_space_that_is_full_stays_as_it_was(void **state)
{
	struct mappings space = {0};

	(void)state;
	for (uint64_t i = 0; i < ADDRESS_SPACE_MAX; i++)
		assert_true(map(&space, 2 * i, 2 * i + 1, 1));
	assert_false(map(&space, 2 * ADDRESS_SPACE_MAX, 2 * ADDRESS_SPACE_MAX + 1, 1));
	assert_int_equal(space.list.len, ADDRESS_SPACE_MAX);
	assert_null(address_space_at(&space, 2 * ADDRESS_SPACE_MAX));
	mappings_free(&space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_in_the_place_of_another_hides_it),
		cmocka_unit_test(test_same_mapping_again_changes_nothing),
		cmocka_unit_test(test_space_agrees_with_a_table_of_pages),
		cmocka_unit_test(test_space_that_is_full_stays_as_it_was),
	};

	return cmocka_run_group_tests_name("address_space", tests, NULL, NULL);
}
