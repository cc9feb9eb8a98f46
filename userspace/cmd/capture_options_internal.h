/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by attach and run: options, progress line, and the report at the end. */
#ifndef WAFFLE_CMD_CAPTURE_OPTIONS_INTERNAL_H
#define WAFFLE_CMD_CAPTURE_OPTIONS_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/session.h"
#include "cmd/command_internal.h"
#include "cmd/filter_options_internal.h"
#include "cmd/probe_options_internal.h"
#include "cmd/process_options_internal.h"
#include "cmd/target_options_internal.h"
#include "util/vec.h"

struct capture_options {
	struct session_options session;
	struct target_options target; /* of attach */
	option_list sources, stack_words, redacted;
	pid_list targets;        /* the processes that `target` names */
	const char *output;      /* NULL: the name consists of the program and the time */
	const char *user;        /* of run; NULL: the user who called sudo */
	struct account *account; /* the same user, looked up; NULL: the user of this process */
	struct redaction redaction;
	const char *trigger;    /* of the flight recorder; NULL: none */
	const char *process;    /* NULL: no processors */
	const char *to, *spool; /* NULL: no server, no spool */
	uint64_t sample_rate;   /* samples a second; 0: none */
	bool json, no_report, no_sched, quiet;
	bool gpu; /* record with libwaffle-gpu */
	bool mpi; /* also record calls of MPI but those that programs make in loops */
	struct filter_options filter;
	struct probe_options probes;
};

/* A buffer in the kernel: at least a page, and at most what the kernel can allocate. */
#define BUFFER_OPTION(member)                                                                      \
	.type = OPTION_SIZE, .min = 4096, .max = 1u << 30,                                         \
	.at = offsetof(struct capture_options, member)

