/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that parse files for a command (target/worker.h). */
#ifndef WAFFLE_CMD_WORKERS_H
#define WAFFLE_CMD_WORKERS_H

#include "call/call.h"
#include "cmd/command.h"

/*
 * Makes them, once the options are known and before files are opened. `calls`: what is looked for
 * in files, which has to stay; NULL: nothing. A later call does nothing. EXIT_DONE, or the code to
 * end with.
 */
enum exit_code workers_start(const struct command *command, struct call_set *calls);

/* Ends them, and says on standard error which files ended one before. */
void workers_end(void);

#endif
