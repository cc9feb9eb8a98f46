// SPDX-License-Identifier: Apache-2.0
/* Jobs of MPI in which a rank has several processes, and the ids of communicators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "model/comm/comm_ids_internal.h"
#include "mpi_capture.h"

/* A process that says that it is `rank` of 3. Returns its all-reduce. */
static uint64_t process_run(struct mpi_job *job, unsigned process, unsigned rank, uint64_t from)
{
	struct mpi_name world = {job->pointers ? OMPI_WORLD + process * 0x100000 : MPICH_WORLD,
				 rank, 0};
	uint64_t id;

	mpi_call(job, process, from, from + 10, MPI_SITE_INIT, NULL);
	if (!job->pointers)
		mpi_call(job, process, from + 11, from + 12, MPI_SITE_RANK, &world, rank);
	mpi_call(job, process, from + 13, from + 14, MPI_SITE_SIZE, &world, 3);
	id = mpi_call(job, process, from + 100 + process, from + 200, MPI_SITE_ALLREDUCE, &world,
		      4);
	mpi_call(job, process, from + 210, from + 220, rank ? MPI_SITE_SEND : MPI_SITE_RECV, &world,
		 rank ? 0 : 2, 7, 0, 0);
	return id;
}

#define FOR_BOTH(pointers) for (int pointers = 0; pointers < 2; pointers++)

static void test_a_rank_claimed_by_two_processes_is_reported_and_nothing_matched(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;

		mpi_begin(&job, pointers);
		for (unsigned process = 0; process < 4; process++)
			process_run(&job, process, process == 3 ? 1 : process, 1100);
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(model_claim_count(comm), 1);
		assert_int_equal(model_claim_at(comm, 0)->rank, 1);
		assert_int_equal(model_claim_at(comm, 0)->pid, MPI_PID + 1);
		assert_int_equal(model_claim_at(comm, 0)->other_pid, MPI_PID + 3);
		/* Not even a message between two ranks that nobody else claims. */
		for (size_t i = 0; i < model_collective_count(comm); i++)
			assert_int_equal(model_collective_at(comm, i)->count, 1);
		assert_int_equal(model_collectives_unaligned(comm), 8);
		mpi_free(&job, comm);
	}
}

static void test_a_job_started_again_under_its_name_has_a_world_of_its_own(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		uint64_t first[3], second[3];
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;

		mpi_begin(&job, pointers);
		for (unsigned rank = 0; rank < 3; rank++) {
			first[rank] = process_run(&job, rank, rank, 1100);
			mpi_exit(&job, rank, 1400 + rank);
			second[rank] = process_run(&job, rank + 3, rank, 2000);
		}
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(model_claim_count(comm), 0);
		assert_ptr_equal(mpi_found(model, comm, first[0]),
				 mpi_found(model, comm, first[2]));
		assert_ptr_equal(mpi_found(model, comm, second[0]),
				 mpi_found(model, comm, second[2]));
		assert_int_equal(mpi_found(model, comm, first[0])->count, 3);
		assert_int_equal(mpi_found(model, comm, second[0])->count, 3);
		assert_int_equal(mpi_found(model, comm, second[0])->alignment,
				 COLLECTIVE_BY_CREATION);
		assert_true(mpi_found(model, comm, first[0])->comm !=
			    mpi_found(model, comm, second[0])->comm);
		mpi_free(&job, comm);
	}
}

/* Files of two runs are mixed: ranks 0 and 1 had exited before rank 2 began. */
static void test_ranks_that_did_not_run_at_the_same_time_are_not_of_one_world(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t calls[3];

		mpi_begin(&job, pointers);
		for (unsigned rank = 0; rank < 3; rank++) {
			calls[rank] = process_run(&job, rank, rank, rank == 2 ? 2000 : 1100);
			if (rank < 2)
				mpi_exit(&job, rank, 1400);
		}
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(mpi_found(model, comm, calls[0])->count, 2);
		assert_ptr_equal(mpi_found(model, comm, calls[0]),
				 mpi_found(model, comm, calls[1]));
		assert_int_equal(mpi_found(model, comm, calls[2])->count, 1);
		mpi_free(&job, comm);
	}
}

