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

/* --to and --spool of attach and run: the same as an export() at the end of the chain. */
#define SERVER_OPTION_ROWS(options, to_member, spool_member)                                       \
	{"to",                                                                                     \
	 0,                                                                                        \
	 "URL",                                                                                    \
	 "Send whole spans with their events to this server while the program runs: "              \
	 "http://localhost:4318 or grpc://localhost:4317 of Jaeger or an OpenTelemetry "           \
	 "collector, http://localhost:9411/api/v2/spans of Zipkin; or metrics to "                 \
	 "http://localhost:9090/api/v1/write of Prometheus. With --process, what passes its "      \
	 "chain. See docs/backends.md.",                                                           \
	 .type = OPTION_PATH,                                                                      \
	 .at = offsetof(options, to_member)},                                                      \
	{                                                                                          \
		"spool", 0, "FOLDER",                                                              \
			"With --to, keep in this folder what could not be sent, and send it "      \
			"later. "                                                                  \
			"Default: it is dropped after five minutes.",                              \
			.type = OPTION_PATH, .at = offsetof(options, spool_member)                 \
	}

/* Opens the chain. `origin` is the option that it is from. `unix_offset_ns`: from CLOCK_MONOTONIC
 * to the time since 1970; `finished`: the records are of a file. Its messages go to standard error.
 */
int process_options_open(struct chain **chain, const struct command *command, const char *origin,
			 const char *text, const char *service, int64_t unix_offset_ns,
			 bool finished, struct error *err);
/* Passes all records of a capture file to a chain, and closes that. */
int process_options_file(struct chain *chain, struct store_reader *reader,
			 struct store_window window, struct error *err);

#endif
