// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/id_index.h"

#define COUNT 20000u

struct element {
	uint64_t id;
	uint32_t number, reserved;
};

static struct id_array array_of(const struct element *elements)
{
	return (struct id_array){elements, sizeof(*elements)};
}

/* Puts elements with the ids `first`, `first` + `step`, …, and finds these and no others. */
static void check_ids(uint64_t first, uint64_t step)
{
	struct element *elements = calloc(COUNT, sizeof(*elements));
	struct id_index index = {0};

	assert_non_null(elements);
	for (uint32_t i = 0; i < COUNT; i++) {
		elements[i] = (struct element){.id = first + i * step, .number = i};
		assert_int_equal(id_index_get(&index, array_of(elements), elements[i].id),
				 ID_INDEX_NONE);
		id_index_put(&index, array_of(elements), i);
	}
	assert_int_equal(index.len, COUNT);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(id_index_get(&index, array_of(elements), elements[i].id), i);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(
			id_index_get(&index, array_of(elements), first + (COUNT + i) * step),
			ID_INDEX_NONE);
	id_index_free(&index);
	free(elements);
}

static void test_ids_are_found_whatever_their_distance(void **state)
{
	(void)state;
	for (uint64_t step = 1; step; step *= 2)
		if (step * (2 * COUNT) / step == 2 * COUNT)
			check_ids(12345, step);
	check_ids(0, 0x9e3779b97f4a7c15);
	check_ids(UINT64_MAX, UINT64_MAX);
}

static void test_the_later_of_two_elements_with_one_id_is_found(void **state)
{
	struct element elements[] = {{.id = 7}, {.id = 8}, {.id = 7}};
	struct id_index index = {0};

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		id_index_put(&index, array_of(elements), i);
	assert_int_equal(index.len, 2);
	assert_int_equal(id_index_get(&index, array_of(elements), 7), 2);
	assert_int_equal(id_index_get(&index, array_of(elements), 8), 1);
	id_index_free(&index);
}

static void test_an_empty_index_finds_nothing(void **state)
{
	const struct id_index index = {0};

	(void)state;
	assert_int_equal(id_index_get(&index, array_of(NULL), 7), ID_INDEX_NONE);
}

/* Every third element is removed, and the others are reversed. */
static void test_elements_are_found_where_they_went(void **state)
{
	struct element *before = calloc(COUNT, sizeof(*before));
	struct element *after = calloc(COUNT, sizeof(*after));
	uint32_t *rank = calloc(COUNT, sizeof(*rank)), kept = 0;
	struct id_index index = {0};

	(void)state;
	assert_true(before && after && rank);
	for (uint32_t i = 0; i < COUNT; i++) {
		before[i].id = (uint64_t)i * i;
		id_index_put(&index, array_of(before), i);
	}
	for (uint32_t i = COUNT; i--;) {
		rank[i] = i % 3 ? kept++ : ID_INDEX_NONE;
		if (i % 3)
			after[rank[i]] = before[i];
	}
	id_index_renumber(&index, array_of(after), rank);
	assert_int_equal(index.len, kept);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(id_index_get(&index, array_of(after), before[i].id), rank[i]);
	id_index_free(&index);
	free(before);
	free(after);
	free(rank);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_are_found_whatever_their_distance),
		cmocka_unit_test(test_the_later_of_two_elements_with_one_id_is_found),
		cmocka_unit_test(test_an_empty_index_finds_nothing),
		cmocka_unit_test(test_elements_are_found_where_they_went),
	};

	return cmocka_run_group_tests_name("id_index", tests, NULL, NULL);
}
