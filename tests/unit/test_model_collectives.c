// SPDX-License-Identifier: Apache-2.0
/* Matching of calls of different ranks: collectives, and the two ends of a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "gpu_model.h"

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
						    const struct model_comm *comm, uint64_t id)
{
	const struct model_collective *found =
		model_collective_of(comm, model_span_find(model, id));

	assert_non_null(found);
	return found;
}

static void test_collectives_are_counted_from_the_creation_of_their_communicator(void **state)
{
	const struct model_collective *collective;
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	for (unsigned rank = 0; rank < 3; rank++)
		rank_init(&capture, rank, 3, 1500 + rank);
	for (unsigned call = 0; call < 4; call++)
		for (unsigned rank = 0; rank < 3; rank++) /* rank 1 comes last to call 2 */
			rank_call(&capture, rank, 3, CALL_ALL_REDUCE,
				  2000 + 100 * call + rank + (rank == 1 && call == 2 ? 50 : 0),
				  2080 + 100 * call, 10 * call + rank + 1, 64, call);
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collective_count(comm), 4);
	assert_int_equal(model_collectives_unaligned(comm), 0);
	for (unsigned call = 0; call < 4; call++) {
		unsigned last = call == 2 ? 1 : 2;

		for (unsigned rank = 0; rank < 3; rank++)
			assert_ptr_equal(collective_of(model, comm, 10 * call + rank + 1),
					 model_collective_at(comm, call));
		collective = model_collective_at(comm, call);
		assert_int_equal(collective->comm, COMM);
		assert_int_equal(collective->seq, call);
		assert_int_equal(collective->nranks, 3);
		assert_int_equal(collective->count, 3);
		assert_int_equal(collective->alignment, COLLECTIVE_BY_CREATION);
		assert_int_equal(collective->last, last);
		assert_int_equal(collective->flow, FLOW_ALL);
		assert_int_equal(collective->root, MODEL_NONE);
		assert_true(collective->synchronizes);
		assert_true(collective->comparable);
		assert_false(collective->mpi);
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
	comm_free(comm, &capture);
}

/* A communicator of rank at an address that differs from rank to rank. `id`: 0: its creation does
 * not have one. */
static void rank_init_at(struct capture *capture, unsigned rank, unsigned nranks, uint64_t ts,
			 uint64_t id, uint64_t address)
{
	const uint64_t words[] = {rank, nranks, id};

	call_hit_in(capture, 100 + rank, ts, 200 + rank, CALL_COMM_INIT_AT, ts, 3, words);
	call_return_in(capture, 100 + rank, ts + 10, 200 + rank, CALL_COMM_INIT_AT, ts, 1,
		       &address);
}

static void rank_call_at(struct capture *capture, unsigned rank, uint64_t from, uint64_t id,
			 uint64_t address, uint64_t seq)
{
	const uint64_t words[] = {64, address, seq, 0xa};

	call_hit_in(capture, 100 + rank, from, 200 + rank, CALL_ALL_REDUCE_AT, id, 4, words);
	call_return_in(capture, 100 + rank, from + 20, 200 + rank, CALL_ALL_REDUCE_AT, id, 0, NULL);
}

/* Their memory was not understood: rank, size and identity are those of ncclCommInitRank. The
 * second communicator is where the first one was, and its ranks are in another order. */
static void test_communicators_at_an_address_are_those_that_were_created_there(void **state)
{
	const struct model_collective *first, *second;
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	for (unsigned rank = 0; rank < 2; rank++)
		rank_init_at(&capture, rank, 2, 1500 + rank, 0x1d, 0x7000 + rank);
	for (unsigned rank = 0; rank < 2; rank++)
		rank_call_at(&capture, rank, 2000 + rank, 1 + rank, 0x7000 + rank, 0);
	for (unsigned rank = 0; rank < 2; rank++)
		rank_init_at(&capture, rank, 2, 3000 + rank, 0x2d, 0x7000 + rank);
	for (unsigned rank = 0; rank < 2; rank++) /* the tracer counts on */
		rank_call_at(&capture, rank, 4000 + rank, 3 + rank, 0x7000 + rank, 1 + 5 * rank);
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collective_count(comm), 2);
	first = collective_of(model, comm, 1);
	second = collective_of(model, comm, 3);
	assert_ptr_not_equal(first, second);
	assert_int_equal(first->comm, 0x1d);
	assert_int_equal(second->comm, 0x2d);
	for (unsigned rank = 0; rank < 2; rank++) {
		assert_ptr_equal(collective_of(model, comm, 1 + rank), first);
		assert_ptr_equal(collective_of(model, comm, 3 + rank), second);
		assert_int_equal(first->calls[rank].rank, rank);
		assert_int_equal(second->calls[rank].rank, rank);
	}
	assert_int_equal(second->nranks, 2);
	assert_int_equal(second->alignment, COLLECTIVE_BY_CREATION);
	comm_free(comm, &capture);
}

