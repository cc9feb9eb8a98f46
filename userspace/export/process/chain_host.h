/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_EXPORT_PROCESS_CHAIN_HOST_H
#define WAFFLE_EXPORT_PROCESS_CHAIN_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "waffle_process.h"

/* What all processors of a chain know of where they run. */
struct chain_host {
	const char *origin;     /* name of the text in messages: "WAFFLE_PROCESS" */
	const char *service;    /* name of the program */
	uint32_t pid;           /* replaces %p in names of files */
	int64_t unix_offset_ns; /* from CLOCK_MONOTONIC to the time since 1970 */
	/* The records are of a finished file: the clock does not change, and a full queue is waited
	 * for. */
	bool finished;
	/* Prints a line for the user, by any thread. */
	void (*say)(const char *line, void *arg);
	/* Runs the callback of call(NAME). NULL: there are no callbacks. */
	bool (*call)(const char *name, const struct waffle_record *record, void *arg);
	/* Called first by each thread that a processor starts, such as to drop privileges. May be
	 * NULL. */
	void (*thread_begin)(void);
	void *arg;
};

#endif
