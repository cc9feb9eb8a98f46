// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cmd/command_internal.h"
#include "cmd/compare_internal.h"
#include "cmd/filter_options_internal.h"
#include "analyze/report.h"
#include "model/model.h"
#include "render/html/html_report.h"
#include "render/text/report_text.h"
#include "render/text/report_view.h"
#include "store/store.h"
#include "symbolize/stack_names.h"
#include "util/memory.h"
#include "util/terminal.h"

struct report_cli {
	bool json, compare;
	const char *html;
	uint64_t rows;
	uint64_t from_ns, to_ns; /* since the beginning of the capture */
	unsigned sort;           /* enum report_sort */
	struct filter_options filter;
};

static const char *sort_choice(size_t index, const char **help)
{
	*help = NULL;
	return report_sort_name((unsigned)index);
}

static const struct option_row rows[] = {
	{"json", 0, NULL, "Print JSON, with all rows.", .at = offsetof(struct report_cli, json)},
	{"html", 0, "OUT",
	 "Write the report as one HTML page that needs no network. It also has distributions, "
	 "off-CPU stacks and time lines of the slowest spans. - is standard output.",
	 .type = OPTION_PATH, .at = offsetof(struct report_cli, html)},
	{"top", 'n', "N", "Show N rows of each table; 0 shows all. Default: 20.",
	 .type = OPTION_NUMBER, .max = UINT32_MAX, .at = offsetof(struct report_cli, rows)},
	{"sort", 0, "COLUMN",
	 "Sort names by total, count, p50, p99, max, running, runnable, blocked or name. Default: "
	 "total.",
	 .type = OPTION_CHOICE, .choice = sort_choice, .at = offsetof(struct report_cli, sort)},
	{"from", 0, "TIME", "Start at this time since the begin of the capture.",
	 .type = OPTION_TIME, .at = offsetof(struct report_cli, from_ns)},
	{"to", 0, "TIME", "End at this time since the begin of the capture.", .type = OPTION_TIME,
	 .at = offsetof(struct report_cli, to_ns)},
	COMPARE_OPTION_ROW(struct report_cli, compare),
	WHERE_OPTION_ROW(struct report_cli, filter),
	FILTER_OPTION_ROWS(struct report_cli, filter),
	ALIGN_OPTION_ROW(struct report_cli, filter.align),
	MEMORY_OPTION_ROW(struct report_cli, filter.memory_limit),
};

/* Reads the values of the spans that are shown. */
static int load_values(const struct report *report, struct model *model, struct error *err)
{
	VEC(uint32_t) shown = {0};
	int result;

	for (size_t i = 0; i < report->slowest.len; i++)
		vec_add(&shown, report->slowest.data[i].span);
	result = model_values_load(model, shown.data, shown.len, err);
	vec_free(&shown);
	return result;
}

static int print_made(const struct report_cli *cli, const struct report *report, struct error *err)
{
	struct report_view view = {(uint32_t)cli->rows, terminal_has_colour(stdout)};
	int result;

	if (cli->html)
		return html_report_to_path(report, cli->html, err);
	if (!cli->json) {
		report_print_text(report, &view, stdout);
		return 0;
	}
	result = report_print_json(report, stdout);
	/* main() reports a failed write to standard output, for all commands. */
	return result && !ferror(stdout) ? error_set(err, -result, "%s", strerror(-result)) : 0;
}

static int print_report(const struct report_cli *cli, struct model *model, struct error *err)
{
	struct report_options options = REPORT_OPTIONS_DEFAULT;
	struct report *report;
	int result;

	options.names = stack_names_open(model->reader, true);
	options.sort = cli->sort;
	result = report_new(&report, model, &options, err);
	if (!result)
		result = load_values(report, model, err) ?: print_made(cli, report, err);
	report_free(report);
	stack_names_close(options.names);
	return result;
}

static int report_files(const struct command *command, const void *arg,
			const struct capture_files *files, struct error *err)
{
	const struct report_cli *cli = arg;
	const struct model_filter keep = {.filter = cli->filter.filter,
					  .keep_children = cli->filter.keep_children,
					  .compact = true,
					  .where = cli->filter.where};
	const struct compare compare = {
		.filter = &cli->filter, .rows = (uint32_t)cli->rows, .json = cli->json};
	struct store_reader *reader = NULL;
	struct model *model = NULL;
	struct store_window window;
	int result;

	if (cli->compare)
		return compare_files(command, &compare, files, err);
	result = capture_files_spare(files, cli->html, err)
			 ?: filter_options_open_files(command, &cli->filter, files, &reader, err);
	if (!result) {
		window = capture_files_window(reader, cli->from_ns, cli->to_ns);
		result = model_load(&model, reader, window, &keep, err)
				 ?: model_reaches(model, window.from_ts, err)
				 ?: print_report(cli, model, err);
	}
	model_free(model);
	store_reader_close(reader);
	return result;
}

static const char *usage_problem(const struct report_cli *cli, int files)
{
	if (files < 1)
		return "give a .waffle file, or all files of a job";
	if (cli->from_ns >= cli->to_ns)
		return "--from has to be before --to";
	if (cli->html && cli->json)
		return "give --html or --json, not both";
	if (cli->compare && files != 2)
		return "--compare needs two files";
	if (cli->compare && (cli->html || cli->from_ns || cli->to_ns != UINT64_MAX))
		return "--compare compares whole captures, as text or JSON: leave out --html, "
		       "--from and --to";
	return NULL;
}

static int report_run(const struct command *command, int argc, char **argv)
{
	struct report_cli cli = {.rows = 20, .to_ns = UINT64_MAX};
	struct error err = ERROR_INIT;
	struct capture_files files;
	const char *problem;
	int first, result = options_parse(command, argc, argv, false, &cli, &first, &err);

	if (result)
		return command_parse_failed(command, result, &err);
	problem = usage_problem(&cli, argc - first);
	if (problem) {
		error_set(&err, EINVAL, "%s", problem);
		return command_fail(command, &err, EXIT_USAGE);
	}
	files = capture_files_of(argc, argv, first);
	return filter_options_on_files(command, &cli.filter, &files, cli.json, report_files, &cli);
}

const struct command command_report = {
	.name = "report",
	.arguments = "FILE…",
	.summary = "Show where the time of spans went, by name",
	.details = "Each span name has a line with count, total, median, 99th percentile "
		   "(nearest rank, exact) and maximum. It also has the shares of the spans' "
		   "time in which their thread was running, runnable (waiting for a CPU) and "
		   "blocked. Spans that were open at the begin or end of the capture are "
		   "counted separately.\n\nThen come the causes of each name's time over all "
		   "its spans, the largest first, as waffle-bpf why finds them. They include "
		   "what makes slow spans slow: the causes that spans from the 99th percentile "
		   "on have more of than median ones (40th to 60th).\n\nThen come the slowest "
		   "spans, at most three of a name, each with its longest wait and who ended "
		   "it. If ranks of NCCL or MPI met, the ranks that others waited for follow, "
		   "and how the time of collectives splits into transfer and waiting "
		   "(docs/ranks.md). Counters, events, threads and the counts of lost records "
		   "come last.\n\nGive the files of all ranks of a job together, such as: "
		   "waffle-bpf report job.*.waffle.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = report_run,
};
