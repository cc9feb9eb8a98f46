// SPDX-License-Identifier: Apache-2.0
/* Collectives, messages and communicators of MPI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "mpi_capture.h"

#define STATUS 0x7ffd0000
#define GOT(source, tag) ((uint64_t)(tag) << 32 | (source))

static const struct model_collective *must_find(const struct model *model,
						const struct model_comm *comm, uint64_t id)
{
	const struct model_collective *found = mpi_found(model, comm, id);

	assert_non_null(found);
	return found;
}

static uint64_t id_of_call(const struct model *model, const struct model_collective *collective,
			   uint32_t at)
{
	assert_true(at < collective->count);
	return model->spans.data[collective->calls[at].span].id;
}

/* Both libraries: handles that are numbers, and handles that are addresses. */
#define FOR_BOTH(pointers) for (int pointers = 0; pointers < 2; pointers++)

static void test_collectives_of_the_world_are_counted_from_mpi_init(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model_collective *found;
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t sum[3], cast[3];

		mpi_begin(&job, pointers);
		for (unsigned rank = 0; rank < 3; rank++) {
			struct mpi_name world = mpi_world(&job, rank);

			mpi_init(&job, rank, 3, 1100);
			sum[rank] = mpi_call(&job, rank, 2000 + 10 * rank, 2100, MPI_SITE_ALLREDUCE,
					     &world, 4);
			cast[rank] = mpi_call(&job, rank, 2200 - rank, 2300 + rank, MPI_SITE_BCAST,
					      &world, 4, 1);
		}
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(model_collective_count(comm), 2);
		assert_int_equal(model_collectives_unaligned(comm), 0);
		found = must_find(model, comm, sum[0]);
		assert_int_equal(found->count, 3);
		assert_int_equal(found->seq, 0);
		assert_int_equal(found->nranks, 3);
		assert_int_equal(found->flow, FLOW_ALL);
		assert_int_equal(found->alignment, COLLECTIVE_BY_CREATION);
		assert_int_equal(found->last, 2);
		assert_true(found->synchronizes && found->mpi && !found->rooted);
		for (unsigned rank = 0; rank < 3; rank++) {
			assert_int_equal(id_of_call(model, found, rank), sum[rank]);
			assert_int_equal(found->calls[rank].rank, rank);
			assert_int_equal(found->calls[rank].end_ts, 2100);
			assert_int_equal(found->calls[rank].end_span, MODEL_NONE);
		}
		found = must_find(model, comm, cast[2]);
		assert_int_equal(found->seq, 1);
		assert_int_equal(found->flow, FLOW_FROM_ROOT);
		assert_int_equal(found->root, 1);
		assert_true(!found->synchronizes && found->rooted);
		assert_int_equal(found->last, 0);
		mpi_free(&job, comm);
	}
}

static void test_a_nonblocking_collective_ends_with_its_wait(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model_collective *found;
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t sum[2], wait = 0;

		mpi_begin(&job, pointers);
		for (unsigned rank = 0; rank < 2; rank++) {
			struct mpi_name world = mpi_world(&job, rank);

			mpi_init(&job, rank, 2, 1100);
			sum[rank] = mpi_call(&job, rank, 2000, 2010, MPI_SITE_IALLREDUCE, &world, 1,
					     0x7000, 0x55);
			/* It is not complete yet. */
			mpi_call(&job, rank, 2020, 2030, MPI_SITE_TEST, NULL, 0x7000, 0x55, 0, 0);
			if (!rank)
				wait = mpi_call(&job, rank, 2100, 2200, MPI_SITE_WAIT, NULL, 0x7000,
						0x55, 0);
		}
		comm = mpi_load(&job, 9000, &model);
		found = must_find(model, comm, sum[0]);
		assert_int_equal(found->count, 2);
		assert_true(found->synchronizes);
		assert_int_equal(found->calls[0].end_ts, 2200);
		assert_int_equal(model->spans.data[found->calls[0].end_span].id, wait);
		assert_int_equal(found->calls[1].end_ts, UINT64_MAX);
		assert_int_equal(found->calls[1].end_span, MODEL_NONE);
		mpi_free(&job, comm);
	}
}

static void test_a_freed_handle_that_is_used_again_is_another_communicator(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model_collective *first, *second;
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t before[2], after[2];

		mpi_begin(&job, pointers);
		for (unsigned rank = 0; rank < 2; rank++) {
			struct mpi_name world = mpi_world(&job, rank);
			struct mpi_name made = {0x84000000 + rank, rank, 3};

			mpi_init(&job, rank, 2, 1100);
			mpi_call(&job, rank, 2000, 2010, MPI_SITE_DUP, &world, made.handle);
			before[rank] = mpi_call(&job, rank, 2020, 2030, MPI_SITE_BARRIER, &made);
			mpi_call(&job, rank, 2040, 2050, MPI_SITE_FREE, &made);
			mpi_call(&job, rank, 2060, 2070, MPI_SITE_DUP, &world, made.handle);
			after[rank] = mpi_call(&job, rank, 2080, 2090, MPI_SITE_BARRIER, &made);
		}
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(model_collectives_unaligned(comm), 0);
		first = must_find(model, comm, before[0]);
		second = must_find(model, comm, after[0]);
		assert_ptr_equal(first, must_find(model, comm, before[1]));
		assert_ptr_equal(second, must_find(model, comm, after[1]));
		assert_true(first->comm != second->comm);
		assert_int_equal(first->seq, 0);
		assert_int_equal(second->seq, 0);
		assert_int_equal(second->nranks, 2);
		mpi_free(&job, comm);
	}
}

