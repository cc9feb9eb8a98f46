// SPDX-License-Identifier: Apache-2.0
/*
 * Random programs of MPI: communicators are duplicated, split, freed and made again under the same
 * handles, and ranks meet on them in collectives and messages, also nonblocking ones and with
 * wildcards. The program knows which calls belong together, and the model must find the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "mpi_capture.h"

#define RANKS_MAX 6
#define COMMS_MAX 12
#define SLOTS 32
#define PENDING_MAX 5
#define IDS_MAX 8192
#define STATUS 0x7ffd0000
#define SEEDS 60
#define STEPS 150

struct comm {
	unsigned size; /* 0: free */
	unsigned members[RANKS_MAX];
	unsigned slots[RANKS_MAX]; /* of the handle, by rank in the communicator; world: unused */
};

/* A nonblocking call that no wait has completed. */
struct pending {
	uint64_t id, handle, got;
};

struct program {
	struct mpi_job job;
	unsigned random, ranks;
	uint64_t clock[RANKS_MAX];
	struct comm comms[COMMS_MAX]; /* the first is the world */
	bool used[RANKS_MAX][SLOTS];
	struct pending pending[RANKS_MAX][PENDING_MAX];
	unsigned pending_count[RANKS_MAX];
	uint64_t handles; /* of requests */
	/* Calls of one collective or message have the same id; 0: the call is part of none. */
	unsigned group[IDS_MAX], group_size[IDS_MAX], groups;
	uint64_t end[IDS_MAX], end_id[IDS_MAX];
};

static unsigned draw(struct program *program, unsigned below)
{
	program->random = program->random * 1103515245 + 12345;
	return (program->random >> 16) % below;
}

static uint64_t tick(struct program *program, unsigned rank)
{
	return program->clock[rank] += 1 + draw(program, 20);
}

static struct mpi_name name_of(const struct program *program, const struct comm *comm, unsigned at)
{
	bool pointers = program->job.pointers;
	unsigned slot = comm->slots[at];

	if (comm == program->comms)
		return mpi_world(&program->job, comm->members[at]);
	return (struct mpi_name){pointers ? 0x5000000u + slot * 0x200u : 0x84000000u + slot, at,
				 3 + slot};
}

/* The lowest free handle of a rank, as libraries choose it. */
static unsigned slot_take(struct program *program, unsigned rank)
{
	unsigned slot = 0;

	while (program->used[rank][slot])
		slot++;
	assert_true(slot < SLOTS);
	program->used[rank][slot] = true;
	return slot;
}

static void note(struct program *program, uint64_t id, unsigned group)
{
	assert_true(id < IDS_MAX);
	program->group[id] = group;
	program->group_size[group]++;
	program->end[id] = UINT64_MAX;
}

static struct comm *comm_draw(struct program *program)
{
	for (;;) {
		struct comm *comm = &program->comms[draw(program, COMMS_MAX)];

		if (comm->size)
			return comm;
	}
}

static struct comm *comm_free_place(struct program *program)
{
	for (unsigned i = 1; i < COMMS_MAX; i++)
		if (!program->comms[i].size)
			return &program->comms[i];
	return NULL;
}

/* ---- waits ---- */

static void complete(struct program *program, unsigned rank, unsigned at, uint64_t wait)
{
	struct pending *pending = program->pending[rank];

	program->end[pending[at].id] = program->clock[rank];
	program->end_id[pending[at].id] = wait;
	memmove(&pending[at], &pending[at + 1],
		(--program->pending_count[rank] - at) * sizeof(*pending));
}

static void wait_one(struct program *program, unsigned rank)
{
	unsigned at = draw(program, program->pending_count[rank]);
	struct pending one = program->pending[rank][at];
	uint64_t from = tick(program, rank), to = tick(program, rank), id;

	if (draw(program, 2))
		id = mpi_call(&program->job, rank, from, to, MPI_SITE_WAIT, NULL, 0x9000 + from,
			      one.handle, STATUS, one.got);
	else
		id = mpi_call(&program->job, rank, from, to, MPI_SITE_TEST, NULL, 0x9000 + from,
			      one.handle, STATUS, 1, one.got);
	complete(program, rank, at, id);
}

static void wait_all(struct program *program, unsigned rank)
{
	const struct pending *p = program->pending[rank];
	struct pending all[PENDING_MAX] = {0};
	unsigned count = program->pending_count[rank];
	uint64_t from = tick(program, rank), to = tick(program, rank), id;

	memcpy(all, p, count * sizeof(*p));
	id = mpi_call(&program->job, rank, from, to, MPI_SITE_WAITALL, NULL, count, 0x9000 + from,
		      all[0].handle, all[1].handle, all[2].handle, all[3].handle, all[4].handle,
		      STATUS, all[0].got, all[1].got, all[2].got, all[3].got, all[4].got);
	while (program->pending_count[rank])
		complete(program, rank, 0, id);
}

