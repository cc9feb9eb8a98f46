// SPDX-License-Identifier: Apache-2.0
#include "cmd/filter_options_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/workers_internal.h"
#include "filter/plan.h"
#include "render/explain.h"
#include "util/memory.h"
#include "util/memory_limit.h"
#include "util/privileges.h"
#include "util/terminal.h"

static int filter_read(struct filter_options *options, struct error *err)
{
	const char *origin = "--filter", *argument = options->argument;

	if (!argument) {
		origin = "WAFFLE_FILTER";
		argument = getenv(origin);
	}
	if (options->where_argument && *options->where_argument) {
		int result = filter_open(&options->where, "--where", options->where_argument, err);

		if (result)
			return result;
	}
	if (argument && *argument)
		return filter_open(&options->filter, origin, argument, err);
	if (options->explain)
		return error_set(err, EINVAL, "--explain needs a --filter");
	if (options->keep_children)
		return error_set(err, EINVAL, "--keep-children needs a --filter");
	return 0;
}

enum exit_code filter_options_open(const struct command *command, struct filter_options *options)
{
	struct error err = ERROR_INIT;
	int result = filter_read(options, &err);

	if (!result)
		return EXIT_DONE;
	return command_fail(command, &err, result == -EINVAL ? EXIT_USAGE : EXIT_FAILED);
}

void filter_options_free(struct filter_options *options)
{
	filter_free(options->filter);
	filter_free(options->where);
	options->filter = NULL;
	options->where = NULL;
}

static void warning_print(const char *line, void *arg)
{
	const struct command *command = arg;

	terminal_message(stderr, "waffle-bpf: %s: %s", command->name, line);
}

/* Warns about likely mistakes in the filter. A plan is made only to examine the sites' keys, so it
 * does not matter if the filter could not run in the kernel. */
static int filter_check(const struct command *command, const struct filter_expr *filter,
			bool keep_children, const struct store_reader *reader, struct error *err)
{
	struct plan *plan;
	int result = plan_open(&plan, filter, keep_children, err);

	if (result)
		return result;
	plan->of_file = true;
	for (uint32_t i = 0; i < store_reader_site_count(reader) && !result; i++) {
		struct error problem = ERROR_INIT;
		enum plan_use use;
		uint32_t class;

		if (plan_site(plan, store_reader_site(reader, i), &use, &class, &problem) ==
		    -ENOMEM)
			result = error_set(err, ENOMEM, "%s", problem.message);
	}
	if (!result)
		plan_warn(plan, warning_print, (void *)(uintptr_t)command);
	plan_free(plan);
	return result;
}

int filter_options_open_files(const struct command *command, const struct filter_options *options,
			      const struct capture_files *files, struct store_reader **reader,
			      struct error *err)
{
	int result = capture_files_open(command, files, reader, err);

	if (result)
		return result;
	result = align_clocks(command, *reader, options->align, err);
	if (!result && options->filter)
		result = filter_check(command, options->filter, options->keep_children, *reader,
				      err);
	if (!result && options->where)
		result = filter_check(command, options->where, false, *reader, err);
	if (result) {
		store_reader_close(*reader);
		*reader = NULL;
	}
	return result;
}

static int explain_files(const struct command *command, const struct filter_options *options,
			 const struct capture_files *files, bool json, struct error *err)
{
	struct store_reader *reader;
	int result = filter_options_open_files(command, options, files, &reader, err);

	if (result)
		return result;
	if (!json)
		explain_print_file_text(options->filter, files->paths[0], stdout);
	else
		result = explain_print_file_json(options->filter, stdout);
	store_reader_close(reader);
	/* main() reports a failed write to standard output, for all commands. */
	if (result && !ferror(stdout))
		return error_set(err, -result, "%s", strerror(-result));
	return 0;
}

enum exit_code filter_options_on_files(const struct command *command,
				       struct filter_options *options,
				       const struct capture_files *files, bool json,
				       filter_files_work work, const void *cli)
{
	enum exit_code code = filter_options_open(command, options);
	struct error err = ERROR_INIT;
	int result = 0;

	privileges_keep_files();
	memory_return_large();
	if (options->memory_limit)
		memory_limit_set(options->memory_limit);
	if (code == EXIT_DONE)
		code = workers_start(command, NULL);
	if (code == EXIT_DONE)
		result = options->explain ? explain_files(command, options, files, json, &err)
					  : work(command, cli, files, &err);
	if (result < 0)
		code = command_fail(command, &err, EXIT_FAILED);
	else if (result == EXIT_READER_GONE)
		code = EXIT_READER_GONE;
	filter_options_free(options);
	return code;
}
