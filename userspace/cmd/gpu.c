// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf gpu: what the GPUs did. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analyze/gpu/gpu_report.h"
#include "analyze/gpu/gpu_starved.h"
#include "cmd/command_internal.h"
#include "cmd/filter_options_internal.h"
#include "model/gpu/gpu.h"
#include "render/gpu_texts.h"
#include "render/html/html_gpu.h"
#include "render/json/gpu_graph.h"
#include "render/json/gpu_json.h"
#include "render/text/gpu_text.h"
#include "store/store.h"
#include "util/terminal.h"
#include "util/units.h"

/* Launch-starved times of a device that are explained: each costs a walk along wait chains. */
#define STRETCHES 100

struct gpu_cli {
	bool json;
	const char *html;
	unsigned graph; /* enum gpu_graph_format */
	uint64_t rows;
	uint64_t from_ns, to_ns; /* since the begin of the capture */
	struct filter_options filter;
};

enum gpu_graph_format { GRAPH_NONE, GRAPH_DOT, GRAPH_JSON };

static const char *graph_choice(size_t index, const char **help)
{
	static const char *const names[] = {"none", "dot", "json"};

	*help = NULL;
	return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

static const struct option_row rows[] = {
	{"json", 0, NULL, "Print JSON, with all rows.", .at = offsetof(struct gpu_cli, json)},
	{"html", 0, "OUT",
	 "Write one HTML page that needs no network instead. - is standard output.",
	 .type = OPTION_PATH, .at = offsetof(struct gpu_cli, html)},
	{"graph", 0, "FORMAT",
	 "Print the dependency graph of the operations instead, for graphviz (dot) or as JSON.",
	 .type = OPTION_CHOICE, .choice = graph_choice, .at = offsetof(struct gpu_cli, graph)},
	{"top", 'n', "N", "Show N rows of each table; 0 shows all. Default: 10.",
	 .type = OPTION_NUMBER, .max = UINT32_MAX, .at = offsetof(struct gpu_cli, rows)},
	{"from", 0, "TIME", "Start at this time since the begin of the capture.",
	 .type = OPTION_TIME, .at = offsetof(struct gpu_cli, from_ns)},
	{"to", 0, "TIME", "End at this time since the begin of the capture.", .type = OPTION_TIME,
	 .at = offsetof(struct gpu_cli, to_ns)},
	FILTER_OPTION_ROWS(struct gpu_cli, filter),
	ALIGN_OPTION_ROW(struct gpu_cli, filter.align),
	MEMORY_OPTION_ROW(struct gpu_cli, filter.memory_limit),
};

/* main() reports a failed write to standard output, for all commands. */
static int printed(int result, struct error *err)
{
	if (result && !ferror(stdout))
		return error_set(err, -result, "%s", strerror(-result));
	return 0;
}

static int print_numbers(const struct gpu_cli *cli, const struct gpu_report *report,
			 struct error *err)
{
	struct gpu_view view = {.rows = (uint32_t)cli->rows, .colour = terminal_has_colour(stdout)};
	struct stack_names *names = stack_names_open(report->timeline->model->reader, true);
	struct why *why = NULL;
	int result = gpu_starved_explain(&why, report, names, err);

	view.why = why;
	if (!result && cli->html)
		result = html_gpu_to_path(report, why, cli->html, err);
	else if (!result && cli->json)
		result = printed(gpu_print_json(report, why, stdout), err);
	else if (!result)
		gpu_print_text(report, &view, stdout);
	why_free(why);
	stack_names_close(names);
	return result;
}

/* There are sessions, so either there was nothing or all of it is lost. */
static int without_operations(const struct gpu_timeline *timeline, const char *file,
			      struct error *err)
{
	char problems[GPU_PROBLEMS][GPU_PROBLEM_TEXT], lost[512] = "";
	size_t count = gpu_problems(timeline, problems), len = 0;

	for (size_t i = 0; i < count && len < sizeof(lost); i++)
		len += (size_t)snprintf(lost + len, sizeof(lost) - len, "%s%s", i ? "; " : ": ",
					problems[i]);
	return error_set(err, ENODATA,
			 count ? "%s: the GPU's times were recorded, but no operation is left%s"
			       : "%s: the GPU's times were recorded, but there was no operation%s",
			 file, lost);
}

/* Why there are no operations, and what to do. */
static int without_times(const struct gpu_timeline *timeline, const char *file, struct error *err)
{
	const struct gpu_timeline_session *session =
		timeline->sessions.len ? &timeline->sessions.data[0] : NULL;
	struct value reason;

	if (session && session->unavailable &&
	    model_gpu_value(timeline->model, MODEL_NODE_EVENT, session->event, "reason", &reason) &&
	    reason.type == WAFFLE_KEY_STR)
		return error_set(err, ENODATA, "%s: the GPU's times could not be recorded: %.*s",
				 file, (int)reason.text_len, reason.text);
	if (timeline->model->filtered.expression)
		return error_set(err, ENODATA,
				 "%s: the filter keeps no operation of a GPU; leave it out", file);
	if (session)
		return without_operations(timeline, file, err);
	return error_set(err, ENODATA,
			 "%s: the GPU's times were not recorded; record with waffle-bpf run --gpu "
			 "or attach --gpu, and see \"What can be lost\" in docs/gpu.md",
			 file);
}

static int print_timeline(const struct gpu_cli *cli, const struct gpu_timeline *timeline,
			  struct error *err)
{
	struct store_window window =
		capture_files_window(timeline->model->reader, cli->from_ns, cli->to_ns);
	const struct gpu_report_options options = {
		.from_ts = window.from_ts,
		.to_ts = window.to_ts,
		.stretches = STRETCHES,
		.pieces = cli->graph != GRAPH_NONE,
	};
	int result = model_reaches(timeline->model, window.from_ts, err);
	struct gpu_report *report;

	if (result)
		return result;
	report = gpu_report_new(timeline, &options);
	if (cli->graph == GRAPH_JSON)
		result = printed(gpu_graph_print_json(report, stdout), err);
	else if (cli->graph == GRAPH_DOT)
		gpu_graph_print_dot(report, stdout);
	else
		result = print_numbers(cli, report, err);
	gpu_report_free(report);
	return result;
}

static int gpu_files(const struct command *command, const void *arg,
		     const struct capture_files *files, struct error *err)
{
	const struct gpu_cli *cli = arg;
	const struct model_filter keep = {.filter = cli->filter.filter,
					  .keep_children = cli->filter.keep_children,
					  .gpu_apart = true};
	struct store_reader *reader = NULL;
	struct gpu_timeline *timeline = NULL;
	struct model *model = NULL;
	int result =
		capture_files_spare(files, cli->html, err)
			?: filter_options_open_files(command, &cli->filter, files, &reader, err);

	/* Load everything: what an operation depends on may be before the window. */
	if (!result)
		result = model_load(&model, reader, STORE_ALL, &keep, err);
	if (!result)
		timeline = model->gpu_records ? gpu_timeline_take(model) : gpu_timeline_new(model);
	if (!result)
		result = timeline->ops.len ? print_timeline(cli, timeline, err)
					   : without_times(timeline, files->paths[0], err);
	gpu_timeline_free(timeline);
	model_free(model);
	store_reader_close(reader);
	return result;
}

static int gpu_run(const struct command *command, int argc, char **argv)
{
	struct gpu_cli cli = {.rows = 10, .to_ns = UINT64_MAX};
	struct error err = ERROR_INIT;
	struct capture_files files;
	int first, result = options_parse(command, argc, argv, false, &cli, &first, &err);

	if (result)
		return command_parse_failed(command, result, &err);
	if (argc - first < 1 || cli.from_ns >= cli.to_ns ||
	    !!cli.graph + cli.json + !!cli.html > 1) {
		error_set(&err, EINVAL,
			  argc - first < 1 ? "give a .waffle file, or all files of a job"
			  : cli.from_ns >= cli.to_ns
				  ? "--from has to be before --to"
				  : "give only one of --graph, --html and --json");
		return command_fail(command, &err, EXIT_USAGE);
	}
	files = capture_files_of(argc, argv, first);
	return filter_options_on_files(command, &cli.filter, &files, cli.json, gpu_files, &cli);
}

const struct command command_gpu = {
	.name = "gpu",
	.arguments = "FILE…",
	.summary = "Show what GPUs did, and why they had nothing to do",
	.details = "The capture must have the GPU's own times, which run --gpu and attach --gpu "
		   "record.\n\nFor each GPU of each process, shows how much of the time it was "
		   "busy (with at least one operation), its kernels and copies, how many ran at "
		   "a time, and how long launches took to begin. Its idle time is split: "
		   "launch-starved (the next operation was not launched yet), blocking (what "
		   "that depends on was not done) and dependency-stalled (the rest). For "
		   "launch-starved time follows what the launching thread did instead, as "
		   "waffle-bpf why explains it, and for each stream how long it was idle, "
		   "queued, running, waiting for another stream, and complete.\n\nThe critical "
		   "path leads from the end of the last operation back through what each had to "
		   "wait for: operations, launches, and the threads that launched.\n\n"
		   "docs/gpu.md explains all of it.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = gpu_run,
};