/* Rows in the option tables of both commands. */
#define CAPTURE_OPTION_ROWS                                                                        \
	{"output",                                                                                 \
	 'o',                                                                                      \
	 "FILE",                                                                                   \
	 "Write the capture to FILE instead of PROGRAM-TIME.waffle in the current "                \
	 "folder. In the name, %h is the host, %p the pid of the command or first target, %r its " \
	 "rank "                                                                                   \
	 "(of Open MPI, MPICH, Slurm or torchrun) and %% is %.",                                   \
	 .type = OPTION_PATH,                                                                      \
	 .at = offsetof(struct capture_options, output)},                                          \
		{"duration",                                                                       \
		 'd',                                                                              \
		 "TIME",                                                                           \
		 "Stop TIME after everything is armed, such as 10s, 500ms or 2m.",                 \
		 .type = OPTION_TIME,                                                              \
		 .min = 1,                                                                         \
		 .at = offsetof(struct capture_options, session.duration_ns)},                     \
		{"machine-wide", 0, NULL,                                                          \
		 "When following children, arm the files for all processes of the machine, so "    \
		 "that forked children are recorded from their first instruction. Other "          \
		 "programs that run these files then pay for each probe that they reach. "         \
		 "Programs that map such a file privately to read it, as git does, read "          \
		 "breakpoints in it. Default: only for a process whose main thread has exited.",   \
		 .at = offsetof(struct capture_options, session.machine_wide)},                    \
		{"max-size",                                                                       \
		 0,                                                                                \
		 "SIZE",                                                                           \
		 "End the capture before its file exceeds SIZE. Default: no limit.",               \
		 .type = OPTION_SIZE,                                                              \
		 .min = SESSION_MAX_BYTES_MIN,                                                     \
		 .at = offsetof(struct capture_options, session.max_bytes)},                       \
		{"flight-recorder",                                                                \
		 0,                                                                                \
		 "TIME",                                                                           \
		 "Keep the last TIME in memory, and write it to FILE-1.waffle and so on "          \
		 "only when --trigger matches or waffle-bpf gets SIGUSR1. Ctrl-C writes nothing. " \
		 "See docs/flight-recorder.md.",                                                   \
		 .type = OPTION_TIME,                                                              \
		 .min = 1000000000ull,                                                             \
		 .max = 86400000000000ull,                                                         \
		 .at = offsetof(struct capture_options, session.recorder.window_ns)},              \
		{"trigger", 0, "EXPR",                                                             \
		 "Write a file of --flight-recorder when an event matches, or at the end of a "    \
		 "span or call that matches, such as 'name == \"request\" && dur > 1s'. As "       \
		 "--filter.",                                                                      \
		 .at = offsetof(struct capture_options, trigger)},                                 \
		{"after",                                                                          \
		 0,                                                                                \
		 "TIME",                                                                           \
		 "Record so long after the trigger before the file is written. Default: 1s.",      \
		 .type = OPTION_TIME,                                                              \
		 .max = 3600000000000ull,                                                          \
		 .at = offsetof(struct capture_options, session.recorder.after_ns)},               \
		{"cooldown",                                                                       \
		 0,                                                                                \
		 "TIME",                                                                           \
		 "Ignore matches of --trigger for TIME after the last one. Default: 1m.",          \
		 .type = OPTION_TIME,                                                              \
		 .max = 86400000000000ull,                                                         \
		 .at = offsetof(struct capture_options, session.recorder.cooldown_ns)},            \
		{"max-files",                                                                      \
		 0,                                                                                \
		 "N",                                                                              \
		 "End after --flight-recorder has written N files. Default: 10.",                  \
		 .type = OPTION_NUMBER,                                                            \
		 .min = 1,                                                                         \
		 .max = 100000,                                                                    \
		 .at = offsetof(struct capture_options, session.recorder.max_files)},              \
		{"flight-memory",                                                                  \
		 0,                                                                                \
		 "SIZE",                                                                           \
		 "Memory for the records of --flight-recorder. If they need more, the oldest are " \
		 "dropped. Default: 256MiB.",                                                      \
		 .type = OPTION_SIZE,                                                              \
		 .min = SESSION_RECORDER_BYTES_MIN,                                                \
		 .at = offsetof(struct capture_options, session.recorder.memory_bytes)},           \
		PROBE_OPTION_ROWS(struct capture_options, probes),                                 \
		{"requests", 0, NULL,                                                              \
		 "Record each request that a process answers over TCP as a span, of HTTP/1 and "   \
		 "of redis's protocol (RESP), with its method and path, or its command. See "      \
		 "docs/requests.md.",                                                              \
		 .at = offsetof(struct capture_options, session.kernel.requests)},                 \
		{"no-sched", 0, NULL, "Record spans and events only, not the scheduler.",          \
		 .at = offsetof(struct capture_options, no_sched)},                                \
		{"sources",                                                                        \
		 0,                                                                                \
		 "LIST",                                                                           \
		 "Record only these sources: spans, cuda, nccl, frameworks, sched, stacks, "       \
		 "files, "                                                                         \
		 "faults, "                                                                        \
		 "io, signals, quota, steal, frequency, samples. -stacks,-io records all others. " \
		 "Default: all. All except spans, cuda, nccl and frameworks need sched. See "      \
		 "docs/sources.md.",                                                               \
		 .type = OPTION_LIST,                                                              \
		 .at = offsetof(struct capture_options, sources)},                                 \
		{"stacks",                                                                         \
		 0,                                                                                \
		 "LIST",                                                                           \
		 "Record the stacks of these spans and events: cuda, nccl, probes, spans, "        \
		 "span:NAME. With sched, also unwind the stacks of waits in code without "         \
		 "frame pointers. See docs/stacks.md.",                                            \
		 .type = OPTION_LIST,                                                              \
		 .at = offsetof(struct capture_options, stack_words)},                             \
		{"no-args", 0, NULL,                                                               \
		 "Leave out command lines and the values of all keys and arguments. Counters "     \
		 "keep their values.",                                                             \
		 .at = offsetof(struct capture_options, redaction.args)},                          \
		{"min-wait",                                                                       \
		 0,                                                                                \
		 "TIME",                                                                           \
		 "Record stacks and files only for waits of at least TIME, and stolen and "        \
		 "throttled time only from TIME on. Default: 50us.",                               \
		 .type = OPTION_TIME,                                                              \
		 .min = 1000,                                                                      \
		 .max = 60000000000ull,                                                            \
		 .at = offsetof(struct capture_options, session.kernel.config.wait_min_ns)},       \
		{"sample-rate",                                                                    \
		 0,                                                                                \
		 "N",                                                                              \
		 "Look N times a second what each CPU runs, to explain running time. 0: never. "   \
		 "Default: 99.",                                                                   \
		 .type = OPTION_NUMBER,                                                            \
		 .max = SESSION_SAMPLE_RATE_MAX,                                                   \
		 .at = offsetof(struct capture_options, sample_rate)},                             \
		{"redact",                                                                         \
		 0,                                                                                \
		 "KEYS",                                                                           \
		 "Leave out the values of these keys and arguments. Commas separate them. May "    \
		 "be given several times.",                                                        \
		 .type = OPTION_LIST,                                                              \
		 .at = offsetof(struct capture_options, redacted)},                                \
		{"ring-size", 0, "SIZE",                                                           \
		 "Size of the kernel's buffer for spans, per eight CPUs. Default: 32MiB, less "    \
		 "above 64 CPUs.",                                                                 \
		 BUFFER_OPTION(session.kernel.ring_bytes)},                                        \
		{"sched-size", 0, "SIZE",                                                          \
		 "Size of the kernel's buffer for thread switches, per CPU. Default: 4MiB, "       \
		 "less above 64 CPUs.",                                                            \
		 BUFFER_OPTION(session.sched_bytes)},                                              \
		{"transport",                                                                      \
		 0,                                                                                \
		 "WAY",                                                                            \
		 "How the hits of programs with libwaffle come. See docs/transports.md.",          \
		 .type = OPTION_CHOICE,                                                            \
		 .choice = transport_mode_choice,                                                  \
		 .at = offsetof(struct capture_options, session.transport)},                       \
		{"json", 0, NULL, "Print the report as JSON.",                                     \
		 .at = offsetof(struct capture_options, json)},                                    \
		{"no-report", 0, NULL, "Print no report.",                                         \
		 .at = offsetof(struct capture_options, no_report)},                               \
		FILTER_OPTION_ROWS(struct capture_options, filter),                                \
		PROCESS_OPTION_ROW(struct capture_options, process),                               \
		SERVER_OPTION_ROWS(struct capture_options, to, spool),                             \
	{                                                                                          \
		"quiet", 'q', NULL, "Print no progress line and no notices.",                      \
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
/* attach.c, run.c: the same for the processes that options->target names, and for the command in
 * argv, whose exit status is the code if all went well. */
int attach_command(const struct command *command, struct capture_options *options,
		   struct session_result *result);
int run_command(const struct command *command, struct capture_options *options, char **argv,
		struct session_result *result);

#endif
