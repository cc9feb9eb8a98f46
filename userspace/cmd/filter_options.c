// SPDX-License-Identifier: Apache-2.0
#include "cmd/filter_options.h"

#include <stdio.h>
#include <stdlib.h>

#include "export/report_text.h"

static int filter_read(struct filter_options *options, struct error *err)
{
	const char *origin = "--filter", *argument = options->argument;

	if (!argument) {
		origin = "WAFFLE_FILTER";
		argument = getenv(origin);
	}
	if (argument && *argument)
		return filter_open(&options->filter, origin, argument, err);
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
	options->filter = NULL;
}

void filter_options_explain_file(const struct filter_options *options, const char *file)
{
	printf("%s is recorded already: no sites are armed, nothing is in the kernel.\n", file);
	if (!options->filter) {
		puts("There is no filter: all of it is kept.");
		return;
	}
	fputs("waffle-bpf evaluates the whole expression for each span and event: ", stdout);
	report_put_expression(stdout, filter_source(options->filter));
	putchar('\n');
}
