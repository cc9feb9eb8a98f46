// SPDX-License-Identifier: Apache-2.0
/* Waits in calls that wait for a GPU, or for the other ranks of a collective. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/why_text.h"
#include "gpu_capture.h"

#define RUNNING WAFFLE_THREAD_RUNNING
#define BLOCKED WAFFLE_THREAD_BLOCKED

static void check_culprit_span(const struct why *why, uint32_t number, const char *name)
{
	const struct why_part *part = part_of(why, number);
	const struct model *model = why->model;

	assert_true(part->span < model->spans.len);
	assert_string_equal(model_site(model, model->spans.data[part->span].site)->name, name);
}

/* ---- the GPU ---- */

static void test_blocked_in_a_synchronisation_is_the_kernel_launched_last_and_its_span(void **state)
{
	struct capture capture;
	const struct why_step *step;
	struct why *why;

	(void)state;
	begin(&capture);
	span(&capture, 1020, 11, GPU_FORWARD, 2);
	launches(&capture, 1030, 11, GEMM, STREAM);
	ends(&capture, 1040, 11, GPU_FORWARD, 2);
	sync_begins(&capture, 1050);
	blocks(&capture, 1060, 1860);
	sync_ends(&capture, 1865);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 815, 11, "certain", "kernel gemm<float> on stream 0x7f01");
	check_culprit_span(why, 0, "forward");
	check_step(why, 0, 0, 11, BLOCKED, 1060, 1860);
	assert_int_equal(part_of(why, 0)->step_count, 1);
	step = &why->steps.data[part_of(why, 0)->step];
	assert_true(step->gpu && !step->last_rank);
	assert_int_equal(step->call_ts, 1030);
	assert_string_equal(strtab_get(why->texts, step->meaning),
			    "waits for the GPU: kernel gemm<float> on stream 0x7f01");
	check_part(why, 1, "running", 10 + 10 + 35, 11, "certain", "");
	check_part(why, 2, "running", 20, 11, "certain", ""); /* in forward */
	done(&capture, why);
}

static void test_spinning_in_a_synchronisation_is_the_gpu_and_likely(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1030, 11, GEMM, STREAM);
	sync_begins(&capture, 1050);
	sync_ends(&capture, 1850);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 800, 11, "likely", "kernel gemm<float> on stream 0x7f01");
	check_culprit_span(why, 0, "step");
	check_step(why, 0, 0, 11, RUNNING, 1050, 1850);
	check_part(why, 1, "running", 90, 11, "certain", "");
	assert_int_equal(why->instances.data[0].running_ns, 890);
	done(&capture, why);
}

static void test_of_several_kernels_the_last_one_is_named_and_likely(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1030, 11, GEMM, STREAM);
	launches(&capture, 1040, 11, SOFTMAX, STREAM);
	sync_begins(&capture, 1050);
	blocks(&capture, 1051, 1850);
	sync_ends(&capture, 1851);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 801, 11, "likely", "kernel softmax on stream 0x7f01");
	assert_string_equal(
		strtab_get(why->texts, why->steps.data[part_of(why, 0)->step].meaning),
		"waits for the GPU: kernel softmax on stream 0x7f01, and what was put there "
		"before");
	done(&capture, why);
}

static void test_work_that_was_waited_for_before_is_not_waited_for_again(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1030, 11, GEMM, STREAM);
	hit(&capture, 1035, 11, GPU_SYNC_STREAM, 0x50, WORDS(STREAM));
	returns(&capture, 1036, 11, GPU_SYNC_STREAM, 0x50);
	launches(&capture, 1040, 11, SOFTMAX, STREAM);
	sync_begins(&capture, 1050);
	blocks(&capture, 1051, 1850);
	sync_ends(&capture, 1851);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 801, 11, "certain", "kernel softmax on stream 0x7f01");
	done(&capture, why);
}

static void test_a_stream_of_which_nothing_is_known_is_named_alone(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1030, 11, GEMM, 0x7f77);
	sync_begins(&capture, 1050);
	blocks(&capture, 1060, 1860);
	sync_ends(&capture, 1865);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 800, 11, "likely", "stream 0x7f01");
	check_part(why, 1, "running", 75, 11, "certain", "");
	check_part(why, 2, "running", 15, 11, "certain", ""); /* in the call */
	done(&capture, why);
}

