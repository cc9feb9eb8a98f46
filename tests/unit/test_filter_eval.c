// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "filter_subject.h"

static const struct site_info copy_site = {
	.name = "ncclAllReduce",
	.category = "nccl",
	.file = "src/ring/copy.cc",
	.func = "ring_copy",
	.object = "/usr/lib/libnccl.so.2",
	.line = 120,
	.kind = WAFFLE_SITE_SPAN,
	.key_count = 9,
	.keys = {{WAFFLE_KEY_I64, "delta"},
		 {WAFFLE_KEY_U64, "bytes"},
		 {WAFFLE_KEY_F64, "loss"},
		 {WAFFLE_KEY_BOOL, "last"},
		 {WAFFLE_KEY_PTR, "buffer"},
		 {WAFFLE_KEY_STR, "op"},
		 {WAFFLE_KEY_CAUSE_SPAN, "after"},
		 {WAFFLE_KEY_CAUSE_EVENT, "because"},
		 {WAFFLE_KEY_STR, "peer"}},
};

static const struct site_info event_site = {.name = "retry",
					    .category = "",
					    .file = "a.c",
					    .func = "",
					    .object = "app",
					    .line = 7,
					    .kind = WAFFLE_SITE_EVENT};

/* A span on thread 12 of process 10, on CPU 3, inside of two others. */
struct sample {
	struct sample_frame frame;
	struct filter_subject subject;
};

static void sample_make(struct sample *sample)
{
	*sample = (struct sample){.frame.head = {77, 76, 0x1111, 0x2222}};
	frame_word(&sample->frame, (uint64_t)-5);
	frame_word(&sample->frame, UINT64_MAX);
	frame_float(&sample->frame, 0.25);
	frame_word(&sample->frame, 1);
	frame_word(&sample->frame, 0xffff800000000000ull);
	frame_text(&sample->frame, "sum", 0);
	frame_word(&sample->frame, 41);
	frame_word(&sample->frame, 0);
	frame_text(&sample->frame, "node-1", 0);
	sample->subject = (struct filter_subject){
		.site = &copy_site,
		.frame = &sample->frame,
		.frame_bytes = frame_size(&sample->frame),
		.pid = 10,
		.tid = 12,
		.cpu = 3,
		.comm = "worker",
		.ended = true,
		.dur_ns = 12000000,
		.depth = 2,
		.parent_name = "step",
	};
}

static void test_what_a_site_knows_is_compared(void **state)
{
	struct sample sample;
	const struct filter_subject *s = &sample.subject;

	(void)state;
	sample_make(&sample);
	assert_yes(s, "kind == span");
	assert_no(s, "kind == event");
	assert_no(s, "kind != span");
	assert_yes(s, "kind in {event, span}");
	assert_no(s, "kind in {event, counter, log, sched, cuda, nccl}");
	assert_yes(s, "name == \"ncclAllReduce\"");
	assert_no(s, "name == \"ncclAllReduc\"");
	assert_no(s, "name == \"ncclAllReduces\"");
	assert_yes(s, "name != \"x\"");
	assert_yes(s, "name ~ \"nccl*\"");
	assert_no(s, "name ~ \"nccl\"");
	assert_no(s, "name !~ \"nccl*\"");
	assert_yes(s, "name !~ \"cuda*\"");
	assert_yes(s, "name in {\"a\", \"ncclAllReduce\"}");
	assert_no(s, "name in {\"a\", \"b\"}");
	assert_yes(s, "category == \"nccl\"");
	assert_yes(s, "func ~ \"ring_?opy\"");
	assert_yes(s, "line == 120 && line >= 120 && line <= 120 && line > 119 && line < 121");
	assert_no(s, "line != 120 || line < 120 || line > 120");
	assert_yes(s, "line in {1, 120}");
}

