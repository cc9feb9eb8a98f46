/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ranks of a job waited for each other: who came last to collectives and messages, and how
 * the time of these splits into transfer and waiting.
 *
 * A rank waits from its arrival until the last rank whose data it needs has arrived. The time until
 * then belongs to that last rank: it made the others wait. Who came last is known if the clocks of
 * all ranks are one, or were aligned. Otherwise it is the rank whose own call was the shortest,
 * because all ranks of a synchronising collective end at about the same time.
 *
 * Transfer is the duration of the shortest call, times the number of calls, and all else is
 * waiting. This needs no common clock. For calls that do not synchronise all ranks (broadcast,
 * messages), waiting is what is known from the arrivals, and transfer is the rest.
 */
#ifndef WAFFLE_ANALYZE_STRAGGLERS_H
#define WAFFLE_ANALYZE_STRAGGLERS_H

#include "model/comm/comm.h"
#include "model/model.h"
#include "util/vec.h"

/* One rank, over all its communicators: a process, or a thread if the process has several ranks. */
struct straggler_rank {
	uint32_t number; /* order of its first call */
	uint32_t thread; /* of its first call */
	uint32_t rank;   /* of its process in the job, else in its largest communicator; MODEL_NONE:
			    unknown */
	uint32_t places; /* size of that communicator; UINT32_MAX: `rank` is that in the job */
	uint64_t calls;  /* of collectives and messages with at least one other traced rank */
	uint64_t last;   /* of these, it came last and others waited for it */
	uint64_t made_wait_ns; /* sum of the times that others waited for it */
	uint64_t unsure_ns;    /* of these: another rank may have come last */
	uint64_t waited_ns;    /* it waited for others */
};

/* All collectives of one name and communicator. Times are sums over the calls of all ranks. They
 * leave out collectives with a call whose end is unknown: `known` counts the others. */
struct straggler_group {
	const char *name; /* of the call; it belongs to the model or its reader */
	uint64_t comm;
	bool mpi;          /* otherwise NCCL */
	uint32_t nranks;   /* that take part; 0: unknown */
	uint32_t traced;   /* most calls of one of these collectives */
	uint64_t count;    /* of collectives with calls of at least two ranks */
	uint64_t known;    /* of these */
	uint64_t total_ns; /* transfer_ns + waiting_ns */
	uint64_t transfer_ns, waiting_ns;
	uint32_t worst; /* the rank that made the others wait most: index in ranks, or MODEL_NONE */
	uint64_t worst_ns;
};

/* One collective in which ranks waited. */
struct straggler_wait {
	uint32_t collective;               /* for model_collective_at() */
	uint32_t rank;                     /* that came last: index in ranks */
	uint64_t ts;                       /* when it came */
	uint64_t made_wait_ns, longest_ns; /* all others, and the first one */
	uint64_t transfer_ns;              /* duration of the shortest call; 0: unknown */
	bool sure;                         /* no other rank can have come last */
};

struct stragglers {
	const struct model *model;
	struct model_gpu *gpu;
	struct model_comm *comm;
	VEC(struct straggler_rank) ranks;   /* those that made others wait most come first */
	VEC(struct straggler_group) groups; /* the longest waiting first */
	VEC(struct straggler_wait) waits;   /* likewise, the first ones */
};

/* Keeps the `waits` worst collectives. The model must outlive the result. Without calls of at least
 * two ranks, the result has no rows. */
struct stragglers *stragglers_new(const struct model *model, uint32_t waits);
void stragglers_free(struct stragglers *stragglers);

#endif
