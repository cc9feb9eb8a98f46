// SPDX-License-Identifier: Apache-2.0
/* Replays of captures: of random programs, whose GPU follows known rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model_capture.h"

#include "gpu_program.h"

#include "analyze/gpu/replay_compare.h"
#include "analyze/gpu/replay_report.h"

/* What a test works with. */
struct rig {
	struct capture capture;
	struct gpu_timeline *timeline;
	struct replay_build *build;
};

static void rig_open(struct rig *rig, const struct program *program)
{
	const struct model *model = program_capture(program, &rig->capture);

	assert_int_equal(model->bad_records, 0);
	rig->timeline = gpu_timeline_new(model);
	rig->build = replay_build_new(rig->timeline);
}

static void rig_close(struct rig *rig)
{
	replay_build_free(rig->build);
	gpu_timeline_free(rig->timeline);
	capture_free(&rig->capture);
}

static void program_random_run(struct program *program)
{
	do {
		program_make(program, 1 + program_random(120));
		program_go(program);
	} while (!program->makespan_ns);
}

/* Copies that happen not to overlap are taken for those of one engine, which the GPU of these
 * programs does not have. So only one stream copies. */
static void program_copies_move(struct program *program)
{
	for (unsigned i = 0; i < program->count; i++)
		if (program->actions[i].kind == PROGRAM_COPY &&
		    (program->actions[i].thread || program->actions[i].stream))
			program->actions[i].kind = PROGRAM_KERNEL;
	program_go(program);
}

static uint64_t makespan(struct rig *rig, const char *what_if, uint64_t *replayed_ns)
{
	const struct replay_part all = REPLAY_PART_ALL;
	struct replay_what_if parsed;
	struct replay_report report;
	struct error err = ERROR_INIT;
	uint64_t measured_ns;

	*replayed_ns = 0;
	capture_must(replay_what_if_parse(&parsed, what_if, &err), err);
	if (replay_report_run(&report, rig->build, &all, false, &parsed, 1, &err) == -ENOENT)
		*replayed_ns = report.result.replayed_ns;
	else if (err.message[0])
		fail_msg("%s", err.message);
	else
		*replayed_ns = report.rows.data[0].replayed_ns;
	measured_ns = report.result.measured_ns;
	replay_what_if_free(&parsed);
	replay_report_free(&report);
	return measured_ns;
}

static void test_unmodified_replay_of_a_random_program_is_what_was_measured(void **state)
{
	const struct replay_part all = REPLAY_PART_ALL;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct program program;
		struct replay_report report;
		struct error err = ERROR_INIT;
		struct rig rig;

		program_random_run(&program);
		rig_open(&rig, &program);
		capture_must(replay_report_run(&report, rig.build, &all, false, NULL, 0, &err),
			     err);
		assert_int_equal(report.violations.len, 0);
		assert_true(replay_report_deterministic(&report));
		assert_int_equal(report.result.operations_executed, rig.timeline->ops.len);
		for (uint32_t i = 0; i < rig.build->graph.nodes.len; i++)
			assert_int_equal(report.result.start_ts[i],
					 rig.build->graph.nodes.data[i].start_ts);
		assert_true(report.error == 0);
		replay_report_free(&report);
		rig_close(&rig);
	}
}

/* The makespans have the host's calls in them, which a replay measures as well. */
static void test_what_if_is_what_the_program_would_have_taken(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct program program;
		uint64_t replayed_ns, unchanged_ns;
		struct rig rig, faster;

		program_random_run(&program);
		program_copies_move(&program);
		rig_open(&rig, &program);
		makespan(&rig, "kernel ~ \"gemm_*\": 2x", &replayed_ns);
		rig_close(&rig);
		for (unsigned i = 0; i < program.count; i++)
			if (program.actions[i].kind == PROGRAM_KERNEL &&
			    program.actions[i].name < 2)
				program.actions[i].dur_ns /= 2;
		program_go(&program);
		rig_open(&faster, &program);
		assert_int_equal(makespan(&faster, "kernels: 1x", &unchanged_ns), replayed_ns);
		assert_int_equal(unchanged_ns, replayed_ns);
		rig_close(&faster);
	}
}

