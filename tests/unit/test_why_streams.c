// SPDX-License-Identifier: Apache-2.0
/* Waits for streams that are not named: the default stream's, and very many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu_capture.h"

/* ---- default streams ---- */

static void test_default_stream_stands_for_the_blocking_stream_that_it_waits_for(void **state)
{
	static const struct {
		uint64_t flags;
		bool made;
		const char *grade, *text;
	} rows[] = {
		{0, true, "certain", "kernel gemm<float> on stream 0x7f01"},
		{1, true, "likely", "the default stream"}, /* of which nothing is known */
		{0, false, "likely", "kernel gemm<float> on stream 0x7f01"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		if (rows[i].made)
			makes_stream(&capture, 11, STREAM, rows[i].flags);
		launches(&capture, 1030, 11, GEMM, STREAM);
		syncs(&capture, 1050, 1850, 0);
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		check_part(why, 0, "gpu", 800, 11, rows[i].grade, rows[i].text);
		done(&capture, why);
	}
}

static void test_default_streams_own_kernel_is_named_before_one_of_an_unknown_stream(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1020, 11, SOFTMAX, 0);
	launches(&capture, 1030, 11, GEMM, STREAM);
	syncs(&capture, 1050, 1850, 0);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 800, 11, "likely", "kernel softmax on the default stream");
	done(&capture, why);
}

static void test_threads_own_default_stream_is_named_so(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	hit(&capture, 1030, 11, CALL_LAUNCH_PTSZ, 0x40, WORDS(GEMM, 1, 1, 0));
	hit(&capture, 1050, 11, CALL_SYNC_PTSZ, SYNC_ID, WORDS(0));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, CALL_SYNC_PTSZ, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 800, 11, "certain",
		   "kernel gemm<float> on its thread's default stream");
	done(&capture, why);
}

/* ---- ranks on other streams ---- */

static void test_late_rank_is_found_on_a_blocking_stream_of_the_default_one(void **state)
{
	(void)state;
	for (uint64_t flags = 0; flags < 2; flags++) {
		struct capture capture;
		struct why *why;

		begin_two_ranks(&capture);
		makes_stream(&capture, 11, COMM_STREAM, flags);
		reduces(&capture, 1030, 11, 1, 2);
		launches(&capture, 1040, 11, GEMM, 0);
		reduces(&capture, 1700, 21, 1, 2);
		syncs(&capture, 1050, 1850, 0);
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		if (flags) {
			check_part(why, 0, "gpu", 800, 11, "certain",
				   "kernel gemm<float> on the default stream");
		} else {
			check_part(why, 0, "collective", 650, 21, "certain",
				   "rank 1 in ncclAllReduce");
			check_part(why, 1, "gpu", 150, 11, "unknown",
				   "kernel gemm<float> on the default stream, or ncclAllReduce on "
				   "stream 0x7f02");
		}
		done(&capture, why);
	}
}

static void test_kernel_behind_a_collective_of_busy_gpus_is_not_blamed_alone(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin_two_ranks(&capture);
	makes_stream(&capture, 11, COMM_STREAM, 0);
	reduces(&capture, 1030, 11, 1, 2);
	launches(&capture, 1035, 11, SOFTMAX, COMM_STREAM);
	launches(&capture, 1040, 11, GEMM, 0);
	launches(&capture, 1690, 21, SOFTMAX, COMM_STREAM);
	reduces(&capture, 1700, 21, 1, 2);
	syncs(&capture, 1050, 1850, 0);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 650, 21, "certain", "rank 1 in ncclAllReduce");
	check_part(why, 1, "gpu", 150, 11, "unknown",
		   "kernel gemm<float> on the default stream, or kernel softmax on stream 0x7f02, "
		   "or another rank's GPU before ncclAllReduce");
	done(&capture, why);
}

