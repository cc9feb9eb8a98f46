/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads of the kernel do: a table of their names, and of the functions that the kernel's
 * workers (kworker) call. tests/unit/test_why_meaning.c writes it into docs/why-meanings.md.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_WORKER_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_WORKER_H

#include <stddef.h>

/* A worker takes work of many kinds, so only its function shows which one it does. All other
 * threads have one task. */
#define WORKER_COMM "kworker/"

/* What whoever waits for it waits for. */
enum worker_for {
	WORKER_OTHER,
	WORKER_WRITES, /* a device to be written */
	WORKER_ENDS,   /* a request to a device, which has ended */
};

/* Lists as in why_meaning.h. A row has either names of threads or functions of workers. */
struct worker_row {
	const char *text;
	const char *comms;     /* NULL: any worker */
	const char *functions; /* NULL: any */
	enum worker_for what;
};
extern const struct worker_row worker_rows[];
extern const size_t worker_row_count;

/* The row of a thread of the kernel, by its name and, for a worker, by the functions on its stack,
 * innermost first (NULL for unknown names). NULL: there is none. Any process can take such a name:
 * the caller asks model_may_be_kernel() first. */
const struct worker_row *worker_find(const char *comm, const char *const *functions, size_t count);
/* The function that a worker was called to do, by its stack; NULL: unknown. */
const char *worker_function(const char *comm, const char *const *functions, size_t count);

#endif