static void test_a_path_is_compared_by_its_last_part_unless_with_a_path(void **state)
{
	struct sample sample;
	const struct filter_subject *s = &sample.subject;

	(void)state;
	sample_make(&sample);
	assert_yes(s, "file == \"copy.cc\"");
	assert_yes(s, "file == \"src/ring/copy.cc\"");
	assert_no(s, "file == \"ring/copy.cc\"");
	assert_yes(s, "file ~ \"*/copy.cc\"");
	assert_yes(s, "file ~ \"copy*\"");
	assert_no(s, "file ~ \"src*\"");
	assert_yes(s, "file ~ \"src/*\"");
	assert_yes(s, "lib ~ \"libnccl.so*\"");
	assert_no(s, "lib ~ \"*nccl.so\"");
	assert_yes(s, "lib ~ \"/usr/lib/*\"");
	assert_yes(s, "lib in {\"x/y\", \"libnccl.so.2\"}");
	assert_no(s, "lib !~ \"lib*\"");
	sample.subject.site = &event_site;
	assert_yes(s, "file == \"a.c\" && lib == \"app\"");
}

static void test_what_a_hit_knows_is_compared(void **state)
{
	struct sample sample;
	const struct filter_subject *s = &sample.subject;

	(void)state;
	sample_make(&sample);
	assert_yes(s, "pid == 10 && tid == 12 && cpu == 3");
	assert_no(s, "pid == 12");
	assert_yes(s, "cpu in {0, 3}");
	assert_no(s, "cpu in {0, 1}");
	assert_yes(s, "tid != 10");
	assert_yes(s, "comm == \"worker\"");
	assert_yes(s, "comm ~ \"w*r\"");
	assert_yes(s, "depth == 2 && depth > 1 && depth <= 2");
	assert_yes(s, "parent.name == \"step\"");
	assert_no(s, "parent.name ~ \"load*\"");
	assert_yes(s, "dur > 10ms && dur < 13ms && dur == 12ms && dur == 12000000");
	assert_no(s, "dur > 12ms");
	assert_yes(s, "dur >= 11.9ms");
}

static void test_only_fifteen_bytes_of_a_thread_name_count(void **state)
{
	struct sample sample;

	(void)state;
	sample_make(&sample);
	sample.subject.comm = "fifteen-letters-and-more";
	assert_yes(&sample.subject, "comm == \"fifteen-letters\"");
	assert_no(&sample.subject, "comm ~ \"*more\"");
}

static void test_every_type_of_key_is_compared_by_its_value(void **state)
{
	struct sample sample;
	const struct filter_subject *s = &sample.subject;

	(void)state;
	sample_make(&sample);
	assert_yes(s, "kv.delta == -5 && kv.delta < 0 && kv.delta > -6 && kv.delta != 5");
	assert_no(s, "kv.delta >= -4");
	assert_yes(s, "kv.delta in {1, -5}");
	assert_yes(s, "kv.bytes == 18446744073709551615 && kv.bytes > 1GiB && kv.bytes > -1");
	assert_no(s, "kv.bytes == -1");
	assert_yes(s, "kv.loss == 0.25 && kv.loss > 0 && kv.loss < 1 && kv.loss <= 0.25");
	assert_no(s, "kv.loss > 0.25");
	assert_yes(s, "kv.last == true && kv.last != false && kv.last == 1");
	assert_no(s, "kv.last == false");
	assert_yes(s, "kv.buffer > 0");
	assert_yes(s, "kv.buffer == 18446603336221196288");
	assert_yes(s, "kv.op == \"sum\" && kv.op ~ \"s*\" && kv.op in {\"max\", \"sum\"}");
	assert_yes(s, "kv.op != \"su\" && kv.op !~ \"x*\"");
	assert_yes(s, "kv.after == 41 && kv.because == 0");
	assert_yes(s, "kv.peer == \"node-1\"");
}

static void test_what_is_not_there_makes_every_comparison_false(void **state)
{
	struct sample sample;
	const struct filter_subject *s = &sample.subject;

	(void)state;
	sample_make(&sample);
	assert_no(s, "kv.missing == 1");
	assert_no(s, "kv.missing != 1");
	assert_no(s, "kv.missing != \"a\"");
	assert_no(s, "kv.missing !~ \"a\"");
	assert_no(s, "kv.missing in {1, \"a\"}");
	assert_yes(s, "!(kv.missing == 1)");
	/* A text and a number. */
	assert_no(s, "kv.op == 3");
	assert_no(s, "kv.op != 3");
	assert_no(s, "kv.bytes == \"1\"");
	assert_no(s, "kv.bytes != \"1\"");
	assert_no(s, "kv.bytes ~ \"*\"");
	assert_no(s, "kv.bytes !~ \"*\"");
	assert_yes(s, "!(kv.bytes ~ \"*\")");
	sample.subject.comm = NULL;
	sample.subject.parent_name = NULL;
	sample.subject.depth = -1;
	assert_no(s, "comm != \"x\"");
	assert_no(s, "parent.name != \"x\" || parent.name !~ \"x\"");
	assert_no(s, "depth >= 0 || depth < 0 || depth != 1");
	sample.subject.depth = 0;
	assert_yes(s, "depth == 0");
	sample.subject.site = &event_site;
	sample.subject.ended = false;
	assert_no(s, "dur >= 0 || dur != 1");
	assert_yes(s, "category == \"\" && func == \"\" && category !~ \"?*\"");
}

