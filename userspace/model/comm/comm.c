// SPDX-License-Identifier: Apache-2.0
#include "model/comm/comm.h"

#include <stdlib.h>

#include "model/comm/comm_internal.h"
#include "util/memory.h"

const struct model_collective *model_collective_of(const struct model_comm *comm, uint32_t span)
{
	uint32_t index = comm ? map_get(&comm->collective_of, span) : MAP_NONE;

	return index == MAP_NONE ? NULL : &comm->collectives.data[index];
}

const struct model_collective *model_collective_received(const struct model_comm *comm,
							 uint32_t span)
{
	uint32_t index = comm ? map_get(&comm->received, span) : MAP_NONE;

	return index == MAP_NONE ? NULL : &comm->collectives.data[index];
}

uint32_t model_comm_with_nobody(const struct model_comm *comm, uint32_t span)
{
	uint32_t count = comm ? map_get(&comm->with_nobody, span) : MAP_NONE;

	return count == MAP_NONE ? 0 : count;
}

size_t model_collective_count(const struct model_comm *comm)
{
	return comm ? comm->collectives.len : 0;
}

const struct model_collective *model_collective_at(const struct model_comm *comm, size_t index)
{
	return &comm->collectives.data[index];
}

uint64_t model_collectives_unaligned(const struct model_comm *comm)
{
	return comm ? comm->unaligned : 0;
}

size_t model_disorder_count(const struct model_comm *comm)
{
	return comm ? comm->disorders.len : 0;
}

const struct model_disorder *model_disorder_at(const struct model_comm *comm, size_t index)
{
	return &comm->disorders.data[index];
}

size_t model_claim_count(const struct model_comm *comm)
{
	return comm ? comm->claims.len : 0;
}

const struct model_claim *model_claim_at(const struct model_comm *comm, size_t index)
{
	return &comm->claims.data[index];
}

struct model_comm *model_comm_new(const struct model *model, const struct model_gpu *gpu)
{
	struct model_comm *comm = memory_zeroed(1, sizeof(*comm));
	comm_calls calls = {0};

	comm->model = model;
	comm_nccl_add(comm, gpu, &calls);
	comm_mpi_add(comm, &calls);
	comm_match(comm, &calls);
	vec_free(&calls);
	if (comm->collectives.len || comm->unaligned || comm->with_nobody.len)
		return comm;
	model_comm_free(comm);
	return NULL;
}

void model_comm_free(struct model_comm *comm)
{
	if (!comm)
		return;
	vec_free(&comm->inits);
	vec_free(&comm->collectives);
	vec_free(&comm->rank_calls);
	vec_free(&comm->disorders);
	vec_free(&comm->claims);
	map_free(&comm->inits_of);
	map_free(&comm->collective_of);
	map_free(&comm->received);
	map_free(&comm->with_nobody);
	free(comm);
}
