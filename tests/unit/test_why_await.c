// SPDX-License-Identifier: Apache-2.0
/* Waits in calls that wait for a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
	span(&capture, 1020, 11, CALL_FORWARD, 2);
	launches(&capture, 1030, 11, GEMM, STREAM);
	ends(&capture, 1040, 11, CALL_FORWARD, 2);
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
	hit(&capture, 1035, 11, CALL_SYNC, 0x50, WORDS(STREAM));
	returns(&capture, 1036, 11, CALL_SYNC, 0x50);
	launches(&capture, 1040, 11, SOFTMAX, STREAM);
	sync_begins(&capture, 1050);
	blocks(&capture, 1051, 1850);
	sync_ends(&capture, 1851);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 801, 11, "certain", "kernel softmax on stream 0x7f01");
	done(&capture, why);
}

static void test_what_was_put_into_a_graph_is_not_what_is_waited_for(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	span(&capture, 1020, 11, CALL_FORWARD, 2);
	launches(&capture, 1030, 11, GEMM, STREAM);
	ends(&capture, 1040, 11, CALL_FORWARD, 2);
	hit(&capture, 1041, 11, CALL_CAPTURE_BEGIN, 0x60, WORDS(STREAM));
	returns_result(&capture, 1042, 11, CALL_CAPTURE_BEGIN, 0x60, 0);
	launches(&capture, 1043, 11, SOFTMAX, STREAM);
	hit(&capture, 1044, 11, CALL_CAPTURE_END, 0x61, WORDS(STREAM));
	returns_result(&capture, 1045, 11, CALL_CAPTURE_END, 0x61, 0);
	sync_begins(&capture, 1050);
	blocks(&capture, 1060, 1860);
	sync_ends(&capture, 1865);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 815, 11, "certain", "kernel gemm<float> on stream 0x7f01");
	check_culprit_span(why, 0, "forward");
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
	hit(&capture, 1050, 11, CALL_SYNC_EVENT, SYNC_ID, WORDS(0xe1));
	blocks(&capture, 1051, 1850);
	returns(&capture, 1851, 11, CALL_SYNC_EVENT, SYNC_ID);
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
		hit(&capture, 1050, 11, CALL_COPY, SYNC_ID, WORDS(rows[i].bytes, HTOD));
		blocks(&capture, 1051, 1850);
		returns(&capture, 1851, 11, CALL_COPY, SYNC_ID);
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
	hit(&capture, 1050, 11, CALL_COPY, SYNC_ID, WORDS(77, HTOD));
	returns_result(&capture, 1851, 11, CALL_COPY, SYNC_ID, 35);
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
	hit(&capture, 1040, 11, CALL_COPY_ASYNC, 0x40, WORDS(4, HTOD, STREAM));
	returns(&capture, 1041, 11, CALL_COPY_ASYNC, 0x40);
	sync_begins(&capture, 1050);
	blocks(&capture, 1051, 1850);
	sync_ends(&capture, 1851);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "gpu", 801, 11, "likely", "kernel gemm<float> on stream 0x7f01");
	done(&capture, why);
}

/* Into pageable memory, such a call returns only when the copy is done. */
static void test_a_small_copy_from_the_device_that_takes_long_waits_for_the_kernel(void **state)
{
	static const struct {
		uint64_t length_ns, bytes;
		uint32_t site;
		bool kernel, to_host, waits;
	} rows[] = {
		{500000, 512, CALL_COPY_ASYNC, true, true, true},
		{500000, 512, CALL_COPY_DRIVER, true, true, true},
		/* a call that may have returned at once */
		{50000, 512, CALL_COPY_ASYNC, true, true, false},
		/* a copy that may take so long itself */
		{500000, 1 << 20, CALL_COPY_ASYNC, true, true, false},
		{500000, 512, CALL_COPY_ASYNC, true, false, false},
		{500000, 512, CALL_COPY_ASYNC, false, true, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t end_ts = 1050 + rows[i].length_ns;
		struct capture capture;
		struct why *why;

		begin(&capture);
		if (rows[i].kernel)
			launches(&capture, 1030, 11, GEMM, STREAM);
		if (rows[i].site == CALL_COPY_DRIVER)
			hit(&capture, 1050, 11, CALL_COPY_DRIVER, SYNC_ID, WORDS(512, STREAM));
		else if (rows[i].to_host)
			hit(&capture, 1050, 11, CALL_COPY_ASYNC, SYNC_ID,
			    WORDS(rows[i].bytes, DTOH, STREAM));
		else
			hit(&capture, 1050, 11, CALL_COPY_ASYNC, SYNC_ID,
			    WORDS(rows[i].bytes, HTOD, STREAM));
		returns(&capture, end_ts, 11, rows[i].site, SYNC_ID);
		capture_end(&capture, end_ts + 10, 11, 1);
		why = ask_span(&capture, end_ts + 20);
		if (rows[i].waits)
			check_part(why, 0, "gpu", rows[i].length_ns, 11, "likely",
				   "kernel gemm<float> on stream 0x7f01");
		else
			check_part(why, 0, "running", rows[i].length_ns, 11, "certain", "");
		done(&capture, why);
	}
}

/* What ends the wait of a thread that is blocked there may be another thread with a lock. */
static void test_blocked_time_in_a_copy_that_may_wait_is_that_of_the_waker(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches(&capture, 1030, 11, GEMM, STREAM);
	hit(&capture, 1050, 11, CALL_COPY_ASYNC, SYNC_ID, WORDS(512, DTOH, STREAM));
	blocks(&capture, 1060, 401060);
	returns(&capture, 501050, 11, CALL_COPY_ASYNC, SYNC_ID);
	capture_end(&capture, 501060, 11, 1);
	why = ask_span(&capture, 501070);
	assert_int_equal(why->model->threads.data[part_of(why, 0)->thread].tid, 15);
	check_part(why, 1, "gpu", 10 + 99990, 11, "likely", "kernel gemm<float> on stream 0x7f01");
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
	wait_details(&capture, 1160, 1460, 11, 0, 0, 0x5000);
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

/* ---- functions of the program that a stream calls ---- */

#define HOST_TEXT "host function softmax on stream 0x7f01"

/* A host thread runs it, not the GPU. */
static void test_host_function_that_nobody_is_seen_to_run_is_likely_and_no_gpu(void **state)
{
	(void)state;
	for (unsigned blocked = 0; blocked < 2; blocked++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		launches_host(&capture, 1040, 11, SOFTMAX, STREAM);
		sync_begins(&capture, 1050);
		if (blocked) {
			waits(&capture, 1050, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
			gets(&capture, 1850, 1, 0, 11, 0, 1850, WAFFLE_SWITCH_WAKER_HARDIRQ);
		}
		sync_ends(&capture, 1850);
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		check_part(why, 0, "user-work", 800, 0, "likely", HOST_TEXT);
		done(&capture, why);
	}
}

static void test_host_function_is_what_the_thread_did_that_ended_the_wait(void **state)
{
	struct capture capture;
	struct why *why;
	const struct why_step *step;

	(void)state;
	begin(&capture);
	gets(&capture, 1004, 2, 0, 15, 0, 0, 0);
	launches_host(&capture, 1040, 11, SOFTMAX, STREAM);
	syncs(&capture, 1050, 1850, STREAM);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "user-work", 800, 15, "likely", HOST_TEXT);
	step = &why->steps.data[part_of(why, 0)->step];
	assert_string_equal(strtab_get(why->texts, step->meaning), "waits for " HOST_TEXT);
	done(&capture, why);
}

/* Nothing shows which of them took so long. */
static void test_host_function_and_kernel_of_a_stream_are_both_named_and_unknown(void **state)
{
	static const struct {
		bool host_last;
		const char *text;
	} rows[] = {
		{false, "kernel gemm<float> on stream 0x7f01, or " HOST_TEXT},
		{true, HOST_TEXT ", or kernel gemm<float> on stream 0x7f01"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin(&capture);
		launches_host(&capture, rows[i].host_last ? 1040 : 1020, 11, SOFTMAX, STREAM);
		launches(&capture, 1030, 11, GEMM, STREAM);
		syncs(&capture, 1050, 1850, STREAM);
		capture_end(&capture, 1900, 11, 1);
		why = ask_span(&capture, 2000);
		check_part(why, 0, "gpu", 800, 11, "unknown", rows[i].text);
		done(&capture, why);
	}
}

/* Thread 16 of the process runs from 1100 to 1700, as `samples` of it show in the function. */
static void samples_add(struct capture *capture, const char *function, unsigned samples,
			unsigned others)
{
	struct store_name name = {.pid = 10, .value = STORE_NAMED | 1, .name = function};
	struct store_stack stack = {.addresses = &name.value, .count = 1, .pid = 10};
	struct error err = ERROR_INIT;

	named(capture, 16, 10, "callbacks");
	capture_must(store_writer_add_name(capture->writer, &name, &err), err);
	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
	name = (struct store_name){
		.pid = 10, .value = STORE_NAMED | 2, .name = "other (/srv/app.py:9)"};
	stack.addresses = &name.value;
	capture_must(store_writer_add_name(capture->writer, &name, &err), err);
	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
	gets(capture, 1100, 2, 0, 16, 0, 1099, 0);
	for (unsigned i = 0; i < samples + others; i++)
		capture_add(capture,
			    &(struct waffle_rec_sample){.rec = {1110 + i, 16, WAFFLE_REC_SAMPLE, 2},
							.user_stack = i < samples ? 1 : 2,
							.syscall = -1,
							.period_ns = 1});
	waits(capture, 1700, 2, 16, 0, S, NR_FUTEX, 0x7f80, FUTEX_COND, 0);
}

/* Thread 11 waits for its stream, on which a kernel is behind a host function. The samples of
 * thread 16 are in `sampled`, but for `others`. The caller closes *names. */
static struct why *ask_host(struct capture *capture, struct stack_names **names, uint64_t function,
			    const char *sampled, unsigned samples, unsigned others)
{
	struct error err = ERROR_INIT;
	struct why *why;

	launches_host(capture, 1040, 11, function, STREAM);
	launches(capture, 1041, 11, GEMM, STREAM);
	sync_begins(capture, 1050);
	waits(capture, 1050, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	samples_add(capture, sampled, samples, others);
	gets(capture, 1850, 1, 0, 11, 15, 1850, 0);
	sync_ends(capture, 1850);
	capture_end(capture, 1900, 11, 1);
	capture_load(capture, 2000);
	*names = stack_names_open(capture->reader, false);
	capture_must(why_new(&why, capture->model,
			     &(struct why_query){.name = "step", .names = *names}, &err),
		     err);
	check_why(why);
	return why;
}

/* Only while the thread runs; else it may be the kernel. */
static void test_host_function_that_samples_show_a_thread_to_run_is_that_thread(void **state)
{
	static const struct {
		unsigned samples, others;
		bool shown;
	} rows[] = {{10, 1, true}, {2, 0, false}, {5, 5, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct stack_names *names;
		const struct why_step *step;
		struct why *why;

		begin(&capture);
		why = ask_host(&capture, &names, SOFTMAX, "softmax (/srv/app.py:7)",
			       rows[i].samples, rows[i].others);
		if (rows[i].shown) {
			check_part(why, 0, "user-work", 600, 16, "likely", HOST_TEXT);
			step = &why->steps.data[part_of(why, 0)->step];
			assert_true(step->gpu && step->host && !step->last_rank);
			assert_string_equal(strtab_get(why->texts, step->meaning),
					    "waits for " HOST_TEXT);
		}
		check_part(why, rows[i].shown ? 1 : 0, "gpu", rows[i].shown ? 200 : 800, 11,
			   "unknown", "kernel gemm<float> on stream 0x7f01, or " HOST_TEXT);
		why_free(why);
		stack_names_close(names);
		capture_free(&capture);
	}
}

#define LAMBDA 0x403000
#define LAMBDA_NAME(number) "main::{lambda(void*)#" number "}::_FUN"

static void test_host_functions_that_are_lambdas_of_one_function_are_told_apart(void **state)
{
	static const struct {
		const char *sampled;
		bool shown;
	} rows[] = {{LAMBDA_NAME("1") "(void*) (/srv/app.cc:7)", true},
		    {LAMBDA_NAME("2") "(void*) (/srv/app.cc:9)", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct store_name name = {LAMBDA, 10, LAMBDA_NAME("1") "(void*)", 0};
		struct capture capture;
		struct stack_names *names;
		struct error err = ERROR_INIT;
		struct why *why;

		begin(&capture);
		capture_must(store_writer_add_name(capture.writer, &name, &err), err);
		why = ask_host(&capture, &names, LAMBDA, rows[i].sampled, 10, 0);
		if (rows[i].shown)
			check_part(why, 0, "user-work", 600, 16, "likely",
				   "host function " LAMBDA_NAME("1") " on stream 0x7f01");
		else
			check_part(why, 0, "gpu", 800, 11, "unknown",
				   "kernel gemm<float> on stream 0x7f01, or host "
				   "function " LAMBDA_NAME("1") " on stream 0x7f01");
		why_free(why);
		stack_names_close(names);
		capture_free(&capture);
	}
}

static void test_host_functions_of_two_streams_are_unknown_and_no_gpu(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches_host(&capture, 1020, 11, GEMM, STREAM);
	launches_host(&capture, 1030, 11, SOFTMAX, COMM_STREAM);
	hit(&capture, 1050, 11, CALL_SYNC_DEVICE, SYNC_ID, 0, NULL);
	blocks(&capture, 1050, 1850);
	returns(&capture, 1850, 11, CALL_SYNC_DEVICE, SYNC_ID);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "user-work", 800, 0, "unknown",
		   "host function softmax on stream 0x7f02, or host function gemm<float> on stream "
		   "0x7f01");
	done(&capture, why);
}

/* It takes no half of 800 ns. */
static void test_small_copy_behind_a_host_function_is_not_what_took_so_long(void **state)
{
	struct capture capture;
	struct why *why;

	(void)state;
	begin(&capture);
	launches_host(&capture, 1020, 11, SOFTMAX, STREAM);
	hit(&capture, 1030, 11, CALL_COPY_ASYNC, 0x77, WORDS(64, HTOD, STREAM));
	returns(&capture, 1031, 11, CALL_COPY_ASYNC, 0x77);
	sync_begins(&capture, 1050);
	sync_ends(&capture, 1850);
	capture_end(&capture, 1900, 11, 1);
	why = ask_span(&capture, 2000);
	check_part(why, 0, "user-work", 800, 0, "likely", HOST_TEXT);
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
		cmocka_unit_test(test_what_was_put_into_a_graph_is_not_what_is_waited_for),
		cmocka_unit_test(test_a_stream_of_which_nothing_is_known_is_named_alone),
		cmocka_unit_test(test_an_event_stands_for_what_was_put_before_it),
		cmocka_unit_test(
			test_a_synchronous_copy_waits_for_itself_or_for_the_kernel_before_it),
		cmocka_unit_test(test_a_call_that_failed_waits_for_no_gpu),
		cmocka_unit_test(test_a_small_copy_behind_a_kernel_waits_for_the_kernel),
		cmocka_unit_test(
			test_a_small_copy_from_the_device_that_takes_long_waits_for_the_kernel),
		cmocka_unit_test(test_blocked_time_in_a_copy_that_may_wait_is_that_of_the_waker),
		cmocka_unit_test(test_only_waits_of_the_call_are_the_gpus),
		cmocka_unit_test(
			test_host_function_that_nobody_is_seen_to_run_is_likely_and_no_gpu),
		cmocka_unit_test(test_host_function_is_what_the_thread_did_that_ended_the_wait),
		cmocka_unit_test(
			test_host_function_and_kernel_of_a_stream_are_both_named_and_unknown),
		cmocka_unit_test(
			test_host_function_that_samples_show_a_thread_to_run_is_that_thread),
		cmocka_unit_test(
			test_host_functions_that_are_lambdas_of_one_function_are_told_apart),
		cmocka_unit_test(test_host_functions_of_two_streams_are_unknown_and_no_gpu),
		cmocka_unit_test(test_small_copy_behind_a_host_function_is_not_what_took_so_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
