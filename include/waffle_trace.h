/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libwaffle: a program records its own spans and events into a file, without root and without a
 * tracer. Link with `pkg-config --libs waffle`. docs/inprocess.md is the guide.
 *
 * Most programs need none of these functions: the environment variable WAFFLE_TRACE=out.waffle
 * (or out.json, out.pftrace) records the whole run. In set-user-ID programs the variables are
 * ignored.
 */
#ifndef WAFFLE_TRACE_H
#define WAFFLE_TRACE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of waffle_trace_start(). Members but the first that are 0 or NULL have their default. */
struct waffle_trace_options {
	size_t size;        /* sizeof(struct waffle_trace_options); without it -EINVAL */
	const char *filter; /* an expression as of WAFFLE_FILTER; NULL: everything is recorded */
	/* Memory for the records of each thread until they are written, a power of two from 16 KiB
	 * to 1 GiB. The default is that of WAFFLE_RING_SIZE, or 4 MiB. */
	size_t ring_bytes;
	int keep_children; /* 1: also what happens inside of what the filter keeps */
	/* 1: a flight recorder. Nothing is written until waffle_trace_flush() or the end, and each
	 * thread keeps only its latest records, as many as fit into its memory. */
	int overwrite;
	/* A chain of processors as of WAFFLE_PROCESS (waffle_process.h), which get all that is
	 * recorded. NULL: none. */
	const char *process;
};

/*
 * Begins to record into a file, and arms the sites of the program and its libraries. The extension
 * of the name chooses the format: .waffle, .json (Chrome) or .pftrace (Perfetto). In the name, %p
 * stands for the pid, %h for the host, %r for the rank in an MPI or torch job and %% for %.
 * `options` may be NULL. The name may be NULL if the options have processors: then nothing is
 * written to a file. All texts are copied. Returns 0 or a negative errno, with one line on standard
 * error: -EBUSY if this process records already or another copy of libwaffle takes its hits,
 * -EINVAL if the name, the filter or an option is not valid, -ENOMEM, or an errno of the file. Do
 * not call it in a signal handler.
 */
int waffle_trace_start(const char *path, const struct waffle_trace_options *options);

/*
 * Ends the recording and finishes the file. Returns 0, or a negative errno if the file could not be
 * written completely; -ESRCH if nothing is recorded, -EDEADLK in a callback of waffle_process.h.
 * Disarming the sites needs the loader's lock, which a callback of dl_iterate_phdr() holds. There
 * it may wait for a second and return -EDEADLK, too; the recording ends after the callback. Do not
 * call it in a signal handler.
 */
int waffle_trace_stop(void);

/* Waits until all that was recorded before the call is in the file, for at most a second
 * (-ETIMEDOUT). A signal handler may call it. -ESRCH: nothing is recorded. -EDEADLK: a callback
 * called it. */
int waffle_trace_flush(void);

#ifdef __cplusplus
}
#endif

#endif