static void test_an_event_stands_for_what_was_put_before_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1030, 11, GEMM, STREAM);
	records_event(&capture, 1035, 11, 0xe1, STREAM);
	launches(&capture, 1040, 11, SOFTMAX, STREAM);
	hit(&capture, 1050, 11, GPU_SYNC_EVENT, SYNC_ID, WORDS(0xe1));
	blocks(&capture, 1051, 1850);
	returns(&capture, 1851, 11, GPU_SYNC_EVENT, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 801, 11, "certain", "kernel gemm<float> on stream 0x7f01");
	done(&capture, why);
}

static void test_a_synchronous_copy_waits_for_itself_or_for_the_kernel_before_it(void **state)
{
	static const struct {
		uint64_t bytes;
		bool kernel;
		const char *grade, *text;
	} rows[] = {
		{4, false, "certain", "copy HtoD of 4 bytes on the default stream"},
		{1 << 20, true, "likely", "copy HtoD of 1048576 bytes on the default stream"},
		{4, true, "likely", "kernel gemm<float> on the default stream"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		if (rows[i].kernel)
			launches(&capture, 1030, 11, GEMM, 0);
		hit(&capture, 1050, 11, GPU_COPY, SYNC_ID, WORDS(rows[i].bytes, HTOD));
		blocks(&capture, 1051, 1850);
		returns(&capture, 1851, 11, GPU_COPY, SYNC_ID);
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		check_part(why, 0, "gpu", 801, 11, rows[i].grade, rows[i].text);
		done(&capture, why);
	}
}

static void test_a_call_that_failed_waits_for_no_gpu(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	hit(&capture, 1050, 11, GPU_COPY, SYNC_ID, WORDS(77, HTOD));
	returns_result(&capture, 1851, 11, GPU_COPY, SYNC_ID, 35);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "running", 801, 11, "certain", "");
	check_part(why, 1, "running", 89, 11, "certain", "");
	assert_int_equal(why->instances.data[0].part_count, 2);
	done(&capture, why);
}

static void test_a_small_copy_behind_a_kernel_waits_for_the_kernel(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1030, 11, GEMM, STREAM);
	hit(&capture, 1040, 11, GPU_COPY_ASYNC, 0x40, WORDS(4, HTOD, STREAM));
	returns(&capture, 1041, 11, GPU_COPY_ASYNC, 0x40);
	sync_begins(&capture, 1050);
	blocks(&capture, 1051, 1850);
	sync_ends(&capture, 1851);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 801, 11, "likely", "kernel gemm<float> on stream 0x7f01");
	done(&capture, why);
}

static void test_only_waits_of_the_call_are_the_gpus(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 12, 0, 0, 0);
	launches(&capture, 1030, 11, GEMM, STREAM);
	blocks(&capture, 1040, 1140); /* before the call: the driver's thread is not followed */
	sync_begins(&capture, 1150);
	/* In the call: of a page that is read, and until the thread is continued. */
	waits(&capture, 1160, 1, 11, 0, D, NR_NONE, 0, 0, 0);
	told(&capture, 1160, 1460, 11, 0, 0, 0x5000);
	gets(&capture, 1460, 1, 0, 11, 0, 1460, HARD);
	waits(&capture, 1470, 1, 11, 0, WAFFLE_TASK_STOPPED, NR_NONE, 0, 0, 0);
	gets(&capture, 1670, 1, 0, 11, 12, 1670, 0);
	blocks(&capture, 1680, 1730);
	sync_ends(&capture, 1740);
	capture_end(&capture, 1800, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "page-fault-major", 300, 11, "likely", "");
	check_part(why, 1, "stopped", 200, 12, "likely", "");
	for (uint32_t i = 0; i < why->instances.data[0].part_count; i++)
		if (part_of(why, i)->cause == WHY_GPU)
			assert_int_equal(part_of(why, i)->ns, 10 + 10 + 10 + 50 + 10);
	done(&capture, why);
}

/* ---- ranks ---- */

/* Ranks 0 and 1 reduce at 1040 and `last_ts`; rank 0 waits from 1050 to 1850. */
static void reduce_two(struct capture *capture, uint64_t last_ts)
{
	inits(capture, 11, 2);
	inits(capture, 21, 2);
	reduces(capture, 1040, 11, 1, 2);
	reduces(capture, last_ts, 21, 1, 2);
	hit(capture, 1050, 11, GPU_SYNC_STREAM, SYNC_ID, WORDS(COMM_STREAM));
	blocks(capture, 1050, 1850);
	returns(capture, 1850, 11, GPU_SYNC_STREAM, SYNC_ID);
}

