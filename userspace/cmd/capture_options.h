/* SPDX-License-Identifier: Apache-2.0 */
/* What attach and run share: options, progress line, the end with the report. */
#ifndef WAFFLE_CMD_CAPTURE_OPTIONS_H
#define WAFFLE_CMD_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/session.h"
#include "cmd/command.h"
#include "util/vec.h"

struct capture_options {
	struct session_options session;
	VEC(pid_t) pids;
	VEC(const char *) comms;
	const char *output; /* NULL: named after the program and the time */
	bool json, no_report, quiet;
};

int set_output(void *options, const char *value, struct error *err);
int set_duration(void *options, const char *value, struct error *err);
int set_no_sched(void *options, const char *value, struct error *err);
int set_ring_size(void *options, const char *value, struct error *err);
int set_sched_size(void *options, const char *value, struct error *err);
int set_json(void *options, const char *value, struct error *err);
int set_no_report(void *options, const char *value, struct error *err);
int set_quiet(void *options, const char *value, struct error *err);

/* The rows of both commands' tables. */
#define CAPTURE_OPTION_ROWS                                                                        \
	{"output", 'o', "FILE",                                                                    \
	 "write the capture to FILE instead of PROGRAM-TIME.waffle in the current folder",         \
	 set_output},                                                                              \
		{"duration", 'd', "TIME", "stop after TIME, such as 10s, 500ms or 2m",             \
		 set_duration},                                                                    \
		{"no-sched", 0, NULL, "record spans and events only, not the scheduler",           \
		 set_no_sched},                                                                    \
		{"ring-size", 0, "SIZE",                                                           \
		 "buffer for spans in the kernel, per eight CPUs (default 32MiB)", set_ring_size}, \
		{"sched-size", 0, "SIZE",                                                          \
		 "buffer for thread switches in the kernel, per CPU (default 4MiB)",               \
		 set_sched_size},                                                                  \
		{"json", 0, NULL, "print the report as JSON", set_json},                           \
		{"no-report", 0, NULL, "end without the report", set_no_report},                   \
	{                                                                                          \
		"quiet", 'q', NULL, "no progress line and no notices", set_quiet                   \
	}

void capture_options_init(struct capture_options *options);
void capture_options_free(struct capture_options *options);

/*
 * Runs the session and ends with the report. `program` names the file if no -o was given. Returns
 * the exit code of a failed session, or EXIT_DONE; *result tells the rest.
 */
int capture_command(const struct command *command, struct capture_options *options,
		    const char *program, struct session_result *result);

#endif
