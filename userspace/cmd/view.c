// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf view: draws the timeline of a .waffle file in the terminal. */
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/filter_options.h"
#include "export/report_text.h"
#include "export/view_text.h"

struct view_cli {
	uint64_t from_ns, to_ns; /* since the beginning of the capture */
	uint64_t width;          /* 0: the terminal's width */
	uint64_t lanes;
	const char *span, *thread;
	struct filter_options filter;
};

static int set_from(void *options, const char *value, struct error *err)
{
	return option_duration("from", value, &((struct view_cli *)options)->from_ns, err);
}

static int set_to(void *options, const char *value, struct error *err)
{
	return option_duration("to", value, &((struct view_cli *)options)->to_ns, err);
}

static int set_width(void *options, const char *value, struct error *err)
{
	return option_number("width", value, VIEW_WIDTH_MIN, VIEW_WIDTH_MAX,
			     &((struct view_cli *)options)->width, err);
}

static int set_top(void *options, const char *value, struct error *err)
{
	return option_number("top", value, 0, UINT32_MAX, &((struct view_cli *)options)->lanes,
			     err);
}

static const struct option_row rows[] = {
	{"from", 0, "TIME", "Draw from this time since the begin on.", .set = set_from},
	{"to", 0, "TIME", "Draw up to this time since the begin.", .set = set_to},
	{"span", 's', "NAME", "Draw the time of the slowest span of this name, its thread first.",
	 .at = offsetof(struct view_cli, span)},
	{"thread", 't', "THREAD", "Draw only this thread: its number, or a name.",
	 .at = offsetof(struct view_cli, thread)},
	{"top", 'n', "N",
	 "Draw N threads, those with most time in spans first, 0 for all; the default is 16.",
	 .set = set_top},
	{"width", 'w', "N", "Draw N columns; the default is the terminal's width, 80 in a pipe.",
	 .set = set_width},
	FILTER_OPTION_ROWS(struct view_cli, filter),
	MEMORY_OPTION_ROW,
};

static uint64_t after(uint64_t start, uint64_t ns)
{
	return ns > UINT64_MAX - start ? UINT64_MAX : start + ns;
}

static int view_file(const struct command *command, const void *arg, const char *file,
		     struct error *err)
{
	const struct view_cli *cli = arg;
	const struct model_keep keep = {cli->filter.filter, cli->filter.keep_children};
	struct view_options options = {.span = cli->span,
				       .thread = cli->thread,
				       .width = cli->width ? (uint32_t)cli->width
							   : view_width_of(stdout),
				       .lanes = (uint32_t)cli->lanes,
				       .utf8 = view_utf8_locale(),
				       .colour = report_colour_for(stdout)};
	struct store_reader *reader = NULL;
	struct model *model = NULL;
	int result = filter_options_open_file(command, &cli->filter, file, &reader, err);

	/* Load everything: spans and waits that began before the window are drawn with their name
	 * and state. */
	if (!result)
		result = model_load(&model, reader, STORE_ALL, &keep, err);
	if (!result) {
		uint64_t start = store_reader_meta(reader)->start_ts;

		options.from_ts = after(start, cli->from_ns);
		options.to_ts = after(start, cli->to_ns);
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
	int first, result = options_parse(command, argc, argv, false, &cli, &first, &err);

	if (result)
		return command_parse_failed(command, result, &err);
	if (argc - first != 1 || cli.from_ns >= cli.to_ns) {
		error_set(&err, EINVAL,
			  argc - first != 1 ? "give one .waffle file"
					    : "--from has to be before --to");
		return command_fail(command, &err, EXIT_USAGE);
	}
	return filter_options_on_file(command, &cli.filter, argv[first], false, view_file, &cli);
}

const struct command command_view = {
	.name = "view",
	.arguments = "FILE",
	.summary = "Draw the time line of spans and threads in the terminal",
	.details =
		"For each thread its spans, nested, and below them its state: running, runnable "
		"(waiting for a CPU) or blocked. A column is a stretch of time and shows what took "
		"most of it. A span that no column shows is counted where it would be: a digit, or "
		"* above 9, is the number of spans in that column. Marks on the time axis count "
		"from the left edge. The percentages beside a thread's name are exact, of the time "
		"that is drawn.\n\n"
		"Blocks are drawn where the locale writes UTF-8, else plain ASCII; colours only on "
		"a terminal, and not if NO_COLOR is set.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = view_run,
};
