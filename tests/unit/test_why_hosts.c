// SPDX-License-Identifier: Apache-2.0
/* Waits for ranks of other hosts: what the error of their clocks leaves certain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "why_capture.h"

#include "calls_capture.h"

#include "mpi_capture.h"

#define RANKS 3

/* Rank r is thread and process 20 + r of host r. */
static uint32_t tid_of(uint32_t rank)
{
	return store_pid_of(rank, 20 + rank);
}

/* error_ns UINT64_MAX: by the wall clock. */
static void add_hosts(struct capture *capture, uint64_t error_ns)
{
	struct error err = ERROR_INIT;

	for (uint32_t i = 0; i < RANKS; i++) {
		struct store_host host = {.name = i ? "b" : "a",
					  .boot_id = "",
					  .kernel = "",
					  .machine = "x86_64",
					  .cpu_base = 2 * i,
					  .cpu_count = 2,
					  .clock = {.kind = STORE_CLOCK_REFERENCE}};

		if (i && error_ns == UINT64_MAX)
			host.clock.kind = STORE_CLOCK_WALL;
		else if (i)
			host.clock = (struct store_clock){
				.kind = STORE_CLOCK_ALIGNED,
				.error_ns = error_ns,
				.error_count = 2,
				.errors = {{1000, error_ns}, {6000, error_ns}}};
		capture_must(store_writer_add_host(capture->writer, &host, &err), err);
	}
}

static void call(struct capture *capture, uint32_t rank, enum mpi_site site, uint64_t from,
		 uint64_t to, unsigned count, const uint64_t *words, unsigned end_count,
		 const uint64_t *end_words)
{
	uint64_t id = from << 8 | rank << 4 | site % 16;

	call_hit_in(capture, tid_of(rank), from, tid_of(rank), CAPTURE_SITES + site, id, count,
		    words);
	call_return_in(capture, tid_of(rank), to, tid_of(rank), CAPTURE_SITES + site, id, end_count,
		       end_words);
}

static void begins(struct mpi_job *job, uint64_t error_ns)
{
	struct capture *capture = &job->capture;

	*job = (struct mpi_job){.pointers = true};
	capture_begin(capture, true);
	for (unsigned i = 0; i < MPI_SITE_COUNT; i++)
		mpi_add_site(job, &mpi_rows[i]);
	add_hosts(capture, error_ns);
	for (uint32_t i = 0; i < RANKS; i++) {
		const uint64_t world[] = {OMPI_WORLD, i, 0}, size[] = {RANKS, 0}, result = 0;
		uint32_t tid = tid_of(i);
		struct waffle_rec_task task = {.rec = {CAPTURE_START, tid, WAFFLE_REC_TASK, 0},
					       .tgid = tid,
					       .flags = WAFFLE_TASK_TRACED_FLAG,
					       .start_ts = 1,
					       .comm = "rank"};

		capture_add(capture, &task);
		capture_switch(capture, 1001, (uint16_t)(2 * i), 0, tid, 0, 0, 0);
		call(capture, i, MPI_SITE_INIT, 1002, 1003, 0, NULL, 1, &result);
		call(capture, i, MPI_SITE_SIZE, 1004, 1005, 3, world, 2, size);
	}
}

static void reduces(struct capture *capture, uint32_t rank, uint64_t from, uint64_t to)
{
	const uint64_t words[] = {OMPI_WORLD, rank, 0, 4}, result = 0;

	call(capture, rank, MPI_SITE_ALLREDUCE, from, to, 4, words, 1, &result);
}

/* Rank 0 calls at 2000, rank 2 at second_ts and rank 1 at 2900. Rank 1 slept from 1500 to 2890. */
static struct why *explain(struct capture *capture, uint64_t error_ns, uint64_t second_ts)
{
	struct waffle_rec_switch sleeps = {.rec = {1500, tid_of(1), WAFFLE_REC_SWITCH, 2},
					   .prev_state = S,
					   .flags = WAFFLE_SWITCH_PREV_TRACED,
					   .syscall = NR_NANOSLEEP};
	struct waffle_rec_switch wakes = {.rec = {2890, 0, WAFFLE_REC_SWITCH, 2},
					  .next_tid = tid_of(1),
					  .wake_ts = 2890,
					  .flags = WAFFLE_SWITCH_NEXT_TRACED | WAFFLE_SWITCH_WOKEN |
						   HARD,
					  .syscall = -1};
	struct mpi_job job;

	begins(&job, error_ns);
	capture_add(&job.capture, &sleeps);
	reduces(&job.capture, 0, 2000, 3000);
	reduces(&job.capture, 2, second_ts, 3000);
	capture_add(&job.capture, &wakes);
	reduces(&job.capture, 1, 2900, 3000);
	*capture = job.capture;
	return ask(capture, 5000,
		   &(struct why_query){.span_id = (uint64_t)2000 << 8 | MPI_SITE_ALLREDUCE});
}

