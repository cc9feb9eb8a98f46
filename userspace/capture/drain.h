/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drains the kernel's buffers (switches per CPU, and the rings) into one stream ordered by time,
 * and keeps the accounts: produced = delivered + lost, per source.
 *
 * A record may be written a little later than its time says (its thread was preempted in between),
 * so the youngest records wait for the next round.
 */
#ifndef WAFFLE_CAPTURE_DRAIN_H
#define WAFFLE_CAPTURE_DRAIN_H

#include "probe/kernel.h"
#include "store/store.h"

struct drain;

struct drain_callbacks {
	/* Each record, in order. Non-zero stops the draining: the record counts as lost. */
	int (*record)(struct waffle_rec *rec, void *arg);
	/* A fork, exec or exit, as soon as it is seen and before its turn in the order. A fork is
	 * seen soon: a round ends early for it. */
	void (*notice)(const struct waffle_rec *rec, void *arg);
	/* A round is about to deliver the records before this time. If it ends earlier, the next
	 * round continues with the same time. Non-zero stops the draining. */
	int (*round)(uint64_t before_ts, void *arg);
	void *arg;
};

int drain_open(struct drain **drain, struct kernel *kernel, const struct drain_callbacks *callbacks,
	       struct error *err);
void drain_close(struct drain *drain);

/*
 * Runs one round. Its time and memory are bounded, since programs may forever produce records
 * faster than this delivers them. `final`: nothing is produced any more, so no record is deferred.
 * Returns 1 if the caller should run the next round at once, or a negative errno if `record`
 * failed.
 */
int drain_round(struct drain *drain, bool final);
/* From now on records are taken and counted as lost, which is fast. */
void drain_give_up(struct drain *drain);
/* Whether a fork waits in the queues: the next round notices it, which should be soon. */
bool drain_fork_waits(const struct drain *drain);
/* All records before this time were delivered. */
uint64_t drain_delivered_ts(const struct drain *drain);

/* The counts so far, per source (an array of WAFFLE_SOURCE_COUNT). A record that still waits counts
 * as neither delivered nor lost. */
void drain_counts(const struct drain *drain, struct store_counts *counts);

/* CLOCK_MONOTONIC in ns. */
uint64_t clock_monotonic_ns(void);

#endif
