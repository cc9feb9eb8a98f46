// SPDX-License-Identifier: Apache-2.0
/* Streams in capture, whose calls make a graph: captured
 * work does not run, so nobody waits for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "gpu_model.h"

#define UNSUPPORTED 900
#define INVALIDATED 901
#define UNMATCHED 903
#define NO_RESULT UINT64_MAX

#define launch(capture, ts, id, stream)                                                            \
	call_hit(capture, ts, 20, CALL_LAUNCH, id, 0x9000, 1, 1, stream)

/* A call that takes 1 ns, in a process. */
static void returns_in(struct capture *capture, uint32_t pid, uint64_t ts, uint32_t site,
		       uint64_t id, uint64_t stream, uint64_t result)
{
	uint32_t tid = pid == CAPTURE_PID ? 20 : pid;

	call_hit_in(capture, pid, ts, tid, site, id, 1, &stream);
	if (result != NO_RESULT)
		call_return_in(capture, pid, ts + 1, tid, site, id, 1, &result);
}

/* Its id is its time. */
static void begin(struct capture *capture, uint64_t ts, uint64_t stream, uint64_t result)
{
	returns_in(capture, CAPTURE_PID, ts, CALL_CAPTURE_BEGIN, ts, stream, result);
}

static void end(struct capture *capture, uint64_t ts, uint64_t stream, uint64_t result)
{
	returns_in(capture, CAPTURE_PID, ts, CALL_CAPTURE_END, ts, stream, result);
}

static void syncs(struct capture *capture, uint64_t ts, uint64_t id, uint64_t stream)
{
	returns_in(capture, CAPTURE_PID, ts, CALL_SYNC, id, stream, 0);
}

/* Checks the operations that a span waits for, by their ids, latest first. They are linked to it.
 */
#define check_awaited(model, gpu, span, ...)                                                       \
	check_ops(model, gpu, span, sizeof((const int[]){0, ##__VA_ARGS__}) / sizeof(int) - 1,     \
		  (const int[]){0, ##__VA_ARGS__} + 1)

static void check_ops(const struct model *model, const struct model_gpu *gpu, uint64_t span,
		      size_t count, const int *ids)
{
	struct model_gpu_awaited found = {0};

	model_gpu_awaited(gpu, model_span_find(model, span), &found);
	assert_int_equal(found.ops.len, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(op_id(model, &found.ops.data[i]), ids[i]);
		assert_int_equal(links_between(model, span, (uint64_t)ids[i]), 1);
	}
	vec_free(&found.ops);
}

/* No link begins or ends there. */
static void check_unlinked(const struct model *model, uint64_t id)
{
	for (size_t i = 0; i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];

		assert_int_not_equal(link->to_id, id);
		assert_int_not_equal(id_of(model, link->from_kind, link->from), id);
	}
}

static void test_what_a_graph_is_made_of_is_not_waited_for(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 1, 0xa);
	begin(&capture, 2010, 0xa, 0);
	launch(&capture, 2020, 2, 0xa);
	call_span(&capture, 2030, 2031, 20, CALL_COPY_ASYNC, 3, 64, HTOD, 0xa);
	call_span(&capture, 2040, 2041, 20, CALL_ALL_REDUCE, 4, 64, 7, 0xc0, 0, 2, 5, 0xa);
	call_hit(&capture, 2050, 20, CALL_RECORD, 5, 0xe, 0xa);
	launch(&capture, 2060, 6, 0xb); /* another stream works on */
	end(&capture, 2070, 0xa, 0);
	syncs(&capture, 2080, 7, 0xa);
	syncs(&capture, 2090, 8, 0xb);
	launch(&capture, 2100, 9, 0xa);
	syncs(&capture, 2110, 10, 0xa);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 7, 1);
	check_awaited(model, gpu, 8, 6);
	check_awaited(model, gpu, 10, 9);
	for (uint64_t id = 2; id <= 5; id++)
		check_unlinked(model, id);
	assert_int_equal(comm_count(model, gpu), 0);
	gpu_free(gpu, &capture);
}

static void test_streams_that_join_by_an_event_take_part_until_the_end(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 1, 0xa);
	launch(&capture, 2001, 2, 0xb);
	launch(&capture, 2002, 3, 0xc);
	begin(&capture, 2010, 0xa, 0);
	call_hit(&capture, 2020, 20, CALL_RECORD, 4, 0xe1, 0xa);
	call_hit(&capture, 2030, 20, CALL_WAIT, 5, 0xb, 0xe1);
	launch(&capture, 2040, 6, 0xb);
	/* And by the one that has joined, a third. */
	call_hit(&capture, 2050, 20, CALL_RECORD, 7, 0xe2, 0xb);
	call_hit(&capture, 2060, 20, CALL_WAIT, 8, 0xc, 0xe2);
	launch(&capture, 2070, 9, 0xc);
	end(&capture, 2080, 0xb, UNMATCHED); /* not the one that it was begun on */
	launch(&capture, 2090, 10, 0xb);
	end(&capture, 2100, 0xa, 0);
	syncs(&capture, 2110, 11, 0xb);
	syncs(&capture, 2120, 12, 0xc);
	launch(&capture, 2130, 13, 0xc);
	/* The event was none; recorded again, it is one. */
	call_hit(&capture, 2140, 20, CALL_RECORD, 14, 0xe1, 0xc);
	call_hit(&capture, 2150, 20, CALL_WAIT, 15, 0xa, 0xe1);
	syncs(&capture, 2160, 16, 0xa);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 11, 2);
	check_awaited(model, gpu, 12, 3);
	check_awaited(model, gpu, 16, 15, 1);
	assert_int_equal(links_between(model, 15, 14), 1);
	for (uint64_t id = 4; id <= 10; id++)
		check_unlinked(model, id);
	gpu_free(gpu, &capture);
}