static void test_late_rank_is_found_behind_the_default_stream_of_a_blocking_one(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin_two_ranks(&capture);
	makes_stream(&capture, 11, COMM_STREAM, 0);
	makes_stream(&capture, 11, STREAM, 0);
	reduces(&capture, 1020, 11, 1, 2);
	launches(&capture, 1030, 11, SOFTMAX, 0);
	launches(&capture, 1040, 11, GEMM, STREAM);
	reduces(&capture, 1700, 21, 1, 2);
	syncs(&capture, 1050, 1850, STREAM);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 650, 21, "certain", "rank 1 in ncclAllReduce");
	check_part(why, 1, "gpu", 150, 11, "unknown",
		   "kernel gemm<float> on stream 0x7f01, or kernel softmax on the default stream, "
		   "or ncclAllReduce on stream 0x7f02");
	done(&capture, why);
}

/* More streams than are examined: no answer rather than a wrong one. */
static void test_late_rank_is_found_on_one_of_very_many_streams_or_it_is_unknown(void **state)
{
	static const unsigned counts[] = {20, 1000, 6000};

	(void)state;
	for (size_t row = 0; row < 3; row++) {
		struct capture capture;
		struct why *why;

		begin_two_ranks(&capture);
		reduces(&capture, 1030, 11, 1, 2);
		for (unsigned i = 0; i < counts[row]; i++)
			hit(&capture, 1040, 11, CALL_LAUNCH, 0x10000 + i,
			    WORDS(GEMM, 1, 1, 0x10000 + i));
		reduces(&capture, 1700, 21, 1, 2);
		hit(&capture, 1050, 11, CALL_SYNC_DEVICE, SYNC_ID, 0, NULL);
		blocks(&capture, 1050, 1850);
		returns(&capture, 1850, 11, CALL_SYNC_DEVICE, SYNC_ID);
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		if (counts[row] < 5000)
			check_part(why, 0, "collective", 650, 21, "certain",
				   "rank 1 in ncclAllReduce");
		else
			assert_string_equal(why_grade_names[part_of(why, 0)->grade], "unknown");
		done(&capture, why);
	}
}

/* ---- one of several ---- */

#define STREAM_B 0x7f03
#define STREAM_C 0x7f04
#define EVENT 0xe1

/* A synchronisation of the device, or a free, during all of which the thread is blocked. */
static void waits_for_device(struct capture *capture, uint32_t site)
{
	hit(capture, 1050, 11, site, SYNC_ID, WORDS(0));
	blocks(capture, 1050, 1850);
	returns(capture, 1850, 11, site, SYNC_ID);
}

static void check_device(struct capture *capture, uint32_t site, const char *grade,
			 const char *text)
{
	struct why *why;

	waits_for_device(capture, site);
	capture_end(capture, 1900, 11, 1);
	why = ask_span(capture, 2000);
	check_part(why, 0, "gpu", 800, 11, grade, text);
	done(capture, why);
}

static void test_last_kernels_of_two_streams_are_both_named_and_unknown(void **state)
{
	static const uint32_t sites[] = {CALL_SYNC_DEVICE, CALL_FREE};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct capture capture;

		begin(&capture);
		launches(&capture, 1020, 11, SOFTMAX, STREAM);
		launches(&capture, 1030, 11, GEMM, STREAM);
		launches(&capture, 1040, 11, SOFTMAX, STREAM_B);
		check_device(&capture, sites[i], "unknown",
			     "kernel softmax on stream 0x7f03, or kernel gemm<float> on stream "
			     "0x7f01");
	}
}

static void test_of_many_streams_some_are_named_and_the_others_counted(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	for (unsigned i = 0; i < 6; i++)
		launches(&capture, 1020 + i, 11, GEMM, 0x100 + i);
	check_device(&capture, CALL_SYNC_DEVICE, "unknown",
		     "kernel gemm<float> on stream 0x105, or kernel gemm<float> on stream 0x104, "
		     "or kernel gemm<float> on stream 0x103, or 3 more");
}

