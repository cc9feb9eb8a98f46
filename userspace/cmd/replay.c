// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf replay: schedules recorded GPU work again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_compare.h"
#include "analyze/gpu/replay_report.h"
#include "analyze/gpu/replay_select.h"
#include "analyze/gpu/replay_what_if.h"
#include "cmd/align_options_internal.h"
#include "cmd/capture_files_internal.h"
#include "cmd/command_internal.h"
#include "export/chakra.h"
#include "model/model.h"
#include "render/json/replay_json.h"
#include "render/text/replay_text.h"
#include "store/store.h"
#include "util/memory.h"
#include "util/memory_limit.h"
#include "util/output.h"
#include "util/privileges.h"
#include "util/terminal.h"

struct replay_cli {
	bool json, dry_run, compare, on_gpu;
	const char *operations, *stream, *chakra;
	uint64_t from_ns, to_ns; /* since the beginning of the capture */
	option_list what_ifs;
	enum clock_align align;
	uint64_t memory_limit;
};

static const struct option_row rows[] = {
	{"what-if", 'w', "WHAT: CHANGE",
	 "Replay with a change, such as 'kernel ~ \"*gemm*\": 2x', 'copies: 0' or 'rank 2: not "
	 "late'. Each use of the option is one replay.",
	 .type = OPTION_LIST, .at = offsetof(struct replay_cli, what_ifs)},
	{"from", 0, "TIME",
	 "Only what starts at this time since the begin of the capture, or later.",
	 .type = OPTION_TIME, .at = offsetof(struct replay_cli, from_ns)},
	{"to", 0, "TIME", "Only what starts before this time.", .type = OPTION_TIME,
	 .at = offsetof(struct replay_cli, to_ns)},
	{"operations", 0, "RANGE",
	 "Only operations with these numbers, such as 10-20. They count from 1, in the order in "
	 "which "
	 "they began.",
	 .at = offsetof(struct replay_cli, operations)},
	{"stream", 0, "STREAM", "Only the operations of this stream: its number, or DEVICE:NUMBER.",
	 .at = offsetof(struct replay_cli, stream)},
	{"dry-run", 0, NULL,
	 "Replay nothing, but check that everything began after what it depends on. Exits with 1 "
	 "if "
	 "not.",
	 .at = offsetof(struct replay_cli, dry_run)},
	{"compare", 0, NULL,
	 "Compare the operations of two captures: the first difference, then the times of equal "
	 "ones. Exits with 1 if they differ.",
	 .at = offsetof(struct replay_cli, compare)},
	{"on-gpu", 0, NULL,
	 "Also issue the schedule again on the GPU of this machine, with kernels that spin for the "
	 "recorded times, and compare.",
	 .at = offsetof(struct replay_cli, on_gpu)},
	{"chakra", 0, "OUT",
	 "Write operations and their dependencies as a Chakra execution trace, for simulators. - "
	 "is "
	 "standard output.",
	 .type = OPTION_PATH, .at = offsetof(struct replay_cli, chakra)},
	{"json", 0, NULL, "Print JSON.", .at = offsetof(struct replay_cli, json)},
	ALIGN_OPTION_ROW(struct replay_cli, align),
	MEMORY_OPTION_ROW(struct replay_cli, memory_limit),
};

/* What is asked: a part without its times, and cli.what_ifs. */
struct replay_query {
	struct replay_part part;
	struct replay_what_if *what_ifs;
};

/* The GPU's work in some files. */
struct capture {
	struct store_reader *reader;
	struct model *model;
	struct gpu_timeline *timeline;
};

static void capture_close(struct capture *capture)
{
	gpu_timeline_free(capture->timeline);
	model_free(capture->model);
	store_reader_close(capture->reader);
}

/* With `spans`, operations are spans of the model, too, which takes several times the memory. */
static int capture_open(struct capture *capture, const struct command *command,
			const struct replay_cli *cli, const struct capture_files *files, bool spans,
			struct error *err)
{
	const struct model_filter keep = {.gpu_apart = !spans};
	int result = capture_files_open(command, files, &capture->reader, err);

