/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a span of each call of the functions of Python that --probe describes. For each process, it
 * searches for the functions' code objects, and lets the kernel watch them (bpf/python.h). A
 * function may not be there yet, as its file is imported later, so the search is repeated.
 *
 *	WATCHED: begin ──→ WATCHED: its code was released ──→ HIT, RETURN
 *
 * The kernel reports accesses, and what the thread's stack of Python frames was then. A call has
 * ended when its caller is the innermost frame and still executes the same instruction. If an
 * exception leaves a call, Python before 3.12 may keep its frame. Such a call is found gone later,
 * and marked as left.
 */
#ifndef WAFFLE_CAPTURE_PYTHON_CALLS_INTERNAL_H
#define WAFFLE_CAPTURE_PYTHON_CALLS_INTERNAL_H

#include "bpf/record.h"
#include "capture/arming/arming.h"
#include "capture/record_filter_internal.h"
#include "probe/spec/python_spec.h"
#include "util/error.h"

struct python_calls;

struct python_calls_options {
	const struct python_spec *specs; /* these outlive the result */
	size_t spec_count;
	struct kernel *kernel;
	struct arming *arming;
	struct record_filter *filter; /* NULL: everything is kept */
	bool follow;                  /* children of targets are targets, too */
	/* Takes a record that is kept, with arming's number of its site. */
	int (*deliver)(struct waffle_rec *rec, void *arg);
	void *arg;
	/* Prints one line for the user. */
	void (*notify)(const char *line, void *arg);
	void *notify_arg;
};

int python_calls_open(struct python_calls **calls, const struct python_calls_options *options,
		      struct error *err);
void python_calls_close(struct python_calls *calls);

/* A new target. */
void python_calls_add(struct python_calls *calls, pid_t pid);
/* A fork, an exec or an exit of a target. Returns the result of deliver(); what that refuses with
 * -EINVAL is left out. */
int python_calls_process(struct python_calls *calls, const struct waffle_rec *rec);
/* The process has ended. Its exit record may be missing. */
void python_calls_forget(struct python_calls *calls, pid_t pid);
/* Continues the search for functions, for some milliseconds. Returns whether a search
 * is going on. */
bool python_calls_round(struct python_calls *calls, uint64_t now_ns);

/* The number of functions that were found and are wanted. */
uint64_t python_calls_functions(const struct python_calls *calls);
/* Whether there is a process that was not searched to the end yet. */
bool python_calls_searches(const struct python_calls *calls);
/* Releases all watches. */
void python_calls_disarm(struct python_calls *calls);

/* Takes a record. Returns the result of deliver(); -EINVAL: it was rejected. */
int python_calls_pass(struct python_calls *calls, const struct waffle_rec_watched *rec);
/* At the end of the capture: delivers the calls that are still open, which have no end, and reports
 * the functions that were not found. */
int python_calls_finish(struct python_calls *calls);

#endif