static void test_the_ranks_of_a_split_follow_from_its_colors_and_keys(void **state)
{
	/* Rank 4 gets no communicator. Ranks 0, 2 and 3 are ranks 2, 0 and 1 of one. */
	static const int64_t colors[] = {7, 8, 7, 7, -32766}, keys[] = {1, 0, -5, 0, 0};
	static const unsigned ranks[] = {2, 0, 0, 1};
	const struct model_collective *found;
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	uint64_t barrier[5] = {0}, send = 0, received = 0;

	(void)state;
	mpi_begin(&job, false);
	for (unsigned rank = 0; rank < 5; rank++) {
		struct mpi_name world = mpi_world(&job, rank);
		struct mpi_name made = {rank == 4 ? 0x04000000 : 0x84000000 + rank, 0, 0};

		mpi_init(&job, rank, 5, 1100);
		mpi_call(&job, rank, 2000, 2010, MPI_SITE_SPLIT, &world, (uint64_t)colors[rank],
			 (uint64_t)keys[rank], made.handle);
		if (rank < 4)
			barrier[rank] = mpi_call(&job, rank, 2020, 2030, MPI_SITE_BARRIER, &made);
		/* From world rank 0 to world rank 3. */
		if (!rank)
			send = mpi_call(&job, rank, 2040, 2050, MPI_SITE_SEND, &made, 1, 9);
		if (rank == 3)
			received = mpi_call(&job, rank, 2040, 2060, MPI_SITE_RECV, &made, 2, 9, 1);
	}
	comm = mpi_load(&job, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 0);
	found = must_find(model, comm, barrier[0]);
	assert_int_equal(found->count, 3);
	assert_int_equal(found->nranks, 3);
	assert_int_equal(found->members, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(found->calls[i].rank, ranks[found->calls[i].pid - MPI_PID]);
		assert_int_equal(id_of_call(model, found, i),
				 barrier[found->calls[i].pid - MPI_PID]);
	}
	found = must_find(model, comm, barrier[1]);
	assert_int_equal(found->nranks, 1);
	found = must_find(model, comm, send);
	assert_ptr_equal(found, must_find(model, comm, received));
	assert_int_equal(found->from, 2);
	assert_int_equal(found->to, 1);
	assert_int_equal(found->tag, 9);
	mpi_free(&job, comm);
}

/* If not all ranks of the parent are traced, nobody knows the ranks of a split but the program. */
static void test_the_ranks_of_an_incomplete_split_are_not_guessed(void **state)
{
	const struct model_collective *found;
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	uint64_t barrier[2];

	(void)state;
	mpi_begin(&job, false);
	for (unsigned rank = 0; rank < 2; rank++) {
		struct mpi_name world = mpi_world(&job, rank), made = {0x84000000 + rank, 0, 0};

		mpi_init(&job, rank, 3, 1100);
		mpi_call(&job, rank, 2000, 2010, MPI_SITE_SPLIT, &world, 1, 0, made.handle);
		barrier[rank] = mpi_call(&job, rank, 2020, 2030, MPI_SITE_BARRIER, &made);
		mpi_call(&job, rank, 2040, 2050, MPI_SITE_SEND, &made, 1 - rank, 9);
	}
	comm = mpi_load(&job, 9000, &model);
	found = must_find(model, comm, barrier[0]);
	assert_int_equal(found->count, 2);
	assert_int_equal(found->nranks, 0);
	assert_int_equal(found->calls[0].rank, MODEL_NONE);
	assert_int_equal(model_collectives_unaligned(comm), 2);
	mpi_free(&job, comm);
}

/* Several groups may call MPI_Comm_create at once: without ranks they cannot be told apart. */
static void test_the_groups_of_a_creation_are_told_apart_by_rank_or_size(void **state)
{
	for (unsigned known = 0; known < 2; known++) {
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t barrier[4];

		(void)state;
		mpi_begin(&job, false);
		for (unsigned rank = 0; rank < 4; rank++) {
			struct mpi_name world = mpi_world(&job, rank),
					made = {0x84000000 + rank, 0, 0};
			bool member = known ? rank < 2 : true;

			mpi_init(&job, rank, 4, 1100);
			mpi_call(&job, rank, 2000, 2010, MPI_SITE_CREATE, &world,
				 member ? made.handle : 0x04000000);
			if (known && member)
				mpi_call(&job, rank, 2012, 2013, MPI_SITE_SIZE, &made, 2);
			barrier[rank] =
				member ? mpi_call(&job, rank, 2020, 2030, MPI_SITE_BARRIER, &made)
				       : 0;
		}
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(must_find(model, comm, barrier[0])->count, known ? 2 : 1);
		assert_int_equal(must_find(model, comm, barrier[0])->alignment,
				 known ? COLLECTIVE_BY_CREATION : COLLECTIVE_ALONE);
		assert_int_equal(model_collectives_unaligned(comm), known ? 0 : 4);
		mpi_free(&job, comm);
	}
}

