// SPDX-License-Identifier: Apache-2.0
/*
 * Which local communicators of different processes are one. MPI_COMM_WORLD is that of the job.
 * Another one follows from its parent: the same creating call, by its number on the parent, and the
 * same color. Ranks and sizes are what the program asked for. Where it did not, they follow from
 * the parent and from the arguments of all ranks' creating calls.
 */
#include <stdlib.h>

#include "model/comm/comm_mpi_internal.h"
#include "util/hash.h"
#include "util/memory.h"

static uint64_t hash_numbers(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t hash = hash_bytes(HASH_BEGIN, &a, sizeof(a));

	hash = hash_bytes(hash, &b, sizeof(b));
	return hash_bytes(hash, &c, sizeof(c));
}

/* What a key is of; a communicator that only one process knows is none of the others. */
enum id_key { KEY_CREATION, KEY_COMM, KEY_UNKNOWN };

/* A communicator that only this process knows. */
static void make_unknown(struct mpi_scan *scan, uint32_t index)
{
	struct mpi_comm *comm = &scan->comms.data[index];
	const uint64_t key[] = {KEY_UNKNOWN, index};

	comm->kind = MPI_COMM_UNKNOWN;
	comm->counted = MPI_UNCOUNTED;
	comm->id = comm_id_of(&scan->ids, key, sizeof(key),
			      hash_numbers(MPI_COMM_UNKNOWN, comm->process, index));
}

/* A number for the call that made a communicator: the same on all ranks that called it. */
static uint64_t creation_of(struct mpi_scan *scan, const struct mpi_comm *comm)
{
	struct comm_job job = comm_job(scan->model, scan->processes.data[comm->process].pid);
	uint64_t key[] = {KEY_CREATION, comm->kind, 0, 0, 0, 0}, hash;

	if (comm->parent != MODEL_NONE) {
		key[2] = scan->comms.data[comm->parent].id;
		key[3] = comm->seq;
		hash = hash_numbers(comm->kind, key[2], key[3]);
	} else if (comm->kind == MPI_COMM_SELF) {
		key[2] = comm->process;
		key[3] = (uint64_t)(comm - scan->comms.data);
		hash = hash_numbers(comm->kind, key[2], 0);
	} else {
		key[2] = job.name;
		key[3] = job.launcher;
		key[4] = comm->start;
		key[5] = job.world_size;
		hash = hash_numbers(comm->kind, comm_job_hash(scan->model, job), comm->start);
	}
	return comm_id_of(&scan->ids, key, sizeof(key), hash);
}

/* A parent's id is set before those of its children. */
static void set_ids(struct mpi_scan *scan)
{
	for (uint32_t i = 0; i < scan->comms.len; i++) {
		struct mpi_comm *comm = &scan->comms.data[i];
		bool made = comm->parent != MODEL_NONE;
		uint64_t key[] = {KEY_COMM, 0, comm->color};

		comm->counted = made ? scan->comms.data[comm->parent].counted
				     : scan->processes.data[comm->process].counted;
		if (comm->kind == MPI_COMM_UNKNOWN || (made && comm->counted == MPI_UNCOUNTED)) {
			make_unknown(scan, i);
			continue;
		}
		comm->creation = key[1] = creation_of(scan, comm);
		comm->id = comm_id_of(&scan->ids, key, sizeof(key),
				      hash_numbers(comm->creation, comm->color, 0));
	}
}

/* ---- ranks and sizes ---- */

/* A member of a communicator, as it is sorted: by the depth of the communicator, and then as
 * MPI_Comm_split orders ranks. */
struct mpi_member {
	uint64_t id;
	uint32_t depth, index; /* of the local communicator */
	int32_t key;
	uint32_t parent_rank;
};

