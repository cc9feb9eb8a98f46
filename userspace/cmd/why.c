// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf why: explains why spans were slow. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command_internal.h"
#include "cmd/compare_internal.h"
#include "cmd/filter_options_internal.h"
#include "cmd/why_record_internal.h"
#include "analyze/origin/origin.h"
#include "analyze/report.h"
#include "analyze/why/hang/why_hang.h"
#include "analyze/why/why_outside.h"
#include "analyze/why/why_pick.h"
#include "analyze/why/why_repeat.h"
#include "analyze/why/why_waiters.h"
#include "model/gpu/gpu_timeline.h"
#include "render/json/origin_json.h"
#include "render/json/why_json.h"
#include "render/text/origin_text.h"
#include "render/text/report_text.h"
#include "render/text/why_text.h"
#include "util/memory.h"
#include "util/memory_limit.h"
#include "util/terminal.h"

/* Limit of the causes shown for each instance in text. */
#define CAUSES_SHOWN 10
#define SLOWEST_DEFAULT 10
#define SLOWEST_RECORDED 3 /* after an overview */
#define OVERVIEW_ROWS 12
#define WAITS_SHOWN 5

struct why_cli {
	struct why_capture capture;
	struct why_wanted wanted;
	const char *event;
	uint64_t slowest;
	bool origin, json, evidence, median, compare;
	bool overview; /* print what spans there are first */
	bool varied;   /* explain slow spans with several causes */
	bool attached; /* running processes were recorded, and may still be there */
	struct filter_options filter;
};

static const struct option_row rows[] = {
	{"span", 's', "NAME|ID", "Explain the spans of this name, or the span with this id.",
	 .at = offsetof(struct why_cli, wanted.span)},
	{"slowest", 'n', "N", "Explain the N slowest of them; 0 explains all. Default: 10.",
	 .type = OPTION_NUMBER, .max = UINT32_MAX, .at = offsetof(struct why_cli, slowest)},
	{"median", 0, NULL,
	 "For comparison, also explain the span of median duration of each name.",
	 .at = offsetof(struct why_cli, median)},
	{"thread", 't', "THREAD",
	 "Explain the time of a thread instead of spans. THREAD is its number or name; threads of "
	 "the "
	 "same name are put together.",
	 .at = offsetof(struct why_cli, wanted.thread)},
	{"from", 0, "TIME", "With --thread, start at this time since the begin of the capture.",
	 .type = OPTION_TIME, .at = offsetof(struct why_cli, wanted.from_ns)},
	{"to", 0, "TIME", "With --thread, end at this time since the begin of the capture.",
	 .type = OPTION_TIME, .at = offsetof(struct why_cli, wanted.to_ns)},
	{"event", 'e', "NAME|ID",
	 "Follow this event back to its origins: along the program's links, and through "
	 "collectives, "
	 "messages and contexts to other ranks and processes. Of a name, the last event counts.",
	 .at = offsetof(struct why_cli, event)},
	{"origin", 0, NULL,
	 "With --span, follow the span back to its origins, like --event. Of a name, the last span "
	 "counts.",
	 .at = offsetof(struct why_cli, origin)},
	{"evidence", 0, NULL, "Also show the records and stacks that each statement rests on.",
	 .at = offsetof(struct why_cli, evidence)},
	{"json", 0, NULL,
	 "Print JSON, as docs/why.schema.json describes it; origins as docs/origin.schema.json "
	 "does.",
	 .at = offsetof(struct why_cli, json)},
	TARGET_OPTION_ROWS(struct why_cli, capture.target, "(without FILE) "),
	{"duration", 'd', "TIME",
	 "Without FILE: record for TIME. Default: 10s; a COMMAND until it ends.",
	 .type = OPTION_TIME, .min = 1, .at = offsetof(struct why_cli, capture.duration_ns)},
	{"output", 'o', "FILE",
	 "Without FILE: write the capture to this file instead of PROGRAM-TIME.waffle in the "
	 "current "
	 "folder. It is kept.",
	 .type = OPTION_PATH, .at = offsetof(struct why_cli, capture.output)},
	COMPARE_OPTION_ROW(struct why_cli, compare),
	WHERE_OPTION_ROW(struct why_cli, filter),
	FILTER_OPTION_ROWS(struct why_cli, filter),
	ALIGN_OPTION_ROW(struct why_cli, filter.align),
	MEMORY_OPTION_ROW(struct why_cli, filter.memory_limit),
};