static void test_values_behind_the_end_of_a_frame_are_not_there(void **state)
{
	struct sample sample;
	const struct filter_subject *s = &sample.subject;

	(void)state;
	sample_make(&sample);
	sample.subject.frame_bytes = sizeof(struct waffle_frame) + 8;
	assert_yes(s, "kv.delta == -5");
	assert_no(s, "kv.bytes >= 0");
	sample.subject.frame_bytes = sizeof(struct waffle_frame) - 1;
	assert_no(s, "kv.delta == -5");
	sample.subject.frame = NULL;
	sample.subject.frame_bytes = 0;
	assert_no(s, "kv.delta == -5");
	assert_yes(s, "name ~ \"nccl*\"");
}

static void test_a_null_text_is_not_there_and_a_cut_one_equals_nothing(void **state)
{
	struct sample sample;
	const struct filter_subject *s = &sample.subject;

	(void)state;
	sample_make(&sample);
	sample.frame.count = 5;
	frame_text(&sample.frame, "", WAFFLE_STR_NULL);
	assert_no(s, "kv.op == \"\"");
	assert_no(s, "kv.op != \"sum\"");
	assert_no(s, "kv.op ~ \"*\"");
	sample.frame.count = 5;
	frame_text(&sample.frame, "sum", WAFFLE_STR_CUT);
	assert_no(s, "kv.op == \"sum\"");
	assert_no(s, "kv.op in {\"sum\"}");
	assert_yes(s, "kv.op != \"sum\"");
	assert_yes(s, "kv.op ~ \"sum\"");
	assert_no(s, "kv.op !~ \"s*\"");
	sample.frame.count = 5;
	frame_text(&sample.frame, "", 0);
	assert_yes(s, "kv.op == \"\"");
}

static void test_a_duration_that_is_not_known_yet_is_neither_true_nor_false(void **state)
{
	struct sample sample;
	const struct filter_subject *s = &sample.subject;

	(void)state;
	sample_make(&sample);
	sample.subject.ended = false;
	assert_unknown(s, "dur > 1ms");
	assert_unknown(s, "!(dur > 1ms)");
	assert_unknown(s, "dur in {1, 2}");
	assert_no(s, "dur > 1ms && name == \"x\"");
	assert_no(s, "name == \"x\" && dur > 1ms");
	assert_unknown(s, "dur > 1ms && name ~ \"*\"");
	assert_unknown(s, "name ~ \"*\" && dur > 1ms");
	assert_yes(s, "dur > 1ms || name ~ \"*\"");
	assert_yes(s, "name ~ \"*\" || dur > 1ms");
	assert_unknown(s, "dur > 1ms || name == \"x\"");
	assert_unknown(s, "name == \"x\" || dur > 1ms");
	assert_unknown(s, "dur > 1ms && dur < 2ms");
	assert_unknown(s, "dur > 1ms || dur < 2ms");
	assert_no(s, "!(dur > 1ms || name ~ \"*\")");
	sample.subject.ended = true;
	assert_yes(s, "dur > 1ms");
	assert_no(s, "!(dur > 1ms)");
}

static void test_and_or_not_and_constants(void **state)
{
	struct sample sample;
	const struct filter_subject *s = &sample.subject;

	(void)state;
	sample_make(&sample);
	assert_yes(s, "cpu == 3 || cpu == 4 && cpu == 5");
	assert_no(s, "(cpu == 3 || cpu == 4) && cpu == 5");
	assert_yes(s, "!!(cpu == 3)");
	assert_yes(s, "!(cpu == 4) && !(cpu == 5)");
	assert_no(s, "!(comm == \"worker\" || cpu in {0, 1})");
}

