/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the stand-in of libnccl.so.2: communicators. Ranks, be they threads or processes, meet in
 * a segment of shared memory that is named by the communicator's unique id; all that is in it is
 * who has come how far.
 */
#ifndef SIM_NCCL_COMM_H
#define SIM_NCCL_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "sim_nccl.h"

#define RANKS_MAX 64
#define ENDS 64 /* operations whose time of the last arrival is kept */

/* A place where ranks meet time and again: the k-th time is over when all have come k times. */
struct meeting {
	uint32_t arrived; /* a futex */
	uint32_t parties;
	uint64_t last_ns[ENDS]; /* when the last one came to time k: last_ns[k % ENDS] */
};

struct shared {
	uint32_t joined, left;
	struct meeting collectives, joins, splits;
	struct meeting pairs[RANKS_MAX][RANKS_MAX]; /* sender, receiver */
	struct {
		int32_t color, key;
	} split[RANKS_MAX];
};

/*
 * As a tracer sees one: the mark at 0, then, at the places of NCCL 2.28.9, its hash, its rank and
 * the number of ranks (their offsets are read from ncclCommUserRank and ncclCommCount).
 */
#define COMM_MAGIC 0x0280028002800280ull
#define COMM_HASH_AT 0x1044c8

struct ncclComm {
	uint64_t magic;
	struct shared *shared;
	char name[64]; /* of the shared memory */
	int device;
	uint32_t collectives, splits; /* how many of them this rank has begun */
	uint32_t sent[RANKS_MAX], received[RANKS_MAX];
	uint32_t aborted;
	ncclResult_t error;
	char unknown[COMM_HASH_AT - 8 - 8 - 64 - 4 - 8 - 8 * RANKS_MAX - 8];
	uint64_t commHash;
	int rank;
	int nRanks;
};

/* Makes the communicator and says so to the others; comm_wait() then waits for them. */
ncclResult_t comm_join(ncclComm_t *comm, const char *name, int ranks, int rank, int device);
ncclResult_t comm_wait(ncclComm_t comm);
void comm_name(const ncclUniqueId *id, char name[64]);
/* Of one that is made from another: by all who make it with the same numbers. */
void comm_name_child(ncclComm_t parent, const char *how, uint64_t a, uint64_t b, char name[64]);
bool comm_good(ncclComm_t comm);
void comm_free(ncclComm_t comm);

/* Says when this rank came to time `time` (from 0 on) of a meeting. */
void meeting_arrive(struct meeting *meeting, uint32_t time, uint64_t now_ns);
/* Waits until all have come, and returns when the last one did; 0: the communicator was aborted. */
uint64_t meeting_wait(struct meeting *meeting, uint32_t time, const uint32_t *aborted);

#endif
