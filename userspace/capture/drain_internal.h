/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drains the kernel's buffers (switches per CPU, and the rings) and the rings of programs with
 * libwaffle into one stream ordered by time.
 * Keeps the counts per source: produced = delivered + lost.
 *
 * A record may become readable later than its timestamp suggests, if its thread was preempted in
 * between. So the youngest records wait for the next round.
 */
#ifndef WAFFLE_CAPTURE_DRAIN_INTERNAL_H
#define WAFFLE_CAPTURE_DRAIN_INTERNAL_H

#include "capture/transport/ring_set.h"
#include "kernel/kernel.h"
#include "store/store.h"

struct drain;

struct drain_callbacks {
	/* Receives each record, in order. Non-zero stops the draining: the record counts as
	 * lost. */
	int (*record)(struct waffle_rec *rec, void *arg);
	/* Receives a fork, exec or exit immediately, before its turn in the order. To notice forks
	 * soon, a waiting fork ends the round early. */
	void (*notice)(const struct waffle_rec *rec, void *arg);
	/* A thread of a program with libwaffle has made a ring. */
	void (*ring)(const struct waffle_rec_ring *rec, void *arg);
	/* Called when a round is about to deliver the records before this time. If the round ends
	 * earlier, the next one continues with the same time. Non-zero stops the draining. */
	int (*round)(uint64_t before_ts, void *arg);
	void *arg;
};

int drain_open(struct drain **drain, struct kernel *kernel, const struct drain_callbacks *callbacks,
	       struct error *err);
/* Also drains the rings of programs with libwaffle. */
void drain_use_rings(struct drain *drain, struct ring_set *rings);
void drain_close(struct drain *drain);

/*
 * Runs one round. Its time and memory are bounded, since programs may produce records faster than
 * this delivers them. `final`: nothing produces records any more, so none is deferred. Returns 1 if
 * the caller should run the next round at once, or a negative errno if `record` failed.
 */
int drain_round(struct drain *drain, bool final);
/* From this call on, records are not delivered. They are discarded and counted as lost, which is
 * fast. */
void drain_give_up(struct drain *drain);
/* Whether a fork waits in the queues. Run a round soon to notice it. */
bool drain_fork_waits(const struct drain *drain);
/* All records before this time were delivered. */
uint64_t drain_delivered_ts(const struct drain *drain);

/* Returns the current counts per source (an array of WAFFLE_SOURCE_COUNT). A record that still
 * waits counts as neither delivered nor lost. */
void drain_counts(const struct drain *drain, struct store_counts *counts);

#endif
