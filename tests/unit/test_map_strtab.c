// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "util/error.h"
#include "util/hash.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/search.h"
#include "util/strtab.h"
#include "util/vec.h"

/* ---- vec ---- */

static void test_vec_keeps_its_elements_while_it_grows(void **state)
{
	VEC(uint64_t) numbers = {0};

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		assert_true(vec_push(&numbers, i * i));
	assert_int_equal(numbers.len, 10000);
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(numbers.data[i], i * i);
	vec_free(&numbers);
	assert_null(numbers.data);
	assert_int_equal(numbers.len, 0);
	assert_true(vec_push(&numbers, 7)); /* usable again */
	assert_int_equal(numbers.data[0], 7);
	vec_free(&numbers);
}

static void test_vec_refuses_a_size_that_overflows_and_stays_as_it_was(void **state)
{
	VEC(uint64_t) numbers = {0};

	(void)state;
	assert_true(vec_push(&numbers, 42));
	assert_false(vec_reserve(&numbers, SIZE_MAX));
	assert_false(vec_reserve(&numbers, SIZE_MAX / 8));
	assert_int_equal(numbers.len, 1);
	assert_int_equal(numbers.data[0], 42);
	assert_true(vec_reserve(&numbers, 1000));
	assert_true(numbers.cap >= 1001);
	vec_free(&numbers);
}

static void test_vec_takes_structs_written_as_literals(void **state)
{
	VEC(struct map_slot) slots = {0};

	(void)state;
	assert_true(vec_push(&slots, (struct map_slot){.key = 1, .value = 2}));
	assert_int_equal(slots.data[0].key, 1);
	assert_int_equal(slots.data[0].value, 2);
	vec_free(&slots);
}

/* ---- search ---- */

static void test_lower_bound_agrees_with_a_walk_from_the_start(void **state)
{
	const uint32_t list[] = {2, 2, 3, 5, 5, 5, 9};

	(void)state;
	for (uint32_t count = 0; count <= sizeof(list) / sizeof(list[0]); count++)
		for (uint32_t wanted = 0; wanted <= 10; wanted++) {
			uint32_t first = 0, after = 0;

			while (first < count && list[first] < wanted)
				first++;
			while (after < count && list[after] <= wanted)
				after++;
			assert_int_equal(lower_bound(count, i, list[i] < wanted), first);
			assert_int_equal(lower_bound(count, i, list[i] <= wanted), after);
		}
	/* More than half of what 32 bits count: the sum of two indexes would overflow. */
	assert_int_equal(lower_bound(UINT32_MAX, i, i < UINT32_MAX - 1), UINT32_MAX - 1);
}

static void test_lower_bound_near_agrees_from_wherever_it_begins(void **state)
{
	uint64_t list[100];

	(void)state;
	for (size_t i = 0; i < 100; i++)
		list[i] = i / 3 * 2; /* some are equal, and some numbers are missing */
	for (size_t count = 0; count <= 100; count++)
		for (uint64_t wanted = 0; wanted <= 70; wanted++)
			for (size_t near = 0; near <= count + 1; near++)
				assert_int_equal(lower_bound_near(count, near, i, list[i] < wanted),
						 lower_bound(count, i, list[i] < wanted));
}

static void test_lower_bound_near_takes_few_steps_if_the_result_is_near(void **state)
{
	unsigned steps = 0;

	(void)state;
	for (size_t at = 1000; at < 2000; at++)
		assert_int_equal(lower_bound_near((size_t)1 << 40, at, i, (steps++, i < at + 3)),
				 at + 3);
	assert_true(steps <= 8 * 1000);
}

/* ---- map ---- */

static void test_map_finds_what_was_set_and_nothing_else(void **state)
{
	struct map map = {0};

	(void)state;
	assert_int_equal(map_get(&map, 0), MAP_NONE);
	assert_int_equal(map_remove(&map, 0), MAP_NONE);
	assert_true(map_set(&map, 0, 10));
	assert_true(map_set(&map, UINT64_MAX, 11));
	assert_int_equal(map_get(&map, 0), 10);
	assert_int_equal(map_get(&map, UINT64_MAX), 11);
	assert_int_equal(map_get(&map, 1), MAP_NONE);
	assert_true(map_set(&map, 0, 12));
	assert_int_equal(map_get(&map, 0), 12);
	assert_int_equal(map.len, 2);
	map_free(&map);
	assert_int_equal(map_get(&map, 0), MAP_NONE);
}