/* main() reports a failed write to standard output, for all commands. */
static int printed(int result, struct error *err)
{
	if (result && !ferror(stdout))
		return error_set(err, -result, "%s", strerror(-result));
	return 0;
}

static int print_why(const struct why_cli *cli, const struct why *why, const struct why *waits,
		     const struct why_waiters *waiters, struct stack_names *names,
		     struct error *err)
{
	struct why_hangs hangs;
	struct why_view view = {.names = names,
				.waits = waits,
				.waiters = waiters->why ? waiters : NULL,
				.hangs = &hangs,
				.causes = CAUSES_SHOWN,
				.evidence = cli->evidence,
				.colour = terminal_has_colour(stdout)};
	int result = 0;

	why_hangs_find(&hangs, why->model, names);
	if (cli->json)
		result = printed(why_print_json(why, &view, stdout), err);
	else
		why_print_text(why, &view, stdout);
	why_hangs_free(&hangs);
	return result;
}

static int print_origin(const struct why_cli *cli, struct origin *origin, struct error *err)
{
	const struct why_view view = {.causes = CAUSES_SHOWN,
				      .colour = terminal_has_colour(stdout)};
	int result = cli->evidence ? origin_find_records(origin, err) : 0;

	if (result)
		return result;
	if (cli->json)
		return printed(origin_print_json(origin, stdout), err);
	origin_print_text(origin, &view, stdout);
	return 0;
}

static int find_origin(const struct why_cli *cli, const struct model *model, struct error *err)
{
	enum model_node_kind kind = cli->event ? MODEL_NODE_EVENT : MODEL_NODE_SPAN;
	struct origin_index *index;
	struct origin *origin;
	uint32_t node;
	int result = cli->event ? why_pick_event(&node, model, cli->event, err)
				: why_pick_span(&node, model, cli->wanted.span, err);

	if (result)
		return result;
	index = origin_index_new(model);
	origin = origin_new(index, kind, node);
	result = print_origin(cli, origin, err);
	origin_free(origin);
	origin_index_free(index);
	return result;
}

/* The longest waits of threads, which a sum over all time hides. NULL: the query is for spans. */
static int find_waits(struct why **waits, const struct why_cli *cli, const struct model *model,
		      const struct why_query *threads, struct error *err)
{
	struct why_query query = *threads;

	*waits = NULL;
	if ((!query.tid && !query.comm) || cli->json || cli->evidence)
		return 0;
	query.waits = WAITS_SHOWN;
	return why_new(waits, model, &query, err);
}

/* Who waits for the busiest thread, or for the one that made all explained calls of a library, if
 * that is explained because the user chose nothing. */
static int find_waiters(struct why_waiters *waiters, const struct why_cli *cli,
			const struct why *why, const struct why_query *query, struct error *err)
{
	const struct model *model = why->model;
	struct why_query caller = {.tid = why_waiters_caller(why),
				   .from_ts = model->start_ts,
				   .to_ts = model->end_ts,
				   .names = query->names,
				   .timeline = query->timeline};

	if (cli->wanted.thread || cli->wanted.span || cli->evidence)
		return 0;
	if (query->tid)
		return why_waiters_find(waiters, model, query, err);
	if (!caller.tid || model->selected || model->filtered.expression)
		return 0;
	return why_waiters_find(waiters, model, &caller, err);
}

/* Suggests a function whose calls may be the steps of a thread without spans. */
static void suggest_step(const struct why_cli *cli, const struct model *model, struct why *why,
			 struct stack_names *names)
{
	struct why_repeat_candidate candidate;
	char probe[512];

	if (cli->json || !why->instances.len ||
	    !why_repeat_find(model, names, why->instances.data[0].thread, &candidate) ||
	    !why_repeat_probe(probe, sizeof(probe), &candidate.frame))
		return;
	fflush(stdout);
	terminal_message(
		stderr,
		"waffle-bpf: why: %s() is in %u of its %u stacks; if each call is a step of "
		"its work, record with --probe '%s' and why explains the slow ones",
		candidate.frame.function, candidate.stacks, candidate.of, probe);
}

/* The name may be anything, and the user may paste what is suggested into a shell. */
static bool is_plain(const char *name)
{
	return *name && *name != '-' &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_.-")];
}

