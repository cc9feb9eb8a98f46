// SPDX-License-Identifier: Apache-2.0
/* Meaning of GPU calls: streams, operations that synchronisations wait for, links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "gpu_model.h"
#include "model/gpu/gpu_timeline.h"

#define OPS_MAX 32

/* Fills in the operations that a span waits for, by model_gpu_awaited(). Returns their number. */
static size_t awaited(const struct model *model, const struct model_gpu *gpu, uint64_t span,
		      struct model_gpu_op *ops)
{
	struct model_gpu_awaited found = {0};
	size_t count;

	model_gpu_awaited(gpu, model_span_find(model, span), &found);
	assert_false(found.more);
	count = found.ops.len;
	assert_true(count <= OPS_MAX);
	if (count)
		memcpy(ops, found.ops.data, count * sizeof(*ops));
	vec_free(&found.ops);
	return count;
}

#define launch(capture, ts, tid, id, stream)                                                       \
	call_hit(capture, ts, tid, CALL_LAUNCH, id, 0x9000, 1, 1, stream)

static void test_kernels_of_collectives_are_known_by_their_names(void **state)
{
	(void)state;
	assert_true(gpu_timeline_communicates(
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"));
	assert_true(gpu_timeline_communicates(
		"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"));
	assert_true(gpu_timeline_communicates("void ncclKernel<int>(int*)"));
	assert_true(gpu_timeline_communicates("_ZN4nccl6reduceEPf"));
	assert_true(gpu_timeline_communicates("_ZL11mscclKernelPf"));
	assert_true(gpu_timeline_communicates("rcclGenericKernel"));
	assert_false(gpu_timeline_communicates("_Z18attention_backwardmPfi"));
	assert_false(gpu_timeline_communicates("_Z10no_ncclpfiPf"));
	assert_false(gpu_timeline_communicates("void scale<nccl>(float*)"));
	assert_false(gpu_timeline_communicates("_Z5LncclPf"));
	assert_false(gpu_timeline_communicates("void "));
	assert_false(gpu_timeline_communicates("_Z"));
	assert_false(gpu_timeline_communicates(""));
}

static void test_capture_without_roles_has_no_gpu(void **state)
{
	struct model_gpu *gpu = (struct model_gpu *)1;
	struct model_gpu_awaited awaited = {0};
	struct model_gpu_op op;
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 2000, 20, 1);
	capture_end(&capture, 3000, 20, 1);
	model = capture_load(&capture, 9000);
	gpu = model_gpu_new(model);
	assert_null(gpu);
	assert_false(model_gpu_last(gpu, CAPTURE_PID, 0, 0, 9000, &op));
	model_gpu_awaited(gpu, 0, &awaited);
	assert_int_equal(awaited.ops.len, 0);
	assert_null(model_collective_of(NULL, 0));
	assert_int_equal(comm_count(model, gpu), 0);
	gpu_free(gpu, &capture);
}

static void test_last_op_is_that_of_the_stream_and_process(void **state)
{
	struct capture capture;
	struct model_gpu_op op;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0xa);
	launch(&capture, 2100, 20, 2, 0xb);
	launch(&capture, 2200, 21, 3, 0xa);
	call_hit_in(&capture, 11, 2300, 30, CALL_LAUNCH, 4, CALL_WORDS(0x9000, 1, 1, 0xa));
	launch(&capture, 2400, 20, 5, 1); /* cudaStreamLegacy */
	gpu = gpu_load(&capture, 9000, &model);
	assert_true(model_gpu_last(gpu, CAPTURE_PID, 0xa, 0, 9000, &op));
	assert_int_equal(op_id(model, &op), 3);
	assert_int_equal(op.ts, 2200);
	assert_int_equal(op.stream, 0xa);
	assert_int_equal(op.role, SITE_ROLE_LAUNCH);
	assert_int_equal(op.pid, CAPTURE_PID);
	assert_int_equal(model->threads.data[op.thread].tid, 21);
	assert_true(model_gpu_previous(gpu, &op, &op));
	assert_int_equal(op_id(model, &op), 1);
	assert_false(model_gpu_previous(gpu, &op, &op));
	assert_true(model_gpu_last(gpu, CAPTURE_PID, 0xa, 0, 2200, &op));
	assert_int_equal(op_id(model, &op), 1);
	assert_false(model_gpu_last(gpu, CAPTURE_PID, 0xa, 0, 2000, &op));
	assert_true(model_gpu_last(gpu, 11, 0xa, 0, 9000, &op));
	assert_int_equal(op_id(model, &op), 4);
	assert_true(model_gpu_last(gpu, CAPTURE_PID, 0, 0, 9000, &op));
	assert_int_equal(op_id(model, &op), 5);
	assert_false(model_gpu_last(gpu, CAPTURE_PID, 0xc, 0, 9000, &op));
	gpu_free(gpu, &capture);
}

