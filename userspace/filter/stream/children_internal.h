/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records inside deferred spans, which wait until the spans are decided: the same as in the kernel
 * (bpf/children.bpf.h). Each thread has a ring of its last records. Each deferred span of a thread
 * has a slot, and a buffered record has a bit for each deferred span around it. Slots are reused.
 * `born` numbers what begins in a thread, so that a bit of an old record is not mistaken for the
 * slot's new owner. The last owner that was kept is remembered, because a child may end after it.
 */
#ifndef WAFFLE_FILTER_STREAM_CHILDREN_INTERNAL_H
#define WAFFLE_FILTER_STREAM_CHILDREN_INTERNAL_H

#include <stdbool.h>

#include "bpf/record.h"
#include "filter/stream/spans_internal.h"

struct stream_child {
	uint64_t inside; /* 0: delivered or obsolete */
	uint32_t born;
	uint32_t position; /* of its begin, if this is the end of a span */
	uint64_t span;     /* id of the span that this begins; 0: none */
	bool ends;         /* a span */
	_Alignas(8) unsigned char record[WAFFLE_CHILD_BYTES];
};

struct stream_slot {
	uint32_t begin, first; /* the owner's `born`, and the position of its first child */
	/* The last kept owner: spans and events that began in [from, to) are inside it. */
	uint32_t kept_from, kept_to;
	uint32_t lost; /* children of its owner that could not be buffered */
};

struct stream_buffer {
	uint64_t thread;            /* tgid << 32 | tid */
	struct stream_buffer *next; /* of the process */
	uint64_t deferred;          /* slots that have an owner, one bit each */
	uint32_t head;              /* position of the next child */
	uint32_t clock;
	struct stream_slot slots[WAFFLE_CHILD_SLOTS];
	struct stream_child children[WAFFLE_CHILD_COUNT];
};

struct stream_buffers {
	VEC(struct stream_buffer *) list; /* NULL: a free entry */
	struct map by_thread;
	uint32_t count;
};

/* NULL: the thread has none. */
struct stream_buffer *stream_buffer_get(const struct stream_buffers *buffers, uint64_t thread);
/* Creates it if there is none. NULL: the process has too many, or there is no memory. */
struct stream_buffer *stream_buffer_make(struct stream_buffers *buffers,
					 struct stream_process *process, uint64_t thread);
void stream_buffer_remove(struct stream_buffers *buffers, struct stream_process *process,
			  struct stream_buffer *buffer);
void stream_buffers_free(struct stream_buffers *buffers);

/* The decision of the deferred spans around a record: keep it, buffer it, or drop it. */
struct stream_verdict {
	uint64_t pending;   /* slots of those that are not decided yet */
	uint32_t innermost; /* slot of the youngest of these */
	bool kept;          /* one of the spans was kept */
};
struct stream_verdict stream_verdict(const struct stream_buffer *buffer, uint64_t inside,
				     uint32_t born);

/* Gives a slot to a span that will be deferred, if one is free. */
void stream_slot_take(struct stream_buffer *buffer, struct stream_span *span);
void stream_slot_lose(struct stream_buffer *buffer, uint32_t slot, uint32_t count);

/* Adds a record to the ring. The one that it overwrites is lost if a deferred span needs it. False:
 * it is too long, and counts as lost. */
bool stream_child_add_hit(struct stream_buffer *buffer, const struct stream_verdict *verdict,
			  const struct waffle_rec_hit *hit, uint64_t span);
/* The end of a span whose begin is at `position`. */
void stream_child_add_end(struct stream_buffer *buffer, const struct stream_verdict *verdict,
			  const struct waffle_rec_span_end *end, uint32_t position);

/*
 * Ends the slot of a span that passes. Lists the records inside it in the order of their times, and
 * returns their number. They are no longer buffered, but stay valid until the next one is added.
 * *lost: records that had to be dropped. `other`: another thread has ended the span, so all are.
 */
uint32_t stream_children_take(struct stream_buffer *buffer, uint32_t slot, bool other,
			      struct stream_child *taken[WAFFLE_CHILD_COUNT], uint64_t *lost);

#endif