static void test_wildcards_are_resolved_from_the_status(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		uint64_t any = pointers ? (uint64_t)-1 : (uint64_t)-2;
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		struct mpi_name world;
		uint64_t send[3], got[3];

		mpi_begin_ranks(&job, pointers, 3);
		for (unsigned rank = 1; rank < 3; rank++) {
			world = mpi_world(&job, rank);
			send[rank] = mpi_call(&job, rank, 2000, 2010, MPI_SITE_SEND, &world, 0,
					      50 + rank);
		}
		world = mpi_world(&job, 0);
		/* Rank 2's message comes first. */
		got[2] = mpi_call(&job, 0, 2000, 2050, MPI_SITE_RECV, &world, any, (uint64_t)-1,
				  STATUS, GOT(2, 52));
		got[1] = mpi_call(&job, 0, 2060, 2070, MPI_SITE_IRECV, &world, any, (uint64_t)-1,
				  0x7000, 0x55);
		mpi_call(&job, 0, 2080, 2090, MPI_SITE_WAIT, NULL, 0x7000, 0x55, STATUS,
			 GOT(1, 51));
		/* To no process. */
		mpi_call(&job, 0, 2100, 2110, MPI_SITE_SEND, &world,
			 pointers ? (uint64_t)-2 : (uint64_t)-1, 50);
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(model_collective_count(comm), 2);
		assert_int_equal(model_collectives_unaligned(comm), 0);
		for (unsigned rank = 1; rank < 3; rank++) {
			const struct model_collective *found = must_find(model, comm, send[rank]);

			assert_ptr_equal(found, must_find(model, comm, got[rank]));
			assert_int_equal(found->count, 2);
			assert_int_equal(found->from, rank);
			assert_int_equal(found->to, 0);
			assert_int_equal(found->flow, FLOW_PAIR);
		}
		assert_int_equal(must_find(model, comm, got[1])->calls[1].end_ts, 2090);
		mpi_free(&job, comm);
	}
}

/* With MPI_STATUS_IGNORE nobody knows which message it was. */
static void test_messages_after_an_unresolved_wildcard_are_not_matched(void **state)
{
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	struct mpi_name world;
	uint64_t before, other;

	(void)state;
	mpi_begin_ranks(&job, false, 2);
	world = mpi_world(&job, 1);
	for (unsigned i = 0; i < 3; i++)
		mpi_call(&job, 1, 2000 + 10 * i, 2005 + 10 * i, MPI_SITE_SEND, &world, 0, 5);
	mpi_call(&job, 1, 2100, 2105, MPI_SITE_SEND, &world, 0, 6);
	world = mpi_world(&job, 0);
	before = mpi_call(&job, 0, 3000, 3010, MPI_SITE_RECV, &world, 1, 5, 1);
	mpi_call(&job, 0, 3020, 3030, MPI_SITE_RECV, &world, (uint64_t)-2, 5, 1);
	mpi_call(&job, 0, 3040, 3050, MPI_SITE_RECV, &world, 1, 5, 1);
	other = mpi_call(&job, 0, 3060, 3070, MPI_SITE_RECV, &world, 1, 6, 1);
	comm = mpi_load(&job, 9000, &model);
	assert_int_equal(must_find(model, comm, before)->count, 2);
	assert_int_equal(must_find(model, comm, other)->count, 2);
	assert_int_equal(model_collectives_unaligned(comm), 2);
	mpi_free(&job, comm);
}

static void test_one_call_may_send_and_receive(void **state)
{
	const struct model_collective *sent, *received;
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	uint64_t call[2];

	(void)state;
	mpi_begin(&job, true);
	for (unsigned rank = 0; rank < 2; rank++) {
		struct mpi_name world = mpi_world(&job, rank);

		mpi_init(&job, rank, 2, 1100);
		call[rank] = mpi_call(&job, rank, 2000 + 10 * rank, 2100, MPI_SITE_SENDRECV, &world,
				      1 - rank, 1 + rank, 1 - rank, 2 - rank, 0);
	}
	comm = mpi_load(&job, 9000, &model);
	sent = must_find(model, comm, call[0]);
	received = model_collective_received(comm, model_span_find(model, call[0]));
	assert_non_null(received);
	assert_int_equal(sent->from, 0);
	assert_int_equal(received->from, 1);
	assert_int_equal(sent->count, 2);
	assert_int_equal(received->count, 2);
	assert_ptr_equal(must_find(model, comm, call[1]), received);
	assert_int_equal(model->links.len, 1); /* the two messages share it */
	mpi_free(&job, comm);
}