static void test_stream_synchronisation_waits_for_the_last_launch_on_it(void **state)
{
	struct model_gpu_op ops[OPS_MAX];
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0xa);
	launch(&capture, 2010, 20, 2, 0xa);
	launch(&capture, 2020, 20, 3, 0xb);
	call_span(&capture, 2100, 2500, 20, CALL_SYNC, 4, 0xa);
	launch(&capture, 2200, 21, 5, 0xa); /* too late for it */
	call_span(&capture, 2550, 2560, 20, CALL_SYNC, 6, 0xa);
	call_span(&capture, 2600, 2610, 20, CALL_SYNC, 7, 0xa); /* nothing is left to wait for */
	gpu = gpu_load(&capture, 9000, &model);
	assert_int_equal(awaited(model, gpu, 4, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 2);
	assert_int_equal(awaited(model, gpu, 6, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 5);
	assert_false(model_gpu_waited(gpu, &ops[0], 2559));
	assert_true(model_gpu_waited(gpu, &ops[0], 2560));
	assert_int_equal(awaited(model, gpu, 7, ops), 0);
	assert_int_equal(model->links.len, 2);
	assert_int_equal(links_between(model, 4, 2), 1);
	assert_int_equal(links_between(model, 6, 5), 1);
	gpu_free(gpu, &capture);
}

static void test_synchronisation_that_failed_has_waited_for_nothing(void **state)
{
	struct model_gpu_op ops[OPS_MAX];
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0xa);
	call_hit(&capture, 2100, 20, CALL_SYNC, 2, 0xa);
	call_return(&capture, 2110, 20, CALL_SYNC, 2, 700);
	call_hit(&capture, 2200, 20, CALL_SYNC, 3, 0xa);
	call_return(&capture, 2210, 20, CALL_SYNC, 3, 0);
	call_span(&capture, 2300, 2310, 20, CALL_SYNC, 4, 0xa);
	gpu = gpu_load(&capture, 9000, &model);
	assert_int_equal(awaited(model, gpu, 2, ops), 0);
	assert_int_equal(awaited(model, gpu, 3, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 1);
	assert_int_equal(awaited(model, gpu, 4, ops), 0);
	gpu_free(gpu, &capture);
}

static void test_call_that_failed_has_put_nothing_on_its_stream(void **state)
{
	struct model_gpu_op ops[OPS_MAX];
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0);
	call_hit(&capture, 2100, 20, CALL_COPY, 2, 64, HTOD);
	call_return(&capture, 2110, 20, CALL_COPY, 2, 35);
	call_span(&capture, 2200, 2210, 20, CALL_SYNC, 3, 0);
	gpu = gpu_load(&capture, 9000, &model);
	assert_true(model_gpu_failed(gpu, 0));
	assert_false(model_gpu_failed(gpu, 1));
	assert_int_equal(awaited(model, gpu, 2, ops), 0);
	assert_int_equal(awaited(model, gpu, 3, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 1);
	assert_int_equal(links_between(model, 3, 2), 0);
	gpu_free(gpu, &capture);
}

static void test_two_threads_that_wait_at_once_wait_for_the_same(void **state)
{
	struct capture capture;
	const struct model *model;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0xa);
	call_hit(&capture, 2100, 20, CALL_SYNC, 2, 0xa);
	call_hit(&capture, 2200, 21, CALL_SYNC, 3, 0xa);
	call_return(&capture, 2300, 20, CALL_SYNC, 2);
	call_return(&capture, 2310, 21, CALL_SYNC, 3);
	model = capture_load(&capture, 9000);
	assert_int_equal(links_between(model, 2, 1), 1);
	assert_int_equal(links_between(model, 3, 1), 1);
	capture_free(&capture);
}

