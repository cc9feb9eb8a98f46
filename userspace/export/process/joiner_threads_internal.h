/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a stream of records: their names, and their innermost open spans. */
#ifndef WAFFLE_EXPORT_PROCESS_JOINER_THREADS_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_JOINER_THREADS_INTERNAL_H

#include <stdint.h>

#include "export/process/joiner_sched_internal.h"

struct joining_span;

struct joiner_thread {
	struct joining_span *top; /* the innermost open span that began on it */
	uint64_t last_ts;
	uint32_t tid;
	struct joiner_sched sched;
	char comm[WAFFLE_COMM_BYTES];
};

struct joiner_threads;

struct joiner_threads *joiner_threads_new(void);
void joiner_threads_free(struct joiner_threads *threads);
/* The thread of a tid, valid while it has an open span. NULL: out of memory. */
struct joiner_thread *joiner_threads_get(struct joiner_threads *threads, uint32_t tid, uint64_t ts);
/* The same, but NULL if the thread is not known yet. */
struct joiner_thread *joiner_threads_find(const struct joiner_threads *threads, uint32_t tid);
/* Records of the scheduler were lost: the states of all threads are unknown. */
void joiner_threads_lost(struct joiner_threads *threads);
void joiner_threads_name(struct joiner_threads *threads, uint32_t tid, uint64_t ts,
			 const char comm[WAFFLE_COMM_BYTES]);
/* The thread has ended. */
void joiner_threads_forget(struct joiner_threads *threads, uint32_t tid);

#endif