	if (!result)
		result = align_clocks(command, capture->reader, cli->align, err);
	if (!result)
		result = model_load(&capture->model, capture->reader, STORE_ALL, &keep, err);
	if (result)
		return result;
	capture->timeline = capture->model->gpu_records ? gpu_timeline_take(capture->model)
							: gpu_timeline_new(capture->model);
	if (!capture->timeline->ops.len)
		return error_set(err, ENODATA,
				 "%s: it has no operations of a GPU with their times; docs/gpu.md "
				 "says how they are recorded",
				 files->paths[0]);
	return 0;
}

/* main() reports a failed write to standard output, for all commands. */
static int printed(int result, struct error *err)
{
	if (result && !ferror(stdout))
		return error_set(err, -result, "%s", strerror(-result));
	return 0;
}

/* ---- one capture ---- */

static int report_print(const struct replay_cli *cli, const struct replay_report *report,
			struct error *err)
{
	if (cli->json)
		return printed(replay_print_json(report, stdout), err);
	replay_print_text(report, terminal_has_colour(stdout), stdout);
	return 0;
}

/* As with `export -o -`, no message says that the reader of a pipe has exited. */
static int chakra_write(const struct replay_cli *cli, const struct replay_build *build,
			const bool *selected, int *code, struct error *err)
{
	int result = chakra_write_path(build, selected, cli->chakra, err);

	if (!result || strcmp(cli->chakra, "-") || !output_reader_is_gone())
		return result;
	*code = EXIT_READER_GONE;
	return 0;
}

/* Without operations there is nothing to show; what failed later is shown before the error. */
static int replay_build_show(const struct replay_cli *cli, const struct replay_build *build,
			     const struct replay_query *query, int *code, struct error *err)
{
	const struct model *model = build->timeline->model;
	struct store_window window = capture_files_window(model->reader, cli->from_ns, cli->to_ns);
	struct error other = ERROR_INIT;
	struct replay_part part = query->part;
	struct replay_report report;
	int result = model_reaches(model, window.from_ts, err);

	if (result)
		return result;
	part.from_ts = window.from_ts;
	part.to_ts = window.to_ts;
	result = replay_report_run(&report, build, &part, cli->dry_run, query->what_ifs,
				   cli->what_ifs.len, err);
	if (!result && cli->on_gpu)
		result = replay_report_on_gpu(&report, err);
	if ((!result || result == -EDOM) && !cli->chakra)
		result = report_print(cli, &report, &other) ?: result;
	if (!result && cli->chakra)
		result = chakra_write(cli, build, report.selected, code, err);
	if (other.message[0])
		*err = other;
	if (cli->dry_run && report.violations.len)
		*code = EXIT_FAILED;
	replay_report_free(&report);
	return result;
}

static int replay_capture(const struct command *command, const struct replay_cli *cli,
			  const struct capture_files *files, const struct replay_query *query,
			  int *code, struct error *err)
{
	struct capture capture = {0};
	struct replay_build *build;
	bool spans = false;
	int result;

	for (size_t i = 0; i < cli->what_ifs.len; i++)
		spans |= replay_what_if_needs_spans(&query->what_ifs[i]);
	result = capture_files_spare(files, cli->chakra, err)
			 ?: capture_open(&capture, command, cli, files, spans, err);
	if (!result) {
		build = replay_build_new(capture.timeline);
		result = replay_build_show(cli, build, query, code, err);
		replay_build_free(build);
	}
	capture_close(&capture);
	return result;
}

static int query_parse(struct replay_query *query, const struct replay_cli *cli, struct error *err)
{
	int result = 0;

	if (cli->operations)
		result = replay_part_range(&query->part, cli->operations, err);
	if (!result && cli->stream)
		result = replay_part_stream(&query->part, cli->stream, err);
	for (size_t i = 0; i < cli->what_ifs.len && !result; i++)
		result = replay_what_if_parse(&query->what_ifs[i], cli->what_ifs.data[i].text, err);
	return result;
}

/* Parses all of the query before any file is read. */
static int replay_files(const struct command *command, const struct replay_cli *cli,
			const struct capture_files *files, int *code, struct error *err)
{
	struct replay_query query = {
		.part = REPLAY_PART_ALL,
		.what_ifs = memory_zeroed(cli->what_ifs.len, sizeof(*query.what_ifs))};
	int result = query_parse(&query, cli, err);

	if (result == -EINVAL)
		*code = EXIT_USAGE;
	if (!result)
		result = replay_capture(command, cli, files, &query, code, err);
	for (size_t i = 0; i < cli->what_ifs.len; i++)
		replay_what_if_free(&query.what_ifs[i]);
	free(query.what_ifs);
	return result;
}

