// SPDX-License-Identifier: Apache-2.0
/* Default streams, which wait for others implicitly, and many streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "gpu_model.h"

#define NON_BLOCKING 1
#define OWN 2 /* cudaStreamPerThread */

#define launch(capture, ts, id, stream)                                                            \
	call_hit(capture, ts, 20, CALL_LAUNCH, id, 0x9000, 1, 1, stream)

/* A stream is made at 1100 + its handle. */
static void make_stream(struct capture *capture, uint64_t stream, uint64_t flags)
{
	uint64_t ts = 1100 + stream;

	call_hit(capture, ts, 20, CALL_STREAM_CREATE, ts, flags);
	call_return(capture, ts + 1, 20, CALL_STREAM_CREATE, ts, stream);
}

/* Checks the operations that a span waits for, by their ids, latest first. A negative id is not
 * certain. */
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
		int id = (int)op_id(model, &found.ops.data[i]);

		assert_int_equal(found.ops.data[i].maybe ? -id : id, ids[i]);
	}
	vec_free(&found.ops);
}

static void test_legacy_stream_waits_for_streams_that_were_made_blocking(void **state)
{
	static const uint64_t handles[] = {0, 1};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct capture capture;
		const struct model *model;
		struct model_gpu *gpu;

		calls_begin(&capture);
		make_stream(&capture, 0xa, 0);
		make_stream(&capture, 0xb, NON_BLOCKING);
		launch(&capture, 2000, 1, 0xa);
		launch(&capture, 2010, 2, 0xb);
		launch(&capture, 2020, 3, handles[i]);
		launch(&capture, 2030, 4, 0xa);
		call_span(&capture, 2100, 2200, 20, CALL_SYNC, 5, handles[1 - i]);
		call_span(&capture, 2300, 2310, 20, CALL_SYNC, 6, 0xa); /* done by 5 */
		call_span(&capture, 2400, 2410, 20, CALL_SYNC, 7, 0xb); /* not done by 5 */
		gpu = gpu_load(&capture, 9000, &model);
		check_awaited(model, gpu, 5, 4, 3);
		check_awaited(model, gpu, 6);
		check_awaited(model, gpu, 7, 2);
		assert_int_equal(links_between(model, 5, 4), 1);
		assert_int_equal(links_between(model, 5, 3), 1);
		assert_int_equal(links_between(model, 5, 2), 0);
		gpu_free(gpu, &capture);
	}
}

static void
test_synchronous_copy_and_event_of_the_legacy_stream_wait_for_blocking_ones(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	make_stream(&capture, 0xa, 0);
	launch(&capture, 2000, 1, 0xa);
	call_span(&capture, 2100, 2200, 20, CALL_COPY, 2, 64, HTOD);
	launch(&capture, 2300, 3, 0xa);
	call_hit(&capture, 2310, 20, CALL_RECORD, 4, 0xe, 0);
	launch(&capture, 2320, 5, 0xa);
	call_span(&capture, 2400, 2500, 20, CALL_SYNC_EVENT, 6, 0xe);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 2, 1);
	check_awaited(model, gpu, 6, 3);
	gpu_free(gpu, &capture);
}

static void test_of_streams_made_before_the_capture_it_is_not_known(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 1, 0xa);
	launch(&capture, 2010, 2, 0);
	call_span(&capture, 2100, 2200, 20, CALL_SYNC, 3, 0);
	call_span(&capture, 2300, 2310, 20, CALL_SYNC, 4, 0);   /* it has waited, or never does */
	call_span(&capture, 2400, 2410, 20, CALL_SYNC, 5, 0xa); /* may not be done */
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 3, 2, -1);
	check_awaited(model, gpu, 4);
	check_awaited(model, gpu, 5, 1);
	assert_int_equal(links_between(model, 3, 1), 0);
	assert_int_equal(links_between(model, 3, 2), 1);
	gpu_free(gpu, &capture);
}

static void test_stream_that_is_ordered_by_events_is_no_blocking_one(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	/* 0xa waits for the default stream, that for 0xb. */
	call_hit(&capture, 1900, 20, CALL_RECORD, 10, 0xe1, 0);
	call_hit(&capture, 1910, 20, CALL_WAIT, 11, 0xa, 0xe1);
	launch(&capture, 2000, 1, 0xa);
	launch(&capture, 2010, 2, 0xb);
	call_hit(&capture, 2020, 20, CALL_RECORD, 12, 0xe2, 0xb);
	call_hit(&capture, 2030, 20, CALL_WAIT, 13, 0, 0xe2);
	launch(&capture, 2040, 3, 0);
	call_span(&capture, 2100, 2200, 20, CALL_SYNC, 4, 0);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 4, 3);
	gpu_free(gpu, &capture);
}

static void test_handle_that_was_that_of_both_kinds_is_not_certain(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	make_stream(&capture, 0xa, 0);
	call_hit(&capture, 1500, 20, CALL_STREAM_CREATE, 9, NON_BLOCKING);
	call_return(&capture, 1501, 20, CALL_STREAM_CREATE, 9, 0xa);
	launch(&capture, 2000, 1, 0xa);
	call_span(&capture, 2100, 2200, 20, CALL_SYNC, 2, 0);
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 2, -1);
	gpu_free(gpu, &capture);
}