static void test_graphs_of_several_streams_and_processes_are_apart(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;
	const uint64_t words[] = {0x9000, 1, 1, 0xa}, stream = 0xa;

	(void)state;
	calls_begin(&capture);
	begin(&capture, 2000, 0xa, 0);
	begin(&capture, 2010, 0xb, 0);
	launch(&capture, 2020, 1, 0xa);
	/* The same handle in another process. */
	call_hit_in(&capture, 70, 2030, 70, CALL_LAUNCH, 2, 4, words);
	call_hit_in(&capture, 70, 2040, 70, CALL_SYNC, 3, 1, &stream);
	call_return_in(&capture, 70, 2041, 70, CALL_SYNC, 3, 0, NULL);
	end(&capture, 2050, 0xa, 0);
	launch(&capture, 2060, 4, 0xa);
	launch(&capture, 2070, 5, 0xb);
	syncs(&capture, 2080, 6, 0xa);
	end(&capture, 2090, 0xb, 0);
	syncs(&capture, 2100, 7, 0xb);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 3, 2);
	check_awaited(model, gpu, 6, 4);
	check_awaited(model, gpu, 7);
	check_unlinked(model, 1);
	check_unlinked(model, 5);
	gpu_free(gpu, &capture);
}

static void test_begin_that_failed_begins_nothing_and_an_end_that_failed_ends_it(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	begin(&capture, 2000, 0xa, UNSUPPORTED);
	launch(&capture, 2010, 1, 0xa);
	syncs(&capture, 2020, 2, 0xa);
	begin(&capture, 2030, 0xa, 0);
	launch(&capture, 2040, 3, 0xa);
	end(&capture, 2050, 0xa, INVALIDATED);
	launch(&capture, 2060, 4, 0xa);
	syncs(&capture, 2070, 5, 0xa);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 2, 1);
	check_awaited(model, gpu, 5, 4);
	check_unlinked(model, 3);
	gpu_free(gpu, &capture);
}

/* A synchronisation of such a stream fails: one that does not is after the end. */
static void test_graph_whose_end_is_missing_ends_when_its_stream_was_waited_for(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	begin(&capture, 2000, 0xa, 0);
	launch(&capture, 2010, 1, 0xa);
	returns_in(&capture, CAPTURE_PID, 2020, CALL_SYNC, 2, 0xa, UNSUPPORTED);
	launch(&capture, 2030, 3, 0xa);
	syncs(&capture, 2040, 4, 0xa);
	launch(&capture, 2050, 5, 0xa);
	syncs(&capture, 2060, 6, 0xa);
	/* Made again, and begun again without an end: another one of the same handle. */
	begin(&capture, 2070, 0xa, 0);
	call_hit(&capture, 2080, 20, CALL_STREAM_CREATE, 7, 0);
	call_return(&capture, 2081, 20, CALL_STREAM_CREATE, 7, 0xa);
	launch(&capture, 2090, 8, 0xa);
	syncs(&capture, 2100, 9, 0xa);
	begin(&capture, 2110, 0xa, NO_RESULT);
	launch(&capture, 2120, 10, 0xa);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 4);
	check_awaited(model, gpu, 6, 5);
	check_awaited(model, gpu, 9, 8);
	check_unlinked(model, 1);
	check_unlinked(model, 3);
	check_unlinked(model, 10);
	gpu_free(gpu, &capture);
}

