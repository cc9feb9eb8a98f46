// SPDX-License-Identifier: Apache-2.0
/* Waits in calls of MPI, in captures that began after the job: what is not known is not certain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "why_capture.h"

#include "calls_capture.h"

#include "mpi_capture.h"

/* Rank r is thread and process 20 + r. */
#define TID 20
#define ID 900

static void begins_as(struct capture *capture, unsigned ranks, bool open_mpi)
{
	struct mpi_job job = {.pointers = open_mpi};

	capture_begin(&job.capture, true);
	for (unsigned i = 0; i < MPI_SITE_COUNT; i++)
		mpi_add_site(&job, &mpi_rows[i]);
	*capture = job.capture;
	for (unsigned i = 0; i < ranks; i++) {
		struct waffle_rec_task task = {.rec = {CAPTURE_START, TID + i, WAFFLE_REC_TASK, 0},
					       .tgid = TID + i,
					       .flags = WAFFLE_TASK_TRACED_FLAG,
					       .start_ts = 1,
					       .comm = "rank"};

		capture_add(capture, &task);
		capture_switch(capture, 1001, (uint16_t)i, 0, TID + i, 0, 0, 0);
	}
}

static void begins(struct capture *capture, unsigned ranks)
{
	begins_as(capture, ranks, true);
}

#define WORDS(...) CALL_WORDS(__VA_ARGS__)

static void hit(struct capture *capture, uint64_t ts, unsigned rank, enum mpi_site site,
		uint64_t id, unsigned count, const uint64_t *words)
{
	call_hit_in(capture, TID + rank, ts, TID + rank, CAPTURE_SITES + site, id, count, words);
}

static void returns(struct capture *capture, uint64_t ts, unsigned rank, enum mpi_site site,
		    uint64_t id, unsigned count, const uint64_t *words)
{
	call_return_in(capture, TID + rank, ts, TID + rank, CAPTURE_SITES + site, id, count, words);
}

/* All of the call's time has one cause. */
static void check(struct capture *capture, const char *cause, uint64_t ns, const char *grade,
		  const char *text)
{
	struct why *why = ask(capture, 9000, &(struct why_query){.span_id = ID});
	const struct why_part *part = part_of(why, 0);

	assert_string_equal(why_causes[part->cause].name, cause);
	assert_string_equal(why_grade_names[part->grade], grade);
	assert_string_equal(strtab_get(why->texts, part->object), text);
	assert_int_equal(part->ns, ns);
	done(capture, why);
}

static void test_polling_for_a_rank_whose_send_is_not_known_is_no_certain_work(void **state)
{
	struct capture capture;

	(void)state;
	begins(&capture, 1);
	hit(&capture, 2000, 0, MPI_SITE_RECV, ID, WORDS(OMPI_WORLD, 0, 0, 1, 5, 1));
	returns(&capture, 3000, 0, MPI_SITE_RECV, ID, WORDS(0, 0));
	check(&capture, "collective", 1000, "likely",
	      "rank 1 at the other end of MPI_Recv, which is not traced");
}

static void test_polling_for_a_request_that_is_not_known_is_no_certain_work(void **state)
{
	struct capture capture;

	(void)state;
	begins(&capture, 1);
	hit(&capture, 2000, 0, MPI_SITE_WAIT, ID, WORDS(0x7ffe0000, 0x5500, 1));
	returns(&capture, 3000, 0, MPI_SITE_WAIT, ID, WORDS(0, 0));
	check(&capture, "collective", 1000, "unknown",
	      "ranks of MPI_Wait, whose calls are not known");
}

/* The receiver may have been late, or the message was copied. */
static void test_a_send_whose_receive_is_not_known_is_likely_work(void **state)
{
	struct capture capture;

	(void)state;
	begins(&capture, 1);
	hit(&capture, 2000, 0, MPI_SITE_SEND, ID, WORDS(OMPI_WORLD, 0, 0, 1, 5));
	returns(&capture, 3000, 0, MPI_SITE_SEND, ID, WORDS(0));
	check(&capture, "running", 1000, "likely", "");
}

static void test_a_test_of_a_request_does_not_wait(void **state)
{
	struct capture capture;

	(void)state;
	begins(&capture, 1);
	hit(&capture, 2000, 0, MPI_SITE_TEST, ID, WORDS(0x7ffe0000, 0x5500, 1));
	returns(&capture, 3000, 0, MPI_SITE_TEST, ID, WORDS(0, 0, 0));
	check(&capture, "running", 1000, "certain", "");
}

