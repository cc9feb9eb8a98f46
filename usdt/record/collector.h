/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that records: it arms sites, drains the rings and writes the file.
 *
 *	sites ──→ rings ──→ gather (one order) ──→ filter ──→ sink ──→ file
 *
 * It runs a round every 10 ms, 20 ms while nothing comes, earlier if a ring fills quickly, and
 * writes to the file at least once a second. A flush asks it by request_wait().
 *
 * If it is left alone, since main() has called pthread_exit() and all threads have ended, it
 * finishes the file and ends, so that the process can end.
 */
#ifndef WAFFLE_USDT_RECORD_COLLECTOR_H
#define WAFFLE_USDT_RECORD_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

struct collector;

/* What messages call the parts of a recording: variables of the environment, or options that the
 * program itself has passed. */
struct recording_names {
	const char *file, *filter, *process;
};

struct collector_options {
	const struct recording_names *names;
	const char *filter;  /* an expression; NULL: everything is kept */
	bool keep_children;  /* also what happens inside of what the filter keeps */
	bool overwrite;      /* takes records only when it is flushed or closed */
	const char *process; /* the text of a chain of processors; NULL: none */
	/* Called once by the collector's thread, soon after the program's first record. */
	void (*recorded)(void);
};

/* `path` may be NULL if there are processors. Opens the file, arms the sites and starts the thread.
 */
int collector_open(struct collector **collector, const char *path,
		   const struct collector_options *options, struct error *err);
/* Arms the sites of files that have been loaded since. */
void collector_arm(struct collector *collector);
/* Arms or disarms all sites, as the mode of the process (usdt/frame/mode.h) asks for. */
void collector_arm_again(struct collector *collector);
/* The message of -EDEADLK of collector_close(). */
#define COLLECTOR_STUCK                                                                            \
	"the recording can't end while the program has a lock that it needs, as in a callback of " \
	"dl_iterate_phdr()"
/* Disarms the sites, and waits until the thread has finished the file. Callbacks of the program may
 * run meanwhile, so the caller holds no lock that they could want. Frees it, except for -EDEADLK:
 * the collector waits for the loader's lock, which this thread may have, and goes on when it gets
 * it. An error that was printed before has no message. Not for the collector's own thread
 * (request_is_self()). */
int collector_close(struct collector *collector, bool exits, struct error *err);

#endif
