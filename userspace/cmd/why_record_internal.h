/* SPDX-License-Identifier: Apache-2.0 */
/* The recording that `why` makes if no file is given: all sources, of a process or command with all
 * its descendants. */
#ifndef WAFFLE_CMD_WHY_RECORD_INTERNAL_H
#define WAFFLE_CMD_WHY_RECORD_INTERNAL_H

#include <limits.h>

#include "cmd/target_options_internal.h"

struct why_capture {
	struct target_options target;
	const char *output;   /* NULL: the name consists of the program and the time */
	uint64_t duration_ns; /* 0: the default */
	int status;           /* out: the exit status of the command, as shells report it */
};

/* Records the command in argv or, if argv is NULL, the processes that record->target names. Takes
 * ownership of the lists in record->target, and leaves them empty. Returns EXIT_DONE and the path
 * of the file. Otherwise it has printed an error, and returns the exit code. */
enum exit_code why_record(const struct command *command, struct why_capture *record, char **argv,
			  char path[PATH_MAX]);

#endif