static void test_device_synchronisation_waits_for_the_last_of_each_stream(void **state)
{
	struct model_gpu_op ops[OPS_MAX];
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	for (uint64_t i = 0; i < 20; i++)
		launch(&capture, 2000 + i, 20, 1 + i, 0xa00 + i);
	launch(&capture, 2100, 20, 50, 0xb00);
	call_span(&capture, 2200, 2210, 20, CALL_SYNC, 51, 0xb00); /* done already */
	call_hit_in(&capture, 11, 2250, 30, CALL_LAUNCH, 52, CALL_WORDS(0x9000, 1, 1, 0xa00));
	call_span(&capture, 2300, 2400, 20, CALL_SYNC_DEVICE, 60);
	call_span(&capture, 2500, 2600, 20, CALL_SYNC, 61, 0xa00);
	gpu = gpu_load(&capture, 9000, &model);
	assert_int_equal(awaited(model, gpu, 60, ops), 20);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(op_id(model, &ops[i]), 20 - i); /* the latest first */
	assert_int_equal(awaited(model, gpu, 61, ops), 0);
	assert_int_equal(links_between(model, 60, 20), 1);
	assert_int_equal(links_between(model, 60, 52), 0);
	gpu_free(gpu, &capture);
}

static void test_events_lead_from_the_wait_to_the_work_before_their_record(void **state)
{
	struct model_gpu_op ops[OPS_MAX], op;
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0xa);
	call_hit(&capture, 2010, 20, CALL_RECORD, 2, 0xe, 0xa);
	launch(&capture, 2020, 20, 3, 0xa); /* behind the record: not waited for */
	call_hit(&capture, 2030, 20, CALL_WAIT, 4, 0xb, 0xe);
	call_span(&capture, 2040, 2100, 20, CALL_SYNC_EVENT, 5, 0xe);
	call_hit(&capture, 2200, 20, CALL_RECORD, 6, 0xe, 0xa);
	call_span(&capture, 2300, 2400, 20, CALL_SYNC_EVENT, 7, 0xe);
	gpu = gpu_load(&capture, 9000, &model);
	assert_true(model_gpu_recorded(gpu, CAPTURE_PID, 0xe, 2100, &op));
	assert_int_equal(op_id(model, &op), 2);
	assert_int_equal(op.stream, 0xa);
	assert_int_equal(awaited(model, gpu, 5, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 1);
	assert_int_equal(awaited(model, gpu, 7, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 3);
	assert_int_equal(links_between(model, 5, 2), 1);
	assert_int_equal(links_between(model, 7, 6), 1);
	assert_int_equal(links_between(model, 4, 2), 1);
	assert_int_equal(links_between(model, 2, 1), 1);
	assert_int_equal(links_between(model, 6, 3), 1);
	assert_int_equal(model->links.len, 5);
	gpu_free(gpu, &capture);
}

/* The streams of a context are unknown, so nothing follows for the default stream, nor for the one
 * on which the event was recorded before. */
static void test_event_of_a_context_leads_to_its_record_and_to_no_guessed_stream(void **state)
{
	struct model_gpu_op ops[OPS_MAX], op;
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0);
	launch(&capture, 2001, 20, 2, 0xa);
	call_hit(&capture, 2010, 20, CALL_RECORD, 3, 0xe, 0xa);
	call_hit(&capture, 2020, 20, CALL_RECORD_CONTEXT, 4, 0xc, 0xe);
	call_hit(&capture, 2030, 20, CALL_WAIT_CONTEXT, 5, 0xd, 0xe);
	call_hit(&capture, 2035, 20, CALL_WAIT, 6, 0xb, 0xe);
	call_span(&capture, 2040, 2100, 20, CALL_SYNC_EVENT, 7, 0xe);
	call_span(&capture, 2110, 2120, 20, CALL_SYNC, 8, 0xb);
	call_span(&capture, 2200, 2300, 20, CALL_SYNC_DEVICE, 9);
	gpu = gpu_load(&capture, 9000, &model);
	assert_true(model_gpu_recorded(gpu, CAPTURE_PID, 0xe, 2100, &op));
	assert_int_equal(op_id(model, &op), 4);
	assert_int_equal(links_between(model, 3, 2), 1);
	assert_int_equal(links_between(model, 5, 4), 1);
	assert_int_equal(links_between(model, 6, 4), 1);
	assert_int_equal(links_between(model, 7, 4), 1);
	assert_int_equal(awaited(model, gpu, 7, ops), 0);
	assert_int_equal(awaited(model, gpu, 8, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 6);
	assert_false(model_gpu_behind(gpu, &ops[0], &op));
	assert_int_equal(links_between(model, 8, 6), 1);
	/* Nobody is known to have waited for what the two streams have. */
	assert_int_equal(awaited(model, gpu, 9, ops), 2);
	assert_int_equal(links_between(model, 9, 1), 1);
	assert_int_equal(links_between(model, 9, 2), 1);
	assert_int_equal(model->links.len, 7);
	gpu_free(gpu, &capture);
}

static void test_stream_that_waits_for_an_event_stands_for_the_other_stream(void **state)
{
	struct model_gpu_op ops[OPS_MAX], op;
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0xa);
	call_hit(&capture, 2010, 20, CALL_RECORD, 2, 0xe, 0xa);
	launch(&capture, 2015, 20, 3, 0xb);
	call_hit(&capture, 2020, 20, CALL_WAIT, 4, 0xb, 0xe);
	call_span(&capture, 2040, 2100, 20, CALL_SYNC, 5, 0xb);
	call_span(&capture, 2200, 2210, 20, CALL_SYNC, 6, 0xa); /* done when 5 was */
	gpu = gpu_load(&capture, 9000, &model);
	assert_int_equal(awaited(model, gpu, 5, ops), 2);
	assert_int_equal(op_id(model, &ops[0]), 4);
	assert_int_equal(ops[0].role, SITE_ROLE_STREAM_WAIT);
	assert_int_equal(op_id(model, &ops[1]), 3);
	assert_true(model_gpu_behind(gpu, &ops[0], &op));
	assert_int_equal(op_id(model, &op), 1);
	assert_false(model_gpu_behind(gpu, &ops[1], &op));
	assert_int_equal(awaited(model, gpu, 6, ops), 0);
	gpu_free(gpu, &capture);
}

