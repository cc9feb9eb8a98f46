// SPDX-License-Identifier: Apache-2.0
#include "cmd/capture_files_internal.h"

#include <stdio.h>

#include "util/terminal.h"

static void warning_print(const char *line, void *arg)
{
	const struct command *command = arg;

	terminal_message(stderr, "waffle-bpf: %s: %s", command->name, line);
}

int capture_files_open(const struct command *command, const struct capture_files *files,
		       struct store_reader **reader, struct error *err)
{
	const struct store_open_options options = {.warn = warning_print,
						   .arg = (void *)(uintptr_t)command};

	return store_reader_open_files(reader, files->paths, files->count, &options, err);
}
