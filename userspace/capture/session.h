/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture from beginning to end: load, arm, drain into a .waffle file until the time is up, the
 * targets are gone or a signal comes; then disarm, drain the rest, close the accounts.
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
	char **command;                   /* … or run this */
	const struct account *account;    /* … as this user; NULL: as we are; the caller's */
	bool warn_of_root;                /* nobody asked for it to run as root */
	const char *output;               /* path of the file to write */
	const char *label;                /* what is traced, for people */
	bool follow;                      /* children too */
	bool machine_wide;                /* with `follow`: other processes hit its probes, too */
	uint32_t sources;                 /* enum capture_source */
	const struct filter_expr *filter; /* NULL: all; belongs to the caller */
	struct stack_choice *stacks;      /* NULL: of no span; belongs to the caller */
	struct redaction *redaction;      /* NULL: all is recorded; the caller's */
	struct call_set *calls; /* what is looked for besides sites; NULL: nothing; the caller's */
	bool keep_children;     /* with a filter: what is inside a kept span is kept as well */
	uint64_t duration_ns;   /* from when all is armed; 0: until the targets exit or a signal */
	uint64_t max_bytes;     /* of the file; 0: no limit */
	uint64_t ring_bytes;    /* per ring for spans */
	uint64_t sched_bytes;   /* per CPU for switches */
	uint64_t wait_min_ns;   /* shorter waits are not explained */
	uint64_t stack_gap_ns;  /* between two user stacks of a thread whose waits are short */
};

#define SESSION_MAX_BYTES_MIN (4ull << 20)
#define SESSION_RING_BYTES (32ull << 20)
#define SESSION_SCHED_BYTES (4ull << 20)
/* Limit for all rings together, and for the switches of all CPUs together, unless a size was
 * given: with more than 64 CPUs each buffer is smaller. */
#define SESSION_TOTAL_BYTES (256ull << 20)
#define SESSION_WAIT_MIN_NS 50000ull
#define SESSION_STACK_GAP_NS 1000000ull

struct session_result {
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	uint64_t duration_ns;   /* of the capture: its arming, and until it is disarmed */
	uint64_t ready_cpu_ns;  /* CPU time of this process until all was armed */
	uint64_t tracer_cpu_ns; /* CPU time of this process from then to the end of the capture */
	uint64_t file_bytes;
	uint64_t sites;
	struct armed_counts armed;
	int exit_status; /* of the command, as waitpid() gives it; -1: none, or still running */
	int exec_errno;  /* the command could not be run; negative: it could not become its user */
	bool file_written; /* the file has its name, also if the session failed later */
	bool file_stuck;   /* its file system does not answer: do not ask it for anything */
};

/* The messages of a session on the way ("no sites in …") go to `notify`, each one line, or as
 * terminal_fault() takes it. */
struct session_events {
	void (*notify)(const char *line, void *arg); /* NULL: nobody wants them */
	/* A problem with the options, though the capture goes on. */
	void (*tell)(const char *line, void *arg);
	/* About ten times a second, for a progress line. May be NULL. */
	void (*progress)(const struct session_result *so_far, uint64_t elapsed_ns, void *arg);
	void *arg;
};

/* Derives the kernel's options. *plan: the filter's, NULL without one. */
int session_configure(struct kernel_options *kernel, struct plan **plan,
		      const struct session_options *options, struct error *err);

int session_run(const struct session_options *options, const struct session_events *events,
		struct session_result *result, struct error *err);

#endif
