// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf run: starts a command with its sites armed before main, records, and prints a
 * report. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/gpu_library.h"
#include "cmd/capture_options_internal.h"
#include "target/process/injection.h"
#include "target/process/tracer_id.h"
#include "util/terminal.h"

static const struct option_row rows[] = {
	{"no-follow", 0, NULL, "Trace the command's own process only, not its children.",
	 .type = OPTION_UNSET,
	 .at = offsetof(struct capture_options, session.kernel.config.follow_children)},
	{"user", 0, "NAME",
	 "Run the command as this user, with the user's groups. Default: the user who called sudo. "
	 "With root, the command runs as root.",
	 .at = offsetof(struct capture_options, user)},
	{"gpu", 0, NULL,
	 "Let CUDA, NVTX and NCCL load libwaffle-gpu into the command, to record what GPUs did, by "
	 "the variables CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH and NCCL_PROFILER_PLUGIN "
	 "where they are not set. See docs/gpu.md.",
	 .at = offsetof(struct capture_options, gpu)},
	CAPTURE_OPTION_ROWS,
};

/* Copies the first `words` words of a command. */
static void command_line(char *text, size_t size, char **command, size_t words)
{
	size_t len = 0;

	text[0] = '\0';
	for (; *command && words && len < size - 1; command++, words--)
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? " " : "", *command);
}

/* The command's own exit status, as shells report it. */
static int status_code(const struct session_result *result)
{
	if (result->exit_status < 0)
		return EXIT_DONE; /* still running at the end of the duration */
	if (WIFSIGNALED(result->exit_status))
		return 128 + WTERMSIG(result->exit_status);
	return WEXITSTATUS(result->exit_status);
}

/* Chooses the user that the command runs as. A user other than root can only run the command as
 * itself. */
static int account_choose(struct capture_options *options, struct error *err)
{
	int code = options->user ? account_by_name(&options->account, options->user, err)
				 : account_of_caller(&options->account, err);

	if (options->account && options->account->uid == getuid() && geteuid()) {
		account_free(options->account);
		options->account = NULL;
	}
	options->session.account = options->account;
	return code;
}

/* Sets the variables by which libraries of CUDA load libwaffle-gpu, unless the caller has set them:
 * another tool may be there. */
static int gpu_variables_set(struct error *err)
{
	const char *const *names = injection_variables;
	char path[PATH_MAX];
	int result = gpu_library_path(path, err);
	const char *other = getenv(names[0]);

	if (!result && other && strcmp(other, path) != 0)
		terminal_message(stderr,
				 "waffle-bpf: run: --gpu: %s is %s, which stays: the GPU's own "
				 "times are not recorded; unset it to record them",
				 names[0], other);
	for (size_t i = 0; !result && i < INJECTION_VARIABLES; i++)
		if (setenv(names[i], path, 0))
			result = error_set(err, errno, "--gpu: %s: %s", names[i], strerror(errno));
	return result;
}

/* The library waits for us in processes that may use CUDA before we have armed it (usdt/gpu/). */
static int gpu_prepare(const struct session_options *session, struct error *err)
{
	bool arms = session->kernel.config.follow_children && session->sources & CAPTURE_SPANS;
	char id[TRACER_ID_BYTES];

	if (arms && tracer_id_make(id) && setenv(TRACER_ID_VARIABLE, id, 1))
		return error_set(err, errno, "--gpu: %s: %s", TRACER_ID_VARIABLE, strerror(errno));
	return gpu_variables_set(err);
}

static void failure_set(struct error *err, const struct capture_options *options, const char *name,
			int code)
{
	if (code > 0)
		error_set(err, code, "%s: %s", name, strerror(code));
	else
		error_set(err, -code, "%s: it can't run as user %s: %s", name,
			  options->account->name, strerror(-code));
}

int run_command(const struct command *command, struct capture_options *options, char **argv,
		struct session_result *result)
{
	const char *slash = strrchr(argv[0], '/');
	struct error err = ERROR_INIT;
	char label[4096];
	int code;

	command_line(label, sizeof(label), argv, options->redaction.args ? 1 : SIZE_MAX);
	options->session.label = label;
	options->session.command = argv;
	if (account_choose(options, &err))
		return command_fail(command, &err, EXIT_USAGE);
	if (options->gpu && gpu_prepare(&options->session, &err))
		return command_fail(command, &err, EXIT_FAILED);
	options->session.warn_of_root = !options->user && !options->account && !geteuid();
	code = capture_command(command, options, slash ? slash + 1 : argv[0], result);
	if (code == EXIT_DONE && result->exec_errno) {
		failure_set(&err, options, argv[0], result->exec_errno);
		command_fail(command, &err, EXIT_FAILED);
	}
	return code == EXIT_DONE ? status_code(result) : code;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct capture_options options;
	struct session_result result;
	struct error err = ERROR_INIT;
	int first, code;

	capture_options_init(&options);
	options.session.kernel.config.follow_children = true;
	code = options_parse(command, argc, argv, true, &options, &first, &err);
	if (!code && first == argc)
		code = error_set(&err, EINVAL, "no command; write: waffle-bpf run -- COMMAND …");
	if (code)
		code = command_parse_failed(command, code, &err);
	else if ((code = capture_options_open(command, &options)) == EXIT_DONE)
		code = run_command(command, &options, argv + first, &result);
	capture_options_free(&options);
	return code;
}

const struct command command_run = {
	.name = "run",
	.arguments = "-- COMMAND…",
	.summary = "Run a command with its sites armed before main, and report",
	.details = "Starts the command, and arms it as attach does, before its first instruction. "
		   "Follows the processes that it creates and the programs that these run, and "
		   "ends when all of them have exited. The command runs in the current folder as "
		   "the user who called sudo, with that user's groups and resource limits, on the "
		   "same terminal. It gets the environment of waffle-bpf, with HOME, USER, "
		   "LOGNAME, SHELL and XDG_RUNTIME_DIR of that user. Exits with the command's "
		   "status, or with 1 if the capture itself failed. The status is 128 + N if "
		   "signal N killed the command, and 127 if it was not found.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.run = run,
};
