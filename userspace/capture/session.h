/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete capture: load, arm, and drain into a .waffle file until the time is up, the targets
 * are gone or a signal arrives. Then disarm, drain the rest, and write the final counts.
 */
#ifndef WAFFLE_CAPTURE_SESSION_H
#define WAFFLE_CAPTURE_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "call/call.h"
#include "capture/account.h"
#include "capture/armed.h"
#include "capture/redact.h"
#include "capture/sources.h"
#include "capture/stack_choice.h"
#include "filter/plan.h"
#include "probe/kernel.h"
#include "store/store.h"
#include "util/error.h"

struct session_options {
	const pid_t *pids; /* attach to these … */
	size_t pid_count;
	char **command;                /* … or run this */
	const struct account *account; /* … as this user; NULL: ours; owned by the caller */
	bool warn_of_root;             /* the command runs as root although nobody requested it */
	const char *output;            /* path of the file to write */
	const char *label;             /* describes the target for the user */
	bool follow;                   /* trace children, too */
	bool machine_wide;             /* with `follow`: other processes hit the probes, too */
	uint32_t sources;              /* enum capture_source */
	const struct filter_expr *filter; /* NULL: all; owned by the caller */
	struct stack_choice *stacks;      /* NULL: no stacks of spans; owned by the caller */
	struct redaction *redaction;      /* NULL: omit nothing; owned by the caller */
	struct call_set *calls; /* calls to record besides sites; NULL: none; owned by the caller */
	bool keep_children;     /* with a filter: also keep everything inside a kept span */
	uint64_t duration_ns;   /* from when all is armed; 0: until the targets exit or a signal */
	uint64_t max_bytes;     /* of the file; 0: no limit */
	uint64_t ring_bytes;    /* per ring for spans */
	uint64_t sched_bytes;   /* per CPU for switches */
	uint64_t wait_min_ns;   /* shorter waits are not explained */
	uint64_t stack_gap_ns;  /* minimum between user stacks of a thread with short waits */
};

#define SESSION_MAX_BYTES_MIN (4ull << 20)
#define SESSION_RING_BYTES (32ull << 20)
#define SESSION_SCHED_BYTES (4ull << 20)
/* Limit for all rings together, and for the switch buffers of all CPUs together, unless a size was
 * given. With more than 64 CPUs each buffer is smaller. */
#define SESSION_TOTAL_BYTES (256ull << 20)
#define SESSION_WAIT_MIN_NS 50000ull
#define SESSION_STACK_GAP_NS 1000000ull

struct session_result {
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	uint64_t duration_ns;   /* of the capture, from arming to disarming */
	uint64_t ready_cpu_ns;  /* CPU time of this process until all was armed */
	uint64_t tracer_cpu_ns; /* CPU time of this process from then to the end of the capture */
	uint64_t file_bytes;
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
