// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>

#include "analyze/why/parts/why_merge.h"
#include "util/memory.h"

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
	made->why.texts = strtab_make();
	for (unsigned i = 1; i < 8; i++) {
		char text[16];
		int len = snprintf(text, sizeof(text), "lock %u", i);

		assert_int_equal(strtab_put(made->why.texts, text, (size_t)len), i);
	}
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
	strtab_free(made->why.texts);
	vec_free(&made->why.parts);
	vec_free(&made->why.instances);
	vec_free(&made->why.places);
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
	made.why.parts.data[0].pool_wait_ns = 8;
	made.why.parts.data[2].pool_wait_ns = 9;
	why_merge(&merged, &made.why);
	assert_int_equal(merged.ns, 197);
	assert_int_equal(merged.blocked_ns, 197);
	assert_int_equal(merged.parts.len, 4);
	/* The lock with object 5, whose culprit with the most time is the second writer. */
	assert_int_equal(merged.parts.data[0].ns, 130);
	assert_int_equal(merged.parts.data[0].stretches, 4);
	assert_int_equal(merged.parts.data[0].pool_wait_ns, 17);
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

static void add_place(struct made *made, uint32_t place, uint32_t count, uint32_t within)
{
	struct why_part *last = &made->why.parts.data[made->why.parts.len - 1];
	struct sample_count counts = {place, count, within, within};

	if (!last->place_count++)
		last->place = (uint32_t)made->why.places.len;
	assert_true(vec_push(&made->why.places, counts));
}

static void test_samples_of_merged_causes_are_summed_up_by_place(void **state)
{
	static const struct sample_count expected[] = {{4, 12, 0, 0}, {3, 10, 0, 0}, {5, 0, 9, 9}};
	struct why_merged merged;
	struct made made;

	(void)state;
	make(&made);
	add_instance(&made, WORKER_A);
	add(&made, WHY_RUNNING, WORKER_A, 0, 60, WHY_GRADE_CERTAIN);
	add_place(&made, 3, 10, 0);
	add_place(&made, 4, 5, 0);
	add_place(&made, 5, 0, 2);
	add_instance(&made, WORKER_B);
	add(&made, WHY_SLEEP, WORKER_B, 0, 10, WHY_GRADE_CERTAIN);
	add(&made, WHY_RUNNING, WORKER_B, 0, 50, WHY_GRADE_CERTAIN);
	add_place(&made, 4, 7, 0);
	add_place(&made, 5, 0, 7);
	why_merge(&merged, &made.why);
	assert_int_equal(merged.parts.len, 2);
	assert_int_equal(merged.parts.data[0].ns, 110);
	assert_int_equal(merged.parts.data[0].place_count, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct sample_count *count =
			&merged.places.data[merged.parts.data[0].place + i];

		assert_int_equal(count->place, expected[i].place);
		assert_int_equal(count->count, expected[i].count);
		assert_int_equal(count->within, expected[i].within);
		assert_int_equal(count->depth, expected[i].depth);
	}
	assert_int_equal(merged.parts.data[1].place_count, 0);
	why_merged_free(&merged);
	made_free(&made);
}

static void test_neighbours_of_one_name_are_summed_up_over_all_instances(void **state)
{
	static const struct why_neighbour neighbours[] = {
		{WRITER_1, 30, 50}, {WORKER_A, 40, 60}, {WRITER_2, 20, 55}, {.bytes = 0}};
	struct why_merged merged;
	struct made made;

	(void)state;
	make(&made);
	for (unsigned i = 0; i < 4; i++) {
		add_instance(&made, WORKER_A);
		add(&made, WHY_DISK_READ, WORKER_A, 0, 250, WHY_GRADE_CERTAIN);
		made.why.parts.data[i].neighbour = neighbours[i];
	}
	why_merge(&merged, &made.why);
	assert_int_equal(merged.parts.len, 1);
	assert_int_equal(merged.parts.data[0].neighbour.thread, WRITER_1);
	assert_int_equal(merged.parts.data[0].neighbour.bytes, 50);
	assert_int_equal(merged.parts.data[0].neighbour.ns, 105);
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

static uint32_t socket_text(struct made *made, unsigned number, const char *server)
{
	char text[96];
	int len = snprintf(text, sizeof(text), "socket:[%u] (tcp 127.0.0.1:%u <-> %s)", number,
			   40000 + number, server);

	return strtab_put(made->why.texts, text, (size_t)len);
}

static void test_connections_of_several_instances_to_one_server_are_one(void **state)
{
	struct why_merged merged;
	struct made made;

	(void)state;
	make(&made);
	add_instance(&made, WORKER_A);
	add(&made, WHY_SOCKET, WRITER_1, socket_text(&made, 1, "127.0.0.1:80"), 60,
	    WHY_GRADE_LIKELY);
	add(&made, WHY_SOCKET, WRITER_1, socket_text(&made, 2, "127.0.0.1:81"), 9,
	    WHY_GRADE_LIKELY);
	add_instance(&made, WORKER_B);
	add(&made, WHY_SOCKET, WRITER_2, socket_text(&made, 3, "127.0.0.1:80"), 70,
	    WHY_GRADE_LIKELY);
	why_merge(&merged, &made.why);
	assert_int_equal(merged.parts.len, 2);
	assert_int_equal(merged.parts.data[0].ns, 130);
	assert_int_equal(merged.parts.data[0].connections, 2);
	assert_string_equal(strtab_get(made.why.texts, merged.parts.data[0].object),
			    "connections to 127.0.0.1:80 (tcp)");
	assert_int_equal(merged.parts.data[1].connections, 0);
	assert_string_equal(strtab_get(made.why.texts, merged.parts.data[1].object),
			    "socket:[2] (tcp 127.0.0.1:40002 <-> 127.0.0.1:81)");
	why_merged_free(&merged);
	made_free(&made);
}

static uint32_t pipe_text(struct made *made, unsigned number)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "pipe:[%u]", number);

	return strtab_put(made->why.texts, text, (size_t)len);
}

/* The second one has the most time. */
static void test_pipes_of_several_instances_are_one(void **state)
{
	struct why_merged merged;
	struct made made;

	(void)state;
	make(&made);
	add_instance(&made, WORKER_A);
	add(&made, WHY_PIPE, WRITER_1, pipe_text(&made, 1), 60, WHY_GRADE_LIKELY);
	add_instance(&made, WORKER_B);
	add(&made, WHY_PIPE, WRITER_2, pipe_text(&made, 2), 70, WHY_GRADE_LIKELY);
	add(&made, WHY_PIPE, WRITER_1, 1, 9, WHY_GRADE_LIKELY);
	why_merge(&merged, &made.why);
	assert_int_equal(merged.parts.len, 2);
	assert_int_equal(merged.parts.data[0].ns, 130);
	assert_int_equal(merged.parts.data[0].threads, 2);
	assert_string_equal(strtab_get(made.why.texts, merged.parts.data[0].object),
			    "pipe:[2] and 1 more");
	assert_int_equal(merged.parts.data[1].object, 1);
	why_merged_free(&merged);
	made_free(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes_with_culprits_of_one_name_are_one),
		cmocka_unit_test(test_samples_of_merged_causes_are_summed_up_by_place),
		cmocka_unit_test(test_neighbours_of_one_name_are_summed_up_over_all_instances),
		cmocka_unit_test(test_connections_of_several_instances_to_one_server_are_one),
		cmocka_unit_test(test_pipes_of_several_instances_are_one),
		cmocka_unit_test(test_nothing_merges_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