/* Sets and removes at random, against an array that is looked through. Keys that differ in high
 * bits only, in low bits only, and both. */
static void test_map_agrees_with_an_array_after_any_sets_and_removes(void **state)
{
	enum { KEYS = 512 };
	uint32_t values[KEYS];
	struct map map = {0};
	size_t len = 0;

	(void)state;
	memset(values, 0xff, sizeof(values));
	srand(1);
	for (unsigned step = 0; step < 200000; step++) {
		unsigned i = (unsigned)rand() % KEYS;
		uint64_t key = (uint64_t)(i % 16) << 60 | (uint64_t)(i / 16) * 4096;

		if (rand() % 2) {
			len += values[i] == MAP_NONE;
			values[i] = step;
			assert_true(map_set(&map, key, step));
		} else {
			len -= values[i] != MAP_NONE;
			assert_int_equal(map_remove(&map, key), values[i]);
			values[i] = MAP_NONE;
		}
		i = (unsigned)rand() % KEYS;
		key = (uint64_t)(i % 16) << 60 | (uint64_t)(i / 16) * 4096;
		assert_int_equal(map_get(&map, key), values[i]);
		assert_int_equal(map.len, len);
	}
	map_free(&map);
}

static double seconds_of(const uint64_t *keys, size_t count)
{
	struct map map = {0};
	struct timespec begin, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (size_t i = 0; i < count; i++)
		assert_true(map_set(&map, keys[i], (uint32_t)i));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_int_equal(map.len, count);
	map_free(&map);
	return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* A program chooses the ids of its spans, so it must not know what they are hashed to. */
static void test_no_keys_are_chosen_to_collide(void **state)
{
	enum { COUNT = 1 << 17 };
	uint64_t *chosen = calloc(COUNT, sizeof(*chosen)), *others = calloc(COUNT, sizeof(*others));

	(void)state;
	assert_true(chosen && others);
	for (uint64_t i = 0; i < COUNT; i++) {
		/* With a hash by a constant factor, 44 bits of these were equal. */
		uint64_t block = i << 44;

		chosen[i] = (block ^ block >> 32) * 8;
		others[i] = i;
	}
	assert_true(seconds_of(chosen, COUNT) < 200 * seconds_of(others, COUNT));
	free(chosen);
	free(others);
}

static void test_map_grows_to_many_keys(void **state)
{
	struct map map = {0};

	(void)state;
	for (uint32_t i = 0; i < 100000; i++)
		assert_true(map_set(&map, 0xabcdef0000000000ull + i, i));
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(map_get(&map, 0xabcdef0000000000ull + i), i);
	assert_true(map.cap >= 2 * map.len);
	map_free(&map);
}

/* ---- keymap ---- */

/* With this secret the hash of words is the xor of them, and of their length in bytes. */
static const struct hash_secret no_secret = {.factor = 1, .begin = 0};

static void test_keymap_tells_keys_of_one_hash_apart(void **state)
{
	const uint64_t keys[][2] = {{1, 7}, {7, 1}, {2, 4}, {4, 2}, {0, 6}};
	enum { COUNT = sizeof(keys) / sizeof(keys[0]) };

	(void)state;
	for (uint32_t removed = 0; removed < COUNT; removed++) {
		struct keymap map = {.secret = no_secret};

		for (uint32_t i = 0; i < COUNT; i++)
			assert_true(keymap_set(&map, keys[i], sizeof(keys[i]), i));
		assert_int_equal(map.heads.len, 1); /* they do collide */
		assert_int_equal(keymap_remove(&map, keys[removed], sizeof(keys[0])), removed);
		assert_int_equal(keymap_remove(&map, keys[removed], sizeof(keys[0])), MAP_NONE);
		for (uint32_t i = 0; i < COUNT; i++)
			assert_int_equal(keymap_get(&map, keys[i], sizeof(keys[i])),
					 i == removed ? MAP_NONE : i);
		assert_true(keymap_set(&map, keys[removed], sizeof(keys[0]), 100));
		assert_int_equal(keymap_get(&map, keys[removed], sizeof(keys[0])), 100);
		assert_int_equal(map.entries.len, COUNT); /* the free entry was used */
		keymap_free(&map);
	}
}

static void test_keymap_agrees_with_an_array_after_any_sets_and_removes(void **state)
{
	enum { KEYS = 512 };
	uint32_t values[KEYS], count = 0;
	struct keymap map = {.secret = no_secret};

	(void)state;
	memset(values, 0xff, sizeof(values));
	srand(1);
	for (uint32_t i = 0; i < 200000; i++) {
		uint32_t key = (uint32_t)rand() % KEYS;
		/* Few hashes, and lengths that are no multiple of a word. */
		unsigned char bytes[12] = {[0] = key & 0x1f, [8] = key & 0x1f, [9] = key >> 5};
		size_t len = 10 + key % 3;

		assert_int_equal(keymap_get(&map, bytes, len), values[key]);
		if (rand() % 3) {
			assert_true(keymap_set(&map, bytes, len, i));
			values[key] = i;
		} else {
			assert_int_equal(keymap_remove(&map, bytes, len), values[key]);
			values[key] = MAP_NONE;
		}
	}
	assert_true(map.entries.len <= KEYS);
	for (uint32_t key = 0; key < KEYS; key++)
		count += values[key] != MAP_NONE;
	assert_int_equal(map.len, count);
	keymap_free(&map);
}

static void test_keymap_tells_keys_of_different_lengths_apart(void **state)
{
	static const char zeros[20];
	struct keymap map = {0};

	(void)state;
	assert_int_equal(keymap_get(&map, zeros, 0), MAP_NONE);
	for (uint32_t len = 0; len <= sizeof(zeros); len++)
		assert_true(keymap_set(&map, zeros, len, len));
	for (uint32_t len = 0; len <= sizeof(zeros); len++)
		assert_int_equal(keymap_get(&map, zeros, len), len);
	keymap_free(&map);
}

/* A change of the highest bit alone passes through a product as it is, if the factor is odd. Two
 * of them would cancel each other for any secret, if only the low half of the product counted. */
static void test_words_that_cancel_each_other_have_different_hashes(void **state)
{
	struct hash_secret secret = hash_secret();
	uint64_t top = 1ull << 63;
	uint64_t a = hash_word(hash_word(secret.begin, 1, &secret), 2, &secret);
	uint64_t b = hash_word(hash_word(secret.begin, 1 ^ top, &secret), 2 ^ top, &secret);

	(void)state;
	assert_true(a != b);
}

/* ---- strtab ---- */

static void test_strtab_gives_a_string_one_number(void **state)
{
	struct strtab *tab = strtab_new();
	uint32_t step;

	(void)state;
	assert_non_null(tab);
	assert_int_equal(strtab_count(tab), 1);
	assert_int_equal(strtab_add(tab, "", 0), 0);
	step = strtab_add(tab, "step", 4);
	assert_int_equal(step, 1);
	assert_int_equal(strtab_add(tab, "steps", 5), 2);
	assert_int_equal(strtab_add(tab, "steps", 4), step);
	assert_string_equal(strtab_get(tab, step), "step");
	assert_int_equal(strtab_length(tab, step), 4);
	assert_string_equal(strtab_get(tab, 99), "");
	assert_int_equal(strtab_length(tab, 99), 0);
	assert_int_equal(strtab_count(tab), 3);
	strtab_free(tab);
	strtab_free(NULL);
}

static void test_strtab_keeps_any_bytes(void **state)
{
	struct strtab *tab = strtab_new();
	uint32_t first, second;

	(void)state;
	first = strtab_add(tab, "a\0b", 3);
	second = strtab_add(tab, "a\0c", 3);
	assert_int_not_equal(first, second);
	assert_int_equal(strtab_add(tab, "a\0b", 3), first);
	assert_memory_equal(strtab_get(tab, second), "a\0c", 4);
	strtab_free(tab);
}

static void test_strtab_pointers_stay_while_it_grows(void **state)
{
	struct strtab *tab = strtab_new();
	const char *pointers[5000];
	char text[32];

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "string %u", i);
		assert_int_equal(strtab_add(tab, text, strlen(text)), i + 1);
		pointers[i] = strtab_get(tab, i + 1);
	}
	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "string %u", i);
		assert_ptr_equal(strtab_get(tab, i + 1), pointers[i]);
		assert_string_equal(pointers[i], text);
		assert_int_equal(strtab_add(tab, text, strlen(text)), i + 1);
	}
	strtab_free(tab);
}