static int member_compare(const void *left, const void *right)
{
	const struct mpi_member *a = left, *b = right;

	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int split_compare(const void *left, const void *right)
{
	const struct mpi_member *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->parent_rank < b->parent_rank ? -1 : a->parent_rank > b->parent_rank;
}

/* Number of processes that took part in the creation of a communicator. */
static void count_creators(const struct mpi_scan *scan, struct map *creators)
{
	for (uint32_t i = 0; i < scan->comms.len; i++) {
		uint64_t creation = scan->comms.data[i].creation;
		uint32_t count = map_get(creators, creation);

		map_put(creators, creation, count == MAP_NONE ? 1 : count + 1);
	}
}

/* Whether all ranks of the parent are traced and took part in the creation. */
static bool is_complete(const struct mpi_scan *scan, const struct map *creators,
			const struct mpi_comm *comm)
{
	return comm->parent != MODEL_NONE && scan->comms.data[comm->parent].size &&
	       map_get(creators, comm->creation) == scan->comms.data[comm->parent].size;
}

static void set_size(struct mpi_scan *scan, const struct mpi_member *members, size_t count,
		     uint32_t size)
{
	for (size_t i = 0; i < count; i++)
		if (!scan->comms.data[members[i].index].size)
			scan->comms.data[members[i].index].size = size;
}

/* The size that one of the members knows; 0: none does. */
static uint32_t known_size(const struct mpi_scan *scan, const struct mpi_member *members,
			   size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (scan->comms.data[members[i].index].size)
			return scan->comms.data[members[i].index].size;
	return 0;
}

static bool ranks_known(const struct mpi_scan *scan, const struct mpi_member *members, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (scan->comms.data[members[i].index].rank == MODEL_NONE)
			return false;
	return true;
}

/* The ranks of MPI_Comm_split are in the order of the keys, and then of the ranks in the parent. */
static void split_ranks(struct mpi_scan *scan, struct mpi_member *members, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct mpi_comm *comm = &scan->comms.data[members[i].index];

		members[i].key = comm->key;
		members[i].parent_rank = scan->comms.data[comm->parent].rank;
		if (members[i].parent_rank == MODEL_NONE)
			return;
	}
	qsort(members, count, sizeof(*members), split_compare);
	for (size_t i = 0; i < count; i++)
		if (scan->comms.data[members[i].index].rank == MODEL_NONE)
			scan->comms.data[members[i].index].rank = (uint32_t)i;
}

/* Finds the ranks and the size of one communicator. */
static void ranks_find(struct mpi_scan *scan, const struct map *creators,
		       struct mpi_member *members, size_t count)
{
	struct mpi_comm *first = &scan->comms.data[members->index];
	bool complete = is_complete(scan, creators, first);
	uint32_t size = known_size(scan, members, count);

	if (first->kind == MPI_COMM_DUP) {
		for (size_t i = 0; i < count; i++) {
			struct mpi_comm *comm = &scan->comms.data[members[i].index];

			comm->size = scan->comms.data[comm->parent].size;
			comm->rank = scan->comms.data[comm->parent].rank;
		}
	} else if (first->kind == MPI_COMM_SPLIT && complete) {
		size = (uint32_t)count;
		split_ranks(scan, members, count);
	} else if (first->kind == MPI_COMM_CREATE || first->kind == MPI_COMM_CREATE_GROUP) {
		bool ranks = ranks_known(scan, members, count);

		/* Ranks of several groups may have called it at the same time. */
		for (size_t i = 0; !ranks && !size && i < count; i++)
			make_unknown(scan, members[i].index);
		if (!size && ranks && complete && first->kind == MPI_COMM_CREATE)
			size = (uint32_t)count;
	}
	if (first->kind != MPI_COMM_UNKNOWN)
		set_size(scan, members, count, size);
}

void mpi_comms_finish(struct mpi_scan *scan)
{
	struct mpi_member *members = memory_get(scan->comms.len * sizeof(*members));
	struct map creators = {0};
	size_t count = 0, to;

	mpi_worlds_find(scan);
	set_ids(scan);
	count_creators(scan, &creators);
	for (uint32_t i = 0; i < scan->comms.len; i++)
		if (!scan->comms.data[i].null)
			members[count++] = (struct mpi_member){.id = scan->comms.data[i].id,
							       .depth = scan->comms.data[i].depth,
							       .index = i};
	if (count)
		qsort(members, count, sizeof(*members), member_compare);
	for (size_t from = 0; from < count; from = to) {
		for (to = from + 1; to < count && members[to].id == members[from].id;)
			to++;
		ranks_find(scan, &creators, &members[from], to - from);
	}
	map_free(&creators);
	free(members);
}