/* One that was created before the capture, by ncclCommSplit or with a rank that can't be, is not
 * guessed, and does not pass for the one that was at its address before. */
static void test_communicators_of_unknown_creation_are_not_guessed(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	rank_call_at(&capture, 0, 1200, 1, 0x7000, 0); /* before */
	rank_init_at(&capture, 0, 2, 1500, 0x1d, 0x7000);
	rank_call_at(&capture, 0, 2000, 2, 0x7000, 1);
	rank_init_at(&capture, 0, 2, 3000, 0, 0x7000); /* without an id */
	rank_call_at(&capture, 0, 3100, 3, 0x7000, 2);
	rank_init_at(&capture, 1, 1, 4000, 0x3d, 0x7001); /* rank 1 of 1 */
	rank_call_at(&capture, 1, 4100, 4, 0x7001, 0);
	comm = comm_load(&capture, 9000, &model);
	for (unsigned id = 1; id <= 4; id++) {
		const struct model_collective *found =
			model_collective_of(comm, model_span_find(model, id));

		assert_true(id == 2 ? found && found->comm == 0x1d : !found);
	}
	comm_free(comm, &capture);
}

/* The counter of a library may have 32 or 64 bits, and wrap. */
static void test_sequence_numbers_may_wrap(void **state)
{
	static const uint64_t first[][2] = {
		{UINT32_MAX - 1, UINT32_MAX - 1},
		{UINT64_MAX - 1, UINT64_MAX - 1},
		{UINT32_MAX, 17}, /* a rank counts from another number */
	};

	(void)state;
	for (size_t row = 0; row < 3; row++) {
		uint64_t mask = first[row][0] > UINT32_MAX ? UINT64_MAX : UINT32_MAX;
		struct capture capture;
		const struct model *model;
		struct model_comm *comm;

		calls_begin(&capture);
		for (unsigned rank = 0; rank < 2; rank++)
			rank_init(&capture, rank, 2, 1500 + rank);
		for (unsigned call = 0; call < 5; call++)
			for (unsigned rank = 0; rank < 2; rank++)
				rank_call(&capture, rank, 2, CALL_ALL_REDUCE,
					  2000 + 100 * call + rank, 2080 + 100 * call,
					  10 * call + rank + 1, 64,
					  (first[row][rank] + call) & mask);
		comm = comm_load(&capture, 9000, &model);
		assert_int_equal(model_collectives_unaligned(comm), 0);
		assert_int_equal(model_collective_count(comm), 5);
		for (unsigned call = 0; call < 5; call++) {
			const struct model_collective *found =
				collective_of(model, comm, 10 * call + 1);

			assert_ptr_equal(found, collective_of(model, comm, 10 * call + 2));
			assert_int_equal(found->seq, call);
			assert_int_equal(found->alignment, COLLECTIVE_BY_CREATION);
		}
		comm_free(comm, &capture);
	}
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
		struct model_comm *comm;
		unsigned both = skips[row][0] > skips[row][1] ? skips[row][0] : skips[row][1];

		calls_begin(&capture);
		in_step(&capture, skips[row], 6);
		comm = comm_load(&capture, 9000, &model);
		assert_int_equal(model_collective_count(comm), 6);
		assert_int_equal(model_collectives_unaligned(comm), 0);
		for (unsigned call = both; call < 6; call++) {
			collective = collective_of(model, comm, 10 * call + 1);
			assert_ptr_equal(collective, collective_of(model, comm, 10 * call + 2));
			assert_int_equal(collective->alignment, COLLECTIVE_BY_ORDER);
			assert_int_equal(collective->count, 2);
			assert_int_equal(collective->last, 1);
			assert_int_equal(links_between(model, 10 * call + 1, 10 * call + 2), 1);
		}
		if (both)
			assert_int_equal(model_collective_at(comm, 0)->alignment, COLLECTIVE_ALONE);
		comm_free(comm, &capture);
	}
}