static void test_chain_goes_on_in_the_rank_that_arrived_last(void **state)
{
	struct capture capture;
	const struct why_step *step;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	gets(&capture, 1004, 3, 0, 22, 0, 0, 0);
	/* Rank 1 waits for its loader, which reads a file. */
	object(&capture, "/data/shard-7", "ext4");
	waits(&capture, 1020, 2, 21, 0, S, NR_FUTEX, 0x7e00, FUTEX_COND, 0);
	waits(&capture, 1030, 3, 22, 0, D, NR_READ, 3, 0, 0);
	told_io(&capture, 1030, 1600, 22, 0);
	told(&capture, 1030, 1600, 22, 1, 0, 0);
	gets(&capture, 1600, 3, 0, 22, 0, 1600, HARD);
	gets(&capture, 1650, 2, 0, 21, 22, 1650, 0);
	reduce_two(&capture, 1700);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "disk-read", 550, 22, "certain", "/data/shard-7 (ext4)");
	assert_int_equal(part_of(why, 0)->step_count, 3);
	check_step(why, 0, 0, 11, BLOCKED, 1050, 1700);
	check_step(why, 0, 1, 21, BLOCKED, 1050, 1650);
	check_step(why, 0, 2, 22, BLOCKED, 1050, 1600);
	step = &why->steps.data[part_of(why, 0)->step];
	assert_true(step->gpu && step->last_rank);
	assert_int_equal(step->call_ts, 1700);
	assert_int_equal(why->model->threads.data[step->by].tid, 21);
	assert_string_equal(strtab_get(why->texts, step->meaning),
			    "waits for rank 1 in ncclAllReduce (seq 0)");
	/* Then the transfer itself. */
	check_part(why, 1, "gpu", 150, 11, "likely", "ncclAllReduce on stream 0x7f02");
	check_part(why, 2, "running", 40 + 49, 11, "certain", "");
	check_part(why, 3, "collective", 50, 21, "certain", "rank 1 in ncclAllReduce");
	check_part(why, 4, "user-work", 50, 22, "certain", "futex 0x7e00");
	done(&capture, why);
}

static void test_rank_that_arrived_last_itself_waits_for_the_gpu_only(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	reduce_two(&capture, 1030);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 800, 11, "likely", "ncclAllReduce on stream 0x7f02");
	check_part(why, 1, "running", 89, 11, "certain", "");
	check_part(why, 2, "running", 1, 11, "certain", ""); /* in ncclAllReduce */
	assert_int_equal(why->instances.data[0].part_count, 3);
	done(&capture, why);
}

static void test_spinning_thread_waits_for_the_last_rank_as_well(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	inits(&capture, 11, 2);
	inits(&capture, 21, 2);
	reduces(&capture, 1040, 11, 1, 2);
	reduces(&capture, 1700, 21, 1, 2);
	hit(&capture, 1050, 11, GPU_SYNC_STREAM, SYNC_ID, WORDS(COMM_STREAM));
	returns(&capture, 1850, 11, GPU_SYNC_STREAM, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 650, 21, "likely", "rank 1 in ncclAllReduce");
	check_part(why, 1, "gpu", 150, 11, "likely", "ncclAllReduce on stream 0x7f02");
	check_part(why, 2, "running", 89, 11, "certain", "");
	done(&capture, why);
}

static void test_collective_on_another_stream_is_found_behind_an_event(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	inits(&capture, 11, 2);
	inits(&capture, 21, 2);
	reduces(&capture, 1030, 11, 1, 2);
	records_event(&capture, 1035, 11, 0xe1, COMM_STREAM);
	stream_waits(&capture, 1037, 11, STREAM, 0xe1);
	launches(&capture, 1040, 11, SOFTMAX, STREAM);
	reduces(&capture, 1700, 21, 1, 2);
	sync_begins(&capture, 1050);
	blocks(&capture, 1050, 1850);
	sync_ends(&capture, 1850);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 650, 21, "certain", "rank 1 in ncclAllReduce");
	check_part(why, 1, "gpu", 150, 11, "likely", "kernel softmax on stream 0x7f01");
	done(&capture, why);
}