/* A library gives the same request to all messages that were sent at once. */
static void test_requests_are_found_by_address_and_value(void **state)
{
	const struct model_collective *found;
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	struct mpi_name world;
	uint64_t send[8], waitall, persistent, mprobe, mrecv;

	(void)state;
	mpi_begin_ranks(&job, true, 2);
	world = mpi_world(&job, 0);
	for (unsigned i = 0; i < 8; i++)
		send[i] = mpi_call(&job, 0, 2000 + 10 * i, 2005 + 10 * i, MPI_SITE_ISEND, &world, 1,
				   i, 0x7000 + 8 * i, 0x99);
	waitall = mpi_call(&job, 0, 2100, 2200, MPI_SITE_WAITALL, NULL, 7, 0x7000, 0x99, 0x99, 0x99,
			   0x99, 0x99, 0);
	mpi_call(&job, 0, 2210, 2220, MPI_SITE_WAITANY, NULL, 3, 0x7028, 1, 2, 0x99, 0, 0, 0, 2);
	/* Rank 1 receives tags 0 to 7, the last two otherwise. */
	world = mpi_world(&job, 1);
	for (unsigned i = 0; i < 6; i++)
		mpi_call(&job, 1, 3000 + 10 * i, 3005 + 10 * i, MPI_SITE_RECV, &world, 0, i, 0);
	mpi_call(&job, 1, 3100, 3110, MPI_SITE_RECV_INIT, &world, 0, 6, 0x8000, 0x66);
	persistent = mpi_call(&job, 1, 3120, 3130, MPI_SITE_START, NULL, 0x8000, 0x66);
	mpi_call(&job, 1, 3140, 3150, MPI_SITE_WAIT, NULL, 0x8000, 0x66, 0);
	mprobe = mpi_call(&job, 1, 3160, 3170, MPI_SITE_MPROBE, &world, (uint64_t)-1, (uint64_t)-1,
			  STATUS, 0x77, GOT(0, 7));
	mrecv = mpi_call(&job, 1, 3180, 3190, MPI_SITE_MRECV, NULL, 0x77);
	comm = mpi_load(&job, 9000, &model);
	assert_int_equal(model_collectives_unaligned(comm), 0);
	assert_int_equal(model_collective_count(comm), 8);
	for (unsigned i = 0; i < 8; i++) {
		found = must_find(model, comm, send[i]);
		assert_int_equal(found->count, 2);
		assert_int_equal(found->calls[0].end_ts, i < 7 ? 2200 : 2220);
		if (i < 7)
			assert_int_equal(model->spans.data[found->calls[0].end_span].id, waitall);
	}
	found = must_find(model, comm, send[6]);
	assert_int_equal(id_of_call(model, found, 1), persistent);
	assert_int_equal(found->calls[1].end_ts, 3150);
	found = must_find(model, comm, send[7]);
	assert_int_equal(id_of_call(model, found, 1), mrecv);
	assert_null(mpi_found(model, comm, mprobe));
	mpi_free(&job, comm);
}

static void test_different_collectives_at_one_number_are_a_disorder(void **state)
{
	const struct model_disorder *disorder;
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	uint64_t first[3], second[3], third[3];

	(void)state;
	mpi_begin(&job, false);
	for (unsigned rank = 0; rank < 3; rank++) {
		struct mpi_name world = mpi_world(&job, rank);
		bool wrong = rank == 1;

		mpi_init(&job, rank, 3, 1100);
		first[rank] = mpi_call(&job, rank, 2000, 2010, MPI_SITE_BARRIER, &world);
		if (wrong)
			second[rank] =
				mpi_call(&job, rank, 2020, 2030, MPI_SITE_ALLREDUCE, &world, 1);
		third[rank] = mpi_call(&job, rank, 2040, 2050, MPI_SITE_BARRIER, &world);
		if (!wrong) {
			second[rank] = third[rank];
			third[rank] =
				mpi_call(&job, rank, 2060, 2070, MPI_SITE_ALLREDUCE, &world, 1);
		}
	}
	comm = mpi_load(&job, 9000, &model);
	assert_int_equal(must_find(model, comm, first[0])->count, 3);
	assert_int_equal(must_find(model, comm, second[0])->count, 1);
	assert_int_equal(must_find(model, comm, third[2])->count, 1);
	assert_int_equal(model_collectives_unaligned(comm), 6);
	assert_int_equal(model_disorder_count(comm), 1);
	disorder = model_disorder_at(comm, 0);
	assert_int_equal(disorder->seq, 1);
	assert_int_equal(disorder->rank, 0);
	assert_int_equal(disorder->other_rank, 1);
	assert_int_equal(disorder->others, 1);
	assert_int_equal(model->spans.data[disorder->span].id, second[0]);
	assert_int_equal(model->spans.data[disorder->other_span].id, second[1]);
	mpi_free(&job, comm);
}

/* The calls of all ranks from number `first` to 5 are matched by their order. */
static void check_by_order(const struct model *model, const struct model_comm *comm,
			   uint64_t (*id)[5], unsigned ranks, unsigned first)
{
	assert_int_equal(model_collectives_unaligned(comm), 0);
	for (unsigned call = first; call < 5; call++) {
		const struct model_collective *found = must_find(model, comm, id[0][call]);

		for (unsigned rank = 1; rank < ranks; rank++)
			assert_ptr_equal(found, must_find(model, comm, id[rank][call]));
		assert_int_equal(found->alignment, COLLECTIVE_BY_ORDER);
	}
}

/* A tracer that comes late sees no MPI_Init. Ranks that wait for each other are aligned then. */
static void test_a_late_attach_is_aligned_by_order_and_times(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t id[2][5];

		mpi_begin(&job, pointers);
		for (unsigned call = 0; call < 5; call++)
			for (unsigned rank = 0; rank < 2; rank++) {
				struct mpi_name world = mpi_world(&job, rank);
				uint64_t from = 2000 + 100 * call;

				/* Rank 1 is traced one call later. */
				if (!call && rank)
					continue;
				if (!pointers && call == 1)
					mpi_call(&job, rank, from - 20, from - 19, MPI_SITE_RANK,
						 &world, rank);
				id[rank][call] = mpi_call(&job, rank, from + 10 * rank, from + 50,
							  MPI_SITE_ALLREDUCE, &world, 1);
			}
		comm = mpi_load(&job, 9000, &model);
		check_by_order(model, comm, id, 2, 1);
		mpi_free(&job, comm);
	}
}

/* Rank 0 sends a message every 100 ns, which takes `sends`. Rank 1 receives all but the first,
 * `delay` after the send began, and asks for each of them `early` before that. */