/* A nonblocking call has begun. */
static uint64_t request_take(struct program *program, unsigned rank)
{
	if (program->pending_count[rank] == PENDING_MAX)
		(draw(program, 2) ? wait_all : wait_one)(program, rank);
	return 0x100000 + ++program->handles;
}

static void pend(struct program *program, unsigned rank, uint64_t id, uint64_t handle, uint64_t got)
{
	program->pending[rank][program->pending_count[rank]++] = (struct pending){id, handle, got};
}

/* ---- steps ---- */

static void collective(struct program *program)
{
	const struct comm *comm = comm_draw(program);
	unsigned kind = draw(program, 4), root = draw(program, comm->size);
	unsigned group = ++program->groups;

	for (unsigned at = 0; at < comm->size; at++) {
		struct mpi_name name = name_of(program, comm, at);
		unsigned rank = comm->members[at];
		uint64_t handle = kind == 3 ? request_take(program, rank) : 0;
		uint64_t from = tick(program, rank), to = tick(program, rank), id;

		if (kind == 0)
			id = mpi_call(&program->job, rank, from, to, MPI_SITE_BARRIER, &name);
		else if (kind == 1)
			id = mpi_call(&program->job, rank, from, to, MPI_SITE_ALLREDUCE, &name, 1);
		else if (kind == 2)
			id = mpi_call(&program->job, rank, from, to, MPI_SITE_BCAST, &name, 1,
				      root);
		else
			id = mpi_call(&program->job, rank, from, to, MPI_SITE_IALLREDUCE, &name, 1,
				      0x1000 + from, handle);
		note(program, id, group);
		if (kind == 3)
			pend(program, rank, id, handle, 0);
		else
			program->end[id] = to;
	}
}

static void message(struct program *program)
{
	const struct comm *comm = comm_draw(program);
	unsigned from = draw(program, comm->size), to = draw(program, comm->size);
	unsigned sender = comm->members[from], receiver = comm->members[to];
	uint64_t tag = draw(program, 3), any_source = program->job.pointers ? -1ull : -2ull;
	bool wild = draw(program, 3) == 0, later = draw(program, 2), waits = draw(program, 2);
	struct mpi_name name = name_of(program, comm, from);
	unsigned group = ++program->groups;
	uint64_t handle = later ? request_take(program, sender) : 0, id;
	uint64_t at = tick(program, sender), until = tick(program, sender);
	uint64_t got = tag << 32 | from;

	if (later)
		id = mpi_call(&program->job, sender, at, until, MPI_SITE_ISEND, &name, to, tag,
			      0x1000 + at, handle);
	else
		id = mpi_call(&program->job, sender, at, until, MPI_SITE_SEND, &name, to, tag);
	note(program, id, group);
	if (later)
		pend(program, sender, id, handle, 0);
	else
		program->end[id] = until;
	name = name_of(program, comm, to);
	handle = waits ? 0 : request_take(program, receiver);
	at = tick(program, receiver);
	until = tick(program, receiver);
	if (waits)
		id = mpi_call(&program->job, receiver, at, until, MPI_SITE_RECV, &name,
			      wild ? any_source : from, wild ? -1ull : tag, STATUS, got);
	else
		id = mpi_call(&program->job, receiver, at, until, MPI_SITE_IRECV, &name,
			      wild ? any_source : from, wild ? -1ull : tag, 0x1000 + at, handle);
	note(program, id, group);
	if (waits)
		program->end[id] = until;
	else
		pend(program, receiver, id, handle, got);
}

static void duplicate(struct program *program)
{
	const struct comm *parent = comm_draw(program);
	struct comm *made = comm_free_place(program);
	unsigned group = ++program->groups;

	if (!made)
		return;
	*made = *parent;
	for (unsigned at = 0; at < parent->size; at++) {
		struct mpi_name name = name_of(program, parent, at);
		unsigned rank = parent->members[at];
		uint64_t from = tick(program, rank), to = tick(program, rank), id;

		made->slots[at] = slot_take(program, rank);
		id = mpi_call(&program->job, rank, from, to, MPI_SITE_DUP, &name,
			      name_of(program, made, at).handle);
		note(program, id, group);
		program->end[id] = to;
	}
}

/* Adds a rank to the communicator of a color, in the order of keys and ranks. */
static void insert(struct comm *made, int *keys, unsigned rank, int key)
{
	unsigned at = made->size++;

	for (; at && keys[at - 1] > key; at--) {
		keys[at] = keys[at - 1];
		made->members[at] = made->members[at - 1];
		made->slots[at] = made->slots[at - 1];
	}
	keys[at] = key;
	made->members[at] = rank;
}