static void test_collectives_of_a_graph_are_not_put_when_their_group_ends(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 1, 0xa);
	begin(&capture, 2010, 0xa, 0);
	call_hit_in(&capture, CAPTURE_PID, 2020, 20, CALL_GROUP_START, 2, 0, NULL);
	call_span(&capture, 2030, 2031, 20, CALL_ALL_REDUCE, 3, 64, 7, 0xc0, 0, 2, 5, 0xa);
	call_span(&capture, 2040, 2041, 20, CALL_SEND, 4, 64, 1, 0xc0, 0, 2, 6, 0xa);
	call_span(&capture, 2045, 2046, 20, CALL_ALL_REDUCE, 5, 64, 7, 0xc0, 0, 2, 5, 0xb);
	call_hit_in(&capture, CAPTURE_PID, 2050, 20, CALL_GROUP_END, 6, 0, NULL);
	call_return_in(&capture, CAPTURE_PID, 2051, 20, CALL_GROUP_END, 6, 0, NULL);
	end(&capture, 2060, 0xa, 0);
	syncs(&capture, 2070, 7, 0xa);
	syncs(&capture, 2080, 8, 0xb);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 7, 1);
	check_awaited(model, gpu, 8, 5);
	assert_int_equal(links_between(model, 6, 5), 1);
	check_unlinked(model, 3);
	check_unlinked(model, 4);
	gpu_free(gpu, &capture);
}

/* The capture began while a graph was made: the end of the
 * stream's capture shows what the calls before meant. */
static void test_end_without_a_begin_takes_what_was_put_there_since_the_tracing_began(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 1, 0xb);
	launch(&capture, 2010, 2, 0xa);
	call_hit(&capture, 2020, 20, CALL_RECORD, 3, 0xe, 0xa);
	call_hit(&capture, 2030, 20, CALL_WAIT, 4, 0xb, 0xe);
	launch(&capture, 2040, 5, 0xb);
	call_span(&capture, 2050, 2051, 20, CALL_ALL_REDUCE, 6, 64, 7, 0xc0, 0, 2, 5, 0xa);
	launch(&capture, 2060, 7, 0xc);
	end(&capture, 2070, 0xa, 0);
	syncs(&capture, 2080, 8, 0xa);
	syncs(&capture, 2090, 9, 0xb);
	syncs(&capture, 2100, 10, 0xc);
	/* The second one's begin would have been seen. */
	launch(&capture, 2110, 11, 0xa);
	end(&capture, 2120, 0xa, 0);
	syncs(&capture, 2130, 12, 0xa);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 8);
	check_awaited(model, gpu, 9, 1);
	check_awaited(model, gpu, 10, 7);
	check_awaited(model, gpu, 12, 11);
	for (uint64_t id = 2; id <= 6; id++)
		check_unlinked(model, id);
	assert_int_equal(comm_count(model, gpu), 0);
	gpu_free(gpu, &capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_graph_is_made_of_is_not_waited_for),
		cmocka_unit_test(test_streams_that_join_by_an_event_take_part_until_the_end),
		cmocka_unit_test(test_graphs_of_several_streams_and_processes_are_apart),
		cmocka_unit_test(
			test_begin_that_failed_begins_nothing_and_an_end_that_failed_ends_it),
		cmocka_unit_test(
			test_graph_whose_end_is_missing_ends_when_its_stream_was_waited_for),
		cmocka_unit_test(test_collectives_of_a_graph_are_not_put_when_their_group_ends),
		cmocka_unit_test(
			test_end_without_a_begin_takes_what_was_put_there_since_the_tracing_began),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
