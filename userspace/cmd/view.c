// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf view: draws the timeline of a .waffle file in the terminal. */
#include <stdio.h>
#include <string.h>

#include "cmd/command_internal.h"
#include "cmd/filter_options_internal.h"
#include "render/text/report_text.h"
#include "render/text/view_options.h"
#include "render/text/view_text.h"
#include "util/terminal.h"

struct view_cli {
	uint64_t from_ns, to_ns; /* since the beginning of the capture */
	uint64_t width;          /* 0: the terminal's width */
	uint64_t lanes;
	const char *span, *thread;
	struct filter_options filter;
};

static const struct option_row rows[] = {
	{"from", 0, "TIME", "Start at this time since the begin of the capture.",
	 .type = OPTION_TIME, .at = offsetof(struct view_cli, from_ns)},
	{"to", 0, "TIME", "End at this time since the begin of the capture.", .type = OPTION_TIME,
	 .at = offsetof(struct view_cli, to_ns)},
	{"span", 's', "NAME",
	 "Draw the time of the slowest span of this name, with its thread first.",
	 .at = offsetof(struct view_cli, span)},
	{"thread", 't', "THREAD", "Draw only this thread. THREAD is its number or name.",
	 .at = offsetof(struct view_cli, thread)},
	{"top", 'n', "N",
	 "Draw N threads, those with the most time in spans first; 0 draws all. Default: 16.",
	 .type = OPTION_NUMBER, .max = UINT32_MAX, .at = offsetof(struct view_cli, lanes)},
	{"width", 'w', "N", "Draw N columns. Default: the terminal's width, 80 in a pipe.",
	 .type = OPTION_NUMBER, .min = VIEW_WIDTH_MIN, .max = VIEW_WIDTH_MAX,
	 .at = offsetof(struct view_cli, width)},
	FILTER_OPTION_ROWS(struct view_cli, filter),
	ALIGN_OPTION_ROW(struct view_cli, filter.align),
	MEMORY_OPTION_ROW(struct view_cli, filter.memory_limit),
};

static int view_files(const struct command *command, const void *arg,
		      const struct capture_files *files, struct error *err)
{
	const struct view_cli *cli = arg;
	const struct model_filter keep = {.filter = cli->filter.filter,
					  .keep_children = cli->filter.keep_children};
	struct view_options options = {.span = cli->span,
				       .thread = cli->thread,
				       .width = cli->width ? (uint32_t)cli->width
							   : view_width_of(stdout),
				       .lanes = (uint32_t)cli->lanes,
				       .utf8 = view_utf8_locale(),
				       .colour = terminal_has_colour(stdout)};
	struct store_reader *reader = NULL;
	struct model *model = NULL;
	int result = filter_options_open_files(command, &cli->filter, files, &reader, err);

	/* Load everything: spans and waits that began before the window are drawn with their name
	 * and state. */
	if (!result)
		result = model_load(&model, reader, STORE_ALL, &keep, err);
	if (!result) {
		struct store_window window = capture_files_window(reader, cli->from_ns, cli->to_ns);

		options.from_ts = window.from_ts;
		options.to_ts = window.to_ts;
		result = view_print_text(model, &options, stdout, err);
	}
	model_free(model);
	store_reader_close(reader);
	return result;
}

static int view_run(const struct command *command, int argc, char **argv)
{
	struct view_cli cli = {.lanes = 16, .to_ns = UINT64_MAX};
	struct error err = ERROR_INIT;
	struct capture_files files;
	int first, result = options_parse(command, argc, argv, false, &cli, &first, &err);

	if (result)
		return command_parse_failed(command, result, &err);
	if (argc - first < 1 || cli.from_ns >= cli.to_ns) {
		error_set(&err, EINVAL,
			  argc - first < 1 ? "give a .waffle file, or all files of a job"
					   : "--from has to be before --to");
		return command_fail(command, &err, EXIT_USAGE);
	}
	files = capture_files_of(argc, argv, first);
	return filter_options_on_files(command, &cli.filter, &files, false, view_files, &cli);
}

const struct command command_view = {
	.name = "view",
	.arguments = "FILE…",
	.summary = "Draw the time line of spans and threads in the terminal",
	.details = "Each thread has its nested spans, and below them its state: running, "
		   "runnable (waiting for a CPU) or blocked. A column is a stretch of time and "
		   "shows what took most of it. Where spans are too short for a column, it "
		   "shows their number instead: a digit, or * above 9. Times on the axis count "
		   "from the left edge. The percentages beside a thread's name are exact shares "
		   "of the drawn time.\n\nThe time line is drawn with blocks if the locale's "
		   "encoding is UTF-8, otherwise in ASCII. Colours appear only on a terminal, "
		   "and not if NO_COLOR is set.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = view_run,
};