static struct model_comm *late_messages(struct mpi_job *job, bool pointers, uint64_t sends,
					uint64_t early, uint64_t delay, uint64_t id[2][5],
					const struct model **model)
{
	struct mpi_name world;

	mpi_begin(job, pointers);
	for (unsigned rank = 0; rank < 2 && !pointers; rank++) {
		world = mpi_world(job, rank);
		mpi_call(job, rank, 1900, 1901, MPI_SITE_RANK, &world, rank);
	}
	for (unsigned i = 0; i < 5; i++) {
		uint64_t ts = 2000 + 100 * i;

		world = mpi_world(job, 0);
		id[0][i] = mpi_call(job, 0, ts, ts + sends, MPI_SITE_SEND, &world, 1, 5);
		world = mpi_world(job, 1);
		if (i)
			id[1][i] = mpi_call(job, 1, ts + delay - early, ts + delay, MPI_SITE_RECV,
					    &world, 0, 5, 1);
	}
	return mpi_load(job, 9000, model);
}

static void check_late_messages(uint64_t sends, uint64_t early, uint64_t delay)
{
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t id[2][5];

		comm = late_messages(&job, pointers, sends, early, delay, id, &model);
		check_by_order(model, comm, id, 2, 1);
		mpi_free(&job, comm);
	}
}

/* A receiver that waited for the next send had no message before it. */
static void test_messages_of_a_late_attach_are_matched_by_the_waits(void **state)
{
	(void)state;
	check_late_messages(5, 90, 10);
}

/* A sender that waited for the next receive had to: its message was a long one. */
static void test_long_messages_of_a_late_attach_are_matched_by_the_waits_to_send(void **state)
{
	(void)state;
	check_late_messages(60, 12, 62);
}

/* It may be any earlier message that it receives at once. */
static void test_messages_of_a_late_attach_without_waits_are_not_matched(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t id[2][5];

		comm = late_messages(&job, pointers, 5, 10, 60, id, &model);
		assert_int_equal(model_collectives_unaligned(comm), 9);
		assert_int_equal(must_find(model, comm, id[1][3])->alignment, COLLECTIVE_ALONE);
		mpi_free(&job, comm);
	}
}

/* The root waits for nobody. */
static void test_broadcasts_of_a_late_attach_are_matched_by_the_waits_for_the_root(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t id[3][5];

		mpi_begin(&job, pointers);
		for (unsigned call = 0; call < 5; call++)
			for (unsigned rank = 0; rank < 3; rank++) {
				struct mpi_name world = mpi_world(&job, rank);
				uint64_t ts = 2000 + 100 * call;

				/* Ranks 1 and 2 are traced later. */
				if (call < rank)
					continue;
				if (!pointers && call == rank)
					mpi_call(&job, rank, ts - 92, ts - 91, MPI_SITE_RANK,
						 &world, rank);
				id[rank][call] =
					mpi_call(&job, rank, rank ? ts - 90 + rank : ts,
						 ts + 5 + rank, MPI_SITE_BCAST, &world, 1, 0);
			}
		comm = mpi_load(&job, 9000, &model);
		check_by_order(model, comm, id, 3, 2);
		mpi_free(&job, comm);
	}
}

/* The capture began after the creation of the only communicator on which messages are sent. */
static void test_messages_without_any_collective_are_counted_as_unaligned(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;

		mpi_begin(&job, pointers);
		for (unsigned rank = 0; rank < 2; rank++) {
			struct mpi_name old = {0x84000001u + rank * 0x100000u, rank, 3};

			if (rank)
				mpi_call(&job, rank, 2000, 2100, MPI_SITE_RECV, &old, 0, 5, 1);
			else
				mpi_call(&job, rank, 2000, 2010, MPI_SITE_SEND, &old, 1, 5);
		}
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(model_collective_count(comm), 0);
		assert_int_equal(model_collectives_unaligned(comm), 2);
		assert_int_equal(model->unaligned_collectives, 2);
		mpi_free(&job, comm);
	}
}

#define OMPI_TRUNCATE 15
/* The class is in the low 7 bits. */
#define MPICH_TRUNCATE 0x0d00c30e
#define ERROR_RANK 6

/* Rank 1 sends three messages. Rank 0 receives them, the second time with an error. */
static struct model_comm *failed_receive(struct mpi_job *job, bool pointers, uint64_t error,
					 uint64_t got[3], uint64_t sent[3],
					 const struct model **model)
{
	struct mpi_name world;

	mpi_begin(job, pointers);
	for (unsigned rank = 0; rank < 2; rank++)
		mpi_init(job, rank, 2, 1100);
	world = mpi_world(job, 1);
	for (unsigned i = 0; i < 3; i++)
		sent[i] =
			mpi_call(job, 1, 2000 + 10 * i, 2005 + 10 * i, MPI_SITE_SEND, &world, 0, 5);
	world = mpi_world(job, 0);
	for (unsigned i = 0; i < 3; i++) {
		got[i] = mpi_call(job, 0, 3000 + 10 * i, 3005 + 10 * i, MPI_SITE_RECV, &world, 1, 5,
				  STATUS, GOT(1, 5));
		if (i == 1)
			mpi_fail(job, error);
	}
	return mpi_load(job, 9000, model);
}