static void test_stream_that_was_waited_for_before_is_not_named(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	launches(&capture, 1020, 11, GEMM, STREAM);
	launches(&capture, 1025, 11, SOFTMAX, STREAM_B);
	hit(&capture, 1030, 11, CALL_SYNC, 0x77, WORDS(STREAM_B));
	returns(&capture, 1040, 11, CALL_SYNC, 0x77);
	check_device(&capture, CALL_SYNC_DEVICE, "certain", "kernel gemm<float> on stream 0x7f01");
}

/* No record shows which of them had the most work. */
static void test_stream_that_is_waited_for_by_an_event_is_named_with_its_launch(void **state)
{
	const char *text = "kernel softmax on stream 0x7f03, or kernel gemm<float> on stream "
			   "0x7f01";

	(void)state;
	for (unsigned device = 0; device < 2; device++) {
		struct capture capture;
		const struct why_step *step;
		struct why *why;

		begin(&capture);
		span(&capture, 1015, 11, CALL_FORWARD, 3);
		launches(&capture, 1020, 11, GEMM, STREAM);
		ends(&capture, 1022, 11, CALL_FORWARD, 3);
		records_event(&capture, 1025, 11, EVENT, STREAM);
		stream_waits(&capture, 1030, 11, STREAM_B, EVENT);
		launches(&capture, 1040, 11, SOFTMAX, STREAM_B);
		if (device)
			waits_for_device(&capture, CALL_SYNC_DEVICE);
		else
			syncs(&capture, 1050, 1850, STREAM_B);
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		check_part(why, 0, "gpu", 800, 11, "unknown", text);
		step = &why->steps.data[part_of(why, 0)->step];
		assert_string_equal(strtab_get(why->texts, step->meaning),
				    "waits for the GPU: kernel softmax on stream 0x7f03, launched "
				    "in step, or kernel gemm<float> on stream 0x7f01, launched in "
				    "forward");
		done(&capture, why);
	}
}

static void test_stream_behind_an_event_that_was_waited_for_before_is_not_named(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1020, 11, GEMM, STREAM);
	records_event(&capture, 1021, 11, EVENT, STREAM);
	stream_waits(&capture, 1022, 11, STREAM_B, EVENT);
	launches(&capture, 1024, 11, SOFTMAX, STREAM_B);
	hit(&capture, 1030, 11, CALL_SYNC_EVENT, 0x77, WORDS(EVENT));
	returns(&capture, 1040, 11, CALL_SYNC_EVENT, 0x77);
	syncs(&capture, 1050, 1850, STREAM_B);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 800, 11, "certain", "kernel softmax on stream 0x7f03");
	done(&capture, why);
}

/* The default stream waits for it implicitly, and so does a copy on that. */
static void test_blocking_stream_is_named_beside_the_default_streams_work(void **state)
{
	(void)state;
	for (unsigned copy = 0; copy < 2; copy++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		makes_stream(&capture, 11, STREAM, 0);
		launches(&capture, 1020, 11, GEMM, STREAM);
		if (copy) {
			hit(&capture, 1050, 11, CALL_COPY, SYNC_ID, WORDS(1 << 20, HTOD));
			blocks(&capture, 1050, 1850);
			returns_result(&capture, 1850, 11, CALL_COPY, SYNC_ID, 0);
		} else {
			launches(&capture, 1030, 11, SOFTMAX, 0);
			syncs(&capture, 1050, 1850, 0);
		}
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		check_part(why, 0, "gpu", 800, 11, "unknown",
			   copy ? "copy HtoD of 1048576 bytes on the default stream, or kernel "
				  "gemm<float> on stream 0x7f01"
				: "kernel softmax on the default stream, or kernel gemm<float> on "
				  "stream 0x7f01");
		done(&capture, why);
	}
}

