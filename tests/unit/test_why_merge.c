// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "analyze/why/why_merge.h"

enum { WORKER_A, WORKER_B, WRITER_1, WRITER_2, THREADS };

struct made {
	struct model model;
	struct model_thread threads[THREADS];
	struct why why;
};

/* Two workers, which wait for two writers of one name. */
static void make(struct made *made)
{
	*made = (struct made){.threads = {{.tid = 1, .comm = 7},
					  {.tid = 2, .comm = 7},
					  {.tid = 3, .comm = 8},
					  {.tid = 4, .comm = 8}}};
	made->model.threads.data = made->threads;
	made->model.threads.len = THREADS;
	made->why.model = &made->model;
}

static void add(struct made *made, enum why_cause cause, uint32_t thread, uint32_t object,
		uint64_t ns, enum why_grade grade)
{
	struct why_instance *last = &made->why.instances.data[made->why.instances.len - 1];
	struct why_part part = {.cause = cause,
				.grade = grade,
				.ns = ns,
				.stretches = 2,
				.thread = thread,
				.threads = 1,
				.object = object};

	assert_true(vec_push(&made->why.parts, part));
	last->part_count++;
	last->to_ts += ns;
	last->blocked_ns += ns;
}

static void add_instance(struct made *made, uint32_t thread)
{
	struct why_instance instance = {
		.span = MODEL_NONE, .thread = thread, .part = (uint32_t)made->why.parts.len};

	assert_true(vec_push(&made->why.instances, instance));
}

static void made_free(struct made *made)
{
	vec_free(&made->why.parts);
	vec_free(&made->why.instances);
}

static void test_causes_with_culprits_of_one_name_are_one(void **state)
{
	struct why_merged merged;
	struct made made;

	(void)state;
	make(&made);
	add_instance(&made, WORKER_A);
	add(&made, WHY_LOCK, WRITER_1, 5, 60, WHY_GRADE_CERTAIN);
	add(&made, WHY_SLEEP, WORKER_A, 0, 30, WHY_GRADE_CERTAIN);
	add_instance(&made, WORKER_B);
	add(&made, WHY_LOCK, WRITER_2, 5, 70, WHY_GRADE_LIKELY);
	add(&made, WHY_LOCK, WRITER_1, 6, 5, WHY_GRADE_CERTAIN);
	add(&made, WHY_SLEEP, WORKER_B, 0, 31, WHY_GRADE_CERTAIN);
	add(&made, WHY_UNKNOWN, MODEL_NONE, 0, 1, WHY_GRADE_UNKNOWN);
	why_merge(&merged, &made.why);
	assert_int_equal(merged.ns, 197);
	assert_int_equal(merged.blocked_ns, 197);
	assert_int_equal(merged.parts.len, 4);
	/* The lock with object 5, whose culprit with the most time is the second writer. */
	assert_int_equal(merged.parts.data[0].ns, 130);
	assert_int_equal(merged.parts.data[0].stretches, 4);
	assert_int_equal(merged.parts.data[0].threads, 2);
	assert_int_equal(merged.parts.data[0].thread, WRITER_2);
	assert_int_equal(merged.parts.data[0].grade, WHY_GRADE_LIKELY);
	/* Each worker's own sleep. */
	assert_int_equal(merged.parts.data[1].ns, 61);
	assert_true(merged.parts.data[1].own);
	assert_int_equal(merged.parts.data[1].grade, WHY_GRADE_CERTAIN);
	assert_int_equal(merged.parts.data[2].object, 6);
	assert_int_equal(merged.parts.data[3].thread, MODEL_NONE);
	why_merged_free(&merged);
	made_free(&made);
}

static void test_nothing_merges_to_nothing(void **state)
{
	struct why_merged merged;
	struct made made;

	(void)state;
	make(&made);
	why_merge(&merged, &made.why);
	assert_int_equal(merged.ns, 0);
	assert_int_equal(merged.parts.len, 0);
	why_merged_free(&merged);
	made_free(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes_with_culprits_of_one_name_are_one),
		cmocka_unit_test(test_nothing_merges_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
