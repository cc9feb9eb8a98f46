/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the records out of all rings and delivers them in the order of their times.
 *
 * Each round takes all that is in the rings, but delivers only what is older than the round before.
 * So a thread has one round to write what it has timed, and late records are rare.
 */
#ifndef WAFFLE_USDT_RECORD_GATHER_H
#define WAFFLE_USDT_RECORD_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/ring/rings.h"

struct ring_gather;

struct gather_item {
	uint32_t tid;
	const char *comm;                 /* a thread's name; NULL: `record` */
	bool ended;                       /* the thread has ended; no record */
	const struct ring_record *record; /* its contents follow; their length is not checked */
	uint64_t ticks;
};

struct gather_counts {
	uint64_t taken; /* records, and names of threads */
	uint64_t lost;  /* by the threads, or skipped */
	/* Of the last round: percent of a ring that were full, at most. */
	uint64_t fullest;
};

struct ring_gather *gather_new(void); /* NULL: out of memory */
void gather_free(struct ring_gather *gather);

/* Skips all that is in the rings, for a recording that begins. */
void gather_begin(struct ring_gather *gather);
/* Takes records, and delivers those before `goal`. */
void gather_round(struct ring_gather *gather, uint64_t goal,
		  void (*deliver)(const struct gather_item *item, void *arg), void *arg);
/* Lists threads that have been renamed as the next items. It reads a file in /proc for each. */
void gather_names(struct ring_gather *gather, uint64_t ticks);
struct gather_counts gather_counts(const struct ring_gather *gather);

#endif
