// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/align_options_internal.h"
#include "cmd/capture_files_internal.h"
#include "cmd/command_internal.h"
#include "model/model.h"
#include "render/info.h"
#include "store/store.h"
#include "util/memory_limit.h"
#include "util/privileges.h"

struct info_cli {
	bool json;
	enum clock_align align;
	uint64_t memory_limit;
};

static const struct option_row rows[] = {
	{"json", 0, NULL, "Print JSON.", .at = offsetof(struct info_cli, json)},
	ALIGN_OPTION_ROW(struct info_cli, align),
	MEMORY_OPTION_ROW(struct info_cli, memory_limit),
};

static int print_info(const struct model *model, bool json, struct error *err)
{
	int result = 0;

	if (json)
		result = info_print_json(model, stdout);
	else
		info_print_text(model, stdout);
	/* main() reports a failed write to standard output, for all commands. */
	if (result && !ferror(stdout))
		return error_set(err, -result, "%s", strerror(-result));
	return 0;
}

/* Clocks that cannot be aligned are an error. But info is how one finds out which files do not
 * belong together, so it shows all else, with the hosts by the wall clock. */
static int print_files(const struct command *command, const struct info_cli *cli,
		       struct store_reader *reader, struct error *err)
{
	struct error other = ERROR_INIT;
	struct model *model = NULL;
	int aligned = align_clocks(command, reader, cli->align, err);
	int result = aligned;

	if (aligned == -EDOM)
		result = align_clocks(command, reader, CLOCK_ALIGN_WALL, &other);
	if (!result)
		result = model_load(&model, reader, STORE_ALL, NULL, &other);
	if (!result)
		result = print_info(model, cli->json, &other);
	model_free(model);
	if (result && !aligned)
		*err = other;
	return aligned ?: result;
}

static int info_run(const struct command *command, int argc, char **argv)
{
	struct error err = ERROR_INIT;
	struct store_reader *reader = NULL;
	struct capture_files files;
	struct info_cli cli = {0};
	int first, result = options_parse(command, argc, argv, false, &cli, &first, &err);

	if (result)
		return command_parse_failed(command, result, &err);
	privileges_keep_files();
	if (cli.memory_limit)
		memory_limit_set(cli.memory_limit);
	if (argc - first < 1) {
		error_set(&err, EINVAL, "give a .waffle file, or all files of a job");
		return command_fail(command, &err, EXIT_USAGE);
	}
	files = capture_files_of(argc, argv, first);
	result = capture_files_open(command, &files, &reader, &err);
	if (!result)
		result = print_files(command, &cli, reader, &err);
	store_reader_close(reader);
	return result ? command_fail(command, &err, EXIT_FAILED) : EXIT_DONE;
}

const struct command command_info = {
	.name = "info",
	.arguments = "FILE…",
	.summary = "Show what a .waffle file contains and where it comes from",
	.details = "",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = info_run,
};
