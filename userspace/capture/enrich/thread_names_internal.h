/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that Python's module threading gave to threads (target/process/python_threads.h). The
 * kernel reads those of new threads (bpf/thread_name.bpf.h), in processes whose interpreter is
 * known. For the others, the threads of a process are looked at some milliseconds after one of them
 * was first seen or was renamed, a few times more while one has no name, and at the end of the
 * capture.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_THREAD_NAMES_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_THREAD_NAMES_INTERNAL_H

#include "capture/enrich/stacks_internal.h"
#include "kernel/kernel.h"

struct thread_names;

/* `stacks` knows the interpreters of processes; without it (NULL), only files whose names contain
 * "python" are searched. Returns NULL without memory. */
struct thread_names *thread_names_open(struct kernel *kernel, const struct stacks *stacks);
void thread_names_close(struct thread_names *names);

/* Follows TASK, EXEC and EXIT records, and takes names from PYTHON_NAME records. */
void thread_names_record(struct thread_names *names, const struct waffle_rec *rec);
/* The process has ended. */
void thread_names_forget(struct thread_names *names, pid_t pid);

/* Looks at the processes whose turn it is. */
void thread_names_look(struct thread_names *names, uint64_t now_ns);
/* Looks at all processes, until a time of CLOCK_MONOTONIC. */
void thread_names_look_all(struct thread_names *names, uint64_t until_ns);
/* Passes THREAD_NAME records of the names that were found and are new. They have the times of
 * earlier records. */
int thread_names_each(struct thread_names *names, int (*pass)(struct waffle_rec *rec, void *arg),
		      void *arg);

#endif
