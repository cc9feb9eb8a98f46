/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of the kernel's mapping events (target/process/mmap_watch.h). An event waits here for its
 * turn among the records of the capture. Each CPU reports events in its own order, and the drain
 * delivers records a little later.
 */
#ifndef WAFFLE_CAPTURE_ADDRESS_SPACE_MMAP_QUEUE_INTERNAL_H
#define WAFFLE_CAPTURE_ADDRESS_SPACE_MMAP_QUEUE_INTERNAL_H

#include "target/process/mmap_watch.h"

struct mmap_queue;

struct queued_mmap {
	struct mmap_event event; /* with its own copy of the path */
	uint64_t number;         /* order of arrival */
	bool traced;             /* its process was known to be a target */
};

/* A NULL queue is valid for all functions below, which then do nothing. */
int mmap_queue_open(struct mmap_queue **queue, struct error *err);
void mmap_queue_close(struct mmap_queue *queue);

/* Adds an event. If the queue must drop events, mmap_queue_pop() reports MMAP_LOST. */
void mmap_queue_push(struct mmap_queue *queue, const struct mmap_event *event, bool traced);
/* Starts a round: sorts the events. The records before `before_ts` follow. Returns the time up to
 * which all records of earlier rounds were delivered; 0: unknown. */
uint64_t mmap_queue_begin_round(struct mmap_queue *queue, uint64_t before_ts);
/* The next event at or before `ts`, valid until the next call. NULL: there is none. */
const struct queued_mmap *mmap_queue_pop(struct mmap_queue *queue, uint64_t ts);
/* Whether an event that was not delivered yet may change what is mapped at an address before
 * `before_ts`. */
bool mmap_queue_may_change(const struct mmap_queue *queue, pid_t pid, uint64_t address,
			   uint64_t before_ts);

#endif