/* Suggests to record the process, too, at which the largest chain ends. */
static void suggest_outside(const struct why_cli *cli, const struct why *why)
{
	const struct model_thread *thread;
	struct why_outside found;
	const char *name = "";

	if (cli->json || !cli->attached)
		return;
	found = why_outside_find(why);
	if (!found.pid)
		return;
	/* A process has the name of its main thread. */
	thread = found.thread == MODEL_NONE ? NULL : &why->model->threads.data[found.thread];
	if (thread && thread->tid == thread->pid)
		name = strtab_get(why->model->strings, thread->comm);
	fflush(stdout);
	terminal_message(stderr,
			 "waffle-bpf: why: process %u, which it waited for, was not recorded: to "
			 "see what it did, record it as well: --pid %u%s%s",
			 found.pid, found.pid,
			 is_plain(name) ? ", or for all processes of this name --comm " : "",
			 is_plain(name) ? name : "");
}

typedef VEC(uint32_t) shown_spans;

static void span_add(shown_spans *shown, const struct model *model, uint32_t span)
{
	if (span < model->spans.len)
		vec_add(shown, span);
}

static void spans_list(shown_spans *shown, const struct why *why)
{
	for (size_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];

		span_add(shown, why->model, instance->span);
		for (uint32_t k = 0; k < instance->part_count; k++)
			span_add(shown, why->model, why->parts.data[instance->part + k].span);
	}
}

/* Reads the values of the spans that are shown. `waits` may be NULL. */
static int load_values(struct model *model, const struct why *why, const struct why *waits,
		       struct error *err)
{
	shown_spans shown = {0};
	int result;

	spans_list(&shown, why);
	if (waits)
		spans_list(&shown, waits);
	result = model_values_load(model, shown.data, shown.len, err);
	vec_free(&shown);
	return result;
}

static const char *picked_text(const struct why_query *query)
{
	if (query->program && query->quiet)
		return "this is a Go program as a whole, whose goroutines hardly ran: they wait "
		       "for something, or hang; they are not followed, but its goroutine profile "
		       "(net/http/pprof) shows where";
	if (query->program)
		return "this is a Go program as a whole: goroutines are not followed, but its "
		       "goroutine profile (net/http/pprof) shows where they wait";
	if (query->first)
		return "this is a thread of the process that you named first";
	if (query->stuck)
		return "this is a thread that hangs, as no thread does much";
	if (query->held)
		return "this is a thread that is held up, as the busiest one only lets time pass";
	return query->waited ? "this is a thread that waited all the time"
			     : "this is the busiest thread";
}

/* Says what is explained if the user chose nothing. */
static void say_picked(const struct why_query *query, const struct model *model)
{
	if (query->asks)
		return terminal_message(stderr,
					"waffle-bpf: why: other processes answer the requests, so "
					"this is the thread that asks for most of them; "
					"--span explains requests, which waffle-bpf report lists");
	if (query->first && query->has_spans)
		return terminal_message(
			stderr,
			"waffle-bpf: why: the requests are those of other processes, so this is %s "
			"that you named first; --span explains requests, which waffle-bpf report "
			"lists",
			query->program ? "the Go program" : "a thread of the process");
	terminal_message(
		stderr,
		"waffle-bpf: why: %s, so %s; --thread names others, which waffle-bpf report lists",
		why_pick_has_spans(model) ? "the spans take little of the time"
					  : "there are no spans",
		picked_text(query));
}

static int pick(struct why_query *query, const struct why_cli *cli, const struct model *model,
		const char *file, struct error *err)
{
	/* A span on a track can't be explained with a scheduler either. */
	int result =
		model->sched || cli->wanted.span ? why_pick(query, model, &cli->wanted, err) : 0;

	if (result)
		return result;
	if (!model->sched)
		return error_set(err, ENODATA,
				 "%s: the scheduler was not %s, so nothing can be explained; %s",
				 file, model->meta->sched ? "kept by the filter" : "recorded",
				 model->meta->sched ? "leave the filter out"
						    : "record with the source sched");
	if ((query->tid || query->program) && !cli->wanted.thread)
		say_picked(query, model);
	return 0;
}

/* What spans there are, and their causes together. It comes first, unless a thread comes before the
 * spans of others. */
static int print_overview(const struct why_cli *cli, const struct model *model,
			  const struct why_query *query, bool last, struct error *err)
{
	const struct report_view view = {OVERVIEW_ROWS, terminal_has_colour(stdout)};
	struct report_options options = REPORT_OPTIONS_DEFAULT;
	struct report *report;
	int result;

	if (!cli->overview || cli->json || !query->has_spans)
		return 0;
	options.names = stack_names_open(model->reader, true);
	result = report_new(&report, model, &options, err);
	if (!result && last)
		fputc('\n', stdout);
	if (!result)
		report_print_spans(report, &view, stdout);
	if (!result && !last)
		fputc('\n', stdout);
	report_free(report);
	stack_names_close(options.names);
	return result;
}

