// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf attach: arms the sites of running processes, records, and prints a report. */
#include <stdio.h>
#include <string.h>

#include "cmd/capture_options_internal.h"
#include "target/process/process.h"

static const struct option_row rows[] = {
	{"pid", 'p', "PID", "The process to trace. May be given several times.",
	 .type = OPTION_NUMBERS, .min = 1, .max = PROCESS_PID_MAX,
	 .at = offsetof(struct capture_options, pids)},
	{"comm", 0, "NAME",
	 "Trace all processes of this name. Any user can give a process any name. May be given "
	 "several times.",
	 .type = OPTION_LIST, .at = offsetof(struct capture_options, comms)},
	{"follow", 'f', NULL, "Also trace the children that the processes create from now on.",
	 .at = offsetof(struct capture_options, session.kernel.config.follow_children)},
	CAPTURE_OPTION_ROWS,
};

/* Collects all pids of the options, without duplicates. */
static int pids_resolve(struct capture_options *options, struct error *err)
{
	pid_list *targets = &options->targets, found = {0};
	int result = 0;

	for (size_t i = 0; i < options->pids.len && !result; i++)
		if (!vec_push(targets, (pid_t)options->pids.data[i]))
			result = error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < options->comms.len && !result; i++)
		result = process_find(&found, options->comms.data[i].text, err);
	for (size_t i = 0; i < found.len && !result; i++)
		if (!vec_push(targets, found.data[i]))
			result = error_set(err, ENOMEM, "out of memory");
	vec_free(&found);
	for (size_t i = 0; i < targets->len; i++)
		for (size_t j = targets->len; j-- > i + 1;)
			if (targets->data[j] == targets->data[i])
				targets->data[j] = targets->data[--targets->len];
	options->session.pids = targets->data;
	options->session.pid_count = targets->len;
	return result;
}

static int attach(const struct command *command, struct capture_options *options)
{
	struct session_result result;
	struct error err = ERROR_INIT;
	char comm[16], label[64];

	if (!options->pids.len && !options->comms.len) {
		error_set(&err, EINVAL, "nothing to attach to; give --pid PID or --comm NAME");
		return command_fail(command, &err, EXIT_USAGE);
	}
	if (pids_resolve(options, &err))
		return command_fail(command, &err, EXIT_FAILED);
	for (size_t i = 0; i < options->targets.len; i++)
		if (process_check(options->targets.data[i], &err))
			return command_fail(command, &err, EXIT_FAILED);
	process_comm(options->targets.data[0], comm);
	snprintf(label, sizeof(label), "%s (pid %d)", comm, options->targets.data[0]);
	options->session.label = label;
	return capture_command(command, options, comm, &result);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct capture_options options;
	struct error err = ERROR_INIT;
	int first, code;

	capture_options_init(&options);
	code = options_parse(command, argc, argv, false, &options, &first, &err);
	if (!code && first < argc)
		code = error_set(&err, EINVAL, "'%s': unexpected; attach takes options only",
				 argv[first]);
	if (code)
		code = command_parse_failed(command, code, &err);
	else if ((code = capture_options_open(command, &options)) == EXIT_DONE)
		code = attach(command, &options);
	capture_options_free(&options);
	return code;
}

const struct command command_attach = {
	.name = "attach",
	.arguments = "",
	.summary = "Arm the sites of running processes, record until Ctrl-C, and report",
	.details = "Arms every site of the processes and their libraries, including libraries "
		   "opened later, and the calls of CUDA and NCCL if they have any. Records spans, "
		   "events and what the scheduler did with the threads. Ends after --duration, "
		   "when all processes have exited, or at Ctrl-C, and prints the report. The "
		   "processes need no restart and are never stopped. The kernel disarms them when "
		   "waffle-bpf ends, even if it is killed.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.run = run,
};
