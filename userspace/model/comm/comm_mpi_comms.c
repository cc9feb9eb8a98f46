// SPDX-License-Identifier: Apache-2.0
/* The communicators of each process, by their handles. */
#include "model/comm/comm_mpi_internal.h"
#include "util/memory.h"

/* Predefined handles of MPICH's ABI (mpi.h). */
#define MPICH_WORLD 0x44000000u
#define MPICH_SELF 0x44000001u
#define MPICH_NULL 0x04000000u
/* Numbers of predefined communicators in Open MPI (ompi/communicator/comm_init.c). */
#define OMPI_WORLD 0
#define OMPI_SELF 1
#define OMPI_NULL 2
/* No object of a program lies below this address. */
#define ADDRESS_MIN 4096
#define COLOR_UNDEFINED (-32766) /* MPI_UNDEFINED in both */

uint32_t mpi_process_of(struct mpi_scan *scan, const struct mpi_item *item)
{
	unsigned role = item->site->role;
	uint32_t found = map_get(&scan->process_at, item->pid);
	struct mpi_process process = {
		.pid = item->pid, .world = MODEL_NONE, .init_ts = item->ts, .next_ts = UINT64_MAX};
	bool begins = role == SITE_ROLE_MPI_INIT;

	/* A process may become another rank by execve(2). */
	if (found != MAP_NONE && !begins)
		return found;
	if (found != MAP_NONE)
		scan->processes.data[found].next_ts = item->ts;
	found = (uint32_t)scan->processes.len;
	if (begins)
		process.counted = MPI_COUNTED;
	else if ((role == SITE_ROLE_MPI_COMM_RANK || role == SITE_ROLE_MPI_COMM_SIZE) &&
		 map_get(&scan->execs, item->pid) != MAP_NONE)
		process.counted = MPI_ASSUMED;
	vec_add(&scan->processes, process);
	map_put(&scan->process_at, item->pid, found);
	return found;
}

static bool handle_is_null(const struct mpi_item *item, uint64_t handle)
{
	return item->site->pointers ? handle < ADDRESS_MIN : handle == MPICH_NULL || !handle;
}

/* What a handle means that no call of the capture has made. */
static enum mpi_comm_kind kind_of(const struct mpi_item *item, uint64_t handle)
{
	if (!item->site->pointers)
		return handle == MPICH_WORLD  ? MPI_COMM_WORLD
		       : handle == MPICH_SELF ? MPI_COMM_SELF
					      : MPI_COMM_UNKNOWN;
	if (!mpi_has(item, MPI_INDEX))
		return MPI_COMM_UNKNOWN;
	return item->values[MPI_INDEX] == OMPI_WORLD  ? MPI_COMM_WORLD
	       : item->values[MPI_INDEX] == OMPI_SELF ? MPI_COMM_SELF
						      : MPI_COMM_UNKNOWN;
}

/* Sets the kind of a communicator that the process did not create. */
static void set_kind(struct mpi_scan *scan, uint32_t index, const struct mpi_item *item,
		     uint64_t handle)
{
	struct mpi_comm *comm = &scan->comms.data[index];
	struct mpi_process *process = &scan->processes.data[comm->process];
	enum mpi_comm_kind kind = kind_of(item, handle);

	comm->maybe_world = item->site->pointers && !mpi_has(item, MPI_INDEX);
	if (kind == MPI_COMM_WORLD && process->world != MODEL_NONE)
		kind = MPI_COMM_UNKNOWN;
	if (kind == MPI_COMM_WORLD)
		process->world = index;
	comm->kind = (uint8_t)kind;
	if (kind != MPI_COMM_SELF)
		return;
	comm->size = 1;
	comm->rank = 0;
}

/* Adds a communicator under a handle, which may be that of one that was freed. */
static uint32_t comm_add(struct mpi_scan *scan, uint64_t handle, const struct mpi_comm *comm)
{
	const uint64_t key[] = {comm->process, handle};
	uint32_t index = (uint32_t)scan->comms.len;

	memory_require(scan->comms.len < MODEL_NONE);
	vec_add(&scan->comms, *comm);
	if (!comm->null)
		keymap_put(&scan->comm_at, key, sizeof(key), index);
	return index;
}

static uint32_t comm_find(struct mpi_scan *scan, const struct mpi_item *item, uint64_t handle)
{
	const uint64_t key[] = {item->process, handle};
	struct mpi_comm comm = {.ts = scan->processes.data[item->process].init_ts,
				.process = item->process,
				.thread = item->thread,
				.parent = MODEL_NONE,
				.rank = MODEL_NONE};
	uint32_t index;

	if (handle_is_null(item, handle))
		return MODEL_NONE;
	index = keymap_get(&scan->comm_at, key, sizeof(key));
	if (index == MAP_NONE) {
		index = comm_add(scan, handle, &comm);
		set_kind(scan, index, item, handle);
	} else if (scan->comms.data[index].maybe_world && mpi_has(item, MPI_INDEX)) {
		set_kind(scan, index, item, handle);
	}
	return index;
}

