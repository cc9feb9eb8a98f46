// SPDX-License-Identifier: Apache-2.0
#include "model/comm/comm.h"

#include <stdlib.h>

#include "model/comm/comm_internal.h"

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

int model_comm_new(struct model_comm **comm, const struct model *model, const struct model_gpu *gpu)
{
	struct model_comm *made = calloc(1, sizeof(*made));
	comm_calls calls = {0};
	int result;

	*comm = NULL;
	if (!made)
		return -ENOMEM;
	made->model = model;
	result = comm_nccl_add(made, gpu, &calls);
	if (!result)
		result = comm_mpi_add(made, &calls);
	if (!result)
		result = comm_match(made, &calls);
	vec_free(&calls);
	if (result || (!made->collectives.len && !made->unaligned))
		model_comm_free(made);
	else
		*comm = made;
	return result;
}

void model_comm_free(struct model_comm *comm)
{
	if (!comm)
		return;
	vec_free(&comm->inits);
	vec_free(&comm->collectives);
	vec_free(&comm->rank_calls);
	vec_free(&comm->disorders);
	map_free(&comm->inits_of);
	map_free(&comm->collective_of);
	map_free(&comm->received);
	free(comm);
}
