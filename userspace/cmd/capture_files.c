// SPDX-License-Identifier: Apache-2.0
#include "cmd/capture_files_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/clock.h"
#include "util/terminal.h"

static bool same_file(const char *a, const char *b)
{
	struct stat first, second;

	return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

bool capture_files_have(const struct capture_files *files, const char *path)
{
	for (uint32_t i = 0; i < files->count; i++)
		if (same_file(path, files->paths[i]))
			return true;
	return false;
}

int capture_files_spare(const struct capture_files *files, const char *path, struct error *err)
{
	if (!path || !strcmp(path, "-") || !capture_files_have(files, path))
		return 0;
	return error_set(err, EINVAL, "%s: is the capture itself; write to another file", path);
}

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

struct store_window capture_files_window(const struct store_reader *reader, uint64_t from_ns,
					 uint64_t to_ns)
{
	uint64_t start_ts = store_reader_meta(reader)->start_ts;

	/* A record may be from before the start, such as a span of a device. */
	return (struct store_window){from_ns ? clock_after(start_ts, from_ns) : 0,
				     clock_after(start_ts, to_ns)};
}
