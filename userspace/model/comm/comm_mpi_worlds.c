// SPDX-License-Identifier: Apache-2.0
/*
 * Which processes share an MPI_COMM_WORLD. Those of one job do, unless the job was started more
 * than once under one name. Then all processes of the earlier start ended before the first one of
 * the later start began:
 *
 *	rank 0   ---------      -------
 *	rank 1   -------         --------
 *	         first start    second start
 *
 * That holds also if no rank has files of both starts: MPI_Init() and MPI_Finalize() wait for all
 * ranks, so processes that did not run at the same time are not of one MPI_COMM_WORLD.
 *
 * If two processes claim one rank at the same time, nobody knows which of them the other ranks
 * talked to. Nothing of such a job is matched, and the claim is reported.
 */
#include <stdlib.h>

#include "model/comm/comm_mpi_internal.h"
#include "util/memory.h"

/* MPI_COMM_WORLD of a process whose rank is known. */
struct world {
	struct comm_job job;
	uint32_t comm; /* local communicator */
	uint32_t pid, rank;
	uint64_t begin_ts, end_ts; /* of the process; end_ts UINT64_MAX: unknown */
	/* The same in the clock of the job, widened by the clock's error. */
	uint64_t earliest_ts, latest_ts;
};
typedef VEC(struct world) world_list;

/* A program of Open MPI that only sends messages does not show which handle is MPI_COMM_WORLD. It
 * is the only one that it uses and has not created. */
static void handles_resolve(struct mpi_scan *scan)
{
	for (uint32_t i = 0; i < scan->comms.len; i++) {
		struct mpi_comm *comm = &scan->comms.data[i];
		struct mpi_process *process = &scan->processes.data[comm->process];

		if (!comm->maybe_world || comm->kind != MPI_COMM_UNKNOWN || comm->size == 1)
			continue;
		if (process->world == MODEL_NONE) {
			process->world = i;
			comm->kind = MPI_COMM_WORLD;
		} else if (scan->comms.data[process->world].maybe_world) {
			/* There are two of them. */
			scan->comms.data[process->world].kind = MPI_COMM_UNKNOWN;
		}
	}
}

/* The environment tells a process its rank in MPI_COMM_WORLD, and the number of ranks. */
static void ranks_set(struct mpi_scan *scan)
{
	for (uint32_t i = 0; i < scan->comms.len; i++) {
		struct mpi_comm *comm = &scan->comms.data[i];
		const struct model_process *process =
			comm_process(scan->model, scan->processes.data[comm->process].pid);

		if (comm->kind != MPI_COMM_WORLD)
			continue;
		if (process && comm->rank == MODEL_NONE && process->rank < INT32_MAX)
			comm->rank = process->rank;
		if (process && !comm->size && process->world_size < INT32_MAX)
			comm->size = process->world_size;
		/* Each program that was started without mpirun is alone in a world of its own. */
		if (comm->size == 1)
			comm->kind = MPI_COMM_SELF;
	}
}

/* When the process of a thread exited; UINT64_MAX: no exit was recorded. */
static uint64_t exit_of(const struct model *model, uint32_t thread)
{
	const struct model_thread *at = &model->threads.data[thread];
	const struct model_process *process = comm_process(model, at->pid);

	if (at->tid != at->pid && process && process->main_thread != MODEL_NONE)
		at = &model->threads.data[process->main_thread];
	return at->exit_ts ? at->exit_ts : UINT64_MAX;
}

static struct world world_of(const struct mpi_scan *scan, uint32_t index)
{
	const struct mpi_comm *comm = &scan->comms.data[index];
	const struct mpi_process *process = &scan->processes.data[comm->process];
	const struct store_host *host = scan->model->hosts[comm_host(scan->model, process->pid)];
	struct world world = {.job = comm_job(scan->model, process->pid),
			      .comm = index,
			      .pid = process->pid,
			      .rank = comm->rank,
			      .begin_ts = process->init_ts,
			      .end_ts = exit_of(scan->model, comm->thread)};
	uint64_t error;

	/* The next process of this pid ended it: it executed another program. */
	if (process->next_ts < world.end_ts)
		world.end_ts = process->next_ts;
	error = store_clock_error_at(&host->clock, world.begin_ts);
	if (scan->model->host_count == 1)
		error = 0;
	world.earliest_ts = world.begin_ts > error ? world.begin_ts - error : 0;
	if (error && world.end_ts != UINT64_MAX)
		error = store_clock_error_at(&host->clock, world.end_ts);
	world.latest_ts = world.end_ts < UINT64_MAX - error ? world.end_ts + error : UINT64_MAX;
	return world;
}

