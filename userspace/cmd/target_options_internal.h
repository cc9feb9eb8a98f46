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
	bool tree;
};

/* Rows for a command whose options struct has a struct target_options as `member`. `only` begins
 * the help of each: "", or what the option does to the command. */
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
/* Whether the processes that the options mean may have children that are meant, too. */
bool target_options_grow(const struct target_options *options);
/* Finds the processes, each once; those that the options name come first. `options` is a struct
 * target_options (for session_options.find). The caller frees the list, also after an error.
 * Returns 0 or a negative errno with a message. */
int target_options_find(pid_list *found, void *options, struct error *err);
void target_options_free(struct target_options *options);

#endif