static const struct why_part *part_with(const struct why *why, const char *cause)
{
	const struct why_instance *instance = &why->instances.data[0];

	for (uint32_t i = 0; i < instance->part_count; i++)
		if (!strcmp(why_causes[why->parts.data[instance->part + i].cause].name, cause))
			return &why->parts.data[instance->part + i];
	fail_msg("no part with the cause %s", cause);
	return NULL;
}

static void check(const struct why *why, const char *cause, uint64_t ns, const char *grade)
{
	const struct why_part *part = part_with(why, cause);

	assert_int_equal(part->ns, ns);
	assert_string_equal(why_grade_names[part->grade], grade);
}

static void test_chain_goes_on_on_another_host(void **state)
{
	struct capture capture;
	struct why *why = explain(&capture, 5, 2100);

	(void)state;
	check(why, "sleep", 890, "certain");
	check(why, "collective", 10, "certain");
	check(why, "running", 100, "certain");
	assert_int_equal(why->model->threads.data[part_with(why, "sleep")->thread].tid, tid_of(1));
	done(&capture, why);
}

static void test_step_at_the_edge_of_a_wait_is_likely_within_the_error(void **state)
{
	struct capture capture;
	struct why *why = explain(&capture, 50, 2100);

	(void)state;
	/* Rank 1 may have run for those 10 ns after rank 0's wait had ended. */
	check(why, "collective", 10, "likely");
	check(why, "sleep", 890, "certain");
	done(&capture, why);
}

static void test_last_rank_is_likely_if_another_one_is_within_the_error(void **state)
{
	struct capture capture;
	/* Both ranks are on hosts with an error of 50. */
	struct why *why = explain(&capture, 50, 2801);

	(void)state;
	check(why, "sleep", 890, "likely");
	done(&capture, why);
	why = explain(&capture, 50, 2799);
	check(why, "sleep", 890, "certain");
	done(&capture, why);
}

static void test_wait_as_short_as_the_error_is_likely(void **state)
{
	struct capture capture;
	struct why *why = explain(&capture, 890, 1500);

	(void)state;
	check(why, "sleep", 890, "likely");
	done(&capture, why);
}

static void test_ranks_whose_clocks_are_not_aligned_are_not_followed(void **state)
{
	struct capture capture;
	struct why *why = explain(&capture, UINT64_MAX, 2100);
	const struct why_part *part = part_with(why, "collective");

	(void)state;
	assert_int_equal(part->ns, 1000);
	assert_string_equal(why_grade_names[part->grade], "unknown");
	assert_string_equal(strtab_get(why->texts, part->object),
			    "ranks in MPI_Allreduce, on hosts whose clocks are not aligned");
	done(&capture, why);
}

/* Nobody knows when the last rank arrived. Until then, rank 0 would only have polled. */
static void test_preemption_in_a_wait_of_unknown_end_is_likely(void **state)
{
	const uint64_t error_ns[] = {UINT64_MAX, 5};
	struct waffle_rec_switch runs = {.rec = {2600, 77, WAFFLE_REC_SWITCH, 0},
					 .next_tid = tid_of(0),
					 .flags = WAFFLE_SWITCH_NEXT_TRACED | WAFFLE_SWITCH_STAYED,
					 .syscall = -1};
	struct capture capture;
	struct why *why;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct mpi_job job;

		begins(&job, error_ns[i]);
		capture_switch(&job.capture, 2200, 0, tid_of(0), 77, 0, 0, 0);
		capture_add(&job.capture, &runs);
		reduces(&job.capture, 0, 2000, 3000);
		reduces(&job.capture, 2, 2050, 3000);
		reduces(&job.capture, 1, 2100, 3000);
		capture = job.capture;
		why = ask(&capture, 5000,
			  &(struct why_query){.span_id = (uint64_t)2000 << 8 | MPI_SITE_ALLREDUCE});
		check(why, "cpu-contention", 400, i ? "certain" : "likely");
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain_goes_on_on_another_host),
		cmocka_unit_test(test_step_at_the_edge_of_a_wait_is_likely_within_the_error),
		cmocka_unit_test(test_last_rank_is_likely_if_another_one_is_within_the_error),
		cmocka_unit_test(test_wait_as_short_as_the_error_is_likely),
		cmocka_unit_test(test_ranks_whose_clocks_are_not_aligned_are_not_followed),
		cmocka_unit_test(test_preemption_in_a_wait_of_unknown_end_is_likely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
