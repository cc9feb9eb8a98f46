/* SPDX-License-Identifier: Apache-2.0 */
/* The options that describe calls to be probed, which attach, run and list share. */
#ifndef WAFFLE_CMD_PROBE_OPTIONS_H
#define WAFFLE_CMD_PROBE_OPTIONS_H

#include "call/call.h"
#include "cmd/command.h"
#include "util/vec.h"

struct probe_option {
	const char *text;
	bool file; /* of --probes: a path, or the name of a set that ships */
};

struct probe_options {
	VEC(struct probe_option) list;
	struct call_set *calls; /* by probe_options_open(); NULL: nothing is looked for */
};

/* Of option_row: *options is a struct probe_options. */
int set_probe(void *options, const char *value, struct error *err);
int set_probes(void *options, const char *value, struct error *err);

/* The rows of a command whose options struct has a struct probe_options as `member`. */
#define PROBE_OPTION_ROWS(type, member)                                                            \
	{"probe",                                                                                  \
	 0,                                                                                        \
	 "SPEC",                                                                                   \
	 "record a function, USDT probe or tracepoint as spans or events, such as "                \
	 "'uprobe:libc.so.6:malloc(size_t bytes) -> ptr ret'; may be given several times; see "    \
	 "docs/probes.md",                                                                         \
	 .at = offsetof(type, member),                                                             \
	 .set = set_probe},                                                                        \
	{                                                                                          \
		"probes", 0, "FILE",                                                               \
			"as --probe, a description a line; or the name of a set that comes with "  \
			"waffle; may be given several times",                                      \
			.at = offsetof(type, member), .set = set_probes                            \
	}

/*
 * Reads what was described, and the tables that are wanted. EXIT_DONE, or what is wrong was printed
 * and the command has to end with this code.
 */
enum exit_code probe_options_open(const struct command *command, struct probe_options *options,
				  bool cuda, bool nccl);
void probe_options_free(struct probe_options *options);

#endif
