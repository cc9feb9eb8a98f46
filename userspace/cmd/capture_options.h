/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by attach and run: options, progress line, and the report at the end. */
#ifndef WAFFLE_CMD_CAPTURE_OPTIONS_H
#define WAFFLE_CMD_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/session.h"
#include "cmd/command.h"
#include "cmd/filter_options.h"
#include "cmd/probe_options.h"
#include "util/vec.h"

struct capture_options {
	struct session_options session;
	VEC(pid_t) pids;
	VEC(const char *) comms;
	const char *output;          /* NULL: the name consists of the program and the time */
	struct stack_choice *stacks; /* NULL: none */
	const char *user;            /* of run; NULL: the user who called sudo */
	struct account *account;     /* the same user, looked up; NULL: the user of this process */
	struct redaction redaction;
	bool json, no_report, quiet;
	struct filter_options filter;
	struct probe_options probes;
};

int set_duration(void *options, const char *value, struct error *err);
int set_no_sched(void *options, const char *value, struct error *err);
int set_sources(void *options, const char *value, struct error *err);
int set_stacks(void *options, const char *value, struct error *err);
int set_redact(void *options, const char *value, struct error *err);
int set_ring_size(void *options, const char *value, struct error *err);
int set_sched_size(void *options, const char *value, struct error *err);
int set_max_size(void *options, const char *value, struct error *err);

/* Rows in the option tables of both commands. */
#define CAPTURE_OPTION_ROWS                                                                        \
	{"output", 'o', "FILE",                                                                    \
	 "write the capture to FILE instead of PROGRAM-TIME.waffle in the current folder",         \
	 .at = offsetof(struct capture_options, output)},                                          \
		{"duration", 'd', "TIME",                                                          \
		 "stop TIME after all is armed, such as 10s, 500ms or 2m", .set = set_duration},   \
		{"machine-wide", 0, NULL,                                                          \
		 "with children: arm files for all processes of the machine, so that forked "      \
		 "children are recorded from their first instruction; all other programs that "    \
		 "run these files are slowed down by each probe that they reach, and those that "  \
		 "map them privately to read them, as git does, read breakpoints; without: only "  \
		 "where a process's main thread has exited",                                       \
		 .at = offsetof(struct capture_options, session.machine_wide)},                    \
		{"max-size", 0, "SIZE",                                                            \
		 "end the capture before its file is larger than SIZE (default no limit)",         \
		 .set = set_max_size},                                                             \
		PROBE_OPTION_ROWS(struct capture_options, probes),                                 \
		{"no-sched", 0, NULL, "record spans and events only, not the scheduler",           \
		 .set = set_no_sched},                                                             \
		{"sources", 0, "LIST",                                                             \
		 "record only these, of spans,cuda,nccl,sched,stacks,files,faults,io,signals,"     \
		 "quota,steal,frequency, or all but some: -stacks,-io (default all; all but "      \
		 "spans, cuda and nccl need sched)",                                               \
		 .set = set_sources},                                                              \
		{"stacks", 0, "LIST",                                                              \
		 "take the stack of each span and event of these: cuda,nccl,probes,spans,"         \
		 "span:NAME; and sched: callers of waits in code without frame pointers "          \
		 "(docs/stacks.md)",                                                               \
		 .set = set_stacks},                                                               \
		{"no-args", 0, NULL,                                                               \
		 "leave out the values of all keys and arguments, but those of counters, and "     \
		 "command lines",                                                                  \
		 .at = offsetof(struct capture_options, redaction.args)},                          \
		{"redact", 0, "KEY,…",                                                             \
		 "leave out the values of these keys and arguments; may be given several times",   \
		 .set = set_redact},                                                               \
		{"ring-size", 0, "SIZE",                                                           \
		 "buffer for spans in the kernel, per eight CPUs (default 32MiB, less above 64 "   \
		 "CPUs)",                                                                          \
		 .set = set_ring_size},                                                            \
		{"sched-size", 0, "SIZE",                                                          \
		 "buffer for thread switches in the kernel, per CPU (default 4MiB, less above 64 " \
		 "CPUs)",                                                                          \
		 .set = set_sched_size},                                                           \
		{"json", 0, NULL, "print the report as JSON",                                      \
		 .at = offsetof(struct capture_options, json)},                                    \
		{"no-report", 0, NULL, "end without the report",                                   \
		 .at = offsetof(struct capture_options, no_report)},                               \
		FILTER_OPTION_ROWS(struct capture_options, filter),                                \
	{                                                                                          \
		"quiet", 'q', NULL, "no progress line and no notices",                             \
			.at = offsetof(struct capture_options, quiet)                              \
	}

void capture_options_init(struct capture_options *options);
void capture_options_free(struct capture_options *options);
/* Reads the filter and the probe specs. Returns EXIT_DONE, or the code to exit with. */
enum exit_code capture_options_open(const struct command *command, struct capture_options *options);

/*
 * Runs the session and prints the report; with --explain, only shows the plan. `program` determines
 * the file name if there is no -o. Returns EXIT_DONE and *result, or the exit code of a failed
 * session.
 */
int capture_command(const struct command *command, struct capture_options *options,
		    const char *program, struct session_result *result);

#endif
