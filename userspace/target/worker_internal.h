/* SPDX-License-Identifier: Apache-2.0 */
/* Between worker.c, which is waffle-bpf's side, and worker_helper.c, which is the other one. */
#ifndef WAFFLE_TARGET_WORKER_INTERNAL_H
#define WAFFLE_TARGET_WORKER_INTERNAL_H

#include <sys/types.h>

#include "target/worker.h"

/* Workers that may die of the files of one owner. */
#define WORKER_DEATHS_MAX 32
/* The CPU time that a request may take. */
#define WORKER_CPU_SECONDS 60

/* Between the tracer and a helper, on a socket that workers do not have. The tracer sends these as
 * single bytes. */
enum {
	CONTROL_RENEW = 'r', /* ends the worker; answered when it is gone */
	CONTROL_END = 'e',   /* ends the helper, too */
};
enum { CONTROL_DIED, CONTROL_RENEWED };

struct control {
	int32_t kind;
	int32_t status; /* as waitpid() gives it */
};

struct worker_sockets {
	int requests, control;
};

/* The helper, in a process of its own that was made by `parent`. Does not return. */
_Noreturn void helper_run(struct worker_sockets sockets, pid_t parent,
			  const struct worker_table *table);

#endif