/* The GPU takes some time to begin, which the replay takes from the recording. */
static void test_time_that_the_gpu_takes_to_begin_is_kept(void **state)
{
	struct program program;
	uint64_t measured_ns, replayed_ns;
	struct rig rig;

	(void)state;
	program_make(&program, 100);
	program.launch_ns = 9;
	program.order_ns = 4;
	for (unsigned i = 0; i < program.count; i++) {
		struct program_action *action = &program.actions[i];

		/* One stream is always busy, and another one never. */
		*action = (struct program_action){.kind = PROGRAM_KERNEL,
						  .thread = i % 2,
						  .gap_ns = i % 2 ? 3 : 1000,
						  .dur_ns = 100};
	}
	program_go(&program);
	rig_open(&rig, &program);
	measured_ns = makespan(&rig, "kernel ~ \"gemm_a\": 1x", &replayed_ns);
	assert_int_equal(replayed_ns, measured_ns);
	rig_close(&rig);
}

/* ---- parts ---- */

static const struct program three_kernels = {
	.count = 4,
	.actions = {{.kind = PROGRAM_KERNEL, .gap_ns = 10, .dur_ns = 100},
		    {.kind = PROGRAM_KERNEL, .gap_ns = 10, .dur_ns = 100, .name = 1},
		    {.kind = PROGRAM_KERNEL, .gap_ns = 10, .dur_ns = 50, .stream = 1, .name = 2},
		    {.kind = PROGRAM_SYNC, .gap_ns = 10}},
};

static struct replay_result part_run(struct rig *rig, const struct replay_part *part)
{
	struct replay_report report;
	struct error err = ERROR_INIT;
	struct replay_result result;

	capture_must(replay_report_run(&report, rig->build, part, false, NULL, 0, &err), err);
	assert_true(report.error == 0);
	result = report.result;
	replay_report_free(&report);
	return result;
}

static void test_parts_are_chosen_by_number_stream_and_time(void **state)
{
	struct program program = three_kernels;
	struct replay_part part = REPLAY_PART_ALL;
	struct error err = ERROR_INIT;
	struct rig rig;

	(void)state;
	program_go(&program);
	rig_open(&rig, &program);
	capture_must(replay_part_range(&part, "2-", &err), err);
	assert_int_equal(part_run(&rig, &part).operations_total, 2);
	part = (struct replay_part)REPLAY_PART_ALL;
	capture_must(replay_part_stream(&part, "0:7", &err), err);
	assert_int_equal(part_run(&rig, &part).operations_total, 2);
	assert_int_equal(part_run(&rig, &part).measured_ns, 200);
	capture_must(replay_part_stream(&part, "8", &err), err);
	assert_int_equal(part_run(&rig, &part).measured_ns, 50);
	part = (struct replay_part)REPLAY_PART_ALL;
	part.from_ts = program.actions[1].start_ts;
	assert_int_equal(part_run(&rig, &part).operations_total, 1);
	rig_close(&rig);
}

static void test_a_part_without_operations_is_an_error(void **state)
{
	struct program program = three_kernels;
	struct replay_part part = REPLAY_PART_ALL;
	struct error err = ERROR_INIT;
	struct rig rig;
	bool *selected;

	(void)state;
	program_go(&program);
	rig_open(&rig, &program);
	part.first = 4;
	assert_int_equal(replay_part_select(rig.build, &part, &selected, &err), -ENOENT);
	part = (struct replay_part)REPLAY_PART_ALL;
	err = (struct error)ERROR_INIT;
	assert_int_equal(replay_part_stream(&part, "x", &err), -EINVAL);
	for (size_t i = 0; i < 5; i++) {
		static const char *const wrong[] = {"", "-", "0", "3-2", "x"};

		assert_int_equal(replay_part_range(&part, wrong[i], &err), -EINVAL);
	}
	rig_close(&rig);
}

/* ---- what-ifs ---- */

static void test_a_what_if_that_makes_no_sense_is_an_error(void **state)
{
	static const char *const wrong[] = {
		"",
		"copies",
		"copies: ",
		"copies: fast",
		"copies: 0x",
		"copies: -2x",
		"copies: infx",
		"copies: not late",
		"rank 2: 2x",
		"rank x: 2x",
		"kernel ~ \"a: 2x",
		"kv.op ==: 2x",
		"nothing: not late",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct replay_what_if what_if;
		struct error err = ERROR_INIT;

		assert_int_equal(replay_what_if_parse(&what_if, wrong[i], &err), -EINVAL);
		assert_int_not_equal(err.message[0], 0);
	}
}