static void test_of_two_collectives_each_waits_for_its_own_last_rank(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	gets(&capture, 1004, 3, 0, 31, 0, 0, 0);
	for (uint32_t tid = 11; tid < 40; tid += 10)
		inits(&capture, tid, 3);
	reduces(&capture, 1030, 11, 1, 3);
	reduces(&capture, 1040, 11, 2, 3);
	reduces(&capture, 1060, 21, 1, 3);
	reduces(&capture, 1350, 31, 1, 3);
	reduces(&capture, 1400, 31, 2, 3);
	reduces(&capture, 1750, 21, 2, 3);
	hit(&capture, 1050, 11, GPU_SYNC_STREAM, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, GPU_SYNC_STREAM, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 400, 21, "certain", "rank 1 in ncclAllReduce");
	check_step(why, 0, 0, 11, BLOCKED, 1350, 1750);
	check_part(why, 1, "collective", 300, 31, "certain", "rank 2 in ncclAllReduce");
	check_step(why, 1, 0, 11, BLOCKED, 1050, 1350);
	check_part(why, 2, "gpu", 100, 11, "likely", "ncclAllReduce on stream 0x7f02");
	done(&capture, why);
}

static void test_chain_goes_through_the_gpu_of_the_last_rank(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	launches(&capture, 1020, 21, GEMM, STREAM);
	hit(&capture, 1025, 21, GPU_SYNC_STREAM, 0x61, WORDS(STREAM));
	waits(&capture, 1026, 2, 21, 0, S, NR_FUTEX, 0x7e00, FUTEX_COND, 0);
	gets(&capture, 1690, 2, 0, 21, 25, 1690, 0);
	returns(&capture, 1695, 21, GPU_SYNC_STREAM, 0x61);
	reduce_two(&capture, 1700);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 645, 21, "certain", "kernel gemm<float> on stream 0x7f01");
	check_step(why, 0, 1, 21, BLOCKED, 1050, 1690);
	check_part(why, 1, "gpu", 150, 11, "likely", "ncclAllReduce on stream 0x7f02");
	done(&capture, why);
}

static void test_rank_that_is_not_traced_is_named_and_likely(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	inits(&capture, 11, 3);
	inits(&capture, 21, 3);
	reduces(&capture, 1030, 11, 1, 3);
	reduces(&capture, 1040, 21, 1, 3);
	hit(&capture, 1050, 11, GPU_SYNC_STREAM, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, GPU_SYNC_STREAM, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 800, 0, "likely",
		   "rank 2 in ncclAllReduce, which is not traced");
	done(&capture, why);
}

static void test_several_ranks_that_are_not_traced_are_unknown(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	inits(&capture, 11, 8);
	reduces(&capture, 1030, 11, 1, 8);
	hit(&capture, 1050, 11, GPU_SYNC_STREAM, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, GPU_SYNC_STREAM, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 800, 0, "unknown",
		   "ranks in ncclAllReduce that are not traced");
	done(&capture, why);
}

/* Rank 0's ncclGroupEnd() connects to rank 1, which is late: only the wait is for that one. */
static void test_blocked_in_a_groups_end_waits_for_the_rank_that_is_late(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	inits(&capture, 11, 2);
	inits(&capture, 21, 2);
	for (uint32_t tid = 11; tid <= 21; tid += 10) {
		uint64_t at = tid == 11 ? 1030 : 1630;

		hit(&capture, at, tid, GPU_GROUP_START, at, 0, NULL);
		returns(&capture, at + 1, tid, GPU_GROUP_START, at);
		reduces(&capture, at + 5, tid, 1, 2);
		hit(&capture, at + 20, tid, GPU_GROUP_END, at + 20, 0, NULL);
		returns(&capture, 1800, tid, GPU_GROUP_END, at + 20);
	}
	waits(&capture, 1100, 1, 11, 0, S, NR_POLL, 0x7f00, 1, 0);
	gets(&capture, 1700, 1, 0, 11, 15, 1700, 0);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	/* Until its group's end; in its other two calls it is 1 ns each. */
	check_part(why, 0, "collective", 548, 21, "certain", "rank 1 in ncclAllReduce");
	check_step(why, 0, 0, 11, BLOCKED, 1100, 1650);
	done(&capture, why);
}

static void test_making_of_a_communicator_waits_for_the_rank_that_came_last(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	hit(&capture, 1050, 11, GPU_COMM_INIT, 0x71, WORDS(0, 2, 0));
	hit(&capture, 1650, 21, GPU_COMM_INIT, 0x72, WORDS(1, 2, 0));
	waits(&capture, 1050, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, 1800, 1, 0, 11, 15, 1800, 0);
	returns(&capture, 1810, 11, GPU_COMM_INIT, 0x71);
	returns(&capture, 1810, 21, GPU_COMM_INIT, 0x72);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 600, 21, "likely", "rank 1 in ncclCommInitRank");
	done(&capture, why);
}

