// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf attach: arms the sites of running processes, records, and prints a report. */
#include <stdio.h>
#include <string.h>

#include "capture/gpu_library.h"
#include "cmd/capture_options_internal.h"
#include "target/process/process.h"
#include "util/terminal.h"

static const struct option_row rows[] = {
	TARGET_OPTION_ROWS(struct capture_options, target, ""),
	{"tree", 0, NULL,
	 "Also trace the children that the processes have, their children and so on, and, as with "
	 "--follow, those that they create from now on.",
	 .at = offsetof(struct capture_options, target.tree)},
	{"follow", 'f', NULL, "Also trace the children that the processes create from now on.",
	 .at = offsetof(struct capture_options, session.kernel.config.follow_children)},
	{"gpu", 0, NULL,
	 "Load libwaffle-gpu into the processes, where it stays, to record what GPUs did and "
	 "ranges of NVTX. A thread that waits in a system call is interrupted for it. Without "
	 "this option the library is used where it is already. See docs/gpu.md.",
	 .at = offsetof(struct capture_options, gpu)},
	CAPTURE_OPTION_ROWS,
};

/* Finds the processes. Those that may have more of their kind are found again later. */
static int targets_find(struct capture_options *options, struct error *err)
{
	struct session_options *session = &options->session;
	int result = target_options_find(&options->targets, &options->target, err);

	if (target_options_grow(&options->target)) {
		session->find = target_options_find;
		session->find_arg = &options->target;
		session->kernel.config.follow_children = true;
	}
	session->pids = options->targets.data;
	session->pid_count = options->targets.len;
	session->found = !options->target.pids.len;
	for (size_t i = 0; i < options->target.pids.len && !result; i++)
		result = process_check((pid_t)options->target.pids.data[i], err);
	return result;
}

/* Loads libwaffle-gpu into the processes. It is an error if none of them gets it. */
static int gpu_load(const struct capture_options *options, struct error *err)
{
	size_t failed = 0;

	for (size_t i = 0; i < options->targets.len; i++) {
		struct error one = ERROR_INIT;

		if (!gpu_library_load(options->targets.data[i], &one))
			continue;
		if (++failed == options->targets.len)
			return error_set(err, EPERM, "--gpu: %s", one.message);
		if (!options->quiet)
			terminal_message(stderr, "waffle-bpf: attach: --gpu: %s", one.message);
	}
	return 0;
}

int attach_command(const struct command *command, struct capture_options *options,
		   struct session_result *result)
{
	struct error err = ERROR_INIT;
	char comm[16], label[64];

	if (targets_find(options, &err) || (options->gpu && gpu_load(options, &err)))
		return command_fail(command, &err, EXIT_FAILED);
	process_comm(options->targets.data[0], comm);
	snprintf(label, sizeof(label), "%s (pid %d)", comm, options->targets.data[0]);
	options->session.label = label;
	return capture_command(command, options, comm, result);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct capture_options options;
	struct session_result result;
	struct error err = ERROR_INIT;
	int first, code;

	capture_options_init(&options);
	code = options_parse(command, argc, argv, false, &options, &first, &err);
	if (!code && first < argc)
		code = error_set(&err, EINVAL, "'%s': unexpected; attach takes options only",
				 argv[first]);
	if (!code && !target_options_given(&options.target))
		code = error_set(&err, EINVAL,
				 "nothing to attach to; give --pid PID, --comm NAME, --container "
				 "NAME, --unit NAME or --cgroup PATH");
	if (code)
		code = command_parse_failed(command, code, &err);
	else if ((code = capture_options_open(command, &options)) == EXIT_DONE)
		code = attach_command(command, &options, &result);
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
		   "processes need no restart and are not stopped, except by --gpu. The kernel "
		   "disarms them when waffle-bpf ends, even if it is killed.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.run = run,
};