static void test_a_what_if_that_matches_nothing_is_an_error(void **state)
{
	static const char *const texts[] = {"copies: 0", "kernel ~ \"x*\": 2x", "rank 1: not late",
					    "graphs: 2x"};
	struct program program = three_kernels;
	struct rig rig;

	(void)state;
	program_go(&program);
	rig_open(&rig, &program);
	for (size_t i = 0; i < 4; i++) {
		struct replay_what_if what_if;
		struct replay_answer answer;
		struct error err = ERROR_INIT;

		capture_must(replay_what_if_parse(&what_if, texts[i], &err), err);
		assert_int_equal(replay_what_if_run(rig.build, &what_if, NULL, &answer, &err),
				 -ENOENT);
		assert_null(strchr(err.message, '\n'));
		replay_what_if_free(&what_if);
	}
	rig_close(&rig);
}

static void test_what_ifs_choose_by_kind_name_value_and_launch(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		/* Launched at 11, 23 and 35, and the second waits for the first. */
		{"kernels: 1x", 200},
		{"kernel == \"gemm_b\": 0", 100},
		{"kernel ~ \"gemm_a\": 10ns", 112},
		{"name ~ \"gemm*\" && kv.stream == 7: 2x", 100},
		{"kv.op == \"kernel\": 0.5x", 400},
	};
	struct program program = three_kernels;
	struct rig rig;

	(void)state;
	program.count = 3;
	program_go(&program);
	rig_open(&rig, &program);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t replayed_ns;

		makespan(&rig, cases[i].text, &replayed_ns);
		if (replayed_ns != cases[i].ns)
			fail_msg("%s: %llu", cases[i].text, (unsigned long long)replayed_ns);
	}
	rig_close(&rig);
}

static void test_a_replay_that_is_far_off_answers_no_what_ifs(void **state)
{
	const struct replay_part all = REPLAY_PART_ALL;
	struct program program = three_kernels;
	struct replay_what_if what_if;
	struct replay_report report;
	struct error err = ERROR_INIT;
	struct rig rig;

	(void)state;
	program_go(&program);
	/* Nothing says why the second kernel began so late. */
	program.count = 3;
	program.actions[1].start_ts += 1000;
	program.actions[1].end_ts += 1000;
	rig_open(&rig, &program);
	/* It is the only sample of a kernel after another one. */
	for (size_t i = 0; i < rig.build->graph.edges.len; i++)
		rig.build->graph.edges.data[i].lag_ns = 0;
	capture_must(replay_what_if_parse(&what_if, "kernels: 2x", &err), err);
	assert_int_equal(replay_report_run(&report, rig.build, &all, false, &what_if, 1, &err),
			 -EDOM);
	assert_int_equal(report.rows.len, 0);
	assert_int_equal(report.result.operations_executed, 3);
	replay_what_if_free(&what_if);
	replay_report_free(&report);
	rig_close(&rig);
}

static void test_dry_run_lists_what_is_not_in_order(void **state)
{
	const struct replay_part all = REPLAY_PART_ALL;
	struct program program = {
		.count = 4,
		.actions = {{.kind = PROGRAM_KERNEL, .gap_ns = 10, .dur_ns = 100},
			    {.kind = PROGRAM_RECORD, .gap_ns = 10},
			    {.kind = PROGRAM_WAIT, .gap_ns = 10, .stream = 1},
			    {.kind = PROGRAM_KERNEL, .gap_ns = 10, .dur_ns = 100, .stream = 1}},
	};
	struct replay_report report;
	struct error err = ERROR_INIT;
	struct rig rig;

	(void)state;
	program_go(&program);
	program.actions[3].start_ts -= 5;
	rig_open(&rig, &program);
	capture_must(replay_report_run(&report, rig.build, &all, true, NULL, 0, &err), err);
	assert_int_equal(report.violations.len, 1);
	assert_int_equal(report.violations.data[0].early_ns, 5);
	assert_int_equal(report.result.operations_total, 2);
	assert_int_equal(report.result.operations_executed, 0);
	assert_false(replay_report_deterministic(&report));
	replay_report_free(&report);
	rig_close(&rig);
}