uint32_t mpi_comm_of(struct mpi_scan *scan, const struct mpi_item *item)
{
	struct mpi_comm *comm;
	uint32_t index;

	if (!mpi_has(item, MPI_COMM) ||
	    (mpi_has(item, MPI_INDEX) && item->values[MPI_INDEX] == OMPI_NULL))
		return MODEL_NONE;
	index = comm_find(scan, item, item->values[MPI_COMM]);
	if (index == MODEL_NONE)
		return MODEL_NONE;
	comm = &scan->comms.data[index];
	if (mpi_has(item, MPI_RANK) && item->values[MPI_RANK] < INT32_MAX)
		comm->rank = (uint32_t)item->values[MPI_RANK];
	if (mpi_has(item, MPI_SIZE) && item->values[MPI_SIZE] - 1 < INT32_MAX)
		comm->size = (uint32_t)item->values[MPI_SIZE];
	return index;
}

/* ---- creation ---- */

/* Number of earlier calls of MPI_Comm_create_group with this communicator and tag. Only the ranks
 * of the group call it, so it does not count among the parent's collectives. */
static uint32_t group_number(struct mpi_scan *scan, uint32_t parent, uint64_t tag)
{
	const uint64_t key[] = {parent, tag};
	uint32_t found = keymap_get(&scan->group_calls, key, sizeof(key));
	uint32_t number = found == MAP_NONE ? 0 : found;

	keymap_put(&scan->group_calls, key, sizeof(key), number + 1);
	return number;
}

static void set_creation(const struct mpi_item *item, struct mpi_comm *comm)
{
	switch (item->site->role) {
	case SITE_ROLE_MPI_COMM_DUP:
		comm->kind = MPI_COMM_DUP;
		break;
	case SITE_ROLE_MPI_COMM_SPLIT:
		comm->kind = MPI_COMM_SPLIT;
		comm->key = mpi_has(item, MPI_KEY) ? (int32_t)item->values[MPI_KEY] : 0;
		comm->color =
			mpi_has(item, MPI_COLOR) ? item->values[MPI_COLOR] : item->values[MPI_TYPE];
		comm->null = (int32_t)comm->color == COLOR_UNDEFINED;
		break;
	case SITE_ROLE_MPI_COMM_CREATE:
		comm->kind = mpi_has(item, MPI_TAG) ? MPI_COMM_CREATE_GROUP : MPI_COMM_CREATE;
		comm->color = mpi_has(item, MPI_TAG) ? item->values[MPI_TAG] : 0;
		break;
	default:
		comm->kind = MPI_COMM_UNKNOWN;
		break;
	}
	/* MPI_Comm_split_type: ranks of different hosts are in different communicators. */
	if (comm->kind == MPI_COMM_SPLIT && !mpi_has(item, MPI_COLOR))
		comm->null = (int32_t)item->values[MPI_TYPE] == COLOR_UNDEFINED;
}

void mpi_comm_make(struct mpi_scan *scan, const struct mpi_item *item, uint32_t parent)
{
	uint64_t handle = item->values[MPI_NEW];
	struct mpi_comm comm = {.ts = item->ts,
				.process = item->process,
				.thread = item->thread,
				.parent = parent,
				.rank = MODEL_NONE};

	if (item->end_ts == UINT64_MAX || !mpi_has(item, MPI_NEW) ||
	    (item->site->role == SITE_ROLE_MPI_COMM_SPLIT && !mpi_has(item, MPI_COLOR) &&
	     !mpi_has(item, MPI_TYPE)))
		return;
	set_creation(item, &comm);
	comm.depth = scan->comms.data[parent].depth + 1;
	comm.seq = scan->comms.data[parent].collectives;
	if (comm.kind == MPI_COMM_SPLIT && !mpi_has(item, MPI_COLOR))
		comm.color = comm.color << 32 | comm_host(scan->model, item->pid);
	if (comm.kind == MPI_COMM_CREATE_GROUP)
		comm.seq = group_number(scan, parent, comm.color);
	comm.null |= handle_is_null(item, handle);
	if (mpi_has(item, MPI_NEW_RANK)) {
		comm.null |= item->values[MPI_NEW_RANK] >= INT32_MAX;
		comm.rank = comm.null ? MODEL_NONE : (uint32_t)item->values[MPI_NEW_RANK];
	}
	comm_add(scan, handle, &comm);
}

void mpi_comm_free(struct mpi_scan *scan, const struct mpi_item *item)
{
	const uint64_t key[] = {item->process, item->values[MPI_COMM]};
	uint32_t index;

	if (!mpi_has(item, MPI_COMM) || item->end_ts == UINT64_MAX)
		return;
	index = keymap_get(&scan->comm_at, key, sizeof(key));
	/* A predefined communicator cannot be freed. */
	if (index != MAP_NONE && scan->comms.data[index].parent != MODEL_NONE)
		keymap_remove(&scan->comm_at, key, sizeof(key));
}
