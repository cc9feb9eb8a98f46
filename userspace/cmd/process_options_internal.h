/* SPDX-License-Identifier: Apache-2.0 */
/* --process of attach, run and export: a chain of processors (export/process/chain.h). */
#ifndef WAFFLE_CMD_PROCESS_OPTIONS_INTERNAL_H
#define WAFFLE_CMD_PROCESS_OPTIONS_INTERNAL_H

#include "cmd/command_internal.h"
#include "export/process/chain.h"
#include "store/store.h"

#define PROCESS_OPTION_ROW(options, member)                                                        \
	{                                                                                          \
		"process", 0, "CHAIN",                                                             \
			"Give each whole span, event, counter and log message to a chain of "      \
			"processors, such as 'sample(1/10),metrics(histogram=dur),log(json)'. "    \
			"See "                                                                     \
			"docs/processors.md.",                                                     \
			.type = OPTION_PATH, .choice = chain_processor,                            \
			.at = offsetof(options, member)                                            \
	}

/* Opens the chain. `unix_offset_ns`: from CLOCK_MONOTONIC to the time since 1970; `finished`: the
 * records are of a file. Its messages go to standard error. */
int process_options_open(struct chain **chain, const struct command *command, const char *text,
			 const char *service, int64_t unix_offset_ns, bool finished,
			 struct error *err);
/* Passes all records of a capture file to a chain, and closes that. */
int process_options_file(struct chain *chain, struct store_reader *reader,
			 struct store_window window, struct error *err);

#endif
