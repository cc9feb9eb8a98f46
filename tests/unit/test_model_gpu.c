// SPDX-License-Identifier: Apache-2.0
/* What calls mean to GPUs: streams, what synchronisations wait for, links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/gpu.h"

#include "model_capture.h"

#include "calls_capture.h"

static struct model_gpu *gpu_of(const struct model *model)
{
	struct model_gpu *gpu;

	assert_int_equal(model_gpu_new(&gpu, model), 0);
	assert_non_null(gpu);
	return gpu;
}

static uint64_t id_of(const struct model *model, uint8_t kind, uint32_t index)
{
	return kind == MODEL_NODE_SPAN ? model->spans.data[index].id : model->events.data[index].id;
}

static uint64_t op_id(const struct model *model, const struct model_gpu_op *op)
{
	return id_of(model, op->node, op->index);
}

/* How many links go from one id to another; a call's ids are those of one span or event. */
static unsigned links_between(const struct model *model, uint64_t from, uint64_t to)
{
	unsigned found = 0;

	for (size_t i = 0; i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];

		found += link->to_id == to && id_of(model, link->from_kind, link->from) == from;
		if (link->to != MODEL_NONE)
			assert_int_equal(id_of(model, link->to_kind, link->to), link->to_id);
	}
	return found;
}

static uint32_t awaited(const struct model *model, const struct model_gpu *gpu, uint64_t span,
			struct model_gpu_op *ops)
{
	return model_gpu_awaited(gpu, map_get(&model->span_ids, span), ops, MODEL_GPU_AWAITED_MAX);
}

#define launch(capture, ts, tid, id, stream)                                                       \
	call_hit(capture, ts, tid, CALL_LAUNCH, id, 0x9000, 1, 1, stream)