static void test_copy_without_a_stream_waits_for_the_default_stream(void **state)
{
	struct model_gpu_op ops[OPS_MAX];
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0);
	call_span(&capture, 2100, 2200, 20, CALL_COPY, 2, 4096, HTOD);
	call_span(&capture, 2300, 2400, 20, CALL_COPY, 3, 4096, HTOD);
	gpu = gpu_load(&capture, 9000, &model);
	assert_int_equal(awaited(model, gpu, 2, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 1);
	assert_int_equal(awaited(model, gpu, 3, ops), 0);
	assert_int_equal(links_between(model, 2, 1), 1);
	assert_int_equal(model->links.len, 1);
	gpu_free(gpu, &capture);
}

static void test_calls_in_a_group_are_put_on_their_stream_when_it_ends(void **state)
{
	struct model_gpu_op op;
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	call_hit(&capture, 2000, 20, CALL_GROUP_START, 1);
	call_hit(&capture, 2001, 20, CALL_GROUP_START, 2); /* nested */
	call_span(&capture, 2010, 2020, 20, CALL_SEND, 3, 64, 1, 0xc0, 0, 2, 0, 0xa);
	call_span(&capture, 2030, 2040, 20, CALL_GROUP_END, 4);
	call_span(&capture, 2050, 2060, 20, CALL_ALL_REDUCE, 5, 1, 7, 0xc0, 0, 2, 0, 0xa);
	launch(&capture, 2065, 21, 6, 0xa); /* of another thread, before the group ends */
	call_span(&capture, 2070, 2090, 20, CALL_GROUP_END, 7);
	gpu = gpu_load(&capture, 9000, &model);
	assert_true(model_gpu_last(gpu, CAPTURE_PID, 0xa, 0, 9000, &op));
	assert_int_equal(op_id(model, &op), 5);
	assert_int_equal(op.ts, 2070);
	assert_true(model_gpu_previous(gpu, &op, &op));
	assert_int_equal(op_id(model, &op), 3);
	assert_true(model_gpu_previous(gpu, &op, &op));
	assert_int_equal(op_id(model, &op), 6);
	assert_false(model_gpu_previous(gpu, &op, &op));
	assert_int_equal(links_between(model, 7, 3), 1);
	assert_int_equal(links_between(model, 7, 5), 1);
	assert_int_equal(model->links.len, 2);
	gpu_free(gpu, &capture);
}

