/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of the kernel's mapping events (target/mmap_watch.h). An event waits here for its turn
 * among the records of the capture: each CPU reports events in its own order, and the drain
 * delivers records a little later.
 */
#ifndef WAFFLE_CAPTURE_TOLD_H
#define WAFFLE_CAPTURE_TOLD_H

#include "target/mmap_watch.h"

struct told;

struct told_event {
	struct mmap_event event; /* with a path of its own */
	uint64_t number;         /* in the order of arrival */
	bool traced;             /* its process was known to be a target */
};

/* All others below do nothing with NULL. */
int told_open(struct told **told, struct error *err);
void told_close(struct told *told);

/* Adds an event. If events have to be dropped, told_next() reports that by MMAP_LOST. */
void told_add(struct told *told, const struct mmap_event *event, bool traced);
/* Sorts the events. The records before `before_ts` come now. Returns the time up to which all
 * records of former rounds were delivered; 0: none were. */
uint64_t told_round(struct told *told, uint64_t before_ts);
/* The next event that is not younger than `ts`, valid until the next call; NULL: there is none. */
const struct told_event *told_next(struct told *told, uint64_t ts);

#endif