#define COLORS 3

static void split(struct program *program)
{
	const struct comm *parent = comm_draw(program);
	struct comm *made[COLORS] = {0};
	int keys[COLORS][RANKS_MAX], key[RANKS_MAX];
	unsigned color[RANKS_MAX], group = ++program->groups;

	for (unsigned at = 0; at < parent->size; at++) {
		key[at] = (int)draw(program, 5) - 2;
		color[at] = draw(program, COLORS + 1);
		if (color[at] == COLORS)
			continue;
		if (!made[color[at]] && !(made[color[at]] = comm_free_place(program))) {
			color[at] = COLORS;
			continue;
		}
		insert(made[color[at]], keys[color[at]], parent->members[at], key[at]);
	}
	for (unsigned at = 0; at < parent->size; at++) {
		struct mpi_name name = name_of(program, parent, at);
		unsigned rank = parent->members[at], own = 0;
		bool none = color[at] == COLORS;
		struct comm *mine = none ? NULL : made[color[at]];
		uint64_t from = tick(program, rank), to = tick(program, rank), id;
		uint64_t handle = program->job.pointers ? 0 : 0x04000000;

		while (mine && mine->members[own] != rank)
			own++;
		if (mine) {
			mine->slots[own] = slot_take(program, rank);
			handle = name_of(program, mine, own).handle;
		}
		id = mpi_call(&program->job, rank, from, to, MPI_SITE_SPLIT, &name,
			      none ? (uint64_t)-32766 : color[at], (uint64_t)(int64_t)key[at],
			      handle);
		note(program, id, group);
		program->end[id] = to;
	}
}

static void release(struct program *program)
{
	struct comm *comm = comm_draw(program);

	if (comm == program->comms)
		return;
	for (unsigned at = 0; at < comm->size; at++) {
		struct mpi_name name = name_of(program, comm, at);
		unsigned rank = comm->members[at];
		uint64_t from = tick(program, rank), to = tick(program, rank);

		mpi_call(&program->job, rank, from, to, MPI_SITE_FREE, &name);
		program->used[rank][comm->slots[at]] = false;
	}
	comm->size = 0;
}

static void run(struct program *program)
{
	for (unsigned rank = 0; rank < program->ranks; rank++) {
		program->comms->members[program->comms->size++] = rank;
		mpi_init(&program->job, rank, program->ranks, 1100);
		program->clock[rank] = 1200;
	}
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned kind = draw(program, 16);

		(kind == 0   ? duplicate
		 : kind == 1 ? split
		 : kind == 2 ? release
		 : kind < 9  ? collective
			     : message)(program);
	}
	for (unsigned rank = 0; rank < program->ranks; rank++)
		while (program->pending_count[rank])
			(draw(program, 2) ? wait_all : wait_one)(program, rank);
}

/* ---- what the model has ---- */

static void check_call(const struct program *program, const struct model *model,
		       const struct model_comm *comm, uint64_t id)
{
	const struct model_collective *found = mpi_found(model, comm, id);
	unsigned group = program->group[id];

	if (!group) {
		assert_null(found);
		return;
	}
	if (!found)
		fail_msg("no collective of call %d in group %u", (int)id, group);
	assert_int_equal(found->count, program->group_size[group]);
	if (found->count > 1)
		assert_int_equal(found->alignment, COLLECTIVE_BY_CREATION);
	for (uint32_t i = 0; i < found->count; i++) {
		const struct model_rank_call *call = &found->calls[i];
		uint64_t other = model->spans.data[call->span].id;

		assert_int_equal(program->group[other], group);
		assert_int_equal(call->end_ts, program->end[other]);
		assert_int_equal(
			call->end_span == MODEL_NONE ? 0 : model->spans.data[call->end_span].id,
			program->end_id[other]);
		if (found->flow == FLOW_PAIR)
			assert_int_equal(call->rank, i ? found->to : found->from);
		else
			assert_int_equal(call->rank, i);
	}
}

static void test_the_model_finds_what_random_programs_did_together(void **state)
{
	static struct program program;

	(void)state;
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		const struct model *model;
		struct model_comm *comm;

		program = (struct program){.random = seed, .ranks = 2 + seed % (RANKS_MAX - 1)};
		mpi_begin(&program.job, seed % 2);
		run(&program);
		comm = mpi_load(&program.job, 1000000, &model);
		assert_int_equal(model_collectives_unaligned(comm), 0);
		assert_int_equal(model_disorder_count(comm), 0);
		for (uint64_t id = 1; id <= program.job.ids; id++)
			check_call(&program, model, comm, id);
		mpi_free(&program.job, comm);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_model_finds_what_random_programs_did_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