static void test_links_of_a_span_stand_together(void **state)
{
	const uint64_t causes[] = {1, 0};
	struct capture capture;
	const struct model *model;
	size_t first;

	(void)state;
	calls_begin(&capture);
	capture_span(&capture, 1500, 20, 1);
	launch(&capture, 2000, 20, 2, 0xa);
	call_span(&capture, 2100, 2200, 20, CALL_SYNC, 3, 0xa);
	capture_hit(&capture, 2300, 20, SITE_LOAD, 4, 1, 2, causes);
	launch(&capture, 2400, 20, 5, 0xa);
	call_span(&capture, 2500, 2600, 20, CALL_SYNC, 6, 0xa);
	capture_hit(&capture, 2700, 20, SITE_LOAD, 7, 1, 2, causes);
	model = capture_load(&capture, 9000);
	assert_int_equal(model->links.len, 4);
	for (uint64_t id = 3; id <= 7; id += 3) {
		assert_int_equal(model_links_from(model, MODEL_NODE_SPAN,
						  model_span_find(model, id), &first),
				 1);
		assert_int_equal(model->links.data[first].to_id, id - 1);
	}
	assert_int_equal(
		model_links_from(model, MODEL_NODE_SPAN, model_span_find(model, 7), &first), 1);
	assert_int_equal(model->links.data[first].to_id, 1);
	assert_int_equal(
		model_links_from(model, MODEL_NODE_SPAN, model_span_find(model, 1), &first), 0);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels_of_collectives_are_known_by_their_names),
		cmocka_unit_test(test_capture_without_roles_has_no_gpu),
		cmocka_unit_test(test_last_op_is_that_of_the_stream_and_process),
		cmocka_unit_test(test_stream_synchronisation_waits_for_the_last_launch_on_it),
		cmocka_unit_test(test_synchronisation_that_failed_has_waited_for_nothing),
		cmocka_unit_test(test_call_that_failed_has_put_nothing_on_its_stream),
		cmocka_unit_test(test_two_threads_that_wait_at_once_wait_for_the_same),
		cmocka_unit_test(test_device_synchronisation_waits_for_the_last_of_each_stream),
		cmocka_unit_test(test_events_lead_from_the_wait_to_the_work_before_their_record),
		cmocka_unit_test(
			test_event_of_a_context_leads_to_its_record_and_to_no_guessed_stream),
		cmocka_unit_test(test_stream_that_waits_for_an_event_stands_for_the_other_stream),
		cmocka_unit_test(test_copy_without_a_stream_waits_for_the_default_stream),
		cmocka_unit_test(test_calls_in_a_group_are_put_on_their_stream_when_it_ends),
		cmocka_unit_test(test_links_of_a_span_stand_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
