// SPDX-License-Identifier: Apache-2.0
/*
 * Ranks that meet in collectives and messages of all kinds, on communicators that they make and
 * free. Each writes to FOLDER/RANK a line for each of its calls, with a name that is the same for
 * all calls that belong together. With the argument "disorder" rank 1 calls other collectives than
 * the rest.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 3
#define RANKS_MAX 16

static int rank, size;

/* Calls of the same group belong together. */
#define LOG(name, ...) (printf("call name=" name " group=" __VA_ARGS__), putchar('\n'))

static void meet_on(MPI_Comm comm, const char *where, int round)
{
	double in[RANKS_MAX] = {rank}, out[RANKS_MAX];
	MPI_Request request;
	int own, members;

	MPI_Comm_size(comm, &members);
	MPI_Comm_rank(comm, &own);
	MPI_Barrier(comm);
	LOG("MPI_Barrier", "%s.%d.barrier", where, round);
	MPI_Allreduce(in, out, 2, MPI_DOUBLE, MPI_SUM, comm);
	LOG("MPI_Allreduce", "%s.%d.sum", where, round);
	MPI_Bcast(in, 1, MPI_DOUBLE, round % members, comm);
	LOG("MPI_Bcast", "%s.%d.cast", where, round);
	MPI_Iallreduce(in, out, 1, MPI_DOUBLE, MPI_MAX, comm, &request);
	LOG("MPI_Iallreduce", "%s.%d.later", where, round);
	MPI_Gather(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, 0, comm);
	LOG("MPI_Gather", "%s.%d.gather", where, round);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Exscan(in, out, 1, MPI_DOUBLE, MPI_SUM, comm);
	LOG("MPI_Exscan", "%s.%d.scan", where, round);
}

/* The first rank gets a message from each other one, in the order of arrival. */
static void send_to_first(MPI_Comm comm, const char *where, int round)
{
	int own, members, value = 0;

	MPI_Comm_size(comm, &members);
	MPI_Comm_rank(comm, &own);
	if (own) {
		MPI_Send(&own, 1, MPI_INT, 0, own, comm);
		LOG("MPI_Send", "%s.%d.any.%d", where, round, own);
	}
	for (int i = 1; !own && i < members; i++) {
		MPI_Status status;

		if (i % 2) {
			MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
			LOG("MPI_Recv", "%s.%d.any.%d", where, round, status.MPI_SOURCE);
		} else {
			MPI_Message message;

			MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, &status);
			MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
			LOG("MPI_Mrecv", "%s.%d.any.%d", where, round, status.MPI_SOURCE);
		}
	}
	/* Nothing that is sent later may be received here. */
	MPI_Barrier(comm);
	LOG("MPI_Barrier", "%s.%d.received", where, round);
}

/* In a ring, with requests that are copied, in arrays and persistent. */
static void pass_around(MPI_Comm comm, const char *where, int round)
{
	int own, members, in[3], out[3] = {0};
	MPI_Request requests[4], one, kept;
	MPI_Status statuses[4];
	int right, left, at;

	MPI_Comm_size(comm, &members);
	MPI_Comm_rank(comm, &own);
	right = (own + 1) % members;
	left = (own + members - 1) % members;
	for (int i = 0; i < 2; i++) {
		MPI_Irecv(&in[i], 1, MPI_INT, i ? MPI_ANY_SOURCE : left, 7, comm, &one);
		requests[i] = one;
		LOG("MPI_Irecv", "%s.%d.ring.%d.%d", where, round, left, i);
	}
	for (int i = 0; i < 2; i++) {
		MPI_Isend(&out[i], 1, MPI_INT, right, 7, comm, &requests[2 + i]);
		LOG("MPI_Isend", "%s.%d.ring.%d.%d", where, round, own, i);
	}
	MPI_Waitany(4, requests, &at, statuses);
	MPI_Waitall(4, requests, statuses);
	MPI_Recv_init(&in[2], 1, MPI_INT, left, 8, comm, &kept);
	MPI_Start(&kept);
	LOG("MPI_Start", "%s.%d.kept.%d", where, round, left);
	MPI_Ssend(&out[2], 1, MPI_INT, right, 8, comm);
	LOG("MPI_Ssend", "%s.%d.kept.%d", where, round, own);
	MPI_Wait(&kept, MPI_STATUS_IGNORE);
	MPI_Request_free(&kept);
}

static void run_round(int round)
{
	MPI_Comm half, copy, first;
	MPI_Group all, group;
	char where[32];
	int zero = 0;

	meet_on(MPI_COMM_WORLD, "world", round);
	send_to_first(MPI_COMM_WORLD, "world", round);
	pass_around(MPI_COMM_WORLD, "world", round);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	LOG("MPI_Comm_split", "world.%d.split", round);
	snprintf(where, sizeof(where), "half%d", rank % 2);
	meet_on(half, where, round);
	pass_around(half, where, round);
	MPI_Comm_dup(half, &copy);
	LOG("MPI_Comm_dup", "%s.%d.dup", where, round);
	MPI_Comm_free(&half);
	snprintf(where, sizeof(where), "copy%d", rank % 2);
	send_to_first(copy, where, round);
	meet_on(copy, where, round);
	MPI_Comm_free(&copy);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_excl(all, 1, &zero, &group);
	MPI_Comm_create(MPI_COMM_WORLD, group, &first);
	LOG("MPI_Comm_create", "world.%d.create", round);
	if (first != MPI_COMM_NULL) {
		meet_on(first, "rest", round);
		MPI_Comm_free(&first);
	}
	MPI_Group_free(&group);
	MPI_Group_free(&all);
}

/* Nobody waits for these, so the program comes to its end. */
static void call_in_disorder(void)
{
	MPI_Request requests[2];
	int in = 0, out;

	if (rank == 1) {
		MPI_Ireduce(&in, &out, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &requests[0]);
		MPI_Ibcast(&in, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
	} else {
		MPI_Ibcast(&in, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
		MPI_Ireduce(&in, &out, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &requests[1]);
	}
	sleep(1);
	_exit(0);
}

int main(int argc, char **argv)
{
	char path[4096];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 2 && !strcmp(argv[2], "disorder"))
		call_in_disorder();
	snprintf(path, sizeof(path), "%s/%d", argc > 1 ? argv[1] : ".", rank);
	if (size > RANKS_MAX || !freopen(path, "w", stdout))
		return 1;
	for (int round = 0; round < ROUNDS; round++)
		run_round(round);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