static void test_capture_without_roles_has_no_gpu(void **state)
{
	struct model_gpu *gpu = (struct model_gpu *)1;
	struct model_gpu_op op;
	struct capture capture;
	const struct model *model;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 2000, 20, 1);
	capture_end(&capture, 3000, 20, 1);
	model = capture_load(&capture, 9000);
	assert_int_equal(model_gpu_new(&gpu, model), 0);
	assert_null(gpu);
	assert_false(model_gpu_last(gpu, CAPTURE_PID, 0, 0, 9000, &op));
	assert_int_equal(model_gpu_awaited(gpu, 0, &op, 1), 0);
	assert_null(model_collective_of(gpu, 0));
	assert_int_equal(model_collective_count(gpu), 0);
	model_gpu_free(gpu);
	capture_free(&capture);
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
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
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
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_stream_synchronisation_waits_for_the_last_launch_on_it(void **state)
{
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX];
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
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
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
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_synchronisation_that_failed_has_waited_for_nothing(void **state)
{
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX];
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
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(awaited(model, gpu, 2, ops), 0);
	assert_int_equal(awaited(model, gpu, 3, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 1);
	assert_int_equal(awaited(model, gpu, 4, ops), 0);
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_call_that_failed_has_put_nothing_on_its_stream(void **state)
{
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX];
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0);
	call_hit(&capture, 2100, 20, CALL_COPY, 2, 64);
	call_return(&capture, 2110, 20, CALL_COPY, 2, 35);
	call_span(&capture, 2200, 2210, 20, CALL_SYNC, 3, 0);
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_true(model_gpu_failed(gpu, 0));
	assert_false(model_gpu_failed(gpu, 1));
	assert_int_equal(awaited(model, gpu, 2, ops), 0);
	assert_int_equal(awaited(model, gpu, 3, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 1);
	assert_int_equal(links_between(model, 3, 2), 0);
	model_gpu_free(gpu);
	capture_free(&capture);
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
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX];
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
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(awaited(model, gpu, 60, ops), MODEL_GPU_AWAITED_MAX);
	for (uint64_t i = 0; i < MODEL_GPU_AWAITED_MAX; i++)
		assert_int_equal(op_id(model, &ops[i]), 20 - i); /* the latest first */
	assert_int_equal(awaited(model, gpu, 61, ops), 0);
	assert_int_equal(links_between(model, 60, 20), 1);
	assert_int_equal(links_between(model, 60, 52), 0);
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_events_lead_from_the_wait_to_the_work_before_their_record(void **state)
{
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX], op;
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
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
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
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_stream_that_waits_for_an_event_stands_for_the_other_stream(void **state)
{
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX], op;
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
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(awaited(model, gpu, 5, ops), 2);
	assert_int_equal(op_id(model, &ops[0]), 4);
	assert_int_equal(ops[0].role, SITE_ROLE_STREAM_WAIT);
	assert_int_equal(op_id(model, &ops[1]), 3);
	assert_true(model_gpu_behind(gpu, &ops[0], &op));
	assert_int_equal(op_id(model, &op), 1);
	assert_false(model_gpu_behind(gpu, &ops[1], &op));
	assert_int_equal(awaited(model, gpu, 6, ops), 0);
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_copy_without_a_stream_waits_for_the_default_stream(void **state)
{
	struct model_gpu_op ops[MODEL_GPU_AWAITED_MAX];
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	launch(&capture, 2000, 20, 1, 0);
	call_span(&capture, 2100, 2200, 20, CALL_COPY, 2, 4096);
	call_span(&capture, 2300, 2400, 20, CALL_COPY, 3, 4096);
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(awaited(model, gpu, 2, ops), 1);
	assert_int_equal(op_id(model, &ops[0]), 1);
	assert_int_equal(awaited(model, gpu, 3, ops), 0);
	assert_int_equal(links_between(model, 2, 1), 1);
	assert_int_equal(model->links.len, 1);
	model_gpu_free(gpu);
	capture_free(&capture);
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
	call_span(&capture, 2010, 2020, 20, CALL_SEND, 3, 1, 0xc0, 0, 0, 0xa);
	call_span(&capture, 2030, 2040, 20, CALL_GROUP_END, 4);
	call_span(&capture, 2050, 2060, 20, CALL_ALL_REDUCE, 5, 1, 7, 0xc0, 0, 2, 0, 0xa);
	launch(&capture, 2065, 21, 6, 0xa); /* of another thread, before the group ends */
	call_span(&capture, 2070, 2090, 20, CALL_GROUP_END, 7);
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
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
	model_gpu_free(gpu);
	capture_free(&capture);
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
						  map_get(&model->span_ids, id), &first),
				 1);
		assert_int_equal(model->links.data[first].to_id, id - 1);
	}
	assert_int_equal(
		model_links_from(model, MODEL_NODE_SPAN, map_get(&model->span_ids, 7), &first), 1);
	assert_int_equal(model->links.data[first].to_id, 1);
	assert_int_equal(
		model_links_from(model, MODEL_NODE_SPAN, map_get(&model->span_ids, 1), &first), 0);
	capture_free(&capture);
}

/* ---- collectives ---- */

#define RANKS_MAX 4
#define COMM 0xc0ffee

/* Rank r is process 100 + r, thread 200 + r. */
static void rank_call(struct capture *capture, unsigned rank, unsigned nranks, uint32_t site,
		      uint64_t from, uint64_t to, uint64_t id, uint64_t count, uint64_t seq)
{
	const uint64_t words[] = {count, 7, COMM, rank, nranks, seq, 0xa};

	call_hit_in(capture, 100 + rank, from, 200 + rank, site, id, 7, words);
	call_return_in(capture, 100 + rank, to, 200 + rank, site, id, 0, NULL);
}

static void rank_sync(struct capture *capture, unsigned rank, uint64_t from, uint64_t to,
		      uint64_t id)
{
	const uint64_t stream = 0xa;

	call_hit_in(capture, 100 + rank, from, 200 + rank, CALL_SYNC, id, 1, &stream);
	call_return_in(capture, 100 + rank, to, 200 + rank, CALL_SYNC, id, 0, NULL);
}

