/* SPDX-License-Identifier: Apache-2.0 */
/* Which running processes a command traces; shared by attach and why. */
#ifndef WAFFLE_CMD_TARGET_OPTIONS_INTERNAL_H
#define WAFFLE_CMD_TARGET_OPTIONS_INTERNAL_H

#include "cmd/command_internal.h"
#include "target/process/process.h"

struct target_options {
	option_numbers pids;
	option_list comms;
	option_list cgroups; /* of --cgroup, --container and --unit */
	bool tree;           /* also the descendants of all of these */
};

/* Rows for a command whose options struct has a struct target_options as `member`. `only` is put in
 * front of the help of each row: "", or when the option applies, such as "Without FILE: ". */
#define TARGET_OPTION_ROWS(options, member, only)                                                  \
	{"pid",                                                                                    \
	 'p',                                                                                      \
	 "PID",                                                                                    \
	 only "The process to trace. May be given several times.",                                 \
	 .type = OPTION_NUMBERS,                                                                   \
	 .min = 1,                                                                                 \
	 .max = PROCESS_PID_MAX,                                                                   \
	 .at = offsetof(options, member.pids)},                                                    \
		{"comm",                                                                           \
		 0,                                                                                \
		 "NAME",                                                                           \
		 only "Trace all processes of this name. Any user can give a process any name. "   \
		      "May be given several times.",                                               \
		 .type = OPTION_LIST,                                                              \
		 .at = offsetof(options, member.comms)},                                           \
		{"cgroup",                                                                         \
		 0,                                                                                \
		 "PATH",                                                                           \
		 only "Trace all processes of this cgroup and of those in it, such as "            \
		      "/system.slice/nginx.service, and the children that they create.",           \
		 .type = OPTION_LIST,                                                              \
		 .at = offsetof(options, member.cgroups)},                                         \
		{"container",                                                                      \
		 0,                                                                                \
		 "NAME|ID",                                                                        \
		 only "Trace all processes of this container, and the children that they "         \
		      "create. The first digits of its id are enough.",                            \
		 .type = OPTION_LIST,                                                              \
		 .at = offsetof(options, member.cgroups)},                                         \
	{                                                                                          \
		"unit", 0, "NAME",                                                                 \
			only "Trace all processes of this unit of systemd, such as nginx.service " \
			     "or nginx, and the children that they create.",                       \
			.type = OPTION_LIST, .at = offsetof(options, member.cgroups)               \
	}

/* Whether an option names processes. */
bool target_options_given(const struct target_options *options);
/* Whether children of these processes are targets, too, so that the set can grow. */
bool target_options_grow(const struct target_options *options);
/* Finds the processes, each once; the descendants of --tree come last. `options` is a struct
 * target_options; it is a void pointer because session_options.find is this function. The caller
 * frees the list, also after an error. Returns 0 or a negative errno with a message. */
int target_options_find(pid_list *found, void *options, struct error *err);
void target_options_free(struct target_options *options);

#endif