static void test_collectives_that_could_be_aligned_in_two_ways_are_not(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	/* Nobody waits for anything: any shift is possible. */
	for (unsigned call = 0; call < 4; call++)
		for (unsigned rank = 0; rank < 2; rank++)
			rank_call(&capture, rank, 2, CALL_ALL_REDUCE, 2000 + 100 * call + rank,
				  2010 + 100 * call, 10 * call + rank + 1, 64, call);
	rank_sync(&capture, 0, 3000, 3100, 100);
	rank_sync(&capture, 1, 3000, 3100, 101);
	comm = comm_load(&capture, 9000, &model);
	/* The end is known, so neither can be ahead: it is certain after all. */
	assert_int_equal(model_collectives_unaligned(comm), 0);
	comm_free(comm, &capture);

	calls_begin(&capture);
	for (unsigned call = 0; call < 4; call++)
		for (unsigned rank = 0; rank < 2; rank++)
			rank_call(&capture, rank, 2, CALL_ALL_REDUCE, 2000 + 100 * call + rank,
				  2010 + 100 * call, 10 * call + rank + 1, 64, call);
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 8);
	assert_int_equal(model->unaligned_collectives, 8);
	assert_int_equal(collective_of(model, comm, 1)->alignment, COLLECTIVE_ALONE);
	assert_int_equal(collective_of(model, comm, 1)->count, 1);
	assert_int_equal(model->links.len, 0);
	comm_free(comm, &capture);
}

static void test_different_counts_decide_between_possible_alignments(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

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
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 0);
	for (unsigned call = 1; call < 9; call++)
		assert_ptr_equal(collective_of(model, comm, 10 * call + 1),
				 collective_of(model, comm, 10 * call + 2));
	comm_free(comm, &capture);
}

static void test_lost_records_leave_collectives_unaligned(void **state)
{
	static const unsigned skip[2] = {0, 0};
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	in_step(&capture, skip, 6);
	capture_loss(&capture, 2650, 2660, WAFFLE_SOURCE_SPANS, 1);
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 12);
	comm_free(comm, &capture);
}

static void test_broadcast_that_its_root_is_done_with_proves_nothing(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	for (unsigned call = 0; call < 4; call++)
		for (unsigned rank = 0; rank < 2; rank++) {
			uint64_t base = 2000 + 100 * call + 1000 * rank;

			rank_call(&capture, rank, 2, CALL_BROADCAST, base, base + 5,
				  10 * call + rank + 1, 64, call);
			rank_sync(&capture, rank, base + 6, base + 60, 10 * call + rank + 3);
		}
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 8);
	comm_free(comm, &capture);
}

static void test_collective_in_a_group_arrives_when_the_group_ends(void **state)
{
	const struct model_collective *collective;
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	rank_init(&capture, 0, 2, 1500);
	rank_init(&capture, 1, 2, 1500);
	call_hit_in(&capture, 100, 2000, 200, CALL_GROUP_START, 1, 0, NULL);
	rank_call(&capture, 0, 2, CALL_ALL_REDUCE, 2010, 2020, 2, 64, 0);
	rank_call(&capture, 1, 2, CALL_ALL_REDUCE, 2100, 2120, 3, 64, 0);
	call_hit_in(&capture, 100, 2200, 200, CALL_GROUP_END, 4, 0, NULL);
	call_return_in(&capture, 100, 2300, 200, CALL_GROUP_END, 4, 0, NULL);
	comm = comm_load(&capture, 9000, &model);
	collective = collective_of(model, comm, 4);
	assert_ptr_equal(collective, collective_of(model, comm, 2));
	assert_int_equal(collective->count, 2);
	assert_int_equal(collective->last, 0);
	assert_int_equal(collective->calls[0].arrival_ts, 2200);
	assert_int_equal(model->spans.data[collective->calls[0].group_end].id, 4);
	assert_int_equal(collective->calls[1].group_end, MODEL_NONE);
	assert_int_equal(links_between(model, 3, 2), 1);
	assert_int_equal(links_between(model, 4, 2), 1);
	comm_free(comm, &capture);
}

static void test_calls_that_differ_are_no_collective_whatever_their_number(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	rank_init(&capture, 0, 2, 1500);
	rank_init(&capture, 1, 2, 1500);
	rank_call(&capture, 0, 2, CALL_ALL_REDUCE, 2010, 2020, 2, 64, 0);
	rank_call(&capture, 1, 2, CALL_ALL_REDUCE, 2100, 2120, 3, 65, 0);
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 2);
	assert_int_equal(collective_of(model, comm, 2)->count, 1);
	assert_int_equal(model->links.len, 0);
	comm_free(comm, &capture);
}

/* ---- point to point ---- */