static void rank_init(struct capture *capture, unsigned rank, unsigned nranks, uint64_t ts)
{
	const uint64_t words[] = {rank, nranks}, comm = COMM;

	call_hit_in(capture, 100 + rank, ts, 200 + rank, CALL_COMM_INIT, 900 + rank, 2, words);
	call_return_in(capture, 100 + rank, ts + 10, 200 + rank, CALL_COMM_INIT, 900 + rank, 1,
		       &comm);
}

static const struct model_collective *collective_of(const struct model *model,
						    const struct model_gpu *gpu, uint64_t id)
{
	const struct model_collective *found =
		model_collective_of(gpu, map_get(&model->span_ids, id));

	assert_non_null(found);
	return found;
}

static void test_collectives_are_counted_from_the_creation_of_their_communicator(void **state)
{
	const struct model_collective *collective;
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	for (unsigned rank = 0; rank < 3; rank++)
		rank_init(&capture, rank, 3, 1500 + rank);
	for (unsigned call = 0; call < 4; call++)
		for (unsigned rank = 0; rank < 3; rank++) /* rank 1 comes last to call 2 */
			rank_call(&capture, rank, 3, CALL_ALL_REDUCE,
				  2000 + 100 * call + rank + (rank == 1 && call == 2 ? 50 : 0),
				  2080 + 100 * call, 10 * call + rank + 1, 64, call);
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(model_collective_count(gpu), 4);
	assert_int_equal(model_collectives_unaligned(gpu), 0);
	for (unsigned call = 0; call < 4; call++) {
		unsigned last = call == 2 ? 1 : 2;

		for (unsigned rank = 0; rank < 3; rank++)
			assert_ptr_equal(collective_of(model, gpu, 10 * call + rank + 1),
					 model_collective_at(gpu, call));
		collective = model_collective_at(gpu, call);
		assert_int_equal(collective->comm, COMM);
		assert_int_equal(collective->seq, call);
		assert_int_equal(collective->nranks, 3);
		assert_int_equal(collective->count, 3);
		assert_int_equal(collective->alignment, COLLECTIVE_BY_CREATION);
		assert_int_equal(collective->last, last);
		assert_string_equal(model_site(model, collective->site)->name, "ncclAllReduce");
		for (unsigned rank = 0; rank < 3; rank++) {
			assert_int_equal(collective->calls[rank].rank, rank);
			assert_int_equal(collective->calls[rank].pid, 100 + rank);
			assert_int_equal(collective->calls[rank].group_end, MODEL_NONE);
			assert_int_equal(
				links_between(model, 10 * call + rank + 1, 10 * call + last + 1),
				rank != last);
		}
	}
	assert_int_equal(model->links.len, 8);
	model_gpu_free(gpu);
	capture_free(&capture);
}

/* Ranks in step: each syncs after each call. The records of rank r begin with call `skip[r]`. */
static void in_step(struct capture *capture, const unsigned *skip, unsigned calls)
{
	for (unsigned call = 0; call < calls; call++) {
		uint64_t base = 2000 + 100 * call;

		for (unsigned rank = 0; rank < 2; rank++) {
			if (call < skip[rank])
				continue;
			rank_call(capture, rank, 2, CALL_ALL_REDUCE, base + 20 * rank,
				  base + 20 * rank + 5, 10 * call + rank + 1, 64,
				  call - skip[rank]);
			rank_sync(capture, rank, base + 20 * rank + 6, base + 60 + 10 * rank,
				  10 * call + rank + 3);
		}
	}
}