static void test_blocking_stream_waits_for_the_legacy_one_and_what_that_waits_for(void **state)
{
	struct model_gpu_awaited around = {0};
	struct model_gpu_op op;
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	make_stream(&capture, 0xa, 0);
	make_stream(&capture, 0xb, 0);
	make_stream(&capture, 0xc, NON_BLOCKING);
	launch(&capture, 2000, 1, 0xb);
	launch(&capture, 2010, 2, 0);
	launch(&capture, 2020, 3, 0xa);
	launch(&capture, 2030, 4, 0xb);
	launch(&capture, 2040, 5, 0xc);
	call_span(&capture, 2100, 2200, 20, CALL_SYNC, 6, 0xa);
	call_span(&capture, 2300, 2310, 20, CALL_SYNC, 7, 0); /* 2 was done with 3; 4 was not */
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 6, 3);
	check_awaited(model, gpu, 7, 4);
	assert_true(model_gpu_last(gpu, CAPTURE_PID, 0xa, 0, 9000, &op));
	model_gpu_around(gpu, &op, 2100, &around);
	assert_int_equal(around.ops.len, 1);
	assert_int_equal(op_id(model, &around.ops.data[0]), 2);
	op = around.ops.data[0];
	model_gpu_around(gpu, &op, 2100, &around);
	assert_int_equal(around.ops.len, 1);
	assert_int_equal(op_id(model, &around.ops.data[0]), 1);
	assert_true(model_gpu_last(gpu, CAPTURE_PID, 0xc, 0, 9000, &op));
	model_gpu_around(gpu, &op, 2100, &around);
	assert_int_equal(around.ops.len, 0);
	vec_free(&around.ops);
	gpu_free(gpu, &capture);
}

static void test_second_bodies_use_the_threads_own_stream(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	call_hit(&capture, 2000, 20, CALL_LAUNCH_PTSZ, 1, 0x9000, 1, 1, 0);
	call_hit(&capture, 2010, 21, CALL_LAUNCH_PTSZ, 2, 0x9000, 1, 1, 0);
	launch(&capture, 2020, 3, 0xa);
	call_hit(&capture, 2100, 20, CALL_SYNC_PTSZ, 4, 0);
	call_return(&capture, 2200, 20, CALL_SYNC_PTSZ, 4, 0);
	call_hit(&capture, 2300, 20, CALL_SYNC, 5, OWN); /* done by 4 */
	call_return(&capture, 2310, 20, CALL_SYNC, 5, 0);
	call_span(&capture, 2400, 2500, 20, CALL_SYNC, 6, 0); /* the legacy one: for all threads' */
	gpu = gpu_load(&capture, 9000, &model);
	check_awaited(model, gpu, 4, 1);
	check_awaited(model, gpu, 5);
	check_awaited(model, gpu, 6, -3, 2);
	gpu_free(gpu, &capture);
}

static void test_device_synchronisation_finds_the_one_busy_stream_of_very_many(void **state)
{
	struct model_gpu_awaited found = {0};
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	/* The first of 1,000 is the one that was not waited for since. */
	for (uint64_t i = 0; i < 1000; i++)
		launch(&capture, 2000 + i, 1 + i, 0xa00 + i);
	call_span(&capture, 3100, 3200, 20, CALL_SYNC_DEVICE, 2000);
	launch(&capture, 3300, 2001, 0xa00);
	call_span(&capture, 3400, 3500, 20, CALL_SYNC_DEVICE, 2002);
	gpu = gpu_load(&capture, 9000, &model);
	model_gpu_awaited(gpu, model_span_find(model, 2000), &found);
	assert_int_equal(found.ops.len, 1000);
	assert_false(found.more);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(op_id(model, &found.ops.data[i]), 1000 - i);
	vec_free(&found.ops);
	check_awaited(model, gpu, 2002, 2001);
	assert_int_equal(links_between(model, 2002, 2001), 1);
	gpu_free(gpu, &capture);
}

static void test_more_streams_than_are_looked_at_are_said(void **state)
{
	struct model_gpu_awaited found = {0};
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	for (uint64_t i = 0; i < 5000; i++)
		launch(&capture, 2000 + i, 1 + i, 0xa00 + i);
	call_span(&capture, 7100, 7200, 20, CALL_SYNC_DEVICE, 6000);
	gpu = gpu_load(&capture, 9000, &model);
	model_gpu_awaited(gpu, model_span_find(model, 6000), &found);
	assert_true(found.more);
	assert_true(found.ops.len > 1000);
	vec_free(&found.ops);
	gpu_free(gpu, &capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_legacy_stream_waits_for_streams_that_were_made_blocking),
		cmocka_unit_test(
			test_synchronous_copy_and_event_of_the_legacy_stream_wait_for_blocking_ones),
		cmocka_unit_test(test_of_streams_made_before_the_capture_it_is_not_known),
		cmocka_unit_test(test_stream_that_is_ordered_by_events_is_no_blocking_one),
		cmocka_unit_test(test_handle_that_was_that_of_both_kinds_is_not_certain),
		cmocka_unit_test(
			test_blocking_stream_waits_for_the_legacy_one_and_what_that_waits_for),
		cmocka_unit_test(test_second_bodies_use_the_threads_own_stream),
		cmocka_unit_test(
			test_device_synchronisation_finds_the_one_busy_stream_of_very_many),
		cmocka_unit_test(test_more_streams_than_are_looked_at_are_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
