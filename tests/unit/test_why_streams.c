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

		begin(&capture);
		gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
		inits(&capture, 11, 2);
		inits(&capture, 21, 2);
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
			check_part(why, 1, "gpu", 150, 11, "likely",
				   "kernel gemm<float> on the default stream");
		}
		done(&capture, why);
	}
}

static void test_kernel_behind_a_collective_of_busy_gpus_is_not_blamed_alone(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	inits(&capture, 11, 2);
	inits(&capture, 21, 2);
	makes_stream(&capture, 11, COMM_STREAM, 0);
	reduces(&capture, 1030, 11, 1, 2);
	launches(&capture, 1040, 11, GEMM, 0);
	launches(&capture, 1690, 21, SOFTMAX, COMM_STREAM);
	reduces(&capture, 1700, 21, 1, 2);
	syncs(&capture, 1050, 1850, 0);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "collective", 650, 21, "certain", "rank 1 in ncclAllReduce");
	check_part(why, 1, "gpu", 150, 11, "unknown",
		   "kernel gemm<float> on the default stream, or another rank's GPU before "
		   "ncclAllReduce");
	done(&capture, why);
}

static void test_late_rank_is_found_behind_the_default_stream_of_a_blocking_one(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
	inits(&capture, 11, 2);
	inits(&capture, 21, 2);
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
	check_part(why, 1, "gpu", 150, 11, "likely", "kernel gemm<float> on stream 0x7f01");
	done(&capture, why);
}

/* More of them than are looked at: nothing is said that may be wrong. */
static void test_late_rank_is_found_on_one_of_very_many_streams_or_it_is_unknown(void **state)
{
	static const unsigned counts[] = {20, 1000, 6000};

	(void)state;
	for (size_t row = 0; row < 3; row++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		gets(&capture, 1004, 2, 0, 21, 0, 0, 0);
		inits(&capture, 11, 2);
		inits(&capture, 21, 2);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_default_streams_own_kernel_is_named_before_one_of_an_unknown_stream),
		cmocka_unit_test(
			test_default_stream_stands_for_the_blocking_stream_that_it_waits_for),
		cmocka_unit_test(test_threads_own_default_stream_is_named_so),
		cmocka_unit_test(test_late_rank_is_found_on_a_blocking_stream_of_the_default_one),
		cmocka_unit_test(test_kernel_behind_a_collective_of_busy_gpus_is_not_blamed_alone),
		cmocka_unit_test(
			test_late_rank_is_found_behind_the_default_stream_of_a_blocking_one),
		cmocka_unit_test(
			test_late_rank_is_found_on_one_of_very_many_streams_or_it_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
