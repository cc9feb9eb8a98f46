/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete capture: load, arm, and drain into a .waffle file until the time is up, the targets
 * are gone or a signal arrives. Then disarm, drain the rest, and write the final counts.
 */
#ifndef WAFFLE_CAPTURE_SESSION_H
#define WAFFLE_CAPTURE_SESSION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/arming/armed.h"
#include "capture/session_options.h"
#include "filter/plan.h"
#include "store/store.h"
#include "util/error.h"

struct session_result {
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	uint64_t duration_ns; /* time from arming to disarming */
	/* Duration, and CPU time of this process and its workers: until everything was armed
	 * (ready_*), and from then to the end. */
	uint64_t ready_ns, ready_cpu_ns;
	uint64_t recorded_ns, tracer_cpu_ns;
	uint64_t file_bytes;
	char output[PATH_MAX]; /* path of the file */
	uint64_t sites;
	struct armed_counts armed;
	int exit_status; /* of the command, as from waitpid(); -1: none, or still running */
	int exec_errno;  /* the command could not be run; negative: it could not become its user */
	bool file_written; /* the file has its final name; the session may have failed later */
	bool file_stuck;   /* its file system does not respond: do not access the file */
};

/* `notify` receives messages during a session ("no sites in …"), each one line, or in the format of
 * terminal_fault(). */
struct session_events {
	void (*notify)(const char *line, void *arg); /* may be NULL */
	/* A problem with the options that does not stop the capture. */
	void (*tell)(const char *line, void *arg);
	/* Called about ten times a second, for a progress line. May be NULL. */
	void (*progress)(const struct session_result *so_far, uint64_t elapsed_ns, void *arg);
	void *arg;
};

/* Derives the kernel's options. *plan: the plan of the filter, NULL without a filter. */
int session_configure(struct kernel_options *kernel, struct plan **plan,
		      const struct session_options *options, struct error *err);

int session_run(const struct session_options *options, const struct session_events *events,
		struct session_result *result, struct error *err);

#endif