static void test_a_sample_keeps_its_share_and_decides_by_the_trace(void **state)
{
	struct sample sample;
	unsigned kept = 0, kept_more = 0;

	(void)state;
	for (uint64_t i = 1; i <= 100000; i++) {
		bool tenth = filter_sample(1, 10, i * 0x9e3779b97f4a7c15ull, i, 0);

		kept += tenth;
		kept_more += filter_sample(3, 10, i * 0x9e3779b97f4a7c15ull, i, 5);
		/* The larger sample contains the smaller one. */
		if (tenth)
			assert_true(filter_sample(3, 10, i * 0x9e3779b97f4a7c15ull, i, i));
	}
	assert_in_range(kept, 9700, 10300);
	assert_in_range(kept_more, 29500, 30500);
	sample_make(&sample);
	for (uint64_t id = 1; id < 100; id++) {
		sample.frame.head.id = id;
		assert_int_equal(ask(&sample.subject, "sample(1/3)"),
				 filter_sample(1, 3, 0x1111, 0x2222, 0));
	}
	assert_yes(&sample.subject, "sample(1/1)");
}

static void test_outside_of_traces_an_event_decides_for_itself_and_a_counter_passes(void **state)
{
	unsigned kept = 0;

	(void)state;
	for (uint64_t id = 1; id <= 10000; id++)
		kept += filter_sample(1, 4, 0, 0, id);
	assert_in_range(kept, 2300, 2700);
	assert_true(filter_sample(1, 1000000, 0, 0, 0));
	/* The finalizer of MurmurHash3, whose values are known. */
	assert_true(filter_sample(0xb456bcfd, 0xffffffff, 0, 0, 1));
	assert_false(filter_sample(0xb456bcfc, 0xffffffff, 0, 0, 1));
}

static void test_a_rate_keeps_the_first_of_each_window(void **state)
{
	const struct filter_rate rate = {.count = 2, .unit_ns = 1000};
	struct filter_rate_state rates = {0};

	(void)state;
	assert_true(filter_rate_take(&rate, &rates, 0));
	assert_true(filter_rate_take(&rate, &rates, 999));
	assert_false(filter_rate_take(&rate, &rates, 999));
	assert_true(filter_rate_take(&rate, &rates, 1000));
	assert_true(filter_rate_take(&rate, &rates, 1000));
	assert_false(filter_rate_take(&rate, &rates, 1999));
	assert_true(filter_rate_take(&rate, &rates, 5500));
	assert_true(filter_rate_take(&rate, &rates, 5600));
	assert_false(filter_rate_take(&rate, &rates, 5999));
	assert_true(filter_rate_take(&rate, &rates, 6000));
}

static void test_of_keys_of_one_name_the_first_counts(void **state)
{
	struct site_info site = counter_site;
	struct sample_frame frame = {0};
	struct filter_subject subject;

	(void)state;
	site.kind = WAFFLE_SITE_EVENT;
	site.key_count = 2;
	site.keys[0] = (struct site_key){WAFFLE_KEY_U64, "a"};
	site.keys[1] = (struct site_key){WAFFLE_KEY_U64, "a"};
	frame_word(&frame, 1);
	frame_word(&frame, 2);
	subject = counter_subject(&frame);
	subject.site = &site;
	assert_yes(&subject, "kv.a == 1");
	assert_no(&subject, "kv.a == 2");
}

static void test_each_kind_of_site_has_its_word(void **state)
{
	static const char *const expected[] = {
		[WAFFLE_SITE_SPAN] = "kind == span",       [WAFFLE_SITE_EVENT] = "kind == event",
		[WAFFLE_SITE_COUNTER] = "kind == counter", [WAFFLE_SITE_LOG_INFO] = "kind == log",
		[WAFFLE_SITE_LOG_WARN] = "kind == log",    [WAFFLE_SITE_LOG_ERROR] = "kind == log",
	};
	struct site_info site = event_site;
	const struct filter_subject subject = {.site = &site};

	(void)state;
	for (unsigned kind = 1; kind < WAFFLE_SITE_KIND_COUNT; kind++) {
		if (!expected[kind])
			continue;
		site.kind = (uint16_t)kind;
		for (unsigned other = 1; other < WAFFLE_SITE_KIND_COUNT; other++)
			if (expected[other])
				assert_int_equal(ask(&subject, expected[other]),
						 strcmp(expected[kind], expected[other]) == 0
							 ? FILTER_YES
							 : FILTER_NO);
	}
	/* A kind that does not exist. */
	site.kind = 0;
	assert_no(&subject, "kind != span");
}

