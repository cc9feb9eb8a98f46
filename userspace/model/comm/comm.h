/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks of a job did together: collectives and messages of NCCL and MPI. Each is found
 * with the calls of all traced ranks, the way its data flowed, and the time at which each rank had
 * its result.
 *
 *	struct model_comm *comm = model_comm_new(model, gpu);
 *
 *	collective = model_collective_of(comm, span);
 *	model_comm_free(comm);
 *
 * It is derived from the roles and keys of sites (target/elf/site.h). The direction of NCCL's
 * collectives follows from their names. It sees only what is in the model, so a filter limits it
 * too. A NULL comm is empty: all functions accept it except those with an index. The model must
 * outlive it, gpu need not.
 */
#ifndef WAFFLE_MODEL_COMM_COMM_H
#define WAFFLE_MODEL_COMM_COMM_H

#include "model/gpu/gpu.h"
#include "model/model.h"

struct model_comm;

/* `gpu` is that of the model; NULL: it has no GPU calls. Returns NULL if the capture has no calls
 * of collectives or messages. */
struct model_comm *model_comm_new(const struct model *model, const struct model_gpu *gpu);
void model_comm_free(struct model_comm *comm);

/* One rank's call of a collective, or one end of a message. */
struct model_rank_call {
	uint64_t arrival_ts; /* begin of the call, or of the end of its outermost group */
	/*
	 * When this rank's call had completed, so that its result was there. NCCL: end of the first
	 * synchronisation that covers the call. MPI: end of the call; of a nonblocking one, end of
	 * its MPI_Wait or successful MPI_Test. UINT64_MAX: unknown.
	 */
	uint64_t end_ts;
	uint32_t span;
	/* The span that ends at end_ts, if it is another one: the MPI_Wait, or the synchronisation.
	 * MODEL_NONE: the call itself, or end_ts is unknown. */
	uint32_t end_span;
	uint32_t group_end; /* span of the group end that launched it, or MODEL_NONE */
	uint32_t thread;
	uint32_t pid;
	uint32_t rank; /* in the communicator; MODEL_NONE: unknown */
};

/* Whose input reaches whose output. */
enum model_flow {
	FLOW_UNKNOWN,
	FLOW_NONE,      /* no data: a barrier, the creation of a communicator */
	FLOW_ALL,       /* from every rank to every rank */
	FLOW_FROM_ROOT, /* broadcast, scatter */
	FLOW_TO_ROOT,   /* reduce, gather */
	FLOW_PREFIX,    /* scan: from lower to higher ranks */
	FLOW_PAIR,      /* a message, from rank `from` to rank `to` */
};

/* Whether data flows at all. */
enum model_data {
	MODEL_DATA_SOME,
	MODEL_DATA_MAYBE, /* the parts of ranks differ, and may be empty */
	MODEL_DATA_NONE,  /* all counts are 0; of a message, the sender's */
};

enum model_alignment {
	/* No call of another rank is known to match: only one rank was traced, or the match is
	 * ambiguous. */
	COLLECTIVE_ALONE,
	COLLECTIVE_BY_CREATION, /* all ranks count from the communicator's creation */
	/* The only alignment consistent with operations, counts and times; of messages, and of
	 * collectives in which ranks wait for a root alone: the one that explains their waits. */
	COLLECTIVE_BY_ORDER,
	/* All ranks count from the creation, but the number of a call is not known for sure. */
	COLLECTIVE_UNSURE,
};

/*
 * One collective of a communicator, with the calls of all traced ranks. A message, that is a send
 * and its matching receive, is a collective of two: the k-th send from one rank to another, with
 * one tag, belongs to the k-th receive of such a message.
 */
struct model_collective {
	uint64_t comm; /* communicator, the same on every rank */
	/*
	 * Number in its communicator, or among the messages from one rank to another. It counts
	 * from the communicator's creation if `alignment` is COLLECTIVE_BY_CREATION, otherwise from
	 * an arbitrary start.
	 */
	uint64_t seq;
	uint32_t site;     /* of the calls; of a message: of the first */
	uint32_t nranks;   /* number of ranks that take part; 0: unknown */
	uint32_t from, to; /* sender and receiver of a message; else MODEL_NONE */
	int32_t tag;       /* of a message of MPI; else 0 */
	/* The rank whose data all receive or that receives all data; MODEL_NONE: there is none. */
	uint32_t root;
	/* By rank, then pid; the send before the receive. */
	const struct model_rank_call *calls;
	uint32_t count;
	/* Index of the call that arrived last. Without meaning if `comparable` is false. */
	uint32_t last;
	uint32_t members; /* traced ranks of the communicator, also those that have not called it */
	/* A traced rank that had not called it when the capture ended, and the thread of its
	 * previous call. MODEL_NONE: all traced ranks have called it, or that is unknown. */
	uint32_t late_rank, late_thread;
	uint8_t alignment; /* enum model_alignment */
	uint8_t flow;      /* enum model_flow */
	uint8_t data;      /* enum model_data; without meaning for FLOW_NONE */
	bool rooted;       /* a rank may finish before others have arrived */
	/* No rank has its result before every rank has called: for all i and j, end_ts of i is not
	 * before arrival_ts of j. A message does not: there only the receiver waits. */
	bool synchronizes;
	bool mpi; /* of MPI; otherwise of NCCL */
	/* The times of its calls can be compared: all are on one host, or the clocks of the hosts
	 * have been aligned. */
	bool comparable;
};

/* The collective or message that a span is a call of. For the end of a group, the first collective
 * in the group. A call that sends and receives has two, of which this is the send: see
 * model_collective_received(). NULL: none. */
const struct model_collective *model_collective_of(const struct model_comm *comm, uint32_t span);
/* The message that a call receives which sends as well, such as MPI_Sendrecv. NULL: none. */
const struct model_collective *model_collective_received(const struct model_comm *comm,
							 uint32_t span);

/* Number of the operations that a call of MPI makes or completes which are with nobody: with
 * MPI_PROC_NULL, or of a request that is null. It does not wait for them. */
uint32_t model_comm_with_nobody(const struct model_comm *comm, uint32_t span);

/* All collectives and messages, by communicator and seq. */
size_t model_collective_count(const struct model_comm *comm);
const struct model_collective *model_collective_at(const struct model_comm *comm, size_t index);

/* Calls of collectives and messages that could not be matched with those of other traced ranks: of
 * all communicators and jobs of the capture together. */
uint64_t model_collectives_unaligned(const struct model_comm *comm);

/*
 * Ranks of a communicator that called different operations as its collective number `seq`: the
 * program calls collectives in different order on different ranks, which is an error. Such calls
 * are not matched.
 */
struct model_disorder {
	uint64_t comm, seq;
	uint32_t rank, span;             /* of a rank that most ranks agree with */
	uint32_t other_rank, other_span; /* of a rank that called something else */
	uint32_t others;                 /* number of ranks that called something else */
};

/* The first disorder of each communicator, by communicator. */
size_t model_disorder_count(const struct model_comm *comm);
const struct model_disorder *model_disorder_at(const struct model_comm *comm, size_t index);

/*
 * Two processes that may have been one rank of a job at the same time. At most one of them talked
 * to the other ranks, and nobody knows which. So no call of this job is matched; of NCCL, none of
 * the communicator. A rank whose first process had exited before the second one began is no claim.
 */
struct model_claim {
	uint32_t job; /* in model.strings; empty: unknown */
	uint32_t rank;
	uint32_t pid, other_pid;
};

size_t model_claim_count(const struct model_comm *comm);
const struct model_claim *model_claim_at(const struct model_comm *comm, size_t index);

#endif
