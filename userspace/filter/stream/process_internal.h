/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that have open spans or buffers in a filter stream, with what limits each. */
#ifndef WAFFLE_FILTER_STREAM_PROCESS_INTERNAL_H
#define WAFFLE_FILTER_STREAM_PROCESS_INTERNAL_H

#include <stdint.h>

#include "bpf/filter.h"
#include "util/map.h"
#include "util/vec.h"

#define STREAM_NONE UINT32_MAX /* no index */
#define STREAM_CREDIT 8        /* of a span */
#define STREAM_CREDIT_MAX (2 * WAFFLE_OPEN_MAX)

struct stream_buffer;

struct stream_process {
	uint32_t tgid; /* 0: a free entry */
	/* Indexes of its open spans in the order in which they began. */
	uint32_t oldest, youngest;
	uint32_t open;
	uint32_t deferred[WAFFLE_DEFERRED_SIZE_COUNT];
	uint32_t buffer_count;
	struct stream_buffer *buffers; /* a list */
	/* Steps that a search for old spans may take: some for each span that has begun, so that
	 * no process can make the filter slow. */
	uint32_t credit;
};

struct stream_processes {
	VEC(struct stream_process) list;
	struct map by_tgid;
	uint32_t last;   /* index of the one that was asked for last */
	uint32_t cursor; /* where to look for an entry that is not in use */
};

/* NULL: there is none. The pointer is valid until the next stream_process_make(). */
struct stream_process *stream_process_get(struct stream_processes *processes, uint32_t tgid);
/* NULL: out of memory, or there are too many processes. */
struct stream_process *stream_process_make(struct stream_processes *processes, uint32_t tgid);
static inline void stream_process_earn(struct stream_process *process)
{
	if (process->credit < STREAM_CREDIT_MAX)
		process->credit += STREAM_CREDIT;
}
void stream_processes_free(struct stream_processes *processes);

#endif
