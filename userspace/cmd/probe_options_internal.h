/* SPDX-License-Identifier: Apache-2.0 */
/* Options with probe specs, shared by attach, run and list. */
#ifndef WAFFLE_CMD_PROBE_OPTIONS_INTERNAL_H
#define WAFFLE_CMD_PROBE_OPTIONS_INTERNAL_H

#include "cmd/command_internal.h"
#include "probe/spec/call.h"
#include "probe/spec/python_spec.h"
#include "util/vec.h"

struct probe_options {
	option_list list; /* of --probe and --probes */
	/* Set by probe_options_open(). */
	struct call_set *calls; /* NULL: there are no specs of calls */
	struct python_spec functions[PYTHON_SPECS_MAX];
	size_t function_count;
};

/* Rows for a command whose options struct has a struct probe_options as `member`. */
#define PROBE_OPTION_ROWS(options, member)                                                         \
	{"probe",                                                                                  \
	 0,                                                                                        \
	 "SPEC",                                                                                   \
	 "Record a function, USDT probe or tracepoint as spans or events, such as "                \
	 "'uprobe:libc.so.6:malloc(size_t bytes) -> ptr ret' or, of Python, "                      \
	 "'python:train.py:train_step'. May be given several times. See docs/probes.md.",          \
	 .type = OPTION_LIST,                                                                      \
	 .at = offsetof(options, member.list)},                                                    \
	{                                                                                          \
		"probes", 0, "FILE",                                                               \
			"Read probe descriptions from FILE, one a line, or from the set of this "  \
			"name that comes with waffle. May be given several times.",                \
			.type = OPTION_LIST, .at = offsetof(options, member.list)                  \
	}

/*
 * Parses the specs, and the tables that are wanted: a bit for each enum call_table. Returns
 * EXIT_DONE; otherwise it printed an error, and the command has to exit with this code.
 */
enum exit_code probe_options_open(const struct command *command, struct probe_options *options,
				  unsigned tables);
void probe_options_free(struct probe_options *options);

#endif
