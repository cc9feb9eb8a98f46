// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf: finds the command in the table and runs it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command_internal.h"
#include "cmd/help_internal.h"
#include "cmd/workers_internal.h"
#include "util/memory.h"
#include "util/memory_limit.h"
#include "util/suggest.h"
#include "util/output.h"
#include "util/terminal.h"

static int help_run(const struct command *command, int argc, char **argv);

struct help_options {
	bool man, markdown;
};

static const struct option_row help_options[] = {
	{"man", 0, NULL, "Print the manual page waffle-bpf(8) in roff.",
	 .at = offsetof(struct help_options, man)},
	{"markdown", 0, NULL, "Print the help of all commands in Markdown.",
	 .at = offsetof(struct help_options, markdown)},
};

static const struct command command_help = {
	.name = "help",
	.arguments = "[COMMAND]",
	.summary = "Show what there is, or how a command is used",
	.details = "",
	.options = help_options,
	.option_count = sizeof(help_options) / sizeof(help_options[0]),
	.run = help_run,
};

static const struct command *const commands[] = {
	&command_attach, &command_run,    &command_list,  &command_report, &command_why,
	&command_gpu,    &command_replay, &command_view,  &command_info,   &command_export,
	&command_merge,  &command_repair, &command_check, &command_demo,   &command_help,
};

static const struct command_table command_table = {commands,
						   sizeof(commands) / sizeof(commands[0])};

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < command_table.count; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int command_unknown(const char *name)
{
	const char *glue = "; did you mean ";
	char near[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < command_table.count; i++) {
		if (!suggest_similar(name, commands[i]->name))
			continue;
		len += (size_t)snprintf(near + len, sizeof(near) - len, "%s%s", glue,
					commands[i]->name);
		glue = " or ";
	}
	terminal_message(stderr, "waffle-bpf: %s: no such command%s%s", name, near,
			 len ? "?" : "; see waffle-bpf help");
	return EXIT_USAGE;
}

static int help_run(const struct command *command, int argc, char **argv)
{
	struct help_options options = {0};
	const struct command *about;
	struct error err = ERROR_INIT;
	int first;
	int ret = options_parse(command, argc, argv, false, &options, &first, &err);

	if (ret)
		return command_parse_failed(command, ret, &err);
	if (options.man) {
		help_man(stdout, &command_table);
	} else if (options.markdown) {
		help_markdown(stdout, &command_table);
	} else if (first == argc) {
		help_overview(stdout, &command_table);
	} else {
		about = command_find(argv[first]);
		if (!about)
			return command_unknown(argv[first]);
		help_command(stdout, about);
	}
	return EXIT_DONE;
}

static void signal_ignore(int number)
{
	(void)number;
}

/*
 * Writes must fail instead of killing the process when a reader has exited (`waffle-bpf report F |
 * head`) or a file size limit is reached. Otherwise a capture would end half-way, or a temporary
 * file would be left behind. This is a handler rather than SIG_IGN because a program started by
 * `run` would inherit the latter.
 */
static void write_signals_catch(void)
{
	struct sigaction action = {.sa_handler = signal_ignore, .sa_flags = SA_RESTART};

	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGXFSZ, &action, NULL);
}

/* A failed write to standard output is an error, unless its reader has exited. */
static int output_finish(int code)
{
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	if (output_reader_is_gone())
		return code;
	if (code != EXIT_DONE) /* it has printed an error already */
		return code;
	terminal_message(stderr,
			 "waffle-bpf: standard output could not be written; is the disk full?");
	return EXIT_FAILED;
}

/* The last guard (util/memory.h). */
static void memory_is_out(void *command, struct error *err)
{
	error_set(err, ENOMEM, "out of memory");
	workers_end();
	exit(command_fail(command, err, EXIT_FAILED));
}

int main(int argc, char **argv)
{
	struct memory_guard guard = {.call = memory_is_out};
	const struct command *command;
	const char *name = argc > 1 ? argv[1] : "";
	int code;

	write_signals_catch();
	if (!*name) {
		help_overview(stderr, &command_table);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("waffle-bpf %s\n", WAFFLE_VERSION);
		return output_finish(EXIT_DONE);
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = command_help.name;
	command = command_find(name);
	if (!command)
		return command_unknown(name);
	if (command->reads_captures && !command->records)
		memory_limit_set(memory_limit_default());
	guard.arg = (void *)command;
	memory_guard_set(&guard);
	code = command->run(command, argc - 2, argv + 2);
	workers_end();
	return output_finish(code);
}
