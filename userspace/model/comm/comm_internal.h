/* SPDX-License-Identifier: Apache-2.0 */
/* Private to model/comm: calls of one rank, before they are matched with those of others. */
#ifndef WAFFLE_MODEL_COMM_COMM_INTERNAL_H
#define WAFFLE_MODEL_COMM_COMM_INTERNAL_H

#include "model/comm/comm.h"

/* One rank's call of a collective, or one end of a message. The ends of the messages from one rank
 * to another, with one tag, are counted by themselves, and their places are 0 and 1. */
struct comm_call {
	uint64_t comm, seq, arrival_ts;
	uint64_t order;  /* calls of a rank are counted in this order */
	uint64_t end_ts; /* it was finished by then; UINT64_MAX: unknown */
	/* Hash of what is equal on all ranks: the function, its root, NCCL's count, datatype and
	 * op. */
	uint64_t signature;
	uint32_t from, to;      /* ranks of a message; else MODEL_NONE */
	uint32_t place, places; /* of a collective: its rank and the number of ranks; 0: unknown */
	uint32_t span, end_span, group_end, thread, pid, rank;
	uint32_t root; /* MODEL_NONE: none */
	int32_t tag;
	uint8_t flow; /* enum model_flow */
	uint8_t data; /* enum model_data, as far as this call shows it */
	bool has_seq;
	bool rooted; /* a rank may finish before others have arrived */
	bool synchronizes;
	bool mpi;
	/* It takes a number, but it may have done nothing, so it is not matched. */
	bool failed;
	/* Its number among the calls of its rank is not known for sure. */
	bool unsure;
};

typedef VEC(struct comm_call) comm_calls;

/* The creation of a communicator on one rank. */
struct comm_init {
	uint64_t comm, ts;
	uint32_t pid, thread;
	uint32_t rank; /* MODEL_NONE: all ranks of the process, or unknown */
	/* It was not recorded: other calls show that probably nothing is missing since then. */
	bool assumed;
	bool mpi;
};

struct model_comm {
	const struct model *model;
	VEC(struct comm_init) inits; /* in the order of init_compare(), from comm_match() on */
	struct map inits_of;         /* pid → number of its inits */
	VEC(struct model_collective) collectives;
	VEC(struct model_rank_call) rank_calls;
	VEC(struct model_disorder) disorders;
	VEC(struct model_claim) claims;
	struct map collective_of; /* span → index in collectives */
	struct map received; /* span that also sends → index in collectives of what it receives */
	struct map with_nobody; /* span → number of operations: model_comm_with_nobody() */
	uint64_t unaligned;
};

/* ---- comm_host.c ---- */

/* Number of the host of a process. */
uint32_t comm_host(const struct model *model, uint32_t pid);
/* Whether times of two hosts can be compared. */
bool comm_hosts_comparable(const struct model *model, uint32_t host, uint32_t other);

/* NULL: unknown. */
const struct model_process *comm_process(const struct model *model, uint32_t pid);
/* What is the same for all ranks of a job. */
struct comm_job {
	uint32_t world_size; /* by the environment, of a job without a name; 0: unknown */
	uint32_t name;       /* in model.strings; empty: unknown */
	uint32_t launcher;   /* pid of the process that started the ranks; 0: unknown, or several
				hosts */
};
struct comm_job comm_job(const struct model *model, uint32_t pid);
/* Depends only on the job itself, not on the numbers in the capture. */
uint64_t comm_job_hash(const struct model *model, struct comm_job job);

/* ---- comm_nccl.c ---- */

/* Adds the calls of NCCL, and the creations of its communicators. */
void comm_nccl_add(struct model_comm *comm, const struct model_gpu *gpu, comm_calls *calls);

/* ---- comm_mpi.c ---- */

/* The same for MPI. */
void comm_mpi_add(struct model_comm *comm, comm_calls *calls);

/* ---- comm_match.c ---- */

/* Builds the collectives from the calls, and reorders the calls. */
void comm_match(struct model_comm *comm, comm_calls *calls);

#endif
