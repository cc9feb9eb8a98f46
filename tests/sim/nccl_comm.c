// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nccl_comm.h"
#include "simulation.h"

_Static_assert(offsetof(struct ncclComm, commHash) == COMM_HASH_AT, "as in NCCL 2.28.9");
_Static_assert(offsetof(struct ncclComm, nRanks) == 0x1044d4, "as in NCCL 2.28.9");

#define ABORT_LOOK_S 1 /* how often a waiting rank checks for an abort */

void meeting_arrive(struct meeting *meeting, uint32_t time, uint64_t now_ns)
{
	uint64_t *last = &meeting->last_ns[time % ENDS];
	uint64_t seen = __atomic_load_n(last, __ATOMIC_RELAXED);
	uint32_t arrived;

	/* Values of earlier rounds are smaller than any current time, so nobody needs to clear
	 * them. */
	while (seen < now_ns && !__atomic_compare_exchange_n(last, &seen, now_ns, false,
							     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	arrived = __atomic_add_fetch(&meeting->arrived, 1, __ATOMIC_SEQ_CST);
	if (arrived == (time + 1) * meeting->parties)
		syscall(SYS_futex, &meeting->arrived, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

uint64_t meeting_wait(struct meeting *meeting, uint32_t time, const uint32_t *aborted)
{
	const struct timespec look = {ABORT_LOOK_S, 0};

	for (;;) {
		uint32_t arrived = __atomic_load_n(&meeting->arrived, __ATOMIC_SEQ_CST);

		if ((int32_t)(arrived - (time + 1) * meeting->parties) >= 0)
			break;
		if (aborted && __atomic_load_n(aborted, __ATOMIC_RELAXED))
			return 0;
		syscall(SYS_futex, &meeting->arrived, FUTEX_WAIT, arrived, &look, NULL, 0);
	}
	return __atomic_load_n(&meeting->last_ns[time % ENDS], __ATOMIC_SEQ_CST);
}

static uint64_t hash_bytes(const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ at[i]) * 0x100000001b3u;
	return hash;
}

void comm_name(const ncclUniqueId *id, char name[64])
{
	snprintf(name, 64, "/waffle-sim-%016" PRIx64,
		 hash_bytes(id->internal, sizeof(id->internal)));
}

void comm_name_child(ncclComm_t parent, const char *how, uint64_t a, uint64_t b, char name[64])
{
	char text[128];

	snprintf(text, sizeof(text), "%" PRIx64 " %s %" PRIx64 " %" PRIx64, parent->commHash, how,
		 a, b);
	snprintf(name, 64, "/waffle-sim-%016" PRIx64, hash_bytes(text, strlen(text)));
}

static struct shared *shared_map(const char *name)
{
	int fd = shm_open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	struct shared *shared = NULL;

	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, sizeof(*shared)))
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return shared == MAP_FAILED ? NULL : shared;
}

ncclResult_t comm_join(ncclComm_t *at, const char *name, int ranks, int rank, int device)
{
	struct shared *shared;
	ncclComm_t comm;

	if (ranks < 1 || ranks > RANKS_MAX || rank < 0 || rank >= ranks)
		return ncclInvalidArgument;
	comm = calloc(1, sizeof(*comm));
	shared = comm ? shared_map(name) : NULL;
	if (!shared) {
		free(comm);
		return ncclSystemError;
	}
	comm->magic = COMM_MAGIC;
	comm->shared = shared;
	comm->device = device;
	snprintf(comm->name, sizeof(comm->name), "%s", name);
	comm->commHash = hash_bytes(name, strlen(name));
	comm->rank = rank;
	comm->nRanks = ranks;
	/* All ranks write the same values. */
	shared->collectives.parties = shared->joins.parties = shared->splits.parties =
		(uint32_t)ranks;
	for (int other = 0; other < ranks; other++)
		shared->pairs[rank][other].parties = shared->pairs[other][rank].parties = 2;
	*at = comm; /* known before the others have arrived, as in the real library */
	if (__atomic_add_fetch(&shared->joined, 1, __ATOMIC_SEQ_CST) == (uint32_t)ranks)
		shm_unlink(name); /* all ranks have mapped it by now */
	meeting_arrive(&shared->joins, 0, sim_now_ns());
	return ncclSuccess;
}

ncclResult_t comm_wait(ncclComm_t comm)
{
	return meeting_wait(&comm->shared->joins, 0, &comm->aborted) ? ncclSuccess
								     : ncclInternalError;
}

bool comm_good(ncclComm_t comm)
{
	return comm && comm->magic == COMM_MAGIC;
}

void comm_free(ncclComm_t comm)
{
	munmap(comm->shared, sizeof(*comm->shared));
	comm->magic = 0;
	free(comm);
}
