// SPDX-License-Identifier: Apache-2.0
/* One pass over the calls of MPI in order of time. */
#include <string.h>

#include "model/comm/comm_mpi_internal.h"
#include "util/hash.h"
#include "util/memory.h"

/* The wildcard of a source (mpi.h). MPI_PROC_NULL is -2 in Open MPI and -1 in MPICH. */
#define OMPI_ANY_SOURCE (-1)
#define MPICH_ANY_SOURCE (-2)
#define ADDRESS_MIN 4096 /* no MPI_Status lies below */

static struct mpi_call call_of(const struct mpi_scan *scan, const struct mpi_item *item,
			       uint32_t comm)
{
	return (struct mpi_call){
		.call =
			{
				.arrival_ts = item->ts,
				.end_ts = item->end_ts,
				.from = MODEL_NONE,
				.to = MODEL_NONE,
				.span = item->span,
				.end_span = MODEL_NONE,
				.group_end = MODEL_NONE,
				.thread = item->thread,
				.pid = item->pid,
				.root = MODEL_NONE,
				.mpi = true,
				.failed = item->failed,
			},
		.order = scan->order,
		.posted_ts = item->ts,
		.returned_ts = item->end_ts,
		.comm = comm,
	};
}

/* Adds a call; if it is nonblocking, with its request. */
static void call_push(struct mpi_scan *scan, const struct mpi_item *item,
		      const struct mpi_call *call)
{
	memory_require(scan->calls.len < MODEL_NONE);
	vec_add(&scan->calls, *call);
	scan->order++;
	mpi_request_add(scan, item, (uint32_t)scan->calls.len - 1);
}

/* ---- collectives ---- */

static const struct {
	uint8_t flow; /* enum model_flow */
	bool synchronizes;
} collective_roles[SITE_ROLE_COUNT] = {
#define OTHER(...)
#define COLLECTIVE(id, name, flow, synchronizes) [SITE_ROLE_##id] = {flow, synchronizes},
	SITE_ROLES(OTHER, OTHER, COLLECTIVE)
#undef COLLECTIVE
#undef OTHER
};

/* MPI_Bcast_c on one rank and MPI_Bcast on another one may be one collective. */
static uint64_t hash_name(const char *name)
{
	size_t len = strlen(name);

	if (len > 2 && !strcmp(name + len - 2, "_c"))
		len -= 2;
	return hash_bytes(HASH_BEGIN, name, len);
}

static enum mpi_elements elements_of(const struct mpi_item *item, unsigned key)
{
	return !mpi_has(item, key) ? MPI_UNKNOWN : item->values[key] ? MPI_ELEMENTS : MPI_EMPTY;
}

static bool has_parts(unsigned role)
{
	return role == SITE_ROLE_MPI_ALL_PARTS || role == SITE_ROLE_MPI_FROM_ROOT_PARTS ||
	       role == SITE_ROLE_MPI_TO_ROOT_PARTS || role == SITE_ROLE_MPI_NEIGHBORS;
}

static void collective_add(struct mpi_scan *scan, const struct mpi_item *item, uint32_t comm)
{
	struct mpi_call call = call_of(scan, item, comm);
	uint32_t site = scan->model->spans.data[item->span].site;
	const char *name = model_site(scan->model, site)->name;
	unsigned role = item->site->role;

	call.call.flow = collective_roles[role].flow;
	call.call.synchronizes = collective_roles[role].synchronizes;
	call.call.data = has_parts(role) ? MODEL_DATA_MAYBE : MODEL_DATA_SOME;
	call.given = elements_of(item, MPI_COUNT);
	call.got = mpi_has(item, MPI_RECEIVED) ? elements_of(item, MPI_RECEIVED) : call.given;
	call.call.rooted = !collective_roles[role].synchronizes;
	if (mpi_has(item, MPI_ROOT) && item->values[MPI_ROOT] < INT32_MAX)
		call.call.root = (uint32_t)item->values[MPI_ROOT];
	call.call.signature = hash_bytes(hash_name(name), &call.call.root, sizeof(call.call.root));
	scan->comms.data[comm].collectives++;
	call_push(scan, item, &call);
}

static void role_collective(struct mpi_scan *scan, const struct mpi_item *item)
{
	uint32_t comm = mpi_comm_of(scan, item);

	if (comm != MODEL_NONE)
		collective_add(scan, item, comm);
}

/* The creation of a communicator is a collective of its parent. */
static void role_creation(struct mpi_scan *scan, const struct mpi_item *item)
{
	bool group = item->site->role == SITE_ROLE_MPI_COMM_CREATE && mpi_has(item, MPI_TAG);
	uint32_t parent = mpi_comm_of(scan, item);

	if (parent == MODEL_NONE)
		return;
	if (!item->failed)
		mpi_comm_make(scan, item, parent);
	if (!group)
		collective_add(scan, item, parent);
}

