/* SPDX-License-Identifier: Apache-2.0 */
/* Options with probe specs, shared by attach, run and list. */
#ifndef WAFFLE_CMD_PROBE_OPTIONS_INTERNAL_H
#define WAFFLE_CMD_PROBE_OPTIONS_INTERNAL_H

#include "cmd/command_internal.h"
#include "probe/spec/call.h"
#include "util/vec.h"

struct probe_option {
	const char *text;
	bool file; /* of --probes: a path, or the name of a set that comes with waffle */
};

struct probe_options {
	VEC(struct probe_option) list;
	struct call_set *calls; /* set by probe_options_open(); NULL: there are no specs */
};

/* `set` functions of option_row, where *options is a struct probe_options. */
int set_probe(void *options, const char *value, struct error *err);
int set_probes(void *options, const char *value, struct error *err);

/* Rows for a command whose options struct has a struct probe_options as `member`. */
#define PROBE_OPTION_ROWS(type, member)                                                            \
	{"probe",                                                                                  \
	 0,                                                                                        \
	 "SPEC",                                                                                   \
	 "Record a function, USDT probe or tracepoint as spans or events, such as "                \
	 "'uprobe:libc.so.6:malloc(size_t bytes) -> ptr ret'. May be given several "               \
	 "times. See docs/probes.md.",                                                             \
	 .at = offsetof(type, member),                                                             \
	 .set = set_probe},                                                                        \
	{                                                                                          \
		"probes", 0, "FILE",                                                               \
			"Read probe descriptions from FILE, one a line, or from the set of this "  \
			"name "                                                                    \
			"that comes with waffle. May be given several times.",                     \
			.at = offsetof(type, member), .set = set_probes                            \
	}

/*
 * Parses the specs, and the built-in sets that are wanted. Returns EXIT_DONE; otherwise it printed
 * an error, and the command has to exit with this code.
 */
enum exit_code probe_options_open(const struct command *command, struct probe_options *options,
				  bool cuda, bool nccl);
void probe_options_free(struct probe_options *options);

#endif