static void test_messages_after_a_failed_receive_are_not_matched(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t got[3], sent[3];

		comm = failed_receive(&job, pointers, pointers ? OMPI_TRUNCATE : MPICH_TRUNCATE,
				      got, sent, &model);
		assert_ptr_equal(must_find(model, comm, got[0]), must_find(model, comm, sent[0]));
		assert_null(mpi_found(model, comm, got[1]));
		assert_null(mpi_found(model, comm, got[2]));
		for (unsigned i = 1; i < 3; i++)
			assert_int_equal(must_find(model, comm, sent[i])->count, 1);
		mpi_free(&job, comm);
		/* An invalid argument: nothing was received. */
		comm = failed_receive(&job, pointers, ERROR_RANK, got, sent, &model);
		assert_null(mpi_found(model, comm, got[1]));
		assert_ptr_equal(must_find(model, comm, got[2]), must_find(model, comm, sent[1]));
		assert_int_equal(must_find(model, comm, got[2])->alignment, COLLECTIVE_BY_CREATION);
		mpi_free(&job, comm);
	}
}

/* The same for a send, and for a receive that fails in its wait. Tag 6 is another channel. */
static void test_messages_after_a_failed_send_or_wait_are_not_matched(void **state)
{
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	struct mpi_name world;
	uint64_t send[4], got[4];

	(void)state;
	mpi_begin_ranks(&job, true, 2);
	world = mpi_world(&job, 1);
	for (unsigned i = 0; i < 4; i++) {
		send[i] = mpi_call(&job, 1, 2000 + 10 * i, 2005 + 10 * i, MPI_SITE_SEND, &world, 0,
				   5 + i % 2);
		if (!i)
			mpi_fail(&job, 16);
	}
	mpi_call(&job, 1, 2100, 2105, MPI_SITE_SEND, &world, 0, 8);
	world = mpi_world(&job, 0);
	for (unsigned i = 0; i < 4; i++)
		got[i] = mpi_call(&job, 0, 3000 + 10 * i, 3005 + 10 * i, MPI_SITE_RECV, &world, 1,
				  5 + i % 2, STATUS, GOT(1, 5 + i % 2));
	mpi_call(&job, 0, 3100, 3105, MPI_SITE_IRECV, &world, 1, 8, 0x7000, 0x55);
	mpi_call(&job, 0, 3110, 3115, MPI_SITE_WAIT, NULL, 0x7000, 0x55, STATUS, GOT(1, 8));
	mpi_fail(&job, OMPI_TRUNCATE);
	comm = mpi_load(&job, 9000, &model);
	assert_null(mpi_found(model, comm, send[0]));
	assert_null(mpi_found(model, comm, send[2]));
	assert_int_equal(must_find(model, comm, got[0])->count, 1);
	assert_ptr_equal(must_find(model, comm, got[1]), must_find(model, comm, send[1]));
	assert_ptr_equal(must_find(model, comm, got[3]), must_find(model, comm, send[3]));
	assert_int_equal(model_collectives_unaligned(comm), 3);
	mpi_free(&job, comm);
}

/* A collective that failed on one rank counts on all. */
static void test_collectives_after_a_failed_one_keep_their_numbers(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model_collective *found;
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t call[2][3];

		mpi_begin(&job, pointers);
		for (unsigned rank = 0; rank < 2; rank++) {
			struct mpi_name world = mpi_world(&job, rank);

			mpi_init(&job, rank, 2, 1100);
			for (unsigned i = 0; i < 3; i++) {
				call[rank][i] = mpi_call(&job, rank, 2000 + 10 * i, 2005 + 10 * i,
							 MPI_SITE_BCAST, &world, 1, 1);
				if (!rank && i == 1)
					mpi_fail(&job, pointers ? OMPI_TRUNCATE : MPICH_TRUNCATE);
			}
		}
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(must_find(model, comm, call[0][0])->alignment,
				 COLLECTIVE_BY_CREATION);
		for (unsigned rank = 0; rank < 2; rank++)
			assert_int_equal(must_find(model, comm, call[rank][1])->count, 1);
		found = must_find(model, comm, call[0][2]);
		assert_ptr_equal(found, must_find(model, comm, call[1][2]));
		assert_int_equal(found->alignment, COLLECTIVE_UNSURE);
		mpi_free(&job, comm);
	}
}

/* Nobody knows whether a cancelled receive got the first message. */
static void test_messages_after_a_cancelled_receive_are_not_matched(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		struct mpi_name world;
		uint64_t sent[3], other, got[3];

		mpi_begin_ranks(&job, pointers, 2);
		world = mpi_world(&job, 1);
		for (unsigned i = 0; i < 3; i++)
			sent[i] = mpi_call(&job, 1, 2000 + 10 * i, 2005 + 10 * i, MPI_SITE_SEND,
					   &world, 0, 5);
		other = mpi_call(&job, 1, 2100, 2105, MPI_SITE_SEND, &world, 0, 6);
		world = mpi_world(&job, 0);
		got[0] = mpi_call(&job, 0, 3000, 3005, MPI_SITE_RECV, &world, 1, 5, 1);
		mpi_call(&job, 0, 3010, 3015, MPI_SITE_IRECV, &world, 1, 5, 0x7000, 0x55);
		mpi_call(&job, 0, 3020, 3025, MPI_SITE_CANCEL, NULL, 0x7000, 0x55);
		mpi_call(&job, 0, 3030, 3035, MPI_SITE_WAIT, NULL, 0x7000, 0x55, STATUS, GOT(1, 5));
		got[1] = mpi_call(&job, 0, 3040, 3045, MPI_SITE_RECV, &world, 1, 5, 1);
		got[2] = mpi_call(&job, 0, 3050, 3055, MPI_SITE_RECV, &world, 1, 6, 1);
		comm = mpi_load(&job, 9000, &model);
		assert_ptr_equal(must_find(model, comm, got[0]), must_find(model, comm, sent[0]));
		assert_ptr_equal(must_find(model, comm, got[2]), must_find(model, comm, other));
		assert_null(mpi_found(model, comm, got[1]));
		assert_int_equal(must_find(model, comm, sent[1])->count, 1);
		assert_int_equal(model_collectives_unaligned(comm), 2);
		mpi_free(&job, comm);
	}
}

