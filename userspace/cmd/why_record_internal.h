/* SPDX-License-Identifier: Apache-2.0 */
/* The recording of `why` without a file: everything that explains waits, of a tree of processes. */
#ifndef WAFFLE_CMD_WHY_RECORD_INTERNAL_H
#define WAFFLE_CMD_WHY_RECORD_INTERNAL_H

#include <limits.h>

#include "cmd/target_options_internal.h"

struct why_capture {
	struct target_options target;
	const char *output;   /* NULL: the name consists of the program and the time */
	uint64_t duration_ns; /* 0: the default */
};

/* Records the processes that record->target names or, if argv is not NULL, this command. Takes
 * the lists of record->target over. Returns EXIT_DONE and the path of the file, or the code to exit
 * with after it printed an error. */
enum exit_code why_record(const struct command *command, struct why_capture *record, char **argv,
			  char path[PATH_MAX]);

#endif
