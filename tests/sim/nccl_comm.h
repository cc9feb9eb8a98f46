/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators of the stand-in for libnccl.so.2. Ranks, be they threads or processes, meet in a
 * segment of shared memory whose name derives from the communicator's unique id. It only holds the
 * progress of each rank.
 */
#ifndef SIM_NCCL_COMM_H
#define SIM_NCCL_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "sim_nccl.h"

#define RANKS_MAX 64
#define ENDS 64 /* operations whose last arrival is remembered */

/* A barrier that ranks use repeatedly: round k is over when all have arrived k times. */
struct meeting {
	uint32_t arrived; /* a futex */
	uint32_t parties;
	uint64_t last_ns[ENDS]; /* last arrival of round k: last_ns[k % ENDS] */
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
 * The layout that a tracer sees: the magic number at 0, then the hash, the rank and the number of
 * ranks at the offsets of NCCL 2.28.9. A tracer derives the offsets from ncclCommUserRank and
 * ncclCommCount.
 */
#define COMM_MAGIC 0x0280028002800280ull
#define COMM_HASH_AT 0x1044c8

struct ncclComm {
	uint64_t magic;
	struct shared *shared;
	char name[64]; /* of the shared memory */
	int device;
	uint32_t collectives, splits; /* number of each that this rank has begun */
	uint32_t sent[RANKS_MAX], received[RANKS_MAX];
	uint32_t aborted;
	ncclResult_t error;
	char unknown[COMM_HASH_AT - 8 - 8 - 64 - 4 - 8 - 8 * RANKS_MAX - 8];
	uint64_t commHash;
	int rank;
	int nRanks;
};

/* Creates the communicator and announces this rank to the others. Then comm_wait() waits for
 * them. */
ncclResult_t comm_join(ncclComm_t *comm, const char *name, int ranks, int rank, int device);
ncclResult_t comm_wait(ncclComm_t comm);
void comm_name(const ncclUniqueId *id, char name[64]);
/* Name of a communicator derived from another one. All ranks that use the same numbers get the same
 * name. */
void comm_name_child(ncclComm_t parent, const char *how, uint64_t a, uint64_t b, char name[64]);
bool comm_good(ncclComm_t comm);
void comm_free(ncclComm_t comm);

/* Records the arrival of this rank in round `time` (from 0) of a meeting. */
void meeting_arrive(struct meeting *meeting, uint32_t time, uint64_t now_ns);
/* Waits until all ranks have arrived, and returns the time of the last arrival. 0: the communicator
 * was aborted. */
uint64_t meeting_wait(struct meeting *meeting, uint32_t time, const uint32_t *aborted);

#endif