/* ---- messages ---- */

/* Whether an end of a message is with MPI_PROC_NULL. */
static bool is_with_nobody(const struct mpi_item *item, bool receives)
{
	int32_t peer = (int32_t)item->values[receives ? MPI_SOURCE : MPI_DEST];
	int32_t any = item->site->pointers ? OMPI_ANY_SOURCE : MPICH_ANY_SOURCE;

	return peer < 0 && !(receives && peer == any);
}

/* Adds one end of a message, or a persistent request. */
static void end_add(struct mpi_scan *scan, const struct mpi_item *item, bool receives,
		    uint32_t comm)
{
	unsigned role = item->site->role;
	bool both = role == SITE_ROLE_MPI_SENDRECV;
	struct mpi_call call = call_of(scan, item, comm);

	call.message = true;
	call.receives = receives;
	call.peer = (int32_t)item->values[receives ? MPI_SOURCE : MPI_DEST];
	call.tag = (int32_t)item->values[both && receives ? MPI_RECEIVE_TAG : MPI_TAG];
	call.call.flow = FLOW_PAIR;
	call.call.place = receives;
	call.call.places = 2;
	call.call.rooted = !receives;
	if (!receives && mpi_has(item, MPI_COUNT) && !item->values[MPI_COUNT])
		call.call.data = MODEL_DATA_NONE;
	if (is_with_nobody(item, receives))
		return;
	call.peer = call.peer < 0 ? -1 : call.peer;
	if (mpi_has(item, MPI_STATUS) && item->values[MPI_STATUS] >= ADDRESS_MIN &&
	    mpi_has(item, MPI_MATCHED) && item->end_ts != UINT64_MAX && !item->failed)
		mpi_call_matched(&call, item->values[MPI_MATCHED]);
	if (role == SITE_ROLE_MPI_SEND_INIT || role == SITE_ROLE_MPI_RECV_INIT) {
		call.call.end_ts = UINT64_MAX;
		mpi_request_add_persistent(scan, item, &call);
	} else {
		call_push(scan, item, &call);
	}
}

static bool has_end(const struct mpi_item *item, bool receives)
{
	bool both = item->site->role == SITE_ROLE_MPI_SENDRECV;

	return mpi_has(item, receives ? MPI_SOURCE : MPI_DEST) &&
	       mpi_has(item, both && receives ? MPI_RECEIVE_TAG : MPI_TAG);
}

/* Counts the ends of a call with MPI_PROC_NULL. If all are, its request is complete at once. */
static void ends_with_nobody(struct mpi_scan *scan, const struct mpi_item *item, bool sends,
			     bool receives)
{
	uint32_t count =
		(sends && is_with_nobody(item, false)) + (receives && is_with_nobody(item, true));

	mpi_with_nobody(scan, item, count);
	if (count && count == (uint32_t)sends + receives)
		mpi_request_add_with_nobody(scan, item);
}

static void role_message(struct mpi_scan *scan, const struct mpi_item *item)
{
	unsigned role = item->site->role;
	bool sends = role == SITE_ROLE_MPI_SEND || role == SITE_ROLE_MPI_SEND_INIT ||
		     role == SITE_ROLE_MPI_SENDRECV;
	bool receives = role == SITE_ROLE_MPI_RECV || role == SITE_ROLE_MPI_RECV_INIT ||
			role == SITE_ROLE_MPI_SENDRECV;
	uint32_t comm = mpi_comm_of(scan, item);

	if (comm == MODEL_NONE)
		return;
	sends = sends && has_end(item, false);
	receives = receives && has_end(item, true);
	ends_with_nobody(scan, item, sends, receives);
	if (sends)
		end_add(scan, item, false, comm);
	if (receives)
		end_add(scan, item, true, comm);
}

/* MPI_Mprobe decides which message the MPI_Mrecv after it receives. */
static void role_mprobe(struct mpi_scan *scan, const struct mpi_item *item)
{
	const uint64_t key[] = {item->process, item->values[MPI_HANDLE]};
	size_t before = scan->calls.len;
	uint32_t comm;

	if (has_end(item, true) && is_with_nobody(item, true))
		mpi_with_nobody(scan, item, 1);
	if (!item->failed && (!mpi_has(item, MPI_HANDLE) || item->end_ts == UINT64_MAX ||
			      (mpi_has(item, MPI_DONE) && !(int32_t)item->values[MPI_DONE])))
		return;
	comm = mpi_comm_of(scan, item);
	if (comm == MODEL_NONE || !has_end(item, true))
		return;
	end_add(scan, item, true, comm);
	if (scan->calls.len > before && !item->failed)
		keymap_put(&scan->message_at, key, sizeof(key), (uint32_t)before);
}