/* ---- two captures ---- */

static int comparison_show(const struct replay_cli *cli, const struct gpu_timeline *a,
			   const struct gpu_timeline *b, const char *const paths[2], int *code,
			   struct error *err)
{
	struct replay_comparison *comparison = replay_compare(a, b);
	int result = 0;

	if (comparison->other_program)
		result = error_set(err, EINVAL,
				   "%s and %s are captures of different programs: they have %llu "
				   "and %llu kernels, and %llu of the same name",
				   paths[0], paths[1], (unsigned long long)comparison->names_a,
				   (unsigned long long)comparison->names_b,
				   (unsigned long long)comparison->names_both);
	else if (cli->json)
		result = printed(replay_print_comparison_json(comparison, stdout), err);
	else
		replay_print_comparison_text(comparison, terminal_has_colour(stdout), stdout);
	if (comparison->diverging_streams)
		*code = EXIT_FAILED;
	replay_comparison_free(comparison);
	return result;
}

static int compare_files(const struct command *command, const struct replay_cli *cli,
			 const struct capture_files *files, int *code, struct error *err)
{
	struct capture a = {0}, b = {0};
	const struct capture_files first = {files->paths, 1}, second = {files->paths + 1, 1};
	int result = capture_open(&a, command, cli, &first, true, err);

	if (!result)
		result = capture_open(&b, command, cli, &second, true, err);
	if (!result)
		result = comparison_show(cli, a.timeline, b.timeline, files->paths, code, err);
	capture_close(&a);
	capture_close(&b);
	return result;
}

/* ---- the command ---- */

static const char *usage_problem(const struct replay_cli *cli, int files)
{
	bool part = cli->operations || cli->stream || cli->from_ns || cli->to_ns != UINT64_MAX;

	if (cli->compare && files != 2)
		return "--compare needs two .waffle files";
	if (files < 1)
		return "give a .waffle file, or all files of a job";
	if (cli->compare &&
	    (part || cli->dry_run || cli->on_gpu || cli->chakra || cli->what_ifs.len))
		return "--compare compares whole captures; leave the other options out";
	if (cli->from_ns >= cli->to_ns)
		return "--from has to be before --to";
	if (cli->dry_run && (cli->what_ifs.len || cli->on_gpu))
		return "--dry-run replays nothing; leave --what-if and --on-gpu out";
	if (cli->chakra && (cli->json || cli->what_ifs.len || cli->dry_run || cli->on_gpu))
		return "--chakra writes the recording; leave --json, --what-if, --dry-run and "
		       "--on-gpu out";
	return NULL;
}

static int replay_run_command(const struct command *command, int argc, char **argv)
{
	struct replay_cli cli = {.to_ns = UINT64_MAX};
	struct error err = ERROR_INIT;
	int first, code = EXIT_DONE;
	int result = options_parse(command, argc, argv, false, &cli, &first, &err);
	const char *problem = result ? NULL : usage_problem(&cli, argc - first);
	struct capture_files files;

	if (problem) {
		error_set(&err, EINVAL, "%s", problem);
		code = command_fail(command, &err, EXIT_USAGE);
	} else if (result) {
		code = command_parse_failed(command, result, &err);
	} else {
		files = capture_files_of(argc, argv, first);
		privileges_keep_files();
		if (cli.memory_limit)
			memory_limit_set(cli.memory_limit);
		result = cli.compare ? compare_files(command, &cli, &files, &code, &err)
				     : replay_files(command, &cli, &files, &code, &err);
		if (result)
			code = command_fail(command, &err, code ?: EXIT_FAILED);
	}
	vec_free(&cli.what_ifs);
	return code;
}

const struct command command_replay = {
	.name = "replay",
	.arguments = "FILE…",
	.summary = "Schedule recorded GPU work again: what if kernels, copies or ranks were faster",
	.details =
		"Each operation of the GPU starts again when all it depends on is done: its "
		"launch, "
		"the operations before it on its stream, and events. Calls of the host follow each "
		"other with the recorded times between them. The replay is first made without "
		"changes. How far that is from the measured time is the error, and the interval "
		"of each what-if. If it is above 10 %, there are no answers to what-ifs.\n\n"
		"docs/replay.md explains what a replay knows and what it doesn't.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = replay_run_command,
};