/* A send or recv of a rank, with another one. */
static void message(struct capture *capture, uint32_t site, unsigned rank, unsigned peer,
		    unsigned nranks, uint64_t from, uint64_t id, uint64_t count, uint64_t seq)
{
	const uint64_t words[] = {count, peer, COMM, rank, nranks, seq, 0xa};

	call_hit_in(capture, 100 + rank, from, 200 + rank, site, id, 7, words);
	call_return_in(capture, 100 + rank, from + 5, 200 + rank, site, id, 0, NULL);
}

static void test_send_meets_the_recv_of_its_number_between_two_ranks(void **state)
{
	const struct model_collective *met;
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	for (unsigned rank = 0; rank < 3; rank++)
		rank_init(&capture, rank, 3, 1500 + rank);
	/* Rank 0 sends two messages to 1 and one to 2 between them, and gets one from 1. */
	message(&capture, CALL_SEND, 0, 1, 3, 2000, 1, 64, 0);
	message(&capture, CALL_SEND, 0, 2, 3, 2010, 2, 32, 1);
	message(&capture, CALL_SEND, 0, 1, 3, 2020, 3, 64, 2);
	message(&capture, CALL_RECV, 0, 1, 3, 2030, 4, 16, 3);
	message(&capture, CALL_SEND, 1, 0, 3, 1990, 5, 16, 0);
	message(&capture, CALL_RECV, 1, 0, 3, 2040, 6, 64, 1);
	message(&capture, CALL_RECV, 1, 0, 3, 2050, 7, 64, 2);
	message(&capture, CALL_RECV, 2, 0, 3, 2060, 8, 32, 0);
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 0);
	assert_int_equal(model_collective_count(comm), 4);
	met = collective_of(model, comm, 3);
	assert_ptr_equal(met, collective_of(model, comm, 7));
	assert_int_equal(met->seq, 1);
	assert_int_equal(met->count, 2);
	assert_int_equal(met->from, 0);
	assert_int_equal(met->to, 1);
	assert_int_equal(met->nranks, 2);
	assert_int_equal(met->last, 1);
	assert_int_equal(met->alignment, COLLECTIVE_BY_CREATION);
	assert_int_equal(met->calls[0].rank, 0);
	assert_int_equal(met->calls[1].rank, 1);
	assert_ptr_equal(collective_of(model, comm, 1), collective_of(model, comm, 6));
	assert_ptr_equal(collective_of(model, comm, 2), collective_of(model, comm, 8));
	assert_ptr_equal(collective_of(model, comm, 4), collective_of(model, comm, 5));
	/* From the rank that arrived first to the one that arrived last. */
	assert_int_equal(links_between(model, 1, 6), 1);
	assert_int_equal(links_between(model, 3, 7), 1);
	assert_int_equal(links_between(model, 2, 8), 1);
	assert_int_equal(links_between(model, 5, 4), 1);
	assert_int_equal(model->links.len, 4);
	comm_free(comm, &capture);
}

static void test_rank_that_sends_to_itself_meets_itself(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	rank_init(&capture, 0, 1, 1500);
	for (unsigned i = 0; i < 2; i++) {
		message(&capture, CALL_SEND, 0, 0, 1, 2000 + 20 * i, 1 + i, 64 + i, 2 * i);
		message(&capture, CALL_RECV, 0, 0, 1, 2010 + 20 * i, 3 + i, 64 + i, 2 * i + 1);
	}
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 0);
	assert_int_equal(links_between(model, 1, 3), 1);
	assert_int_equal(links_between(model, 2, 4), 1);
	assert_int_equal(model->links.len, 2);
	comm_free(comm, &capture);
}

static void test_messages_of_an_older_communicator_are_not_paired(void **state)
{
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	message(&capture, CALL_SEND, 0, 1, 2, 2000, 1, 64, 5);
	message(&capture, CALL_RECV, 1, 0, 2, 2100, 2, 64, 5);
	comm = comm_load(&capture, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 2);
	assert_int_equal(collective_of(model, comm, 1)->alignment, COLLECTIVE_ALONE);
	assert_int_equal(collective_of(model, comm, 1)->members, 2);
	assert_int_equal(model->links.len, 0);
	comm_free(comm, &capture);
}

