// SPDX-License-Identifier: Apache-2.0
/*
 * Four ranks that send messages in a ring and meet in collectives, with different counts, peers and
 * tags; each writes a line for every call that it made to FOLDER/RANK, because mpirun cuts what
 * ranks print into pieces.
 */
#include <mpi.h>
#include <stdio.h>

#define ROUNDS 20
#define MESSAGE_MAX 64
#define RANKS_MAX 16

static void log_call(int rank, const char *name, int count, const char *peer_name, int peer,
		     int tag)
{
	printf("call rank=%d name=%s count=%d %s=%d tag=%d\n", rank, name, count, peer_name, peer,
	       tag);
}

static void pass_round(int rank, int size, int round)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	int count = 1 + (rank * 7 + round) % MESSAGE_MAX, tag = 100 + round;
	int got = 1 + (left * 7 + round) % MESSAGE_MAX;
	int out[MESSAGE_MAX] = {rank}, in[MESSAGE_MAX];
	MPI_Request requests[2];
	MPI_Status statuses[2];

	if (rank % 2) {
		MPI_Recv(in, got, MPI_INT, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(out, count, MPI_INT, right, tag, MPI_COMM_WORLD);
	} else {
		MPI_Send(out, count, MPI_INT, right, tag, MPI_COMM_WORLD);
		MPI_Recv(in, got, MPI_INT, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	log_call(rank, "MPI_Send", count, "dest", right, tag);
	log_call(rank, "MPI_Recv", got, "source", left, tag);
	MPI_Irecv(in, got, MPI_INT, left, tag + 1000, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(out, count, MPI_INT, right, tag + 1000, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, statuses);
	log_call(rank, "MPI_Irecv", got, "source", left, tag + 1000);
	log_call(rank, "MPI_Isend", count, "dest", right, tag + 1000);
	log_call(rank, "MPI_Waitall", 2, "none", 0, 0);
	MPI_Sendrecv_replace(out, 2 + round, MPI_INT, right, tag + 2000, left, tag + 2000,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	log_call(rank, "MPI_Sendrecv_replace", 2 + round, "dest", right, tag + 2000);
}

static void meet_round(int rank, int size, int round)
{
	double in[MESSAGE_MAX] = {rank}, sum[MESSAGE_MAX];
	int root = round % size, count = 1 + round;
	int counts[RANKS_MAX], starts[RANKS_MAX];

	for (int i = 0; i < size; i++) {
		counts[i] = 3;
		starts[i] = 3 * i;
	}

	MPI_Bcast(in, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
	log_call(rank, "MPI_Bcast", count, "root", root, 0);
	MPI_Allreduce(in, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	log_call(rank, "MPI_Allreduce", count, "none", 0, 0);
	MPI_Reduce(in, sum, count, MPI_DOUBLE, MPI_MAX, root, MPI_COMM_WORLD);
	log_call(rank, "MPI_Reduce", count, "root", root, 0);
	MPI_Scatterv(in, counts, starts, MPI_DOUBLE, sum, 3, MPI_DOUBLE, root, MPI_COMM_WORLD);
	log_call(rank, "MPI_Scatterv", 3, "root", root, 0);
	MPI_Alltoallv(in, counts, starts, MPI_DOUBLE, sum, counts, starts, MPI_DOUBLE,
		      MPI_COMM_WORLD);
	log_call(rank, "MPI_Alltoallv", 0, "none", 0, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	log_call(rank, "MPI_Barrier", 0, "none", 0, 0);
}

int main(int argc, char **argv)
{
	char path[4096];
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > RANKS_MAX)
		return 1;
	snprintf(path, sizeof(path), "%s/%d", argc > 1 ? argv[1] : ".", rank);
	if (!freopen(path, "w", stdout))
		return 1;
	for (int round = 0; round < ROUNDS; round++) {
		pass_round(rank, size, round);
		meet_round(rank, size, round);
	}
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