static void test_collectives_attached_to_late_are_aligned_by_who_waits_for_whom(void **state)
{
	static const unsigned skips[][2] = {{0, 0}, {0, 1}, {2, 0}};

	(void)state;
	for (size_t row = 0; row < 3; row++) {
		const struct model_collective *collective;
		struct capture capture;
		const struct model *model;
		struct model_gpu *gpu;
		unsigned both = skips[row][0] > skips[row][1] ? skips[row][0] : skips[row][1];

		calls_begin(&capture);
		in_step(&capture, skips[row], 6);
		model = capture_load(&capture, 9000);
		gpu = gpu_of(model);
		assert_int_equal(model_collective_count(gpu), 6);
		assert_int_equal(model_collectives_unaligned(gpu), 0);
		for (unsigned call = both; call < 6; call++) {
			collective = collective_of(model, gpu, 10 * call + 1);
			assert_ptr_equal(collective, collective_of(model, gpu, 10 * call + 2));
			assert_int_equal(collective->alignment, COLLECTIVE_BY_ORDER);
			assert_int_equal(collective->count, 2);
			assert_int_equal(collective->last, 1);
			assert_int_equal(links_between(model, 10 * call + 1, 10 * call + 2), 1);
		}
		if (both)
			assert_int_equal(model_collective_at(gpu, 0)->alignment, COLLECTIVE_ALONE);
		model_gpu_free(gpu);
		capture_free(&capture);
	}
}