/* Without the exit of the first process, both may have run at the same time. */
static void test_a_restarted_rank_is_no_claim_if_the_first_process_has_exited(void **state)
{
	(void)state;
	for (int exited = 0; exited < 2; exited++) {
		const struct model *model;
		struct model_comm *comm;
		struct mpi_job job;
		uint64_t call;

		mpi_begin(&job, true);
		for (unsigned rank = 0; rank < 3; rank++)
			process_run(&job, rank, rank, 1100);
		if (exited)
			mpi_exit(&job, 1, 1500);
		call = process_run(&job, 3, 1, 2000);
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(model_claim_count(comm), exited ? 0 : 1);
		/* Rank 0 goes on, so nobody knows which of the two it called with. */
		assert_int_equal(mpi_found(model, comm, call)->count, 1);
		mpi_free(&job, comm);
	}
}

static void test_a_process_that_executes_the_next_rank_is_no_claim(void **state)
{
	const struct model *model;
	struct model_comm *comm;
	struct mpi_job job;

	(void)state;
	mpi_begin(&job, true);
	process_run(&job, 0, 0, 1100);
	process_run(&job, 1, 1, 1100);
	process_run(&job, 1, 1, 2000);
	comm = mpi_load(&job, 9000, &model);
	assert_int_equal(model_claim_count(comm), 0);
	mpi_free(&job, comm);
}

static void test_programs_without_mpirun_are_each_alone(void **state)
{
	(void)state;
	FOR_BOTH(pointers)
	{
		const struct model *model;
		struct model_comm *comm;
		uint64_t calls[2];
		struct mpi_job job;

		mpi_begin(&job, pointers);
		for (unsigned process = 0; process < 2; process++) {
			struct mpi_name world = mpi_world(&job, process);

			world.rank = 0;
			mpi_call(&job, process, 1100, 1110, MPI_SITE_INIT, NULL);
			if (!pointers)
				mpi_call(&job, process, 1111, 1112, MPI_SITE_RANK, &world, 0);
			mpi_call(&job, process, 1113, 1114, MPI_SITE_SIZE, &world, 1);
			calls[process] =
				mpi_call(&job, process, 1200, 1210, MPI_SITE_ALLREDUCE, &world, 4);
		}
		comm = mpi_load(&job, 9000, &model);
		assert_int_equal(model_claim_count(comm), 0);
		assert_int_equal(model_collectives_unaligned(comm), 0);
		for (unsigned process = 0; process < 2; process++)
			assert_int_equal(mpi_found(model, comm, calls[process])->count, 1);
		mpi_free(&job, comm);
	}
}

static void test_keys_with_one_hash_have_ids_of_their_own(void **state)
{
	const uint64_t keys[][2] = {{1, 2}, {1, 3}, {2, 2}};
	struct comm_ids ids = {0};

	(void)state;
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 3; i++)
			assert_true(comm_id_of(&ids, keys[i], sizeof(keys[i]), UINT64_MAX) ==
				    (i ? i - 1 : UINT64_MAX));
	comm_ids_free(&ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_rank_claimed_by_two_processes_is_reported_and_nothing_matched),
		cmocka_unit_test(test_a_job_started_again_under_its_name_has_a_world_of_its_own),
		cmocka_unit_test(test_ranks_that_did_not_run_at_the_same_time_are_not_of_one_world),
		cmocka_unit_test(test_a_restarted_rank_is_no_claim_if_the_first_process_has_exited),
		cmocka_unit_test(test_a_process_that_executes_the_next_rank_is_no_claim),
		cmocka_unit_test(test_programs_without_mpirun_are_each_alone),
		cmocka_unit_test(test_keys_with_one_hash_have_ids_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