static void test_calls_with_small_and_large_counts_are_one_collective(void **state)
{
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	uint64_t cast[2];

	(void)state;
	mpi_begin(&job, false);
	for (unsigned rank = 0; rank < 2; rank++) {
		struct mpi_name world = mpi_world(&job, rank);

		mpi_init(&job, rank, 2, 1100);
		cast[rank] = mpi_call(&job, rank, 2000, 2010,
				      rank ? MPI_SITE_BCAST_C : MPI_SITE_BCAST, &world, 4, 1);
	}
	comm = mpi_load(&job, 9000, &model);
	assert_ptr_equal(must_find(model, comm, cast[0]), must_find(model, comm, cast[1]));
	assert_int_equal(model_disorder_count(comm), 0);
	mpi_free(&job, comm);
}

/* Threads send at the same time, or receive. After that the order is known again. */
static void test_the_order_of_calls_that_overlap_is_not_sure(void **state)
{
	(void)state;
	for (unsigned receives = 0; receives < 2; receives++) {
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		struct mpi_name world;
		uint64_t call[5], id, other;
		unsigned rank = receives ? 0 : 1;

		mpi_begin(&job, true);
		for (unsigned i = 0; i < 2; i++)
			mpi_init(&job, i, 2, 1100);
		world = mpi_world(&job, !rank);
		for (unsigned i = 0; i < 6; i++)
			mpi_call(&job, !rank, 2000 + 10 * i, 2005 + 10 * i,
				 receives ? MPI_SITE_SEND : MPI_SITE_RECV, &world, rank,
				 i == 5 ? 6 : 5, 0);
		world = mpi_world(&job, rank);
		for (unsigned i = 0; i < 5; i++) {
			/* The third and the fourth one overlap. */
			uint64_t from = 3000 + 100 * i - (i == 3 ? 60 : 0);

			call[i] = mpi_call(&job, rank, from, 3050 + 100 * i,
					   receives ? MPI_SITE_RECV : MPI_SITE_SEND, &world, !rank,
					   5, 0);
			mpi_by_thread(&job, i % 2);
		}
		/* Another tag. */
		other = mpi_call(&job, rank, 3210, 3260, receives ? MPI_SITE_RECV : MPI_SITE_SEND,
				 &world, !rank, 6, 0);
		mpi_by_thread(&job, 2);
		comm = mpi_load(&job, 9000, &model);
		for (unsigned i = 0; i < 5; i++) {
			id = call[i];
			assert_int_equal(must_find(model, comm, id)->count, 2);
			assert_int_equal(must_find(model, comm, id)->alignment,
					 i == 2 || i == 3 ? COLLECTIVE_UNSURE
							  : COLLECTIVE_BY_CREATION);
		}
		assert_int_equal(must_find(model, comm, other)->alignment, COLLECTIVE_BY_CREATION);
		mpi_free(&job, comm);
	}
}

/* A thread receives any message while another one waits for one with a known tag. */
static void test_a_receive_is_not_sure_if_an_unknown_one_overlaps_it(void **state)
{
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	struct mpi_name world;
	uint64_t before, open;

	(void)state;
	mpi_begin_ranks(&job, false, 2);
	world = mpi_world(&job, 1);
	for (unsigned i = 0; i < 3; i++)
		mpi_call(&job, 1, 2000 + 10 * i, 2005 + 10 * i, MPI_SITE_SEND, &world, 0, 5);
	world = mpi_world(&job, 0);
	before = mpi_call(&job, 0, 2900, 2910, MPI_SITE_RECV, &world, 1, 5, 1);
	open = mpi_call(&job, 0, 3000, 3100, MPI_SITE_RECV, &world, 1, 5, 1);
	mpi_call(&job, 0, 3050, 3060, MPI_SITE_RECV, &world, (uint64_t)-2, 5, 1);
	mpi_by_thread(&job, 1);
	comm = mpi_load(&job, 9000, &model);
	assert_int_equal(must_find(model, comm, before)->alignment, COLLECTIVE_BY_CREATION);
	assert_int_equal(must_find(model, comm, open)->alignment, COLLECTIVE_UNSURE);
	mpi_free(&job, comm);
}

/* Calls of two ranks with two counts each. Rank 1 is the root. */
static void check_data(enum mpi_site site, const uint64_t values[2][3], enum model_data data,
		       bool synchronizes)
{
	const struct model_collective *found;
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;
	uint64_t call[2];

	mpi_begin(&job, false);
	for (unsigned rank = 0; rank < 2; rank++) {
		struct mpi_name world = mpi_world(&job, rank);

		mpi_init(&job, rank, 2, 1100);
		call[rank] = mpi_call_of(&job, rank, 2000, 2010, site, &world, mpi_rows[site].begin,
					 values[rank]);
	}
	comm = mpi_load(&job, 9000, &model);
	found = must_find(model, comm, call[0]);
	assert_int_equal(found->count, 2);
	assert_int_equal(found->data, data);
	assert_int_equal(found->synchronizes, synchronizes);
	mpi_free(&job, comm);
}

