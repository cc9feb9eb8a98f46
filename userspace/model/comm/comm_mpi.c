// SPDX-License-Identifier: Apache-2.0
/* The calls of MPI, with the ranks and communicators that they are matched by. */
#include <stdlib.h>

#include "model/comm/comm_mpi_internal.h"
#include "util/memory.h"

/* Each span of the capture pays for so many look-ups of requests in arrays. Arrays of a file that
 * somebody made may be too long for more. */
#define STEPS_OF_SPAN 64

static bool is_compatible(int32_t wanted, int32_t got)
{
	return wanted == -1 || wanted == got;
}

/* Whether it is known which message an end is of. `call` comes after all earlier ones of its
 * communicator. */
static bool is_resolved(struct mpi_comm *comm, const struct mpi_call *call)
{
	struct mpi_unresolved *before = &comm->unresolved[call->receives];

	if (!mpi_call_is_unresolved(call))
		return !before->any || !is_compatible(before->peer, call->peer) ||
		       !is_compatible(before->tag, call->tag);
	if (!before->any) {
		*before = (struct mpi_unresolved){true, call->peer, call->tag};
		return false;
	}
	if (before->peer != call->peer)
		before->peer = -1;
	if (before->tag != call->tag)
		before->tag = -1;
	return false;
}

/* A collective has a count of what a rank sends and one of what it receives, and MPI does not read
 * both everywhere: only the root of a gather has a receive count, only the root of a scatter has a
 * send count, and MPI_IN_PLACE replaces the send count. This returns one that MPI reads. */
static enum mpi_elements elements_that_count(const struct mpi_comm *comm,
					     const struct mpi_call *call)
{
	bool root = call->call.root == comm->rank;

	if (call->given == call->got)
		return call->given;
	if (call->call.flow != FLOW_FROM_ROOT && call->call.flow != FLOW_TO_ROOT)
		return call->got;
	if (comm->rank == MODEL_NONE)
		return MPI_UNKNOWN;
	return root == (call->call.flow == FLOW_TO_ROOT) ? call->got : call->given;
}

/* A collective without elements carries no data, and need not wait for anybody. */
static void data_finish(const struct mpi_comm *comm, struct mpi_call *call)
{
	enum mpi_elements elements = elements_that_count(comm, call);

	if (call->call.flow == FLOW_NONE || call->call.data == MODEL_DATA_MAYBE)
		return;
	if (elements != MPI_ELEMENTS) {
		call->call.synchronizes = false;
		call->call.rooted = true;
	}
	if (elements == MPI_EMPTY)
		call->call.data = MODEL_DATA_NONE;
	else if (elements == MPI_UNKNOWN)
		call->call.data = MODEL_DATA_MAYBE;
}

/* A collective that failed on this rank counts like the others. But nobody knows for sure whether
 * it counts on all ranks, so the numbers of later ones are not certain. */
static void collective_finish(struct mpi_comm *comm, struct comm_call *call)
{
	call->place = comm->rank;
	call->places = comm->size;
	call->synchronizes = call->synchronizes && comm->size != 1;
	call->unsure |= comm->disturbed;
	comm->disturbed |= call->failed;
	if (call->failed)
		call->end_ts = UINT64_MAX;
}

/* Fills in what is known of a call when all calls have been seen. False: it cannot be matched. */
static bool call_finish(struct mpi_scan *scan, struct mpi_call *call)
{
	struct mpi_comm *comm = &scan->comms.data[call->comm];

	call->call.comm = comm->id;
	call->call.rank = comm->rank;
	call->call.order = call->order;
	if (!call->message) {
		data_finish(comm, call);
		collective_finish(comm, &call->call);
		return true;
	}
	if (comm->kind == MPI_COMM_UNKNOWN || !is_resolved(comm, call) ||
	    comm->rank == MODEL_NONE || (comm->size && (uint32_t)call->peer >= comm->size))
		return false;
	call->call.from = call->receives ? (uint32_t)call->peer : comm->rank;
	call->call.to = call->receives ? comm->rank : (uint32_t)call->peer;
	call->call.tag = call->tag;
	return true;
}

static void calls_finish(struct mpi_scan *scan, comm_calls *calls)
{
	for (size_t i = 0; i < scan->calls.len; i++) {
		struct mpi_call *call = &scan->calls.data[i];
		const struct mpi_comm *comm = &scan->comms.data[call->comm];
		bool known = call_finish(scan, call);

		if (!known || (comm->kind == MPI_COMM_UNKNOWN && comm->size != 1))
			scan->comm->unaligned++;
		if (known)
			vec_add(calls, call->call);
	}
}

static void inits_finish(struct mpi_scan *scan)
{
	for (size_t i = 0; i < scan->comms.len; i++) {
		const struct mpi_comm *comm = &scan->comms.data[i];
		struct comm_init init = {.comm = comm->id,
					 .ts = comm->ts,
					 .pid = scan->processes.data[comm->process].pid,
					 .thread = comm->thread,
					 .rank = comm->rank,
					 .assumed = comm->counted == MPI_ASSUMED,
					 .mpi = true};

		if (comm->counted != MPI_UNCOUNTED && !comm->null)
			vec_add(&scan->comm->inits, init);
	}
}

static void scan_free(struct mpi_scan *scan)
{
	free(scan->sites);
	vec_free(&scan->processes);
	vec_free(&scan->comms);
	vec_free(&scan->calls);
	vec_free(&scan->requests);
	map_free(&scan->execs);
	map_free(&scan->process_at);
	keymap_free(&scan->comm_at);
	keymap_free(&scan->by_handle);
	keymap_free(&scan->by_address);
	keymap_free(&scan->message_at);
	keymap_free(&scan->group_calls);
	comm_ids_free(&scan->ids);
}

void comm_mpi_add(struct model_comm *comm, comm_calls *calls)
{
	struct mpi_scan scan = {.comm = comm,
				.model = comm->model,
				.steps_left = STEPS_OF_SPAN * (uint64_t)comm->model->spans.len};

	if (!mpi_sites_make(&scan))
		return;
	mpi_scan_all(&scan);
	mpi_comms_finish(&scan);
	inits_finish(&scan);
	mpi_calls_order(&scan);
	calls_finish(&scan, calls);
	scan_free(&scan);
}
