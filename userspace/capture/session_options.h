/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a capture. It is made from the command line and read by all parts of
 * capture/. */
#ifndef WAFFLE_CAPTURE_SESSION_OPTIONS_H
#define WAFFLE_CAPTURE_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/account_internal.h"
#include "capture/enrich/stack_choice.h"
#include "capture/redact.h"
#include "capture/sources_internal.h"
#include "capture/transport/transport.h"
#include "filter/plan.h"
#include "kernel/kernel.h"
#include "probe/spec/call.h"
#include "probe/spec/python_spec.h"
#include "target/elf/site.h"
#include "target/process/process.h"

/* Sees all records that are written to the file, in the same order. */
struct session_tap {
	/* `site`: of a hit; NULL: unknown. It is only valid during the call. */
	void (*record)(const struct waffle_rec *rec, const struct site_info *site, void *arg);
	/* Called many times a second, also when there are no records. */
	void (*round)(void *arg);
	void *arg;
};

/* The flight recorder: capture/recorder_internal.h. Times in ns. */
struct recorder_options {
	uint64_t window_ns;                /* what is kept; 0: no flight recorder */
	const struct filter_expr *trigger; /* NULL: only SIGUSR1; owned by the caller */
	uint64_t after_ns;                 /* from the trigger to the end of the file */
	uint64_t cooldown_ns;              /* from one trigger to the next */
	uint64_t max_files;
	uint64_t memory_bytes; /* for records, without tables */
};

struct session_options {
	const pid_t *pids; /* attach to these … */
	size_t pid_count;
	bool found; /* all of them were found by a name or a cgroup, not by their numbers */
	/* Finds the processes again when forks are followed. So processes that began meanwhile are
	 * traced, too. NULL: there can be no others. Its caller frees the list. */
	int (*find)(pid_list *pids, void *arg, struct error *err);
	void *find_arg;
	char **command;                /* … or run this */
	const struct account *account; /* … as this user; NULL: ours; owned by the caller */
	bool warn_of_root;             /* the command runs as root although nobody requested it */
	const char *output;            /* path of the file to write */
	bool output_expands;           /* see target/process/output_name.h */
	const char *label;             /* describes the target for the user */
	bool machine_wide; /* with follow_children: other processes hit the probes, too */
	uint32_t sources;  /* enum capture_source */
	const struct filter_expr *filter; /* NULL: all; owned by the caller */
	struct stack_choice *stacks;      /* NULL: no stacks of spans; owned by the caller */
	struct redaction *redaction;      /* NULL: omit nothing; owned by the caller */
	struct call_set *calls; /* calls to record besides sites; NULL: none; owned by the caller */
	/* Functions of Python to record; owned by the caller. */
	const struct python_spec *functions;
	size_t function_count;
	enum transport_mode transport; /* of processes with libwaffle */
	const struct session_tap *tap; /* NULL: none */
	bool wakers; /* also record processes that end waits of the others: wakers_internal.h */
	uint64_t duration_ns; /* from when all is armed; 0: until the targets exit or a signal */
	uint64_t max_bytes;   /* of the file; 0: no limit */
	struct recorder_options recorder;
	uint64_t sched_bytes; /* per CPU for switches */
	/* Passed on to the kernel. What follows from the options above is set at the start of the
	 * session. */
	struct kernel_options kernel;
};

#define SESSION_MAX_BYTES_MIN (4ull << 20)
#define SESSION_RING_BYTES (32ull << 20)
#define SESSION_SCHED_BYTES (4ull << 20)
/* Limit for all rings together, and for the switch buffers of all CPUs together, unless a size was
 * given. With more than 64 CPUs each buffer is smaller. */
#define SESSION_TOTAL_BYTES (256ull << 20)
#define SESSION_WAIT_MIN_NS 50000ull
#define SESSION_RECORDER_AFTER_NS 1000000000ull
#define SESSION_RECORDER_COOLDOWN_NS 60000000000ull
#define SESSION_RECORDER_FILES 10
#define SESSION_RECORDER_BYTES (256ull << 20)
#define SESSION_RECORDER_BYTES_MIN (16ull << 20)
#define SESSION_STACK_GAP_NS 1000000ull
/* Samples a second. 99 does not divide the rate of any kernel's timer tick (100, 250, 300, 1000),
 * so samples and ticks do not stay in step. */
#define SESSION_SAMPLE_RATE 99
#define SESSION_SAMPLE_RATE_MAX 1000

#endif