/* One stream is made to wait for two others, for the operations that they have by then. */
static void test_stream_that_waits_for_others_last_is_for_any_of_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		launches(&capture, 1020, 11, GEMM, STREAM);
		/* The second time the own stream's kernel is before the others'. */
		records_event(&capture, 1021, 11, EVENT + 2, STREAM);
		if (i)
			stream_waits(&capture, 1022, 11, STREAM_B, EVENT + 2);
		launches(&capture, 1024, 11, GEMM, STREAM_B);
		records_event(&capture, 1026, 11, EVENT, STREAM_B);
		launches(&capture, 1028, 11, SOFTMAX, STREAM_C);
		records_event(&capture, 1030, 11, EVENT + 1, STREAM_C);
		launches(&capture, 1032, 11, GEMM, STREAM_C);
		stream_waits(&capture, 1034, 11, STREAM, EVENT);
		stream_waits(&capture, 1036, 11, STREAM, EVENT + 1);
		syncs(&capture, 1050, 1850, STREAM);
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		check_part(why, 0, "gpu", 800, 11, "unknown",
			   "kernel softmax on stream 0x7f04, or kernel gemm<float> on stream "
			   "0x7f03, or kernel gemm<float> on stream 0x7f01");
		done(&capture, why);
	}
}

/* A copy of 64 bytes takes no half of 800 ns. */
static void test_small_copy_on_another_stream_is_not_what_took_so_long(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	launches(&capture, 1020, 11, GEMM, STREAM);
	hit(&capture, 1030, 11, CALL_COPY_ASYNC, 0x77, WORDS(64, HTOD, STREAM_B));
	returns(&capture, 1031, 11, CALL_COPY_ASYNC, 0x77);
	check_device(&capture, CALL_SYNC_DEVICE, "likely", "kernel gemm<float> on stream 0x7f01");
}

static void test_copy_whose_size_is_a_product_or_not_known_is_not_taken_for_small(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	launches(&capture, 1010, 11, GEMM, STREAM);
	hit(&capture, 1030, 11, CALL_COPY_2D, 0x77, WORDS(64, 1024, HTOD, STREAM));
	returns(&capture, 1031, 11, CALL_COPY_2D, 0x77);
	check_device(&capture, CALL_SYNC_DEVICE, "likely",
		     "copy HtoD of 65536 bytes on stream 0x7f01");

	begin(&capture);
	launches(&capture, 1010, 11, GEMM, STREAM);
	hit(&capture, 1030, 11, CALL_COPY_BATCH, 0x77, WORDS(3, STREAM));
	returns(&capture, 1031, 11, CALL_COPY_BATCH, 0x77);
	check_device(&capture, CALL_SYNC_DEVICE, "likely", "copy on stream 0x7f01");
}

static void test_rank_that_is_not_traced_or_another_stream_is_unknown(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	inits(&capture, 11, 2);
	launches(&capture, 1030, 11, GEMM, STREAM);
	reduces(&capture, 1040, 11, 1, 2);
	waits_for_device(&capture, CALL_SYNC_DEVICE);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 800, 0, "unknown",
		   "rank 1 in ncclAllReduce, which is not traced, or kernel gemm<float> on stream "
		   "0x7f01");
	done(&capture, why);
}

/* The collective is what it is for already. */
static void test_collective_of_untraced_ranks_is_not_counted_among_the_other_streams(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	inits(&capture, 11, 2);
	reduces(&capture, 1015, 11, 1, 2);
	for (unsigned i = 0; i < 5; i++)
		launches(&capture, 1020 + i, 11, GEMM, 0x100 + i);
	waits_for_device(&capture, CALL_SYNC_DEVICE);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 800, 0, "unknown",
		   "rank 1 in ncclAllReduce, which is not traced, or kernel gemm<float> on stream "
		   "0x104, or kernel gemm<float> on stream 0x103, or kernel gemm<float> on stream "
		   "0x102, or 2 more");
	done(&capture, why);
}

/* ---- calls that may wait ---- */