static void test_a_call_is_of_its_category_and_a_span_or_event_as_well(void **state)
{
	struct site_info site = copy_site;
	const struct filter_subject subject = {.site = &site};

	(void)state;
	assert_no(&subject, "kind == nccl"); /* a macro's: the category is the program's */
	site.call = true;
	assert_yes(&subject, "kind == nccl");
	assert_yes(&subject, "kind == span");
	assert_yes(&subject, "kind in {event, nccl}");
	assert_no(&subject, "kind != nccl");
	assert_no(&subject, "kind != span");
	assert_yes(&subject, "kind != cuda");
	site.category = "cuda";
	assert_yes(&subject, "kind == cuda");
	assert_no(&subject, "kind == nccl");
	site.category = "mine";
	assert_no(&subject, "kind in {cuda, nccl}");
}

static void test_code_is_a_number_and_then_a_text_and_dimensions_are_neither(void **state)
{
	struct site_info site = {.name = "launch",
				 .category = "cuda",
				 .file = "",
				 .func = "",
				 .object = "",
				 .kind = WAFFLE_SITE_EVENT,
				 .call = true,
				 .key_count = 3,
				 .keys = {{WAFFLE_KEY_CODE, "kernel"},
					  {WAFFLE_KEY_DIM3, "grid"},
					  {WAFFLE_KEY_U64, "stream"}}};
	uint64_t words[] = {0, 0, 0, 0, 0x9000, 2 | 3ull << 32, 4, 7};
	const struct filter_subject subject = {
		.site = &site, .frame = words, .frame_bytes = sizeof(words)};

	(void)state;
	assert_yes(&subject, "kv.kernel == 0x9000");
	assert_no(&subject, "kv.kernel ~ \"*\"");
	assert_yes(&subject, "kv.stream == 7");
	assert_no(&subject, "kv.grid == 2");
	assert_no(&subject, "kv.grid != 2");
	assert_no(&subject, "kv.grid == \"[2,3,4]\"");
	site.keys[0].type = SITE_KEY_TEXT;
	words[4] = (uintptr_t) "gemm(float*)";
	assert_yes(&subject, "kv.kernel == \"gemm(float*)\"");
	assert_yes(&subject, "kv.kernel ~ \"gemm*\"");
	assert_no(&subject, "kv.kernel == 1");
	assert_yes(&subject, "kv.stream == 7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_site_knows_is_compared),
		cmocka_unit_test(test_a_path_is_compared_by_its_last_part_unless_with_a_path),
		cmocka_unit_test(test_what_a_hit_knows_is_compared),
		cmocka_unit_test(test_only_fifteen_bytes_of_a_thread_name_count),
		cmocka_unit_test(test_every_type_of_key_is_compared_by_its_value),
		cmocka_unit_test(test_what_is_not_there_makes_every_comparison_false),
		cmocka_unit_test(test_values_behind_the_end_of_a_frame_are_not_there),
		cmocka_unit_test(test_a_null_text_is_not_there_and_a_cut_one_equals_nothing),
		cmocka_unit_test(test_a_duration_that_is_not_known_yet_is_neither_true_nor_false),
		cmocka_unit_test(test_and_or_not_and_constants),
		cmocka_unit_test(test_a_sample_keeps_its_share_and_decides_by_the_trace),
		cmocka_unit_test(
			test_outside_of_traces_an_event_decides_for_itself_and_a_counter_passes),
		cmocka_unit_test(test_a_rate_keeps_the_first_of_each_window),
		cmocka_unit_test(test_of_keys_of_one_name_the_first_counts),
		cmocka_unit_test(test_each_kind_of_site_has_its_word),
		cmocka_unit_test(test_a_call_is_of_its_category_and_a_span_or_event_as_well),
		cmocka_unit_test(test_code_is_a_number_and_then_a_text_and_dimensions_are_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
