// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf merge: writes the files of a job to one file. */
#include <stdio.h>
#include <string.h>

#include "cmd/align_options_internal.h"
#include "cmd/capture_files_internal.h"
#include "cmd/command_internal.h"
#include "store/store.h"
#include "util/memory_limit.h"
#include "util/privileges.h"
#include "util/terminal.h"
#include "util/units.h"

struct merge_cli {
	const char *output;
	enum clock_align align;
	uint64_t memory_limit;
};

static const struct option_row rows[] = {
	{"output", 'o', "OUT", "The file to write. Required.", .type = OPTION_PATH,
	 .at = offsetof(struct merge_cli, output)},
	ALIGN_OPTION_ROW(struct merge_cli, align),
	MEMORY_OPTION_ROW(struct merge_cli, memory_limit),
};

static const char *usage_problem(const struct merge_cli *cli, const struct capture_files *files)
{
	if (!files->count)
		return "give the .waffle files of a job";
	if (!cli->output)
		return "say with --output which file to write";
	if (capture_files_have(files, cli->output))
		return "--output is one of the files to merge; write to another one";
	return NULL;
}

static void print_line(const struct merge_cli *cli, const struct store_reader *reader,
		       const struct store_written *written)
{
	char records[UNITS_TEXT], bytes[UNITS_TEXT];
	uint32_t captures = store_reader_capture_count(reader);
	uint32_t hosts = store_reader_host_count(reader);

	terminal_put(stdout, cli->output, strlen(cli->output));
	printf(": %s records of %u %s from %u %s, %s\n",
	       units_format_count(records, written->records), captures,
	       units_plural(captures, "capture", "captures"), hosts,
	       units_plural(hosts, "host", "hosts"), units_format_bytes(bytes, written->bytes));
}

static int merge_files(const struct command *command, const struct merge_cli *cli,
		       const struct capture_files *files, struct error *err)
{
	struct store_reader *reader = NULL;
	struct store_written written;
	char left_out[UNITS_TEXT];
	int result = capture_files_open(command, files, &reader, err)
			     ?: align_clocks(command, reader, cli->align, err)
			     ?: store_reader_write(reader, cli->output, &written, err);

	if (!result && written.left_out)
		terminal_message(stderr,
				 "waffle-bpf: %s: %s stacks, names and mappings were left out, "
				 "since a file has room for no more; read the files themselves",
				 command->name, units_format_count(left_out, written.left_out));
	if (!result)
		print_line(cli, reader, &written);
	store_reader_close(reader);
	return result;
}

static int merge_run(const struct command *command, int argc, char **argv)
{
	struct merge_cli cli = {0};
	struct error err = ERROR_INIT;
	struct capture_files files;
	const char *problem;
	int first, result = options_parse(command, argc, argv, false, &cli, &first, &err);

	if (result)
		return command_parse_failed(command, result, &err);
	if (cli.memory_limit)
		memory_limit_set(cli.memory_limit);
	files = capture_files_of(argc, argv, first);
	problem = usage_problem(&cli, &files);
	if (problem) {
		error_set(&err, EINVAL, "%s", problem);
		return command_fail(command, &err, EXIT_USAGE);
	}
	privileges_keep_files();
	result = merge_files(command, &cli, &files, &err);
	return result ? command_fail(command, &err, EXIT_FAILED) : EXIT_DONE;
}

const struct command command_merge = {
	.name = "merge",
	.arguments = "FILE…",
	.summary = "Write the .waffle files of a job to one file",
	.details =
		"All commands that read a capture take the files of a job as well. One file is "
		"easier to keep and to send, and faster to open. It has the hosts, their "
		"clocks and the ranks of the files, and every command shows the same of it. It "
		"can't be merged again with other files if it has several hosts.\n\nFor example: "
		"waffle-bpf merge -o all.waffle job.*.waffle. From then on give all.waffle alone, "
		"without the files that are in it.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = merge_run,
};