static int explain(const struct why_cli *cli, struct model *model, const char *file,
		   struct error *err)
{
	struct why_query query = {
		.slowest = (uint32_t)cli->slowest, .varied = cli->varied, .median = cli->median};
	struct why *why = NULL, *waits = NULL;
	struct why_waiters waiters = {0};
	struct gpu_timeline *timeline = NULL;
	int result;

	query.names = stack_names_open(model->reader, true);
	result = pick(&query, cli, model, file, err);
	if (!result && !query.first)
		result = print_overview(cli, model, &query, false, err);
	if (!result) {
		query.timeline = timeline = gpu_timeline_of_calls(model);
		result = why_new(&why, model, &query, err);
	}
	if (!result && cli->evidence)
		result = why_records_find(why, err);
	if (!result)
		result = find_waits(&waits, cli, model, &query, err);
	if (!result)
		result = find_waiters(&waiters, cli, why, &query, err);
	if (!result)
		result = load_values(model, why, waits, err);
	if (!result)
		result = print_why(cli, why, waits, &waiters, query.names, err);
	if (!result && query.first)
		result = print_overview(cli, model, &query, true, err);
	if (!result && query.tid && !cli->wanted.thread)
		suggest_step(cli, model, why, query.names);
	if (!result)
		suggest_outside(cli, why);
	why_waiters_free(&waiters);
	why_free(waits);
	why_free(why);
	gpu_timeline_free(timeline);
	stack_names_close(query.names);
	return result;
}

static int why_files(const struct command *command, const void *arg,
		     const struct capture_files *files, struct error *err)
{
	const struct why_cli *cli = arg;
	const struct model_filter keep = {.filter = cli->filter.filter,
					  .keep_children = cli->filter.keep_children,
					  .where = cli->filter.where,
					  .compact =
						  !cli->wanted.span && !cli->event && !cli->origin,
					  .only_declared = cli->event || cli->origin,
					  .from_event = cli->event != NULL};
	const struct compare compare = {.filter = &cli->filter,
					.name = cli->wanted.span,
					.rows = OVERVIEW_ROWS,
					.json = cli->json};
	struct store_reader *reader = NULL;
	struct model *model = NULL;
	int result;

	if (cli->compare)
		return compare_files(command, &compare, files, err);
	result = filter_options_open_files(command, &cli->filter, files, &reader, err);
	/* Load everything: the cause of a wait may be before the window. */
	if (!result)
		result = model_load(&model, reader, STORE_ALL, &keep, err);
	if (!result)
		result = cli->event || cli->origin ? find_origin(cli, model, err)
						   : explain(cli, model, files->paths[0], err);
	model_free(model);
	store_reader_close(reader);
	return result;
}

#define NOT_GIVEN UINT64_MAX

static const char *usage_problem(const struct why_cli *cli, int files, bool command)
{
	const struct why_wanted *wanted = &cli->wanted;
	bool targets = target_options_given(&cli->capture.target);

	if (command && targets)
		return "give a command or running processes, not both";
	if (targets && files)
		return "give files or running processes, not both";
	if (files < 1 && !targets)
		return "give a .waffle file, or all files of a job, or what to record: --pid PID, "
		       "--comm NAME or -- COMMAND";
	if (!command && !targets && (cli->capture.duration_ns || cli->capture.output))
		return "--duration and --output are for a recording: give --pid PID or -- COMMAND";
	if (cli->compare && (files != 2 || command || targets))
		return "--compare needs two files";
	if (cli->compare && (wanted->thread || cli->event || cli->origin || cli->median ||
			     cli->evidence || cli->slowest != NOT_GIVEN))
		return "--compare compares all spans, or those of a name: of the other choices "
		       "give only --span, --where and --filter";
	if (cli->filter.explain && (command || targets))
		return "--explain is for files, and for attach and run";
	if ((wanted->from_ns != NOT_GIVEN || wanted->to_ns != NOT_GIVEN) && !wanted->thread)
		return "--from and --to choose a thread's time: give --thread, too";
	if ((wanted->thread != NULL) + (wanted->span != NULL) + (cli->event != NULL) > 1)
		return "give one of --span, --thread and --event";
	if (cli->filter.where_argument && (wanted->thread || cli->event || cli->origin))
		return "--where chooses spans to explain; leave it out with --thread, --event and "
		       "--origin";
	if (cli->median && (wanted->thread || cli->event || cli->origin))
		return "--median compares spans; leave it out with --thread, --event and --origin";
	if ((cli->event || cli->origin) && cli->slowest != NOT_GIVEN)
		return "--slowest chooses slow spans; leave it out with --event and --origin";
	if (cli->origin && !wanted->span)
		return "--origin follows a span: give --span, too";
	if (wanted->from_ns != NOT_GIVEN && wanted->from_ns >= wanted->to_ns)
		return "--from has to be before --to";
	return NULL;
}