/* The rank is known, but not its number in the communicator. */
static void test_polling_for_one_rank_on_an_unknown_communicator_is_likely_that_rank(void **state)
{
	struct capture capture;

	(void)state;
	begins(&capture, 1);
	hit(&capture, 2000, 0, MPI_SITE_RECV, ID, WORDS(OMPI_WORLD + 64, 2, 7, 3, 5, 1));
	returns(&capture, 3000, 0, MPI_SITE_RECV, ID, WORDS(0, 0));
	check(&capture, "collective", 1000, "likely",
	      "rank 3 at the other end of MPI_Recv, whose call is not known");
}

#define PROC_NULL ((uint32_t)-2) /* of Open MPI */
#define EMPTY 0x7f0000009000ull  /* its request of operations that are complete at once */

static void test_calls_with_nobody_do_not_wait(void **state)
{
	struct capture capture;

	(void)state;
	begins(&capture, 1);
	hit(&capture, 2000, 0, MPI_SITE_RECV, ID, WORDS(OMPI_WORLD, 0, 0, PROC_NULL, 5, 1));
	returns(&capture, 3000, 0, MPI_SITE_RECV, ID, WORDS(0, 0));
	check(&capture, "running", 1000, "certain", "");
	begins(&capture, 1);
	hit(&capture, 2000, 0, MPI_SITE_SENDRECV, ID,
	    WORDS(OMPI_WORLD, 0, 0, PROC_NULL, 5, PROC_NULL, 5, 1));
	returns(&capture, 3000, 0, MPI_SITE_SENDRECV, ID, WORDS(0, 0));
	check(&capture, "running", 1000, "certain", "");
}

/* At a border, a rank exchanges data with one side only. */
static void test_an_exchange_at_a_border_waits_for_the_other_end_only(void **state)
{
	struct capture capture;

	(void)state;
	begins(&capture, 1);
	hit(&capture, 2000, 0, MPI_SITE_SENDRECV, ID,
	    WORDS(OMPI_WORLD, 0, 0, PROC_NULL, 5, 1, 5, 1));
	returns(&capture, 3000, 0, MPI_SITE_SENDRECV, ID, WORDS(0, 0));
	check(&capture, "collective", 1000, "likely",
	      "rank 1 at the other end of MPI_Sendrecv, which is not traced");
}

/* The requests are copied after the calls, so that only their value tells what they are. */
static void test_requests_of_operations_with_nobody_are_known(void **state)
{
	for (unsigned nobody = 0; nobody < 2; nobody++) {
		uint64_t left = nobody ? PROC_NULL : 1;
		struct capture capture;

		begins(&capture, 1);
		hit(&capture, 1500, 0, MPI_SITE_IRECV, 10,
		    WORDS(OMPI_WORLD, 0, 0, PROC_NULL, 5, 0x7000));
		returns(&capture, 1510, 0, MPI_SITE_IRECV, 10, WORDS(EMPTY, 0));
		hit(&capture, 1520, 0, MPI_SITE_ISEND, 11,
		    WORDS(OMPI_WORLD, 0, 0, PROC_NULL, 5, 0x7000));
		returns(&capture, 1530, 0, MPI_SITE_ISEND, 11, WORDS(EMPTY, 0));
		hit(&capture, 1540, 0, MPI_SITE_IRECV, 12,
		    WORDS(OMPI_WORLD, 0, 0, left, 5, 0x7100));
		returns(&capture, 1550, 0, MPI_SITE_IRECV, 12, WORDS(nobody ? EMPTY : 0x5500, 0));
		hit(&capture, 2000, 0, MPI_SITE_WAITALL, ID,
		    WORDS(3, 0x8000, EMPTY, EMPTY, nobody ? EMPTY : 0x5500, 0, 0, 1));
		returns(&capture, 3000, 0, MPI_SITE_WAITALL, ID, WORDS(0, 0, 0, 0, 0, 0));
		if (nobody)
			check(&capture, "running", 1000, "certain", "");
		else
			check(&capture, "collective", 1000, "likely",
			      "rank 1 at the other end of MPI_Irecv, which is not traced");
	}
	(void)state;
}

