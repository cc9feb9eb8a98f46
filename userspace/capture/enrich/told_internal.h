/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of the kernel's mapping events (target/process/mmap_watch.h). An event waits here for its
 * turn among the records of the capture. Each CPU reports events in its own order, and the drain
 * delivers records a little later.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_TOLD_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_TOLD_INTERNAL_H

#include "target/process/mmap_watch.h"

struct told;

struct told_event {
	struct mmap_event event; /* with its own copy of the path */
	uint64_t number;         /* order of arrival */
	bool traced;             /* its process was known to be a target */
};

/* A NULL queue is valid for all functions below, which then do nothing. */
int told_open(struct told **told, struct error *err);
void told_close(struct told *told);

/* Adds an event. If the queue must drop events, told_next() reports MMAP_LOST. */
void told_add(struct told *told, const struct mmap_event *event, bool traced);
/* Starts a round: sorts the events. The records before `before_ts` follow. Returns the time up to
 * which all records of earlier rounds were delivered; 0: unknown. */
uint64_t told_round(struct told *told, uint64_t before_ts);
/* The next event at or before `ts`, valid until the next call. NULL: there is none. */
const struct told_event *told_next(struct told *told, uint64_t ts);
/* Whether an event that was not delivered yet may change what is mapped at an address before
 * `before_ts`. */
bool told_changes(const struct told *told, pid_t pid, uint64_t address, uint64_t before_ts);

#endif
