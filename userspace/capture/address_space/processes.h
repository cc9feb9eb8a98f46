/* SPDX-License-Identifier: Apache-2.0 */
/* Which process each thread belongs to, and which processes may not be read, as of the last
 * record. */
#ifndef WAFFLE_CAPTURE_ADDRESS_SPACE_PROCESSES_H
#define WAFFLE_CAPTURE_ADDRESS_SPACE_PROCESSES_H

#include "kernel/kernel.h"
#include "util/map.h"

/* Zero-initialised, apart from `kernel`, it knows no threads. */
struct processes {
	const struct kernel *kernel;
	struct map tgids;      /* tid → tgid of the most recent threads */
	struct map old_tgids;  /* the previous generation, since the exit of an untraced thread is
				* not reported */
	struct map privileged; /* pids whose program was privileged at the last record */
};

void processes_free(struct processes *processes);

/* Follows TASK, STATE, FORK, EXEC and EXIT records. `privileged`: of an exec. */
void processes_record(struct processes *processes, const struct waffle_rec *rec, bool privileged);
/* The process runs a new program. Its exec's record will say whether it is privileged. */
void processes_begin(struct processes *processes, pid_t pid);
/* The process has ended. */
void processes_forget(struct processes *processes, pid_t pid);

/* 0: unknown. */
uint32_t processes_of_thread(struct processes *processes, uint32_t tid);
/* Whether a process runs a privileged program now, or did at the last record. The kernel knows the
 * current state; the records are some milliseconds old. */
bool processes_is_privileged(const struct processes *processes, pid_t pid);
/* The process of a thread if we may read its memory and files. 0: unknown, or it is privileged. */
uint32_t processes_readable(struct processes *processes, uint32_t tid);

#endif