static int explain_files(const struct command *command, struct why_cli *cli,
			 const struct capture_files *files)
{
	cli->varied = cli->slowest == NOT_GIVEN && cli->overview && !cli->median;
	if (cli->slowest == NOT_GIVEN)
		cli->slowest = cli->overview ? SLOWEST_RECORDED : SLOWEST_DEFAULT;
	if (cli->wanted.from_ns == NOT_GIVEN)
		cli->wanted.from_ns = 0;
	memory_limit_set(memory_limit_default());
	return filter_options_on_files(command, &cli->filter, files, cli->json, why_files, cli);
}

/* Records, and explains what was recorded. */
static int explain_recorded(const struct command *command, struct why_cli *cli, char **argv)
{
	char path[PATH_MAX];
	const char *const arguments[] = {path};
	struct capture_files files = {.paths = arguments, .count = 1};
	enum exit_code code = why_record(command, &cli->capture, argv, path);

	if (code != EXIT_DONE)
		return (int)code;
	cli->overview = true;
	cli->attached = !argv;
	return explain_files(command, cli, &files) ?: cli->capture.status;
}

/* Whether an argument is "--", which stands before a command. options_parse() moves the positional
 * arguments to where it was, so ask before. */
static bool has_separator(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return true;
	return false;
}

static int why_run(const struct command *command, int argc, char **argv)
{
	struct why_cli cli = {.slowest = NOT_GIVEN,
			      .wanted = {.from_ns = NOT_GIVEN, .to_ns = NOT_GIVEN}};
	struct error err = ERROR_INIT;
	struct capture_files files;
	const char *problem;
	bool separated = has_separator(argc, argv);
	int first, code, result = options_parse(command, argc, argv, false, &cli, &first, &err);
	bool runs = !result && separated && first < argc;

	problem = result ? NULL : usage_problem(&cli, argc - first, runs);
	if (problem) {
		error_set(&err, EINVAL, "%s", problem);
		code = command_fail(command, &err, EXIT_USAGE);
	} else if (result) {
		code = command_parse_failed(command, result, &err);
	} else if (runs || target_options_given(&cli.capture.target)) {
		code = explain_recorded(command, &cli, runs ? argv + first : NULL);
	} else {
		files = capture_files_of(argc, argv, first);
		code = explain_files(command, &cli, &files);
	}
	target_options_free(&cli.capture.target);
	return code;
}

const struct command command_why = {
	.name = "why",
	.arguments = "[FILE… | -- COMMAND…]",
	.summary = "Explain what made spans slow, and who caused it; also of a running program",
	.details =
		"Explains what a file has; or, with --pid, --comm, --container, --unit, --cgroup "
		"or a "
		"command, first records the processes with all their children, as attach --tree "
		"and "
		"run do. Ctrl-C ends the recording, and the explanation follows. Without spans, "
		"it explains the busiest thread. Exits with the status of the command, as run "
		"does.\n\nFor each of the slowest spans, shows how long "
		"it was running, runnable "
		"(waiting for a CPU) and blocked. Then come the causes, the largest first. "
		"Each has its share of the span's time, its grade (certain, likely or "
		"unknown), and the thread and object that caused it. Each wait is followed "
		"backwards from thread to thread, along the wake-ups that ended it. So a "
		"cause is what stands at the end of the chain: the disk, not the lock in "
		"front of it. The chains below are numbered by cause.\n\ndocs/why.md "
		"explains what each cause means and what can't be known. docs/origin.md "
		"explains --event and --origin.\n\nGive the files of all ranks of a job together, "
		"such as: waffle-bpf why job.*.waffle --span MPI_Allreduce --slowest 3. Then a "
		"wait for another rank is followed into that rank's file. See docs/ranks.md.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.records = true,
	.run = why_run,
};