/* There -1 is MPI_PROC_NULL and -2 MPI_ANY_SOURCE. */
static void test_mpich_has_other_numbers_for_nobody_and_for_null_requests(void **state)
{
	struct capture capture;

	(void)state;
	begins_as(&capture, 1, false);
	hit(&capture, 2000, 0, MPI_SITE_RECV, ID, WORDS(MPICH_WORLD, (uint32_t)-1, 5, 1));
	returns(&capture, 3000, 0, MPI_SITE_RECV, ID, WORDS(0, 0));
	check(&capture, "running", 1000, "certain", "");
	begins_as(&capture, 1, false);
	hit(&capture, 2000, 0, MPI_SITE_RECV, ID, WORDS(MPICH_WORLD, (uint32_t)-2, 5, 1));
	returns(&capture, 3000, 0, MPI_SITE_RECV, ID, WORDS(0, 0));
	check(&capture, "collective", 1000, "unknown",
	      "ranks of MPI_Recv, whose calls are not known");
	begins_as(&capture, 1, false);
	hit(&capture, 2000, 0, MPI_SITE_WAITALL, ID,
	    WORDS(2, 0x8000, 0x2c000000, 0x2c000000, 0, 0, 0, 1));
	returns(&capture, 3000, 0, MPI_SITE_WAITALL, ID, WORDS(0, 0, 0, 0, 0, 0));
	check(&capture, "running", 1000, "certain", "");
}

static void test_mpi_waitany_without_requests_does_not_wait(void **state)
{
	struct capture capture;

	(void)state;
	begins(&capture, 1);
	hit(&capture, 2000, 0, MPI_SITE_WAITANY, ID,
	    WORDS(1, 0x8000, 0x7f0000009100, 0, 0, 0, 0, 1));
	returns(&capture, 3000, 0, MPI_SITE_WAITANY, ID, WORDS((uint32_t)-32766, 0, 0));
	check(&capture, "running", 1000, "certain", "");
}

/* Rank 1 broadcasts at 2800. Rank 2 comes when rank 0 has left. */
static void test_a_rank_waits_for_the_root_and_not_for_those_that_come_later(void **state)
{
	const uint64_t from[] = {2000, 2800, 3500}, to[] = {2900, 2850, 3600};
	struct capture capture;

	(void)state;
	begins(&capture, 3);
	for (unsigned i = 0; i < 3; i++) {
		hit(&capture, 1010 + i, i, MPI_SITE_INIT, 100 + i, WORDS(0));
		returns(&capture, 1020 + i, i, MPI_SITE_INIT, 100 + i, WORDS(0));
		hit(&capture, 1030 + i, i, MPI_SITE_SIZE, 110 + i, WORDS(OMPI_WORLD, i, 0));
		returns(&capture, 1040 + i, i, MPI_SITE_SIZE, 110 + i, WORDS(3, 0));
	}
	waits(&capture, 1500, 1, TID + 1, 0, S, NR_NANOSLEEP, 0, 0, 0);
	hit(&capture, from[0], 0, MPI_SITE_BCAST, ID, WORDS(OMPI_WORLD, 0, 0, 1, 1));
	gets(&capture, 2800, 1, 0, TID + 1, 0, 2800, HARD);
	hit(&capture, from[1], 1, MPI_SITE_BCAST, ID + 1, WORDS(OMPI_WORLD, 1, 0, 1, 1));
	returns(&capture, to[1], 1, MPI_SITE_BCAST, ID + 1, WORDS(0));
	returns(&capture, to[0], 0, MPI_SITE_BCAST, ID, WORDS(0));
	hit(&capture, from[2], 2, MPI_SITE_BCAST, ID + 2, WORDS(OMPI_WORLD, 2, 0, 1, 1));
	returns(&capture, to[2], 2, MPI_SITE_BCAST, ID + 2, WORDS(0));
	check(&capture, "sleep", 800, "likely", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_polling_for_a_rank_whose_send_is_not_known_is_no_certain_work),
		cmocka_unit_test(test_polling_for_a_request_that_is_not_known_is_no_certain_work),
		cmocka_unit_test(test_a_send_whose_receive_is_not_known_is_likely_work),
		cmocka_unit_test(test_a_test_of_a_request_does_not_wait),
		cmocka_unit_test(
			test_polling_for_one_rank_on_an_unknown_communicator_is_likely_that_rank),
		cmocka_unit_test(test_calls_with_nobody_do_not_wait),
		cmocka_unit_test(test_an_exchange_at_a_border_waits_for_the_other_end_only),
		cmocka_unit_test(test_requests_of_operations_with_nobody_are_known),
		cmocka_unit_test(test_mpich_has_other_numbers_for_nobody_and_for_null_requests),
		cmocka_unit_test(test_mpi_waitany_without_requests_does_not_wait),
		cmocka_unit_test(test_a_rank_waits_for_the_root_and_not_for_those_that_come_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
