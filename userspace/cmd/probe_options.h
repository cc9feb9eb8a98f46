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

/* The rows of a command that has the two functions set_probe() and set_probes(). */
#define PROBE_OPTION_ROWS                                                                          \
	{"probe", 0, "SPEC",                                                                       \
	 "record a function, USDT probe or tracepoint as spans or events, such as "                \
	 "'uprobe:libc.so.6:malloc(size_t bytes) -> ptr ret'; may be given several times; see "    \
	 "docs/probes.md",                                                                         \
	 .set = set_probe},                                                                        \
	{                                                                                          \
		"probes", 0, "FILE",                                                               \
			"as --probe, a description a line; or the name of a set that comes with "  \
			"waffle; may be given several times",                                      \
			.set = set_probes                                                          \
	}

int probe_options_add(struct probe_options *options, const char *text, bool file,
		      struct error *err);
/*
 * Reads what was described, and the tables that are wanted. EXIT_DONE, or what is wrong was printed
 * and the command has to end with this code.
 */
enum exit_code probe_options_open(const struct command *command, struct probe_options *options,
				  bool cuda, bool nccl);
void probe_options_free(struct probe_options *options);

#endif