static int world_compare(const void *left, const void *right)
{
	const struct world *a = left, *b = right;

	if (a->job.name != b->job.name)
		return a->job.name < b->job.name ? -1 : 1;
	if (a->job.launcher != b->job.launcher)
		return a->job.launcher < b->job.launcher ? -1 : 1;
	if (a->job.world_size != b->job.world_size)
		return a->job.world_size < b->job.world_size ? -1 : 1;
	if (a->earliest_ts != b->earliest_ts)
		return a->earliest_ts < b->earliest_ts ? -1 : 1;
	return a->comm < b->comm ? -1 : a->comm > b->comm;
}

static bool same_job(const struct world *a, const struct world *b)
{
	return a->job.name == b->job.name && a->job.launcher == b->job.launcher &&
	       a->job.world_size == b->job.world_size;
}

/* Whether two processes of one rank may have run at the same time; `a` began first. */
static bool overlap(const struct mpi_scan *scan, const struct world *a, const struct world *b)
{
	if (a->pid == b->pid)
		return false;
	if (comm_host(scan->model, a->pid) == comm_host(scan->model, b->pid))
		return a->end_ts > b->begin_ts;
	return a->latest_ts >= b->earliest_ts;
}

/* Reports the ranks that several processes of one start claim at the same time. False: none. */
static bool claims_find(struct mpi_scan *scan, const struct world *worlds, size_t count)
{
	struct map longest = {0}; /* rank → the world that ended last so far */
	bool found = false;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t before = map_get(&longest, worlds[i].rank);

		if (before != MAP_NONE && overlap(scan, &worlds[before], &worlds[i])) {
			vec_add(&scan->comm->claims,
				(struct model_claim){.job = worlds[i].job.name,
						     .rank = worlds[i].rank,
						     .pid = worlds[before].pid,
						     .other_pid = worlds[i].pid});
			found = true;
		}
		if (before == MAP_NONE || worlds[before].end_ts < worlds[i].end_ts)
			map_put(&longest, worlds[i].rank, i);
	}
	map_free(&longest);
	return found;
}

/* The processes of one start of a job share an MPI_COMM_WORLD, unless a rank is claimed twice. */
static void start_set(struct mpi_scan *scan, const struct world *worlds, size_t count,
		      uint32_t number)
{
	bool claimed = claims_find(scan, worlds, count);

	for (size_t i = 0; i < count; i++) {
		scan->comms.data[worlds[i].comm].start = number;
		if (claimed)
			scan->comms.data[worlds[i].comm].kind = MPI_COMM_UNKNOWN;
	}
}

/* Number of worlds, sorted by their begin, until all of them have ended before the next begins. */
static size_t span_length(const struct world *worlds, size_t count)
{
	uint64_t latest_ts = worlds[0].latest_ts;
	size_t len = 1;

	while (len < count && worlds[len].earliest_ts <= latest_ts) {
		if (worlds[len].latest_ts > latest_ts)
			latest_ts = worlds[len].latest_ts;
		len++;
	}
	return len;
}

/* Divides the processes of one job into its starts. */
static void job_divide(struct mpi_scan *scan, const struct world *worlds, size_t count)
{
	uint32_t number = 0;

	for (size_t from = 0, len; from < count; from += len) {
		len = span_length(&worlds[from], count - from);
		start_set(scan, &worlds[from], len, number++);
	}
}

void mpi_worlds_find(struct mpi_scan *scan)
{
	world_list worlds = {0};

	handles_resolve(scan);
	ranks_set(scan);
	for (uint32_t i = 0; i < scan->comms.len; i++)
		if (scan->comms.data[i].kind == MPI_COMM_WORLD &&
		    scan->comms.data[i].rank != MODEL_NONE)
			vec_add(&worlds, world_of(scan, i));
	if (worlds.len)
		qsort(worlds.data, worlds.len, sizeof(*worlds.data), world_compare);
	for (size_t from = 0, to; from < worlds.len; from = to) {
		for (to = from + 1;
		     to < worlds.len && same_job(&worlds.data[from], &worlds.data[to]);)
			to++;
		job_divide(scan, &worlds.data[from], to - from);
	}
	vec_free(&worlds);
}