/* ---- collectives ---- */

/* One operation of a process, on its stream 7. */
static void op_record(struct capture *capture, uint32_t pid, uint64_t from_ts, uint64_t to_ts,
		      uint64_t correlation)
{
	uint64_t id = 40000 + 100 * pid + correlation, words[9] = {0, 0, 0, 7, correlation};
	struct waffle_rec_on_track mark = {.rec = {from_ts, pid + 1, WAFFLE_REC_ON_TRACK, 0},
					   .id = id,
					   .tgid = pid,
					   .track = 1};
	struct waffle_rec_span_end end = {.rec = {to_ts, pid + 1, WAFFLE_REC_SPAN_END, 0},
					  .span_id = id,
					  .tgid = pid,
					  .site = PROGRAM_SITE_KERNEL};

	program_text(words, "kernel");
	program_text(words + 5, "4,1,1");
	words[8] = 0;
	capture_add(capture, &mark);
	hit(capture, from_ts, pid + 1, PROGRAM_SITE_KERNEL, id, 9, words);
	capture_add(capture, &end);
}

/* An all-reduce of a rank, which launches its kernel, and then another kernel. */
static void rank_record(struct capture *capture, uint32_t pid, uint64_t ts)
{
	uint32_t tid = pid + 1;
	uint64_t id = ts << 8 | tid;

	hit(capture, ts, tid, CALL_ALL_REDUCE, id,
	    WORDS(1024, 7, COMM, tid / 10 - 1, 2, 0, COMM_STREAM));
	hit(capture, ts + 1, tid, PROGRAM_SITE_LAUNCH, 50000 + tid, WORDS(1));
	returns(capture, ts + 10, tid, CALL_ALL_REDUCE, id);
	hit(capture, ts + 20, tid, CALL_LAUNCH, id + (1ull << 40), WORDS(GEMM, 1, 1, COMM_STREAM));
	hit(capture, ts + 21, tid, PROGRAM_SITE_LAUNCH, 51000 + tid, WORDS(2));
}

/* Rank 0 comes 300 ns before rank 1. The transfer takes 100 ns, and the next kernel 50 ns. */
static void test_kernels_of_a_collective_wait_for_all_ranks(void **state)
{
	static const char *const texts[] = {"rank 1: not late", "rank 0: not late"};
	static const uint64_t expected_ns[] = {150, 150};
	struct rig rig;

	(void)state;
	gpu_begin(&rig.capture);
	program_sites(&rig.capture);
	named(&rig.capture, 11, 10, "rank0");
	named(&rig.capture, 21, 20, "rank1");
	inits(&rig.capture, 11, 2);
	inits(&rig.capture, 21, 2);
	rank_record(&rig.capture, 10, 2000);
	rank_record(&rig.capture, 20, 2300);
	op_record(&rig.capture, 10, 2001, 2401, 1);
	op_record(&rig.capture, 10, 2401, 2451, 2);
	op_record(&rig.capture, 20, 2301, 2401, 1);
	op_record(&rig.capture, 20, 2401, 2451, 2);
	rig.timeline = gpu_timeline_new(capture_load(&rig.capture, 3000));
	assert_int_equal(rig.timeline->ops.len, 4);
	rig.build = replay_build_new(rig.timeline);
	assert_int_equal(rig.build->meetings.len, 1);
	assert_int_equal(rig.build->meetings.data[0].count, 2);
	for (size_t i = 0; i < 2; i++) {
		uint64_t replayed_ns;

		/* The whole is measured from the first rank's launch. */
		assert_int_equal(makespan(&rig, texts[i], &replayed_ns), 450);
		assert_int_equal(replayed_ns, expected_ns[i]);
	}
	rig_close(&rig);
}

/* ---- comparison ---- */

static void compare_with(struct program *program, struct program *other,
			 void (*check)(const struct replay_comparison *comparison))
{
	struct rig a, b;
	struct replay_comparison *comparison;

	program_go(program);
	program_go(other);
	rig_open(&a, program);
	rig_open(&b, other);
	comparison = replay_compare(a.timeline, b.timeline);
	check(comparison);
	replay_comparison_free(comparison);
	rig_close(&a);
	rig_close(&b);
}