static void role_mrecv(struct mpi_scan *scan, const struct mpi_item *item)
{
	bool waits = !mpi_has(item, MPI_REQUEST);
	const uint64_t key[] = {item->process,
				item->values[waits ? MPI_HANDLE : MPI_MESSAGE_HANDLE]};
	uint32_t index;

	if (!mpi_has(item, waits ? MPI_HANDLE : MPI_MESSAGE_HANDLE))
		return;
	index = keymap_remove(&scan->message_at, key, sizeof(key));
	if (index == MAP_NONE)
		return;
	scan->calls.data[index].call.arrival_ts = item->ts;
	scan->calls.data[index].call.end_ts = item->end_ts;
	scan->calls.data[index].call.span = item->span;
	scan->calls.data[index].call.thread = item->thread;
	scan->calls.data[index].call.failed = item->failed;
	mpi_request_add(scan, item, index);
}

/* ---- all ---- */

static void role_query(struct mpi_scan *scan, const struct mpi_item *item)
{
	if (!item->failed)
		mpi_comm_of(scan, item);
}

static void role_free(struct mpi_scan *scan, const struct mpi_item *item)
{
	if (!item->failed)
		mpi_comm_free(scan, item);
}

static void role_request_free(struct mpi_scan *scan, const struct mpi_item *item)
{
	if (!item->failed)
		mpi_request_free(scan, item);
}

/* A call that failed has made no persistent request. */
static void role_init_request(struct mpi_scan *scan, const struct mpi_item *item)
{
	if (!item->failed)
		role_message(scan, item);
}

typedef void (*role_fn)(struct mpi_scan *scan, const struct mpi_item *item);

static const role_fn role_add[SITE_ROLE_COUNT] = {
	[SITE_ROLE_MPI_BARRIER] = role_collective,
	[SITE_ROLE_MPI_ALL] = role_collective,
	[SITE_ROLE_MPI_ALL_PARTS] = role_collective,
	[SITE_ROLE_MPI_FROM_ROOT] = role_collective,
	[SITE_ROLE_MPI_TO_ROOT] = role_collective,
	[SITE_ROLE_MPI_FROM_ROOT_PARTS] = role_collective,
	[SITE_ROLE_MPI_TO_ROOT_PARTS] = role_collective,
	[SITE_ROLE_MPI_PREFIX] = role_collective,
	[SITE_ROLE_MPI_NEIGHBORS] = role_collective,
	[SITE_ROLE_MPI_SEND] = role_message,
	[SITE_ROLE_MPI_RECV] = role_message,
	[SITE_ROLE_MPI_SENDRECV] = role_message,
	[SITE_ROLE_MPI_SEND_INIT] = role_init_request,
	[SITE_ROLE_MPI_RECV_INIT] = role_init_request,
	[SITE_ROLE_MPI_MPROBE] = role_mprobe,
	[SITE_ROLE_MPI_MRECV] = role_mrecv,
	[SITE_ROLE_MPI_START] = mpi_requests_start,
	[SITE_ROLE_MPI_WAIT] = mpi_requests_wait,
	[SITE_ROLE_MPI_WAIT_ANY] = mpi_requests_wait,
	[SITE_ROLE_MPI_WAIT_SOME] = mpi_requests_wait,
	[SITE_ROLE_MPI_REQUEST_FREE] = role_request_free,
	[SITE_ROLE_MPI_COMM_RANK] = role_query,
	[SITE_ROLE_MPI_COMM_SIZE] = role_query,
	[SITE_ROLE_MPI_COMM_DUP] = role_creation,
	[SITE_ROLE_MPI_COMM_SPLIT] = role_creation,
	[SITE_ROLE_MPI_COMM_CREATE] = role_creation,
	[SITE_ROLE_MPI_COMM_OTHER] = role_creation,
	[SITE_ROLE_MPI_COMM_FREE] = role_free,
	[SITE_ROLE_MPI_CANCEL] = mpi_request_cancel,
};

void mpi_scan_all(struct mpi_scan *scan)
{
	const struct model *model = scan->model;
	struct mpi_item item;

	for (size_t i = 0; i < model->execs.len; i++)
		map_put(&scan->execs, model->threads.data[model->execs.data[i].thread].pid, 0);
	for (uint32_t i = 0; i < scan->model->spans.len; i++) {
		if (!mpi_item_read(scan, i, &item))
			continue;
		item.process = mpi_process_of(scan, &item);
		if (role_add[item.site->role])
			role_add[item.site->role](scan, &item);
	}
}