/* ---- words ---- */

static void test_text_names_the_kernel_the_launch_and_the_last_rank(void **state)
{
	struct capture capture;
	struct why_view view = {0};
	struct why *why;
	char *text = NULL;
	size_t len;
	FILE *out;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	span(&capture, 1012, 21, GPU_FORWARD, 3);
	reduce_two(&capture, 1700);
	ends(&capture, 1710, 21, GPU_FORWARD, 3);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	out = open_memstream(&text, &len);
	assert_non_null(out);
	why_print_text(why, &view, out);
	fclose(out);
	assert_non_null(strstr(text, "collective        certain  rank1 (21) in forward, "
				     "rank 1 in ncclAllReduce\n"));
	assert_non_null(strstr(text, "650 ns blocked in cudaStreamSynchronize: waits for rank 1 in "
				     "ncclAllReduce (seq 0) ← arrived last: rank1 (21), process "
				     "20, which spent those 650 ns:\n"));
	assert_non_null(strstr(text, "150 ns blocked in cudaStreamSynchronize: waits for the GPU: "
				     "ncclAllReduce on stream 0x7f02, launched in step by trainer "
				     "(11) [2]\n"));
	free(text);
	done(&capture, why);
}

static void test_evidence_is_the_launch_and_the_arrival(void **state)
{
	struct capture capture;
	struct error err = ERROR_INIT;
	struct why *why;
	unsigned found = 0;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	reduce_two(&capture, 1700);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	capture_must(why_records_find(why, &err), err);
	for (size_t i = 0; i < why->records.len; i++) {
		const struct why_record *record = &why->records.data[i];

		if (record->role != WHY_ROLE_LAUNCH && record->role != WHY_ROLE_ARRIVAL)
			continue;
		assert_int_not_equal(record->number, 0);
		assert_int_equal(record->ts, record->role == WHY_ROLE_LAUNCH ? 1040 : 1700);
		found |= 1u << record->role;
	}
	assert_int_equal(found, 1u << WHY_ROLE_LAUNCH | 1u << WHY_ROLE_ARRIVAL);
	done(&capture, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_blocked_in_a_synchronisation_is_the_kernel_launched_last_and_its_span),
		cmocka_unit_test(test_spinning_in_a_synchronisation_is_the_gpu_and_likely),
		cmocka_unit_test(test_of_several_kernels_the_last_one_is_named_and_likely),
		cmocka_unit_test(test_work_that_was_waited_for_before_is_not_waited_for_again),
		cmocka_unit_test(test_a_stream_of_which_nothing_is_known_is_named_alone),
		cmocka_unit_test(test_an_event_stands_for_what_was_put_before_it),
		cmocka_unit_test(
			test_a_synchronous_copy_waits_for_itself_or_for_the_kernel_before_it),
		cmocka_unit_test(test_a_call_that_failed_waits_for_no_gpu),
		cmocka_unit_test(test_a_small_copy_behind_a_kernel_waits_for_the_kernel),
		cmocka_unit_test(test_only_waits_of_the_call_are_the_gpus),
		cmocka_unit_test(test_chain_goes_on_in_the_rank_that_arrived_last),
		cmocka_unit_test(test_rank_that_arrived_last_itself_waits_for_the_gpu_only),
		cmocka_unit_test(test_spinning_thread_waits_for_the_last_rank_as_well),
		cmocka_unit_test(test_collective_on_another_stream_is_found_behind_an_event),
		cmocka_unit_test(test_of_two_collectives_each_waits_for_its_own_last_rank),
		cmocka_unit_test(test_chain_goes_through_the_gpu_of_the_last_rank),
		cmocka_unit_test(test_rank_that_is_not_traced_is_named_and_likely),
		cmocka_unit_test(test_several_ranks_that_are_not_traced_are_unknown),
		cmocka_unit_test(test_blocked_in_a_groups_end_waits_for_the_rank_that_is_late),
		cmocka_unit_test(test_making_of_a_communicator_waits_for_the_rank_that_came_last),
		cmocka_unit_test(test_text_names_the_kernel_the_launch_and_the_last_rank),
		cmocka_unit_test(test_evidence_is_the_launch_and_the_arrival),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
