// SPDX-License-Identifier: Apache-2.0
#include "cmd/why_record_internal.h"

#include <errno.h>
#include <stdio.h>

#include "cmd/capture_options_internal.h"

#define DURATION_NS 10000000000ull

enum exit_code why_record(const struct command *command, struct why_capture *record, char **argv,
			  char path[PATH_MAX])
{
	/* Waits are explained best with their stacks. */
	static const struct option_item stacks = {NULL, "sched"};
	struct session_result result = {.exit_status = -1};
	struct capture_options options;
	struct error err = ERROR_INIT;
	int code;

	capture_options_init(&options);
	options.target = record->target;
	record->target = (struct target_options){0};
	options.target.tree = true;
	options.output = record->output;
	options.no_report = true;
	options.mpi = true;
	/* Every record may explain a wait; --filter chooses what is shown. */
	options.filter.argument = "";
	options.session.kernel.config.follow_children = true;
	options.session.kernel.requests = true;
	options.session.wakers = true;
	options.session.duration_ns = record->duration_ns ?: (argv ? 0 : DURATION_NS);
	if (!vec_push(&options.stack_words, stacks)) {
		error_set(&err, ENOMEM, "out of memory");
		code = command_fail(command, &err, EXIT_FAILED);
	} else if ((code = capture_options_open(command, &options)) == EXIT_DONE) {
		code = argv ? run_command(command, &options, argv, &result)
			    : attach_command(command, &options, &result);
		/* A command that fails may be just what is to be explained. */
		if (argv && result.file_written && !result.exec_errno) {
			record->status = code;
			code = EXIT_DONE;
		} else if (code == EXIT_DONE && !result.file_written)
			code = EXIT_FAILED;
		snprintf(path, PATH_MAX, "%s", result.output);
	}
	capture_options_free(&options);
	return (enum exit_code)code;
}