static void test_free_may_wait_for_the_device(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	launches(&capture, 1040, 11, GEMM, STREAM);
	check_device(&capture, CALL_FREE, "likely", "kernel gemm<float> on stream 0x7f01");
}

static void test_late_rank_is_likely_what_a_free_waits_for(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin_two_ranks(&capture);
	reduces(&capture, 1030, 11, 1, 2);
	reduces(&capture, 1700, 21, 1, 2);
	waits_for_device(&capture, CALL_FREE);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 650, 21, "likely", "rank 1 in ncclAllReduce");
	check_part(why, 1, "gpu", 150, 11, "likely", "ncclAllReduce on stream 0x7f02");
	done(&capture, why);
}

/* Without work it is for something else; and whether it has waited for work is not known. */
static void test_free_without_work_waits_for_no_gpu_and_synchronises_nothing(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	hit(&capture, 1050, 11, CALL_FREE, SYNC_ID, WORDS(0));
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, CALL_FREE, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	assert_string_not_equal(why_causes[part_of(why, 0)->cause].name, "gpu");
	done(&capture, why);

	begin(&capture);
	launches(&capture, 1020, 11, GEMM, STREAM);
	hit(&capture, 1030, 11, CALL_FREE, 0x77, WORDS(0));
	returns(&capture, 1040, 11, CALL_FREE, 0x77);
	check_device(&capture, CALL_SYNC_DEVICE, "certain", "kernel gemm<float> on stream 0x7f01");
}

static void test_time_on_a_cpu_in_a_free_is_running(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1040, 11, GEMM, STREAM);
	hit(&capture, 1050, 11, CALL_FREE, SYNC_ID, WORDS(0));
	returns(&capture, 1850, 11, CALL_FREE, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	assert_string_equal(why_causes[part_of(why, 0)->cause].name, "running");
	done(&capture, why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_default_stream_stands_for_the_blocking_stream_that_it_waits_for),
		cmocka_unit_test(
			test_default_streams_own_kernel_is_named_before_one_of_an_unknown_stream),
		cmocka_unit_test(test_threads_own_default_stream_is_named_so),
		cmocka_unit_test(test_late_rank_is_found_on_a_blocking_stream_of_the_default_one),
		cmocka_unit_test(test_kernel_behind_a_collective_of_busy_gpus_is_not_blamed_alone),
		cmocka_unit_test(
			test_late_rank_is_found_behind_the_default_stream_of_a_blocking_one),
		cmocka_unit_test(
			test_late_rank_is_found_on_one_of_very_many_streams_or_it_is_unknown),
		cmocka_unit_test(test_last_kernels_of_two_streams_are_both_named_and_unknown),
		cmocka_unit_test(test_of_many_streams_some_are_named_and_the_others_counted),
		cmocka_unit_test(test_stream_that_was_waited_for_before_is_not_named),
		cmocka_unit_test(
			test_stream_that_is_waited_for_by_an_event_is_named_with_its_launch),
		cmocka_unit_test(
			test_stream_behind_an_event_that_was_waited_for_before_is_not_named),
		cmocka_unit_test(test_blocking_stream_is_named_beside_the_default_streams_work),
		cmocka_unit_test(test_stream_that_waits_for_others_last_is_for_any_of_them),
		cmocka_unit_test(test_small_copy_on_another_stream_is_not_what_took_so_long),
		cmocka_unit_test(
			test_copy_whose_size_is_a_product_or_not_known_is_not_taken_for_small),
		cmocka_unit_test(test_rank_that_is_not_traced_or_another_stream_is_unknown),
		cmocka_unit_test(
			test_collective_of_untraced_ranks_is_not_counted_among_the_other_streams),
		cmocka_unit_test(test_free_may_wait_for_the_device),
		cmocka_unit_test(test_late_rank_is_likely_what_a_free_waits_for),
		cmocka_unit_test(test_free_without_work_waits_for_no_gpu_and_synchronises_nothing),
		cmocka_unit_test(test_time_on_a_cpu_in_a_free_is_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
