/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a command reads as one capture: one file, or all files of a job. */
#ifndef WAFFLE_CMD_CAPTURE_FILES_INTERNAL_H
#define WAFFLE_CMD_CAPTURE_FILES_INTERNAL_H

#include "cmd/command_internal.h"
#include "store/store.h"

struct capture_files {
	const char *const *paths;
	uint32_t count;
};

/* The command's arguments from `first` on. */
static inline struct capture_files capture_files_of(int argc, char **argv, int first)
{
	return (struct capture_files){(const char *const *)argv + first, (uint32_t)(argc - first)};
}

/* Whether a path leads to one of the files. */
bool capture_files_have(const struct capture_files *files, const char *path);

/* Refuses an output that would replace one of the files. `path` NULL or "-": there is none. */
int capture_files_spare(const struct capture_files *files, const char *path, struct error *err);

/* Opens the files, and prints a warning for what is missing in a job. */
int capture_files_open(const struct command *command, const struct capture_files *files,
		       struct store_reader **reader, struct error *err);

/* The window between two times since the begin of the captures. 0 and UINT64_MAX set no bound. */
struct store_window capture_files_window(const struct store_reader *reader, uint64_t from_ns,
					 uint64_t to_ns);

#endif