static void test_collectives_that_could_be_aligned_in_two_ways_are_not(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	/* Nobody waits for anything: any shift is possible. */
	for (unsigned call = 0; call < 4; call++)
		for (unsigned rank = 0; rank < 2; rank++)
			rank_call(&capture, rank, 2, CALL_ALL_REDUCE, 2000 + 100 * call + rank,
				  2010 + 100 * call, 10 * call + rank + 1, 64, call);
	rank_sync(&capture, 0, 3000, 3100, 100);
	rank_sync(&capture, 1, 3000, 3100, 101);
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	/* The end is known, so neither can be ahead: it is certain after all. */
	assert_int_equal(model_collectives_unaligned(gpu), 0);
	model_gpu_free(gpu);
	capture_free(&capture);

	calls_begin(&capture);
	for (unsigned call = 0; call < 4; call++)
		for (unsigned rank = 0; rank < 2; rank++)
			rank_call(&capture, rank, 2, CALL_ALL_REDUCE, 2000 + 100 * call + rank,
				  2010 + 100 * call, 10 * call + rank + 1, 64, call);
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(model_collectives_unaligned(gpu), 8);
	assert_int_equal(model->unaligned_collectives, 8);
	assert_int_equal(collective_of(model, gpu, 1)->alignment, COLLECTIVE_ALONE);
	assert_int_equal(collective_of(model, gpu, 1)->count, 1);
	assert_int_equal(model->links.len, 0);
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_different_counts_decide_between_possible_alignments(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	/* Both run ahead and wait at every third call only; rank 1 was attached to a call later. */
	for (unsigned call = 0; call < 9; call++) {
		uint64_t base = 2000 + 100 * call;

		for (unsigned rank = 0; rank < 2; rank++) {
			if (rank && !call)
				continue;
			rank_call(&capture, rank, 2, CALL_ALL_REDUCE, base + 20 * rank,
				  base + 20 * rank + 5, 10 * call + rank + 1, 64 + call % 3,
				  call - rank);
			if (call % 3 == 2)
				rank_sync(&capture, rank, base + 20 * rank + 6, base + 60,
					  10 * call + rank + 3);
		}
	}
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(model_collectives_unaligned(gpu), 0);
	for (unsigned call = 1; call < 9; call++)
		assert_ptr_equal(collective_of(model, gpu, 10 * call + 1),
				 collective_of(model, gpu, 10 * call + 2));
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_lost_records_leave_collectives_unaligned(void **state)
{
	static const unsigned skip[2] = {0, 0};
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	in_step(&capture, skip, 6);
	capture_loss(&capture, 2650, 2660, WAFFLE_SOURCE_SPANS, 1);
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(model_collectives_unaligned(gpu), 12);
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_broadcast_that_its_root_is_done_with_proves_nothing(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	for (unsigned call = 0; call < 4; call++)
		for (unsigned rank = 0; rank < 2; rank++) {
			uint64_t base = 2000 + 100 * call + 1000 * rank;

			rank_call(&capture, rank, 2, CALL_BROADCAST, base, base + 5,
				  10 * call + rank + 1, 64, call);
			rank_sync(&capture, rank, base + 6, base + 60, 10 * call + rank + 3);
		}
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(model_collectives_unaligned(gpu), 8);
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_collective_in_a_group_arrives_when_the_group_ends(void **state)
{
	const struct model_collective *collective;
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	rank_init(&capture, 0, 2, 1500);
	rank_init(&capture, 1, 2, 1500);
	call_hit_in(&capture, 100, 2000, 200, CALL_GROUP_START, 1, 0, NULL);
	rank_call(&capture, 0, 2, CALL_ALL_REDUCE, 2010, 2020, 2, 64, 0);
	rank_call(&capture, 1, 2, CALL_ALL_REDUCE, 2100, 2120, 3, 64, 0);
	call_hit_in(&capture, 100, 2200, 200, CALL_GROUP_END, 4, 0, NULL);
	call_return_in(&capture, 100, 2300, 200, CALL_GROUP_END, 4, 0, NULL);
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	collective = collective_of(model, gpu, 4);
	assert_ptr_equal(collective, collective_of(model, gpu, 2));
	assert_int_equal(collective->count, 2);
	assert_int_equal(collective->last, 0);
	assert_int_equal(collective->calls[0].arrival_ts, 2200);
	assert_int_equal(model->spans.data[collective->calls[0].group_end].id, 4);
	assert_int_equal(collective->calls[1].group_end, MODEL_NONE);
	assert_int_equal(links_between(model, 3, 2), 1);
	assert_int_equal(links_between(model, 4, 2), 1);
	model_gpu_free(gpu);
	capture_free(&capture);
}

static void test_calls_that_differ_are_no_collective_whatever_their_number(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_gpu *gpu;

	(void)state;
	calls_begin(&capture);
	rank_init(&capture, 0, 2, 1500);
	rank_init(&capture, 1, 2, 1500);
	rank_call(&capture, 0, 2, CALL_ALL_REDUCE, 2010, 2020, 2, 64, 0);
	rank_call(&capture, 1, 2, CALL_ALL_REDUCE, 2100, 2120, 3, 65, 0);
	model = capture_load(&capture, 9000);
	gpu = gpu_of(model);
	assert_int_equal(model_collectives_unaligned(gpu), 2);
	assert_int_equal(collective_of(model, gpu, 2)->count, 1);
	assert_int_equal(model->links.len, 0);
	model_gpu_free(gpu);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capture_without_roles_has_no_gpu),
		cmocka_unit_test(test_last_op_is_that_of_the_stream_and_process),
		cmocka_unit_test(test_stream_synchronisation_waits_for_the_last_launch_on_it),
		cmocka_unit_test(test_synchronisation_that_failed_has_waited_for_nothing),
		cmocka_unit_test(test_call_that_failed_has_put_nothing_on_its_stream),
		cmocka_unit_test(test_two_threads_that_wait_at_once_wait_for_the_same),
		cmocka_unit_test(test_device_synchronisation_waits_for_the_last_of_each_stream),
		cmocka_unit_test(test_events_lead_from_the_wait_to_the_work_before_their_record),
		cmocka_unit_test(test_stream_that_waits_for_an_event_stands_for_the_other_stream),
		cmocka_unit_test(test_copy_without_a_stream_waits_for_the_default_stream),
		cmocka_unit_test(test_calls_in_a_group_are_put_on_their_stream_when_it_ends),
		cmocka_unit_test(test_links_of_a_span_stand_together),
		cmocka_unit_test(
			test_collectives_are_counted_from_the_creation_of_their_communicator),
		cmocka_unit_test(
			test_collectives_attached_to_late_are_aligned_by_who_waits_for_whom),
		cmocka_unit_test(test_collectives_that_could_be_aligned_in_two_ways_are_not),
		cmocka_unit_test(test_different_counts_decide_between_possible_alignments),
		cmocka_unit_test(test_lost_records_leave_collectives_unaligned),
		cmocka_unit_test(test_broadcast_that_its_root_is_done_with_proves_nothing),
		cmocka_unit_test(test_collective_in_a_group_arrives_when_the_group_ends),
		cmocka_unit_test(test_calls_that_differ_are_no_collective_whatever_their_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