static void test_messages_in_a_group_arrive_when_it_ends_and_are_found_by_its_end(void **state)
{
	const struct model_collective *met;
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;
	struct model_gpu *gpu;
	uint32_t span;

	(void)state;
	calls_begin(&capture);
	for (unsigned rank = 0; rank < 2; rank++)
		rank_init(&capture, rank, 2, 1500);
	for (unsigned rank = 0; rank < 2; rank++) {
		uint64_t at = 2000 + 1000 * rank;

		call_hit_in(&capture, 100 + rank, at, 200 + rank, CALL_GROUP_START, at, 0, NULL);
		message(&capture, CALL_SEND, rank, 1 - rank, 2, at + 10, 10 + rank, 64, 0);
		message(&capture, CALL_RECV, rank, 1 - rank, 2, at + 20, 20 + rank, 64, 1);
		call_hit_in(&capture, 100 + rank, at + 50, 200 + rank, CALL_GROUP_END, 30 + rank, 0,
			    NULL);
		call_return_in(&capture, 100 + rank, at + 90, 200 + rank, CALL_GROUP_END, 30 + rank,
			       0, NULL);
	}
	gpu = gpu_load(&capture, 9000, &model);
	comm = model_comm_new(model, gpu);
	met = collective_of(model, comm, 10);
	assert_ptr_equal(met, collective_of(model, comm, 21));
	assert_int_equal(met->calls[0].arrival_ts, 2050);
	assert_int_equal(met->calls[1].arrival_ts, 3050);
	span = model_gpu_group_next(gpu, model_span_find(model, 30));
	assert_int_equal(model->spans.data[span].id, 10);
	span = model_gpu_group_next(gpu, span);
	assert_int_equal(model->spans.data[span].id, 20);
	assert_int_equal(model_gpu_group_next(gpu, span), MODEL_NONE);
	model_gpu_free(gpu);
	comm_free(comm, &capture);
}

/* ---- ranks that do not come ---- */

static void test_rank_that_has_not_come_when_the_capture_ends_is_known(void **state)
{
	const struct model_collective *collective;
	struct capture capture;
	const struct model *model;
	struct model_comm *comm;

	(void)state;
	calls_begin(&capture);
	for (unsigned rank = 0; rank < 3; rank++)
		rank_init(&capture, rank, 3, 1500 + rank);
	for (unsigned call = 0; call < 3; call++)
		for (unsigned rank = 0; rank < 3; rank++)
			if (call < 2 || rank != 1)
				rank_call(&capture, rank, 3, CALL_ALL_REDUCE,
					  2000 + 100 * call + rank, 2080 + 100 * call,
					  10 * call + rank + 1, 64, call);
	message(&capture, CALL_SEND, 0, 2, 3, 2500, 50, 64, 0);
	comm = comm_load(&capture, 9000, &model);
	collective = collective_of(model, comm, 11);
	assert_int_equal(collective->late_rank, MODEL_NONE);
	collective = collective_of(model, comm, 21);
	assert_int_equal(collective->count, 2);
	assert_int_equal(collective->late_rank, 1);
	assert_int_equal(model->threads.data[collective->late_thread].tid, 201);
	/* It has called nothing but the making of the communicator. */
	collective = collective_of(model, comm, 50);
	assert_int_equal(collective->late_rank, 2);
	assert_int_equal(model->threads.data[collective->late_thread].tid, 202);
	comm_free(comm, &capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_collectives_are_counted_from_the_creation_of_their_communicator),
		cmocka_unit_test(
			test_collectives_attached_to_late_are_aligned_by_who_waits_for_whom),
		cmocka_unit_test(
			test_communicators_at_an_address_are_those_that_were_created_there),
		cmocka_unit_test(test_communicators_of_unknown_creation_are_not_guessed),
		cmocka_unit_test(test_sequence_numbers_may_wrap),
		cmocka_unit_test(test_collectives_that_could_be_aligned_in_two_ways_are_not),
		cmocka_unit_test(test_different_counts_decide_between_possible_alignments),
		cmocka_unit_test(test_lost_records_leave_collectives_unaligned),
		cmocka_unit_test(test_broadcast_that_its_root_is_done_with_proves_nothing),
		cmocka_unit_test(test_collective_in_a_group_arrives_when_the_group_ends),
		cmocka_unit_test(test_calls_that_differ_are_no_collective_whatever_their_number),
		cmocka_unit_test(test_send_meets_the_recv_of_its_number_between_two_ranks),
		cmocka_unit_test(test_rank_that_sends_to_itself_meets_itself),
		cmocka_unit_test(test_messages_of_an_older_communicator_are_not_paired),
		cmocka_unit_test(
			test_messages_in_a_group_arrive_when_it_ends_and_are_found_by_its_end),
		cmocka_unit_test(test_rank_that_has_not_come_when_the_capture_ends_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