static void check_equal(const struct replay_comparison *comparison)
{
	assert_false(comparison->other_program);
	assert_int_equal(comparison->diverging_streams, 0);
	assert_int_equal(comparison->equal, 3);
	assert_string_equal(comparison->spread.data[0].name, "gemm_b");
	assert_int_equal(comparison->spread.data[0].a_ns, 100);
	assert_int_equal(comparison->spread.data[0].b_ns, 130);
	assert_int_equal(comparison->spread.data[0].max_diff_ns, 30);
}

static void test_runs_of_a_program_are_equal_whatever_its_streams_are_called(void **state)
{
	struct program program = three_kernels, other = three_kernels;

	(void)state;
	for (unsigned i = 0; i < other.count; i++)
		other.actions[i].stream = 2 - other.actions[i].stream;
	other.actions[1].dur_ns = 130;
	compare_with(&program, &other, check_equal);
}

static void check_name(const struct replay_comparison *comparison)
{
	assert_int_equal(comparison->diverging_streams, 1);
	assert_int_equal(comparison->first.stream, 0);
	assert_int_equal(comparison->first.position, 2);
	assert_string_equal(comparison->first.what, "kernel");
	assert_int_equal(comparison->equal, 2);
}

static void check_shorter(const struct replay_comparison *comparison)
{
	assert_string_equal(comparison->first.what, "end");
	assert_int_equal(comparison->first.stream, 1);
	assert_int_equal(comparison->first.b, MODEL_NONE);
}

static void check_other(const struct replay_comparison *comparison)
{
	assert_true(comparison->other_program);
	assert_int_equal(comparison->names_both, 0);
}

static void test_first_difference_is_found(void **state)
{
	struct program program = three_kernels, other = three_kernels;

	(void)state;
	other.actions[1].name = 2;
	compare_with(&program, &other, check_name);
	other = three_kernels;
	other.actions[2].kind = PROGRAM_RECORD;
	compare_with(&program, &other, check_shorter);
	program.count = other.count = 1;
	other.actions[0].name = 1;
	compare_with(&program, &other, check_other);
}

static void check_waits(const struct replay_comparison *comparison)
{
	assert_string_equal(comparison->first.what, "waits");
}

static void test_a_missing_dependency_is_a_difference(void **state)
{
	struct program program = {
		.count = 4,
		.actions = {{.kind = PROGRAM_KERNEL, .gap_ns = 10, .dur_ns = 100},
			    {.kind = PROGRAM_RECORD, .gap_ns = 10},
			    {.kind = PROGRAM_WAIT, .gap_ns = 10, .stream = 1},
			    {.kind = PROGRAM_KERNEL, .gap_ns = 10, .dur_ns = 100, .stream = 1}},
	};
	struct program other = program;

	(void)state;
	other.actions[2].kind = PROGRAM_RECORD;
	compare_with(&program, &other, check_waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unmodified_replay_of_a_random_program_is_what_was_measured),
		cmocka_unit_test(test_what_if_is_what_the_program_would_have_taken),
		cmocka_unit_test(test_time_that_the_gpu_takes_to_begin_is_kept),
		cmocka_unit_test(test_parts_are_chosen_by_number_stream_and_time),
		cmocka_unit_test(test_a_part_without_operations_is_an_error),
		cmocka_unit_test(test_a_what_if_that_makes_no_sense_is_an_error),
		cmocka_unit_test(test_a_what_if_that_matches_nothing_is_an_error),
		cmocka_unit_test(test_what_ifs_choose_by_kind_name_value_and_launch),
		cmocka_unit_test(test_a_replay_that_is_far_off_answers_no_what_ifs),
		cmocka_unit_test(test_dry_run_lists_what_is_not_in_order),
		cmocka_unit_test(test_kernels_of_a_collective_wait_for_all_ranks),
		cmocka_unit_test(test_runs_of_a_program_are_equal_whatever_its_streams_are_called),
		cmocka_unit_test(test_first_difference_is_found),
		cmocka_unit_test(test_a_missing_dependency_is_a_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
