/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel told of mappings (target/mmap_watch.h), until it is its turn among the records of
 * the capture: CPUs tell it each in their order, and the drain delivers records a little later.
 */
#ifndef WAFFLE_CAPTURE_TOLD_H
#define WAFFLE_CAPTURE_TOLD_H

#include "target/mmap_watch.h"

struct told;

struct told_event {
	struct mmap_event event; /* with a path of its own */
	uint64_t number;         /* in the order in which they came */
	bool traced;             /* its process was known to be a target */
};

/* All others below do nothing with NULL. */
int told_open(struct told **told, struct error *err);
void told_close(struct told *told);

/* Events that find no room are told as lost. */
void told_add(struct told *told, const struct mmap_event *event, bool traced);
/* Puts in order what was added: what is older than records before `before_ts`, which come now. The
 * time that all records of the rounds before have come up to; 0: there were none. */
uint64_t told_round(struct told *told, uint64_t before_ts);
/* The next one that is not younger, valid until the next call; NULL: there is none. */
const struct told_event *told_next(struct told *told, uint64_t ts);

#endif
