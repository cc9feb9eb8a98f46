/* SPDX-License-Identifier: Apache-2.0 */
/* The open spans of a filter stream, and copies of the begins of those that are deferred. */
#ifndef WAFFLE_FILTER_STREAM_SPANS_INTERNAL_H
#define WAFFLE_FILTER_STREAM_SPANS_INTERNAL_H

#include <stdbool.h>

#include "bpf/record.h"
#include "filter/stream/process_internal.h"

/* The begin of a deferred span, with the name that its thread had. */
struct stream_begin {
	struct stream_begin *next; /* in the list of free ones */
	bool has_comm;
	char comm[WAFFLE_COMM_BYTES];
	struct waffle_rec_hit hit; /* its frame follows */
};

/* As struct waffle_open, which the kernel has for each open span. */
struct stream_span {
	uint64_t id, ts;
	uint64_t began;  /* `now` of its begin; `ts` may be any time */
	uint64_t inside; /* slots of the deferred spans around it, one bit each */
	uint32_t tgid, tid;
	uint32_t site;
	uint32_t parent_site;       /* of the parent, if it was open at the begin; or STREAM_NONE */
	uint32_t depth;             /* WAFFLE_DEPTH_UNKNOWN: an ancestor is unknown */
	uint32_t born;              /* its begin, on the clock of its thread's buffer */
	uint32_t position;          /* WAFFLE_OPEN_BUFFERED: position of its begin in the buffer */
	uint32_t lost;              /* WAFFLE_OPEN_DEFERRED: children that found no room */
	uint32_t older, younger;    /* neighbours in the list of its process */
	uint8_t state;              /* enum waffle_open_state */
	uint8_t size;               /* enum waffle_deferred_size, if WAFFLE_OPEN_DEFERRED */
	uint8_t slot;               /* its bit in `inside` of its descendants */
	struct stream_begin *begin; /* WAFFLE_OPEN_DEFERRED */
};

struct stream_spans {
	VEC(struct stream_span) list;
	struct map by_id;
	uint32_t free; /* index of the first free entry; `older` is that of the next */
	bool has_free;
	struct stream_begin *begins[WAFFLE_DEFERRED_SIZE_COUNT]; /* free ones */
	uint64_t begin_bytes;                                    /* of all begins */
};

/* NULL: there is none. The pointer is valid until the next stream_span_add(). */
struct stream_span *stream_span_get(struct stream_spans *spans, uint64_t id);
/* Adds an open span to those of its process, which must not have too many. It takes over
 * span->begin. False: the id is taken or 0, or there is no room; then the caller keeps it. */
bool stream_span_add(struct stream_spans *spans, struct stream_process *process,
		     const struct stream_span *span);
/* Also gives the begin back. */
void stream_span_remove(struct stream_spans *spans, struct stream_process *process,
			struct stream_span *span);

/* Copies a hit, without its values if they are longer than its site allows. NULL: no room. */
struct stream_begin *stream_begin_make(struct stream_spans *spans, unsigned size,
				       const struct waffle_rec_hit *hit);
void stream_begin_free(struct stream_spans *spans, unsigned size, struct stream_begin *begin);
void stream_spans_free(struct stream_spans *spans);

#endif
