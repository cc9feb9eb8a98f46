/* SPDX-License-Identifier: Apache-2.0 */
/* The worker processes that parse files for a command (target/worker/worker.h). */
#ifndef WAFFLE_CMD_WORKERS_INTERNAL_H
#define WAFFLE_CMD_WORKERS_INTERNAL_H

#include "cmd/command_internal.h"
#include "probe/spec/call.h"

/*
 * Starts the workers, after the options were parsed and before any file is opened. `calls` are the
 * probe specs to find in files, or NULL; they must outlive the workers. A later call does nothing.
 * Returns EXIT_DONE or the exit code.
 */
enum exit_code workers_start(const struct command *command, struct call_set *calls);

/* Ends the workers. Prints on standard error which files made a worker end early. */
void workers_end(void);

#endif
