// SPDX-License-Identifier: Apache-2.0
/*
 * waffle-bpf demo: records and explains a simulated training of four ranks, one of which is delayed
 * by its loader. It only runs the commands that it prints.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command_internal.h"
#include "model/model.h"
#include "util/terminal.h"

#define RANKS "4"
#define STEPS "40"
#define STRAGGLER 2
#define STRAGGLER_MS "60"
#define LATE_FIRST 13 /* the two steps whose batch is late */
#define LATE_SECOND 33

struct demo {
	const char *output;
	char program[PATH_MAX];
	char trace[PATH_MAX];
};

static const struct option_row rows[] = {
	{"output", 'o', "FILE", "Write the capture to FILE instead of waffle-demo.waffle.",
	 .type = OPTION_PATH, .at = offsetof(struct demo, output)},
};

/* Finds the program: next to waffle-bpf in a build tree, or where make install puts it. */
static int program_find(char *path, size_t size, struct error *err)
{
	static const char *const places[] = {"sim/training", "../libexec/waffle/training"};
	char self[PATH_MAX], first[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length < 0)
		return error_set(err, errno, "/proc/self/exe: %s", strerror(errno));
	self[length] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if ((size_t)snprintf(path, size, "%s/%s", self, places[i]) < size &&
		    !access(path, X_OK))
			return 0;
		if (!i)
			snprintf(first, sizeof(first), "%s", path);
	}
	return error_set(
		err, ENOENT,
		"%s: neither this simulated training nor %s exists; build it with `make sim`",
		first, path);
}

/* Prints a command as a user would type it, and runs it. */
static int step(const struct command *command, const char *title, char **argv)
{
	int argc = 0;

	printf("== %s: waffle-bpf %s", title, command->name);
	for (; argv[argc]; argc++) {
		putchar(' ');
		terminal_put(stdout, argv[argc], strlen(argv[argc]));
	}
	printf("\n\n");
	fflush(stdout);
	argc = command->run(command, argc, argv);
	putchar('\n');
	return argc;
}

static int64_t span_value(const struct model *model, const struct model_span *span, const char *key)
{
	struct value_walk walk = model_values(model, span->site, span->frame);
	struct value value;

	while (value_walk_next(&walk, &value)) {
		if (!strcmp(value.key->name, key) && value.type == WAFFLE_KEY_I64)
			return value.i64;
	}
	return -1;
}

/* Whether a span is a step that was late on all ranks, on a rank that did not cause it. */
static bool is_victim(const struct model *model, const struct model_span *span)
{
	int64_t number;

	if (strcmp(model_site(model, span->site)->name, "step") != 0 ||
	    span_value(model, span, "rank") == STRAGGLER)
		return false;
	number = span_value(model, span, "step");
	return number == LATE_FIRST || number == LATE_SECOND;
}

/* The slowest of these steps. */
static uint64_t victim_pick(const struct model *model)
{
	uint64_t worst_ns = 0, id = 0;

	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		if (!is_victim(model, span) || span->end_ts - span->start_ts <= worst_ns)
			continue;
		worst_ns = span->end_ts - span->start_ts;
		id = span->id;
	}
	return id;
}

static int victim_find(const char *file, uint64_t *id, struct error *err)
{
	struct store_reader *reader = NULL;
	struct model *model = NULL;
	int result = store_reader_open(&reader, file, err);

	if (!result)
		result = model_load(&model, reader, STORE_ALL, NULL, err);
	if (!result)
		*id = victim_pick(model);
	if (!result && !*id)
		result = error_set(err, ENODATA, "%s: no step was recorded", file);
	model_free(model);
	store_reader_close(reader);
	return result;
}

/* Names the trace after the capture: "x.waffle" → "x.pftrace". */
static void trace_name(struct demo *demo)
{
	size_t length = strlen(demo->output);

	if (length > 7 && !strcmp(demo->output + length - 7, ".waffle"))
		length -= 7;
	snprintf(demo->trace, sizeof(demo->trace), "%.*s.pftrace", (int)length, demo->output);
}

static void say_begin(void)
{
	printf("A simulated training on simulated GPUs: CUDA and NCCL are stand-ins, waffle is\n"
	       "real. " RANKS
	       " ranks add up their gradients in every step. In steps %d and %d the\n"
	       "loader of rank %d takes " STRAGGLER_MS " ms longer to decode its batch.\n\n",
	       LATE_FIRST, LATE_SECOND, STRAGGLER);
}

static void say_end(const struct demo *demo)
{
	char path[PATH_MAX];
	const char *name = realpath(demo->trace, path) ? path : demo->trace;

	fputs("The trace is ", stdout);
	terminal_put(stdout, name, strlen(name));
	printf("\nOpen it in Perfetto: https://ui.perfetto.dev, then \"Open trace file\". It "
	       "stays\n"
	       "on this machine. All GPU work in it is simulated.\n");
}

static int demo_run(const struct command *command, struct demo *demo)
{
	char *record[] = {(char *)"-o",  (char *)demo->output, (char *)"-q",
			  (char *)"--",  demo->program,        (char *)"--ranks",
			  (char *)RANKS, (char *)"--steps",    (char *)STEPS,
			  NULL};
	char *export[] = {(char *)"--format", (char *)"perfetto",   (char *)"-o",
			  demo->trace,        (char *)demo->output, NULL};
	char id[32], late[64];
	char *why[] = {(char *)demo->output, (char *)"--span", id, NULL};
	struct error err = ERROR_INIT;
	uint64_t victim = 0;
	int code;

	say_begin();
	snprintf(late, sizeof(late), "%d:%s:%d:%d", STRAGGLER, STRAGGLER_MS, LATE_FIRST,
		 LATE_SECOND - LATE_FIRST);
	setenv("WAFFLE_SIM_SLOW_LOADER", late, 1);
	code = step(&command_run, "Recording a simulated training from its start", record);
	if (code)
		return code;
	if (victim_find(demo->output, &victim, &err))
		return command_fail(command, &err, EXIT_FAILED);
	snprintf(id, sizeof(id), "%#llx", (unsigned long long)victim);
	code = step(&command_why, "Why such a simulated step was slow on a rank that only waited",
		    why);
	if (code)
		return code;
	code = step(&command_export, "The same as a trace", export);
	if (!code)
		say_end(demo);
	return code;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct demo demo = {.output = "waffle-demo.waffle"};
	struct error err = ERROR_INIT;
	int first, result = options_parse(command, argc, argv, false, &demo, &first, &err);

	if (result)
		return command_parse_failed(command, result, &err);
	if (first != argc) {
		error_set(&err, EINVAL, "it takes no arguments, got '%s'", argv[first]);
		return command_fail(command, &err, EXIT_USAGE);
	}
	if (program_find(demo.program, sizeof(demo.program), &err))
		return command_fail(command, &err, EXIT_FAILED);
	trace_name(&demo);
	return demo_run(command, &demo);
}

const struct command command_demo = {
	.name = "demo",
	.arguments = "",
	.summary = "Record and explain a simulated training of four ranks, without a GPU",
	.details = "Runs a training of four processes on stand-ins of CUDA and NCCL, in which the "
		   "loader of one rank is sometimes late. Records it as `waffle-bpf run` does, and "
		   "prints the report. Then explains the slowest step of a rank that only waited, "
		   "and writes a Perfetto trace. No time in it is a GPU's, and all output says so.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.run = run,
};
