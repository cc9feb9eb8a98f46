// SPDX-License-Identifier: Apache-2.0
/* The table of open spans that backtraces read: what it keeps, replaces and rejects. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "usdt/record/known_spans.h"

static struct known_span span_of(uint64_t id)
{
	struct known_span span = {.id = id, .parent = id - 1, .meta = "name\0file", .line = id * 3};

	span.around.count = id % KNOWN_FRAMES;
	return span;
}

static void assert_known(uint64_t id)
{
	struct known_span span, wanted = span_of(id);

	assert_true(known_spans_get(id, &span));
	assert_memory_equal(&span, &wanted, sizeof(span));
}

static void test_a_span_is_known_until_it_ends(void **state)
{
	struct known_span span = span_of(7);
	struct known_frames inside = {.count = 3}, got;

	(void)state;
	assert_false(known_spans_get(0, &span));
	assert_false(known_spans_get(7, &span));
	known_spans_add(&(struct known_span){0});
	assert_false(known_spans_get(0, &span));
	span = span_of(7);
	known_spans_add(&span);
	assert_known(7);
	assert_false(known_spans_get_inside(7, &got));
	known_spans_set_inside(7, &inside);
	assert_true(known_spans_get_inside(7, &got));
	assert_int_equal(got.count, 3);
	known_spans_remove(7);
	assert_false(known_spans_get(7, &span));
	assert_false(known_spans_get_inside(7, &got));
	/* What another span had inside is not that of this one. */
	span = span_of(7);
	known_spans_add(&span);
	known_spans_remove(8);
	assert_known(7);
	known_spans_remove(7);
}

static void test_a_full_table_forgets_the_oldest(void **state)
{
	struct known_span span;
	unsigned known = 0;

	(void)state;
	for (uint64_t id = 1; id <= 10000; id++) {
		span = span_of(id);
		known_spans_add(&span);
		assert_known(id);
	}
	for (uint64_t id = 1; id <= 10000; id++)
		known += known_spans_get(id, &span);
	assert_in_range(known, 1500, 2048);
	for (uint64_t id = 9500; id <= 10000; id++)
		assert_known(id);
	for (uint64_t id = 1; id <= 10000; id++)
		known_spans_remove(id);
}

static int stop;

static void *write_some(void *arg)
{
	uint64_t base = (uintptr_t)arg;

	for (uint64_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		struct known_span span = span_of(base + i % 5000);

		known_spans_add(&span);
		known_spans_set_inside(span.id, &span.around);
		if (i % 2)
			known_spans_remove(span.id);
	}
	return NULL;
}

static void test_what_is_being_written_is_never_half_read(void **state)
{
	pthread_t threads[2];
	uint64_t found = 0;

	(void)state;
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, write_some, (void *)(1 + i * 2500));
	for (uint64_t i = 0; i < 3000000 || (!found && i < 300000000); i++) {
		struct known_span span;
		struct known_frames inside;
		uint64_t id = 1 + i % 7500;

		if (known_spans_get(id, &span)) {
			struct known_span wanted = span_of(id);

			assert_memory_equal(&span, &wanted, sizeof(span));
			found++;
		}
		if (known_spans_get_inside(id, &inside))
			assert_int_equal(inside.count, id % KNOWN_FRAMES);
	}
	assert_true(found > 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_span_is_known_until_it_ends),
		cmocka_unit_test(test_a_full_table_forgets_the_oldest),
		cmocka_unit_test(test_what_is_being_written_is_never_half_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
