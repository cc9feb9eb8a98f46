// SPDX-License-Identifier: Apache-2.0
/* Waits for the other ranks of a collective, or for the other end of a send or recv. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/text/why_text.h"
#include "gpu_capture.h"

#define BLOCKED WAFFLE_THREAD_BLOCKED

/* ---- ranks ---- */

/* Ranks 0 and 1 reduce at 1040 and `last_ts`; rank 0 waits from 1050 to 1850. */
static void reduce_two(struct capture *capture, uint64_t last_ts)
{
	inits(capture, 11, 2);
	inits(capture, 21, 2);
	reduces(capture, 1040, 11, 1, 2);
	reduces(capture, last_ts, 21, 1, 2);
	hit(capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	blocks(capture, 1050, 1850);
	returns(capture, 1850, 11, CALL_SYNC, SYNC_ID);
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
	io_done(&capture, 1030, 1600, 22, 0);
	wait_details(&capture, 1030, 1600, 22, 1, 0, 0);
	gets(&capture, 1600, 3, 0, 22, 0, 1600, HARD);
	gets(&capture, 1650, 2, 0, 21, 22, 1650, 0);
	reduce_two(&capture, 1700);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "disk-read", 550, 22, "likely", "/data/shard-7 (ext4)");
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
	check_part(why, 4, "user-work", 50, 22, "likely", "futex 0x7e00");
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
	begin_two_ranks(&capture);
	reduces(&capture, 1040, 11, 1, 2);
	reduces(&capture, 1700, 21, 1, 2);
	hit(&capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	returns(&capture, 1850, 11, CALL_SYNC, SYNC_ID);
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
	begin_two_ranks(&capture);
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
	check_part(why, 1, "gpu", 150, 11, "unknown",
		   "kernel softmax on stream 0x7f01, or ncclAllReduce on stream 0x7f02");
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
	hit(&capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, CALL_SYNC, SYNC_ID);
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
	hit(&capture, 1025, 21, CALL_SYNC, 0x61, WORDS(STREAM));
	waits(&capture, 1026, 2, 21, 0, S, NR_FUTEX, 0x7e00, FUTEX_COND, 0);
	gets(&capture, 1690, 2, 0, 21, 25, 1690, 0);
	returns(&capture, 1695, 21, CALL_SYNC, 0x61);
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
	hit(&capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, CALL_SYNC, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 800, 0, "likely",
		   "rank 2 in ncclAllReduce, which is not traced");
	done(&capture, why);
}

/* Rank 2 may have come after rank 1. */
static void test_last_traced_rank_is_likely_if_another_one_is_not_traced(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	inits(&capture, 11, 3);
	inits(&capture, 21, 3);
	reduces(&capture, 1030, 11, 1, 3);
	reduces(&capture, 1700, 21, 1, 3);
	hit(&capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, CALL_SYNC, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 650, 21, "likely", "rank 1 in ncclAllReduce");
	check_part(why, 1, "collective", 150, 0, "likely",
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
	hit(&capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, CALL_SYNC, SYNC_ID);
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
	begin_two_ranks(&capture);
	for (uint32_t tid = 11; tid <= 21; tid += 10) {
		uint64_t at = tid == 11 ? 1030 : 1630;

		hit(&capture, at, tid, CALL_GROUP_START, at, 0, NULL);
		reduces(&capture, at + 5, tid, 1, 2);
		hit(&capture, at + 20, tid, CALL_GROUP_END, at + 20, 0, NULL);
		returns(&capture, 1800, tid, CALL_GROUP_END, at + 20);
	}
	waits(&capture, 1100, 1, 11, 0, S, NR_POLL, 0x7f00, 1, 0);
	gets(&capture, 1700, 1, 0, 11, 15, 1700, 0);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	/* Until its group's end; in its other call it is 1 ns. */
	check_part(why, 0, "collective", 549, 21, "certain", "rank 1 in ncclAllReduce");
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
	hit(&capture, 1050, 11, CALL_COMM_INIT, 0x71, WORDS(0, 2, 0));
	hit(&capture, 1650, 21, CALL_COMM_INIT, 0x72, WORDS(1, 2, 0));
	waits(&capture, 1050, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, 1800, 1, 0, 11, 15, 1800, 0);
	returns(&capture, 1810, 11, CALL_COMM_INIT, 0x71);
	returns(&capture, 1810, 21, CALL_COMM_INIT, 0x72);
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
	span(&capture, 1012, 21, CALL_FORWARD, 3);
	reduce_two(&capture, 1700);
	ends(&capture, 1710, 21, CALL_FORWARD, 3);
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

/* ---- point to point ---- */

/* Rank 0 calls `own` at 1040 and waits from 1050 to 1850, rank 1 calls `other` at 1700. */
static void message_between_two(struct capture *capture, uint32_t own, uint32_t other)
{
	begin(capture);
	gets(capture, 1004, 2, 0, 21, 0, 0, 0);
	gets(capture, 1004, 3, 0, 22, 0, 0, 0);
	waits(capture, 1020, 2, 21, 0, S, NR_FUTEX, 0x7e00, FUTEX_COND, 0);
	gets(capture, 1650, 2, 0, 21, 22, 1650, 0);
	inits(capture, 11, 2);
	inits(capture, 21, 2);
	meets(capture, 1040, 11, own, 1, 0);
	meets(capture, 1700, 21, other, 0, 0);
	hit(capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	blocks(capture, 1050, 1850);
	returns(capture, 1850, 11, CALL_SYNC, SYNC_ID);
	capture_end(capture, 1900, 11, 1);
}

static void test_recv_waits_for_the_rank_that_sends_late_and_the_chain_goes_on_there(void **state)
{
	struct capture capture;
	const struct why_step *step;
	struct why *why;

	(void)state;
	message_between_two(&capture, CALL_RECV, CALL_SEND);
	why = ask_span(&capture, 2000);
	/* Rank 1 waits for its thread 22 until 1650, and comes 50 ns later. */
	check_part(why, 0, "user-work", 600, 22, "likely", "futex 0x7e00");
	assert_int_equal(part_of(why, 0)->step_count, 3);
	check_step(why, 0, 0, 11, BLOCKED, 1050, 1700);
	check_step(why, 0, 1, 21, BLOCKED, 1050, 1650);
	step = &why->steps.data[part_of(why, 0)->step];
	assert_true(step->gpu && step->last_rank);
	assert_int_equal(step->call_ts, 1700);
	assert_string_equal(strtab_get(why->texts, step->meaning), "waits for rank 1 in ncclSend");
	check_part(why, 1, "gpu", 150, 11, "likely", "ncclRecv on stream 0x7f02");
	check_part(why, 3, "collective", 50, 21, "certain", "rank 1 in ncclSend");
	done(&capture, why);
}

/* A short message may be sent before the receiver has arrived, so the wait is only likely. */
static void test_send_likely_waits_for_the_rank_that_receives_late(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	message_between_two(&capture, CALL_SEND, CALL_RECV);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "user-work", 600, 22, "likely", "futex 0x7e00");
	check_part(why, 1, "gpu", 150, 11, "likely", "ncclSend on stream 0x7f02");
	check_part(why, 3, "collective", 50, 21, "likely", "rank 1 in ncclRecv");
	done(&capture, why);
}

static void test_send_that_was_done_before_its_recv_came_has_not_waited_for_it(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin_two_ranks(&capture);
	meets(&capture, 1040, 11, CALL_SEND, 1, 0);
	hit(&capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1650);
	returns(&capture, 1650, 11, CALL_SYNC, SYNC_ID);
	meets(&capture, 1700, 21, CALL_RECV, 0, 0);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 600, 11, "likely", "ncclSend on stream 0x7f02");
	done(&capture, why);
}

static void test_other_end_that_is_not_traced_is_the_peer_of_the_call(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	inits(&capture, 11, 2);
	meets(&capture, 1040, 11, CALL_RECV, 1, 0);
	hit(&capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, CALL_SYNC, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 800, 0, "likely",
		   "rank 1 at the other end of ncclRecv, which is not traced");
	done(&capture, why);
}

/* Without the making of the communicator it is not known which calls meet. */
static void test_ranks_whose_calls_cannot_be_told_apart_are_not_said_to_be_untraced(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	reduces(&capture, 1030, 11, 1, 2);
	reduces(&capture, 1040, 21, 1, 2);
	reduces(&capture, 1045, 11, 2, 2);
	hit(&capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, CALL_SYNC, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 800, 0, "likely",
		   "rank 1 in ncclAllReduce, whose calls cannot be distinguished");
	done(&capture, why);
}

/* ---- ranks that do not come ---- */

static void test_rank_that_never_comes_is_waited_for_to_the_end_of_the_capture(void **state)
{
	struct capture capture;
	const struct why_step *step;
	struct why *why;

	(void)state;
	begin_two_ranks(&capture);
	reduces(&capture, 1010, 11, 0, 2);
	reduces(&capture, 1011, 21, 0, 2);
	waits(&capture, 1030, 2, 21, 0, S, NR_NANOSLEEP, 0, 0, 0);
	reduces(&capture, 1040, 11, 1, 2);
	hit(&capture, 1050, 11, CALL_SYNC, SYNC_ID, WORDS(COMM_STREAM));
	waits(&capture, 1060, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "sleep", 950, 21, "likely", "");
	step = &why->steps.data[part_of(why, 0)->step];
	assert_true(step->last_rank);
	assert_int_equal(step->call_ts, 0);
	assert_string_equal(strtab_get(why->texts, step->meaning),
			    "waits for rank 1, which has not come to ncclAllReduce");
	done(&capture, why);
}

/* ---- ranks that are not traced, and work behind them ---- */

static void test_kernel_behind_a_collective_of_untraced_ranks_is_not_blamed_alone(void **state)
{
	static const char *const texts[] = {
		"rank 1 in ncclAllReduce, which is not traced, or kernel softmax on stream 0x7f02",
		"ranks in ncclAllReduce that are not traced, or kernel softmax on stream 0x7f02",
	};

	(void)state;
	for (unsigned nranks = 2; nranks < 4; nranks++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		inits(&capture, 11, nranks);
		reduces(&capture, 1030, 11, 1, nranks);
		launches(&capture, 1040, 11, SOFTMAX, COMM_STREAM);
		syncs(&capture, 1050, 1850, COMM_STREAM);
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		check_part(why, 0, "collective", 800, 0, "unknown", texts[nranks - 2]);
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain_goes_on_in_the_rank_that_arrived_last),
		cmocka_unit_test(test_rank_that_arrived_last_itself_waits_for_the_gpu_only),
		cmocka_unit_test(test_spinning_thread_waits_for_the_last_rank_as_well),
		cmocka_unit_test(test_collective_on_another_stream_is_found_behind_an_event),
		cmocka_unit_test(test_of_two_collectives_each_waits_for_its_own_last_rank),
		cmocka_unit_test(test_chain_goes_through_the_gpu_of_the_last_rank),
		cmocka_unit_test(test_rank_that_is_not_traced_is_named_and_likely),
		cmocka_unit_test(test_last_traced_rank_is_likely_if_another_one_is_not_traced),
		cmocka_unit_test(test_several_ranks_that_are_not_traced_are_unknown),
		cmocka_unit_test(test_blocked_in_a_groups_end_waits_for_the_rank_that_is_late),
		cmocka_unit_test(test_making_of_a_communicator_waits_for_the_rank_that_came_last),
		cmocka_unit_test(test_text_names_the_kernel_the_launch_and_the_last_rank),
		cmocka_unit_test(test_evidence_is_the_launch_and_the_arrival),
		cmocka_unit_test(
			test_recv_waits_for_the_rank_that_sends_late_and_the_chain_goes_on_there),
		cmocka_unit_test(test_send_likely_waits_for_the_rank_that_receives_late),
		cmocka_unit_test(
			test_send_that_was_done_before_its_recv_came_has_not_waited_for_it),
		cmocka_unit_test(test_other_end_that_is_not_traced_is_the_peer_of_the_call),
		cmocka_unit_test(
			test_ranks_whose_calls_cannot_be_told_apart_are_not_said_to_be_untraced),
		cmocka_unit_test(
			test_rank_that_never_comes_is_waited_for_to_the_end_of_the_capture),
		cmocka_unit_test(
			test_kernel_behind_a_collective_of_untraced_ranks_is_not_blamed_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
