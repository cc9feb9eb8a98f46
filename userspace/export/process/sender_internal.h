/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded queue of parcels, and a thread that delivers them: so that a slow disk or a dead server
 * never holds up whoever makes them. What finds no room is dropped and counted.
 *
 *	sender_push() ──→ queue ──→ deliver() ──→ done
 *	                    │          ├── refused: dropped, counted
 *	                    │          └── again: after a back-off (backoff_internal.h)
 *	                    └── after a failure ──→ spool on disk ──→ deliver()
 *
 * Without a spool, a parcel is dropped when it could not be delivered for `give_up_ns`.
 *
 * With `parallel`, several threads deliver at the same time, since one request at a time leaves the
 * server idle while its answer travels. They finish in any order. After a failure only the first
 * thread goes on, which alone knows the spool: a server that comes back gets one request, not many.
 */
#ifndef WAFFLE_EXPORT_PROCESS_SENDER_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_SENDER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "export/process/backoff_internal.h"
#include "export/process/parcel_internal.h"
#include "export/process/processor_internal.h"
#include "export/process/spool_internal.h"

struct sender;

enum sender_outcome {
	SENDER_DONE,
	SENDER_AGAIN,   /* it may succeed later */
	SENDER_REFUSED, /* it never will */
};

struct sender_reply {
	uint64_t after_ns; /* of SENDER_AGAIN: wait at least so long; 0: not said */
	uint64_t refused;  /* of SENDER_DONE: records that were not accepted */
	bool skipped;      /* of SENDER_DONE: the server has no service that takes such a parcel */
	char why[200];     /* of all but complete success; may have any bytes */
};

#define SENDER_PARALLEL_MAX 16

/* How parcels are delivered. */
struct sender_type {
	/* `thread` is the number of the calling thread, below `parallel`. */
	enum sender_outcome (*deliver)(void *arg, unsigned thread, const struct parcel *parcel,
				       struct sender_reply *reply);
	/* Makes each deliver() that is running return soon; by any thread. May be NULL. */
	void (*cancel)(void *arg);
	void (*free)(void *arg);
};

struct sender_options {
	const char *name; /* in messages; is copied */
	const struct chain_host *host;
	size_t queue_bytes;
	uint64_t give_up_ns;
	unsigned parallel;   /* threads, at most SENDER_PARALLEL_MAX; 0: one */
	struct spool *spool; /* NULL: none. The sender closes it. */
	/* Say only that a parcel is tried again. The owner says from the counts what was lost. */
	bool only_retries;
};

/* Records, of which each is counted in one of them at the end. */
struct sender_counts {
	uint64_t sent, refused, dropped, spooled;
	uint64_t skipped; /* the server has no service that takes them */
	uint64_t retries; /* parcels that were tried again */
	char why[200];    /* of the last failure, or of the first refusal; may have any bytes */
};

/* Makes a sender without its threads, and owns `arg` from then on, also if memory runs out
 * (NULL). */
struct sender *sender_new(const struct sender_options *options, const struct sender_type *type,
			  void *arg);
/* Starts the threads. If only some of them start, the sender goes on with these. */
int sender_start(struct sender *sender, struct error *err);
/* Queues a parcel and owns it. False: there was no room (or `parcel` is NULL), and `records` are
 * counted as dropped. With a finished file it waits for room. */
bool sender_push(struct sender *sender, struct parcel *parcel, uint32_t records);
/* Counts records that could not be put into a parcel. */
void sender_drop(struct sender *sender, uint64_t records);
/* Waits until all has been delivered that was queued, or until a time of CLOCK_MONOTONIC. It does
 * not wait for a delivery that is to be tried again later. */
bool sender_drain(struct sender *sender, uint64_t until_ns);
/* Delivers what is queued, each parcel once, at most until `until_ns`; with a finished file it
 * tries again. Then stops, puts the rest into the spool or drops it, and says what was lost. Frees
 * it. */
struct sender_counts sender_close(struct sender *sender, uint64_t until_ns);

struct sender_counts sender_counts(struct sender *sender);

/* One step of the first thread: delivers at most one parcel. Returns when to call it next;
 * UINT64_MAX: when there is something new. For tests, which have no thread and a clock of their
 * own. */
uint64_t sender_step(struct sender *sender, uint64_t now_ns);

#endif
