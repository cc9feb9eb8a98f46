// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf run: start a command with its sites armed before main, record, report. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd/capture_options.h"

static int set_no_follow(void *options, const char *value, struct error *err)
{
	(void)value;
	(void)err;
	((struct capture_options *)options)->session.follow = false;
	return 0;
}

static const struct option_row rows[] = {
	{"no-follow", 0, NULL, "trace the command's own process only, not its children",
	 .set = set_no_follow},
	CAPTURE_OPTION_ROWS,
};

static void command_line(char *text, size_t size, char **command)
{
	size_t len = 0;

	text[0] = '\0';
	for (; *command && len < size - 1; command++)
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? " " : "", *command);
}

/* The command's own status, as a shell gives it. */
static int status_code(const struct session_result *result)
{
	if (result->exit_status < 0)
		return EXIT_DONE; /* still running: the time was up */
	if (WIFSIGNALED(result->exit_status))
		return 128 + WTERMSIG(result->exit_status);
	return WEXITSTATUS(result->exit_status);
}

static int run_command(const struct command *command, struct capture_options *options, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	struct session_result result;
	struct error err = ERROR_INIT;
	char label[4096];
	int code;

	command_line(label, sizeof(label), argv);
	options->session.label = label;
	options->session.command = argv;
	code = capture_command(command, options, slash ? slash + 1 : argv[0], &result);
	if (code == EXIT_DONE && result.exec_errno) {
		error_set(&err, result.exec_errno, "%s: %s", argv[0], strerror(result.exec_errno));
		command_fail(command, &err, EXIT_FAILED);
	}
	return code == EXIT_DONE ? status_code(&result) : code;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct capture_options options;
	struct error err = ERROR_INIT;
	int first, code;

	capture_options_init(&options);
	options.session.follow = true;
	code = options_parse(command, argc, argv, true, &options, &first, &err);
	if (!code && first == argc)
		code = error_set(&err, EINVAL, "no command; write: waffle-bpf run -- COMMAND …");
	if (code)
		code = command_parse_failed(command, code, &err);
	else if ((code = capture_options_open(command, &options)) == EXIT_DONE)
		code = run_command(command, &options, argv + first);
	capture_options_free(&options);
	return code;
}

const struct command command_run = {
	.name = "run",
	.arguments = "-- COMMAND…",
	.summary = "Run a command with its sites armed before main, and report",
	.details = "Starts the command, arms it as attach does before its first instruction, "
		   "follows the "
		   "processes it makes and the programs they run, and ends when all of them have "
		   "exited. Exits with the command's status (128 + N if signal N killed it, 127 if "
		   "it was not found), or with 1 if the capture itself failed.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.run = run,
};
