/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by worker.c, the side of waffle-bpf, and worker_helper.c, the side of the workers. */
#ifndef WAFFLE_TARGET_WORKER_WORKER_INTERNAL_H
#define WAFFLE_TARGET_WORKER_WORKER_INTERNAL_H

#include <sys/types.h>

#include "target/worker/worker.h"

/* Limit of workers that die on files of one owner. */
#define WORKER_DEATHS_MAX 32
/* Limit of CPU time per request. */
#define WORKER_CPU_SECONDS 60

/* Messages between the tracer and a helper, on a socket that workers do not have. The tracer sends
 * single bytes. */
enum {
	CONTROL_RENEW = 'r', /* ends the worker; answered when it is gone */
	CONTROL_END = 'e',   /* ends the helper, too */
};
enum { CONTROL_DIED, CONTROL_RENEWED };

struct control {
	int32_t kind;
	int32_t status; /* as waitpid() returns it */
};

struct worker_sockets {
	int requests, control;
};

/* Runs the helper in a process of its own, forked by `parent`. Does not return. */
_Noreturn void helper_run(struct worker_sockets sockets, pid_t parent,
			  const struct worker_table *table);

/* worker_cpu.c: CPU time of a helper and of its workers, also of those that have ended. */
uint64_t worker_helper_cpu_ns(pid_t helper);

#endif
