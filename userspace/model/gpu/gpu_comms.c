// SPDX-License-Identifier: Apache-2.0
/*
 * Communicators of NCCL whose hash, rank and size can't be read from their memory, because the code
 * of the library's getters is not understood (probe/args/struct_offsets.h). Their calls have the
 * communicator's address instead, and the call that created it has the rest: rank and size, and the
 * ncclUniqueId, which all ranks share.
 */
#include "model/gpu/gpu_internal.h"
#include "util/memory.h"

#define COMMS_MAX 65536

static void key_set(uint64_t key[2], uint32_t pid, uint64_t address)
{
	key[0] = pid;
	key[1] = address;
}

void gpu_comm_add(struct model_gpu *gpu, uint32_t pid, uint64_t address, struct gpu_comm comm)
{
	uint64_t key[2];

	key_set(key, pid, address);
	/* The communicator that was at this address before is gone in any case. */
	keymap_remove(&gpu->comm_at, key, sizeof(key));
	if (!address || !comm.comm || comm.rank == MODEL_NONE || comm.rank >= comm.nranks ||
	    gpu->comms.len >= COMMS_MAX)
		return;
	keymap_put(&gpu->comm_at, key, sizeof(key), (uint32_t)gpu->comms.len);
	vec_add(&gpu->comms, comm);
}

const struct gpu_comm *gpu_comm_find(const struct model_gpu *gpu, uint32_t pid, uint64_t address)
{
	uint32_t index;
	uint64_t key[2];

	key_set(key, pid, address);
	index = address ? keymap_get(&gpu->comm_at, key, sizeof(key)) : MAP_NONE;
	return index == MAP_NONE ? NULL : &gpu->comms.data[index];
}
