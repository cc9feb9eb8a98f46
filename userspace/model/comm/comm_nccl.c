// SPDX-License-Identifier: Apache-2.0
/* The calls of NCCL: which way their data flows, and when they are done. */
#include <string.h>

#include "model/comm/comm_internal.h"
#include "util/memory.h"

/* By the names of NCCL's and RCCL's functions (nccl.h), without the prefixes. A name stands before
 * others that it is the beginning of. */
static const struct {
	const char *name;
	enum model_flow flow;
} flows[] = {
	{"AllReduce", FLOW_ALL},     {"AllGather", FLOW_ALL},       {"AlltoAll", FLOW_ALL},
	{"AllToAll", FLOW_ALL},      {"ReduceScatter", FLOW_ALL},   {"Reduce", FLOW_TO_ROOT},
	{"Gather", FLOW_TO_ROOT},    {"Broadcast", FLOW_FROM_ROOT}, {"Bcast", FLOW_FROM_ROOT},
	{"Scatter", FLOW_FROM_ROOT},
};

/* The flow of ncclAllReduce, pncclAllReduceConfig and so on. */
static enum model_flow flow_of(const char *name)
{
	name += *name == 'p';
	if (strncmp(name, "nccl", 4))
		return FLOW_UNKNOWN;
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++)
		if (!strncmp(name + 4, flows[i].name, strlen(flows[i].name)))
			return flows[i].flow;
	return FLOW_UNKNOWN;
}

static struct comm_call call_of(const struct model *model, const struct model_gpu_call *from)
{
	bool message = from->role != SITE_ROLE_COLLECTIVE;
	bool receives = from->role == SITE_ROLE_RECV;
	struct comm_call call = {
		.comm = from->comm,
		.seq = from->seq,
		.order = from->span,
		.arrival_ts = from->arrival_ts,
		.end_ts = from->done_ts,
		.signature = from->signature,
		.from = from->from,
		.to = from->to,
		.place = message ? receives : from->rank,
		.places = message ? 2 : from->nranks,
		.span = from->span,
		.end_span = from->done_span,
		.group_end = from->group_end,
		.thread = from->thread,
		.pid = from->pid,
		.rank = from->rank,
		.root = from->root,
		.flow = message ? FLOW_PAIR
				: (uint8_t)flow_of(
					  model_site(model, model->spans.data[from->span].site)
						  ->name),
		.has_seq = from->has_seq,
		/* NCCL may send a short message before the receiver arrives. */
		.rooted = message ? !receives : from->root != MODEL_NONE,
	};

	/* NCCL starts nothing for a collective of no elements. */
	call.data = from->count ? MODEL_DATA_SOME : MODEL_DATA_NONE;
	call.synchronizes = !message && !call.rooted && from->count && from->count != UINT64_MAX;
	return call;
}

void comm_nccl_add(struct model_comm *comm, const struct model_gpu *gpu, comm_calls *calls)
{
	const struct model_gpu_call *gpu_calls;
	const struct model_gpu_init *inits;
	size_t call_count = model_gpu_calls(gpu, &gpu_calls);
	size_t init_count = model_gpu_inits(gpu, &inits);

	for (size_t i = 0; i < call_count; i++)
		vec_add(calls, call_of(comm->model, &gpu_calls[i]));
	for (size_t i = 0; i < init_count; i++) {
		struct comm_init init = {.comm = inits[i].comm,
					 .ts = inits[i].ts,
					 .pid = inits[i].pid,
					 .thread = inits[i].thread,
					 .rank = inits[i].rank};

		vec_add(&comm->inits, init);
	}
}