/* ---- error ---- */

/* Anybody can make strings that collide in FNV-1a, also from any other first hash with the same
 * lowest byte. In the keyed hash they do not collide. */
static void test_strings_that_were_made_to_collide_do_not(void **state)
{
	static const char a[] = "8yn0iYCKYHlIj4-BwPqk", b[] = "GReLUrM4wMqfg9yzV3KQ";

	(void)state;
	assert_true(hash_text(HASH_BEGIN, a) == hash_text(HASH_BEGIN, b));
	assert_true(hash_text(HASH_BEGIN ^ 0x5566778899aabb00, a) ==
		    hash_text(HASH_BEGIN ^ 0x5566778899aabb00, b));
	for (uint64_t i = 0; i < 256; i++) {
		const struct hash_secret secret = {.factor = 0x9e3779b97f4a7c15, .begin = i};

		assert_true(hash_keyed(secret.begin, a, strlen(a), &secret) !=
			    hash_keyed(secret.begin, b, strlen(b), &secret));
	}
	assert_true(hash_secret().begin == hash_secret().begin);
}

static void test_first_error_stays_and_takes_prefixes(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(error_set(&err, ENOENT, "pid %d: gone", 7), -ENOENT);
	assert_int_equal(error_set(&err, EIO, "other"), -EIO);
	assert_string_equal(err.message, "pid 7: gone");
	error_prefix(&err, "attach");
	assert_string_equal(err.message, "attach: pid 7: gone");
	assert_int_equal(error_set(NULL, EIO, "nobody asks"), -EIO);
}

