/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the processes of a capture for the functions of Python that --probe describes, and has
 * the kernel watch those that it finds. */
#ifndef WAFFLE_CAPTURE_PYTHON_WATCHES_INTERNAL_H
#define WAFFLE_CAPTURE_PYTHON_WATCHES_INTERNAL_H

#include "bpf/record.h"
#include "kernel/kernel.h"
#include "probe/spec/python_spec.h"
#include "target/process/python_codes.h"

struct python_watches;

struct python_watches_options {
	const struct python_spec *specs; /* these outlive the result */
	size_t spec_count;
	struct kernel *kernel;
	/* The number of a function, for records. Returns 0, -ENOENT: it is not wanted, -E2BIG:
	 * there are too many, or -ENOMEM. */
	int (*number)(const struct python_code *code, uint32_t *number, void *arg);
	void *number_arg;
	/* Prints one line for the user. */
	void (*notify)(const char *line, void *arg);
	void *notify_arg;
};

/* Returns 0 or -ENOMEM. */
int python_watches_open(struct python_watches **watches,
			const struct python_watches_options *options);
void python_watches_close(struct python_watches *watches);

/* A new target. */
void python_watches_add(struct python_watches *watches, pid_t pid);
/* A fork or an exec of a target. */
void python_watches_process(struct python_watches *watches, const struct waffle_rec *rec);
/* The process has ended with all its threads. */
void python_watches_forget(struct python_watches *watches, pid_t pid);
/* Continues the search for some milliseconds. Returns whether a search is going on. */
bool python_watches_round(struct python_watches *watches, uint64_t now_ns);
/* Whether there is a process that was not searched to the end yet, and may be of Python. */
bool python_watches_searches(const struct python_watches *watches);
/* Releases all watches. */
void python_watches_release(struct python_watches *watches);
/* At the end of the capture: reports what was found nowhere. */
void python_watches_report(const struct python_watches *watches);

#endif
