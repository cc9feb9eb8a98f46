// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf why: explains why spans were slow. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/filter_options.h"
#include "analyze/origin.h"
#include "analyze/why_pick.h"
#include "export/origin_print.h"
#include "export/report_text.h"
#include "export/why_json.h"
#include "export/why_text.h"

/* Limit of the causes shown for each instance in text. */
#define CAUSES_SHOWN 10
#define SLOWEST_DEFAULT 10

struct why_cli {
	struct why_wanted wanted;
	const char *event;
	uint64_t slowest;
	bool json, evidence;
	struct filter_options filter;
};

static int set_slowest(void *options, const char *value, struct error *err)
{
	return option_number("slowest", value, 0, UINT32_MAX, &((struct why_cli *)options)->slowest,
			     err);
}

static int set_from(void *options, const char *value, struct error *err)
{
	struct why_wanted *wanted = &((struct why_cli *)options)->wanted;

	wanted->window = true;
	return option_duration("from", value, &wanted->from_ns, err);
}

static int set_to(void *options, const char *value, struct error *err)
{
	struct why_wanted *wanted = &((struct why_cli *)options)->wanted;

	wanted->window = true;
	return option_duration("to", value, &wanted->to_ns, err);
}

static const struct option_row rows[] = {
	{"span", 's', "NAME|ID", "Explain spans of this name, or the one with this id.",
	 .at = offsetof(struct why_cli, wanted.span)},
	{"slowest", 'n', "N", "Explain the N slowest of them, 0 for all; the default is 10.",
	 .set = set_slowest},
	{"thread", 't', "THREAD",
	 "Explain the time of this thread, its number or its name, instead of spans.",
	 .at = offsetof(struct why_cli, wanted.thread)},
	{"from", 0, "TIME", "With --thread: from this time since the begin on.", .set = set_from},
	{"to", 0, "TIME", "With --thread: up to this time since the begin.", .set = set_to},
	{"event", 'e', "NAME|ID",
	 "Follow the links of this event, the last one of a name, back to where it came from.",
	 .at = offsetof(struct why_cli, event)},
	{"evidence", 0, NULL, "Show also the records and stacks that each statement rests on.",
	 .at = offsetof(struct why_cli, evidence)},
	{"json", 0, NULL, "Print JSON, as docs/why.schema.json says.",
	 .at = offsetof(struct why_cli, json)},
	FILTER_OPTION_ROWS(struct why_cli, filter),
	MEMORY_OPTION_ROW,
};

/* main() reports a failed write to standard output, for all commands. */
static int printed(int result, struct error *err)
{
	if (result && !ferror(stdout))
		return error_set(err, -result, "%s", strerror(-result));
	return 0;
}

static int print_why(const struct why_cli *cli, const struct why *why, struct stack_names *names,
		     struct error *err)
{
	struct why_view view = {.names = names,
				.causes = CAUSES_SHOWN,
				.evidence = cli->evidence,
				.colour = report_colour_for(stdout)};

	if (cli->json)
		return printed(why_print_json(why, &view, stdout), err);
	why_print_text(why, &view, stdout);
	return 0;
}

static int explain_event(const struct why_cli *cli, const struct model *model, struct error *err)
{
	const struct why_view view = {.colour = report_colour_for(stdout)};
	struct origin *origin = NULL;
	uint32_t event;
	int result = why_pick_event(&event, model, cli->event, err)
			     ?: origin_new(&origin, model, MODEL_NODE_EVENT, event, err);

	if (!result && cli->evidence)
		result = origin_find_records(origin, err);
	if (result) {
		origin_free(origin);
		return result;
	}
	if (cli->json)
		result = origin_print_json(origin, stdout);
	else
		origin_print_text(origin, &view, stdout);
	origin_free(origin);
	return printed(result, err);
}

static int explain(const struct why_cli *cli, const struct model *model, const char *file,
		   struct error *err)
{
	struct why_query query = {.slowest = (uint32_t)cli->slowest};
	struct stack_names *stacks = NULL;
	struct why_names names;
	struct why *why = NULL;
	int result;

	if (!model->sched)
		return error_set(err, ENODATA,
				 "%s: the scheduler was not %s, so nothing can be explained; %s",
				 file, model->meta->sched ? "kept by the filter" : "recorded",
				 model->meta->sched ? "leave the filter out"
						    : "record with the source sched");
	result = why_pick(&query, model, &cli->wanted, err);
	if (!result && stack_names_open(&stacks, model->reader, true))
		result = error_set(err, ENOMEM, "out of memory");
	names = stack_names_for_why(stacks);
	query.names = &names;
	if (!result)
		result = why_new(&why, model, &query, err);
	if (!result && cli->evidence)
		result = why_records_find(why, err);
	if (!result)
		result = print_why(cli, why, stacks, err);
	why_free(why);
	stack_names_close(stacks);
	return result;
}

static int why_file(const struct command *command, const void *arg, const char *file,
		    struct error *err)
{
	const struct why_cli *cli = arg;
	const struct model_keep keep = {cli->filter.filter, cli->filter.keep_children};
	struct store_reader *reader = NULL;
	struct model *model = NULL;
	int result = filter_options_open_file(command, &cli->filter, file, &reader, err);

	/* Load everything: the cause of a wait may be before the window. */
	if (!result)
		result = model_load(&model, reader, STORE_ALL, &keep, err);
	if (!result)
		result = cli->event ? explain_event(cli, model, err)
				    : explain(cli, model, file, err);
	model_free(model);
	store_reader_close(reader);
	return result;
}

static const char *usage_problem(const struct why_cli *cli, int files)
{
	const struct why_wanted *wanted = &cli->wanted;

	if (files != 1)
		return "give one .waffle file";
	if (wanted->window && !wanted->thread)
		return "--from and --to are of a thread's time: give --thread, too";
	if ((wanted->thread != NULL) + (wanted->span != NULL) + (cli->event != NULL) > 1)
		return "give one of --span, --thread and --event";
	if (wanted->from_ns >= wanted->to_ns)
		return "--from has to be before --to";
	return NULL;
}

static int why_run(const struct command *command, int argc, char **argv)
{
	struct why_cli cli = {.slowest = SLOWEST_DEFAULT, .wanted.to_ns = UINT64_MAX};
	struct error err = ERROR_INIT;
	const char *problem;
	int first, result = options_parse(command, argc, argv, false, &cli, &first, &err);

	if (result)
		return command_parse_failed(command, result, &err);
	problem = usage_problem(&cli, argc - first);
	if (problem) {
		error_set(&err, EINVAL, "%s", problem);
		return command_fail(command, &err, EXIT_USAGE);
	}
	return filter_options_on_file(command, &cli.filter, argv[first], cli.json, why_file, &cli);
}

const struct command command_why = {
	.name = "why",
	.arguments = "FILE",
	.summary = "Say what made spans slow, and who caused it",
	.details =
		"For each of the slowest spans: how much of its time it ran, was runnable (waiting "
		"for a CPU) and was blocked; then the causes of that, the largest first, each with "
		"its share of the span's time, how sure that is (certain, likely, unknown), and "
		"the thread and thing that caused it. A wait is followed backwards from thread to "
		"thread along the wake-ups that ended it, so a cause is what stands at the end: "
		"the disk, not the lock in front of it. Below are the ways from the waits to the "
		"causes, by the causes' numbers.\n\n"
		"docs/why.md tells what each cause means and what can't be known.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = why_run,
};