static void test_long_error_is_cut_not_overrun(void **state)
{
	struct error err = ERROR_INIT;
	char text[2048];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	error_set(&err, EIO, "%s", text);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	error_prefix(&err, "report");
	assert_true(strlen(err.message) < sizeof(err.message));
	assert_memory_equal(err.message, "report: xxx", 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vec_keeps_its_elements_while_it_grows),
		cmocka_unit_test(test_vec_refuses_a_size_that_overflows_and_stays_as_it_was),
		cmocka_unit_test(test_vec_takes_structs_written_as_literals),
		cmocka_unit_test(test_lower_bound_agrees_with_a_walk_from_the_start),
		cmocka_unit_test(test_lower_bound_near_agrees_from_wherever_it_begins),
		cmocka_unit_test(test_lower_bound_near_takes_few_steps_if_the_result_is_near),
		cmocka_unit_test(test_map_finds_what_was_set_and_nothing_else),
		cmocka_unit_test(test_map_agrees_with_an_array_after_any_sets_and_removes),
		cmocka_unit_test(test_map_grows_to_many_keys),
		cmocka_unit_test(test_no_keys_are_chosen_to_collide),
		cmocka_unit_test(test_keymap_tells_keys_of_one_hash_apart),
		cmocka_unit_test(test_keymap_agrees_with_an_array_after_any_sets_and_removes),
		cmocka_unit_test(test_keymap_tells_keys_of_different_lengths_apart),
		cmocka_unit_test(test_words_that_cancel_each_other_have_different_hashes),
		cmocka_unit_test(test_strtab_gives_a_string_one_number),
		cmocka_unit_test(test_strtab_keeps_any_bytes),
		cmocka_unit_test(test_strtab_pointers_stay_while_it_grows),
		cmocka_unit_test(test_strings_that_were_made_to_collide_do_not),
		cmocka_unit_test(test_first_error_stays_and_takes_prefixes),
		cmocka_unit_test(test_long_error_is_cut_not_overrun),
	};

	return cmocka_run_group_tests_name("map_strtab", tests, NULL, NULL);
}