static void test_collectives_without_elements_carry_no_data(void **state)
{
	static const uint64_t none[2][3] = {{0, 1}, {0, 1}}, some[2][3] = {{3, 1}, {3, 1}};
	/* MPI_IN_PLACE: what a rank gives is ignored, or what the root gives or gets. */
	static const uint64_t in_place[2][3] = {{0, 3}, {0, 3}}, ignored[2][3] = {{7, 0}, {7, 0}};
	static const uint64_t to_root[2][3] = {{3, 0, 1}, {0, 3, 1}};
	static const uint64_t none_to_root[2][3] = {{0, 9, 1}, {9, 0, 1}};

	(void)state;
	check_data(MPI_SITE_ALLREDUCE, some, MODEL_DATA_SOME, true);
	check_data(MPI_SITE_ALLREDUCE, none, MODEL_DATA_NONE, false);
	check_data(MPI_SITE_BCAST, some, MODEL_DATA_SOME, false);
	check_data(MPI_SITE_BCAST, none, MODEL_DATA_NONE, false);
	check_data(MPI_SITE_ALLGATHER, in_place, MODEL_DATA_SOME, true);
	check_data(MPI_SITE_ALLGATHER, ignored, MODEL_DATA_NONE, false);
	check_data(MPI_SITE_GATHER, to_root, MODEL_DATA_SOME, false);
	check_data(MPI_SITE_GATHER, none_to_root, MODEL_DATA_NONE, false);
	/* The other way round. */
	check_data(MPI_SITE_SCATTER, none_to_root, MODEL_DATA_SOME, false);
	check_data(MPI_SITE_SCATTER, to_root, MODEL_DATA_NONE, false);
	check_data(MPI_SITE_ALLTOALLV, none, MODEL_DATA_MAYBE, false);
	check_data(MPI_SITE_GATHERV, some, MODEL_DATA_MAYBE, false);
	check_data(MPI_SITE_BARRIER, none, MODEL_DATA_SOME, true);
}

/* The receiver's count is only a limit. */
static void test_a_message_without_elements_is_matched_but_carries_no_data(void **state)
{
	for (uint64_t count = 0; count < 2; count++) {
		const struct model_collective *found;
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		struct mpi_name world;
		uint64_t got;

		(void)state;
		mpi_begin_ranks(&job, true, 2);
		world = mpi_world(&job, 1);
		mpi_call(&job, 1, 2000, 2010, MPI_SITE_SEND_COUNT, &world, count, 0, 5);
		world = mpi_world(&job, 0);
		got = mpi_call(&job, 0, 2000, 2020, MPI_SITE_RECV, &world, 1, 5, 0);
		comm = mpi_load(&job, 9000, &model);
		found = must_find(model, comm, got);
		assert_int_equal(found->count, 2);
		assert_int_equal(found->data, count ? MODEL_DATA_SOME : MODEL_DATA_NONE);
		mpi_free(&job, comm);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collectives_of_the_world_are_counted_from_mpi_init),
		cmocka_unit_test(test_a_nonblocking_collective_ends_with_its_wait),
		cmocka_unit_test(test_a_freed_handle_that_is_used_again_is_another_communicator),
		cmocka_unit_test(test_the_ranks_of_a_split_follow_from_its_colors_and_keys),
		cmocka_unit_test(test_the_ranks_of_an_incomplete_split_are_not_guessed),
		cmocka_unit_test(test_the_groups_of_a_creation_are_told_apart_by_rank_or_size),
		cmocka_unit_test(test_wildcards_are_resolved_from_the_status),
		cmocka_unit_test(test_messages_after_an_unresolved_wildcard_are_not_matched),
		cmocka_unit_test(test_one_call_may_send_and_receive),
		cmocka_unit_test(test_requests_are_found_by_address_and_value),
		cmocka_unit_test(test_different_collectives_at_one_number_are_a_disorder),
		cmocka_unit_test(test_a_late_attach_is_aligned_by_order_and_times),
		cmocka_unit_test(test_messages_of_a_late_attach_are_matched_by_the_waits),
		cmocka_unit_test(
			test_long_messages_of_a_late_attach_are_matched_by_the_waits_to_send),
		cmocka_unit_test(test_messages_of_a_late_attach_without_waits_are_not_matched),
		cmocka_unit_test(
			test_broadcasts_of_a_late_attach_are_matched_by_the_waits_for_the_root),
		cmocka_unit_test(test_messages_without_any_collective_are_counted_as_unaligned),
		cmocka_unit_test(test_messages_after_a_failed_receive_are_not_matched),
		cmocka_unit_test(test_messages_after_a_failed_send_or_wait_are_not_matched),
		cmocka_unit_test(test_collectives_after_a_failed_one_keep_their_numbers),
		cmocka_unit_test(test_messages_after_a_cancelled_receive_are_not_matched),
		cmocka_unit_test(test_calls_with_small_and_large_counts_are_one_collective),
		cmocka_unit_test(test_the_order_of_calls_that_overlap_is_not_sure),
		cmocka_unit_test(test_a_receive_is_not_sure_if_an_unknown_one_overlaps_it),
		cmocka_unit_test(test_collectives_without_elements_carry_no_data),
		cmocka_unit_test(test_a_message_without_elements_is_matched_but_carries_no_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
